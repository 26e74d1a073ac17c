// SPDX-License-Identifier: Apache-2.0
/* snapshot_profile.c - resolves each snapshot's profile from name, metadata and options: a power
 * function by its width, or another shape by its SPEC. */
#include "phema/setting.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "series_builder.h"
#include "twins.h"

/* ---- --input-profile ---- */

PHEMA_FALLIBLE input_profiles_read(struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    size_t n = options->n_input_profiles;
    if (n && options->n_input_sigmas)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_INPUT_PROFILE,
                                  "says what %s says; give one of them",
                                  phema_setting_name(PHEMA_SET_INPUT_SIGMA));
    builder->input_profiles =
        phema_arena_array(&builder->scratch, n + 1, sizeof(struct phema_spec *));
    if (!builder->input_profiles)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        struct phema_spec **spec = &builder->input_profiles[i];
        enum phema_status status =
            phema_specs_find(spec, &builder->candidates.specs, options->input_profiles[i], err);
        if (!status && !(*spec)->is_average)
            status = phema_fail(err, PHEMA_ERR_USAGE,
                                "'%s': is made of several snapshots; a snapshot is one average",
                                (*spec)->canonical);
        if (status) /* the SPEC describes the inputs, so it is no fault of a target */
            return phema_spec_fail(err, status == PHEMA_ERR_TARGET ? PHEMA_ERR_INPUTS : status,
                                   PHEMA_SET_INPUT_PROFILE, options->input_profiles[i]);
        builder->candidates.asks_for_raw =
            builder->candidates.asks_for_raw || strcmp((*spec)->kind, "raw") == 0;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE input_profiles_check(const struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    const struct layout *layout = builder->candidates.layout;
    bool has_all = options->n_input_profiles || (options->n_input_sigmas && options->update_every);
    for (size_t i = 0; i < options->n_input_profiles; i++)
        has_all = has_all && (strcmp(builder->input_profiles[i]->kind, "power") != 0 ||
                              builder->input_profiles[i]->update_every || options->update_every);
    if (!layout->is_labelled_only || options->needs_no_profiles || has_all)
        return PHEMA_OK;
    char every[32] = "";
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_INPUTS,
                   "%s: %s writes neither sigma_rel nor update_every into its files, and without "
                   "them the weights would be wrong; give %s and %s",
                   options->snapshots, layout->library, phema_setting_name(PHEMA_SET_INPUT_SIGMA),
                   phema_setting_name(PHEMA_SET_UPDATE_EVERY));
    (void)snprintf(every, sizeof(every), "%llu", (unsigned long long)layout->default_update_every);
    if (!options->n_input_sigmas && !options->n_input_profiles)
        (void)phema_suggest(err, status, PHEMA_SET_INPUT_SIGMA, layout->default_sigmas);
    if (!options->update_every)
        (void)phema_suggest(err, status, PHEMA_SET_UPDATE_EVERY, every);
    return status;
}

/* every: of the option, 0: not given */
static enum phema_status set_update_every(struct candidate *candidate, uint64_t every,
                                          enum phema_setting setting, struct phema_error *err)
{
    if (!every)
        return PHEMA_OK;
    if (candidate->update_every && candidate->update_every != every)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "says that it was updated every %llu steps, %s%llu",
                          (unsigned long long)candidate->update_every,
                          phema_setting_equals(setting), (unsigned long long)every);
    candidate->update_every = every;
    return PHEMA_OK;
}

/* --input-profile is for candidates whose profile is not known otherwise. */
static enum phema_status find_input_profile(const struct series_builder *builder,
                                            struct candidate *candidate, struct phema_error *err)
{
    size_t n = builder->options->n_input_profiles;
    if (!isnan(candidate->sigma_rel) || !isnan(candidate->gamma) || candidate->spec || n == 0)
        return PHEMA_OK;
    uint64_t index = n == 1 ? 0 : candidate->index;
    if (index == UINT64_MAX)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "its name has no index to choose among the %zu of %s", n,
                          phema_setting_name(PHEMA_SET_INPUT_PROFILE));
    if (index >= n)
        return phema_fail(
            err, PHEMA_ERR_INPUTS, "has index %llu, but %s is given %zu times, from 0",
            (unsigned long long)index, phema_setting_name(PHEMA_SET_INPUT_PROFILE), n);
    struct phema_spec *spec = builder->input_profiles[index];
    return candidate_use_spec(candidate, spec)
               ? set_update_every(candidate, spec->update_every, PHEMA_SET_INPUT_PROFILE, err)
               : PHEMA_OK;
}

