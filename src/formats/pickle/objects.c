// SPDX-License-Identifier: Apache-2.0
/* objects.c - Opcodes of globals, calls, builds and persistent ids. "Calling" a global makes a
 * node: a dict, a tensor, a module, an inert object, or an opaque one. */
#include <string.h>

#include "format.h"
#include "phema/setting.h"
#include "phema/strbuf.h"
#include "pickle/machine_internal.h"

#define NUMBER_BYTES 8 /* of an integer of numpy */

static enum phema_status fail_global(const char *name, struct phema_error *err)
{
    struct phema_name_buffer shown;
    struct phema_name_buffer again;
    size_t size = strlen(name);
    return phema_fail(err, PHEMA_ERR_FILE,
                      "names '%s', which runs code and which no checkpoint needs; save the "
                      "state_dict, or let it through as an inert object with %s%s",
                      phema_name_escape(&shown, name, size),
                      phema_setting_equals(PHEMA_SET_ALLOW_GLOBAL),
                      phema_name_escape(&again, name, size));
}

static bool spans_are_equal(struct phema_span a, struct phema_span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* A global that was named before is allowed. */
static enum phema_status push_global(struct pickle_machine *machine, struct phema_span module,
                                     struct phema_span name, struct phema_error *err)
{
    for (size_t i = 0; i < PICKLE_GLOBALS_KEPT && machine->globals[i].node; i++)
        if (spans_are_equal(machine->globals[i].name, name) &&
            spans_are_equal(machine->globals[i].module, module))
            return pickle_push(machine, machine->globals[i].node, err);
    char *joined = pickle_alloc(machine, module.size + name.size + 2);
    struct pickle_global *global = pickle_alloc(machine, sizeof(*global));
    if (!joined || !global)
        return pickle_fail_memory(machine, err);
    if (module.size)
        memcpy(joined, module.data, module.size);
    joined[module.size] = '.';
    if (name.size)
        memcpy(joined + module.size + 1, name.data, name.size);
    if (memchr(joined, '\0', module.size + 1 + name.size))
        return phema_fail(err, PHEMA_ERR_FILE, "has a global with a NUL in its name");

    if (!pickle_global_find(global, joined, machine->host))
        return fail_global(joined, err);
    /* An attribute ("Linear.forward") of what the list has is not on the list. */
    if (name.size && memchr(name.data, '.', name.size) && global->action != ACTION_ALLOWED)
        global->action = ACTION_UNKNOWN;
    global->name = joined;
    const struct pickle_node node = {.kind = PICKLE_GLOBAL, .global = global};
    enum phema_status status = pickle_push_new(machine, &node, err);
    if (!status)
        machine->globals[machine->n_globals++ % PICKLE_GLOBALS_KEPT] =
            (struct pickle_named_global){module, name, machine->stack[machine->n_stack - 1]};
    return status;
}

static enum phema_status read_line(struct phema_span *out, struct pickle_machine *machine,
                                   struct phema_error *err)
{
    const uint8_t *start = machine->bytes.data + machine->at;
    const uint8_t *end = memchr(start, '\n', machine->bytes.size - machine->at);
    if (!end)
        return phema_fail(err, PHEMA_ERR_FILE, "the pickle is cut short in the name of a global");
    *out = (struct phema_span){start, (size_t)(end - start)};
    machine->at += out->size + 1;
    return PHEMA_OK;
}

enum phema_status op_global(struct pickle_machine *machine, uint8_t opcode, struct phema_error *err)
{
    (void)opcode;
    struct phema_span module = {NULL, 0};
    struct phema_span name = {NULL, 0};
    enum phema_status status = read_line(&module, machine, err);
    if (status)
        return status;
    status = read_line(&name, machine, err);
    return status ? status : push_global(machine, module, name, err);
}

enum phema_status op_stack_global(struct pickle_machine *machine, uint8_t opcode,
                                  struct phema_error *err)
{
    (void)opcode;
    struct pickle_node *name = NULL;
    struct pickle_node *module = NULL;
    enum phema_status status = pickle_pop(&name, machine, err);
    if (status)
        return status;
    status = pickle_pop(&module, machine, err);
    if (status)
        return status;
    if (name->kind != PICKLE_TEXT || module->kind != PICKLE_TEXT)
        return phema_fail(err, PHEMA_ERR_FILE, "has a global whose name is no text");
    return push_global(machine, module->span, name->span, err);
}

static enum phema_status push_object(struct pickle_machine *machine,
                                     const struct pickle_global *global, struct phema_error *err)
{
    const struct pickle_node node = {.kind = PICKLE_OBJECT,
                                     .is_unhashable = global->action == ACTION_UNHASHABLE,
                                     .global = global};
    return pickle_push_new(machine, &node, err);
}

static enum phema_status push_opaque(struct pickle_machine *machine,
                                     const struct pickle_global *class, struct pickle_node *args,
                                     struct phema_error *err)
{
    struct pickle_node *node = NULL;
    enum phema_status status = pickle_make_opaque(&node, machine, class, args, err);
    return status ? status : pickle_push(machine, node, err);
}

/* OrderedDict() and the like, empty or made of a list of pairs; any other argument (a factory, a
 * dict that was counted) leaves the dict to be filled by SETITEMS. */
static enum phema_status push_dict(struct pickle_machine *machine, const struct pickle_node *args,
                                   struct phema_error *err)
{
    static const struct pickle_node empty = {
        .kind = PICKLE_DICT, .is_unhashable = true, .items = {NULL, 0, 0}};
    enum phema_status status = pickle_push_new(machine, &empty, err);
    if (status || args->items.n == 0)
        return status;
    struct pickle_node *dict = machine->stack[machine->n_stack - 1];
    const struct pickle_node *source = args->items.at[0];
    if (source->kind == PICKLE_DICT)
        return pickle_set_items(machine, dict, source->items.at, source->items.n, err);
    if (source->kind != PICKLE_LIST && source->kind != PICKLE_TUPLE)
        return PHEMA_OK;
    for (size_t i = 0; i < source->items.n && !status; i++) {
        const struct pickle_node *pair = source->items.at[i];
        if ((pair->kind != PICKLE_TUPLE && pair->kind != PICKLE_LIST) || pair->items.n != 2)
            return phema_fail(err, PHEMA_ERR_FILE, "makes a dict: expected pairs");
        status = pickle_set_items(machine, dict, pair->items.at, 2, err);
    }
    return status;
}

static enum phema_status push_set(struct pickle_machine *machine,
                                  const struct pickle_global *global,
                                  const struct pickle_node *args, struct phema_error *err)
{
    bool is_frozen = strcmp(strrchr(global->name, '.'), ".frozenset") == 0;
    struct pickle_node set = {
        .kind = PICKLE_SET, .is_unhashable = !is_frozen, .items = {NULL, 0, 0}};
    if (args->items.n == 0)
        return pickle_push_new(machine, &set, err);
    const struct pickle_node *source = args->items.at[0];
    if (source->kind != PICKLE_LIST && source->kind != PICKLE_TUPLE && source->kind != PICKLE_SET)
        return phema_fail(err, PHEMA_ERR_FILE, "makes a set: expected a list");
    enum phema_status status = pickle_check_keys(source->items.at, source->items.n, 1, err);
    if (status)
        return status;
    status = pickle_append(machine, &set.items, source->items.at, source->items.n, err);
    return status ? status : pickle_push_new(machine, &set, err);
}

/* ({type: 'class', version: 6, module_src: text, class_name: text, state: dict},): the source is
 * never executed. An object without parameters is a module without any (torch_utils/persistence.py
 * of EDM2). */
static enum phema_status push_persistent(struct pickle_machine *machine,
                                         const struct pickle_node *args, struct phema_error *err)
{
    if (args->items.n != 1 || args->items.at[0]->kind != PICKLE_DICT)
        return phema_fail(err, PHEMA_ERR_FILE, "expected one dict that describes the object");
    const struct pickle_node *meta = args->items.at[0];
    const struct pickle_node *version = pickle_find(meta, "version");
    struct pickle_node *state = pickle_find(meta, "state");
    if (!pickle_is_text(pickle_find(meta, "type"), "class") ||
        !pickle_is(pickle_find(meta, "module_src"), PICKLE_TEXT) ||
        !pickle_is(pickle_find(meta, "class_name"), PICKLE_TEXT) ||
        (!pickle_is(state, PICKLE_DICT) && !pickle_is(state, PICKLE_NONE)))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected type 'class', module_src, class_name and a dict as state");
    if (!pickle_is(version, PICKLE_INT) || version->integer != 6)
        return phema_fail(err, PHEMA_ERR_FILE, "expected an object of version 6, as EDM2 saves it");
    const struct pickle_node module = {.kind = PICKLE_MODULE,
                                       .state = state->kind == PICKLE_DICT ? state : NULL};
    return pickle_push_new(machine, &module, err);
}

static enum phema_status push_storage(struct pickle_machine *machine,
                                      struct pickle_storage *storage, struct phema_error *err)
{
    const struct pickle_node node = {.kind = PICKLE_STORAGE, .storage = storage};
    return pickle_push_new(machine, &node, err);
}

static enum phema_status push_loaded(struct pickle_machine *machine, const struct pickle_node *args,
                                     struct phema_error *err)
{
    if (!machine->host->load_storage)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "a storage inside the pickle is not read here; save with torch.save");
    if (args->items.n != 1 || args->items.at[0]->kind != PICKLE_BYTES)
        return phema_fail(err, PHEMA_ERR_FILE, "expected bytes that are a file of torch.save");
    struct pickle_storage *storage = NULL;
    enum phema_status status =
        machine->host->load_storage(&storage, machine->host->context, args->items.at[0]->span, err);
    return status ? status : push_storage(machine, storage, err);
}

