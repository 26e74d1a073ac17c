// SPDX-License-Identifier: Apache-2.0
/* containers.c - which tensors of a checkpoint form which snapshot, trainer by trainer. */
#include "containers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/number.h"
#include "snapshot_metadata.h"
#include "subtree.h"

/* A checkpoint keeps a handful of averages. */
#define MAX_SETS 64

/* ---- Names of tensors ---- */

/* Removes a prefix; false: the name begins otherwise. */
static bool strip(const char **name, size_t *size, const char *prefix)
{
    size_t prefix_size = strlen(prefix);
    if (*size < prefix_size || memcmp(*name, prefix, prefix_size) != 0)
        return false;
    *name += prefix_size;
    *size -= prefix_size;
    return true;
}

/* Keys that name a set are plain words: they appear in labels and messages. */
static bool is_word(const char *text, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    size_t n = 0;
    while (n < size && text[n] && strchr(allowed, text[n]))
        n++;
    return n == size && size > 0 && size < 64;
}

static bool set_member(struct member *out, const char *set, const char *name, size_t size)
{
    *out = (struct member){set, strlen(set), name, size, strcmp(set, "raw") == 0};
    return size > 0;
}

/* torchtitan: NAME, and ema.state.NAME.ema_params or ema.state.NAME.ema_params.KEY, where KEY has
 * the half-life or the decay. The other roots hold the state of the training. */
static bool split_titan(struct member *out, const char *name, size_t size)
{
    static const char *const others[] = {"ema.", "lr_scheduler.", "dataloader.", "train_state."};
    static const char suffix[] = ".ema_params";
    const size_t suffix_size = sizeof(suffix) - 1;
    const char *inner = name;
    size_t inner_size = size;
    if (!strip(&inner, &inner_size, "ema.state.")) {
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
            if (strip(&inner, &inner_size, others[i]))
                return false;
        return !root_is_optimizer(name, size) && set_member(out, "raw", name, size);
    }
    size_t at = inner_size < suffix_size ? 0 : inner_size - suffix_size + 1;
    while (at > 0 && memcmp(inner + at - 1, suffix, suffix_size) != 0)
        at--;
    if (at-- == 0)
        return false;
    const char *key = inner + at + suffix_size;
    size_t key_size = inner_size - at - suffix_size;
    if (key_size == 0)
        return set_member(out, "ema", inner, at);
    if (!strip(&key, &key_size, ".") || !is_word(key, key_size))
        return false;
    *out = (struct member){key, key_size, inner, at, false};
    return at > 0;
}

/* Cosmos: net.NAME and net_ema.NAME, below model in .pt files and beside the directory trainer/. */
static bool split_cosmos(struct member *out, const char *name, size_t size)
{
    (void)strip(&name, &size, "model.");
    if (strip(&name, &size, "net_ema."))
        return set_member(out, "ema", name, size);
    return strip(&name, &size, "net.") && set_member(out, "raw", name, size);
}

/* flux_action: the directories model/ with model.NAME, and ema_0p10/ with tensors.NAME */
static bool split_flux(struct member *out, const char *name, size_t size)
{
    const char *inner = name;
    size_t inner_size = size;
    if (strip(&inner, &inner_size, "model.model."))
        return set_member(out, "raw", inner, inner_size);
    const char *dot = memchr(name, '.', size);
    if (!strip(&inner, &inner_size, "ema_") || !dot)
        return false;
    size_t set_size = (size_t)(dot - name);
    inner = dot + 1;
    inner_size = size - set_size - 1;
    if (!strip(&inner, &inner_size, "tensors.") || !is_word(name, set_size))
        return false;
    *out = (struct member){name, set_size, inner, inner_size, false};
    return inner_size > 0;
}

/* Lightning's averaging callbacks: state_dict is the average. */
static bool split_lightning(struct member *out, const char *name, size_t size)
{
    if (strip(&name, &size, "state_dict."))
        return set_member(out, "ema", name, size);
    return strip(&name, &size, "current_model_state.") && set_member(out, "raw", name, size);
}

/* Megatron: raw parameters beside the state of the optimizer */
static bool split_megatron(struct member *out, const char *name, size_t size)
{
    const char *rest = name;
    size_t rest_size = size;
    return !root_is_optimizer(name, size) && !strip(&rest, &rest_size, "chained_") &&
           set_member(out, "raw", name, size);
}

/* ---- Trainers ---- */

