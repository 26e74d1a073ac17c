// SPDX-License-Identifier: Apache-2.0
/* arena.c - memory in blocks of 4 KiB, then larger ones up to 64 KiB: a checkpoint of many small
 * archives has an arena for each. Each larger allocation is a separate block. Also growing arrays of
 * malloc. */
#include "phema/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/array.h"

#define FIRST_BLOCK_BYTES ((size_t)4 << 10)
#define BLOCK_BYTES       ((size_t)64 << 10)

struct phema_arena_block {
    struct phema_arena_block *next;
    size_t capacity;
    alignas(16) uint8_t bytes[];
};

static bool add_block(struct phema_arena *arena, size_t capacity)
{
    struct phema_arena_block *block = calloc(1, sizeof(*block) + capacity);
    arena->is_failed |= !block;
    if (!block)
        return false;
    block->capacity = capacity;
    block->next = arena->newest;
    arena->newest = block;
    arena->used = 0;
    arena->total_bytes += capacity;
    return true;
}

static size_t next_block_bytes(const struct phema_arena *arena)
{
    if (arena->total_bytes >= BLOCK_BYTES)
        return BLOCK_BYTES;
    return arena->total_bytes ? (size_t)arena->total_bytes : FIRST_BLOCK_BYTES;
}

void *phema_arena_alloc(struct phema_arena *arena, size_t size)
{
    arena->is_failed |= size > SIZE_MAX / 2;
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + 15) / 16 * 16;
    if (!arena->newest || size > arena->newest->capacity - arena->used) {
        size_t usual = next_block_bytes(arena);
        if (!add_block(arena, size > usual ? size : usual))
            return NULL;
    }
    void *piece = arena->newest->bytes + arena->used;
    arena->used += size;
    return piece;
}

void *phema_arena_array(struct phema_arena *arena, size_t n, size_t size)
{
    uint64_t total = 0;
    return phema_arena_alloc(arena, phema_size_mul(&total, n, size) ? (size_t)total : SIZE_MAX);
}

void *phema_arena_grow(struct phema_arena *arena, void *items, size_t n, size_t size)
{
    if (n & (n - 1)) /* only a power of two is full */
        return items;
    void *larger = phema_arena_array(arena, n ? 2 * n : 1, size);
    if (larger && n)
        memcpy(larger, items, n * size);
    return larger;
}

char *phema_arena_copy(struct phema_arena *arena, const void *data, size_t size)
{
    char *copy = phema_arena_alloc(arena, size + 1);
    if (copy && size)
        memcpy(copy, data, size);
    return copy;
}

char *phema_arena_printf(struct phema_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = size < 0 ? NULL : phema_arena_alloc(arena, (size_t)size + 1);
    va_start(args, format);
    if (text)
        (void)vsnprintf(text, (size_t)size + 1, format, args);
    va_end(args);
    return text;
}

void phema_arena_clear(struct phema_arena *arena)
{
    for (struct phema_arena_block *block = arena->newest; block;) {
        struct phema_arena_block *next = block->next;
        free(block);
        block = next;
    }
    *arena = (struct phema_arena){0};
}

/* ---- Arrays of malloc ---- */

bool phema_array_grow(void *array, size_t *capacity, size_t n, size_t element_size)
{
    if (n < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    uint64_t size_bytes = 0;
    if (!phema_size_mul(&size_bytes, wanted, element_size) || size_bytes > SIZE_MAX / 2)
        return false;
    void *items; /* the caller's pointer may be of any type: no void ** without breaking aliasing */
    memcpy(&items, array, sizeof(items));
    items = realloc(items, (size_t)size_bytes);
    if (!items)
        return false;
    memcpy(array, &items, sizeof(items));
    *capacity = wanted;
    return true;
}
