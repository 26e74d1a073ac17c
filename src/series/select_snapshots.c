// SPDX-License-Identifier: Apache-2.0
/* select_snapshots.c - applies --run, --from, --to, --every and --last; drops outputs of synth, duplicates
 * and raw parameters. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"
#include "phema/sort.h"
#include "sets.h"

/* A file that cannot be read may have the frozen tensors of all snapshots: then the first one says
 * so. */
static enum phema_status blame_frozen(struct candidate_list *candidates,
                                      const struct phema_series_options *options,
                                      struct phema_error *err)
{
    size_t i = 0;
    while (i < candidates->n && (candidates->items[i].is_left_out || !candidates->items[i].path ||
                                 isnan(candidates->items[i].named_time)))
        i++;
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_error failure = {0};
    if (i == candidates->n ||
        phema_checkpoint_open(&checkpoint, candidates->items[i].path, &options->checkpoint,
                              &failure) != PHEMA_ERR_INPUTS) {
        phema_checkpoint_close(checkpoint);
        return PHEMA_ERR_FILE;
    }
    *err = failure;
    candidates->damaged = NULL;
    return PHEMA_ERR_INPUTS;
}

/* Opens files whose names lack a time or look like synth's outputs. Times are selected later. */
static enum phema_status read_doubtful_file(struct candidate_list *candidates,
                                            const struct phema_series_options *options,
                                            struct candidate *candidate, struct phema_error *err)
{
    bool is_default_output_name = strncmp(candidate->base, "phema-", 6) == 0;
    bool is_unnamed = isnan(candidate->named_time);
    if (!is_unnamed && !is_default_output_name)
        return PHEMA_OK;
    if (candidates->layout->names_say_all) {
        candidates_leave_out(candidates, candidate, "a reconstruction");
        return PHEMA_OK;
    }
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status =
        candidate_open(&checkpoint, candidates, candidate, &options->checkpoint, err);
    if (status == PHEMA_ERR_FILE && is_unnamed)
        return blame_frozen(candidates, options, err);
    if (status)
        return status;
    bool is_output = false;
    const char *unit = NULL;
    status =
        snapshot_metadata_read(candidate, &is_output, &unit, &candidates->specs, checkpoint, err);
    bool is_frozen = snapshot_metadata_is_frozen(checkpoint); /* a note on the tensors names it */
    candidate->is_left_out = is_frozen;
    phema_checkpoint_close(checkpoint);
    if (status)
        return phema_fail_in(err, status, "%s", candidate->path);
    if (is_output)
        candidates_leave_out(candidates, candidate, CANDIDATE_IS_OUTPUT);
    else if (is_unnamed && !isnan(candidate->named_time))
        candidates->recognised.times = "metadata";
    else if (is_unnamed && !is_frozen)
        candidates_leave_out(candidates, candidate, "without a time in name or metadata");
    return PHEMA_OK;
}

/* EDM2 keeps some averages twice. The pickles are preferred: they are saved more often. */
static enum phema_status leave_out_states(struct candidate_list *candidates,
                                          struct phema_error *err)
{
    const struct layout *layout = candidates->layout;
    if (!layout->state)
        return PHEMA_OK;
    const char *reason =
        phema_arena_printf(candidates->arena,
                           "the same averages in float32; to use these instead, add %s%s "
                           "%s'^%s(?<time>[0-9]+)[.]pt$'",
                           phema_setting_equals(PHEMA_SET_LAYOUT), layout->name,
                           phema_setting_equals(PHEMA_SET_NAME_REGEX), layout->state);
    bool is_any = false;
    for (size_t i = 0; i < candidates->n; i++)
        is_any = is_any || (!candidates->items[i].is_left_out &&
                            !layout_names_state(layout, candidates->items[i].base));
    for (size_t i = 0; is_any && reason && i < candidates->n; i++)
        if (!candidates->items[i].is_left_out &&
            layout_names_state(layout, candidates->items[i].base))
            candidates_leave_out(candidates, &candidates->items[i], reason);
    return reason ? PHEMA_OK : phema_fail_memory(err);
}

/* Files that cannot be read are a failure where others are snapshots by their metadata. Else their
 * names may have times, as those of all. */
