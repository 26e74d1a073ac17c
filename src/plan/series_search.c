// SPDX-License-Identifier: Apache-2.0
/* series_search.c - fits a motion to labels, and compares each snapshot with what the others
 * predict. Other labels are rated as the given ones are. */
#include "series_search.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "phema/sort.h"

/* ---- How well labels fit ---- */

bool labels_alloc(struct labels *labels, size_t n)
{
    *labels = (struct labels){calloc(n + 1, sizeof(*labels->profiles)),
                              calloc(n + 1, sizeof(*labels->rows)), 0};
    return labels->profiles && labels->rows;
}

void labels_clear(struct labels *labels)
{
    free(labels->profiles);
    free(labels->rows);
}

void fit_clear(struct fit *fit)
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

enum phema_status fitting_open(struct fitting *fitting, const struct labels *labels,
                               const struct phema_sample *sample,
                               const struct phema_schedule *schedule, bool is_rough,
                               struct phema_error *err)
{
    *fitting = (struct fitting){.labels = labels, .sample = sample};
    struct phema_distance *distances = NULL;
    size_t n_distances = 0;
    fitting->rounding = calloc(labels->n + 1, sizeof(*fitting->rounding));
    enum phema_status status =
        fitting->rounding ? measure_distances(&distances, &n_distances, labels, sample, err)
                          : phema_fail_memory(err);
    for (size_t k = 0; !status && k < labels->n; k++)
        fitting->rounding[k] = sample->rounding[labels->rows[k]];
    fitting->rows = rows_of(sample, labels);
    const struct phema_motion_data data = {.snapshots = labels->profiles,
                                           .rounding = fitting->rounding,
                                           .n = labels->n,
                                           .distances = distances,
                                           .n_distances = n_distances,
                                           .sample = is_rough ? NULL : &fitting->rows,
                                           .schedule = schedule};
    if (!status)
        status = phema_motion_fitting_open(&fitting->motion, &data, err);
    free(distances);
    if (status)
        fitting_close(fitting);
    return status;
}

void fitting_close(struct fitting *fitting)
{
    phema_motion_fitting_close(fitting->motion);
    free(fitting->rounding);
    *fitting = (struct fitting){0};
}

static enum phema_status compare(struct fit *fit, const struct fitting *fitting,
                                 enum comparison comparison, struct phema_error *err)
{
    const struct labels *labels = fitting->labels;
    bool leaves_out = comparison == COMPARE_AND_LEAVE_OUT;
    bool has_z = comparison != COMPARE_LIKELIHOODS;
    if (has_z)
        fit->z = calloc(labels->n + 1, sizeof(*fit->z));
    if (leaves_out)
        fit->largest_without = calloc(labels->n + 1, sizeof(*fit->largest_without));
    if ((has_z && !fit->z) || (leaves_out && !fit->largest_without))
        return phema_fail_memory(err);
    struct phema_leave_one_out out = {.z = fit->z,
                                      .largest_without = fit->largest_without,
                                      .limit = WRONG_Z,
                                      .only_z = leaves_out};
    struct phema_problem problem = {.snapshots = labels->profiles,
                                    .rounding = fitting->rounding,
                                    .n = labels->n,
                                    .motion = &fit->motion};
    struct phema_sample_rows rows = fitting->rows;
    if (!leaves_out)
        rows.tensors = NULL;
    enum phema_status status = phema_leave_one_out(&out, &problem, &rows, err);
    fit->outlier = out.outlier;
    fit->likelihood = out.likelihood;
    return status || !has_z ? status : rate(fit, labels->n, err);
}

static bool is_rough(enum comparison comparison)
{
    return comparison == COMPARE_LIKELIHOODS || comparison == COMPARE_ROUGHLY;
}

enum phema_status fitting_fit(struct fit *fit, const struct fitting *fitting,
                              enum comparison comparison, struct phema_error *err)
{
    *fit = (struct fit){.max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN};
    enum phema_motion_kind kind = comparison == COMPARE_NOTHING ? PHEMA_MOTION_LIKELIEST
                                  : is_rough(comparison)        ? PHEMA_MOTION_EVEN
                                                                : PHEMA_MOTION_SHAPED;
    enum phema_status status = phema_motion_fitting_find(&fit->motion, fitting->motion, kind, err);
    if (!status && comparison != COMPARE_NOTHING)
        status = compare(fit, fitting, comparison, err);
    if (status)
        fit_clear(fit);
    return status;
}

enum phema_status fit_labels(struct fit *fit, const struct labels *labels,
                             const struct phema_sample *sample,
                             const struct phema_schedule *schedule, enum comparison comparison,
                             struct phema_error *err)
{
    *fit = (struct fit){.max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN};
    struct fitting fitting;
    enum phema_status status =
        fitting_open(&fitting, labels, sample, schedule, is_rough(comparison), err);
    if (!status)
        status = fitting_fit(fit, &fitting, comparison, err);
    fitting_close(&fitting);
    return status;
}