/* ---- Widths of power functions ---- */

static enum phema_status find_input_sigma(const struct phema_series_options *options,
                                          struct candidate *candidate, struct phema_error *err)
{
    if (!isnan(candidate->sigma_rel) || !isnan(candidate->gamma) || !options->n_input_sigmas)
        return PHEMA_OK;
    uint64_t index = candidate->index == UINT64_MAX ? 0 : candidate->index;
    if (candidate->index == UINT64_MAX && options->n_input_sigmas > 1)
        return phema_fail(
            err, PHEMA_ERR_INPUTS, "%s: its name has no index to choose among the %zu widths of %s",
            candidate->label, options->n_input_sigmas, phema_setting_name(PHEMA_SET_INPUT_SIGMA));
    if (index >= options->n_input_sigmas)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: has index %llu, but %s gives %zu width%s, from 0", candidate->label,
                          (unsigned long long)index, phema_setting_name(PHEMA_SET_INPUT_SIGMA),
                          options->n_input_sigmas, options->n_input_sigmas == 1 ? "" : "s");
    candidate->sigma_rel = options->input_sigmas[index];
    return PHEMA_OK;
}

/* Whether files have a set that is the average of another one. */
static bool has_twins(const struct series_builder *builder)
{
    return builder->scheme.trainer && builder->scheme.trainer->twins;
}

static bool may_be_raw(const struct series_builder *builder, const struct candidate *candidate)
{
    bool is_average = has_twins(builder) || builder->counter ||
                      says_average(phema_span_of(candidate->label)) ||
                      builder->scheme.subtree.is_called_average;
    return builder->candidates.layout->may_be_raw && !is_average;
}

/* Width and exponent from each other. */
static enum phema_status complete_width(const struct series_builder *builder,
                                        struct candidate *candidate, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    candidate->is_by_gamma = isnan(candidate->sigma_rel);
    if (!isnan(candidate->sigma_rel)) {
        enum phema_status status =
            phema_gamma_from_sigma_rel(&candidate->gamma, candidate->sigma_rel, err);
        return status == PHEMA_ERR_TARGET ? PHEMA_ERR_INPUTS : status;
    }
    if (isnan(candidate->gamma) && options->needs_no_profiles) {
        builder->series->may_be_raw = may_be_raw(builder, candidate);
        return PHEMA_OK;
    }
    if (isnan(candidate->gamma)) {
        if ((builder->candidates.leaves_out_raw || has_twins(builder)) && builder->candidates.n > 2)
            return phema_suggest(err,
                                 phema_fail(err, PHEMA_ERR_INPUTS,
                                            "has no width, in its name or metadata; give %s or %s; "
                                            "%sauto asks the raw parameters beside it",
                                            phema_setting_name(PHEMA_SET_INPUT_SIGMA),
                                            phema_setting_name(PHEMA_SET_INPUT_PROFILE),
                                            phema_setting_equals(PHEMA_SET_INPUT_PROFILE)),
                                 PHEMA_SET_INPUT_PROFILE, "auto");
        struct phema_name_buffer counter;
        if (builder->counter)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "has no width, in its name or metadata; '%s' inside counts the "
                              "updates of an average; %s says its class and decay, such as %s "
                              "(posthoc-ema-spec(7))",
                              phema_name_show(&counter, builder->counter),
                              phema_setting_name(PHEMA_SET_INPUT_PROFILE),
                              strstr(builder->counter, "n_averaged")
                                  ? "averaged-model:0.999,every=10"
                                  : "torch-ema:0.9999");
        if (!may_be_raw(builder, candidate))
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "has no width, in its name or metadata; give %s, or %s for another "
                              "shape, such as raw parameters",
                              phema_setting_name(PHEMA_SET_INPUT_SIGMA),
                              phema_setting_name(PHEMA_SET_INPUT_PROFILE));
        return phema_suggest(err,
                             phema_fail(err, PHEMA_ERR_INPUTS,
                                        "has no width, in its name or metadata; are these raw "
                                        "weights? add %sraw; for averages give %s, or their %s",
                                        phema_setting_equals(PHEMA_SET_INPUT_PROFILE),
                                        phema_setting_name(PHEMA_SET_INPUT_SIGMA),
                                        phema_setting_name(PHEMA_SET_INPUT_PROFILE)),
                             PHEMA_SET_INPUT_PROFILE, "raw");
    }
    if (!(candidate->gamma > -0.5) || !(candidate->gamma < 1e9))
        return phema_fail(err, PHEMA_ERR_INPUTS, "gamma %g is not above -0.5", candidate->gamma);
    candidate->sigma_rel = phema_sigma_rel_from_gamma(candidate->gamma);
    return PHEMA_OK;
}

