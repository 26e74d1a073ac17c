// SPDX-License-Identifier: Apache-2.0
/* series_checks.c - compares snapshots with their labels, and names the labels that would fit.
 * A hypothesis is another assignment of labels to rows of the sample. It is judged as the given
 * labels are: the motion is fitted anew, and each snapshot is compared with what the others
 * predict. */
#include "series_checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/sort.h"
#include "phema/strbuf.h"

/* The largest z of 72 series with true labels is 0.96 to 2.5, and the median 0.7 to 1.3
 * (docs/numerics.md). Of wrong ones, the largest is 3.6 to 4e6, or the median is above 2. */
#define WRONG_Z        3.5
#define WRONG_MEDIAN_Z 2.0
#define EVENT_Z        2.5

/* Labels explain a wrong series if they fit as well as those of honest ones. */
#define EXPLAINED_Z        2.0
#define EXPLAINED_MEDIAN_Z 1.5
#define ROUGH_Z            5.0 /* under the simplest motion */

/* The least median of these series is 0.87. Only where rounding exceeds motion it is smaller. Averages
 * labelled as raw, or as shorter ones, have 0.2 to 0.8. Labels explain such a series if their median
 * is not as small, and if they are likeliest: the largest z hardly tells them apart. */
#define SMOOTH_MEDIAN_Z          0.5
#define EXPLAINED_LEAST_MEDIAN_Z 0.75
#define LIKELIER                 0.02 /* an element */

/* With fewer elements, z itself scatters: by 1 / sqrt(2 elements) and more. */
#define LEAST_ELEMENTS 64

#define NEAR         ((size_t)8) /* times on each side that a hypothesis about one snapshot looks at */
#define MOST         ((size_t)48) /* snapshots, the newest, that a hypothesis about all looks at */
#define FIRST_LOOK   ((size_t)16) /* of them, the newest: most hypotheses fail here already */
#define N_CANDIDATES ((size_t)3)  /* snapshots tried */
#define CLEARLY      0.7          /* of the z of the best labels before */

/* Steps that profiles with an update_every are followed in a hypothesis, at most: all of them
 * then take some four seconds. */
#define MOST_STEPS 2e6

/* Defaults and usual choices of EDM2, ema-pytorch and others. */
static const double usual_widths[] = {0.03, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.28};
static const double usual_decays[] = {0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99995, 0.99999};
static const uint64_t usual_updates[] = {1, 2, 5, 10, 20, 50, 100};

/* ---- Labels and their fit ---- */

struct labels {
    struct phema_profile *profiles; /* [n] by time */
    size_t *rows;                   /* [n] of the sample */
    size_t n;
};

struct fit {
    struct phema_motion motion;
    double *z;
    double *largest_without; /* [n]; NULL: not asked for */
    double max_z, median_z, likelihood;
    struct phema_tensor_outlier outlier;
};

enum comparison {
    COMPARE_NOTHING,
    COMPARE_ROUGHLY, /* under the simplest motion */
    COMPARE_SNAPSHOTS,
    COMPARE_AND_LEAVE_OUT
};

static bool labels_alloc(struct labels *labels, size_t n)
{
    *labels = (struct labels){calloc(n + 1, sizeof(*labels->profiles)),
                              calloc(n + 1, sizeof(*labels->rows)), 0};
    return labels->profiles && labels->rows;
}

static void labels_clear(struct labels *labels)
{
    free(labels->profiles);
    free(labels->rows);
}

static void fit_clear(struct fit *fit)
{
    phema_motion_clear(&fit->motion);
    free(fit->z);
    free(fit->largest_without);
    *fit = (struct fit){.max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN};
}

/* Sets max_z and median_z; NaN where nothing could be compared. */
static enum phema_status rate(struct fit *fit, size_t n, struct phema_error *err)
{
    double *sorted = calloc(n + 1, sizeof(*sorted));
    if (!sorted)
        return phema_fail_memory(err);
    size_t n_known = 0;
    for (size_t k = 0; k < n; k++)
        if (!isnan(fit->z[k]))
            sorted[n_known++] = fit->z[k];
    qsort(sorted, n_known, sizeof(*sorted), phema_compare_doubles);
    fit->max_z = n_known ? sorted[n_known - 1] : PHEMA_UNKNOWN;
    fit->median_z = n_known ? sorted[n_known / 2] : PHEMA_UNKNOWN;
    free(sorted);
    return PHEMA_OK;
}

static enum phema_status measure_distances(struct phema_distance **distances, size_t *n_distances,
                                           const struct labels *labels,
                                           const struct phema_sample *sample,
                                           struct phema_error *err)
{
    enum phema_status status =
        phema_motion_pairs(distances, n_distances, labels->profiles, labels->n, err);
    for (size_t d = 0; !status && d < *n_distances; d++) {
        struct phema_distance *distance = &(*distances)[d];
        distance->square =
            phema_sample_distance(sample, labels->rows[distance->i], labels->rows[distance->j]);
    }
    return status;
}

