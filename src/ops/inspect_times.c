// SPDX-License-Identifier: Apache-2.0
/* inspect_times.c - runs of equal steps, gaps, missing and duplicate snapshots; errors to expect; what a
 * design had planned. Times are compared as file names write them. */
#include "phema/inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "listener.h"
#include "phema/design_question.h"
#include "phema/setting.h"
#include "phema/sort.h"

#define MOST_KINDS 64 /* bits; no series has had more than a handful */

/* Of steps that are sums of decimals; and of those that are no whole numbers, from this size on,
 * where names have whole ones. */
#define STEP_SLACK    1e-6
#define LEAST_ROUNDED 10

/* Arrays in the arena of the times. */
struct finding {
    struct inspect_times *times;
    size_t *kind_of;     /* [series->n] */
    size_t *first_of;    /* [n_times + 1] the first snapshot of each time */
    double *differences; /* [n_times] of each time to the next */
    uint64_t *kinds;     /* [n_times] bits of those at each time */
};

static char *name_kind(struct phema_arena *arena, const struct phema_snapshot *snapshot)
{
    struct phema_name_buffer shown;
    if (!snapshot->spec)
        (void)strcpy(shown.text, "unknown");
    else if (isnan(snapshot->sigma_rel))
        (void)phema_name_show(&shown, snapshot->spec);
    else
        (void)snprintf(shown.text, sizeof(shown.text), "%.6g", snapshot->sigma_rel);
    return phema_arena_copy(arena, shown.text, strlen(shown.text));
}

/* Adds a kind, in the order of the widths, when kinds of the first n snapshots are known. */
static size_t insert_kind(struct finding *finding, size_t n, const char *name, double width)
{
    struct inspect_times *times = finding->times;
    size_t at = times->n_kinds++;
    for (; at > 0 && times->widths[at - 1] > width; at--) {
        times->kinds[at] = times->kinds[at - 1];
        times->widths[at] = times->widths[at - 1];
    }
    for (size_t k = 0; k < n; k++)
        finding->kind_of[k] += finding->kind_of[k] >= at;
    times->kinds[at] = name;
    times->widths[at] = width;
    return at;
}

/* By width, then other shapes in the order of the series. The snapshots of one time are in that
 * order already. */
static enum phema_status find_kinds(struct finding *finding, struct phema_error *err)
{
    struct inspect_times *times = finding->times;
    const struct phema_series *series = times->series;
    times->kinds = phema_arena_array(&times->arena, MOST_KINDS, sizeof(*times->kinds));
    times->widths = phema_arena_array(&times->arena, MOST_KINDS, sizeof(*times->widths));
    if (!times->kinds || !times->widths)
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++) {
        const char *name = name_kind(&times->arena, &series->snapshots[k]);
        double width = series->snapshots[k].sigma_rel;
        size_t i = 0;
        if (!name)
            return phema_fail_memory(err);
        while (i < times->n_kinds && strcmp(times->kinds[i], name) != 0)
            i++;
        if (i == MOST_KINDS)
            i--;
        if (i == times->n_kinds)
            i = insert_kind(finding, k, name, width);
        finding->kind_of[k] = i;
    }
    return PHEMA_OK;
}

static double time_at(const struct finding *finding, size_t t)
{
    return finding->times->series->snapshots[finding->first_of[t]].named_time;
}

static void find_first(struct finding *finding)
{
    const struct phema_series *series = finding->times->series;
    size_t n = 0;
    for (size_t k = 0; k < series->n; k++)
        if (k == 0 || series->snapshots[k].named_time != series->snapshots[k - 1].named_time)
            finding->first_of[n++] = k;
    finding->first_of[n] = series->n;
    finding->times->n_times = n;
}

static bool is_step(double difference, double step)
{
    double slack = step >= LEAST_ROUNDED ? fmax(1, STEP_SLACK * step) : STEP_SLACK * step;
    return fabs(difference - step) <= slack;
}