/* ---- Sets of a trainer ---- */

/* "titan:every=4" and "titan:fraction=0.05" are "titan:every=4,fraction=0.05". */
static enum phema_status join_specs(const char **out, struct series_builder *builder,
                                    const char *stated, struct phema_error *err)
{
    *out = stated;
    size_t n = builder->options->n_input_profiles;
    if (!n)
        return PHEMA_OK;
    const char *given = builder->options->input_profiles[0];
    const char *keys = strchr(stated, ':') + 1;
    size_t kind_size = strcspn(given, ":");
    if (n > 1 || kind_size != (size_t)(keys - 1 - stated) ||
        memcmp(given, stated, kind_size) != 0 || strstr(given, "fraction") ||
        strstr(given, "decay"))
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "its file says %s; %s can add start, every, bias and counting, as titan:start=100",
            stated, phema_setting_name(PHEMA_SET_INPUT_PROFILE));
    *out =
        phema_arena_printf(&builder->scratch, "%s%s%s", given, given[kind_size] ? "," : ":", keys);
    return *out ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status find_spec(struct phema_spec **out, struct series_builder *builder,
                                   const char *text, struct phema_error *err)
{
    const char *kept = phema_arena_copy(&builder->series->memory, text, strlen(text));
    if (!kept)
        return phema_fail_memory(err);
    enum phema_status status = phema_specs_find(out, &builder->candidates.specs, kept, err);
    return !status || status == PHEMA_ERR_RESOURCE ? status : PHEMA_ERR_INPUTS;
}

/* The candidate's profile is a default of the trainer, at least in a part. */
static enum phema_status note_assumption(struct series_builder *builder,
                                         struct candidate *candidate, const char *assumed,
                                         const char *to_fill, struct phema_error *err)
{
    struct phema_series *series = builder->series;
    bool is_whole = strchr(assumed, ':') != NULL;
    candidate->is_assumed = true;
    if (series->assumed)
        return PHEMA_OK;
    series->assumption = phema_arena_printf(
        &builder->scratch, "the files do not say %s: assumed %s, the default of %s; %s sets it",
        is_whole ? "how their averages were made" : "when their averages were updated", assumed,
        builder->scheme.trainer->name, phema_setting_name(PHEMA_SET_INPUT_PROFILE));
    if (!series->assumption)
        return phema_fail_memory(err);
    series->assumed = assumed;
    series->trainer = builder->scheme.trainer->name;
    series->to_fill = to_fill;
    return PHEMA_OK;
}

static bool has_value_below(const struct phema_checkpoint *checkpoint, const char *prefix)
{
    const struct phema_value *values = phema_checkpoint_values(checkpoint);
    size_t size = strlen(prefix), i = 0, n = phema_checkpoint_n_values(checkpoint);
    while (i < n && (values[i].name_size < size || memcmp(values[i].name, prefix, size) != 0))
        i++;
    return i < n;
}

