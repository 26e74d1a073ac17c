// SPDX-License-Identifier: Apache-2.0
/* subtree.c - which part of a checkpoint is the averaged model. Trainers store more than a model:
 * raw parameters next to their averages, several averages, an optimizer. A note reports a guess. */
#include "subtree.h"
#include "phema/setting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot_metadata.h"

const char *subtree_inner_name(const char *name, size_t *size, const char *key)
{
    size_t key_size = strlen(key);
    if (*size <= key_size || memcmp(name, key, key_size) != 0 || name[key_size] != '.')
        return NULL;
    *size -= key_size + 1;
    return name + key_size + 1;
}

bool subtree_exists(const struct phema_checkpoint *checkpoint, const char *key)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = tensors[i].name_size;
        if (subtree_inner_name(tensors[i].name, &size, key))
            return true;
    }
    return false;
}

bool root_is_optimizer(const char *name, size_t size)
{
    static const char *const roots[] = {"optim", "opt", "opt_state"};
    static const char stem[] = "optimizer"; /* _states, _state_dict, s, ... */
    const char *dot = size ? memchr(name, '.', size) : NULL;
    size_t root_size = dot ? (size_t)(dot - name) : size;
    if (root_size >= strlen(stem) && memcmp(name, stem, strlen(stem)) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(roots); i++)
        if (phema_bytes_are(name, root_size, roots[i]))
            return true;
    return false;
}

/* ---- Several averages in one file: P.stds and P.emas ---- */

/* The number at text; returns the count of its digits, at most 9. */
static size_t read_index(size_t *index, const char *text, size_t size)
{
    size_t at = 0;
    for (*index = 0; at < size && at < 9 && text[at] >= '0' && text[at] <= '9'; at++)
        *index = 10 * *index + (size_t)(text[at] - '0');
    return at;
}

/* "P.emas.1.w" is average 1 of P, whose name is the first *key_size bytes; "emas.1.w" of "". */
static bool names_average(size_t *key_size, size_t *index, const char *name, size_t size)
{
    static const char list[] = "emas.";
    static const size_t list_size = sizeof(list) - 1;
    for (size_t at = 0; at + list_size < size; at++) {
        const char *found = memmem(name + at, size - at, list, list_size);
        if (!found)
            return false;
        at = (size_t)(found - name);
        size_t after = at + list_size;
        size_t digits = read_index(index, name + after, size - after);
        if (digits && after + digits < size && name[after + digits] == '.' &&
            (at == 0 || name[at - 1] == '.')) {
            *key_size = at ? at - 1 : 0;
            return true;
        }
    }
    return false;
}

/* KEY.stds is a list or a tensor of numbers. */
static double width_at(const struct phema_checkpoint *checkpoint, const char *key, size_t key_size,
                       size_t index)
{
    struct phema_strbuf name = {0};
    phema_strbuf_append(&name, key, key_size);
    phema_strbuf_puts(&name, key_size ? ".stds" : "stds");
    size_t list_size = name.size;
    phema_strbuf_printf(&name, ".%zu", index);
    double width = PHEMA_UNKNOWN;
    if (!name.is_failed) {
        struct phema_span item = {(const uint8_t *)name.data, name.size};
        width = snapshot_metadata_value(checkpoint, item);
        if (isnan(width))
            width = snapshot_metadata_element(
                checkpoint, phema_checkpoint_find(checkpoint, name.data, list_size), index);
    }
    phema_strbuf_clear(&name);
    return width;
}

/* The first key that holds averages and a width of the first average; {NULL, 0}: none. */
static struct phema_span find_bundle(const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    struct phema_span seen = {NULL, 0};
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = 0, index = 0;
        const char *name = tensors[i].name;
        if (!names_average(&size, &index, name, tensors[i].name_size))
            continue;
        if (seen.data && phema_bytes_compare(seen.data, seen.size, name, size) == 0)
            continue; /* the same key again */
        seen = (struct phema_span){(const uint8_t *)name, size};
        if (!isnan(width_at(checkpoint, name, size, 0)))
            return seen;
    }
    return (struct phema_span){NULL, 0};
}

