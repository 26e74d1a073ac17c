// SPDX-License-Identifier: Apache-2.0
/* name_table.c - Hash table from tensor name to index, with a random seed of the process. Open
 * addressing, at most half full. The hash folds 128-bit products, an idea of wyhash. */
#include "format.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct name_slot {
    const char *name; /* NULL: free slot */
    size_t size;
    uint64_t hash;
    size_t value;
};

static uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_name(const uint64_t key[2], const char *name, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)name;
    uint64_t hash = key[0] ^ size;
    for (; size >= 8; size -= 8, bytes += 8)
        hash = fold(hash ^ phema_load_u64(bytes), key[1]) + key[0];
    uint64_t rest = 0;
    for (size_t i = 0; i < size; i++)
        rest |= (uint64_t)bytes[i] << (8 * i);
    return fold(hash ^ rest, key[1] ^ 0xA0761D6478BD642Fu);
}

/* The slot of the name, or the free slot where it is to be inserted. */
static struct name_slot *slot_of(const struct name_table *table, const char *name, size_t size,
                                 uint64_t hash)
{
    for (size_t at = hash & (table->capacity - 1);; at = (at + 1) & (table->capacity - 1)) {
        struct name_slot *slot = &table->slots[at];
        if (!slot->name || (slot->hash == hash && slot->size == size &&
                            (size == 0 || memcmp(slot->name, name, size) == 0)))
            return slot;
    }
}

/* One for the process: a distributed checkpoint has two tables for each of its 100 000 zips. */
static uint64_t secret[2];
static pthread_once_t secret_once = PTHREAD_ONCE_INIT;

static void choose_secret(void)
{
    if (getrandom(secret, sizeof(secret), GRND_NONBLOCK) != (ssize_t)sizeof(secret)) {
        secret[0] = 0x9E3779B97F4A7C15u; /* no secret: still correct, at worst slow */
        secret[1] = 0xD1B54A32D192ED03u;
    }
    secret[1] |= 1;
}

static bool grow(struct name_table *table)
{
    size_t capacity = table->capacity ? table->capacity * 2 : 16;
    struct name_table larger = *table;
    larger.slots = calloc(capacity, sizeof(*larger.slots));
    larger.capacity = capacity;
    if (!larger.slots)
        return false;
    if (!table->slots) {
        (void)pthread_once(&secret_once, choose_secret);
        memcpy(larger.key, secret, sizeof(secret));
    }
    for (size_t i = 0; table->slots && i < table->capacity; i++) {
        const struct name_slot *slot = &table->slots[i];
        if (slot->name)
            *slot_of(&larger, slot->name, slot->size, slot->hash) = *slot;
    }
    free(table->slots);
    *table = larger;
    return true;
}

enum name_added name_table_add(struct name_table *table, const char *name, size_t size,
                               size_t value)
{
    if (table->n >= table->capacity / 2 && !grow(table))
        return NAME_NO_MEMORY;
    uint64_t hash = hash_name(table->key, name, size);
    struct name_slot *slot = slot_of(table, name, size, hash);
    if (slot->name)
        return NAME_EXISTS;
    *slot = (struct name_slot){name, size, hash, value};
    table->n++;
    return NAME_ADDED;
}

bool name_table_find(size_t *value, const struct name_table *table, const char *name, size_t size)
{
    if (!table->n)
        return false;
    const struct name_slot *slot = slot_of(table, name, size, hash_name(table->key, name, size));
    if (!slot->name)
        return false;
    *value = slot->value;
    return true;
}

void name_table_clear(struct name_table *table)
{
    free(table->slots);
    *table = (struct name_table){0};
}
