// SPDX-License-Identifier: Apache-2.0
/* machine.c - Restricted pickle interpreter: memo, opcodes of plain values, table of opcodes. The
 * opcodes are those of CPython's pickletools; an opcode that the table lacks is refused. */
#include "pickle/machine.h"

#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "phema/strbuf.h"
#include "pickle/machine_internal.h"

static enum phema_status fail_cut(struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE, "the pickle is cut short");
}

static enum phema_status read_bytes(struct phema_span *out, struct pickle_machine *machine,
                                    uint64_t size, struct phema_error *err)
{
    if (size > machine->bytes.size - machine->at)
        return fail_cut(err);
    *out = (struct phema_span){machine->bytes.data + machine->at, (size_t)size};
    machine->at += (size_t)size;
    return PHEMA_OK;
}

/* Reads a little-endian length of width bytes, and that many bytes. */
static enum phema_status read_counted(struct phema_span *out, struct pickle_machine *machine,
                                      unsigned width, struct phema_error *err)
{
    struct phema_span field = {NULL, 0};
    enum phema_status status = read_bytes(&field, machine, width, err);
    if (status)
        return status;
    status = read_bytes(out, machine, load_number(field.data, width), err);
    if (status)
        return status;
    machine->n_skipped += out->size;
    return PHEMA_OK;
}

static enum phema_status op_protocol(struct pickle_machine *machine, uint8_t opcode,
                                     struct phema_error *err)
{
    (void)opcode;
    if (machine->at != 1)
        return phema_fail(err, PHEMA_ERR_FILE, "states its protocol twice");
    struct phema_span version = {NULL, 0};
    enum phema_status status = read_bytes(&version, machine, 1, err);
    if (status)
        return status;
    if (version.data[0] < 2 || version.data[0] > 5)
        return phema_fail(err, PHEMA_ERR_FILE, "has protocol %u, expected 2 to 5", version.data[0]);
    return PHEMA_OK;
}

static enum phema_status op_frame(struct pickle_machine *machine, uint8_t opcode,
                                  struct phema_error *err)
{
    (void)opcode;
    struct phema_span length = {NULL, 0};
    enum phema_status status = read_bytes(&length, machine, 8, err);
    if (status)
        return status;
    if (phema_load_u64(length.data) > machine->bytes.size - machine->at)
        return phema_fail(err, PHEMA_ERR_FILE, "has a frame that runs over its end");
    return PHEMA_OK;
}

static enum phema_status op_stop(struct pickle_machine *machine, uint8_t opcode,
                                 struct phema_error *err)
{
    (void)opcode;
    if (machine->n_stack != 1 || machine->n_marks)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "ends with %zu objects and %zu marks, expected one "
                          "object",
                          machine->n_stack, machine->n_marks);
    machine->is_done = true;
    return PHEMA_OK;
}

static enum phema_status op_constant(struct pickle_machine *machine, uint8_t opcode,
                                     struct phema_error *err)
{
    const struct pickle_node node = {.kind = opcode == 'N' ? PICKLE_NONE : PICKLE_BOOL,
                                     .boolean = opcode == 0x88};
    return pickle_push_new(machine, &node, err);
}

/* BININT is signed, the others are not. */
static enum phema_status op_integer(struct pickle_machine *machine, uint8_t opcode,
                                    struct phema_error *err)
{
    struct phema_span field = {NULL, 0};
    size_t width = opcode == 'K' ? 1 : opcode == 'M' ? 2 : 4;
    enum phema_status status = read_bytes(&field, machine, width, err);
    if (status)
        return status;
    uint64_t value = load_number(field.data, width);
    const struct pickle_node node = {
        .kind = PICKLE_INT, .integer = opcode == 'J' ? (int32_t)(uint32_t)value : (int64_t)value};
    return pickle_push_new(machine, &node, err);
}

/* Two's complement of any length; above 8 bytes the node keeps the bytes. LONG4 has a signed
 * length. */
