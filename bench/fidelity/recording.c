// SPDX-License-Identifier: Apache-2.0
/* recording.c - records snapshots and exact averages of a movement. */
#include "recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/span.h"

#define RESUMED 0.4 /* share of the run, where averages restart */

const char *const end_names[N_ENDS] = {"end", "mid"};
const char *const average_names[N_AVERAGES] = {"0.01",  "0.015", "0.02", "0.03", "0.05",
                                               "0.075", "0.10",  "0.15", "0.20", "0.28",
                                               "h2%",   "h5%",   "h15%"};

/* sigma_rel of a power function, or half-life of an exponential as a share of the run; both 0: the
 * parameters themselves. */
struct width {
    double sigma_rel, half_life;
    uint64_t update_every;
};

static const struct width tracked_widths[N_TRACKED] = {
    [TRACKED_NARROW] = {0.05, 0, 0},       [TRACKED_WIDE] = {0.10, 0, 0},
    [TRACKED_EXPONENTIAL] = {0, 0.015, 0}, [TRACKED_WIDEST] = {0.20, 0, 0},
    [TRACKED_LONG] = {0, 0.17, 0},         [TRACKED_COMB] = {0.05, 0, 10}};
static const struct width target_widths[N_AVERAGES] = {
    {0.01, 0, 0},  {0.015, 0, 0}, {0.02, 0, 0}, {0.03, 0, 0}, {0.05, 0, 0},
    {0.075, 0, 0}, {0.10, 0, 0},  {0.15, 0, 0}, {0.20, 0, 0}, {0.28, 0, 0},
    {0, 0.02, 0},  {0, 0.05, 0},  {0, 0.15, 0}};

static enum phema_status make_profile(struct phema_profile *profile, struct width width,
                                      uint64_t n_steps, struct phema_error *err)
{
    *profile = (struct phema_profile){.shape = PHEMA_SHAPE_RAW, .update_every = width.update_every};
    if (width.half_life > 0) {
        profile->shape = PHEMA_SHAPE_EMA;
        profile->half_life = width.half_life * (double)n_steps;
    }
    if (width.sigma_rel <= 0)
        return PHEMA_OK;
    profile->shape = PHEMA_SHAPE_POWER;
    return phema_gamma_from_sigma_rel(&profile->gamma, width.sigma_rel, err);
}

static enum phema_status make_profiles(struct recording *recording, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t a = 0; !status && a < N_TRACKED; a++)
        status = make_profile(&recording->tracked[a], tracked_widths[a], recording->n_steps, err);
    for (size_t m = 0; !status && m < N_TARGETS; m++) {
        struct phema_profile *target = &recording->targets[m];
        status = make_profile(target, target_widths[m % N_AVERAGES], recording->n_steps, err);
        target->t = (double)recording->n_steps * (m < N_AVERAGES ? 1 : MID);
    }
    return status;
}

void recording_clear(struct recording *recording)
{
    for (size_t k = 0; k < MAX_TIMES; k++) {
        for (size_t a = 0; a < N_TRACKED; a++)
            free(recording->snapshots[k][a]);
    }
    for (size_t m = 0; m < N_TARGETS; m++)
        free(recording->truths[m]);
    *recording = (struct recording){0};
}

/* Averages while the parameters move. */
struct running {
    float *tracked[N_TRACKED];
    double **exact; /* [N_AVERAGES] become the targets at the end */
};

/* torch.lerp in float32: exact at both ends. */
static void update_tracked(float *values, double fresh, const struct movement *movement)
{
    float weight = (float)fresh;
    for (size_t i = 0; i < movement->n; i++) {
        float param = (float)movement->params[i], apart = param - values[i];
        values[i] = weight < 0.5F ? values[i] + weight * apart : param - apart * (1 - weight);
    }
}

static void update_exact(double *values, double fresh, const struct movement *movement)
{
    for (size_t i = 0; i < movement->n; i++)
        values[i] += fresh * (movement->params[i] - values[i]);
}

uint64_t recording_reset(const struct recording *recording)
{
    enum event event = recording->regime->event;
    bool is_reset = event == EVENT_RESET || event == EVENT_TOLD_RESET;
    return is_reset ? (uint64_t)(RESUMED * (double)recording->n_steps) : 0;
}

static void update(struct running *running, const struct recording *recording,
                   const struct movement *movement, uint64_t step)
{
    bool is_resumed = step == recording_reset(recording);
    for (size_t a = 0; a < N_TRACKED; a++) {
        double beta = is_resumed ? 0 : phema_profile_beta(&recording->tracked[a], step);
        update_tracked(running->tracked[a], 1 - beta, movement);
    }
    for (size_t a = 0; a < N_AVERAGES; a++)
        update_exact(running->exact[a], 1 - phema_profile_beta(&recording->targets[a], step),
                     movement);
}

static bool keep_snapshot(struct recording *recording, size_t k, const struct running *running)
{
    for (size_t a = 0; a < N_TRACKED; a++) {
        float *copy = malloc(recording->n_elems * sizeof(*copy));
        if (!copy)
            return false;
        memcpy(copy, running->tracked[a], recording->n_elems * sizeof(*copy));
        recording->snapshots[k][a] = copy;
    }
    return true;
}

static bool follow(struct recording *recording, struct movement *movement, struct running *running)
{
    uint64_t apart = recording->n_steps / recording->n_times;
    uint64_t mid = (uint64_t)(MID * (double)recording->n_steps);
    for (uint64_t step = 1; step <= recording->n_steps; step++) {
        movement_step(movement, step);
        update(running, recording, movement, step);
        if (step % apart == 0 && !keep_snapshot(recording, (size_t)(step / apart) - 1, running))
            return false;
        for (size_t a = 0; step == mid && a < N_AVERAGES; a++)
            memcpy(recording->truths[N_AVERAGES + a], running->exact[a],
                   recording->n_elems * sizeof(double));
    }
    return true;
}

/* All averages start as the parameters before training. */
static bool start_running(struct running *running, struct recording *recording,
                          const struct movement *movement)
{
    size_t n = recording->n_elems = movement->n;
    bool is_complete = true;
    running->exact = recording->truths;
    for (size_t m = 0; m < N_TARGETS; m++) {
        recording->truths[m] = malloc(n * sizeof(double));
        if (recording->truths[m])
            memcpy(recording->truths[m], movement->params, n * sizeof(double));
        is_complete = is_complete && recording->truths[m];
    }
    for (size_t a = 0; a < N_TRACKED; a++) {
        running->tracked[a] = malloc(n * sizeof(float));
        for (size_t i = 0; running->tracked[a] && i < n; i++)
            running->tracked[a][i] = (float)movement->params[i];
        is_complete = is_complete && running->tracked[a];
    }
    return is_complete;
}

enum phema_status recording_make(struct recording *recording, const struct regime *regime,
                                 uint64_t n_steps, size_t n_times, struct phema_error *err)
{
    struct movement movement;
    struct running running = {0};
    *recording = (struct recording){.regime = regime, .n_steps = n_steps, .n_times = n_times};
    enum phema_status status = make_profiles(recording, err);
    if (status)
        return status;
    bool is_complete = movement_start(&movement, regime, n_steps) &&
                       start_running(&running, recording, &movement) &&
                       follow(recording, &movement, &running);
    for (size_t a = 0; a < N_TRACKED; a++)
        free(running.tracked[a]);
    movement_end(&movement);
    if (is_complete)
        return PHEMA_OK;
    recording_clear(recording);
    return phema_fail_memory(err);
}
