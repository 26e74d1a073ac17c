// SPDX-License-Identifier: Apache-2.0
/* container_kinds.c - how trainers name the tensors of their containers, and where the files say
 * how averages were made. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "containers.h"
#include "phema/number.h"
#include "snapshot_metadata.h"
#include "subtree.h"

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

/* Finds "profiles.I." in a name, at its start or behind a dot: the set is "profiles.I". */
static bool find_profile(struct member *out, const char *name, size_t size)
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
        *out = (struct member){name + at, end - at, name + end + 1, size - end - 1, false};
        return true;
    }
    return false;
}

/* mirai: a list of averages at the root */
static bool split_mirai(struct member *out, const char *name, size_t size)
{
    return find_profile(out, name, size) && out->set == name;
}

/* A callback of Lightning: params and buffers of each average, beside state_dict. */
static bool split_callback(struct member *out, const char *name, size_t size)
{
    if (strip(&name, &size, "state_dict."))
        return set_member(out, "raw", name, size);
    return find_profile(out, name, size) &&
           (strip(&out->name, &out->name_size, "params.") ||
            strip(&out->name, &out->name_size, "buffers.")) &&
           out->name_size > 0;
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

static enum phema_status read_titan_keys(struct container *container,
                                         const struct container_source *source,
                                         struct phema_error *err)
{
    for (size_t s = 0; s < container->n; s++) {
        struct tensor_set *set = &container->sets[s];
        if (set->is_raw || strcmp(set->name, "ema") == 0)
            continue;
        enum phema_status status = read_titan_key(set, source->arena, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Widths as numbers ---- */

static double number_at(const struct phema_checkpoint *checkpoint, const char *start, size_t size,
                        const char *rest)
{
    struct phema_strbuf name = {0};
    phema_strbuf_append(&name, start, size);
    phema_strbuf_puts(&name, rest);
    struct phema_span span = {(const uint8_t *)name.data, name.size};
    double number = name.is_failed ? PHEMA_UNKNOWN : snapshot_metadata_value(checkpoint, span);
    phema_strbuf_clear(&name);
    return number;
}

/* stds.I, beside profiles.I */
static double mirai_width(const struct phema_checkpoint *checkpoint,
                          const struct phema_tensor *tensor, const struct member *member)
{
    static const char stds[] = "stds";
    (void)tensor;
    unsigned long index = strtoul(member->set + strlen("profiles."), NULL, 10); /* of few digits */
    char rest[24];
    (void)snprintf(rest, sizeof(rest), ".%lu", index);
    double width = number_at(checkpoint, stds, strlen(stds), rest);
    if (isnan(width))
        width = snapshot_metadata_element(
            checkpoint, phema_checkpoint_find(checkpoint, stds, strlen(stds)), index);
    return width;
}

/* P.profiles.I.std */
static double callback_width(const struct phema_checkpoint *checkpoint,
                             const struct phema_tensor *tensor, const struct member *member)
{
    size_t size = (size_t)(member->set - tensor->name) + member->set_size;
    return number_at(checkpoint, tensor->name, size, ".std");
}

static struct tensor_set *find_set(struct container *container, const struct member *member)
{
    for (size_t s = 0; s < container->n; s++)
        if (phema_bytes_are(member->set, member->set_size, container->sets[s].name))
            return &container->sets[s];
    return NULL;
}

static enum phema_status
read_widths(struct container *container,
            double (*width_of)(const struct phema_checkpoint *checkpoint,
                               const struct phema_tensor *tensor, const struct member *member),
            const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        struct member member;
        if (!container->kind->split(&member, tensors[i].name, tensors[i].name_size) ||
            member.is_raw)
            continue;
        struct tensor_set *set = find_set(container, &member);
        if (!set || !isnan(set->sigma_rel))
            continue;
        set->sigma_rel = width_of(checkpoint, &tensors[i], &member);
        if (isnan(set->sigma_rel))
            return phema_fail(err, PHEMA_ERR_INPUTS, "holds the average '%s', but not its width",
                              set->name);
    }
    return PHEMA_OK;
}

static enum phema_status read_mirai_widths(struct container *container,
                                           const struct container_source *source,
                                           struct phema_error *err)
{
    return read_widths(container, mirai_width, source->checkpoint, err);
}

static enum phema_status read_callback_widths(struct container *container,
                                              const struct container_source *source,
                                              struct phema_error *err)
{
    return read_widths(container, callback_width, source->checkpoint, err);
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

static const struct container_kind kind_flux = {.trainer = "flux_action",
                                                .split = split_flux,
                                                .is_its = has_averages_only,
                                                .change = flux_state_change,
                                                .read_profiles = flux_state_read};

static const char *const usual_of_titan[] = {
    "titan:fraction=0.01", "titan:fraction=0.02", "titan:fraction=0.03",
    "titan:fraction=0.1",  "titan:fraction=0.15", "titan:fraction=0.2",
    "titan:decay=0.99",    "titan:decay=0.995",   "titan:decay=0.999",
    "titan:decay=0.9995",  "titan:decay=0.9999",  "titan:decay=0.99999",
    "titan:every=2",       "titan:every=4",       "titan:every=5",
    "titan:every=10",      "titan:every=100",     NULL};

static const struct container_kind kind_titan = {
    .trainer = "torchtitan",
    .layout = &layout_torchtitan,
    .assumed = "titan:fraction=0.05,start=0,every=1,bias=0,counting=count",
    .to_fill = "titan:fraction=FRACTION",
    .usual = usual_of_titan,
    .assumed_rest = "start=0,every=1,bias=0,counting=count",
    .rest_to_fill = "titan:start=START,every=EVERY",
    .split = split_titan,
    .is_its = has_averages_only,
    .counter = "train_state.step",
    .read_profiles = read_titan_keys};

static const char *const usual_of_cosmos[] = {
    "cosmos:sigma-rel=0.02", "cosmos:sigma-rel=0.03", "cosmos:sigma-rel=0.05",
    "cosmos:sigma-rel=0.08", "cosmos:sigma-rel=0.12", "cosmos:sigma-rel=0.15",
    "cosmos:sigma-rel=0.2",  "cosmos:sigma-rel=0.25", NULL};

static const struct container_kind kind_cosmos = {.trainer = "Cosmos",
                                                  .assumed = "cosmos:sigma-rel=0.1,shift=0",
                                                  .to_fill = "cosmos:sigma-rel=WIDTH",
                                                  .usual = usual_of_cosmos,
                                                  .assumed_width = 0.1,
                                                  .copies_buffers = true,
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

static const struct container_kind kind_lightning = {.trainer = "Lightning",
                                                     .to_fill = "lightning:decay=DECAY",
                                                     .usual = usual_of_lightning,
                                                     .assumed =
                                                         "lightning:decay=0.999,every=1,start=0",
                                                     .split = split_lightning,
                                                     .is_its = has_averaging_state,
                                                     .n_updates = "averaging_state.n_averaged"};

static const struct container_kind kind_megatron = {
    .trainer = "Megatron", .split = split_megatron, .is_its = is_torch_dist};

/* The first average has a width, under the names of the kind. */
static bool has_width(const struct phema_checkpoint *checkpoint,
                      bool (*split)(struct member *out, const char *name, size_t size),
                      double (*width_of)(const struct phema_checkpoint *checkpoint,
                                         const struct phema_tensor *tensor,
                                         const struct member *member))
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        struct member member;
        if (split(&member, tensors[i].name, tensors[i].name_size) && !member.is_raw)
            return !isnan(width_of(checkpoint, &tensors[i], &member));
    }
    return false;
}

static bool is_of_mirai(const struct phema_checkpoint *checkpoint, bool has_averages, bool has_raw)
{
    (void)has_raw;
    return has_averages && has_width(checkpoint, split_mirai, mirai_width);
}

static bool is_of_callback(const struct phema_checkpoint *checkpoint, bool has_averages,
                           bool has_raw)
{
    (void)has_raw;
    return has_averages && has_width(checkpoint, split_callback, callback_width);
}

static const struct container_kind kind_callback = {.trainer = "a power-function callback",
                                                    .split = split_callback,
                                                    .is_its = is_of_callback,
                                                    .may_lack_raw = true,
                                                    .read_profiles = read_callback_widths};

static const struct container_kind kind_mirai = {.trainer = "mirai",
                                                 .split = split_mirai,
                                                 .is_its = is_of_mirai,
                                                 .may_lack_raw = true,
                                                 .counter = "step",
                                                 .read_profiles = read_mirai_widths};

static const struct container_kind *const kinds[] = {&kind_flux,      &kind_titan,    &kind_cosmos,
                                                     &kind_lightning, &kind_callback, &kind_mirai,
                                                     &kind_megatron};

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
