// SPDX-License-Identifier: Apache-2.0
/* tensor_sets.c - the table of the sets of a checkpoint, by the names of its trainer or a subtree. */
#include "sets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"
#include "twins.h"

/* A checkpoint keeps a handful of averages. */
#define MAX_SETS 64

/* ---- Sets of a trainer ---- */

bool trainer_split(struct split_name *out, const struct trainer *trainer, const char *name,
                   size_t size)
{
    return trainer->twins ? twins_split(out, trainer->twins, name, size)
                          : trainer->split(out, name, size);
}

static struct phema_tensor_set *find_set(const struct phema_tensor_sets *sets, const char *name,
                                         size_t size)
{
    for (size_t s = 0; s < sets->n; s++)
        if (phema_bytes_are(name, size, sets->items[s]->name))
            return sets->items[s];
    return NULL;
}

/* All tensors of a set have the prefix and suffix of its first one. */
static enum phema_status add_set(struct phema_tensor_sets *sets, const struct phema_tensor *tensor,
                                 const struct split_name *split, struct phema_error *err)
{
    struct phema_arena *arena = sets->arena;
    size_t prefix_size = (size_t)(split->name - tensor->name);
    size_t inner_size = prefix_size + split->name_size;
    struct phema_tensor_set **items =
        phema_arena_grow(arena, sets->items, sets->n, sizeof(struct phema_tensor_set *));
    struct phema_tensor_set *set = phema_arena_alloc(arena, sizeof(*set));
    if (!items || !set)
        return phema_fail_memory(err);
    *set = (struct phema_tensor_set){.name = phema_arena_copy(arena, split->set, split->set_size),
                                     .is_raw = split->is_raw,
                                     .prefix = phema_arena_copy(arena, tensor->name, prefix_size),
                                     .suffix = phema_arena_copy(arena, tensor->name + inner_size,
                                                                tensor->name_size - inner_size),
                                     .n_tensors = 1,
                                     .trainer = sets->trainer,
                                     .sigma_rel = PHEMA_UNKNOWN,
                                     .time = PHEMA_UNKNOWN};
    sets->items = items;
    sets->items[sets->n++] = set;
    sets->has_raw = sets->has_raw || split->is_raw;
    return set->name && set->prefix && set->suffix ? PHEMA_OK : phema_fail_memory(err);
}

/* Lists the sets under the names of the trainer; of too many, one more than MAX_SETS. */
static enum phema_status list_sets(struct phema_tensor_sets *sets, struct phema_error *err)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(sets->checkpoint);
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(sets->checkpoint) && !status; i++) {
        struct split_name split;
        if (tensors[i].kind == PHEMA_KIND_ATTRIBUTE ||
            !trainer_split(&split, sets->trainer, tensors[i].name, tensors[i].name_size))
            continue;
        struct phema_tensor_set *set = find_set(sets, split.set, split.set_size);
        if (set)
            set->n_tensors++;
        else if (sets->n <= MAX_SETS)
            status = add_set(sets, &tensors[i], &split, err);
    }
    return status;
}

/* The sets of the trainer that wrote the checkpoint, from the names of its tensors. */
static enum phema_status recognise(struct phema_tensor_sets *out, struct phema_arena *arena,
                                   const struct phema_checkpoint *checkpoint,
                                   struct phema_error *err)
{
    for (size_t i = 0; trainers[i]; i++) {
        *out = (struct phema_tensor_sets){
            .trainer = trainers[i], .checkpoint = checkpoint, .arena = arena};
        enum phema_status status = list_sets(out, err);
        if (status || trainers[i]->is_its(out))
            return status;
    }
    *out = (struct phema_tensor_sets){.checkpoint = checkpoint, .arena = arena};
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_tensor_sets_list(struct phema_tensor_sets *out, struct phema_arena *arena,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    enum phema_status status = recognise(out, arena, checkpoint, err);
    if (!status && out->n > MAX_SETS)
        status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: holds more than %d averages",
                            phema_checkpoint_path(checkpoint), MAX_SETS);
    return status;
}

