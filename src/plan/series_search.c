// SPDX-License-Identifier: Apache-2.0
/* series_search.c - fits a motion to labels, and compares each snapshot with what the others
 * predict. Other labels are rated as the given ones are. */
#include "series_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"
#include "phema/sort.h"

/* ---- How well labels fit ---- */

static const struct fit no_fit = {
    .max_z = PHEMA_UNKNOWN, .median_z = PHEMA_UNKNOWN, .likelihood = PHEMA_UNKNOWN};

static enum phema_status open_motion(struct fitting *fitting, const struct labels *labels,
                                     const struct phema_sample *sample,
                                     const struct phema_schedule *schedule, bool is_rough,
                                     struct phema_error *err)
{
    struct phema_motion_data data = {.snapshots = labels->profiles,
                                     .rounding = fitting->problem.rounding,
                                     .n = labels->n,
                                     .sample = is_rough ? NULL : &fitting->rows,
                                     .schedule = schedule};
    struct phema_distance *distances = NULL;
    enum phema_status status =
        phema_motion_pairs(&distances, &data.n_distances, labels->profiles, labels->n, err);
    if (status)
        return status;
    for (size_t d = 0; d < data.n_distances; d++)
        distances[d].square = phema_sample_distance(sample, labels->rows[distances[d].i],
                                                    labels->rows[distances[d].j]);
    data.distances = distances;
    status = phema_motion_fitting_open(&fitting->motion, &data, err);
    free(distances);
    return status;
}

enum phema_status fitting_open(struct fitting *fitting, const struct labels *labels,
                               const struct phema_sample *sample,
                               const struct phema_schedule *schedule, bool is_rough,
                               struct phema_error *err)
{
    *fitting = (struct fitting){.rows = {.values = sample->values,
                                         .order = labels->rows,
                                         .n_elems = sample->n_elems,
                                         .mean_square = sample->mean_square,
                                         .tensors = sample->tensors,
                                         .spacings = sample->spacings}};
    double *rounding = phema_arena_array(&fitting->memory, labels->n, sizeof(*rounding));
    if (!rounding)
        return phema_fail_memory(err);
    for (size_t k = 0; k < labels->n; k++)
        rounding[k] = sample->rounding[labels->rows[k]];
    fitting->problem =
        (struct phema_problem){.snapshots = labels->profiles, .rounding = rounding, .n = labels->n};
    return open_motion(fitting, labels, sample, schedule, is_rough, err);
}

void fitting_close(struct fitting *fitting)
{
    phema_motion_fitting_close(fitting->motion);
    phema_arena_clear(&fitting->memory);
}

/* Sets max_z and median_z.
 *   sorted  [n] space */
static void set_quantiles(struct fit *fit, double *sorted, size_t n)
{
    size_t n_known = 0;
    for (size_t k = 0; k < n; k++)
        if (!isnan(fit->z[k]))
            sorted[n_known++] = fit->z[k];
    if (!n_known)
        return;
    qsort(sorted, n_known, sizeof(*sorted), phema_compare_doubles);
    fit->max_z = sorted[n_known - 1];
    fit->median_z = sorted[n_known / 2];
}

static enum phema_status compare(struct fit *fit, struct fitting *fitting,
                                 enum comparison comparison, struct phema_error *err)
{
    size_t n = fitting->problem.n;
    bool leaves_out = comparison == COMPARE_AND_LEAVE_OUT;
    bool has_z = comparison != COMPARE_LIKELIHOODS;
    struct phema_arena *memory = &fitting->memory;
    fit->z = has_z ? phema_arena_array(memory, n, sizeof(double)) : NULL;
    fit->largest_without = leaves_out ? phema_arena_array(memory, n, sizeof(double)) : NULL;
    double *sorted = phema_arena_array(memory, n, sizeof(*sorted));
    if (memory->is_failed)
        return phema_fail_memory(err);
    struct phema_leave_one_out out = {.z = fit->z,
                                      .largest_without = fit->largest_without,
                                      .limit = WRONG_Z,
                                      .only_z = leaves_out};
    struct phema_problem problem = fitting->problem;
    problem.motion = &fit->motion;
    struct phema_sample_rows rows = fitting->rows;
    if (!leaves_out)
        rows.tensors = NULL;
    enum phema_status status = phema_leave_one_out(&out, &problem, &rows, err);
    if (status)
        return status;
    fit->outlier = out.outlier;
    fit->likelihood = out.likelihood;
    if (has_z)
        set_quantiles(fit, sorted, n);
    return PHEMA_OK;
}