static struct phema_sample_rows rows_of(const struct phema_sample *sample,
                                        const struct labels *labels)
{
    return (struct phema_sample_rows){.values = sample->values,
                                      .order = labels->rows,
                                      .n_elems = sample->n_elems,
                                      .mean_square = sample->mean_square,
                                      .tensors = sample->tensors,
                                      .spacings = sample->spacings};
}

static enum phema_status fit_motion(struct fit *fit, const struct labels *labels,
                                    const double *rounding, const struct phema_sample *sample,
                                    bool is_rough, struct phema_error *err)
{
    struct phema_distance *distances = NULL;
    size_t n_distances = 0;
    enum phema_status status = measure_distances(&distances, &n_distances, labels, sample, err);
    if (status)
        return status;
    const struct phema_sample_rows rows = rows_of(sample, labels);
    const struct phema_motion_data data = {.snapshots = labels->profiles,
                                           .rounding = rounding,
                                           .n = labels->n,
                                           .distances = distances,
                                           .n_distances = n_distances,
                                           .sample = is_rough ? NULL : &rows};
    status = phema_motion_fit(&fit->motion, &data, err);
    free(distances);
    return status;
}

static enum phema_status compare(struct fit *fit, const struct labels *labels,
                                 const double *rounding, const struct phema_sample *sample,
                                 enum comparison comparison, struct phema_error *err)
{
    bool leaves_out = comparison == COMPARE_AND_LEAVE_OUT;
    fit->z = calloc(labels->n + 1, sizeof(*fit->z));
    if (leaves_out)
        fit->largest_without = calloc(labels->n + 1, sizeof(*fit->largest_without));
    if (!fit->z || (leaves_out && !fit->largest_without))
        return phema_fail_memory(err);
    struct phema_leave_one_out out = {
        .z = fit->z, .largest_without = fit->largest_without, .limit = WRONG_Z};
    struct phema_problem problem = {.snapshots = labels->profiles,
                                    .rounding = rounding,
                                    .n = labels->n,
                                    .motion = &fit->motion};
    struct phema_sample_rows rows = rows_of(sample, labels);
    if (!leaves_out)
        rows.tensors = NULL;
    enum phema_status status = phema_leave_one_out(&out, &problem, &rows, err);
    fit->outlier = out.outlier;
    fit->likelihood = out.likelihood;
    return status ? status : rate(fit, labels->n, err);
}

/* PHEMA_NO: no motion can be fitted. */
static enum phema_status fit_labels(struct fit *fit, const struct labels *labels,
                                    const struct phema_sample *sample, enum comparison comparison,
                                    struct phema_error *err)
{
    *fit = (struct fit){.max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN};
    double *rounding = calloc(labels->n + 1, sizeof(*rounding));
    if (!rounding)
        return phema_fail_memory(err);
    for (size_t k = 0; k < labels->n; k++)
        rounding[k] = sample->rounding[labels->rows[k]];
    enum phema_status status =
        fit_motion(fit, labels, rounding, sample, comparison == COMPARE_ROUGHLY, err);
    if (!status && comparison != COMPARE_NOTHING)
        status = compare(fit, labels, rounding, sample, comparison, err);
    free(rounding);
    if (status)
        fit_clear(fit);
    return status;
}

static bool is_wrong(const struct fit *fit)
{
    return fit->max_z > WRONG_Z || fit->median_z > WRONG_MEDIAN_Z;
}

/* ---- Hypotheses ---- */

struct search {
    const struct phema_series *series;
    const struct phema_sample *sample;
    struct phema_series_checks *checks;
    size_t *group; /* [n + 1] first snapshot of each time, then n */
    size_t n_groups;
    struct labels tried;
    double best; /* the largest z of the best explanation so far */
    /* the likelihood of the best; NaN: labels are rated by their largest z */
    double likelihood;
    struct phema_strbuf text; /* of the best */
    size_t suspect;           /* of the best; SIZE_MAX: none alone */
};

static const char *label_of(const struct search *search, size_t k)
{
    return search->series->snapshots[k].label;
}

/* The labels given to the snapshots of some times. */
static void reset(struct search *search, size_t first_group, size_t end_group)
{
    struct labels *tried = &search->tried;
    tried->n = 0;
    for (size_t k = search->group[first_group]; k < search->group[end_group]; k++) {
        tried->profiles[tried->n] = search->series->snapshots[k].profile;
        tried->rows[tried->n++] = k;
    }
}

static size_t group_of(const struct search *search, size_t k)
{
    size_t g = 0;
    while (search->group[g + 1] <= k)
        g++;
    return g;
}

static size_t near_begin(size_t g)
{
    return g > NEAR ? g - NEAR : 0;
}

static size_t near_end(const struct search *search, size_t g)
{
    return g + NEAR < search->n_groups ? g + NEAR + 1 : search->n_groups;
}

static size_t newest_begin(const struct search *search)
{
    size_t g = search->n_groups;
    while (g > 0 && search->series->n - search->group[g - 1] <= MOST)
        g--;
    return g;
}