PHEMA_FALLIBLE phema_tensor_set_change(struct phema_set_change *out,
                                       const struct phema_tensor_set *set, const char *directory,
                                       double sigma_rel, double time, struct phema_arena *arena,
                                       struct phema_error *err)
{
    *out = (struct phema_set_change){0};
    if (set->is_raw || !set->trainer || !set->trainer->change)
        return PHEMA_OK;
    return set->trainer->change(out, set, directory, sigma_rel, time, arena, err);
}

/* ---- The scheme of a series ---- */

/* Twins of the newest checkpoint: an average may begin after the first one. */
static enum phema_status find_newest_twins(const struct twins **out,
                                           struct candidate_list *candidates,
                                           const struct phema_series_options *options,
                                           struct phema_error *err)
{
    const struct candidate *newest = &candidates->items[candidates->n - 1];
    struct phema_checkpoint *checkpoint = NULL;
    if (candidates->n < 2 || !newest->path)
        return PHEMA_OK;
    enum phema_status status =
        candidate_open(&checkpoint, candidates, newest, &options->checkpoint, err);
    if (!status)
        status = twins_find(out, candidates, options, checkpoint, err);
    phema_checkpoint_close(checkpoint);
    return status;
}

PHEMA_FALLIBLE set_scheme_choose(struct set_scheme *out, struct candidate_list *candidates,
                                 const struct phema_series_options *options,
                                 const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct phema_tensor_sets sets;
    const char *key = options->key;
    enum phema_status status = recognise(&sets, candidates->arena, checkpoint, err);
    if (status)
        return status;
    *out = (struct set_scheme){.subtree = {.key = "", .keeps_module = candidates->n == 1}};
    if ((!key || options->may_lack_key) && !options->is_conversion) {
        out->trainer = sets.trainer;
    } else if (key && find_set(&sets, key, strlen(key))) { /* as listings name it */
        out->trainer = sets.trainer;
        out->wanted = key;
    }
    bool may_have_twins = !out->trainer && !key && !options->is_conversion && !options->is_alone &&
                          !candidates->layout->subtree;
    const struct twins *twins = NULL;
    if (may_have_twins)
        status = twins_find(&twins, candidates, options, checkpoint, err);
    if (may_have_twins && !status && !twins)
        status = find_newest_twins(&twins, candidates, options, err);
    if (!status && !out->trainer && !key && !twins && !options->is_conversion && !options->is_alone)
        status = nameless_check(candidates, options, checkpoint, err);
    if (status)
        return status;
    if (twins)
        out->trainer = &twins->trainer;
    bool asks_for_raw = candidates->asks_for_raw || (twins && options->use == PHEMA_USE_RAW);
    if (asks_for_raw && !out->wanted && (twins || (out->trainer && sets.has_raw)))
        out->wanted = "raw";
    for (size_t s = 0; s < sets.n && out->trainer && !twins; s++)
        if (!candidates_add_set(candidates, sets.items[s]->name,
                                sets.items[s]->is_raw ? "raw" : "average", "trainer",
                                PHEMA_UNKNOWN))
            return phema_fail_memory(err);
    if (out->trainer && out->trainer->layout && candidates->layout->is_plain)
        candidates->layout = out->trainer->layout;
    if (out->trainer)
        return PHEMA_OK;
    if (options->use == PHEMA_USE_RAW)
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "%s: %sraw: holds no raw parameters beside averages, or %s chooses among its tensors",
            phema_checkpoint_path(checkpoint), phema_setting_equals(PHEMA_SET_USE),
            phema_setting_name(PHEMA_SET_KEY));
    if (key && options->may_lack_key && !subtree_exists(checkpoint, key))
        key = strcmp(key, ".") == 0 ? key : NULL;
    status = subtree_choose(&out->subtree, candidates, key, checkpoint, err);
    return status ? phema_fail_in(err, status, "%s", phema_checkpoint_path(checkpoint)) : PHEMA_OK;
}