static bool is_rough(enum comparison comparison)
{
    return comparison == COMPARE_LIKELIHOODS || comparison == COMPARE_ROUGHLY;
}

enum phema_status fitting_compare(struct fit *fit, struct fitting *fitting,
                                  enum comparison comparison, struct phema_error *err)
{
    *fit = no_fit;
    enum phema_motion_kind kind = is_rough(comparison)             ? PHEMA_MOTION_EVEN
                                  : comparison == COMPARE_DRIFTING ? PHEMA_MOTION_DRIFTING
                                                                   : PHEMA_MOTION_SHAPED;
    enum phema_status status = phema_motion_fitting_find(&fit->motion, fitting->motion, kind, err);
    return status ? status : compare(fit, fitting, comparison, err);
}

bool fit_explains(const struct fit *fit)
{
    return fit->max_z <= EXPLAINED_Z && fit->median_z <= EXPLAINED_MEDIAN_Z;
}

#define WALK_Z      1.25
#define WALK_MEDIAN 0.05 /* that the median is off 1 */

bool fit_is_walk(const struct fit *fit)
{
    return fit->max_z <= WALK_Z && fabs(fit->median_z - 1) <= WALK_MEDIAN;
}

/* ---- The search ---- */

#define ROUGH_Z 5.0 /* under the simplest motion */

/* Labels explain a series that is too smooth if its median z is not as small, and if they are
 * likeliest: the largest z hardly tells them apart. */
#define EXPLAINED_LEAST_MEDIAN_Z 0.75
#define LIKELIER                 0.02 /* an element */

#define NEAR       ((size_t)8) /* times on each side that a hypothesis about one snapshot looks at */
#define FIRST_LOOK ((size_t)16) /* of them, the newest: most hypotheses fail here already */
#define CLEARLY    0.7          /* of the z of the best labels before */

static bool alloc_labels(struct labels *labels, size_t n, struct phema_arena *memory)
{
    labels->profiles = phema_arena_array(memory, n, sizeof(*labels->profiles));
    labels->rows = phema_arena_array(memory, n, sizeof(*labels->rows));
    return !memory->is_failed;
}

enum phema_status search_open(struct search *search)
{
    size_t n = search->series->n;
    search->group = phema_arena_array(&search->memory, n + 1, sizeof(*search->group));
    search->checks->z = calloc(n + 1, sizeof(*search->checks->z));
    if (!search->checks->z || !alloc_labels(&search->tried, n, &search->memory) ||
        !alloc_labels(&search->given, n, &search->memory) ||
        !alloc_labels(&search->found, n, &search->memory))
        return phema_fail_memory(search->err);
    for (size_t k = 0; k < n; k++)
        if (k == 0 || search->snapshots[k].time != search->snapshots[k - 1].time)
            search->group[search->n_groups++] = k;
    search->group[search->n_groups] = n;
    (void)search_reset(search, 0, search->n_groups);
    memcpy(search->given.profiles, search->tried.profiles, n * sizeof(*search->given.profiles));
    memcpy(search->given.rows, search->tried.rows, n * sizeof(*search->given.rows));
    search->given.n = n;
    return fitting_open(&search->fitting, &search->given, search->sample, search->schedule, false,
                        search->err);
}

