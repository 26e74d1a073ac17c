// SPDX-License-Identifier: Apache-2.0
/* synthetic.c - simulated movements: theta = walk + pull to an optimum + jitter. A regime gives the
 * amount of each at a step. */
#include <math.h>
#include <stdlib.h>

#include "regimes.h"

#define N_PARAMS 20000

struct simulation {
    double *walks;   /* [n] the random walk, starting at the first parameters */
    double *optima;  /* [n] */
    double *walking; /* [n] speed of an element's walk, relative to the regime's */
    double *shaking; /* [n] amount of its jitter, likewise */
    uint64_t noise;
};

/* Motion of parameters of size 1 at one step. */
struct motion_at {
    double walk;   /* standard deviation of the step of the walk */
    double pull;   /* remaining fraction of the way to the optimum, before the step */
    double jitter; /* standard deviation of the jitter, new at every step */
};

static void end_simulation(struct movement *movement)
{
    struct simulation *simulation = movement->state;
    if (simulation) {
        free(simulation->walks);
        free(simulation->optima);
        free(simulation->walking);
        free(simulation->shaking);
    }
    free(simulation);
    free(movement->params);
    *movement = (struct movement){0};
}

static bool start_simulation(struct movement *movement)
{
    struct simulation *simulation = calloc(1, sizeof(*simulation));
    movement->n = N_PARAMS;
    movement->state = simulation;
    movement->params = calloc(N_PARAMS, sizeof(double));
    if (!simulation || !movement->params)
        return false;
    simulation->noise = 1;
    simulation->walks = calloc(N_PARAMS, sizeof(double));
    simulation->optima = calloc(N_PARAMS, sizeof(double));
    simulation->walking = calloc(N_PARAMS, sizeof(double));
    simulation->shaking = calloc(N_PARAMS, sizeof(double));
    if (!simulation->walks || !simulation->optima || !simulation->walking || !simulation->shaking)
        return false;
    for (size_t i = 0; i < N_PARAMS; i++) {
        simulation->walks[i] = random_normal(&simulation->noise);
        simulation->optima[i] = random_normal(&simulation->noise);
        simulation->walking[i] = simulation->shaking[i] = 1;
    }
    return true;
}

/* Sizes over three orders of magnitude, and speeds relative to them over two. */
static bool start_mixed(struct movement *movement)
{
    if (!start_simulation(movement))
        return false;
    struct simulation *simulation = movement->state;
    for (size_t i = 0; i < movement->n; i++) {
        double size = pow(10, -3 * random_unit(&simulation->noise));
        simulation->walks[i] *= size;
        simulation->walking[i] = size * pow(10, -2 * random_unit(&simulation->noise));
        simulation->shaking[i] = size * pow(10, -2 * random_unit(&simulation->noise));
    }
    return true;
}

static void move(struct movement *movement, struct motion_at at)
{
    struct simulation *simulation = movement->state;
    uint64_t noise = simulation->noise;
    for (size_t i = 0; i < movement->n; i++) {
        double place = simulation->walks[i];
        if (at.walk > 0)
            place += at.walk * simulation->walking[i] * random_normal(&noise);
        place += at.pull * (simulation->optima[i] - place);
        simulation->walks[i] = place;
        if (at.jitter > 0)
            place += at.jitter * simulation->shaking[i] * random_normal(&noise);
        movement->params[i] = place;
    }
    simulation->noise = noise;
}

/* Only jitter, of 5 %. */
static void step_white(struct movement *movement, uint64_t step)
{
    (void)step;
    move(movement, (struct motion_at){.jitter = 0.05});
}

/* A walk as far as the size of the parameters, over the whole run. */
static void step_walk(struct movement *movement, uint64_t step)
{
    (void)step;
    move(movement, (struct motion_at){.walk = 1 / sqrt((double)movement->n_steps)});
}

/* All motion slows down. The variance rate of the walk falls as 1/t, and the distance to the
 * optimum as 1/sqrt(t). Jitter falls as the root of a learning rate of 1/sqrt(t). */
static void step_drift(struct movement *movement, uint64_t step)
{
    double t = (double)step + 0.02 * (double)movement->n_steps;
    move(movement, (struct motion_at){.walk = 0.15 / sqrt(t),
                                      .pull = 0.5 / t,
                                      .jitter = 0.02 * pow(t / (double)movement->n_steps, -0.25)});
}

/* The learning rate falls to a tenth after 70 % of the run: everything is ten times smaller. */
static void step_drop(struct movement *movement, uint64_t step)
{
    double total = (double)movement->n_steps;
    double rate = (double)step > 0.7 * total ? 0.1 : 1;
    move(movement, (struct motion_at){.walk = rate * 0.5 / sqrt(total),
                                      .pull = rate / total,
                                      .jitter = rate * 0.02});
}

/* Some elements walk, some shake, most move little. */
static void step_mixed(struct movement *movement, uint64_t step)
{
    double slower = sqrt(0.1 * (double)movement->n_steps / ((double)step + 40));
    move(movement, (struct motion_at){.walk = slower * 3 / sqrt((double)movement->n_steps),
                                      .jitter = slower});
}

const struct regime regime_white = {"white", "jitter around a constant", start_simulation,
                                    step_white, end_simulation};
const struct regime regime_walk = {"walk", "a random walk", start_simulation, step_walk,
                                   end_simulation};
const struct regime regime_drift = {"drift",
                                    "a walk, a pull to an optimum and jitter, all slowing down",
                                    start_simulation, step_drift, end_simulation};
const struct regime regime_drop = {"drop", "all motion falls to a tenth after 70 % of the run",
                                   start_simulation, step_drop, end_simulation};
const struct regime regime_mixed = {"mixed", "sizes and speeds over orders of magnitude",
                                    start_mixed, step_mixed, end_simulation};