PHEMA_FALLIBLE set_profile_find(struct series_builder *builder, struct candidate *candidate,
                                const struct phema_tensor_set *set, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    if (set->is_raw)
        return find_spec(&candidate->spec, builder, "raw", err);
    if (!isnan(set->sigma_rel)) {
        candidate_set_width(candidate, set->sigma_rel);
        return PHEMA_OK;
    }
    const struct trainer *trainer = builder->scheme.trainer;
    enum phema_status status = PHEMA_OK;
    if (set->spec) { /* by the key; the options or the trainer's default add the rest */
        const char *text = NULL;
        status = join_specs(&text, builder, set->spec, err);
        if (!status)
            status = find_spec(&candidate->spec, builder, text, err);
        if (status || options->n_input_profiles || !trainer->assumed_rest)
            return status;
        return note_assumption(builder, candidate, trainer->assumed_rest, trainer->rest_to_fill,
                               err);
    }
    if (builder->candidates.asks_for_raw)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "is an average; %sraw takes the raw parameters beside it",
                          phema_setting_equals(PHEMA_SET_USE));
    if (options->n_input_profiles || options->n_input_sigmas || !trainer->assumed)
        return PHEMA_OK;
    const char *assumed = trainer->assumed;
    if (trainer->equal_weights && has_value_below(builder->checkpoint, trainer->equal_weights))
        assumed = "power:gamma=0";
    struct phema_spec *spec = NULL;
    if (trainer->assumed_width > 0)
        candidate_set_width(candidate, trainer->assumed_width);
    else
        status = find_spec(&spec, builder, assumed, err);
    if (spec)
        (void)candidate_use_spec(candidate, spec);
    if (status)
        return status;
    builder->series->usual = trainer->usual;
    return note_assumption(builder, candidate, assumed, trainer->to_fill, err);
}

/* ---- The profile of a snapshot ---- */

static enum phema_status set_shape(struct series_builder *builder, struct phema_snapshot *snapshot,
                                   struct candidate *candidate, struct phema_error *err)
{
    /* EMAs that are defined step by step would be other averages with update_every */
    if (phema_spec_is_stepwise(candidate->spec) &&
        (builder->options->update_every || candidate->update_every))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "is %s, which says itself when it is updated; update_every is for power "
                          "functions, and a table:FILE says any other rule",
                          candidate->spec->canonical);
    if (snapshot->checkpoint && phema_spec_asks_dtype(candidate->spec) &&
        tensor_table_rounding(builder->series, snapshot->locations) ==
            phema_dtype_rounding(PHEMA_F32))
        phema_spec_set_float32(candidate->spec);
    enum phema_status status =
        phema_spec_profile(&snapshot->profile, candidate->spec, snapshot->time, err);
    snapshot->profile.label = snapshot->label;
    /* the series is shown, or used with given weights, without what its files contradict */
    if (status == PHEMA_ERR_INPUTS && candidate->is_assumed &&
        builder->options->needs_no_profiles) {
        if (builder->series->assumption)
            candidates_warn(&builder->candidates, "%s: %s", candidate->label, err->message);
        builder->series->assumption = NULL;
        return PHEMA_OK;
    }
    snapshot->kind = candidate->spec->kind;
    snapshot->spec = candidate->spec->canonical;
    return status;
}

static enum phema_status set_power(struct series_builder *builder, struct phema_snapshot *snapshot,
                                   struct candidate *candidate, struct phema_error *err)
{
    enum phema_status status = complete_width(builder, candidate, err);
    builder->series->may_drop_update = builder->options->update_every && !candidate->update_every &&
                                       !builder->candidates.layout->is_labelled_only;
    if (!status)
        status = set_update_every(candidate, builder->options->update_every, PHEMA_SET_UPDATE_EVERY,
                                  err);
    if (status)
        return status;
    snapshot->sigma_rel = candidate->sigma_rel;
    snapshot->gamma = candidate->gamma;
    snapshot->profile = (struct phema_profile){
        .gamma = candidate->gamma,
        .t = snapshot->time,
        .update_every = candidate->update_every ? candidate->update_every : 1,
        .label = snapshot->label,
    };
    if (isnan(snapshot->gamma))
        return PHEMA_OK;
    struct phema_strbuf text = {0};
    phema_spec_append_power(&text, candidate->is_by_gamma ? PHEMA_UNKNOWN : snapshot->sigma_rel,
                            snapshot->gamma, snapshot->profile.update_every);
    snapshot->kind = "power";
    snapshot->spec =
        text.is_failed ? NULL : phema_arena_copy(&builder->series->memory, text.data, text.size);
    phema_strbuf_clear(&text);
    return snapshot->spec ? PHEMA_OK : phema_fail_memory(err);
}