/* The mean of the steps that at least half of the times have. */
static double find_step(const struct finding *finding)
{
    double step = PHEMA_UNKNOWN, *differences = finding->differences;
    size_t n = finding->times->n_times ? finding->times->n_times - 1 : 0;
    size_t most = (n + 1) / 2;
    for (size_t t = 0; t < n; t++)
        differences[t] = time_at(finding, t + 1) - time_at(finding, t);
    qsort(differences, n, sizeof(*differences), phema_compare_doubles);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        double sum = 0;
        while (end < n && is_step(differences[end], differences[i]))
            sum += differences[end++];
        if (end - i >= most) {
            most = end - i + 1;
            step = sum / (double)(end - i);
        }
        i = end;
    }
    return step;
}

/* A multiple of the step is a gap; anything else is another step. */
static void find_gaps(struct finding *finding)
{
    struct inspect_times *times = finding->times;
    for (size_t t = 0; t + 1 < times->n_times && !isnan(times->step); t++) {
        double from = time_at(finding, t), to = time_at(finding, t + 1);
        double n = round((to - from) / times->step);
        if (n > 1 && n < 1e9 && is_step(to - from, n * times->step))
            times->gaps[times->n_gaps++] = (struct inspect_gap){from, to, (size_t)n - 1};
    }
}

/* The kinds at one time as bits; a kind that occurs twice is recorded as a duplicate. */
static uint64_t find_kinds_at(struct finding *finding, size_t t)
{
    struct inspect_times *times = finding->times;
    uint64_t kinds = 0;
    for (size_t k = finding->first_of[t]; k < finding->first_of[t + 1]; k++) {
        uint64_t bit = (uint64_t)1 << finding->kind_of[k];
        if ((kinds & bit) && times->series->snapshots[k].spec) {
            size_t of = k;
            while (finding->kind_of[--of] != finding->kind_of[k])
                continue;
            times->duplicates[times->n_duplicates++] = (struct inspect_duplicate){
                times->series->snapshots[k].label, times->series->snapshots[of].label};
        }
        kinds |= bit;
    }
    return kinds;
}

/* Reported only where most times have the kind; an occasional raw snapshot is no pattern. */
static void find_missing(const struct finding *finding)
{
    struct inspect_times *times = finding->times;
    for (size_t i = 0; i < times->n_kinds; i++) {
        size_t n = 0;
        for (size_t t = 0; t < times->n_times; t++)
            n += finding->kinds[t] >> i & 1;
        for (size_t t = 0; t < times->n_times && 2 * n > times->n_times; t++)
            if (!(finding->kinds[t] >> i & 1))
                times->missing[times->n_missing++] =
                    (struct inspect_missing){time_at(finding, t), times->kinds[i]};
    }
}

static uint64_t bytes_at(const struct finding *finding, size_t t)
{
    uint64_t bytes = 0;
    for (size_t k = finding->first_of[t]; k < finding->first_of[t + 1]; k++) {
        const struct phema_snapshot *snapshot = &finding->times->series->snapshots[k];
        if (!snapshot->is_checkpoint_shared)
            bytes += phema_snapshot_bytes(snapshot);
    }
    return bytes;
}

/* True when time t continues the run. */
static bool continues(const struct finding *finding, const struct inspect_run *run, size_t t)
{
    double step = finding->times->step;
    return run->kinds == finding->kinds[t] &&
           (isnan(step) || is_step(time_at(finding, t) - run->to, step));
}

static void find_runs(const struct finding *finding)
{
    struct inspect_times *times = finding->times;
    for (size_t t = 0; t < times->n_times; t++) {
        uint64_t bytes = bytes_at(finding, t);
        double at = time_at(finding, t);
        bool is_new = times->n_runs == 0 || !continues(finding, &times->runs[times->n_runs - 1], t);
        times->n_runs += is_new;
        struct inspect_run *run = &times->runs[times->n_runs - 1];
        if (is_new)
            *run = (struct inspect_run){
                .from = at, .every = PHEMA_UNKNOWN, .kinds = finding->kinds[t]};
        else
            run->every = isnan(times->step) ? 0 : times->step;
        run->to = at;
        run->n_snapshots += finding->first_of[t + 1] - finding->first_of[t];
        run->size_bytes += bytes;
        times->size_bytes += bytes;
    }
}

