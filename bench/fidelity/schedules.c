// SPDX-License-Identifier: Apache-2.0
/* schedules.c - the schedules that trainers use. */
#include "schedules.h"

#include <math.h>

static const double pi = 3.141592653589793;

/* Falls from 1 to 0. */
static double half_wave(double x)
{
    return 0.5 + 0.5 * cos(pi * x);
}

static double constant(double done)
{
    (void)done;
    return 1;
}

/* EDM2's: constant, then 1/sqrt(t). */
static double root(double done)
{
    return 1 / sqrt(done > 0.1 ? done / 0.1 : 1);
}

static double linear(double done)
{
    return 1 - done;
}

static double tenth(double done)
{
    return 0.1 + 0.9 * half_wave(done);
}

/* Warm-up, stable, decay (arXiv:2404.06395). */
static double wsd(double done)
{
    return done < 0.8 ? 1 : (1 - done) / 0.2;
}

/* torch.optim.lr_scheduler.OneCycleLR with its defaults: 30 %, 1/25, 1/25e4. */
static double onecycle(double done)
{
    if (done < 0.3)
        return 1 - 0.96 * half_wave(done / 0.3);
    return 4e-6 + (1 - 4e-6) * half_wave((done - 0.3) / 0.7);
}

/* SGDR: three cycles (arXiv:1608.03983). */
static double restarts(double done)
{
    return half_wave(fmod(3 * done, 1));
}

/* A constant rate, and a second stage that is warmed up again and falls to 0. */
static double rewarmed(double done)
{
    if (done < 0.6)
        return 1;
    return done < 0.62 ? 0.8 * (done - 0.6) / 0.02 : 0.8 * (1 - done) / 0.38;
}

/* Divided by ten twice. */
static double steps(double done)
{
    return done < 0.5 ? 1 : done < 0.75 ? 0.1 : 0.01;
}

double schedule_factor(const struct schedule *schedule, double done)
{
    double rise = done < schedule->warmup ? done / schedule->warmup : 1;
    return rise * schedule->factor(done);
}

#define WARMUP 0.0125

const struct schedule schedule_constant = {"constant rate", constant, WARMUP};
const struct schedule schedule_root = {"rate 1/sqrt(t)", root, WARMUP};
const struct schedule schedule_linear = {"linear to 0", linear, WARMUP};
const struct schedule schedule_cosine = {"cosine to 0", half_wave, WARMUP};
const struct schedule schedule_tenth = {"cosine to a tenth", tenth, WARMUP};
const struct schedule schedule_wsd = {"constant, linear to 0 in the last 20 %", wsd, WARMUP};
const struct schedule schedule_onecycle = {"one cycle", onecycle, 0};
const struct schedule schedule_restarts = {"cosine to 0 in three cycles", restarts, WARMUP};
const struct schedule schedule_rewarmed = {"constant, warmed up again at 60 %, linear to 0",
                                           rewarmed, WARMUP};
const struct schedule schedule_steps = {"a tenth at 50 and 75 %", steps, WARMUP};
