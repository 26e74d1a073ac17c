// SPDX-License-Identifier: Apache-2.0
/* tool.c - weights of the program's solver for stored snapshots. */
#include "tool.h"

#include <math.h>
#include <stdlib.h>

#include "phema/dtype.h"
#include "phema/solver.h"
#include "phema/sort.h"

/* The sample that motion is fitted to: runs of neighbours, which are cheap to read from a file. */
#define SAMPLE_RUNS ((size_t)128)
#define RUN_LENGTH  16

static size_t sampled(const struct stored *stored, size_t sample)
{
    size_t run = sample / RUN_LENGTH;
    size_t first = run * (stored->recording->n_elems - RUN_LENGTH) / (SAMPLE_RUNS - 1);
    return first + sample % RUN_LENGTH;
}

/* Statistics of the sample. */
struct seen {
    double rounding[MAX_SNAPSHOTS]; /* relative rms of the rounding error: spacing / sqrt(12) */
    double mean_square;             /* of an element of the last snapshot */
    struct phema_motion motion;
    bool has_motion;
};

static void find_rounding(struct seen *seen, const struct stored *stored)
{
    const double n_samples = (double)(SAMPLE_RUNS * RUN_LENGTH);
    for (size_t i = 0; i < stored->n; i++) {
        double spacings = 0;
        seen->mean_square = 0;
        for (size_t s = 0; s < SAMPLE_RUNS * RUN_LENGTH; s++) {
            double x = stored->values[i * stored->recording->n_elems + sampled(stored, s)];
            double spacing = phema_element_spacing(stored->dtype, x);
            spacings += spacing * spacing / n_samples;
            seen->mean_square += x * x / n_samples;
        }
        seen->rounding[i] = spacings / 12;
    }
    for (size_t i = 0; i < stored->n; i++)
        seen->rounding[i] = sqrt(seen->rounding[i] / seen->mean_square);
}

/* To that of averages which the training keeps in float32, as phema_series_check does. */
static void raise_rounding(struct seen *seen, const struct stored *stored)
{
    const struct phema_motion *motion = seen->has_motion ? &seen->motion : NULL;
    for (size_t i = 0; i < stored->n; i++)
        seen->rounding[i] =
            fmax(seen->rounding[i], phema_kept_rounding(&stored->profiles[i], motion));
}

static double mean_square_apart(const struct stored *stored, size_t i, size_t j)
{
    size_t n_elems = stored->recording->n_elems;
    double sum = 0;
    for (size_t s = 0; s < SAMPLE_RUNS * RUN_LENGTH; s++) {
        size_t e = sampled(stored, s);
        double apart = stored->values[i * n_elems + e] - stored->values[j * n_elems + e];
        sum += apart * apart;
    }
    return sum / (double)(SAMPLE_RUNS * RUN_LENGTH);
}

/* Elements of all snapshots, and of the sample's runs, taken for tensors. */
struct elements {
    double *values, *spacings; /* [n x samples], [samples] */
    size_t *runs;              /* [samples] */
};

static void elements_clear(struct elements *elements)
{
    free(elements->values);
    free(elements->spacings);
    free(elements->runs);
}

static enum phema_status elements_take(struct elements *elements, const struct stored *stored,
                                       struct phema_error *err)
{
    size_t n_samples = SAMPLE_RUNS * RUN_LENGTH;
    *elements =
        (struct elements){calloc(stored->n * n_samples, sizeof(double)),
                          calloc(n_samples, sizeof(double)), calloc(n_samples, sizeof(size_t))};
    if (!elements->values || !elements->spacings || !elements->runs) {
        elements_clear(elements);
        return phema_fail_memory(err);
    }
    for (size_t i = 0; i < stored->n; i++) {
        for (size_t s = 0; s < n_samples; s++) {
            double x = stored->values[i * stored->recording->n_elems + sampled(stored, s)];
            double spacing = phema_element_spacing(stored->dtype, x);
            elements->values[i * n_samples + s] = x;
            elements->spacings[s] = fmax(elements->spacings[s], spacing);
            elements->runs[s] = s / RUN_LENGTH;
        }
    }
    return PHEMA_OK;
}

static struct phema_sample_rows rows_of(const struct elements *elements, const struct seen *seen)
{
    return (struct phema_sample_rows){.values = elements->values,
                                      .n_elems = SAMPLE_RUNS * RUN_LENGTH,
                                      .mean_square = seen->mean_square,
                                      .tensors = elements->runs,
                                      .spacings = elements->spacings};
}