static bool make_room(struct finding *finding)
{
    struct inspect_times *times = finding->times;
    struct phema_arena *arena = &times->arena;
    size_t n = times->n_times;
    finding->differences = phema_arena_array(arena, n, sizeof(*finding->differences));
    finding->kinds = phema_arena_array(arena, n, sizeof(*finding->kinds));
    times->runs = phema_arena_array(arena, n, sizeof(*times->runs));
    times->gaps = phema_arena_array(arena, n, sizeof(*times->gaps));
    times->missing = phema_arena_array(arena, n * times->n_kinds, sizeof(*times->missing));
    times->duplicates = phema_arena_array(arena, times->series->n, sizeof(*times->duplicates));
    return finding->differences && finding->kinds && times->runs && times->gaps && times->missing &&
           times->duplicates;
}

static enum phema_status fill(struct inspect_times *times, struct phema_error *err)
{
    struct finding finding = {.times = times};
    size_t n = times->series->n + 1;
    finding.kind_of = phema_arena_array(&times->arena, n, sizeof(*finding.kind_of));
    finding.first_of = phema_arena_array(&times->arena, n, sizeof(*finding.first_of));
    if (!finding.kind_of || !finding.first_of)
        return phema_fail_memory(err);
    enum phema_status status = find_kinds(&finding, err);
    if (status)
        return status;
    find_first(&finding);
    if (!make_room(&finding))
        return phema_fail_memory(err);
    times->step = find_step(&finding);
    for (size_t t = 0; t < times->n_times; t++)
        finding.kinds[t] = find_kinds_at(&finding, t);
    find_gaps(&finding);
    find_missing(&finding);
    find_runs(&finding);
    return PHEMA_OK;
}

PHEMA_FALLIBLE inspect_times_find(struct inspect_times *out, const struct phema_series *series,
                                  struct phema_error *err)
{
    *out = (struct inspect_times){.series = series, .step = PHEMA_UNKNOWN};
    enum phema_status status = fill(out, err);
    if (status)
        inspect_times_clear(out);
    return status;
}

void inspect_times_clear(struct inspect_times *times)
{
    phema_arena_clear(&times->arena);
    *times = (struct inspect_times){0};
}

/* ---- Predicted errors ---- */

static enum phema_status predict_errors(struct inspect_errors *out,
                                        const struct phema_series *series,
                                        const struct phema_motion *motion, struct phema_error *err)
{
    if (out->checks.verdict == PHEMA_SERIES_WRONG) {
        return phema_series_fail_wrong(series, &out->checks, &out->why) == PHEMA_ERR_RESOURCE
                   ? phema_fail_memory(err)
                   : PHEMA_OK;
    }
    for (size_t i = 0; i < INSPECT_N_WIDTHS; i++)
        out->widths[i] = (INSPECT_FIRST_WIDTH + (double)i * INSPECT_BETWEEN_WIDTH) / 1000;
    enum phema_status status = phema_series_errors(out->values, &out->every, series, motion,
                                                   out->widths, INSPECT_N_WIDTHS, &out->why);
    if (status == PHEMA_ERR_RESOURCE)
        return phema_fail(err, status, "%s: %s", series->root, out->why.message);
    if (status)
        return PHEMA_OK;
    for (size_t i = 0; i < INSPECT_N_WIDTHS; i++) {
        if (!(out->values[i] > 0) || !isfinite(out->values[i]))
            return PHEMA_OK;
        out->least = out->values[i] < out->values[out->least] ? i : out->least;
        out->most = out->values[i] > out->values[out->most] ? i : out->most;
    }
    out->is_known = true;
    out->is_rough = !motion || out->every > 1;
    return PHEMA_OK;
}

static enum phema_status find_errors(struct inspect_errors *out, struct phema_series *series,
                                     const struct phema_series_options *options,
                                     struct phema_error *err)
{
    struct phema_error why = {0};
    struct phema_motion motion = {0};
    enum phema_status status = phema_series_check(&out->checks, &motion, series, options, &why);
    if (status && status != PHEMA_NO) /* nothing is known where there is no sample */
        status = phema_fail(err, status, "%s", why.message);
    else
        status = predict_errors(out, series, status ? NULL : &motion, err);
    phema_motion_clear(&motion);
    return status;
}

/* ---- Beside a design ---- */

/* Labels of trainers: three decimals, or a fraction of five digits. */
#define SAME_WIDTH 1e-3

/* Time as designs count it. EDM2 names images by thousands. */
static double find_time(const struct phema_series *series, size_t k)
{
    const struct phema_snapshot *snapshot = &series->snapshots[k];
    return strcmp(series->unit, "images") == 0 ? snapshot->time : snapshot->named_time;
}