/* Of a text of bytes, those of a number alone are kept: code points below 256. */
static enum phema_status push_encoded(struct pickle_machine *machine,
                                      const struct pickle_global *global,
                                      const struct pickle_node *args, struct phema_error *err)
{
    const struct pickle_node *text = args->items.n ? args->items.at[0] : NULL;
    uint8_t *bytes = pickle_alloc(machine, NUMBER_BYTES);
    size_t n = 0;
    if (!bytes)
        return pickle_fail_memory(machine, err);
    size_t size = pickle_is(text, PICKLE_TEXT) ? text->span.size : 0, at = 0;
    for (; at < size && n < NUMBER_BYTES; at++) {
        unsigned point = text->span.data[at];
        if ((point == 0xC2 || point == 0xC3) && at + 1 < size)
            point = (point << 6 | (text->span.data[++at] & 0x3Fu)) & 0xFFu;
        bytes[n++] = (uint8_t)point;
    }
    if (n != NUMBER_BYTES || at < size)
        return push_object(machine, global, err);
    const struct pickle_node node = {.kind = PICKLE_BYTES, .span = {bytes, n}};
    return pickle_push_new(machine, &node, err);
}

/* Eight bytes that are a whole number below 2^53 are no double but 0, whatever the dtype says. */
static enum phema_status push_scalar(struct pickle_machine *machine,
                                     const struct pickle_global *global,
                                     const struct pickle_node *args, struct phema_error *err)
{
    const struct pickle_node *bytes = args->items.n == 2 ? args->items.at[1] : NULL;
    bool has_bytes = pickle_is(bytes, PICKLE_BYTES) && bytes->span.size == NUMBER_BYTES;
    uint64_t number = has_bytes ? phema_load_u64(bytes->span.data) : UINT64_MAX;
    if (number >= (uint64_t)1 << 53)
        return push_object(machine, global, err);
    const struct pickle_node node = {.kind = PICKLE_INT, .integer = (int64_t)number};
    return pickle_push_new(machine, &node, err);
}

