// SPDX-License-Identifier: Apache-2.0
/* motion.c - how parameters are expected to move in a training that has not begun. */
#include <math.h>

#include "phema/design.h"

const char *const phema_moving_names[PHEMA_N_MOVING + 1] = {"walk", "white", "drift", "fall", NULL};

/* |EMA 0.05 - EMA 0.10|^2 of white noise of rate 1 in a training of length 1: A^2/(2A-1) +
 * B^2/(2B-1) - 2AB/(A+B-1) with A = 17.972, B = 7.937 (N14); 0.03 as in (N24). */
#define WHITE_APART 2.0257
#define MOVED       0.03

/* phema_walk_rate(1), which is computed in quad; a test compares them. */
#define WALK_RATE 0.07496514830809689

/* A walk that slows down as 1/t has no rate at 0. */
#define DRIFT_FROM 0.01

/* Rates of another training at its time t. Behind its end they go on as powers of t. */
static void find_seen(double *wander, double *jitter, const struct phema_motion *seen, double t)
{
    size_t low = 0, high = seen->n_intervals - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (seen->ends[middle] < t)
            low = middle + 1;
        else
            high = middle;
    }
    double end = seen->ends[low];
    double behind = t > end ? t / end : 1;
    *wander = seen->wander[low] * pow(behind, -seen->wander_power);
    *jitter = seen->jitter[low] * pow(behind, -seen->jitter_power);
}

void phema_design_rates(double *wander, double *jitter, const struct phema_design_motion *motion,
                        double until, double t)
{
    double rate = WALK_RATE / until, left = fmax(1 - t / until, 0);
    *wander = *jitter = 0;
    switch (motion->moving) {
    case PHEMA_MOVING_WALK:
        *wander = rate;
        break;
    case PHEMA_MOVING_WHITE:
        *jitter = MOVED * MOVED / WHITE_APART * until;
        break;
    case PHEMA_MOVING_DRIFT: /* the mean of 1/max(x, d) over [0, 1] is 1 + log(1/d) */
        *wander = rate / fmax(t / until, DRIFT_FROM) / (1 - log(DRIFT_FROM));
        break;
    case PHEMA_MOVING_FALL:
        *wander = 3 * rate * left * left;
        break;
    case PHEMA_MOVING_SEEN:
        find_seen(wander, jitter, motion->seen, t / motion->stretch);
        *wander /= motion->stretch;
        *jitter *= motion->stretch;
        break;
    }
}