/* torchtitan keeps power functions by the fraction f of a half-life, with the exponent ln 2/f -
 * 1. */
#define TITAN_FRACTION 0.05 /* its default */

static double find_width(const struct phema_snapshot *snapshot)
{
    const char *spec = snapshot->spec;
    if (!spec || strncmp(spec, "titan", 5) != 0 || strstr(spec, "decay="))
        return snapshot->sigma_rel;
    const char *given = strstr(spec, "fraction=");
    double fraction = given ? strtod(given + strlen("fraction="), NULL) : TITAN_FRACTION;
    return phema_sigma_rel_from_gamma(M_LN2 / fraction - 1);
}

static bool is_of_kind(const struct phema_snapshot *snapshot, const struct design_read *design,
                       size_t kind)
{
    if (kind < design->n)
        return fabs(find_width(snapshot) / design->sigma_rels[kind] - 1) < SAME_WIDTH;
    return snapshot->kind &&
           (design->ema && kind == design->n ? snapshot->profile.shape == PHEMA_SHAPE_EMA
                                             : snapshot->profile.shape == PHEMA_SHAPE_RAW);
}

/* At the time, or where steps may pass it, before the next one. */
static bool is_stored(const struct phema_series *series, const struct design_read *design, size_t i,
                      size_t kind)
{
    double time = (double)design->times[i];
    double next = i + 1 < design->n_times ? (double)design->times[i + 1] : HUGE_VAL;
    for (size_t k = 0; k < series->n; k++) {
        double found = find_time(series, k);
        if ((design->counts_steps ? found == time : found >= time && found < next) &&
            is_of_kind(&series->snapshots[k], design, kind))
            return true;
    }
    return false;
}

static enum phema_status find_design(struct inspect_design *out, const struct phema_series *series,
                                     const char *path, struct phema_error *err)
{
    struct design_read design;
    out->next = PHEMA_UNKNOWN;
    enum phema_status status = design_read_file(&design, &out->arena, path, err);
    size_t n_kinds = design.n + (design.ema != NULL) + design.has_raw, n_found = 0;
    double newest = series->n ? find_time(series, series->n - 1) : 0;
    if (!status) {
        out->missed =
            phema_arena_array(&out->arena, design.n_times * n_kinds + 1, sizeof(*out->missed));
        status = out->missed ? PHEMA_OK : phema_fail_memory(err);
    }
    if (status)
        return phema_fail_in_setting(err, status, PHEMA_SET_DESIGN);
    out->n_planned = design.n_times * n_kinds;
    for (size_t i = 0; i < design.n_times; i++) {
        bool is_due = (double)design.times[i] <= newest;
        if (!is_due && isnan(out->next))
            out->next = (double)design.times[i];
        for (size_t kind = 0; is_due && kind < n_kinds; kind++) {
            if (is_stored(series, &design, i, kind))
                n_found++;
            else
                out->missed[out->n_missed++] = (struct inspect_missed){
                    (double)design.times[i],
                    kind < design.n ? design.sigma_rels[kind] : PHEMA_UNKNOWN};
        }
    }
    out->n_stored = n_found;
    out->n_others = series->n - n_found;
    return PHEMA_OK;
}

/* ---- All of a series ---- */

PHEMA_FALLIBLE inspect_series_find(struct inspect_findings *out, struct phema_series *series,
                                   const struct phema_series_options *options, const char *design,
                                   const struct phema_listener *listener, struct phema_error *err)
{
    *out = (struct inspect_findings){.has_design = design != NULL};
    enum phema_status status = inspect_times_find(&out->times, series, err);
    if (status)
        return status;
    listener_stage(listener, "checking the snapshots");
    status = find_errors(&out->errors, series, options, err);
    listener_stage(listener, NULL);
    if (!status && design)
        status = find_design(&out->design, series, design, err);
    if (!status)
        status = inspect_summarise_series(&out->summary, series, err);
    if (status)
        inspect_findings_clear(out);
    return status;
}

void inspect_findings_clear(struct inspect_findings *findings)
{
    inspect_summary_clear(&findings->summary);
    inspect_times_clear(&findings->times);
    phema_series_checks_clear(&findings->errors.checks);
    phema_arena_clear(&findings->design.arena);
}