/* What an opaque object is called for is opaque, too. */
static enum phema_status pop_call(const struct pickle_global **global, struct pickle_node **args,
                                  struct pickle_machine *machine, struct phema_error *err)
{
    struct pickle_node *callee = NULL;
    enum phema_status status = pickle_pop(args, machine, err);
    if (status)
        return status;
    status = pickle_pop(&callee, machine, err);
    if (status)
        return status;
    if (callee->kind != PICKLE_GLOBAL && callee->kind != PICKLE_OPAQUE)
        return phema_fail(err, PHEMA_ERR_FILE, "calls an object that is not a global");
    *global = callee->kind == PICKLE_GLOBAL ? callee->global : callee->record->class;
    if ((*args)->kind != PICKLE_TUPLE)
        return phema_fail(err, PHEMA_ERR_FILE, "calls '%s' with arguments that are no tuple",
                          (*global)->name);
    return PHEMA_OK;
}

static enum phema_status call_function(struct pickle_machine *machine,
                                       const struct pickle_global *function,
                                       const struct pickle_node *args, struct phema_error *err)
{
    struct pickle_node *tensor = NULL;
    enum phema_status status = PHEMA_OK;
    switch (function->action) {
    case ACTION_TENSOR_V1:
    case ACTION_TENSOR_V2:
    case ACTION_TENSOR_V3:
    case ACTION_PARAMETER:
    case ACTION_PARAMETER_WITH_STATE:
    case ACTION_DEVICE_TENSOR:
    case ACTION_FROM_TYPE:
        status = pickle_rebuild_tensor(&tensor, machine, function, args, err);
        if (!status)
            return pickle_push(machine, tensor, err);
        break;
    case ACTION_PERSISTENT:
        status = push_persistent(machine, args, err);
        break;
    case ACTION_LOAD_STORAGE:
        status = push_loaded(machine, args, err);
        break;
    default:
        return phema_fail(err, PHEMA_ERR_FILE, "calls '%s', which only may be named",
                          function->name);
    }
    return status ? phema_fail_in(err, status, "%s", function->name) : PHEMA_OK;
}