static enum phema_status op_long(struct pickle_machine *machine, uint8_t opcode,
                                 struct phema_error *err)
{
    struct phema_span digits = {NULL, 0};
    enum phema_status status = read_counted(&digits, machine, opcode == 0x8A ? 1 : 4, err);
    if (status)
        return status;
    if (digits.size > INT32_MAX)
        return phema_fail(err, PHEMA_ERR_FILE, "has an integer of negative length");
    while (digits.size > 8 &&
           digits.data[digits.size - 1] == (digits.data[digits.size - 2] & 0x80 ? 0xFF : 0))
        digits.size--; /* the last byte repeats the sign, as Python does not write it */
    struct pickle_node node = {.kind = PICKLE_BIGINT, .span = digits};
    if (digits.size <= 8) {
        uint64_t value = digits.size && (digits.data[digits.size - 1] & 0x80) ? UINT64_MAX : 0;
        for (size_t i = digits.size; i-- > 0;)
            value = value << 8 | digits.data[i];
        node = (struct pickle_node){.kind = PICKLE_INT, .integer = (int64_t)value};
    }
    return pickle_push_new(machine, &node, err);
}

static enum phema_status op_float(struct pickle_machine *machine, uint8_t opcode,
                                  struct phema_error *err)
{
    (void)opcode;
    struct phema_span field = {NULL, 0};
    enum phema_status status = read_bytes(&field, machine, 8, err);
    if (status)
        return status;
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; i++) /* the one big-endian number of pickles */
        bits = bits << 8 | field.data[i];
    struct pickle_node node = {.kind = PICKLE_FLOAT};
    memcpy(&node.real, &bits, sizeof(bits));
    return pickle_push_new(machine, &node, err);
}

/* Text and bytes; BINSTRING is what Python 2 wrote for either. */
static enum phema_status op_string(struct pickle_machine *machine, uint8_t opcode,
                                   struct phema_error *err)
{
    static const struct {
        uint8_t opcode, width;
        bool is_text;
    } strings[] = {{'X', 4, true},  {0x8C, 1, true},  {0x8D, 8, true},
                   {'T', 4, true},  {'U', 1, true},   {'B', 4, false},
                   {'C', 1, false}, {0x8E, 8, false}, {0x96, 8, false}};
    size_t i = 0;
    while (strings[i].opcode != opcode)
        i++;
    struct phema_span span = {NULL, 0};
    enum phema_status status = read_counted(&span, machine, strings[i].width, err);
    if (status)
        return status;
    if (strings[i].is_text && !phema_is_utf8((const char *)span.data, span.size))
        return phema_fail(err, PHEMA_ERR_FILE, "has text that is not UTF-8");
    const struct pickle_node node = {.kind = strings[i].is_text ? PICKLE_TEXT : PICKLE_BYTES,
                                     .is_unhashable = opcode == 0x96, /* a bytearray */
                                     .span = span};
    return pickle_push_new(machine, &node, err);
}

static enum phema_status op_mark(struct pickle_machine *machine, uint8_t opcode,
                                 struct phema_error *err)
{
    (void)opcode;
    if (!phema_array_grow(&machine->marks, &machine->marks_capacity, machine->n_marks,
                          sizeof(*machine->marks)))
        return phema_fail_memory(err);
    machine->marks[machine->n_marks++] = machine->n_stack;
    return PHEMA_OK;
}

/* POP on a bare mark removes the mark, as in CPython. */
static enum phema_status op_pop(struct pickle_machine *machine, uint8_t opcode,
                                struct phema_error *err)
{
    struct pickle_node **dropped = NULL;
    size_t n = 0;
    struct pickle_node *one = NULL;
    if (opcode == '1' || (machine->n_marks && pickle_stack_is_empty(machine)))
        return pickle_pop_mark(&dropped, &n, machine, err);
    return pickle_pop(&one, machine, err);
}

static enum phema_status op_duplicate(struct pickle_machine *machine, uint8_t opcode,
                                      struct phema_error *err)
{
    (void)opcode;
    struct pickle_node *node = NULL;
    enum phema_status status = pickle_top(&node, machine, err);
    return status ? status : pickle_push(machine, node, err);
}

/* Reads the index of a memo opcode; MEMOIZE has no index and means the next one. */
static enum phema_status read_memo_index(size_t *out, struct pickle_machine *machine,
                                         uint8_t opcode, struct phema_error *err)
{
    struct phema_span field = {NULL, 0};
    size_t width = opcode == 'r' || opcode == 'j' ? 4 : 1;
    *out = machine->n_memo;
    if (opcode == 0x94)
        return PHEMA_OK;
    enum phema_status status = read_bytes(&field, machine, width, err);
    if (status)
        return status;
    *out = (size_t)load_number(field.data, width);
    return PHEMA_OK;
}