static enum phema_status find_motion(struct seen *seen, const struct stored *stored,
                                     struct phema_error *err)
{
    struct phema_distance *pairs = NULL;
    size_t n_pairs = 0;
    enum phema_status status =
        phema_motion_pairs(&pairs, &n_pairs, stored->profiles, stored->n, err);
    if (status)
        return status;
    for (size_t p = 0; p < n_pairs; p++)
        pairs[p].square = mean_square_apart(stored, pairs[p].i, pairs[p].j) / seen->mean_square;
    struct elements elements;
    status = elements_take(&elements, stored, err);
    if (!status) {
        const struct phema_sample_rows rows = rows_of(&elements, seen);
        const struct phema_motion_data data = {.snapshots = stored->profiles,
                                               .rounding = seen->rounding,
                                               .n = stored->n,
                                               .distances = pairs,
                                               .n_distances = n_pairs,
                                               .sample = &rows};
        status = phema_motion_fit(&seen->motion, &data, PHEMA_MOTION_LIKELIEST, err);
        elements_clear(&elements);
    }
    free(pairs);
    seen->has_motion = !status;
    return status == PHEMA_NO ? PHEMA_OK : status; /* too little information in the distances */
}

static enum phema_status find_scores(struct check *check, const struct seen *seen,
                                     const struct stored *stored, struct phema_error *err)
{
    double z[MAX_SNAPSHOTS];
    *check = (struct check){0};
    if (!seen->has_motion)
        return PHEMA_OK;
    struct elements elements;
    enum phema_status status = elements_take(&elements, stored, err);
    if (status)
        return status;
    struct phema_leave_one_out out = {.z = z, .limit = HUGE_VAL};
    const struct phema_sample_rows rows = rows_of(&elements, seen);
    const struct phema_problem problem = {.snapshots = stored->profiles,
                                          .rounding = seen->rounding,
                                          .n = stored->n,
                                          .motion = &seen->motion};
    status = phema_leave_one_out(&out, &problem, &rows, err);
    elements_clear(&elements);
    if (!status && !isnan(z[0])) {
        qsort(z, stored->n, sizeof(*z), phema_compare_doubles);
        *check = (struct check){z[stored->n - 1], z[stored->n / 2], out.outlier.ratio};
    }
    return status;
}

/* Without known motion its metric is the walk's, as in the program. The two other metrics read no
 * tensors. */
static enum phema_status try_metric(struct outcome outcomes[N_TARGETS], const struct stored *stored,
                                    enum phema_metric metric, const struct seen *seen,
                                    double *buffer, struct phema_error *err)
{
    struct phema_mix targets[N_TARGETS];
    for (size_t m = 0; m < N_TARGETS; m++)
        targets[m] = (struct phema_mix){.parts = &stored->recording->targets[m], .n_parts = 1};
    struct phema_problem problem = {.snapshots = stored->profiles,
                                    .rounding = stored->rounding,
                                    .n = stored->n,
                                    .targets = targets,
                                    .m = N_TARGETS};
    struct phema_solve_options options = {.metric = metric};
    struct phema_solution solutions[N_TARGETS] = {0};
    if (metric == PHEMA_METRIC_MOTION) {
        problem.rounding = seen->rounding;
        problem.motion = seen->has_motion ? &seen->motion : NULL;
        options.metric = seen->has_motion ? metric : PHEMA_METRIC_WALK;
    }
    enum phema_status status = phema_weights_solve(solutions, &problem, &options, err);
    if (status)
        return status;
    for (size_t m = 0; m < N_TARGETS; m++) {
        outcomes[m].errors[metric] = stored_error(stored, solutions[m].weights, m, buffer);
        outcomes[m].predicted = solutions[m].predicted.total;
        outcomes[m].predicted_paper = solutions[m].predicted.paper_weights;
    }
    phema_solutions_clear(solutions, N_TARGETS);
    return PHEMA_OK;
}

enum phema_status tool_try(struct outcome outcomes[N_TARGETS], struct check *check,
                           const struct stored *stored, struct phema_error *err)
{
    /* the last one gives the prediction */
    static const enum phema_metric order[N_METRICS] = {PHEMA_METRIC_PROFILE, PHEMA_METRIC_WALK,
                                                       PHEMA_METRIC_MOTION};
    double *buffer = malloc(stored->recording->n_elems * sizeof(double));
    double oracles[N_TARGETS] = {0};
    struct seen seen = {.has_motion = false};
    enum phema_status status =
        buffer ? stored_oracle(oracles, stored, buffer, err) : phema_fail_memory(err);
    for (size_t m = 0; m < N_TARGETS; m++)
        outcomes[m] = (struct outcome){.oracle = oracles[m]};
    if (!status) {
        find_rounding(&seen, stored);
        raise_rounding(&seen, stored);
        status = find_motion(&seen, stored, err);
        raise_rounding(&seen, stored);
    }
    if (!status)
        status = find_scores(check, &seen, stored, err);
    for (size_t k = 0; !status && k < N_METRICS; k++)
        status = try_metric(outcomes, stored, order[k], &seen, buffer, err);
    phema_motion_clear(&seen.motion);
    free(buffer);
    return status;
}