static enum phema_status read_doubtful_files(struct candidate_list *candidates,
                                             const struct phema_series_options *options,
                                             struct phema_error *err)
{
    const struct candidate *damaged = NULL;
    bool is_any = false;
    for (size_t i = 0; i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        struct phema_error failure = {0};
        if (candidate->is_left_out)
            continue;
        enum phema_status status = read_doubtful_file(candidates, options, candidate, &failure);
        bool is_damaged = status && candidates->damaged == candidate;
        if (status && !(is_damaged && damaged))
            *err = failure;
        if (status && !is_damaged)
            return status;
        damaged = is_damaged && !damaged ? candidate : damaged;
        candidate->is_left_out = candidate->is_left_out || is_damaged;
        is_any = is_any || !candidate->is_left_out;
    }
    candidates->damaged = is_any ? damaged : NULL;
    return candidates->damaged ? PHEMA_ERR_FILE : PHEMA_OK;
}

/* Outputs of synth may lie among the snapshots under any name. */
static enum phema_status leave_out_output(struct candidate_list *candidates,
                                          const struct phema_series_options *options,
                                          struct candidate *candidate, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status =
        candidate_open(&checkpoint, candidates, candidate, &options->checkpoint, err);
    if (status)
        return status;
    if (phema_checkpoint_metadatum(checkpoint, "posthoc_ema.provenance"))
        candidates_leave_out(candidates, candidate, CANDIDATE_IS_OUTPUT);
    phema_checkpoint_close(checkpoint);
    return PHEMA_OK;
}

static size_t count_alike(const struct candidate_list *candidates, const struct candidate *one)
{
    size_t n = 0;
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *candidate = &candidates->items[i];
        n += !candidate->is_left_out && candidate->prefix.data &&
             phema_spans_compare(one->prefix, candidate->prefix) == 0;
    }
    return n;
}

/* Suggests the names of the larger series: those of the layout, with its prefix. Names that are no
 * times of their own need the layout itself. */
static enum phema_status fail_two_series(const struct candidate_list *candidates,
                                         const char *snapshots, const struct candidate *first,
                                         const struct candidate *second, struct phema_error *err)
{
    static const char group[] = "(?<prefix>.*)";
    size_t n_first = count_alike(candidates, first), n_second = count_alike(candidates, second);
    const struct candidate *chosen = n_second > n_first ? second : first;
    const char *pattern = candidates->layout->pattern;
    const char *at = pattern && !candidates->layout->clock ? strstr(pattern, group) : NULL;
    struct phema_strbuf regex = {0};
    enum phema_status status = phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: holds two series, %zu files such as '%s' and %zu such as '%s'; choose one with %s, "
        "@list or a manifest",
        snapshots, n_first, first->label, n_second, second->label,
        phema_setting_name(PHEMA_SET_NAME_REGEX));
    if (!at)
        return status;
    phema_strbuf_append(&regex, pattern, (size_t)(at - pattern));
    for (size_t i = 0; i < chosen->prefix.size; i++) {
        char c = (char)chosen->prefix.data[i];
        phema_strbuf_printf(&regex, strchr("\\^$.[]|()?*+{}", c) ? "[%c]" : "%c", c);
    }
    phema_strbuf_puts(&regex, at + strlen(group));
    if (!regex.is_failed)
        (void)phema_suggest(err, status, PHEMA_SET_NAME_REGEX, regex.data);
    phema_strbuf_clear(&regex);
    return status;
}

static enum phema_status check_prefixes(struct candidate_list *candidates,
                                        const struct phema_series_options *options,
                                        struct phema_error *err)
{
    struct candidate *first = NULL;
    for (size_t i = 0; i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        if (candidate->is_left_out || !candidate->prefix.data)
            continue;
        first = first ? first : candidate;
        if (phema_spans_compare(first->prefix, candidate->prefix) == 0)
            continue;
        enum phema_status status = leave_out_output(candidates, options, candidate, err);
        if (!status && !candidate->is_left_out)
            status = leave_out_output(candidates, options, first, err);
        if (status)
            return status;
        if (!candidate->is_left_out && !first->is_left_out)
            return fail_two_series(candidates, options->snapshots, first, candidate, err);
        if (first->is_left_out)
            first = candidate;
    }
    return PHEMA_OK;
}

