/* arena.h - many small pieces of memory that are freed together. */
#ifndef PHEMA_ARENA_H
#define PHEMA_ARENA_H

#include "phema/error.h"
#include "phema/span.h"

struct phema_arena_block;

struct phema_arena {
    struct phema_arena_block *newest;
    size_t used;        /* of the newest block */
    size_t total_bytes; /* of all blocks */
    bool is_failed;     /* some memory was not there: many pieces need one check */
};

/* Zeroed, aligned to 16; NULL when there is no memory. The arena starts as {0}. */
void *phema_arena_alloc(struct phema_arena *arena, size_t size);
/* n * size bytes; NULL also where the product overflows */
void *phema_arena_array(struct phema_arena *arena, size_t n, size_t size);
/* The array with space for one more item after the first n, all of them added with this function;
 * it doubles. NULL: as phema_arena_array, and items is unchanged. */
void *phema_arena_grow(struct phema_arena *arena, void *items, size_t n, size_t size);
/* A copy with a NUL after it. */
char *phema_arena_copy(struct phema_arena *arena, const void *data, size_t size);
char *phema_arena_printf(struct phema_arena *arena, const char *format, ...) PHEMA_PRINTF(2, 3);
void phema_arena_clear(struct phema_arena *arena);

#endif
