// SPDX-License-Identifier: Apache-2.0
/* scalars.c - Numbers stored next to the tensors (step counters, widths). The walk goes level by
 * level, so that numbers near the root are found whatever lies below. Constants bound the walk,
 * even of shared containers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "torch/torch.h"

/* Trainers keep their counters three or four levels deep. Thousands of settings and lists of
 * parameter numbers lie in optimizers, at level five and below. */
#define MAX_VALUES     4096u
#define MAX_DEPTH      8u
#define MAX_VALUE_NAME 256u
/* Limits of containers entered and items read: enough for a model of a hundred thousand tensors
 * whose optimizer keeps a dict for each; a few milliseconds of work. */
#define MAX_CONTAINERS ((size_t)1 << 16)
#define MAX_STEPS      ((size_t)1 << 20)
/* An item takes at least one byte of the pickle, unless its container is shared. */
#define STEPS_AT_LEAST ((size_t)1 << 12)

/* A container in the queue, and the last part of its name. */
struct waiting {
    const struct pickle_node *node;
    const struct pickle_node *key; /* text or integer; NULL: the number */
    size_t number;
    size_t parent;
    unsigned depth; /* of the root: 0 */
};

struct level_walk {
    struct phema_checkpoint *checkpoint;
    const char *item; /* begins all names; NULL: nothing does */
    struct waiting *queue;
    size_t n, capacity;
    size_t n_steps, max_steps;
};

static bool is_container(const struct pickle_node *node)
{
    return node->kind == PICKLE_TUPLE || node->kind == PICKLE_LIST || node->kind == PICKLE_DICT;
}

/* Writes a part of a name before buffer + at; SIZE_MAX when the buffer is full. */
static size_t put_part(char *buffer, size_t at, const struct waiting *item)
{
    char digits[24];
    const char *part = digits;
    size_t size = 0;
    if (item->key && item->key->kind == PICKLE_TEXT) {
        part = (const char *)item->key->span.data;
        size = item->key->span.size;
    } else if (item->key) {
        size = (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)item->key->integer);
    } else {
        size = (size_t)snprintf(digits, sizeof(digits), "%zu", item->number);
    }
    bool is_last = at == MAX_VALUE_NAME;
    if (size + !is_last > at)
        return SIZE_MAX;
    if (!is_last)
        buffer[--at] = '.';
    if (size) /* an empty key has no data */
        memcpy(buffer + at - size, part, size);
    return at - size;
}

/* Drops names that are longer than any name in use. */
static enum phema_status keep_value(struct level_walk *walk, const struct waiting *item,
                                    double number, struct phema_error *err)
{
    char buffer[MAX_VALUE_NAME];
    size_t at = MAX_VALUE_NAME;
    for (const struct waiting *part = item; part->depth; part = &walk->queue[part->parent]) {
        at = put_part(buffer, at, part);
        if (at == SIZE_MAX)
            return PHEMA_OK;
    }
    if (walk->item) {
        const struct pickle_node name = {.kind = PICKLE_TEXT,
                                         .span = {(const uint8_t *)walk->item, strlen(walk->item)}};
        at = put_part(buffer, at, &(struct waiting){.key = &name});
        if (at == SIZE_MAX)
            return PHEMA_OK;
    }
    struct phema_checkpoint *checkpoint = walk->checkpoint;
    struct phema_value value = {.name_size = MAX_VALUE_NAME - at, .number = number};
    value.name = phema_arena_copy(&checkpoint->arena, buffer + at, value.name_size);
    if (!value.name || !phema_array_grow(&checkpoint->values, &checkpoint->values_capacity,
                                         checkpoint->n_values, sizeof(*checkpoint->values)))
        return phema_fail_memory(err);
    checkpoint->values[checkpoint->n_values++] = value;
    return PHEMA_OK;
}

static enum phema_status look_at(struct level_walk *walk, const struct waiting *item,
                                 struct phema_error *err)
{
    const struct pickle_node *node = item->node;
    if (node->kind == PICKLE_INT)
        return keep_value(walk, item, (double)node->integer, err);
    if (node->kind == PICKLE_FLOAT)
        return keep_value(walk, item, node->real, err);
    if (!is_container(node) || item->depth == MAX_DEPTH || walk->n == MAX_CONTAINERS)
        return PHEMA_OK;
    if (!phema_array_grow(&walk->queue, &walk->capacity, walk->n, sizeof(*walk->queue)))
        return phema_fail_memory(err);
    walk->queue[walk->n++] = *item;
    return PHEMA_OK;
}

static enum phema_status enter(struct level_walk *walk, size_t at, struct phema_error *err)
{
    const struct waiting entered = walk->queue[at]; /* the queue moves as it grows */
    const struct pickle_items *items = &entered.node->items;
    bool is_dict = entered.node->kind == PICKLE_DICT;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; !status && i + is_dict < items->n; i += is_dict ? 2 : 1) {
        if (walk->n_steps++ == walk->max_steps || walk->checkpoint->n_values == MAX_VALUES) {
            walk->n_steps = walk->max_steps;
            break;
        }
        struct waiting item = {
            .node = items->at[i + is_dict], .number = i, .parent = at, .depth = entered.depth + 1};
        if (is_dict) {
            item.key = items->at[i];
            if (item.key->kind != PICKLE_TEXT && item.key->kind != PICKLE_INT)
                continue;
        }
        status = look_at(walk, &item, err);
    }
    return status;
}

enum phema_status torch_list_values(struct phema_checkpoint *checkpoint,
                                    const struct pickle_node *root, const char *item,
                                    size_t pickle_size, struct phema_error *err)
{
    struct level_walk walk = {.checkpoint = checkpoint, .item = item, .max_steps = STEPS_AT_LEAST};
    if (pickle_size > walk.max_steps)
        walk.max_steps = pickle_size < MAX_STEPS ? pickle_size : MAX_STEPS;
    enum phema_status status = PHEMA_OK;
    if (item || is_container(root))
        status = look_at(&walk, &(struct waiting){.node = root}, err);
    for (size_t at = 0; !status && at < walk.n && walk.n_steps < walk.max_steps; at++)
        status = enter(&walk, at, err);
    free(walk.queue);
    return status;
}
