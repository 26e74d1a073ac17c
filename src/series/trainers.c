// SPDX-License-Identifier: Apache-2.0
/* trainers.c - how trainers name the tensors of checkpoints with several sets, and where the files
 * say how averages were made. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/number.h"
#include "sets.h"

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

static bool set_parts(struct split_name *out, const char *set, const char *name, size_t size)
{
    *out = (struct split_name){set, strlen(set), name, size, strcmp(set, "raw") == 0};
    return size > 0;
}

/* torchtitan: NAME, and ema.state.NAME.ema_params or ema.state.NAME.ema_params.KEY, where KEY has
 * the half-life or the decay. The other roots hold the state of the training. */
static bool split_titan(struct split_name *out, const char *name, size_t size)
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
        return !is_optimizer_state(name, size) && set_parts(out, "raw", name, size);
    }
    size_t at = inner_size < suffix_size ? 0 : inner_size - suffix_size + 1;
    while (at > 0 && memcmp(inner + at - 1, suffix, suffix_size) != 0)
        at--;
    if (at-- == 0)
        return false;
    const char *key = inner + at + suffix_size;
    size_t key_size = inner_size - at - suffix_size;
    if (key_size == 0)
        return set_parts(out, "ema", inner, at);
    if (!strip(&key, &key_size, ".") || !is_word(key, key_size))
        return false;
    *out = (struct split_name){key, key_size, inner, at, false};
    return at > 0;
}

/* Cosmos: net.NAME and net_ema.NAME, below model in .pt files and beside the directory trainer/. */
static bool split_cosmos(struct split_name *out, const char *name, size_t size)
{
    (void)strip(&name, &size, "model.");
    if (strip(&name, &size, "net_ema."))
        return set_parts(out, "ema", name, size);
    return strip(&name, &size, "net.") && set_parts(out, "raw", name, size);
}

/* flux_action: the directories model/ with model.NAME, and ema_0p10/ with tensors.NAME */
static bool split_flux(struct split_name *out, const char *name, size_t size)
{
    const char *inner = name;
    size_t inner_size = size;
    if (strip(&inner, &inner_size, "model.model."))
        return set_parts(out, "raw", inner, inner_size);
    const char *dot = memchr(name, '.', size);
    if (!strip(&inner, &inner_size, "ema_") || !dot)
        return false;
    size_t set_size = (size_t)(dot - name);
    inner = dot + 1;
    inner_size = size - set_size - 1;
    if (!strip(&inner, &inner_size, "tensors.") || !is_word(name, set_size))
        return false;
    *out = (struct split_name){name, set_size, inner, inner_size, false};
    return inner_size > 0;
}

/* Lightning's averaging callbacks: state_dict is the average. */
static bool split_lightning(struct split_name *out, const char *name, size_t size)
{
    if (strip(&name, &size, "state_dict."))
        return set_parts(out, "ema", name, size);
    return strip(&name, &size, "current_model_state.") && set_parts(out, "raw", name, size);
}

/* Megatron: raw parameters beside the state of the optimizer */
static bool split_megatron(struct split_name *out, const char *name, size_t size)
{
    const char *rest = name;
    size_t rest_size = size;
    return !is_optimizer_state(name, size) && !strip(&rest, &rest_size, "chained_") &&
           set_parts(out, "raw", name, size);
}

/* Finds "profiles.I." in a name, at its start or behind a dot: the set is "profiles.I". */
static bool find_profile(struct split_name *out, const char *name, size_t size)
{
    static const char list[] = "profiles.";
    const size_t list_size = sizeof(list) - 1;
    for (size_t at = 0; at + list_size < size; at++) {
        if ((at > 0 && name[at - 1] != '.') || memcmp(name + at, list, list_size) != 0)
            continue;
        size_t end = at + list_size;
        while (end < size && end - at < list_size + 6 && name[end] >= '0' && name[end] <= '9')
            end++;
        if (end == at + list_size || end + 1 >= size || name[end] != '.')
            continue;
        *out = (struct split_name){name + at, end - at, name + end + 1, size - end - 1, false};
        return true;
    }
    return false;
}