/* REDUCE calls a function or a class, NEWOBJ makes an object of a class. */
enum phema_status op_call(struct pickle_machine *machine, uint8_t opcode, struct phema_error *err)
{
    static const struct pickle_node module = {.kind = PICKLE_MODULE, .state = NULL};
    bool is_new = opcode == 0x81;
    const struct pickle_global *global = NULL;
    struct pickle_node *args = NULL;
    enum phema_status status = pop_call(&global, &args, machine, err);
    if (status)
        return status;
    switch (global->action) {
    case ACTION_SIZE:
        if (!is_new && args->items.n == 1 && args->items.at[0]->kind == PICKLE_TUPLE)
            return pickle_push(machine, args->items.at[0], err);
        return push_object(machine, global, err);
    case ACTION_INERT:
    case ACTION_UNHASHABLE:
        return push_object(machine, global, err);
    case ACTION_ENCODE:
        return push_encoded(machine, global, args, err);
    case ACTION_SCALAR:
        return push_scalar(machine, global, args, err);
    case ACTION_UNKNOWN:
    case ACTION_ALLOWED:
    case ACTION_UNREAD:
        return push_opaque(machine, global, args, err);
    case ACTION_DICT:
        return push_dict(machine, args, err);
    case ACTION_SET:
        return push_set(machine, global, args, err);
    default:
        if (!is_new)
            return call_function(machine, global, args, err);
    }
    if (global->action == ACTION_MODULE_CLASS)
        return pickle_push_new(machine, &module, err);
    if (global->action != ACTION_RECORD_CLASS)
        return phema_fail(err, PHEMA_ERR_FILE, "makes an object of '%s', which is no class",
                          global->name);
    struct pickle_record *record = pickle_alloc(machine, sizeof(*record));
    if (!record)
        return pickle_fail_memory(machine, err);
    record->class = global;
    return pickle_push_new(machine, &(struct pickle_node){.kind = PICKLE_RECORD, .record = record},
                           err);
}