/* fit: without numbers where no series can have the labels. */
static enum phema_status fit_hypothesis(struct fit *fit, const struct labels *labels,
                                        const struct search *search, enum comparison comparison,
                                        struct phema_error *err)
{
    struct phema_error ignored = {""};
    enum phema_status status = fit_labels(fit, labels, search->sample, comparison, &ignored);
    if (status == PHEMA_ERR_RESOURCE)
        return phema_fail(err, status, "%s", ignored.message);
    return PHEMA_OK;
}

static enum phema_status fails_first_look(bool *fails, const struct search *search,
                                          struct phema_error *err)
{
    const struct labels *tried = &search->tried;
    size_t n = tried->n < FIRST_LOOK ? tried->n : FIRST_LOOK, first = tried->n - n;
    struct fit fit;
    struct labels newest = {tried->profiles + first, tried->rows + first, n};
    enum phema_status status = fit_hypothesis(&fit, &newest, search, COMPARE_ROUGHLY, err);
    *fails = !status && (fit.max_z > ROUGH_Z || fit.median_z > WRONG_MEDIAN_Z);
    fit_clear(&fit);
    return status;
}

/* *max_z and *likelihood of the tried labels; HUGE_VAL and -HUGE_VAL where they do not fit. */
static enum phema_status rate_tried(double *max_z, double *likelihood, struct search *search,
                                    struct phema_error *err)
{
    *max_z = HUGE_VAL;
    *likelihood = -HUGE_VAL;
    bool fails = search->tried.n < 3;
    enum phema_status status = fails ? PHEMA_OK : fails_first_look(&fails, search, err);
    if (status || fails)
        return status;
    struct fit fit;
    status = fit_hypothesis(&fit, &search->tried, search, COMPARE_SNAPSHOTS, err);
    if (!status && fit.max_z <= EXPLAINED_Z && fit.median_z <= EXPLAINED_MEDIAN_Z) {
        *max_z = fit.max_z;
        if (fit.median_z >= EXPLAINED_LEAST_MEDIAN_Z)
            *likelihood = fit.likelihood;
    }
    fit_clear(&fit);
    return status;
}

/* Whether the tried labels fit, and better than all before. */
static enum phema_status try_labels(bool *is_better, struct search *search, struct phema_error *err)
{
    double max_z, likelihood;
    bool is_by_z = isnan(search->likelihood);
    enum phema_status status = rate_tried(&max_z, &likelihood, search, err);
    *is_better = !status && (is_by_z ? max_z < CLEARLY * search->best
                                     : likelihood > search->likelihood + LIKELIER);
    if (*is_better && is_by_z)
        search->best = max_z;
    else if (*is_better)
        search->likelihood = likelihood;
    return status;
}

/* Begins the sentence of the best explanation. */
static struct phema_strbuf *explain(struct search *search, size_t suspect)
{
    phema_strbuf_clear(&search->text);
    search->suspect = suspect;
    return &search->text;
}

static void exchange(size_t *rows, size_t a, size_t b)
{
    size_t row = rows[a];
    rows[a] = rows[b];
    rows[b] = row;
}

/* ---- One snapshot ---- */

/* The neighbour whose numbers are the same; k: none. */
static size_t find_copy(const struct search *search, size_t k)
{
    for (size_t other = 0; other < search->series->n; other++)
        if (other != k && phema_sample_distance(search->sample, k, other) == 0)
            return other;
    return k;
}

static enum phema_status try_without(struct search *search, size_t k, struct phema_error *err)
{
    size_t g = group_of(search, k);
    reset(search, near_begin(g), near_end(search, g));
    struct labels *tried = &search->tried;
    size_t at = k - search->group[near_begin(g)];
    for (size_t i = at; i + 1 < tried->n; i++) {
        tried->profiles[i] = tried->profiles[i + 1];
        tried->rows[i] = tried->rows[i + 1];
    }
    tried->n--;
    bool is_better;
    enum phema_status status = try_labels(&is_better, search, err);
    if (status || !is_better)
        return status;
    size_t copy = find_copy(search, k);
    if (copy != k)
        phema_strbuf_printf(explain(search, k), "'%s' is a copy of '%s'", label_of(search, k),
                            label_of(search, copy));
    else
        phema_strbuf_printf(explain(search, k),
                            "'%s' does not fit the others: it is damaged, or of another training",
                            label_of(search, k));
    return PHEMA_OK;
}

/* Two snapshots of one time. */
static enum phema_status try_exchanges_within(struct search *search, size_t g,
                                              struct phema_error *err)
{
    size_t base = search->group[near_begin(g)];
    for (size_t a = search->group[g]; a < search->group[g + 1]; a++) {
        for (size_t b = a + 1; b < search->group[g + 1]; b++) {
            reset(search, near_begin(g), near_end(search, g));
            exchange(search->tried.rows, a - base, b - base);
            bool is_better;
            enum phema_status status = try_labels(&is_better, search, err);
            if (status)
                return status;
            if (is_better)
                phema_strbuf_printf(explain(search, a), "'%s' and '%s' are exchanged",
                                    label_of(search, a), label_of(search, b));
        }
    }
    return PHEMA_OK;
}

