// SPDX-License-Identifier: Apache-2.0
/* containers.c - Tuples, lists, sets and dicts: opcodes, hashable keys, and equal keys as in
 * CPython. The first of two equal keys stays, with the value that was set last. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "pickle/machine_internal.h"

/* ---- Queries ---- */

bool pickle_holds_sizes(const struct pickle_node *node)
{
    if (!pickle_is(node, PICKLE_TUPLE))
        return false;
    for (size_t i = 0; i < node->items.n; i++)
        if (!pickle_is_count(node->items.at[i]))
            return false;
    return true;
}

uint64_t *pickle_copy_sizes(struct phema_arena *arena, const struct pickle_node *node)
{
    uint64_t *sizes = phema_arena_array(arena, node->items.n, sizeof(*sizes));
    for (size_t i = 0; sizes && i < node->items.n; i++)
        sizes[i] = (uint64_t)node->items.at[i]->integer;
    return sizes;
}

bool pickle_is_record(const struct pickle_node *node, const char *class)
{
    return pickle_is(node, PICKLE_RECORD) && strcmp(node->record->class->name, class) == 0;
}

/* torch's classes have at most some twenty fields. Repeated look-ups in a dict of thousands would
 * take time out of proportion to the size of the file. */
#define MAX_FIELDS 64u

struct pickle_node *pickle_field(const struct pickle_node *record, const char *name)
{
    const struct pickle_node *state = record->record->state;
    if (!pickle_is(state, PICKLE_DICT) || state->items.n > (size_t)2 * MAX_FIELDS)
        return NULL;
    return pickle_find(state, name);
}

struct pickle_node *pickle_find(const struct pickle_node *dict, const char *key)
{
    for (size_t i = dict->items.n; i >= 2; i -= 2)
        if (pickle_is_text(dict->items.at[i - 2], key))
            return dict->items.at[i - 1];
    return NULL;
}

/* ---- Keys ---- */

enum phema_status pickle_check_keys(struct pickle_node *const *items, size_t n, size_t step,
                                    struct phema_error *err)
{
    for (size_t i = 0; i < n; i += step)
        if (items[i]->is_unhashable)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "has a list, dict, set or bytearray as a key of a dict or an item of "
                              "a set, which Python refuses");
    return PHEMA_OK;
}

enum phema_status pickle_set_items(struct pickle_machine *machine, struct pickle_node *dict,
                                   struct pickle_node *const *pairs, size_t n,
                                   struct phema_error *err)
{
    enum phema_status status = pickle_check_keys(pairs, n, 2, err);
    if (status)
        return status;
    status = pickle_append(machine, &dict->items, pairs, n, err);
    if (status || dict->items.n <= 2 || dict->is_noted)
        return status;
    if (!phema_array_grow(&machine->dicts, &machine->dicts_capacity, machine->n_dicts,
                          sizeof(struct pickle_node *)))
        return phema_fail_memory(err);
    machine->dicts[machine->n_dicts++] = dict;
    dict->is_noted = true;
    return PHEMA_OK;
}

/* ---- Opcodes ---- */

enum phema_status op_empty(struct pickle_machine *machine, uint8_t opcode, struct phema_error *err)
{
    enum pickle_kind kind = opcode == ')'   ? PICKLE_TUPLE
                            : opcode == ']' ? PICKLE_LIST
                            : opcode == '}' ? PICKLE_DICT
                                            : PICKLE_SET;
    const struct pickle_node node = {
        .kind = (uint8_t)kind, .is_unhashable = kind != PICKLE_TUPLE, .items = {NULL, 0, 0}};
    return pickle_push_new(machine, &node, err);
}

static enum phema_status fail_odd(struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE, "has a key without a value");
}

/* The items are copied before the push, which may move the stack. A set is a frozenset here. */
static enum phema_status push_container(struct pickle_machine *machine, enum pickle_kind kind,
                                        struct pickle_node *const *items, size_t n,
                                        struct phema_error *err)
{
    struct pickle_node node = {.kind = (uint8_t)kind,
                               .is_unhashable = kind == PICKLE_LIST || kind == PICKLE_DICT,
                               .items = {NULL, 0, 0}};
    for (size_t i = 0; i < n && kind == PICKLE_TUPLE; i++)
        node.is_unhashable |= items[i]->is_unhashable;
    enum phema_status status = pickle_append(machine, &node.items, items, n, err);
    if (status)
        return status;
    status = pickle_push_new(machine, &node, err);
    if (status || kind != PICKLE_DICT)
        return status;
    return pickle_set_items(machine, machine->stack[machine->n_stack - 1], NULL, 0, err);
}