/* ---- The table of a checkpoint ---- */

static enum phema_status check_roles(const struct phema_tensor_sets *sets, struct phema_error *err)
{
    const struct trainer *trainer = sets->trainer;
    if (sets->n > MAX_SETS)
        return phema_fail(err, PHEMA_ERR_INPUTS, "holds more than %d averages", MAX_SETS);
    if (sets->n == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds no parameters under the names that %s gives them, which other "
                          "snapshots of the series have",
                          trainer->name);
    if (!sets->has_raw && !trainer->may_lack_raw)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds averages of %s, but no raw parameters, which frozen tensors come "
                          "from; name one set of tensors with %s",
                          trainer->name, phema_setting_name(PHEMA_SET_KEY));
    return PHEMA_OK;
}

static enum phema_status check_time(const struct phema_tensor_sets *sets, double named_time,
                                    struct phema_error *err)
{
    const char *counter = sets->trainer->counter;
    double inside = counter ? snapshot_metadata_value(sets->checkpoint, counter) : PHEMA_UNKNOWN;
    struct phema_name_buffer named, found;
    if (isnan(inside) || isnan(named_time) || inside == named_time)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_INPUTS, "its name says time %s, but '%s' inside is %s",
                      phema_number_format(&named, named_time), counter,
                      phema_number_format(&found, inside));
}

static bool are_alike(const struct phema_tensor_set *a, const struct phema_tensor_set *b)
{
    if (a->is_raw || b->is_raw || a->time < b->time || a->time > b->time)
        return false;
    if (a->spec && b->spec)
        return strcmp(a->spec, b->spec) == 0;
    return !a->spec && !b->spec && a->sigma_rel >= b->sigma_rel && a->sigma_rel <= b->sigma_rel;
}

static enum phema_status check_profiles(const struct phema_tensor_sets *sets,
                                        struct phema_error *err)
{
    bool has_single = false, has_keys = false;
    for (size_t s = 0; s < sets->n; s++) {
        const struct phema_tensor_set *set = sets->items[s];
        has_single = has_single || (!set->is_raw && strcmp(set->name, "ema") == 0);
        has_keys = has_keys || set->spec;
        for (size_t other = 0; other < s; other++)
            if (are_alike(sets->items[other], set))
                return phema_fail(
                    err, PHEMA_ERR_INPUTS,
                    "the averages '%s' and '%s' have the same profile; expected one of each",
                    sets->items[other]->name, set->name);
    }
    if (has_single && has_keys)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds averages whose names have a width, and others without; expected "
                          "one of these kinds");
    return PHEMA_OK;
}

static enum phema_status fill_members(struct phema_tensor_sets *sets, struct phema_error *err)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(sets->checkpoint);
    size_t n = phema_checkpoint_n_tensors(sets->checkpoint);
    sets->members = phema_arena_array(sets->arena, n + 1, sizeof(*sets->members));
    if (!sets->members)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        struct split_name split;
        if (!trainer_split(&split, sets->trainer, tensors[i].name, tensors[i].name_size))
            continue;
        const struct phema_tensor_set *set = find_set(sets, split.set, split.set_size);
        if (!set || set->is_raw != split.is_raw)
            continue;
        size_t size = split.name_size;
        const char *name = name_without_wrappers(&size, split.name, sets->arena);
        if (!name)
            return phema_fail_memory(err);
        sets->members[i] = (struct phema_set_member){set, name, size};
    }
    return PHEMA_OK;
}

static int compare_members(const void *a, const void *b)
{
    const struct phema_set_member *left = a, *right = b;
    return phema_bytes_compare(left->name, left->name_size, right->name, right->name_size);
}