/* All snapshots of a time and of the next one. */
static enum phema_status try_exchange_of_times(struct search *search, size_t g,
                                               struct phema_error *err)
{
    const size_t *group = search->group;
    size_t n = group[g + 1] - group[g];
    if (g + 1 >= search->n_groups || group[g + 2] - group[g + 1] != n)
        return PHEMA_OK;
    size_t base = group[near_begin(g)];
    reset(search, near_begin(g), near_end(search, g));
    for (size_t i = 0; i < n; i++)
        exchange(search->tried.rows, group[g] + i - base, group[g + 1] + i - base);
    bool is_better;
    enum phema_status status = try_labels(&is_better, search, err);
    if (!status && is_better)
        phema_strbuf_printf(explain(search, group[g]),
                            "the snapshots of times %.10g and %.10g are exchanged",
                            search->series->snapshots[group[g]].named_time,
                            search->series->snapshots[group[g + 1]].named_time);
    return status;
}

/* ---- All snapshots ---- */

static bool has_same_width(const struct phema_profile *a, const struct phema_profile *b)
{
    return a->shape == b->shape && (a->shape != PHEMA_SHAPE_POWER || a->gamma == b->gamma) &&
           (a->shape != PHEMA_SHAPE_EMA || a->half_life == b->half_life);
}

/* Snapshots at each time, if all times have the same profiles but for their ends; else 0. */
static size_t common_group(const struct search *search)
{
    const struct phema_snapshot *snapshots = search->series->snapshots;
    size_t n = search->group[1];
    for (size_t g = 0; g < search->n_groups; g++) {
        if (search->group[g + 1] - search->group[g] != n)
            return 0;
        for (size_t i = 0; i < n; i++) {
            const struct phema_profile *first = &snapshots[i].profile;
            const struct phema_profile *other = &snapshots[search->group[g] + i].profile;
            if (!has_same_width(first, other) || first->update_every != other->update_every)
                return 0;
        }
    }
    return n;
}

static void print_width(struct phema_strbuf *text, const struct phema_profile *profile)
{
    if (profile->shape == PHEMA_SHAPE_RAW)
        phema_strbuf_puts(text, "raw");
    else if (profile->shape == PHEMA_SHAPE_EMA)
        phema_strbuf_printf(text, "ema:decay=%.6g", exp2(-1 / profile->half_life));
    else
        phema_strbuf_printf(text, "%.4g", phema_sigma_rel_from_gamma(profile->gamma));
}

static enum phema_status say_widths(struct search *search, size_t n, struct phema_error *err)
{
    struct phema_strbuf fit = {0}, given = {0};
    bool are_widths = true;
    for (size_t i = 0; i < n; i++) {
        are_widths = are_widths && search->tried.profiles[i].shape == PHEMA_SHAPE_POWER;
        phema_strbuf_puts(&fit, i ? "," : "");
        phema_strbuf_puts(&given, i ? "," : "");
        print_width(&fit, &search->tried.profiles[i]);
        print_width(&given, &search->series->snapshots[i].profile);
    }
    enum phema_status status = phema_strbuf_check(&fit, err);
    if (!status)
        status = phema_strbuf_check(&given, err);
    const char *kind = are_widths ? "sigma_rel " : "";
    if (!status && isnan(search->likelihood))
        phema_strbuf_printf(explain(search, SIZE_MAX), "the snapshots fit %s%s, not %s", kind,
                            fit.data, given.data);
    else if (!status)
        phema_strbuf_printf(
            explain(search, SIZE_MAX),
            "neighbouring snapshots are more alike than the label %s says: they fit %s%s",
            given.data, kind, fit.data);
    phema_strbuf_clear(&fit);
    phema_strbuf_clear(&given);
    return status;
}

static enum phema_status try_widths(struct search *search, const struct phema_profile *widths,
                                    size_t n, struct phema_error *err)
{
    reset(search, newest_begin(search), search->n_groups);
    for (size_t k = 0; k < search->tried.n; k++) {
        struct phema_profile *profile = &search->tried.profiles[k], given = *profile;
        bool is_raw = widths[k % n].shape == PHEMA_SHAPE_RAW;
        *profile = widths[k % n];
        profile->t = given.t;
        profile->reset = is_raw ? 0 : given.reset;
        profile->origin = is_raw ? 0 : given.origin;
    }
    bool is_given = true;
    for (size_t i = 0; i < n; i++)
        is_given = is_given && has_same_width(&widths[i], &search->series->snapshots[i].profile);
    bool is_better = false;
    enum phema_status status = is_given ? PHEMA_OK : try_labels(&is_better, search, err);
    return !status && is_better ? say_widths(search, n, err) : status;
}

