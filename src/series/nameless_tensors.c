// SPDX-License-Identifier: Apache-2.0
/* nameless_tensors.c - averages in a list: "ema.shadow_params.0", "optimizer_states.0.ema.0",
 * "averages.param_0". Which parameter each belongs to is not known, so that none is taken, and the raw
 * parameters are taken for them only on request. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"
#include "twins.h"

#define LEAST_CALLED 2 /* items of a list whose name calls them averages */
#define LEAST_ITEMS  4 /* of another one */

/* Items of a list: all names but for the number behind. */
struct items {
    struct phema_span key, stem; /* "ema", "ema.param_" */
};

static bool is_of(const struct items *items, const struct phema_tensor *tensor)
{
    size_t size = items->stem.size, digits = tensor->name_size - size;
    return tensor->name_size > size && memcmp(tensor->name, items->stem.data, size) == 0 &&
           strspn(tensor->name + size, "0123456789") >= digits;
}

static bool find_items(struct items *out, const struct phema_tensor *tensor)
{
    const char *name = tensor->name;
    size_t stem = tensor->name_size, key;
    while (stem && isdigit((unsigned char)name[stem - 1]))
        stem--;
    for (key = stem; key && name[key - 1] != '.';)
        key--;
    bool is_bare = key == stem || (stem && name[stem - 1] == '_');
    *out =
        (struct items){{(const uint8_t *)name, key ? key - 1 : 0}, {(const uint8_t *)name, stem}};
    return key && stem < tensor->name_size && is_bare && tensor->rank > 0 &&
           tensor->kind != PHEMA_KIND_ATTRIBUTE && phema_dtype_is_float(tensor->dtype);
}

static int compare_shapes(const void *a, const void *b)
{
    const struct phema_tensor *const *left = a, *const *right = b;
    return twin_shapes_compare(*left, *right);
}

/* Whether each item has the shape of a parameter of its own, most parameters have an item, and no set
 * beside the list is called the average. Without memory: no list, and a failed arena. */
static bool is_list_of_parameters(const struct phema_checkpoint *checkpoint,
                                  const struct items *items, struct phema_arena *arena)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    size_t n = phema_checkpoint_n_tensors(checkpoint), n_items = 0, n_others = 0, at = 0;
    const struct phema_tensor **listed = phema_arena_array(arena, n, sizeof(struct phema_tensor *));
    const struct phema_tensor **others = phema_arena_array(arena, n, sizeof(struct phema_tensor *));
    for (size_t i = 0; i < n && listed && others; i++) {
        if (is_of(items, &tensors[i])) {
            listed[n_items] = &tensors[i];
            n_items += tensors[i].rank > 0;
        } else if (twin_is_parameter(&tensors[i])) {
            others[n_others++] = &tensors[i];
            if (says_average(
                    (struct phema_span){(const uint8_t *)tensors[i].name, tensors[i].name_size}))
                return false;
        }
    }
    if (n_items < (says_average(items->key) ? LEAST_CALLED : LEAST_ITEMS) || 2 * n_items < n_others)
        return false;
    qsort(listed, n_items, sizeof(struct phema_tensor *), compare_shapes);
    qsort(others, n_others, sizeof(struct phema_tensor *), compare_shapes);
    for (size_t i = 0; i < n_items; i++) {
        while (at < n_others && twin_shapes_compare(others[at], listed[i]) != 0)
            at++;
        if (at++ >= n_others)
            return false;
    }
    return true;
}

/* false: none. */
static bool find_list(struct items *out, bool *is_called, struct phema_arena *arena,
                      const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    struct items last = {{NULL, 0}, {NULL, 0}}; /* of the tensor before */
    bool is_judged = false;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        /* moments of gradients are averages of another kind */
        if (!find_items(out, &tensors[i]) ||
            memmem(out->key.data, out->key.size, "exp_avg", strlen("exp_avg")))
            continue;
        bool is_same = last.stem.data && phema_spans_compare(last.stem, out->stem) == 0;
        bool is_optimizer = is_optimizer_state(tensors[i].name, tensors[i].name_size);
        *is_called = says_average(out->key);
        if (is_same && !is_judged && *is_called && !is_optimizer)
            return true;
        if (is_same && !is_judged && *is_called == is_optimizer &&
            is_list_of_parameters(checkpoint, out, arena))
            return true;
        is_judged = is_same;
        last = *out;
    }
    return false;
}

PHEMA_FALLIBLE nameless_find(const char **key, struct phema_arena *arena,
                             const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct items items;
    bool is_called = false;
    *key = NULL;
    if (find_list(&items, &is_called, arena, checkpoint) && is_called &&
        !is_optimizer_state((const char *)items.stem.data, items.stem.size) &&
        is_list_of_parameters(checkpoint, &items, arena))
        *key = phema_arena_copy(arena, (const char *)items.key.data, items.key.size);
    return arena->is_failed ? phema_fail_memory(err) : PHEMA_OK;
}

PHEMA_FALLIBLE nameless_check(const struct candidate_list *candidates,
                              const struct phema_series_options *options,
                              const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct items items;
    bool is_called = false;
    if (candidates->asks_for_raw || options->needs_no_profiles)
        return PHEMA_OK;
    if (!find_list(&items, &is_called, candidates->arena, checkpoint))
        return candidates->arena->is_failed ? phema_fail_memory(err) : PHEMA_OK;
    struct phema_name_buffer key;
    (void)phema_name_escape(&key, (const char *)items.key.data, items.key.size);
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: '%s' holds %s without names, which are not put together with those of the "
        "parameters; %s%s averages them under their numbers, %sraw the raw parameters",
        phema_checkpoint_path(checkpoint), key.text,
        is_called ? "averages" : "tensors, as many and as large as the parameters,",
        phema_setting_equals(PHEMA_SET_KEY), key.text,
        phema_setting_equals(PHEMA_SET_INPUT_PROFILE));
}