/* Whether all averages have a raw parameter of their name. */
static enum phema_status has_all_raw(bool *out, const struct phema_tensor_sets *sets,
                                     struct phema_error *err)
{
    size_t n = phema_checkpoint_n_tensors(sets->checkpoint), n_raw = 0;
    struct phema_set_member *raw = phema_arena_array(sets->arena, n + 1, sizeof(*raw));
    if (!raw)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (sets->members[i].set && sets->members[i].set->is_raw)
            raw[n_raw++] = sets->members[i];
    qsort(raw, n_raw, sizeof(*raw), compare_members);
    *out = true;
    for (size_t i = 0; i < n && *out; i++)
        *out = !sets->members[i].set || sets->members[i].set->is_raw ||
               bsearch(&sets->members[i], raw, n_raw, sizeof(*raw), compare_members);
    return PHEMA_OK;
}

/* Averages are used alone where one of them has no raw parameter of its name. */
static enum phema_status drop_other_raw(struct phema_tensor_sets *sets, struct phema_error *err)
{
    bool fits = true;
    if (!sets->has_raw || !sets->trainer->may_lack_raw)
        return PHEMA_OK;
    enum phema_status status = has_all_raw(&fits, sets, err);
    if (status || fits)
        return status;
    size_t n = 0;
    for (size_t s = 0; s < sets->n; s++)
        if (!sets->items[s]->is_raw)
            sets->items[n++] = sets->items[s];
    sets->n = n;
    sets->has_raw = false;
    return PHEMA_OK;
}

static int compare_sets(const void *a, const void *b)
{
    const struct phema_tensor_set *left = *(struct phema_tensor_set *const *)a;
    const struct phema_tensor_set *right = *(struct phema_tensor_set *const *)b;
    if (left->time != right->time) /* none is NaN */
        return left->time < right->time ? -1 : 1;
    if (left->is_raw != right->is_raw)
        return left->is_raw ? -1 : 1;
    if (left->sigma_rel < right->sigma_rel || left->sigma_rel > right->sigma_rel)
        return left->sigma_rel < right->sigma_rel ? -1 : 1;
    return strcmp(left->name, right->name);
}

PHEMA_FALLIBLE tensor_sets_make(struct phema_tensor_sets *out, const struct set_scheme *scheme,
                                struct phema_arena *arena, const struct candidate *candidate,
                                const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    const struct trainer *trainer = scheme->trainer;
    *out = (struct phema_tensor_sets){.trainer = trainer, .checkpoint = checkpoint, .arena = arena};
    if (!trainer)
        return subtree_list(out, &scheme->subtree, err);
    enum phema_status status = list_sets(out, err);
    if (!status)
        status = check_roles(out, err);
    if (!status)
        status = check_time(out, candidate->named_time, err);
    if (!status && trainer->read_profiles)
        status = trainer->read_profiles(out, candidate, err);
    for (size_t s = 0; s < out->n && !status; s++)
        if (isnan(out->items[s]->time)) /* else the file has it */
            out->items[s]->time = isnan(candidate->named_time) ? 0 : candidate->named_time;
    if (!status)
        status = check_profiles(out, err);
    if (!status)
        status = fill_members(out, err);
    if (!status && trainer->twins && !scheme->subtree.keeps_module && !names_remove_module(out))
        status = phema_fail_memory(err);
    if (!status)
        status = drop_other_raw(out, err);
    if (status)
        return status;
    qsort(out->items, out->n, sizeof(struct phema_tensor_set *), compare_sets);
    /* raw parameters are all there, also those without an average */
    bool is_raw = trainer->twins && scheme->wanted && strcmp(scheme->wanted, "raw") == 0;
    for (size_t s = 0; s < out->n && !out->reference && !is_raw; s++)
        out->reference = out->items[s]->is_raw ? NULL : out->items[s];
    return PHEMA_OK;
}