/* Sets a profile to the next usual one, which keeps its end; false: there are no more. */
static bool set_usual(struct phema_profile *profile, size_t index)
{
    struct phema_profile usual = {.t = profile->t, .update_every = profile->update_every};
    struct phema_error ignored;
    size_t n_widths = ARRAY_LEN(usual_widths), n_decays = ARRAY_LEN(usual_decays);
    if (index > n_widths + n_decays)
        return false;
    if (index == n_widths + n_decays) {
        usual.shape = PHEMA_SHAPE_RAW;
    } else if (index >= n_widths) {
        usual.shape = PHEMA_SHAPE_EMA;
        usual.half_life = -M_LN2 / log(usual_decays[index - n_widths]);
    } else if (phema_gamma_from_sigma_rel(&usual.gamma, usual_widths[index], &ignored)) {
        return false; /* all are below the limit */
    }
    *profile = usual;
    return true;
}

/* Usual widths and decays in place of the label at one index, and for one more if n_more is 1. */
static enum phema_status try_usual(struct search *search, struct phema_profile *widths, size_t n,
                                   size_t from, size_t n_more, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = from; !status && i < n; i++) {
        struct phema_profile given = widths[i];
        for (size_t u = 0; !status && set_usual(&widths[i], u); u++)
            status = n_more ? try_usual(search, widths, n, i + 1, n_more - 1, err)
                            : try_widths(search, widths, n, err);
        widths[i] = given;
    }
    return status;
}

static enum phema_status try_orders(struct search *search, struct phema_profile *widths, size_t n,
                                    size_t from, struct phema_error *err)
{
    if (from + 1 >= n)
        return try_widths(search, widths, n, err);
    enum phema_status status = PHEMA_OK;
    for (size_t i = from; !status && i < n; i++) {
        struct phema_profile kept = widths[from];
        widths[from] = widths[i];
        widths[i] = kept;
        status = try_orders(search, widths, n, from + 1, err);
        widths[i] = widths[from];
        widths[from] = kept;
    }
    return status;
}

static enum phema_status try_updates(struct search *search, struct phema_error *err)
{
    const struct phema_series *series = search->series;
    double end = series->snapshots[series->n - 1].time;
    for (size_t i = 0; i < ARRAY_LEN(usual_updates) && end <= MOST_STEPS; i++) {
        reset(search, newest_begin(search), search->n_groups);
        bool is_other = false;
        for (size_t k = 0; k < search->tried.n; k++) {
            struct phema_profile *profile = &search->tried.profiles[k];
            uint64_t every = profile->update_every ? profile->update_every : 1;
            if (profile->shape != PHEMA_SHAPE_POWER)
                return PHEMA_OK;
            is_other |= every != usual_updates[i];
            profile->update_every = usual_updates[i];
        }
        bool is_better = false;
        enum phema_status status = is_other ? try_labels(&is_better, search, err) : PHEMA_OK;
        if (status)
            return status;
        if (is_better)
            phema_strbuf_printf(
                explain(search, SIZE_MAX),
                "the snapshots fit update_every %llu; if that is so, give --update-every %llu",
                (unsigned long long)usual_updates[i], (unsigned long long)usual_updates[i]);
    }
    return PHEMA_OK;
}

/* ---- Resets ---- */

#define N_PLACES 8 /* tried between two times; the best is then refined */
#define MOST_GROUPS                                                                                \
    6 /* after the first snapshot that does not fit; the averages before that suffer, too */

struct reset_guess {
    double named_time, max_z, likelihood;
    bool restarts_count;
    bool is_fit;
};

/* Rates the labels near a group where the averages were reset at a time before it. */
static enum phema_status rate_reset(struct reset_guess *guess, struct search *search, size_t g,
                                    struct phema_error *err)
{
    const struct phema_reset assumed = {phema_series_clock(search->series, guess->named_time),
                                        guess->restarts_count};
    struct phema_error ignored;
    guess->likelihood = -HUGE_VAL;
    reset(search, near_begin(g), near_end(search, g));
    for (size_t k = 0; k < search->tried.n; k++) {
        struct phema_profile *profile = &search->tried.profiles[k];
        if (profile->reset < assumed.at && phema_profile_reset(profile, &assumed, 1, &ignored))
            return PHEMA_OK;
    }
    struct fit fit;
    enum phema_status status = PHEMA_OK;
    if (assumed.at > 0 && search->tried.n >= 3)
        status = fit_hypothesis(&fit, &search->tried, search, COMPARE_ROUGHLY, err);
    else
        return status;
    if (!status && !isnan(fit.max_z)) {
        guess->max_z = fit.max_z;
        guess->likelihood = fit.likelihood;
        guess->is_fit = fit.max_z <= EXPLAINED_Z && fit.median_z <= EXPLAINED_MEDIAN_Z;
    }
    fit_clear(&fit);
    return status;
}

static enum phema_status try_place(struct reset_guess *best, double named_time,
                                   struct search *search, size_t g, struct phema_error *err)
{
    struct reset_guess guess = {.named_time = named_time, .restarts_count = best->restarts_count};
    enum phema_status status = rate_reset(&guess, search, g, err);
    if (!status && guess.likelihood > best->likelihood)
        *best = guess;
    return status;
}

/* Between the time before a group, whose snapshots are from before the reset, and the group. Places
 * are whole numbers where there are enough. */