bool fit_explains(const struct fit *fit)
{
    return fit->max_z <= EXPLAINED_Z && fit->median_z <= EXPLAINED_MEDIAN_Z;
}

bool fit_is_wrong(const struct fit *fit)
{
    return fit->max_z > WRONG_Z || fit->median_z > WRONG_MEDIAN_Z;
}

size_t find_worst(const double *z, size_t n)
{
    size_t worst = SIZE_MAX;
    for (size_t k = 0; k < n; k++)
        if (!isnan(z[k]) && (worst == SIZE_MAX || z[k] > z[worst]))
            worst = k;
    return worst;
}

/* ---- The search ---- */

#define ROUGH_Z 5.0 /* under the simplest motion */

/* Labels explain a series that is too smooth if its median z is not as small, and if they are
 * likeliest: the largest z hardly tells them apart. */
#define EXPLAINED_LEAST_MEDIAN_Z 0.75
#define LIKELIER                 0.02 /* an element */

#define NEAR       ((size_t)8) /* times on each side that a hypothesis about one snapshot looks at */
#define MOST       ((size_t)48) /* snapshots, the newest, that a hypothesis about all looks at */
#define FIRST_LOOK ((size_t)16) /* of them, the newest: most hypotheses fail here already */
#define CLEARLY    0.7          /* of the z of the best labels before */

const char *search_label(const struct search *search, size_t k)
{
    return search->series->snapshots[k].label;
}

void search_reset(struct search *search, size_t first_group, size_t end_group)
{
    struct labels *tried = &search->tried;
    tried->n = 0;
    for (size_t k = search->group[first_group]; k < search->group[end_group]; k++) {
        tried->profiles[tried->n] = search->series->snapshots[k].profile;
        tried->rows[tried->n++] = k;
    }
}

size_t search_group_of(const struct search *search, size_t k)
{
    size_t g = 0;
    while (search->group[g + 1] <= k)
        g++;
    return g;
}

size_t search_near_begin(size_t g)
{
    return g > NEAR ? g - NEAR : 0;
}

size_t search_near_end(const struct search *search, size_t g)
{
    return g + NEAR < search->n_groups ? g + NEAR + 1 : search->n_groups;
}

size_t search_newest_begin(const struct search *search)
{
    size_t g = search->n_groups;
    while (g > 0 && search->series->n - search->group[g - 1] <= MOST)
        g--;
    return g;
}

enum phema_status search_fit(struct fit *fit, const struct labels *labels,
                             const struct search *search, enum comparison comparison,
                             struct phema_error *err)
{
    struct phema_error ignored = {0};
    enum phema_status status =
        fit_labels(fit, labels, search->sample, search->schedule, comparison, &ignored);
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
    enum phema_status status = search_fit(&fit, &newest, search, COMPARE_ROUGHLY, err);
    *fails = !status && (fit.max_z > ROUGH_Z || fit.median_z > WRONG_MEDIAN_Z);
    fit_clear(&fit);
    return status;
}

enum phema_status search_rate(double *max_z, double *likelihood, struct search *search,
                              struct phema_error *err)
{
    *max_z = HUGE_VAL;
    *likelihood = -HUGE_VAL;
    bool fails = search->tried.n < 3;
    enum phema_status status = fails ? PHEMA_OK : fails_first_look(&fails, search, err);
    if (status || fails)
        return status;
    struct fit fit;
    status = search_fit(&fit, &search->tried, search, COMPARE_SNAPSHOTS, err);
    if (!status && fit_explains(&fit)) {
        *max_z = fit.max_z;
        if (fit.median_z >= EXPLAINED_LEAST_MEDIAN_Z)
            *likelihood = fit.likelihood;
    }
    fit_clear(&fit);
    return status;
}

enum phema_status search_try(bool *is_better, struct search *search, struct phema_error *err)
{
    double max_z, likelihood;
    bool is_by_z = isnan(search->likelihood);
    enum phema_status status = search_rate(&max_z, &likelihood, search, err);
    *is_better = !status && (is_by_z ? max_z < CLEARLY * search->best
                                     : likelihood > search->likelihood + LIKELIER);
    if (*is_better && is_by_z)
        search->best = max_z;
    else if (*is_better)
        search->likelihood = likelihood;
    return status;
}

struct phema_strbuf *search_explain(struct search *search, size_t suspect)
{
    phema_strbuf_clear(&search->text);
    search->suspect = suspect;
    search->setting = PHEMA_SET_NONE;
    return &search->text;
}

void search_set_remedy(struct search *search, enum phema_setting setting, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(search->value, sizeof(search->value), format, args);
    va_end(args);
    search->setting =
        length >= 0 && (size_t)length < sizeof(search->value) ? setting : PHEMA_SET_NONE;
}