/* TUPLE, LIST, DICT, FROZENSET: of all nodes above the mark. */
enum phema_status op_from_mark(struct pickle_machine *machine, uint8_t opcode,
                               struct phema_error *err)
{
    struct pickle_node **items = NULL;
    size_t n = 0;
    enum phema_status status = pickle_pop_mark(&items, &n, machine, err);
    if (status)
        return status;
    if (opcode == 'd' && n % 2)
        return fail_odd(err);
    if (opcode == 'd' || opcode == 0x91)
        status = pickle_check_keys(items, n, opcode == 'd' ? 2 : 1, err);
    if (status)
        return status;
    return push_container(machine,
                          opcode == 't'   ? PICKLE_TUPLE
                          : opcode == 'l' ? PICKLE_LIST
                          : opcode == 'd' ? PICKLE_DICT
                                          : PICKLE_SET,
                          items, n, err);
}

enum phema_status op_small_tuple(struct pickle_machine *machine, uint8_t opcode,
                                 struct phema_error *err)
{
    struct pickle_node *items[3];
    size_t n = opcode - 0x84u;
    for (size_t i = n; i-- > 0;) {
        enum phema_status status = pickle_pop(&items[i], machine, err);
        if (status)
            return status;
    }
    return push_container(machine, PICKLE_TUPLE, items, n, err);
}

/* Makes a container of an object of a class outside the list, once items are added to it. Where it
 * was made of something, these items are hidden. */
static void become_container(struct pickle_node *node, enum pickle_kind kind)
{
    if (node->kind != PICKLE_OPAQUE || node->record->class->action == ACTION_UNREAD)
        return;
    const struct pickle_node *args = node->record->args;
    if (node->record->state || (args && args->items.n > 0)) {
        node->record->hides_items = true;
        return;
    }
    node->kind = (uint8_t)kind;
    node->items = (struct pickle_items){NULL, 0, 0};
}

/* Pops the items of an opcode, n_single or all above a mark, and finds the container below them. */
static enum phema_status pop_items(struct pickle_node **target, struct pickle_node ***items,
                                   size_t *n, struct pickle_machine *machine, size_t n_single,
                                   struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (!n_single)
        status = pickle_pop_mark(items, n, machine, err);
    for (size_t i = 0; i < n_single && !status; i++) {
        status = pickle_pop(target, machine, err);
        *items = machine->stack + machine->n_stack;
        *n = n_single;
    }
    return status ? status : pickle_top(target, machine, err);
}

/* APPEND, APPENDS, ADDITEMS. */
enum phema_status op_append(struct pickle_machine *machine, uint8_t opcode, struct phema_error *err)
{
    struct pickle_node *target = NULL;
    struct pickle_node **items = NULL;
    size_t n = 0;
    enum phema_status status = pop_items(&target, &items, &n, machine, opcode == 'a' ? 1 : 0, err);
    if (status)
        return status;
    enum pickle_kind wanted = opcode == 0x90 ? PICKLE_SET : PICKLE_LIST;
    become_container(target, wanted);
    /* a deque is inert; its items are ignored */
    if ((wanted == PICKLE_LIST && target->kind == PICKLE_OBJECT &&
         strcmp(target->global->name, "collections.deque") == 0) ||
        target->kind == PICKLE_OPAQUE)
        return PHEMA_OK;
    if (target->kind != wanted)
        return phema_fail(err, PHEMA_ERR_FILE, "adds items: expected a %s",
                          wanted == PICKLE_SET ? "set" : "list");
    if (wanted == PICKLE_SET)
        status = pickle_check_keys(items, n, 1, err);
    return status ? status : pickle_append(machine, &target->items, items, n, err);
}