static enum phema_status place_reset(struct reset_guess *best, struct search *search, size_t g,
                                     struct phema_error *err)
{
    const struct phema_snapshot *snapshots = search->series->snapshots;
    double begin = g ? snapshots[search->group[g] - 1].named_time : 0;
    double end = snapshots[search->group[g]].named_time;
    double step = (end - begin) / N_PLACES, least = step >= 1 ? 1 : step;
    enum phema_status status = PHEMA_OK;
    for (int i = 0; !status && i < N_PLACES; i++)
        status = try_place(best, begin + floor(i * step / least) * least, search, g, err);
    while (!status && step > least && isfinite(best->likelihood)) {
        step = fmax(floor(step / 2), least);
        double middle = best->named_time;
        if (middle - step >= begin)
            status = try_place(best, middle - step, search, g, err);
        if (!status && middle + step < end)
            status = try_place(best, middle + step, search, g, err);
    }
    return status;
}

/* The averages became copies of the parameters before a group. */
static enum phema_status try_reset(struct search *search, size_t g, struct phema_error *err)
{
    struct reset_guess best = {.likelihood = -HUGE_VAL};
    struct reset_guess counted = {.likelihood = -HUGE_VAL, .restarts_count = true};
    enum phema_status status = place_reset(&best, search, g, err);
    if (!status)
        status = place_reset(&counted, search, g, err);
    if (counted.likelihood > best.likelihood)
        best = counted;
    if (status || !best.is_fit || !(best.max_z < search->best))
        return status;
    search->best = best.max_z;
    struct phema_name_buffer at;
    (void)phema_number_format(&at, best.named_time);
    phema_strbuf_printf(explain(search, SIZE_MAX),
                        "the averages were reset near %s; if that is so, give --reset-at %s%s",
                        at.text, at.text, best.restarts_count ? ",counter" : "");
    return PHEMA_OK;
}

/* The first group that does not fit the times before it; n_groups: none. */
static enum phema_status find_onset(size_t *onset, struct search *search, const struct fit *fit,
                                    struct phema_error *err)
{
    size_t first = 0;
    while (first < search->series->n && !(fit->z[first] > EVENT_Z))
        first++;
    *onset = search->n_groups;
    size_t begin = first < search->series->n ? group_of(search, first) : search->n_groups;
    for (size_t g = begin; g < search->n_groups && g < begin + MOST_GROUPS; g++) {
        double max_z = 0, ignored;
        reset(search, near_begin(g), g + 1);
        enum phema_status status =
            search->tried.n < 3 ? PHEMA_OK : rate_tried(&max_z, &ignored, search, err);
        if (status)
            return status;
        if (isfinite(max_z))
            continue;
        *onset = g;
        break;
    }
    return PHEMA_OK;
}

static enum phema_status search_resets(struct search *search, const struct fit *fit,
                                       struct phema_error *err)
{
    size_t g = 0;
    enum phema_status status = find_onset(&g, search, fit, err);
    return status || g == search->n_groups ? status : try_reset(search, g, err);
}

/* The snapshots before a time, and those from it on, fit alone. */
static enum phema_status try_break(struct search *search, size_t g, struct phema_error *err)
{
    size_t first = near_begin(g), end = near_end(search, g);
    const struct phema_snapshot *snapshots = search->series->snapshots;
    if (g == 0 || search->group[g] - search->group[first] < 3 ||
        search->group[end] - search->group[g] < 3)
        return PHEMA_OK;
    double best = search->best;
    bool fits_before, fits_after = false;
    reset(search, first, g);
    enum phema_status status = try_labels(&fits_before, search, err);
    double before = search->best;
    search->best = best;
    if (!status && fits_before) {
        reset(search, g, end);
        status = try_labels(&fits_after, search, err);
    }
    search->best = fits_after ? fmax(before, search->best) : best;
    if (!status && fits_after)
        phema_strbuf_printf(explain(search, SIZE_MAX),
                            "something changed between times %.10g and %.10g: another training, or "
                            "an average that was reset",
                            snapshots[search->group[g] - 1].named_time,
                            snapshots[search->group[g]].named_time);
    return status;
}

/* ---- Search ---- */

/* The snapshots whose absence helps most, then those with the largest z. */
static void find_candidates(size_t candidates[N_CANDIDATES], const struct fit *fit, size_t n)
{
    for (size_t c = 0; c < N_CANDIDATES; c++) {
        size_t best = SIZE_MAX;
        for (size_t k = 0; k < n; k++) {
            bool is_taken = isnan(fit->largest_without[k]);
            for (size_t d = 0; d < c; d++)
                is_taken |= candidates[d] == k;
            if (!is_taken &&
                (best == SIZE_MAX || fit->largest_without[k] < fit->largest_without[best]))
                best = k;
        }
        candidates[c] = best;
    }
}

static enum phema_status search_near(struct search *search, size_t k, struct phema_error *err)
{
    size_t g = group_of(search, k);
    double max_z, ignored;
    reset(search, near_begin(g), near_end(search, g));
    enum phema_status status = rate_tried(&max_z, &ignored, search, err);
    if (status || isfinite(max_z)) /* what is wrong lies elsewhere */
        return status;
    status = try_exchanges_within(search, g, err);
    if (!status && g > 0)
        status = try_exchange_of_times(search, g - 1, err);
    if (!status)
        status = try_exchange_of_times(search, g, err);
    return status ? status : try_without(search, k, err);
}