static bool is_bundle(const struct phema_checkpoint *checkpoint, const char *key)
{
    struct phema_strbuf list = {0};
    phema_strbuf_printf(&list, "%s%semas", key, *key ? "." : "");
    bool is_found = !list.is_failed && subtree_exists(checkpoint, list.data) &&
                    !isnan(width_at(checkpoint, key, strlen(key), 0));
    phema_strbuf_clear(&list);
    return is_found;
}

static enum phema_status mark_averages(bool *is_seen, size_t n, const char *key,
                                       const struct phema_checkpoint *checkpoint,
                                       struct phema_error *err)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = 0, index = 0;
        if (!names_average(&size, &index, tensors[i].name, tensors[i].name_size) ||
            !phema_bytes_are(tensors[i].name, size, key))
            continue;
        if (index >= n)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "holds average %zu of '%s', but %zu width%s in 'stds' there, from 0",
                              index, key, n, n == 1 ? "" : "s");
        is_seen[index] = true;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE subtree_widths(const double **widths, size_t *n, struct phema_arena *arena,
                              const char *key, const struct phema_checkpoint *checkpoint,
                              struct phema_error *err)
{
    /* each width is a stored value, or its average has a tensor */
    size_t most = phema_checkpoint_n_values(checkpoint) + phema_checkpoint_n_tensors(checkpoint);
    double *found = phema_arena_array(arena, most + 1, sizeof(*found));
    bool *is_seen = phema_arena_array(arena, most + 1, sizeof(*is_seen));
    if (!found || !is_seen)
        return phema_fail_memory(err);
    for (*n = 0; *n < most; ++*n) {
        found[*n] = width_at(checkpoint, key, strlen(key), *n);
        if (isnan(found[*n]))
            break;
    }
    if (*n == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "has no widths in 'stds' of '%s', which other files of the series have",
                          key);
    enum phema_status status = mark_averages(is_seen, *n, key, checkpoint, err);
    if (status)
        return status;
    for (size_t i = 0; i < *n; i++)
        if (!is_seen[i])
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "has %zu widths in 'stds' of '%s', but no average %zu in 'emas'", *n,
                              key, i);
    *widths = found;
    return PHEMA_OK;
}

/* The parts of a key like P.emas.1: the size of P, and 1. */
static bool split_key(size_t *size, size_t *index, const char *key)
{
    struct phema_strbuf name = {0}; /* of an imagined tensor below the key */
    phema_strbuf_printf(&name, "%s.w", key);
    bool is_average = !name.is_failed && names_average(size, index, name.data, name.size) &&
                      strlen(key) == *size + (*size ? 1 : 0) + strlen("emas.") +
                                         (size_t)snprintf(NULL, 0, "%zu", *index);
    phema_strbuf_clear(&name);
    return is_average;
}

bool subtree_is_average(const char *key)
{
    size_t size = 0, index = 0;
    return split_key(&size, &index, key);
}

double subtree_width_of(const char *key, const struct phema_checkpoint *checkpoint)
{
    size_t size = 0, index = 0;
    return split_key(&size, &index, key) ? width_at(checkpoint, key, size, index) : PHEMA_UNKNOWN;
}

const char *subtree_key_of(struct phema_arena *arena, const char *key, size_t index)
{
    return phema_arena_printf(arena, "%s%semas.%zu", key, *key ? "." : "", index);
}

/* ---- LitEma's names ----
 * LitEma (ldm/modules/ema.py of LDM and Stable Diffusion) keeps the average of parameter
 * 'diffusion_model.out.0.weight' of 'model' as 'model_ema.diffusion_modelout0weight', next to two
 * counters. */