/* SETITEM, SETITEMS. */
enum phema_status op_set_item(struct pickle_machine *machine, uint8_t opcode,
                              struct phema_error *err)
{
    struct pickle_node *target = NULL;
    struct pickle_node **items = NULL;
    size_t n = 0;
    enum phema_status status = pop_items(&target, &items, &n, machine, opcode == 's' ? 2 : 0, err);
    if (status)
        return status;
    if (n % 2)
        return fail_odd(err);
    become_container(target, PICKLE_DICT);
    if (target->kind == PICKLE_OPAQUE)
        return PHEMA_OK;
    if (target->kind != PICKLE_DICT)
        return phema_fail(err, PHEMA_ERR_FILE, "sets items: expected a dict");
    return pickle_set_items(machine, target, items, n, err);
}

/* ---- Equal keys ---- */

/* Kinds of keys that can be equal without being one object. Tuples and objects are equal by their
 * content, but they cannot be part of a name, so they are treated as different. */
enum rank { RANK_NONE, RANK_INTEGER, RANK_FLOAT, RANK_TEXT, RANK_BYTES, RANK_ALONE };

struct key {
    enum rank rank;
    size_t at; /* in the dict's items */
    union {
        int64_t integer;
        double real;
        struct phema_span span;
    };
};

/* True is 1 and 1.0 is 1. */
static struct key key_of(const struct pickle_node *node, size_t at)
{
    struct key key = {.rank = RANK_ALONE, .at = at};
    switch ((enum pickle_kind)node->kind) {
    case PICKLE_NONE:
        key.rank = RANK_NONE;
        break;
    case PICKLE_BOOL:
    case PICKLE_INT:
        key.rank = RANK_INTEGER;
        key.integer = node->kind == PICKLE_BOOL ? node->boolean : node->integer;
        break;
    case PICKLE_FLOAT:
        if (isnan(node->real))
            break;
        key.rank = RANK_FLOAT;
        key.real = node->real;
        if (node->real >= -0x1p63 && node->real < 0x1p63 && floor(node->real) == node->real) {
            key.rank = RANK_INTEGER;
            key.integer = (int64_t)node->real;
        }
        break;
    case PICKLE_TEXT:
    case PICKLE_BYTES:
        key.rank = node->kind == PICKLE_TEXT ? RANK_TEXT : RANK_BYTES;
        key.span = node->span;
        break;
    default:
        break;
    }
    return key;
}

static int compare_values(const struct key *left, const struct key *right)
{
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->rank == RANK_INTEGER)
        return (left->integer > right->integer) - (left->integer < right->integer);
    if (left->rank == RANK_FLOAT)
        return (left->real > right->real) - (left->real < right->real);
    if (left->rank != RANK_TEXT && left->rank != RANK_BYTES)
        return 0;
    return phema_spans_compare(left->span, right->span);
}

static int by_value(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    int order = compare_values(left, right);
    return order ? order : (left->at > right->at) - (left->at < right->at);
}

/* In each group of equal keys, which are adjacent: moves the last value to the first key, and
 * removes the other pairs. */
static void merge(struct pickle_items *items, const struct key *keys, size_t n_keys)
{
    for (size_t i = 1, first = 0; i < n_keys; i++) {
        if (compare_values(&keys[first], &keys[i]) != 0) {
            first = i;
            continue;
        }
        items->at[keys[first].at + 1] = items->at[keys[i].at + 1];
        items->at[keys[i].at] = NULL;
    }
    uint32_t n = 0;
    for (size_t i = 0; i + 1 < items->n; i += 2) {
        if (!items->at[i])
            continue;
        items->at[n] = items->at[i];
        items->at[n + 1] = items->at[i + 1];
        n += 2;
    }
    items->n = n;
}

enum phema_status pickle_merge_equal_keys(struct pickle_machine *machine, struct phema_error *err)
{
    size_t most = 0;
    for (size_t d = 0; d < machine->n_dicts; d++)
        if (machine->dicts[d]->items.n / 2 > most)
            most = machine->dicts[d]->items.n / 2;
    struct key *keys = calloc(most + 1, sizeof(*keys));
    if (!keys)
        return phema_fail_memory(err);
    for (size_t d = 0; d < machine->n_dicts; d++) {
        struct pickle_items *items = &machine->dicts[d]->items;
        size_t n = 0;
        for (size_t i = 0; i + 1 < items->n; i += 2) {
            keys[n] = key_of(items->at[i], i);
            n += keys[n].rank != RANK_ALONE;
        }
        qsort(keys, n, sizeof(*keys), by_value);
        merge(items, keys, n);
    }
    free(keys);
    return PHEMA_OK;
}
