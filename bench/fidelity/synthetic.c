// SPDX-License-Identifier: Apache-2.0
/* synthetic.c - simulated movements: theta = walk + pull to an optimum + jitter. A simulation gives
 * the amount of each at a step. */
#include "synthetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

#define N_PARAMS 8192

struct state {
    double walks[N_PARAMS];   /* the random walk, starting at the first parameters */
    double optima[N_PARAMS];  /* where it is pulled to */
    double walking[N_PARAMS]; /* speed of an element's walk, relative to the regime's */
    double shaking[N_PARAMS]; /* amount of its jitter, likewise */
    uint64_t random;
};

static void mix_sizes(struct state *state)
{
    for (size_t i = 0; i < N_PARAMS; i++) {
        double size = pow(10, -3 * random_unit(&state->random));
        state->walks[i] *= size;
        state->walking[i] = size * pow(10, -2 * random_unit(&state->random));
        state->shaking[i] = size * pow(10, -2 * random_unit(&state->random));
    }
}

bool simulation_start(struct movement *movement)
{
    struct state *state = calloc(1, sizeof(*state));
    movement->n = N_PARAMS;
    movement->state = state;
    movement->params = calloc(N_PARAMS, sizeof(double));
    if (!state || !movement->params)
        return false;
    state->random = movement->regime->seed;
    for (size_t i = 0; i < N_PARAMS; i++) {
        state->walks[i] = random_normal(&state->random);
        state->optima[i] = random_normal(&state->random);
        state->walking[i] = state->shaking[i] = 1;
    }
    if (movement->regime->simulation->is_mixed)
        mix_sizes(state);
    memcpy(movement->params, state->walks, sizeof(state->walks));
    return true;
}

void simulation_step(struct movement *movement, uint64_t step)
{
    struct state *state = movement->state;
    struct motion_at at =
        movement->regime->simulation->motion((double)step, (double)movement->n_steps);
    uint64_t random = state->random;
    for (size_t i = 0; i < N_PARAMS; i++) {
        double place = state->walks[i];
        if (at.walk > 0)
            place += at.walk * state->walking[i] * random_normal(&random);
        place += at.pull * (state->optima[i] - place);
        state->walks[i] = place;
        if (at.jitter > 0)
            place += at.jitter * state->shaking[i] * random_normal(&random);
        movement->params[i] = place;
    }
    state->random = random;
}

void simulation_end(struct movement *movement)
{
    free(movement->state);
    free(movement->params);
}

static struct motion_at white(double step, double n_steps)
{
    (void)step;
    (void)n_steps;
    return (struct motion_at){.jitter = 0.05};
}

/* As far as the size of the parameters, over the whole run. */
static struct motion_at walk(double step, double n_steps)
{
    (void)step;
    return (struct motion_at){.walk = 1 / sqrt(n_steps)};
}

/* The variance rate of the walk falls as 1/t, and the distance to the optimum as 1/sqrt(t). Jitter
 * falls as the root of a learning rate of 1/sqrt(t). */
static struct motion_at drift(double step, double n_steps)
{
    double t = step + 0.02 * n_steps;
    return (struct motion_at){
        .walk = 0.15 / sqrt(t), .pull = 0.5 / t, .jitter = 0.02 * pow(t / n_steps, -0.25)};
}

/* All amounts in proportion to the learning rate. */
static struct motion_at at_rate(double rate, double n_steps)
{
    return (struct motion_at){
        .walk = rate * 0.5 / sqrt(n_steps), .pull = rate / n_steps, .jitter = rate * 0.02};
}

static struct motion_at drop(double step, double n_steps)
{
    return at_rate(step > 0.7 * n_steps ? 0.1 : 1, n_steps);
}

static struct motion_at fall(double step, double n_steps)
{
    return at_rate(1 - (step - 0.5) / n_steps, n_steps);
}

/* Some elements walk, some shake, most move little. */
static struct motion_at slow(double step, double n_steps)
{
    double slower = sqrt(0.1 * n_steps / (step + 40));
    return (struct motion_at){.walk = slower * 3 / sqrt(n_steps), .jitter = slower};
}

const struct simulation simulation_white = {"jitter around a constant", white, false};
const struct simulation simulation_walk = {"a random walk", walk, false};
const struct simulation simulation_drift = {
    "a walk, a pull to an optimum and jitter, all slowing down", drift, false};
const struct simulation simulation_drop = {"all motion falls to a tenth after 70 % of the run",
                                           drop, false};
const struct simulation simulation_mixed = {"sizes and speeds over orders of magnitude", slow,
                                            true};
const struct simulation simulation_fall = {"all motion falls linearly to 0", fall, false};