void search_close(struct search *search)
{
    fitting_close(&search->fitting);
    phema_arena_clear(&search->memory);
    phema_strbuf_clear(&search->text);
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

size_t search_reset(struct search *search, size_t first_group, size_t end_group)
{
    struct labels *tried = &search->tried;
    tried->n = 0;
    for (size_t k = search->group[first_group]; k < search->group[end_group]; k++) {
        tried->profiles[tried->n] = search->snapshots[k].profile;
        tried->rows[tried->n++] = k;
    }
    return search->group[first_group];
}

size_t search_reset_near(struct search *search, size_t g)
{
    return search_reset(search, search_near_begin(g), search_near_end(search, g));
}

void search_reset_newest(struct search *search, size_t most)
{
    size_t g = search->n_groups;
    while (g > 0 && search->series->n - search->group[g - 1] <= most)
        g--;
    (void)search_reset(search, g, search->n_groups);
}

enum phema_status search_set_spec(struct search *search, struct phema_spec *spec, bool only_assumed,
                                  struct phema_error *err)
{
    struct labels *tried = &search->tried;
    for (size_t k = 0; k < tried->n; k++) {
        const struct phema_snapshot *snapshot = &search->snapshots[tried->rows[k]];
        if (only_assumed && !snapshot->is_assumed)
            continue;
        enum phema_status status =
            phema_spec_profile(&tried->profiles[k], spec, snapshot->profile.t, err);
        if (status)
            return status;
        tried->profiles[k].label = snapshot->label;
    }
    return PHEMA_OK;
}

bool search_set_newest(struct search *search, struct phema_specs *specs, const char *text,
                       size_t most)
{
    struct phema_error impossible = {0};
    struct phema_spec *spec = NULL;
    search_reset_newest(search, most);
    return !phema_specs_find(&spec, specs, text, &impossible) &&
           !search_set_spec(search, spec, false, &impossible);
}

double search_likelihood(struct search *search)
{
    double likelihood = search_fit(search, &search->tried, COMPARE_LIKELIHOODS).likelihood;
    return isnan(likelihood) ? -HUGE_VAL : likelihood;
}

static double rate_tried(struct search *search, struct phema_profile shape)
{
    for (size_t k = 0; k < search->tried.n; k++) {
        shape.t = search->tried.profiles[k].t;
        search->tried.profiles[k] = shape;
    }
    return search_likelihood(search);
}

double search_rate_shape(struct search *search, struct phema_profile shape, size_t most)
{
    search_reset_newest(search, most);
    return rate_tried(search, shape);
}

double search_rate_shape_of(struct search *search, struct phema_profile shape, size_t first_group,
                            size_t end_group)
{
    (void)search_reset(search, first_group, end_group);
    return rate_tried(search, shape);
}

struct fit search_fit(struct search *search, const struct labels *labels,
                      enum comparison comparison)
{
    struct fit fit = no_fit;
    struct fitting own = {.motion = NULL}, *fitting = &search->fitting;
    struct phema_error why = {0};
    enum phema_status status = search->status;
    if (!status && labels != &search->given) {
        fitting = &own;
        status = fitting_open(fitting, labels, search->sample, search->schedule,
                              is_rough(comparison), &why);
    }
    if (!status)
        status = fitting_compare(&fit, fitting, comparison, &why);
    if (status == PHEMA_ERR_RESOURCE && !search->status)
        search->status = phema_fail(search->err, status, "%s", why.message);
    phema_motion_clear(&fit.motion);
    fitting_close(&own);
    fit.z = fit.largest_without = NULL;
    return status ? no_fit : fit;
}

bool search_rate(struct fit *fit, struct search *search)
{
    const struct labels *tried = &search->tried;
    size_t n = tried->n < FIRST_LOOK ? tried->n : FIRST_LOOK, first = tried->n - n;
    const struct labels newest = {tried->profiles + first, tried->rows + first, n};
    if (n < 3)
        return false;
    *fit = search_fit(search, &newest, COMPARE_ROUGHLY);
    if (fit->max_z > ROUGH_Z || fit->median_z > WRONG_MEDIAN_Z)
        return false;
    *fit = search_fit(search, tried, COMPARE_SNAPSHOTS);
    if (!(fit->median_z >= EXPLAINED_LEAST_MEDIAN_Z))
        fit->likelihood = -HUGE_VAL;
    return fit_explains(fit);
}

bool search_try(struct search *search)
{
    struct fit fit;
    if (!search_rate(&fit, search))
        return false;
    if (isnan(search->likelihood)) {
        if (!(fit.max_z < CLEARLY * search->best))
            return false;
        search->best = fit.max_z;
    } else {
        if (!(fit.likelihood > search->likelihood + LIKELIER))
            return false;
        search->likelihood = fit.likelihood;
    }
    return true;
}

struct phema_strbuf *search_explain(struct search *search, size_t suspect)
{
    const struct labels *tried = &search->tried;
    phema_strbuf_clear(&search->text);
    memcpy(search->found.profiles, tried->profiles, tried->n * sizeof(*tried->profiles));
    memcpy(search->found.rows, tried->rows, tried->n * sizeof(*tried->rows));
    search->found.n = tried->n;
    search->is_sure = false;
    search->checks->suspect = suspect;
    search->checks->setting = PHEMA_SET_NONE;
    return &search->text;
}

void search_set_remedy(struct search *search, enum phema_setting setting, const char *value)
{
    struct phema_series_checks *checks = search->checks;
    int length = snprintf(checks->value, sizeof(checks->value), "%s", value);
    checks->setting =
        length >= 0 && (size_t)length < sizeof(checks->value) ? setting : PHEMA_SET_NONE;
}

void search_suggest(struct search *search, enum phema_setting setting, const char *value)
{
    phema_strbuf_printf(&search->text, "; if that is so, give %s%s", phema_setting_equals(setting),
                        value);
    search_set_remedy(search, setting, value);
}