/* mirai: a list of averages at the root */
static bool split_mirai(struct split_name *out, const char *name, size_t size)
{
    return find_profile(out, name, size) && out->set == name;
}

/* A callback of Lightning: params and buffers of each average, beside state_dict. */
static bool split_callback(struct split_name *out, const char *name, size_t size)
{
    if (strip(&name, &size, "state_dict."))
        return set_parts(out, "raw", name, size);
    return find_profile(out, name, size) &&
           (strip(&out->name, &out->name_size, "params.") ||
            strip(&out->name, &out->name_size, "buffers.")) &&
           out->name_size > 0;
}

/* ---- Profiles in keys ---- */

/* torchtitan's KEY: half_life_ or decay_, and a number with p for the point and m for minus. */
static enum phema_status read_titan_key(struct phema_tensor_set *set, struct phema_arena *arena,
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
        if (text[i] == 'p' || text[i] == 'm')
            text[i] = text[i] == 'p' ? '.' : '-';
    double value = 0;
    struct phema_error ignored = {0};
    if (!text || phema_number_parse(&value, text, &ignored))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "average '%s': expected a key like half_life_0p05 or decay_0p999",
                          set->name);
    set->spec = phema_arena_printf(arena, "titan:%s=%s", key, phema_number_format(&shown, value));
    return set->spec ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status read_titan_keys(struct phema_tensor_sets *sets,
                                         const struct candidate *candidate, struct phema_error *err)
{
    (void)candidate;
    for (size_t s = 0; s < sets->n; s++) {
        struct phema_tensor_set *set = sets->items[s];
        if (set->is_raw || strcmp(set->name, "ema") == 0)
            continue;
        enum phema_status status = read_titan_key(set, sets->arena, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Widths as numbers ---- */

/* mirai: stds.I, beside profiles.I; a callback: P.profiles.I.std, where the prefix is
 * P.profiles.I.params. or P.profiles.I.buffers. */
static double width_of(const struct phema_tensor_sets *sets, const struct phema_tensor_set *set)
{
    if (sets->trainer->split == split_mirai) {
        size_t index = strtoul(set->name + strlen("profiles."), NULL, 10); /* of few digits */
        return snapshot_metadata_item(sets->checkpoint, "", 0, "stds", index);
    }
    size_t size = strlen(set->prefix);
    const char *dot = size ? memrchr(set->prefix, '.', size - 1) : NULL; /* NULL: a NUL in P */
    int width = dot ? (int)(dot - set->prefix) : 0;
    const char *name = phema_arena_printf(sets->arena, "%.*s.std", width, set->prefix);
    return name ? snapshot_metadata_value(sets->checkpoint, name) : PHEMA_UNKNOWN;
}

static enum phema_status read_widths(struct phema_tensor_sets *sets,
                                     const struct candidate *candidate, struct phema_error *err)
{
    (void)candidate;
    for (size_t s = 0; s < sets->n; s++) {
        struct phema_tensor_set *set = sets->items[s];
        set->sigma_rel = set->is_raw ? PHEMA_UNKNOWN : width_of(sets, set);
        if (!set->is_raw && isnan(set->sigma_rel))
            return phema_fail(err, PHEMA_ERR_INPUTS, "holds the average '%s', but not its width",
                              set->name);
    }
    return PHEMA_OK;
}

/* ---- Trainers ---- */

static bool has_averages(const struct phema_tensor_sets *sets)
{
    return sets->n > sets->has_raw;
}

static bool has_both(const struct phema_tensor_sets *sets)
{
    return sets->has_raw && has_averages(sets);
}

static bool has_averaging_state(const struct phema_tensor_sets *sets)
{
    return has_both(sets) && subtree_exists(sets->checkpoint, "averaging_state");
}

static bool is_torch_dist(const struct phema_tensor_sets *sets)
{
    return sets->has_raw &&
           megatron_has_backend(phema_checkpoint_path(sets->checkpoint), "torch_dist");
}

/* The first average has a width, under the names of the trainer. */
static bool has_width(const struct phema_tensor_sets *sets)
{
    for (size_t s = 0; s < sets->n; s++)
        if (!sets->items[s]->is_raw)
            return !isnan(width_of(sets, sets->items[s]));
    return false;
}

static const struct trainer flux = {.name = "flux_action",
                                    .split = split_flux,
                                    .is_its = has_averages,
                                    .change = flux_state_change,
                                    .read_profiles = flux_state_read};

static const char *const usual_of_titan[] = {
    "titan:fraction=0.01", "titan:fraction=0.02", "titan:fraction=0.03",
    "titan:fraction=0.1",  "titan:fraction=0.15", "titan:fraction=0.2",
    "titan:decay=0.99",    "titan:decay=0.995",   "titan:decay=0.999",
    "titan:decay=0.9995",  "titan:decay=0.9999",  "titan:decay=0.99999",
    "titan:every=2",       "titan:every=4",       "titan:every=5",
    "titan:every=10",      "titan:every=100",     NULL};

static const struct trainer titan = {
    .name = "torchtitan",
    .layout = &layout_torchtitan,
    .assumed = "titan:fraction=0.05,start=0,every=1,bias=0,counting=count",
    .to_fill = "titan:fraction=FRACTION",
    .usual = usual_of_titan,
    .assumed_rest = "start=0,every=1,bias=0,counting=count",
    .rest_to_fill = "titan:start=START,every=EVERY",
    .split = split_titan,
    .is_its = has_averages,
    .counter = "train_state.step",
    .read_profiles = read_titan_keys};

static const char *const usual_of_cosmos[] = {
    "cosmos:sigma-rel=0.02", "cosmos:sigma-rel=0.03", "cosmos:sigma-rel=0.05",
    "cosmos:sigma-rel=0.08", "cosmos:sigma-rel=0.12", "cosmos:sigma-rel=0.15",
    "cosmos:sigma-rel=0.2",  "cosmos:sigma-rel=0.25", NULL};

static const struct trainer cosmos = {.name = "Cosmos",
                                      .assumed = "cosmos:sigma-rel=0.1,shift=0",
                                      .to_fill = "cosmos:sigma-rel=WIDTH",
                                      .usual = usual_of_cosmos,
                                      .assumed_width = 0.1,
                                      .split = split_cosmos,
                                      .is_its = has_both};

/* The last one is that of WeightAveraging, whose averages have equal weights. */
static const char *const usual_of_lightning[] = {"lightning:decay=0.9",
                                                 "lightning:decay=0.95",
                                                 "lightning:decay=0.98",
                                                 "lightning:decay=0.99",
                                                 "lightning:decay=0.995",
                                                 "lightning:decay=0.998",
                                                 "lightning:decay=0.9995",
                                                 "lightning:decay=0.9998",
                                                 "lightning:decay=0.9999",
                                                 "lightning:decay=0.99995",
                                                 "lightning:decay=0.99999",
                                                 "power:gamma=0",
                                                 NULL};

static const struct trainer lightning = {.name = "Lightning",
                                         .to_fill = "lightning:decay=DECAY",
                                         .usual = usual_of_lightning,
                                         .assumed = "lightning:decay=0.999,every=1,start=0",
                                         .split = split_lightning,
                                         .is_its = has_averaging_state,
                                         .n_updates = "averaging_state.n_averaged",
                                         .equal_weights = "callbacks.WeightAveraging."};

static const struct trainer megatron = {
    .name = "Megatron", .split = split_megatron, .is_its = is_torch_dist};

static const struct trainer callback = {.name = "a power-function callback",
                                        .split = split_callback,
                                        .is_its = has_width,
                                        .may_lack_raw = true,
                                        .read_profiles = read_widths};

static const struct trainer mirai = {.name = "mirai",
                                     .split = split_mirai,
                                     .is_its = has_width,
                                     .may_lack_raw = true,
                                     .counter = "step",
                                     .read_profiles = read_widths};

const struct trainer *const trainers[] = {&flux,     &titan, &cosmos,   &lightning,
                                          &callback, &mirai, &megatron, NULL};