/* Whether most neighbours are apart by clearly more than their rounding, which may repeat: then the
 * others predict a snapshot better than its labels say. */
static bool is_moving(const struct search *search)
{
    const struct phema_sample *sample = search->sample;
    size_t n_moved = 0;
    for (size_t k = 1; k < sample->n; k++) {
        double a = fmax(sample->rounding[k - 1], PHEMA_FLOAT32_FLOOR),
               b = fmax(sample->rounding[k], PHEMA_FLOAT32_FLOOR);
        n_moved += phema_sample_distance(sample, k - 1, k) > 100 * (a * a + b * b);
    }
    return 2 * n_moved > sample->n;
}

/* Usual widths for the newest snapshots, which are more alike than their labels say: averages taken
 * for raw, or for shorter ones. A training that hardly changes its direction would look the same. */
static enum phema_status search_longer(struct search *search, struct phema_error *err)
{
    size_t n = common_group(search);
    struct phema_profile *widths = calloc(n + 1, sizeof(*widths));
    if (!widths)
        return phema_fail_memory(err);
    bool is_known = n > 0 && is_moving(search);
    for (size_t i = 0; i < n; i++) {
        widths[i] = search->series->snapshots[i].profile;
        is_known =
            is_known && (widths[i].shape == PHEMA_SHAPE_POWER ||
                         widths[i].shape == PHEMA_SHAPE_EMA || widths[i].shape == PHEMA_SHAPE_RAW);
    }
    search->likelihood = -HUGE_VAL;
    enum phema_status status = is_known ? try_usual(search, widths, n, 0, 0, err) : PHEMA_OK;
    search->likelihood = PHEMA_UNKNOWN;
    free(widths);
    return status;
}

static enum phema_status search_all(struct search *search, struct phema_error *err)
{
    size_t n = common_group(search);
    reset(search, newest_begin(search), search->n_groups);
    double max_z, ignored;
    enum phema_status status = rate_tried(&max_z, &ignored, search, err);
    if (status || isfinite(max_z)) /* what is wrong lies before them */
        return status;
    if (n && search->group[1] == n) {
        struct phema_profile *widths = calloc(n, sizeof(*widths));
        if (!widths)
            return phema_fail_memory(err);
        bool is_plain = true;
        for (size_t i = 0; i < n; i++) {
            widths[i] = search->series->snapshots[i].profile;
            is_plain = is_plain && widths[i].shape == PHEMA_SHAPE_POWER;
        }
        if (n > 1 && n <= 4)
            status = try_orders(search, widths, n, 0, err);
        for (size_t n_more = 0; !status && is_plain && n_more < 2 && !search->text.size; n_more++)
            status = try_usual(search, widths, n, 0, n_more, err);
        free(widths);
    }
    return status ? status : try_updates(search, err);
}

static enum phema_status search_labels(struct search *search, const struct fit *fit,
                                       struct phema_error *err)
{
    size_t candidates[N_CANDIDATES];
    find_candidates(candidates, fit, search->series->n);
    enum phema_status status = PHEMA_OK;
    for (size_t c = 0; !status && c < N_CANDIDATES; c++)
        if (candidates[c] != SIZE_MAX)
            status = search_near(search, candidates[c], err);
    if (!status)
        status = search_resets(search, fit, err);
    if (!status)
        status = search_all(search, err);
    for (size_t c = 0; !status && c < N_CANDIDATES && !search->text.size; c++) {
        if (candidates[c] == SIZE_MAX)
            continue;
        size_t g = group_of(search, candidates[c]);
        status = try_break(search, g, err);
        if (!status && g + 1 < search->n_groups)
            status = try_break(search, g + 1, err);
    }
    return status;
}

/* ---- Verdict ---- */

static enum phema_status find_groups(struct search *search, struct phema_error *err)
{
    const struct phema_series *series = search->series;
    search->group = calloc(series->n + 1, sizeof(*search->group));
    if (!search->group || !labels_alloc(&search->tried, series->n))
        return phema_fail_memory(err);
    for (size_t k = 0; k < series->n; k++)
        if (k == 0 || series->snapshots[k].time != series->snapshots[k - 1].time)
            search->group[search->n_groups++] = k;
    search->group[search->n_groups] = series->n;
    reset(search, 0, search->n_groups);
    return PHEMA_OK;
}

/* The snapshot with the largest z. */
static size_t find_worst(const struct phema_series_checks *checks, size_t n)
{
    size_t worst = SIZE_MAX;
    for (size_t k = 0; k < n; k++)
        if (!isnan(checks->z[k]) && (worst == SIZE_MAX || checks->z[k] > checks->z[worst]))
            worst = k;
    return worst;
}

