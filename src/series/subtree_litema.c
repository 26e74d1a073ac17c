// SPDX-License-Identifier: Apache-2.0
/* subtree_litema.c - undoes LitEma's renaming. LitEma (ldm/modules/ema.py of LDM and Stable
 * Diffusion) keeps the average of parameter 'diffusion_model.out.0.weight' of 'model' as
 * 'model_ema.diffusion_modelout0weight', next to two counters. */
#include <stdlib.h>
#include <string.h>

#include "subtree.h"

static struct phema_span span_of(const char *string)
{
    return (struct phema_span){(const uint8_t *)string, strlen(string)};
}

/* Models are saved at the root or below state_dict. */
const char *litema_find(const struct phema_checkpoint *checkpoint)
{
    static const struct {
        const char *key, *counter;
    } places[] = {{"state_dict.model_ema", "state_dict.model_ema.num_updates"},
                  {"model_ema", "model_ema.num_updates"}};
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (phema_checkpoint_find(checkpoint, places[i].counter, strlen(places[i].counter)))
            return places[i].key;
    return NULL;
}

static int compare_spans(const struct phema_span *a, const struct phema_span *b)
{
    size_t shorter = a->size < b->size ? a->size : b->size;
    int order = shorter ? memcmp(a->data, b->data, shorter) : 0;
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static int compare_renames(const void *a, const void *b)
{
    const struct rename *left = a, *right = b;
    int order = compare_spans(&left->from, &right->from);
    return order ? order : compare_spans(&left->to, &right->to);
}

/* LitEma's name of each parameter below 'model', which stands next to KEY. */
static enum phema_status list_model(struct rename **out, size_t *n, struct phema_arena *arena,
                                    size_t base_size, const char *key,
                                    const struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    static const char model[] = "model.";
    size_t prefix_size = base_size + sizeof(model) - 1;
    size_t n_tensors = phema_checkpoint_n_tensors(checkpoint);
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    struct rename *renames = phema_arena_array(arena, n_tensors + 1, sizeof(*renames));
    if (!renames)
        return phema_fail_memory(err);
    *n = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        const char *name = tensors[i].name;
        size_t size = tensors[i].name_size;
        if (size <= prefix_size || memcmp(name, key, base_size) != 0 ||
            memcmp(name + base_size, model, sizeof(model) - 1) != 0)
            continue;
        char *flat = phema_arena_copy(arena, name + prefix_size, size - prefix_size);
        char *dotted = phema_arena_copy(arena, name + base_size, size - base_size);
        if (!flat || !dotted)
            return phema_fail_memory(err);
        size_t flat_size = 0;
        for (size_t c = 0; c < size - prefix_size; c++)
            if (flat[c] != '.')
                flat[flat_size++] = flat[c];
        renames[(*n)++] = (struct rename){{(const uint8_t *)flat, flat_size},
                                          {(const uint8_t *)dotted, size - base_size}};
    }
    if (*n)
        qsort(renames, *n, sizeof(*renames), compare_renames);
    *out = renames;
    return PHEMA_OK;
}

/* Drops names that two parameters share without their dots. */
static size_t drop_ambiguous(struct rename *renames, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && compare_spans(&renames[i].from, &renames[end].from) == 0)
            end++;
        if (end == i + 1)
            renames[kept++] = renames[i];
        i = end;
    }
    return kept;
}

static bool is_counter(const char *name, size_t size)
{
    return (size == 5 && memcmp(name, "decay", 5) == 0) ||
           (size == 11 && memcmp(name, "num_updates", 11) == 0);
}

const struct rename *rename_find(const struct rename *renames, size_t n, const char *name,
                                 size_t size)
{
    struct rename wanted = {{(const uint8_t *)name, size}, {NULL, 0}};
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_spans(&renames[middle].from, &wanted.from);
        if (!order)
            return &renames[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void note_unmatched(struct candidate_list *candidates, const struct subtree *subtree,
                           const struct phema_checkpoint *checkpoint)
{
    size_t key_size = strlen(subtree->key) + 1, n = 0;
    const struct phema_tensor *first = NULL;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const char *name = tensors[i].name;
        if (tensors[i].name_size <= key_size || memcmp(name, subtree->key, key_size - 1) != 0 ||
            name[key_size - 1] != '.' ||
            rename_find(subtree->names, subtree->n_names, name + key_size,
                        tensors[i].name_size - key_size))
            continue;
        first = first ? first : &tensors[i];
        n++;
    }
    struct phema_name_buffer shown;
    if (n)
        candidates_note(
            candidates,
            "%zu tensor%s of '%s' keep%s the name without dots, such as '%s': no parameter of "
            "the model, or more than one, can be meant",
            n, n == 1 ? "" : "s", subtree->key, n == 1 ? "s" : "",
            phema_name_escape(&shown, first->name + key_size, first->name_size - key_size));
}

PHEMA_FALLIBLE litema_match(struct subtree *subtree, struct candidate_list *candidates,
                            const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    size_t base_size = strlen(subtree->key) - strlen("model_ema");
    struct rename *renames = NULL;
    size_t n = 0;
    enum phema_status status =
        list_model(&renames, &n, candidates->arena, base_size, subtree->key, checkpoint, err);
    if (status)
        return status;
    n = drop_ambiguous(renames, n);
    size_t kept = 0; /* the counters are never parameters */
    for (size_t i = 0; i < n; i++)
        if (!is_counter((const char *)renames[i].from.data, renames[i].from.size))
            renames[kept++] = renames[i];
    struct rename *all = phema_arena_array(candidates->arena, kept + 2, sizeof(*all));
    if (!all)
        return phema_fail_memory(err);
    memcpy(all, renames, kept * sizeof(*all));
    all[kept++] = (struct rename){span_of("decay"), {NULL, 0}};
    all[kept++] = (struct rename){span_of("num_updates"), {NULL, 0}};
    qsort(all, kept, sizeof(*all), compare_renames);
    subtree->names = all;
    subtree->n_names = kept;
    note_unmatched(candidates, subtree, checkpoint);
    return PHEMA_OK;
}