static bool has_averages_only(const struct phema_checkpoint *checkpoint, bool has_averages,
                              bool has_raw)
{
    (void)checkpoint;
    (void)has_raw;
    return has_averages;
}

static bool has_both(const struct phema_checkpoint *checkpoint, bool has_averages, bool has_raw)
{
    (void)checkpoint;
    return has_averages && has_raw;
}

static bool has_averaging_state(const struct phema_checkpoint *checkpoint, bool has_averages,
                                bool has_raw)
{
    return has_averages && has_raw && subtree_exists(checkpoint, "averaging_state");
}

static bool is_torch_dist(const struct phema_checkpoint *checkpoint, bool has_averages,
                          bool has_raw)
{
    return !has_averages && has_raw && is_of_megatron(phema_checkpoint_path(checkpoint));
}

static const struct container_kind kind_flux = {
    .trainer = "flux_action", .split = split_flux, .is_its = has_averages_only};

static const struct container_kind kind_titan = {
    .trainer = "torchtitan",
    .assumed = "titan:fraction=0.05,start=0,every=1,bias=0,counting=count",
    .split = split_titan,
    .is_its = has_averages_only};

static const struct container_kind kind_cosmos = {.trainer = "Cosmos",
                                                  .assumed = "cosmos:sigma-rel=0.1,shift=0",
                                                  .assumed_width = 0.1,
                                                  .split = split_cosmos,
                                                  .is_its = has_both};

static const struct container_kind kind_lightning = {.trainer = "Lightning",
                                                     .assumed =
                                                         "lightning:decay=0.999,every=1,start=0",
                                                     .split = split_lightning,
                                                     .is_its = has_averaging_state};

static const struct container_kind kind_megatron = {
    .trainer = "Megatron", .split = split_megatron, .is_its = is_torch_dist};

static const struct container_kind *const kinds[] = {&kind_flux, &kind_titan, &kind_cosmos,
                                                     &kind_lightning, &kind_megatron};

static void find_roles(bool *has_averages, bool *has_raw, const struct container_kind *kind,
                       const struct phema_checkpoint *checkpoint)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    struct member member;
    *has_averages = *has_raw = false;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++)
        if (tensors[i].kind != PHEMA_KIND_ATTRIBUTE &&
            kind->split(&member, tensors[i].name, tensors[i].name_size))
            *(member.is_raw ? has_raw : has_averages) = true;
}

const struct container_kind *container_recognise(const struct phema_checkpoint *checkpoint)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        bool has_averages = false, has_raw = false;
        find_roles(&has_averages, &has_raw, kinds[i], checkpoint);
        if (kinds[i]->is_its(checkpoint, has_averages, has_raw))
            return kinds[i];
    }
    return NULL;
}

/* ---- Sets ---- */

static enum phema_status add_set(struct container *container, size_t *n_tensors,
                                 struct phema_arena *arena, const struct member *member,
                                 struct phema_error *err)
{
    for (size_t s = 0; s < container->n; s++)
        if (phema_bytes_are(member->set, member->set_size, container->sets[s].name)) {
            n_tensors[s]++;
            return PHEMA_OK;
        }
    if (container->n == MAX_SETS)
        return phema_fail(err, PHEMA_ERR_INPUTS, "holds more than %d averages", MAX_SETS);
    const char *name = phema_arena_copy(arena, member->set, member->set_size);
    if (!name)
        return phema_fail_memory(err);
    n_tensors[container->n] = 1;
    container->sets[container->n++] = (struct tensor_set){
        .name = name, .is_raw = member->is_raw, .sigma_rel = PHEMA_UNKNOWN, .time = PHEMA_UNKNOWN};
    container->has_raw = container->has_raw || member->is_raw;
    return PHEMA_OK;
}

