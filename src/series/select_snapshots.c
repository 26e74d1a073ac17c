// SPDX-License-Identifier: Apache-2.0
/* select_snapshots.c - which of the candidates are snapshots of the series, and which of those are
 * wanted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "discover.h"
#include "snapshot_metadata.h"

static bool is_default_output_name(const char *base)
{
    return strncmp(base, "phema-", 6) == 0;
}

/* Names that say no time, and those that synth gives its outputs, are looked into before the choice
 * of times is made. */
static enum phema_status look_inside(struct discovery *scan,
                                     const struct phema_series_options *options,
                                     struct candidate *candidate, struct phema_error *err)
{
    bool is_unknown = isnan(candidate->named_time);
    if (!is_unknown && !is_default_output_name(candidate->base))
        return PHEMA_OK;
    if (scan->layout == &layout_edm2) {
        candidate->is_left_out = true;
        discover_note(scan, "left out: '%s', a reconstruction", candidate->label);
        return PHEMA_OK;
    }
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status =
        phema_checkpoint_open(&checkpoint, candidate->path, &options->checkpoint, err);
    if (status)
        return status;
    bool is_output = false;
    const char *unit = NULL;
    status = snapshot_metadata_read(candidate, &is_output, &unit, &scan->specs, checkpoint, err);
    phema_checkpoint_close(checkpoint);
    if (status)
        return phema_fail_in(err, status, "%s", candidate->path);
    if (is_output || isnan(candidate->named_time)) {
        candidate->is_left_out = true;
        discover_note(scan, "left out: '%s', %s", candidate->label,
                      is_output ? "made by posthoc-ema"
                                : "which says no time, in its name or metadata");
    }
    return PHEMA_OK;
}

/* A directory may hold one training's averages twice: the pickles are saved more often. */
static void leave_out_training_states(struct discovery *scan)
{
    bool is_any = false;
    for (size_t i = 0; scan->layout == &layout_edm2 && i < scan->n; i++)
        is_any = is_any ||
                 (!scan->items[i].is_left_out && !layout_is_training_state(scan->items[i].base));
    size_t n = 0;
    const char *first = NULL;
    for (size_t i = 0; is_any && i < scan->n; i++) {
        struct candidate *candidate = &scan->items[i];
        if (candidate->is_left_out || !layout_is_training_state(candidate->base))
            continue;
        candidate->is_left_out = true;
        first = first ? first : candidate->label;
        n++;
    }
    if (n)
        discover_note(
            scan,
            "left out: '%s'%s, which hold the same averages in float32; to use these instead, "
            "add --layout edm2 --name-regex '^training-state-(?<time>[0-9]+)[.]pt$'",
            first, n > 1 ? " and others" : "");
}

/* Averages in formats that have no metadata are described by a file beside them. */
static void leave_out_described(struct discovery *scan)
{
    for (size_t i = 0; i < scan->n; i++) {
        struct candidate *candidate = &scan->items[i];
        if (candidate->is_left_out || !candidate->path ||
            !snapshot_metadata_is_described_output(candidate->path))
            continue;
        candidate->is_left_out = true;
        discover_note(scan, "left out: '%s', made by posthoc-ema", candidate->label);
    }
}

/* Outputs of synth that were saved among the snapshots under a name of their own. */
static enum phema_status leave_out_output(struct discovery *scan,
                                          const struct phema_series_options *options,
                                          struct candidate *candidate, struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status =
        phema_checkpoint_open(&checkpoint, candidate->path, &options->checkpoint, err);
    if (status)
        return status;
    candidate->is_left_out =
        phema_checkpoint_metadatum(checkpoint, "posthoc_ema.provenance") != NULL;
    phema_checkpoint_close(checkpoint);
    if (candidate->is_left_out)
        discover_note(scan, "left out: '%s', made by posthoc-ema", candidate->label);
    return PHEMA_OK;
}

