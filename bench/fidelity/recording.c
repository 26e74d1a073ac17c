// SPDX-License-Identifier: Apache-2.0
/* recording.c - records snapshots and exact averages of a movement. */
#include "recording.h"

#include <stdlib.h>
#include <string.h>

const double snapshot_widths[N_WIDTHS] = {0.05, 0.10};
const double target_widths[N_TARGETS] = {0.01,  0.015, 0.02, 0.03, 0.04, 0.05,
                                         0.075, 0.10,  0.15, 0.20, 0.25, 0.28};

/* One running average: EMA by the exact beta of eq. 127. */
struct average {
    double gamma;
    double *values;
};

void recording_clear(struct recording *recording)
{
    for (size_t k = 0; k < MAX_TIMES; k++) {
        for (size_t a = 0; a < N_WIDTHS; a++)
            free(recording->snapshots[k][a]);
    }
    for (size_t m = 0; m < N_TARGETS; m++)
        free(recording->truths[m]);
    *recording = (struct recording){0};
}

static void update(struct average *average, const struct movement *movement, uint64_t step)
{
    double fresh = 1 - phema_power_beta(average->gamma, step);
    for (size_t i = 0; i < movement->n; i++)
        average->values[i] += fresh * (movement->params[i] - average->values[i]);
}

static bool keep_snapshot(struct recording *recording, size_t k, const struct average *averages)
{
    for (size_t a = 0; a < N_WIDTHS; a++) {
        double *copy = malloc(recording->n_elems * sizeof(double));
        if (!copy)
            return false;
        memcpy(copy, averages[a].values, recording->n_elems * sizeof(double));
        recording->snapshots[k][a] = copy;
    }
    return true;
}

/* averages: [N_WIDTHS + N_TARGETS], including the exact target averages. */
static bool follow(struct recording *recording, struct movement *movement, struct average *averages)
{
    uint64_t apart = recording->n_steps / recording->n_times;
    for (uint64_t step = 1; step <= recording->n_steps; step++) {
        movement->regime->step(movement, step);
        for (size_t a = 0; a < N_WIDTHS + N_TARGETS; a++)
            update(&averages[a], movement, step);
        if (step % apart == 0 && !keep_snapshot(recording, (size_t)(step / apart) - 1, averages))
            return false;
    }
    return true;
}

/* The recording owns the target averages; those of the snapshots are temporary. */
static bool allocate(struct recording *recording, struct average *averages)
{
    bool is_complete = true;
    for (size_t a = 0; a < N_WIDTHS + N_TARGETS; a++) {
        averages[a].values = calloc(recording->n_elems, sizeof(double));
        is_complete = is_complete && averages[a].values;
    }
    for (size_t m = 0; m < N_TARGETS; m++)
        recording->truths[m] = averages[N_WIDTHS + m].values;
    return is_complete;
}

static enum phema_status find_gammas(struct recording *recording, struct average *averages,
                                     struct phema_error *err)
{
    for (size_t a = 0; a < N_WIDTHS + N_TARGETS; a++) {
        double sigma_rel = a < N_WIDTHS ? snapshot_widths[a] : target_widths[a - N_WIDTHS];
        double *gamma =
            a < N_WIDTHS ? &recording->gammas[a] : &recording->target_gammas[a - N_WIDTHS];
        enum phema_status status = phema_gamma_from_sigma_rel(gamma, sigma_rel, err);
        if (status)
            return status;
        averages[a].gamma = *gamma;
    }
    return PHEMA_OK;
}

enum phema_status recording_make(struct recording *recording, const struct regime *regime,
                                 uint64_t n_steps, size_t n_times, struct phema_error *err)
{
    struct movement movement = {.regime = regime, .n_steps = n_steps};
    struct average averages[N_WIDTHS + N_TARGETS] = {{0}};
    *recording = (struct recording){.regime = regime, .n_steps = n_steps, .n_times = n_times};
    enum phema_status status = find_gammas(recording, averages, err);
    if (status)
        return status;
    bool is_complete = regime->start(&movement);
    recording->n_elems = movement.n;
    is_complete =
        is_complete && allocate(recording, averages) && follow(recording, &movement, averages);
    for (size_t a = 0; a < N_WIDTHS; a++)
        free(averages[a].values);
    regime->end(&movement);
    if (is_complete)
        return PHEMA_OK;
    recording_clear(recording);
    return phema_fail_memory(err);
}
