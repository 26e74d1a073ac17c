// SPDX-License-Identifier: Apache-2.0
/* kept_rounding.c - the error that an average has because a training kept it in float32
 * (docs/numerics.md, section 7). */
#include <math.h>

#include "motion_work.h"
#include "phema/dtype.h"
#include "phema/solver.h"

/* Of the integral of F^2. Points lie densely towards the end of the average, where short ones have
 * their weight. */
#define N_POINTS ((size_t)24)

/* Updates that the last one is taken for the mean of: one that is made now and then has no time. */
#define SPAN 16.0

/* Of simulated walks. Where updates are r spacings large, LOST tau / r spacings are lost, and MOST_LOST tau
 * at most; 1 / tau is the weight of an update. */
#define LOST      0.037
#define MOST_LOST 0.25

/* Steps from one update to the next, in the mean. */
static double update_interval(const struct phema_profile *average)
{
    const struct phema_betas *betas = average->betas;
    if (average->shape == PHEMA_SHAPE_TABLE && betas && betas->n > 1)
        return (double)(betas->steps[betas->n - 1] - betas->steps[0]) / (double)(betas->n - 1);
    return average->update_every > 1 ? (double)average->update_every : 1;
}

/* How an average forgets: F is the weight on what was before a time. */
struct forgetting {
    double times[N_POINTS + 1], before[N_POINTS + 1]; /* F at these times */
    double kept;                                      /* the integral of F^2 */
    double tau;                                       /* updates, 1 / -log beta of the last ones */
};

/* F, in double precision where it has a closed form: powers in quad took a sixth of `weights`. */
static void find_before(double *before, const struct phema_profile *average, const double *times,
                        size_t n)
{
    bool is_power = average->shape == PHEMA_SHAPE_POWER && average->update_every <= 1,
         is_plain = is_power || average->shape == PHEMA_SHAPE_EMA;
    if (!is_plain || average->origin != 0 || average->reset > 0) {
        phema_profile_cumulative(before, average, times, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double t = times[i], end = average->t;
        if (is_power)
            before[i] =
                t > 0 ? phema_motion_exp((average->gamma + 1) * phema_motion_log(t / end)) : 0;
        else
            before[i] = phema_motion_exp(-phema_motion_log(2) * (end - t) / average->half_life);
    }
}

static void find_forgetting(struct forgetting *forgetting, const struct phema_profile *average,
                            double interval)
{
    double span = fmin(SPAN * interval, average->t / 2), begin = average->t - span, left = 0;
    for (size_t i = 0; i <= N_POINTS; i++) {
        double back = 1 - (double)i / (double)N_POINTS;
        forgetting->times[i] = average->t * (1 - back * back * back * back);
    }
    find_before(forgetting->before, average, forgetting->times, N_POINTS + 1);
    find_before(&left, average, &begin, 1);
    forgetting->kept = 0;
    for (size_t i = 0; i < N_POINTS; i++) {
        double a = forgetting->before[i], b = forgetting->before[i + 1];
        forgetting->kept +=
            (forgetting->times[i + 1] - forgetting->times[i]) * (a * a + a * b + b * b) / 3;
    }
    forgetting->tau = left > 0 ? span / interval / fmax(-phema_motion_log(left), 1e-12) : 1;
}

static double wander_at(const struct phema_motion *motion, double t)
{
    size_t k = 0;
    while (k + 1 < motion->n_intervals && motion->ends[k] < t)
        k++;
    return motion->wander[k];
}

/* Mean squares of how far the parameters are ahead of the average, and of how far the average has come
 * since the beginning. */
static void find_ways(double *ahead, double *come, const struct forgetting *forgetting,
                      const struct phema_motion *motion)
{
    size_t last = motion->n_intervals - 1;
    double behind = 0; /* the integral of F */
    *ahead = motion->jitter[last];
    *come = 0;
    for (size_t i = 0; i < N_POINTS; i++) {
        double from = forgetting->times[i], to = forgetting->times[i + 1];
        double before = (forgetting->before[i] + forgetting->before[i + 1]) / 2;
        double moved = wander_at(motion, (from + to) / 2) * (to - from);
        *ahead += moved * before * before;
        *come += moved * (1 - before) * (1 - before);
        behind += (to - from) * before;
    }
    double speed = motion->speed ? motion->speed[last] : 0;
    *ahead += speed * speed * behind * behind;
    *come += speed * speed * behind * behind;
}

double phema_kept_rounding(const struct phema_profile *average, const struct phema_motion *motion)
{
    if (average->shape == PHEMA_SHAPE_RAW)
        return 0;
    struct forgetting forgetting;
    double spacing = phema_dtype_rounding(PHEMA_F32) * sqrt(12), ahead = 0, come = 0;
    double interval = update_interval(average);
    find_forgetting(&forgetting, average, interval);
    bool is_product = average->betas && average->betas->scales; /* beta e: no update is lost */
    double n_kept = forgetting.kept / interval;
    double noise = spacing * spacing * n_kept / 12 * (is_product ? 2 : 1);
    if (!motion || is_product)
        return sqrt(noise);
    find_ways(&ahead, &come, &forgetting, motion);
    double r = sqrt(ahead) / forgetting.tau / spacing,
           grown = 2 * n_kept * spacing; /* tau spacings */
    double lost = fmin(r * MOST_LOST > LOST ? LOST / r * grown : MOST_LOST * grown, sqrt(come));
    return sqrt(noise + lost * lost);
}