static enum phema_status describe(struct search *search, struct phema_error *err)
{
    struct phema_series_checks *checks = search->checks;
    if (!search->text.size) {
        size_t worst = find_worst(checks, search->series->n);
        phema_strbuf_printf(explain(search, SIZE_MAX),
                            "'%s' is %.3g times as far from what the others predict as they are "
                            "from each other",
                            label_of(search, worst), checks->max_z);
    }
    checks->suspect = search->suspect;
    enum phema_status status = phema_strbuf_check(&search->text, err);
    if (status)
        return status;
    checks->reason = search->text.data;
    search->text = (struct phema_strbuf){0};
    return PHEMA_OK;
}

static enum phema_status describe_event(struct search *search, struct phema_error *err)
{
    size_t worst = find_worst(search->checks, search->series->n), g = group_of(search, worst);
    const struct phema_snapshot *snapshots = search->series->snapshots;
    struct phema_strbuf *text = explain(search, worst);
    if (g == 0)
        phema_strbuf_printf(text, "something happened before time %.10g",
                            snapshots[worst].named_time);
    else
        phema_strbuf_printf(text, "something happened between times %.10g and %.10g",
                            snapshots[search->group[g] - 1].named_time,
                            snapshots[worst].named_time);
    phema_strbuf_printf(text,
                        ", a loss spike perhaps: '%s' is %.2g times as far from what the "
                        "others predict as they are from each other",
                        label_of(search, worst), search->checks->max_z);
    return describe(search, err);
}

/* A snapshot most of whose tensors are off is of another training, or has another label. */
static bool has_damaged_tensor(const struct phema_tensor_outlier *outlier)
{
    return outlier->ratio > PHEMA_TENSOR_OUTLIER && outlier->n_outliers * 2 <= outlier->n_compared;
}

static enum phema_status describe_damage(struct search *search,
                                         const struct phema_tensor_outlier *outlier,
                                         struct phema_error *err)
{
    const struct phema_tensor *tensor = &search->series->tensors[outlier->tensor].tensor;
    struct phema_name_buffer shown;
    struct phema_strbuf *text = explain(search, outlier->snapshot);
    size_t n_others = outlier->n_outliers - 1;
    phema_strbuf_printf(text, "'%s': tensor '%s'", label_of(search, outlier->snapshot),
                        phema_name_escape(&shown, tensor->name, tensor->name_size));
    if (n_others)
        phema_strbuf_printf(text, " and %zu other%s are", n_others, n_others == 1 ? "" : "s");
    phema_strbuf_printf(text, "%s not what the other snapshots predict: zeroed or damaged",
                        n_others ? "" : " is");
    return describe(search, err);
}

static enum phema_status judge(struct search *search, const struct fit *fit,
                               struct phema_error *err)
{
    struct phema_series_checks *checks = search->checks;
    checks->max_z = fit->max_z;
    checks->median_z = fit->median_z;
    memcpy(checks->z, fit->z, search->series->n * sizeof(*checks->z));
    if (isnan(fit->max_z))
        return PHEMA_OK;
    checks->verdict = PHEMA_SERIES_FITS;
    if (has_damaged_tensor(&fit->outlier)) {
        checks->verdict = PHEMA_SERIES_WRONG;
        return describe_damage(search, &fit->outlier, err);
    }
    if (is_wrong(fit)) {
        checks->verdict = PHEMA_SERIES_WRONG;
        search->best = fit->max_z;
        enum phema_status status = search_labels(search, fit, err);
        return status ? status : describe(search, err);
    }
    enum phema_status status =
        fit->median_z < SMOOTH_MEDIAN_Z ? search_longer(search, err) : PHEMA_OK;
    bool is_longer = search->text.size > 0;
    if (status || (!is_longer && fit->max_z <= EVENT_Z))
        return status;
    checks->verdict = PHEMA_SERIES_DOUBTFUL;
    return is_longer ? describe(search, err) : describe_event(search, err);
}

PHEMA_FALLIBLE series_checks_make(struct phema_series_checks *checks, struct phema_motion *motion,
                                  const struct phema_series *series,
                                  const struct phema_sample *sample, bool is_checked,
                                  struct phema_error *err)
{
    struct search search = {
        .series = series, .sample = sample, .checks = checks, .likelihood = PHEMA_UNKNOWN};
    struct fit fit = {0};
    bool is_compared = is_checked && sample->n_elems >= LEAST_ELEMENTS;
    enum comparison comparison = is_compared ? COMPARE_AND_LEAVE_OUT : COMPARE_NOTHING;
    checks->z = calloc(series->n + 1, sizeof(*checks->z));
    enum phema_status status = checks->z ? find_groups(&search, err) : phema_fail_memory(err);
    if (!status)
        status = fit_labels(&fit, &search.tried, sample, comparison, err);
    if (!status && is_compared)
        status = judge(&search, &fit, err);
    if (!status) {
        *motion = fit.motion;
        fit.motion = (struct phema_motion){0};
    }
    fit_clear(&fit);
    labels_clear(&search.tried);
    free(search.group);
    phema_strbuf_clear(&search.text);
    return status;
}

void phema_series_checks_clear(struct phema_series_checks *checks)
{
    free(checks->z);
    free(checks->reason);
    *checks = (struct phema_series_checks){.max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN};
}
