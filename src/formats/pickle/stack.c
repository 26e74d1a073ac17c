// SPDX-License-Identifier: Apache-2.0
/* stack.c - Memory, stack and marks of the pickle interpreter; growing lists of nodes. */
#include <string.h>

#include "format.h"
#include "pickle/machine_internal.h"

/* Memory for nodes: one byte of pickle makes at most one node and its place in a container that
 * doubles. Copies of containers (OrderedDict of a list) need a bound. It counts the bytes that were
 * read, not the size of the file: holes cost no disk space. */
#define ARENA_BYTES_PER_BYTE 192u
#define ARENA_BYTES_AT_LEAST ((size_t)256 << 10)

void *pickle_alloc(struct pickle_machine *machine, size_t size)
{
    uint64_t limit = 0;
    size_t grown = machine->arena->total_bytes - machine->arena_base;
    if (!phema_size_mul(&limit, machine->at - machine->n_skipped, ARENA_BYTES_PER_BYTE) ||
        !phema_size_add(&limit, limit, ARENA_BYTES_AT_LEAST))
        limit = UINT64_MAX;
    machine->is_over_limit = size > limit || grown > limit - size;
    return machine->is_over_limit ? NULL : phema_arena_alloc(machine->arena, size);
}

enum phema_status pickle_fail_memory(const struct pickle_machine *machine, struct phema_error *err)
{
    if (machine->is_over_limit)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "asks for more than %u times its own size in memory, as no real pickle "
                          "does",
                          ARENA_BYTES_PER_BYTE);
    return phema_fail_memory(err);
}

enum phema_status pickle_push(struct pickle_machine *machine, struct pickle_node *node,
                              struct phema_error *err)
{
    if (!phema_array_grow(&machine->stack, &machine->stack_capacity, machine->n_stack,
                          sizeof(struct pickle_node *)))
        return phema_fail_memory(err);
    machine->stack[machine->n_stack++] = node;
    return PHEMA_OK;
}

enum phema_status pickle_make_opaque(struct pickle_node **out, struct pickle_machine *machine,
                                     const struct pickle_global *class, struct pickle_node *args,
                                     struct phema_error *err)
{
    struct pickle_record *record = pickle_alloc(machine, sizeof(*record));
    struct pickle_node *node = pickle_alloc(machine, sizeof(*node));
    if (!record || !node)
        return pickle_fail_memory(machine, err);
    *record = (struct pickle_record){.class = class, .args = args};
    *node = (struct pickle_node){.kind = PICKLE_OPAQUE, .record = record};
    *out = node;
    return PHEMA_OK;
}

enum phema_status pickle_push_new(struct pickle_machine *machine, const struct pickle_node *node,
                                  struct phema_error *err)
{
    struct pickle_node *kept = pickle_alloc(machine, sizeof(*kept));
    if (!kept)
        return pickle_fail_memory(machine, err);
    *kept = *node;
    return pickle_push(machine, kept, err);
}

bool pickle_stack_is_empty(const struct pickle_machine *machine)
{
    size_t floor = machine->n_marks ? machine->marks[machine->n_marks - 1] : 0;
    return machine->n_stack <= floor;
}

enum phema_status pickle_top(struct pickle_node **out, struct pickle_machine *machine,
                             struct phema_error *err)
{
    if (pickle_stack_is_empty(machine))
        return phema_fail(err, PHEMA_ERR_FILE, "takes more from the stack than there is");
    *out = machine->stack[machine->n_stack - 1];
    return PHEMA_OK;
}

enum phema_status pickle_pop(struct pickle_node **out, struct pickle_machine *machine,
                             struct phema_error *err)
{
    enum phema_status status = pickle_top(out, machine, err);
    if (!status)
        machine->n_stack--;
    return status;
}

enum phema_status pickle_pop_mark(struct pickle_node ***out, size_t *n,
                                  struct pickle_machine *machine, struct phema_error *err)
{
    if (!machine->n_marks)
        return phema_fail(err, PHEMA_ERR_FILE, "expected a mark on the stack, found none");
    size_t floor = machine->marks[--machine->n_marks];
    *out = machine->stack + floor;
    *n = machine->n_stack - floor;
    machine->n_stack = floor;
    return PHEMA_OK;
}

enum phema_status pickle_append(struct pickle_machine *machine, struct pickle_items *items,
                                struct pickle_node *const *added, size_t n, struct phema_error *err)
{
    if (n > items->capacity - items->n) {
        size_t capacity = (size_t)items->capacity * 2;
        if (capacity < items->n + n) /* no overflow: both count nodes in memory */
            capacity = items->n + n;
        if (capacity > UINT32_MAX)
            return phema_fail(err, PHEMA_ERR_FILE, "has a container of more than 2^31 items");
        struct pickle_node **larger =
            pickle_alloc(machine, capacity * sizeof(struct pickle_node *));
        if (!larger)
            return pickle_fail_memory(machine, err);
        if (items->n)
            memcpy(larger, items->at, items->n * sizeof(struct pickle_node *));
        items->at = larger;
        items->capacity = (uint32_t)capacity;
    }
    if (n)
        memcpy(items->at + items->n, added, n * sizeof(struct pickle_node *));
    items->n += (uint32_t)n;
    return PHEMA_OK;
}