static enum phema_status build_record(struct pickle_record *record, struct pickle_node *state,
                                      struct phema_error *err)
{
    if (record->state)
        return phema_fail(err, PHEMA_ERR_FILE, "builds a '%s' twice", record->class->name);
    if (state->kind != PICKLE_DICT && state->kind != PICKLE_TUPLE)
        return phema_fail(err, PHEMA_ERR_FILE, "builds a '%s' of what is neither dict nor tuple",
                          record->class->name);
    record->state = state;
    return PHEMA_OK;
}

/* The state of a module is a dict that has dicts of these names: torch's first and 17th. */
static bool is_module_state(const struct pickle_node *state)
{
    enum { MOST = 2 * 32 };
    unsigned n = 0;
    for (size_t i = 0; state->kind == PICKLE_DICT && i + 1 < state->items.n && i < MOST; i += 2)
        if (pickle_is_text(state->items.at[i], "_parameters") ||
            pickle_is_text(state->items.at[i], "_modules"))
            n += state->items.at[i + 1]->kind == PICKLE_DICT;
    return n == 2;
}

static void build_opaque(struct pickle_node *target, struct pickle_node *state)
{
    struct pickle_record *record = target->record;
    record->hides_items |= record->state != NULL; /* of which one is dropped */
    record->state = state;
    if (!record->hides_items && record->class->action != ACTION_UNREAD && is_module_state(state)) {
        target->kind = PICKLE_MODULE;
        target->state = state;
    }
}

/* Modules and records keep their state, dicts keep it as attributes, and other nodes drop it. On a
 * global it would change a class. */
enum phema_status op_build(struct pickle_machine *machine, uint8_t opcode, struct phema_error *err)
{
    (void)opcode;
    struct pickle_node *state = NULL;
    struct pickle_node *target = NULL;
    enum phema_status status = pickle_pop(&state, machine, err);
    if (status)
        return status;
    status = pickle_top(&target, machine, err);
    if (status)
        return status;
    switch ((enum pickle_kind)target->kind) {
    case PICKLE_DICT:
        if (target->attributes)
            return phema_fail(err, PHEMA_ERR_FILE, "builds a dict twice");
        target->attributes = state;
        return PHEMA_OK;
    case PICKLE_OBJECT:
    case PICKLE_TENSOR:
        return PHEMA_OK;
    case PICKLE_MODULE:
        if (target->state)
            return phema_fail(err, PHEMA_ERR_FILE, "builds a module twice");
        if (state->kind != PICKLE_DICT)
            return phema_fail(err, PHEMA_ERR_FILE, "builds a module: expected a dict");
        target->state = state;
        return PHEMA_OK;
    case PICKLE_RECORD:
        return build_record(target->record, state, err);
    case PICKLE_OPAQUE:
        build_opaque(target, state);
        return PHEMA_OK;
    default:
        return phema_fail(err, PHEMA_ERR_FILE, "sets the state of a value that is not an object");
    }
}

enum phema_status op_persistent_id(struct pickle_machine *machine, uint8_t opcode,
                                   struct phema_error *err)
{
    (void)opcode;
    struct pickle_node *id = NULL;
    struct pickle_storage *storage = NULL;
    enum phema_status status = pickle_pop(&id, machine, err);
    if (status)
        return status;
    if (!machine->host->find_storage)
        return phema_fail(err, PHEMA_ERR_FILE, "has a persistent id where none is expected");
    struct pickle_node *class =
        id->kind == PICKLE_TUPLE && id->items.n > 1 ? id->items.at[1] : NULL;
    /* ('module', class, file, source): torch.save notes the source, which is never executed */
    if (pickle_is(class, PICKLE_GLOBAL) && pickle_is_text(id->items.at[0], "module"))
        return pickle_push(machine, class, err);
    /* ('storage', class, ...), of a class that is not read */
    if (pickle_is(class, PICKLE_GLOBAL) && class->global->action == ACTION_UNREAD)
        return push_opaque(machine, class->global, NULL, err);
    status = machine->host->find_storage(&storage, machine->host->context, id, err);
    return status ? status : push_storage(machine, storage, err);
}
