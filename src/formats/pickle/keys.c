// SPDX-License-Identifier: Apache-2.0
/* keys.c - Keys of dicts: hashable nodes, and equal keys as in CPython. The first of two equal keys
 * stays, with the value that was set last. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "pickle/machine_internal.h"

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
    if (!status)
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
    size_t shorter = left->span.size < right->span.size ? left->span.size : right->span.size;
    int order = shorter ? memcmp(left->span.data, right->span.data, shorter) : 0;
    return order ? order
                 : (left->span.size > right->span.size) - (left->span.size < right->span.size);
}

static int by_value(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    int order = compare_values(left, right);
    return order ? order : (left->at > right->at) - (left->at < right->at);
}

/* In each group of equal keys, which are adjacent: moves the last value to the first key, and sets
 * the other pairs to NULL. */
static bool merge(struct pickle_node **items, const struct key *keys, size_t n)
{
    bool has_merged = false;
    for (size_t i = 1, first = 0; i < n; i++) {
        if (compare_values(&keys[first], &keys[i]) != 0) {
            first = i;
            continue;
        }
        items[keys[first].at + 1] = items[keys[i].at + 1];
        items[keys[i].at] = NULL;
        has_merged = true;
    }
    return has_merged;
}

static void drop_merged(struct pickle_items *items)
{
    size_t n = 0;
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
    struct key *keys = NULL;
    size_t capacity = 0;
    enum phema_status status = PHEMA_OK;
    for (size_t d = 0; d < machine->n_dicts && !status; d++) {
        struct pickle_items *items = &machine->dicts[d]->items;
        if (items->n / 2 > capacity) {
            free(keys);
            capacity = items->n / 2;
            keys = calloc(capacity, sizeof(*keys));
        }
        if (!keys) {
            status = phema_fail_memory(err);
            break;
        }
        size_t n = 0;
        for (size_t i = 0; i + 1 < items->n; i += 2) {
            keys[n] = key_of(items->at[i], i);
            n += keys[n].rank != RANK_ALONE;
        }
        qsort(keys, n, sizeof(*keys), by_value);
        if (merge(items->at, keys, n))
            drop_merged(items);
    }
    free(keys);
    return status;
}