static enum phema_status find_sets(struct container *container, size_t *n_tensors,
                                   struct phema_arena *arena,
                                   const struct phema_checkpoint *checkpoint,
                                   struct phema_error *err)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        struct member member;
        if (tensors[i].kind == PHEMA_KIND_ATTRIBUTE ||
            !container->kind->split(&member, tensors[i].name, tensors[i].name_size))
            continue;
        enum phema_status status = add_set(container, n_tensors, arena, &member, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Profiles in keys ---- */

/* torchtitan's KEY: half_life_ or decay_, and a number with p for the point and m for minus. */
static enum phema_status read_titan_key(struct tensor_set *set, struct phema_arena *arena,
                                        struct phema_error *err)
{
    const char *number = set->name;
    size_t size = strlen(number);
    const char *key = strip(&number, &size, "half_life_") ? "fraction"
                      : strip(&number, &size, "decay_")   ? "decay"
                                                          : NULL;
    struct phema_name_buffer shown;
    char *text = key ? phema_arena_copy(arena, number, size) : NULL;
    for (size_t i = 0; text && i < size; i++)
        text[i] = text[i] == 'p' ? '.' : text[i] == 'm' ? '-' : text[i];
    double value = 0;
    struct phema_error ignored = {""};
    if (!text || phema_number_parse(&value, text, &ignored))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "average '%s': expected a key like half_life_0p05 or decay_0p999",
                          set->name);
    set->spec = phema_arena_printf(arena, "titan:%s=%s", key, phema_number_format(&shown, value));
    return set->spec ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status read_keys(struct container *container, struct phema_arena *arena,
                                   struct phema_error *err)
{
    for (size_t s = 0; s < container->n && container->kind == &kind_titan; s++) {
        struct tensor_set *set = &container->sets[s];
        if (set->is_raw || strcmp(set->name, "ema") == 0)
            continue;
        enum phema_status status = read_titan_key(set, arena, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- The list ---- */

static int compare_sets(const void *a, const void *b)
{
    const struct tensor_set *left = a, *right = b;
    if (left->time != right->time) /* none is NaN */
        return left->time < right->time ? -1 : 1;
    if (left->is_raw != right->is_raw)
        return left->is_raw ? -1 : 1;
    if (left->sigma_rel < right->sigma_rel || left->sigma_rel > right->sigma_rel)
        return left->sigma_rel < right->sigma_rel ? -1 : 1;
    return strcmp(left->name, right->name);
}

static bool are_alike(const struct tensor_set *a, const struct tensor_set *b)
{
    if (a->is_raw || b->is_raw || a->time < b->time || a->time > b->time)
        return false;
    if (a->spec && b->spec)
        return strcmp(a->spec, b->spec) == 0;
    return !a->spec && !b->spec && a->sigma_rel >= b->sigma_rel && a->sigma_rel <= b->sigma_rel;
}

static enum phema_status check_sets(const struct container *container, struct phema_error *err)
{
    bool has_single = false, has_keys = false;
    for (size_t s = 0; s < container->n; s++) {
        const struct tensor_set *set = &container->sets[s];
        has_single = has_single || (!set->is_raw && strcmp(set->name, "ema") == 0);
        has_keys = has_keys || set->spec;
        for (size_t other = 0; other < s; other++)
            if (are_alike(&container->sets[other], set))
                return phema_fail(
                    err, PHEMA_ERR_INPUTS,
                    "the averages '%s' and '%s' have the same profile; expected one of each",
                    container->sets[other].name, set->name);
    }
    if (has_single && has_keys)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds averages whose names have a width, and others without; expected "
                          "one of these kinds");
    return PHEMA_OK;
}

static enum phema_status check_roles(const struct container *container, struct phema_error *err)
{
    if (container->n == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds no parameters under the names that %s gives them, which other "
                          "snapshots of the series have",
                          container->kind->trainer);
    if (!container->has_raw && !container->kind->may_lack_raw)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds averages of %s, but no raw parameters, which frozen tensors come "
                          "from; name one set of tensors with --key",
                          container->kind->trainer);
    return PHEMA_OK;
}

PHEMA_FALLIBLE container_list(struct container *out, const struct container_kind *kind,
                              struct phema_arena *arena, const struct candidate *candidate,
                              const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    size_t n_tensors[MAX_SETS];
    *out = (struct container){.kind = kind};
    out->sets = phema_arena_array(arena, MAX_SETS, sizeof(*out->sets));
    if (!out->sets)
        return phema_fail_memory(err);
    enum phema_status status = find_sets(out, n_tensors, arena, checkpoint, err);
    if (!status)
        status = check_roles(out, err);
    if (!status)
        status = read_keys(out, arena, err);
    if (!status && kind == &kind_flux)
        status = flux_state_read(out, n_tensors, candidate, err);
    for (size_t s = 0; s < out->n && !status; s++)
        if (isnan(out->sets[s].time))
            out->sets[s].time = isnan(candidate->named_time) ? 0 : candidate->named_time;
    if (!status)
        status = check_sets(out, err);
    if (status)
        return status;
    qsort(out->sets, out->n, sizeof(*out->sets), compare_sets);
    for (size_t s = 0; s < out->n && !out->reference; s++)
        out->reference = out->sets[s].is_raw ? NULL : &out->sets[s];
    return PHEMA_OK;
}
