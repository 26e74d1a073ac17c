// SPDX-License-Identifier: Apache-2.0
/* series_fit.c - fits a motion to labels, and compares each snapshot with what the others
 * predict. */
#include "series_fit.h"

#include <math.h>
#include <stdlib.h>

#include "phema/sort.h"

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