/* ---- A profile that a file beside the checkpoint says ---- */

/* Weights of two averages on any part of the past differ at most so much where they are one. */
#define MOST_WEIGHT_APART 0.02
#define N_AGES            64

/* The largest difference of two profiles' weights on the parameters before a time. */
static double compare_profiles(const struct phema_profile *a, const struct phema_profile *b)
{
    double times[N_AGES], left[N_AGES], right[N_AGES], most = 0;
    for (size_t i = 0; i < N_AGES; i++) /* between steps, curves and recurrences differ */
        times[i] = floor(a->t - a->t * exp2(-(double)i / 2));
    phema_profile_cumulative(left, a, times, N_AGES);
    phema_profile_cumulative(right, b, times, N_AGES);
    for (size_t i = 0; i < N_AGES; i++)
        most = fmax(most, fabs(left[i] - right[i]));
    return most;
}

/* Uses the description where nothing else says the profile.
 *   out      NULL: there is none, or it is on another clock than the times
 *   said_by  out: where it is */
static enum phema_status find_described(struct phema_spec **out, const char **said_by,
                                        struct series_builder *builder,
                                        const struct phema_snapshot *snapshot,
                                        struct candidate *candidate, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    struct described_profile described = {.spec = NULL};
    *out = NULL;
    if (!candidate->path || builder->scheme.trainer || options->n_resets || options->is_conversion)
        return PHEMA_OK;
    enum phema_status status =
        described_profile_read(&described, candidate->path, &builder->scratch, err);
    if (!status && !described.spec && builder->checkpoint)
        status = litema_describe(&described, &builder->scratch, builder->checkpoint,
                                 builder->scheme.subtree.key, snapshot->time, err);
    if (status || !described.spec)
        return status;
    *said_by = described.by;
    bool is_known = candidate->spec || !isnan(candidate->sigma_rel) || !isnan(candidate->gamma);
    struct phema_name_buffer counted, time;
    if (described.n_steps != snapshot->time)
        return is_known || options->needs_no_profiles
                   ? PHEMA_OK
                   : phema_fail(err, PHEMA_ERR_INPUTS,
                                "%s has optimization_step %s, and its time is %s: the steps of its "
                                "average are others; %s says how it was averaged, %s when it was "
                                "restarted",
                                described.by, phema_number_format(&counted, described.n_steps),
                                phema_number_format(&time, snapshot->time),
                                phema_setting_name(PHEMA_SET_INPUT_PROFILE),
                                phema_setting_name(PHEMA_SET_RESET_AT));
    status = find_spec(out, builder, described.spec, err);
    if (status)
        return phema_fail_in(err, status, "%s", described.by);
    if (!is_known && !builder->has_described)
        candidates_note(&builder->candidates, "profile: %s, by %s beside each average",
                        described.spec, described.by);
    if (!is_known)
        candidate->spec = *out;
    builder->has_described = true;
    return PHEMA_OK;
}