static bool same_prefix(const struct candidate *a, const struct candidate *b)
{
    return a->prefix.size == b->prefix.size &&
           memcmp(a->prefix.data, b->prefix.data, a->prefix.size) == 0;
}

static enum phema_status check_prefixes(struct discovery *scan,
                                        const struct phema_series_options *options,
                                        struct phema_error *err)
{
    struct candidate *first = NULL;
    for (size_t i = 0; i < scan->n; i++) {
        struct candidate *candidate = &scan->items[i];
        if (candidate->is_left_out || !candidate->prefix.data)
            continue;
        if (!first || same_prefix(first, candidate)) {
            first = first ? first : candidate;
            continue;
        }
        enum phema_status status = leave_out_output(scan, options, candidate, err);
        if (!status && !candidate->is_left_out)
            status = leave_out_output(scan, options, first, err);
        if (status)
            return status;
        if (!candidate->is_left_out && !first->is_left_out)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "%s: holds two series, such as '%s' and '%s'; choose one with "
                              "--name-regex, @list or a manifest",
                              options->snapshots, first->label, candidate->label);
        if (first->is_left_out)
            first = candidate;
    }
    return PHEMA_OK;
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* --from, --to, --every and --last choose among the times, not among files. */
static enum phema_status choose_times(struct discovery *scan,
                                      const struct phema_series_options *options,
                                      struct phema_error *err)
{
    double *times = phema_arena_array(scan->arena, scan->n + 1, sizeof(*times));
    if (!times)
        return phema_fail_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < scan->n; i++) {
        struct candidate *candidate = &scan->items[i];
        if (candidate->named_time < options->from || candidate->named_time > options->to)
            candidate->is_left_out = true; /* comparisons with NaN, not given, are false */
        if (!candidate->is_left_out)
            times[n++] = candidate->named_time;
    }
    qsort(times, n, sizeof(*times), compare_doubles);
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || times[i] != times[i - 1])
            times[distinct++] = times[i];
    for (size_t i = 0; i < scan->n; i++) {
        struct candidate *candidate = &scan->items[i];
        if (candidate->is_left_out)
            continue;
        const double *at =
            bsearch(&candidate->named_time, times, distinct, sizeof(*times), compare_doubles);
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

/* Raw parameters stand beside the averages in some directories: their names say a time and no
 * width, or their metadata that they are raw. Where nothing says a width it may come from
 * --input-sigma or --input-profile, and where one is given it is for all; those that say they are
 * raw are asked for by that name. */
static void leave_out_raw(struct discovery *scan, const struct phema_series_options *options)
{
    bool is_any = false;
    for (size_t i = 0; i < scan->n; i++)
        is_any = is_any || (!scan->items[i].is_left_out && has_width(&scan->items[i]));
    size_t n = 0;
    const char *first = NULL;
    bool is_said = options->n_input_sigmas || options->n_input_profiles;
    for (size_t i = 0; is_any && i < scan->n; i++) {
        struct candidate *candidate = &scan->items[i];
        bool is_asked_for = candidate->is_raw_inside ? scan->asks_for_raw : is_said;
        if (candidate->is_left_out || has_width(candidate) || is_asked_for)
            continue;
        candidate->is_left_out = true;
        first = first ? first : candidate->label;
        n++;
    }
    if (n)
        discover_note(scan,
                      "left out: '%s'%s, whose width nothing says; raw parameters are taken with "
                      "--input-profile raw",
                      first, n > 1 ? " and others" : "");
}

PHEMA_FALLIBLE choose_candidates(struct discovery *scan, const struct phema_series_options *options,
                                 struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    leave_out_described(scan);
    leave_out_training_states(scan);
    for (size_t i = 0; !status && i < scan->n; i++)
        if (!scan->items[i].is_left_out)
            status = look_inside(scan, options, &scan->items[i], err);
    if (!status && scan->layout != &layout_manifest && !options->needs_no_profiles)
        leave_out_raw(scan, options);
    if (!status)
        status = check_prefixes(scan, options, err);
    return status ? status : choose_times(scan, options, err);
}
