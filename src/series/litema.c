// SPDX-License-Identifier: Apache-2.0
/* litema.c - the names of LitEma's averages. LitEma (ldm/modules/ema.py of LDM and Stable Diffusion)
 * keeps the average of parameter 'diffusion_model.out.0.weight' of 'model' as
 * 'model_ema.diffusion_modelout0weight', next to two counters. */
#include <stdlib.h>
#include <string.h>

#include "sets.h"

static const char *const litema_counters[] = {"decay", "num_updates"};

/* Whether a name without dots is that of a parameter below a key of the size. */
static bool is_flat_name(const struct phema_checkpoint *checkpoint, const char *flat,
                         size_t flat_size, const char *key, size_t key_size)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const char *name = tensors[i].name;
        size_t at = key_size + 1, n = 0;
        if (tensors[i].name_size <= at || memcmp(name, key, key_size) != 0 || name[key_size] != '.')
            continue;
        for (; at < tensors[i].name_size; at++)
            if (name[at] != '.' && (n == flat_size || name[at] != flat[n++]))
                break;
        if (at == tensors[i].name_size && n == flat_size && tensors[i].name_size > key_size + 1 + n)
            return true;
    }
    return false;
}

/* Whether the tensors below a key have lost their dots, and the first of them is a parameter that has
 * some. Checkpoints that were made smaller lack the counters. */
static bool holds_flat_names(const struct phema_checkpoint *checkpoint, const char *key)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    size_t model_size = strlen(key) - strlen("_ema"), n_found = 0;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = tensors[i].name_size;
        const char *inner = name_below_key(tensors[i].name, &size, key);
        if (inner && memchr(inner, '.', size))
            return false;
        if (inner && !n_found && is_flat_name(checkpoint, inner, size, key, model_size))
            n_found++;
    }
    return n_found > 0;
}

const char *litema_find(const struct phema_checkpoint *checkpoint)
{
    static const struct {
        const char *key, *counter;
    } known[] = {{"state_dict.model_ema", "state_dict.model_ema.num_updates"},
                 {"model_ema", "model_ema.num_updates"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (phema_checkpoint_find(checkpoint, known[i].counter, strlen(known[i].counter)) ||
            holds_flat_names(checkpoint, known[i].key))
            return known[i].key;
    return NULL;
}

/* A number whose digits are those that the class was given. */
static double read_number(const struct phema_checkpoint *checkpoint, const char *name)
{
    const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, name, strlen(name));
    if (!tensor)
        return snapshot_metadata_value(checkpoint, name);
    return phema_dtype_bits(tensor->dtype) >= 32 ? snapshot_metadata_scalar(checkpoint, name)
                                                 : PHEMA_UNKNOWN;
}

PHEMA_FALLIBLE litema_describe(struct described_profile *out, struct phema_arena *arena,
                               const struct phema_checkpoint *checkpoint, const char *key,
                               double time, struct phema_error *err)
{
    const char *dot = strrchr(key, '.');
    int sizes[2] = {(int)strlen(key), dot ? (int)(dot - key) : 0};
    *out = (struct described_profile){.spec = NULL};
    for (size_t i = 0; i < ARRAY_LEN(sizes) && !out->spec; i++) {
        const char *names[2];
        for (size_t c = 0; c < ARRAY_LEN(names); c++) {
            names[c] = phema_arena_printf(arena, "%.*s%s%s", sizes[i], key, sizes[i] ? "." : "",
                                          litema_counters[c]);
            if (!names[c])
                return phema_fail_memory(err);
        }
        double decay = read_number(checkpoint, names[0]);
        out->n_steps = read_number(checkpoint, names[1]);
        if (!(decay > 0 && decay < 1) || out->n_steps != time)
            continue;
        out->spec = phema_arena_printf(arena, "torch-ema:decay=%.7g", decay);
        out->by = phema_arena_printf(arena, "'%s'", names[0]);
        if (!out->spec || !out->by)
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

static int compare_renames(const void *a, const void *b)
{
    const struct rename *left = a, *right = b;
    return phema_spans_compare(left->from, right->from);
}

const struct rename *rename_find(const struct rename *renames, size_t n, const char *name,
                                 size_t size)
{
    const struct rename wanted = {.from = {(const uint8_t *)name, size}};
    return n ? bsearch(&wanted, renames, n, sizeof(*renames), compare_renames) : NULL;
}

static bool is_litema_counter(struct phema_span name)
{
    return phema_bytes_are_any(name.data, name.size, litema_counters, ARRAY_LEN(litema_counters));
}

/* Sets the names that LitEma's tensors have in the model: of each parameter below 'model', which
 * stands next to the key. The counters are never parameters, and take no part. Tensors keep a name
 * that two parameters share. */
enum phema_status litema_list_names(struct subtree *out, struct phema_arena *arena,
                                    const struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    const char *key = out->key;
    size_t n_tensors = phema_checkpoint_n_tensors(checkpoint);
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    size_t model_size = strlen(key) - strlen("_ema"), base_size = model_size - strlen("model");
    const char *model = phema_arena_copy(arena, key, model_size);
    struct rename *renames =
        phema_arena_array(arena, n_tensors + ARRAY_LEN(litema_counters), sizeof(*renames));
    if (!model || !renames)
        return phema_fail_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        size_t size = tensors[i].name_size;
        const char *inner = name_below_key(tensors[i].name, &size, model);
        if (!inner || !size)
            continue;
        size_t dotted_size = tensors[i].name_size - base_size, flat_size = 0;
        char *flat = phema_arena_copy(arena, inner, size);
        char *dotted = phema_arena_copy(arena, tensors[i].name + base_size, dotted_size);
        if (!flat || !dotted)
            return phema_fail_memory(err);
        for (size_t c = 0; c < size; c++)
            if (flat[c] != '.')
                flat[flat_size++] = flat[c];
        struct phema_span from = {(const uint8_t *)flat, flat_size};
        if (!is_litema_counter(from))
            renames[n++] = (struct rename){from, {(const uint8_t *)dotted, dotted_size}};
    }
    for (size_t c = 0; c < ARRAY_LEN(litema_counters); c++)
        renames[n++] = (struct rename){
            .from = {(const uint8_t *)litema_counters[c], strlen(litema_counters[c])}};
    qsort(renames, n, sizeof(*renames), compare_renames);
    out->names = renames;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && compare_renames(&renames[i], &renames[end]) == 0;)
            end++;
        if (end == i + 1)
            renames[out->n_names++] = renames[i];
    }
    return PHEMA_OK;
}

void litema_note_unmatched(struct candidate_list *candidates, const struct subtree *subtree,
                           const struct phema_checkpoint *checkpoint)
{
    size_t n = 0;
    const char *first = NULL;
    size_t first_size = 0;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = tensors[i].name_size;
        const char *name = name_below_key(tensors[i].name, &size, subtree->key);
        if (!name || !size || rename_find(subtree->names, subtree->n_names, name, size))
            continue;
        if (n++ == 0) {
            first = name;
            first_size = size;
        }
    }
    struct phema_name_buffer shown;
    if (n)
        candidates_warn(
            candidates,
            "%zu tensor%s of '%s' keep%s the name without dots, such as '%s': no parameter of "
            "the model, or more than one, can be meant",
            n, n == 1 ? "" : "s", subtree->key, n == 1 ? "s" : "",
            phema_name_escape(&shown, first, first_size));
}