/* Numbers inside may be left over from a class that was changed. */
static enum phema_status check_described(struct series_builder *builder,
                                         const struct phema_snapshot *snapshot,
                                         struct phema_spec *described, const char *said_by,
                                         struct phema_error *err)
{
    struct phema_profile said;
    const struct phema_series_options *options = builder->options;
    /* a model that began as such an average may keep the keys */
    if (snapshot->profile.shape == PHEMA_SHAPE_RAW)
        return PHEMA_OK;
    enum phema_status status = phema_spec_profile(&said, described, snapshot->time, err);
    if (status || compare_profiles(&said, &snapshot->profile) <= MOST_WEIGHT_APART)
        return status;
    static const char message[] =
        "%s says how it was averaged, %s, and that is another average than %s";
    if (strcmp(said_by, DESCRIPTION_FILE) != 0) {
        if (snapshot == builder->series->snapshots)
            candidates_warn(&builder->candidates, message, said_by, described->text,
                            snapshot->spec);
        return PHEMA_OK;
    }
    status = phema_fail(err, PHEMA_ERR_INPUTS, message, said_by, described->text, snapshot->spec);
    if (options->n_input_sigmas)
        (void)phema_suggest(err, status, PHEMA_SET_INPUT_SIGMA, "");
    return options->n_input_sigmas || options->n_input_profiles
               ? phema_suggest(err, status, PHEMA_SET_INPUT_PROFILE, described->text)
               : status;
}

/* ---- Together ---- */

PHEMA_FALLIBLE snapshot_profile_set(struct series_builder *builder, struct phema_snapshot *snapshot,
                                    struct candidate *candidate, struct phema_error *err)
{
    snapshot->sigma_rel = snapshot->gamma = PHEMA_UNKNOWN;
    snapshot->is_assumed = candidate->is_assumed;
    const struct phema_series_options *options = builder->options;
    struct phema_spec *described = NULL;
    const char *said_by = NULL;
    enum phema_status status = PHEMA_OK; /* --input-sigma and --input-profile exclude each other */
    if (!candidate->spec)
        status = find_input_sigma(options, candidate, err);
    if (status)
        return status;
    status = find_input_profile(builder, candidate, err);
    if (!status)
        status = find_described(&described, &said_by, builder, snapshot, candidate, err);
    if (!status)
        status = (candidate->spec ? set_shape : set_power)(builder, snapshot, candidate, err);
    if (!status && described && snapshot->kind && !options->needs_no_profiles)
        status = check_described(builder, snapshot, described, said_by, err);
    return status ? phema_fail_in(err, status, "%s: %s", options->snapshots, candidate->label)
                  : PHEMA_OK;
}

/* ---- --reset-at: averages that were restarted while the training ran ---- */

static enum phema_status read_resets(struct phema_reset **out, const struct series_builder *builder,
                                     struct phema_arena *arena, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    const struct phema_series *series = builder->series;
    struct phema_reset *resets = NULL;
    enum phema_status status =
        phema_resets_parse(&resets, arena, options->resets, options->n_resets, err);
    if (status)
        return status;
    const struct phema_reset *last = &resets[options->n_resets - 1];
    double newest = series->snapshots[series->n - 1].named_time;
    struct phema_name_buffer at, end;
    if (last->at >= newest)
        return phema_suggest(
            err,
            phema_fail(err, PHEMA_ERR_INPUTS, "no snapshot is later than %s; the newest is at %s",
                       phema_number_format(&at, last->at), phema_number_format(&end, newest)),
            PHEMA_SET_RESET_AT, "");
    for (size_t i = 0; i < options->n_resets; i++)
        resets[i].at = phema_series_clock(series, resets[i].at);
    if (!(resets[0].at > 0))
        return phema_fail(err, PHEMA_ERR_INPUTS, "the clock of the averages begins after %s",
                          options->resets[0]);
    *out = resets;
    return PHEMA_OK;
}

PHEMA_FALLIBLE profile_resets_apply(struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    struct phema_series *series = builder->series;
    struct phema_reset *resets = NULL;
    if (!options->n_resets)
        return PHEMA_OK;
    enum phema_status status = read_resets(&resets, builder, &builder->scratch, err);
    for (size_t k = 0; k < series->n && !status; k++) {
        struct phema_snapshot *snapshot = &series->snapshots[k];
        if (snapshot->kind)
            status = phema_profile_reset(&snapshot->profile, resets, options->n_resets, err);
        if (status)
            status = phema_fail_in(err, status, "%s: %s: %s", options->snapshots, snapshot->label,
                                   snapshot->spec);
    }
    return status ? phema_fail_in_setting(err, status, PHEMA_SET_RESET_AT) : PHEMA_OK;
}
