// SPDX-License-Identifier: Apache-2.0
/* tool.c - see tool.h. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

/* The sample that says how parameters move: runs of neighbours, as a file gives them cheaply. */
#define SAMPLE_RUNS 128
#define RUN_LENGTH  16

struct targets {
    struct phema_profile profiles[N_TARGETS];
    struct phema_mix mixes[N_TARGETS];
};

static size_t sampled(const struct stored *stored, size_t sample)
{
    size_t run = sample / RUN_LENGTH;
    size_t first = run * (stored->recording->n_elems - RUN_LENGTH) / (SAMPLE_RUNS - 1);
    return first + sample % RUN_LENGTH;
}

static double mean_square(const struct stored *stored, const struct phema_distance *apart)
{
    size_t n_elems = stored->recording->n_elems;
    double sum = 0;
    for (size_t s = 0; s < SAMPLE_RUNS * RUN_LENGTH; s++) {
        size_t e = sampled(stored, s);
        double x = stored->values[apart->i * n_elems + e];
        if (apart->i != apart->j)
            x -= stored->values[apart->j * n_elems + e];
        sum += x * x;
    }
    return sum / (SAMPLE_RUNS * RUN_LENGTH);
}

/* PHEMA_NO, with *motion empty, when distances say too little. */
static enum phema_status find_motion(struct phema_motion *motion, const struct stored *stored,
                                     struct phema_error *err)
{
    struct phema_distance *pairs = NULL;
    size_t n_pairs = 0;
    double size = 0;
    *motion = (struct phema_motion){0};
    enum phema_status status =
        phema_motion_pairs(&pairs, &n_pairs, stored->profiles, stored->n, err);
    if (status)
        return status;
    for (size_t i = 0; i < stored->n; i++)
        size += mean_square(stored, &(struct phema_distance){i, i, 0}) / (double)stored->n;
    for (size_t p = 0; p < n_pairs; p++)
        pairs[p].square = mean_square(stored, &pairs[p]) / size;
    status = phema_motion_fit(motion, stored->profiles, stored->n, stored->rounding, pairs, n_pairs,
                              err);
    free(pairs);
    return status;
}

static void set_targets(struct targets *targets, const struct recording *recording)
{
    for (size_t m = 0; m < N_TARGETS; m++) {
        targets->profiles[m] = (struct phema_profile){.gamma = recording->target_gammas[m],
                                                      .t = (double)recording->n_steps};
        targets->mixes[m] = (struct phema_mix){&targets->profiles[m], NULL, 1};
    }
}

/* Where no motion is known its metric is the walk's, as in the program. */
static enum phema_status try_metric(struct outcome outcomes[N_TARGETS], const struct stored *stored,
                                    enum phema_metric metric, const struct phema_motion *motion,
                                    double *buffer, struct phema_error *err)
{
    struct targets targets;
    set_targets(&targets, stored->recording);
    struct phema_problem problem = {.snapshots = stored->profiles,
                                    .rounding = stored->rounding,
                                    .n = stored->n,
                                    .targets = targets.mixes,
                                    .m = N_TARGETS};
    struct phema_solve_options options = {.metric = metric};
    struct phema_solution solutions[N_TARGETS] = {0};
    if (metric == PHEMA_METRIC_MOTION) {
        problem.motion = motion;
        options.metric = motion ? metric : PHEMA_METRIC_WALK;
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

enum phema_status tool_try(struct outcome outcomes[N_TARGETS], const struct stored *stored,
                           struct phema_error *err)
{
    double *buffer = malloc(stored->recording->n_elems * sizeof(double));
    double oracles[N_TARGETS] = {0};
    struct phema_motion motion = {0};
    if (!buffer)
        return phema_fail_memory(err);
    enum phema_status status = stored_oracle(oracles, stored, buffer, err);
    if (!status)
        status = find_motion(&motion, stored, err);
    bool is_known = !status;
    if (status == PHEMA_NO)
        status = PHEMA_OK;
    for (size_t m = 0; m < N_TARGETS; m++)
        outcomes[m] = (struct outcome){.oracle = oracles[m]};
    /* the last one says what is predicted */
    const enum phema_metric order[N_METRICS] = {PHEMA_METRIC_PROFILE, PHEMA_METRIC_WALK,
                                                PHEMA_METRIC_MOTION};
    for (size_t k = 0; !status && k < N_METRICS; k++)
        status = try_metric(outcomes, stored, order[k], is_known ? &motion : NULL, buffer, err);
    phema_motion_clear(&motion);
    free(buffer);
    return status;
}