static const char *const litema_counters[] = {"decay", "num_updates"};

/* The key of LitEma's averages, or NULL. Models are saved at the root or below state_dict. */
static const char *find_litema(const struct phema_checkpoint *checkpoint)
{
    static const struct {
        const char *key, *counter;
    } known[] = {{"state_dict.model_ema", "state_dict.model_ema.num_updates"},
                 {"model_ema", "model_ema.num_updates"}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (phema_checkpoint_find(checkpoint, known[i].counter, strlen(known[i].counter)))
            return known[i].key;
    return NULL;
}

static int compare_renames(const void *a, const void *b)
{
    const struct rename *left = a, *right = b;
    return phema_bytes_compare(left->from.data, left->from.size, right->from.data,
                               right->from.size);
}

const struct rename *rename_find(const struct rename *renames, size_t n, const char *name,
                                 size_t size)
{
    const struct rename wanted = {.from = {(const uint8_t *)name, size}};
    return n ? bsearch(&wanted, renames, n, sizeof(*renames), compare_renames) : NULL;
}

static bool is_litema_counter(struct phema_span name)
{
    for (size_t c = 0; c < ARRAY_LEN(litema_counters); c++)
        if (phema_bytes_are(name.data, name.size, litema_counters[c]))
            return true;
    return false;
}

/* LitEma's name of each parameter below 'model', which stands next to KEY. The counters are never
 * parameters, and take no part. */
static enum phema_status list_model(struct rename **out, size_t *n, struct phema_arena *arena,
                                    const char *key, const struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    size_t n_tensors = phema_checkpoint_n_tensors(checkpoint);
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    size_t model_size = strlen(key) - strlen("_ema"), base_size = model_size - strlen("model");
    const char *model = phema_arena_copy(arena, key, model_size);
    struct rename *renames =
        phema_arena_array(arena, n_tensors + ARRAY_LEN(litema_counters), sizeof(*renames));
    if (!model || !renames)
        return phema_fail_memory(err);
    *n = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        size_t size = tensors[i].name_size;
        const char *inner = subtree_inner_name(tensors[i].name, &size, model);
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
            renames[(*n)++] = (struct rename){from, {(const uint8_t *)dotted, dotted_size}};
    }
    for (size_t c = 0; c < ARRAY_LEN(litema_counters); c++)
        renames[(*n)++] = (struct rename){
            .from = {(const uint8_t *)litema_counters[c], strlen(litema_counters[c])}};
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
        while (end < n && compare_renames(&renames[i], &renames[end]) == 0)
            end++;
        if (end == i + 1)
            renames[kept++] = renames[i];
        i = end;
    }
    return kept;
}

static void note_unmatched(struct candidate_list *candidates, const struct subtree *subtree,
                           const struct phema_checkpoint *checkpoint)
{
    size_t n = 0;
    const char *first = NULL;
    size_t first_size = 0;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        size_t size = tensors[i].name_size;
        const char *name = subtree_inner_name(tensors[i].name, &size, subtree->key);
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

/* Sets the names that LitEma's tensors have in the model. Ambiguous tensors keep their own names,
 * with a note. */
static enum phema_status match_litema(struct subtree *subtree, struct candidate_list *candidates,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    struct rename *renames = NULL;
    size_t n = 0;
    enum phema_status status =
        list_model(&renames, &n, candidates->arena, subtree->key, checkpoint, err);
    if (status)
        return status;
    subtree->names = renames;
    subtree->n_names = drop_ambiguous(renames, n);
    note_unmatched(candidates, subtree, checkpoint);
    return PHEMA_OK;
}

/* ---- The choice ---- */

static bool has_optimizer(const struct phema_checkpoint *checkpoint, bool needs_tensors)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++)
        if (root_is_optimizer(tensors[i].name, tensors[i].name_size))
            return true;
    const struct phema_value *values = phema_checkpoint_values(checkpoint);
    for (size_t i = 0; !needs_tensors && i < phema_checkpoint_n_values(checkpoint); i++)
        if (root_is_optimizer(values[i].name, values[i].name_size))
            return true;
    return false;
}

