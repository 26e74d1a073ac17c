/* machine_internal.h - Private to pickle/: the interpreter while it runs. */
#ifndef FORMATS_PICKLE_MACHINE_INTERNAL_H
#define FORMATS_PICKLE_MACHINE_INTERNAL_H

#include "pickle/machine.h"

#define PICKLE_GLOBALS_KEPT 16

struct pickle_named_global {
    struct phema_span module, name;
    struct pickle_node *node; /* NULL: unused */
};

struct pickle_machine {
    struct phema_span bytes;
    size_t at;
    struct phema_arena *arena;
    size_t arena_base;  /* size of the arena before [bytes] */
    size_t n_skipped;   /* bytes of text and data, which become no nodes */
    bool is_over_limit; /* the arena would outgrow the limit for the bytes read so far */
    const struct pickle_host *host;
    struct pickle_node **stack;
    size_t n_stack, stack_capacity;
    size_t *marks; /* heights of the stack */
    size_t n_marks, marks_capacity;
    struct pickle_node **memo;
    size_t n_memo, memo_capacity;
    struct pickle_node **dicts; /* dicts of several keys */
    size_t n_dicts, dicts_capacity;
    /* Globals that were named last: writers without a memo name the same ten for every tensor. */
    struct pickle_named_global globals[PICKLE_GLOBALS_KEPT];
    size_t n_globals; /* named so far */
    bool is_done;
};

/* Allocates from the arena, whose growth is bounded; NULL: report it with pickle_fail_memory. */
void *pickle_alloc(struct pickle_machine *machine, size_t size);
enum phema_status pickle_fail_memory(const struct pickle_machine *machine, struct phema_error *err);

/* Pushes a copy of the node, in the arena. */
PHEMA_FALLIBLE pickle_push_new(struct pickle_machine *machine, const struct pickle_node *node,
                               struct phema_error *err);
PHEMA_FALLIBLE pickle_push(struct pickle_machine *machine, struct pickle_node *node,
                           struct phema_error *err);
/* Nothing lies above the topmost mark. */
bool pickle_stack_is_empty(const struct pickle_machine *machine);
/* Never removes a node below the topmost mark. */
PHEMA_FALLIBLE pickle_pop(struct pickle_node **out, struct pickle_machine *machine,
                          struct phema_error *err);
PHEMA_FALLIBLE pickle_top(struct pickle_node **out, struct pickle_machine *machine,
                          struct phema_error *err);
/* Removes the topmost mark and the n nodes above it, which are *out: borrowed from the stack until
 * the next push. */
PHEMA_FALLIBLE pickle_pop_mark(struct pickle_node ***out, size_t *n, struct pickle_machine *machine,
                               struct phema_error *err);

PHEMA_FALLIBLE pickle_append(struct pickle_machine *machine, struct pickle_items *items,
                             struct pickle_node *const *added, size_t n, struct phema_error *err);

/* Checks that Python can hash every step-th of n items, which are to be keys. */
PHEMA_FALLIBLE pickle_check_keys(struct pickle_node *const *items, size_t n, size_t step,
                                 struct phema_error *err);
/* Appends key, value, key, value ... to a dict: n items, an even number. */
PHEMA_FALLIBLE pickle_set_items(struct pickle_machine *machine, struct pickle_node *dict,
                                struct pickle_node *const *pairs, size_t n,
                                struct phema_error *err);
/* Once all items are set: of equal keys the first stays, with the last value. */
PHEMA_FALLIBLE pickle_merge_equal_keys(struct pickle_machine *machine, struct phema_error *err);

typedef enum phema_status pickle_opcode(struct pickle_machine *machine, uint8_t opcode,
                                        struct phema_error *err);
/* containers.c */
pickle_opcode op_empty, op_from_mark, op_small_tuple, op_append, op_set_item;
/* objects.c */
pickle_opcode op_global, op_stack_global, op_call, op_build, op_persistent_id;

/* An opaque node, in the arena. args: a tuple or NULL. */
PHEMA_FALLIBLE pickle_make_opaque(struct pickle_node **out, struct pickle_machine *machine,
                                  const struct pickle_global *class, struct pickle_node *args,
                                  struct phema_error *err);

/* Makes a tensor from the arguments of a rebuild function of torch (rebuild_tensor.c). */
PHEMA_FALLIBLE pickle_rebuild_tensor(struct pickle_node **out, struct pickle_machine *machine,
                                     const struct pickle_global *function,
                                     const struct pickle_node *args, struct phema_error *err);

#endif