/* --from, --to, --every and --last select times, not files. */
static enum phema_status select_times(struct candidate_list *candidates,
                                      const struct phema_series_options *options,
                                      struct phema_error *err)
{
    double *times = phema_arena_array(candidates->arena, candidates->n + 1, sizeof(*times));
    if (!times)
        return phema_fail_memory(err);
    size_t n = 0, n_before = 0;
    for (size_t i = 0; i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        n_before += !candidate->is_left_out;
        if (candidate->named_time < options->from || candidate->named_time > options->to)
            candidate->is_left_out = true; /* comparisons with NaN, not given, are false */
        if (!candidate->is_left_out)
            times[n++] = candidate->named_time;
    }
    candidates->is_out_of_range = n_before && !n;
    size_t distinct = phema_sort_distinct(times, n);
    for (size_t i = 0; i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        if (candidate->is_left_out)
            continue;
        const double *at =
            bsearch(&candidate->named_time, times, distinct, sizeof(*times), phema_compare_doubles);
        size_t age = at ? distinct - 1 - (size_t)(at - times) : 0; /* 0: the newest */
        candidate->is_left_out = (options->every && age % options->every != 0) ||
                                 (options->last && age >= options->last);
    }
    return PHEMA_OK;
}

static bool has_width(const struct candidate *candidate)
{
    return !isnan(candidate->sigma_rel) || !isnan(candidate->gamma) ||
           (candidate->spec && !candidate->is_raw_inside);
}

/* Some directories hold raw parameters next to the averages. Their names have a time and no width,
 * or their metadata declare them raw. --input-sigma and --input-profile give the width of all files
 * that lack one. Files that are declared raw are used with --input-profile raw only. */
static enum phema_status leave_out_raw(struct candidate_list *candidates,
                                       const struct phema_series_options *options,
                                       struct phema_error *err)
{
    const char *reason = phema_arena_printf(
        candidates->arena, "without a known width; raw parameters are taken with %sraw",
        phema_setting_equals(PHEMA_SET_INPUT_PROFILE));
    if (!reason)
        return phema_fail_memory(err);
    bool is_any = false;
    for (size_t i = 0; i < candidates->n; i++)
        is_any = is_any || (!candidates->items[i].is_left_out && has_width(&candidates->items[i]));
    bool has_input_width = options->n_input_sigmas || options->n_input_profiles;
    for (size_t i = 0; is_any && i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        bool is_asked_for = candidate->is_raw_inside ? candidates->asks_for_raw : has_input_width;
        if (!candidate->is_left_out && !has_width(candidate) && !is_asked_for)
            candidates_leave_out(candidates, candidate, reason);
    }
    bool is_every = true;
    for (size_t i = 0; i < candidates->n; i++)
        is_every =
            is_every && (candidates->items[i].is_left_out || has_width(&candidates->items[i]));
    if (is_any && is_every && has_input_width)
        candidates_warn(candidates, "%s is not used: the files have their widths",
                        phema_setting_name(options->n_input_sigmas ? PHEMA_SET_INPUT_SIGMA
                                                                   : PHEMA_SET_INPUT_PROFILE));
    return PHEMA_OK;
}

/* Some trainers, such as EDM2, also save before the first step: no average has begun there. */
static void leave_out_untrained(struct candidate_list *candidates)
{
    size_t n_trained = 0;
    for (size_t i = 0; i < candidates->n; i++)
        n_trained += !candidates->items[i].is_left_out && candidates->items[i].named_time > 0;
    for (size_t i = 0; n_trained && i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        if (!candidate->is_left_out && candidate->named_time == 0)
            candidates_leave_out(candidates, candidate, "of time 0, where no average has begun");
    }
}

static void leave_out_damaged(struct candidate_list *candidates,
                              const struct phema_series_options *options)
{
    for (size_t d = 0; d < options->n_damaged; d++)
        for (size_t i = 0; i < candidates->n; i++)
            if (candidates->items[i].path &&
                strcmp(candidates->items[i].path, options->damaged[d].file) == 0)
                candidates_leave_out(candidates, &candidates->items[i], options->damaged[d].reason);
}