/* "" where no key is known to hold the model. */
static const char *guess_key(const struct candidate_list *candidates,
                             const struct phema_checkpoint *checkpoint)
{
    static const char *const models[] = {"model", "model_state_dict", "module", "net"};
    const char *const own[] = {candidates->layout->subtree,
                               phema_checkpoint_format_info(checkpoint)->model};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (own[i] && subtree_exists(checkpoint, own[i]))
            return own[i];
    struct phema_span bundle = find_bundle(checkpoint);
    if (bundle.data)
        return phema_arena_copy(candidates->arena, bundle.data, bundle.size);
    if (subtree_exists(checkpoint, "ema_state_dict"))
        return "ema_state_dict";
    const char *lit_ema = find_litema(checkpoint);
    if (lit_ema)
        return lit_ema;
    if (subtree_exists(checkpoint, "state_dict"))
        return "state_dict";
    bool is_training = has_optimizer(checkpoint, false);
    for (size_t i = 0; is_training && i < ARRAY_LEN(models); i++)
        if (subtree_exists(checkpoint, models[i]))
            return models[i];
    return "";
}

static void note_guess(struct candidate_list *candidates, const struct subtree *subtree,
                       const struct phema_checkpoint *checkpoint)
{
    struct phema_name_buffer buffer;
    const char *key = phema_name_escape(&buffer, subtree->key, strlen(subtree->key));
    const char *dot = *key ? "." : "";
    if (subtree->is_bundle)
        candidates_note(
            candidates,
            "each file holds several averages: those in '%s%semas' are averaged, of the widths in "
            "'%s%sstds' (a new file has their names without the key; %s. for all)",
            key, dot, key, dot, phema_setting_equals(PHEMA_SET_KEY));
    else if (subtree->n_names)
        candidates_note(candidates,
                        "averaging the subtree '%s' under the names that its tensors have in the "
                        "model (%s. for all)",
                        key, phema_setting_equals(PHEMA_SET_KEY));
    else if (*key)
        candidates_note(
            candidates,
            "averaging the subtree '%s' (a new file has its names without it; %s. for all)", key,
            phema_setting_equals(PHEMA_SET_KEY));
    else if (has_optimizer(checkpoint, true))
        candidates_note(candidates,
                        "left out: the state of an optimizer (%s. copies it from the newest)",
                        phema_setting_equals(PHEMA_SET_KEY));
}

PHEMA_FALLIBLE subtree_choose(struct subtree *out, struct candidate_list *candidates,
                              const char *asked, const struct phema_checkpoint *checkpoint,
                              struct phema_error *err)
{
    bool is_all = asked && strcmp(asked, ".") == 0;
    *out = (struct subtree){.key = is_all ? "" : asked ? asked : guess_key(candidates, checkpoint)};
    if (!out->key)
        return phema_fail_memory(err);
    struct phema_name_buffer shown;
    if (*out->key && !subtree_exists(checkpoint, out->key))
        return phema_suggest(err,
                             phema_fail(err, PHEMA_ERR_INPUTS, "has no subtree '%s'",
                                        phema_name_escape(&shown, out->key, strlen(out->key))),
                             PHEMA_SET_KEY, "");
    out->leaves_out_optimizer = !asked && !*out->key;
    out->is_bundle = !is_all && is_bundle(checkpoint, out->key);
    const char *lit_ema = is_all ? NULL : find_litema(checkpoint);
    if (lit_ema && strcmp(lit_ema, out->key) == 0) {
        enum phema_status status = match_litema(out, candidates, checkpoint, err);
        if (status)
            return status;
    }
    if (!asked)
        note_guess(candidates, out, checkpoint);
    return PHEMA_OK;
}