/* Real files number their memo without gaps: it grows by one, never to an index from the file. */
static enum phema_status op_put(struct pickle_machine *machine, uint8_t opcode,
                                struct phema_error *err)
{
    size_t index = 0;
    struct pickle_node *node = NULL;
    enum phema_status status = read_memo_index(&index, machine, opcode, err);
    if (status)
        return status;
    status = pickle_top(&node, machine, err);
    if (status)
        return status;
    if (index > machine->n_memo)
        return phema_fail(err, PHEMA_ERR_FILE, "puts memo entry %zu after %zu entries", index,
                          machine->n_memo);
    if (!phema_array_grow(&machine->memo, &machine->memo_capacity, machine->n_memo,
                          sizeof(struct pickle_node *)))
        return phema_fail_memory(err);
    machine->memo[index] = node;
    if (index == machine->n_memo)
        machine->n_memo++;
    return PHEMA_OK;
}

static enum phema_status op_get(struct pickle_machine *machine, uint8_t opcode,
                                struct phema_error *err)
{
    size_t index = 0;
    enum phema_status status = read_memo_index(&index, machine, opcode, err);
    if (status)
        return status;
    if (index >= machine->n_memo)
        return phema_fail(err, PHEMA_ERR_FILE, "gets memo entry %zu of %zu", index,
                          machine->n_memo);
    return pickle_push(machine, machine->memo[index], err);
}

static pickle_opcode *const opcodes[256] = {
    [0x80] = op_protocol,     [0x95] = op_frame,       ['.'] = op_stop,
    ['N'] = op_constant,      [0x88] = op_constant,    [0x89] = op_constant,
    ['J'] = op_integer,       ['K'] = op_integer,      ['M'] = op_integer,
    [0x8A] = op_long,         [0x8B] = op_long,        ['G'] = op_float,
    ['X'] = op_string,        [0x8C] = op_string,      [0x8D] = op_string,
    ['T'] = op_string,        ['U'] = op_string,       ['B'] = op_string,
    ['C'] = op_string,        [0x8E] = op_string,      [0x96] = op_string,
    ['('] = op_mark,          ['0'] = op_pop,          ['1'] = op_pop,
    ['2'] = op_duplicate,     ['q'] = op_put,          ['r'] = op_put,
    [0x94] = op_put,          ['h'] = op_get,          ['j'] = op_get,
    [')'] = op_empty,         [']'] = op_empty,        ['}'] = op_empty,
    [0x8F] = op_empty,        ['t'] = op_from_mark,    ['l'] = op_from_mark,
    ['d'] = op_from_mark,     [0x91] = op_from_mark,   [0x85] = op_small_tuple,
    [0x86] = op_small_tuple,  [0x87] = op_small_tuple, ['a'] = op_append,
    ['e'] = op_append,        [0x90] = op_append,      ['s'] = op_set_item,
    ['u'] = op_set_item,      ['c'] = op_global,       [0x93] = op_stack_global,
    ['R'] = op_call,          [0x81] = op_call,        ['b'] = op_build,
    ['Q'] = op_persistent_id,
};

static enum phema_status run(struct pickle_machine *machine, struct phema_error *err)
{
    /* so that a mark on an empty stack points into the array */
    if (!phema_array_grow(&machine->stack, &machine->stack_capacity, 0,
                          sizeof(struct pickle_node *)))
        return phema_fail_memory(err);
    if (machine->bytes.size < 2 || machine->bytes.data[0] != 0x80)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is no pickle of protocol 2 to 5 (protocol 0 and 1 are text, and torch "
                          "does not write storages into them); save it again without "
                          "pickle_protocol");
    while (!machine->is_done) {
        size_t start = machine->at;
        if (start == machine->bytes.size)
            return fail_cut(err);
        uint8_t opcode = machine->bytes.data[machine->at++];
        enum phema_status status =
            opcodes[opcode]
                ? opcodes[opcode](machine, opcode, err)
                : phema_fail(err, PHEMA_ERR_FILE, "opcode 0x%02x is not accepted", opcode);
        if (status)
            return phema_fail_in(err, status, "pickle byte %zu", start);
    }
    return pickle_merge_equal_keys(machine, err);
}

enum phema_status pickle_read(struct pickle_node **root, size_t *used, struct phema_span bytes,
                              struct phema_arena *arena, const struct pickle_host *host,
                              struct phema_error *err)
{
    struct pickle_machine machine = {.bytes = bytes, .arena = arena, .host = host};
    machine.arena_base = arena->total_bytes;
    enum phema_status status = run(&machine, err);
    if (!status) {
        *root = machine.stack[0];
        *used = machine.at;
    }
    free(machine.stack);
    free(machine.marks);
    free(machine.memo);
    free(machine.dicts);
    return status;
}
