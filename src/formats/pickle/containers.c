// SPDX-License-Identifier: Apache-2.0
/* containers.c - Opcodes of tuples, lists, sets and dicts. */
#include <string.h>

#include "pickle/machine_internal.h"

enum phema_status op_empty(struct pickle_machine *machine, uint8_t opcode, struct phema_error *err)
{
    struct pickle_node *node = NULL;
    return pickle_push_new(&node, machine,
                           opcode == ')'   ? PICKLE_TUPLE
                           : opcode == ']' ? PICKLE_LIST
                           : opcode == '}' ? PICKLE_DICT
                                           : PICKLE_SET,
                           err);
}

static enum phema_status fail_odd(struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE, "has a key without a value");
}

/* The items are copied before the push, which may move the stack. */
static enum phema_status push_container(struct pickle_machine *machine, enum pickle_kind kind,
                                        struct pickle_node *const *items, size_t n,
                                        struct phema_error *err)
{
    struct pickle_items copy = {NULL, 0, 0};
    struct pickle_node *node = NULL;
    bool is_unhashable = false;
    for (size_t i = 0; i < n && kind == PICKLE_TUPLE; i++)
        is_unhashable = is_unhashable || items[i]->is_unhashable;
    enum phema_status status = pickle_append(machine, &copy, items, n, err);
    if (!status)
        status = pickle_push_new(&node, machine, kind, err);
    if (status)
        return status;
    node->items = copy;
    if (kind == PICKLE_TUPLE || kind == PICKLE_SET) /* a frozenset */
        node->is_unhashable = is_unhashable;
    return kind == PICKLE_DICT ? pickle_set_items(machine, node, NULL, 0, err) : PHEMA_OK;
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

/* Makes a container of an object that the user has allowed, once items are added to it. */
static void become_container(struct pickle_node *node, enum pickle_kind kind)
{
    if (node->kind == PICKLE_OBJECT && node->global->action == ACTION_ALLOWED) {
        node->kind = (uint8_t)kind;
        node->items = (struct pickle_items){NULL, 0, 0};
    }
}

/* Pops the items of an opcode, n_single or all above a mark, and finds the container below them. */
static enum phema_status take_items(struct pickle_node **target, struct pickle_node ***items,
                                    size_t *n, struct pickle_machine *machine, size_t n_single,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (n_single) {
        struct pickle_node *dropped = NULL;
        for (size_t i = 0; i < n_single && !status; i++)
            status = pickle_pop(&dropped, machine, err);
        *items = machine->stack + machine->n_stack;
        *n = n_single;
    } else {
        status = pickle_pop_mark(items, n, machine, err);
    }
    return status ? status : pickle_top(target, machine, err);
}

/* APPEND, APPENDS, ADDITEMS. */
enum phema_status op_append(struct pickle_machine *machine, uint8_t opcode, struct phema_error *err)
{
    struct pickle_node *target = NULL;
    struct pickle_node **items = NULL;
    size_t n = 0;
    enum phema_status status = take_items(&target, &items, &n, machine, opcode == 'a' ? 1 : 0, err);
    if (status)
        return status;
    enum pickle_kind wanted = opcode == 0x90 ? PICKLE_SET : PICKLE_LIST;
    become_container(target, wanted);
    /* a deque is inert; its items are ignored */
    if (wanted == PICKLE_LIST && target->kind == PICKLE_OBJECT &&
        strcmp(target->global->name, "collections.deque") == 0)
        return PHEMA_OK;
    if (target->kind != wanted)
        return phema_fail(err, PHEMA_ERR_FILE, "adds items to what is no %s",
                          wanted == PICKLE_SET ? "set" : "list");
    if (wanted == PICKLE_SET)
        status = pickle_check_keys(items, n, 1, err);
    if (status)
        return status;
    return pickle_append(machine, &target->items, items, n, err);
}

/* SETITEM, SETITEMS. */
enum phema_status op_set_item(struct pickle_machine *machine, uint8_t opcode,
                              struct phema_error *err)
{
    struct pickle_node *target = NULL;
    struct pickle_node **items = NULL;
    size_t n = 0;
    enum phema_status status = take_items(&target, &items, &n, machine, opcode == 's' ? 2 : 0, err);
    if (status)
        return status;
    if (n % 2)
        return fail_odd(err);
    become_container(target, PICKLE_DICT);
    if (target->kind != PICKLE_DICT)
        return phema_fail(err, PHEMA_ERR_FILE, "sets items of what is no dict");
    return pickle_set_items(machine, target, items, n, err);
}