static void leave_out_excluded(struct candidate_list *candidates,
                               const struct phema_series_options *options)
{
    for (size_t e = 0; e < options->n_excluded_files; e++)
        for (size_t i = 0; i < candidates->n; i++)
            if (candidate_is_called(&candidates->items[i], options->excluded_files[e])) {
                candidates_leave_out(candidates, &candidates->items[i], "as asked");
                break;
            }
}

PHEMA_FALLIBLE check_excluded(const struct candidate_list *candidates,
                              const struct phema_series_options *options, struct phema_error *err)
{
    struct phema_name_buffer name, like;
    const char *label = candidates->n ? candidates->items[0].label : "";
    for (size_t e = 0; e < options->n_excluded_files; e++) {
        const char *excluded = options->excluded_files[e];
        size_t i = 0;
        while (i < candidates->n && !candidate_is_called(&candidates->items[i], excluded))
            i++;
        if (i == candidates->n)
            return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_EXCLUDE_FILE,
                                      "'%s' names no snapshot; names are like '%s'",
                                      phema_name_show(&name, excluded),
                                      phema_name_show(&like, label));
    }
    return PHEMA_OK;
}

/* The name that a file of Lightning would have without its version, "step=100-v1.ckpt"; 0: it has none. */
static size_t size_without_version(const char *base)
{
    const char *end = strrchr(base, '.'), *at = end;
    while (at && at > base && isdigit((unsigned char)at[-1]))
        at--;
    bool has_version = at && at < end && at - base > 2 && at[-1] == 'v' && at[-2] == '-';
    return has_version ? (size_t)(at - 2 - base) : 0;
}

/* Lightning adds -v1 to the name of a file that is there already, as of a training that was resumed. */
static enum phema_status check_versions(const struct candidate_list *candidates,
                                        const struct phema_series_options *options,
                                        struct phema_error *err)
{
    struct phema_name_buffer shown[2];
    for (size_t i = 0; i < candidates->n && candidates->layout == &layout_lightning; i++) {
        const struct candidate *newer = &candidates->items[i];
        size_t size = newer->is_left_out ? 0 : size_without_version(newer->base);
        for (size_t j = 0; j < candidates->n && size; j++) {
            const struct candidate *older = &candidates->items[j];
            if (older->is_left_out || older->named_time != newer->named_time ||
                strncmp(older->base, newer->base, size) != 0 || older->base[size] != '.')
                continue;
            (void)phema_fail(err, PHEMA_ERR_INPUTS,
                             "%s: '%s' and '%s' are of one step, and the second was saved later; "
                             "leave one of them out",
                             options->snapshots, phema_name_show(&shown[0], older->label),
                             phema_name_show(&shown[1], newer->label));
            return phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_EXCLUDE_FILE, older->label);
        }
    }
    return PHEMA_OK;
}

void leave_out_unopened(struct candidate_list *candidates,
                        const struct phema_series_options *options)
{
    leave_out_damaged(candidates, options);
    leave_out_excluded(candidates, options);
}

PHEMA_FALLIBLE select_snapshots(struct candidate_list *candidates,
                                const struct phema_series_options *options, struct phema_error *err)
{
    leave_out_damaged(candidates, options);
    leave_out_excluded(candidates, options);
    for (size_t i = 0; i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        /* outputs in formats without metadata have a provenance in a file of their own */
        if (!candidate->is_left_out && !candidate->is_undescribed && candidate->path &&
            snapshot_metadata_is_described_output(candidate->path))
            candidates_leave_out(candidates, candidate, CANDIDATE_IS_OUTPUT);
    }
    enum phema_status status = leave_out_states(candidates, err);
    if (status)
        return status;
    leave_out_unfinished(candidates);
    if (candidates->layout != &layout_manifest)
        leave_out_untrained(candidates);
    status = read_doubtful_files(candidates, options, err);
    if (status)
        return status;
    status = runs_select(candidates, options, err);
    if (status)
        return status;
    if (candidates->layout != &layout_manifest && !options->needs_no_profiles)
        status = leave_out_raw(candidates, options, err);
    if (!status)
        status = check_prefixes(candidates, options, err);
    if (!status)
        status = select_times(candidates, options, err);
    return status || options->needs_no_profiles ? status : check_versions(candidates, options, err);
}
