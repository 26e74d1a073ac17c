// SPDX-License-Identifier: Apache-2.0
/* evaluate.c - any profile at a point in time, and its beta at a step. */
#include "phema/family.h"

size_t phema_betas_count(const struct phema_betas *betas, double t)
{
    size_t low = 0, high = betas->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((double)betas->steps[middle] <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double phema_profile_scale(const struct phema_profile *profile)
{
    const struct phema_betas *betas = profile->betas;
    if (profile->shape != PHEMA_SHAPE_TABLE || !betas->scales)
        return 1;
    /* a reset begins the sum with 1, as the training does */
    size_t n = phema_betas_count(betas, profile->t - profile->reset);
    return n ? betas->scales[n - 1] : 1;
}

/* ---- Curves ---- */

static double share_between(double at, double begin, double end, double before, double after)
{
    return before + (after - before) * ((at - begin) / (end - begin));
}

/* Updated at steps 1, 1 + U, ...: the weight of step s is spread over (s - U, s], or over the time
 * since a reset. Times are counted from the origin. */
static double updated_at(const struct phema_family *family, double end, double reset, double t)
{
    double every = (double)family->every;
    double last = t < 1 ? 0 : 1 + every * floor((t - 1) / every);
    double next = t < 1 ? 1 : last + every;
    if (next > end && t >= 1)
        return 1;
    last = fmax(last, reset);
    phema_quad all = phema_log_updates(family->every, (phema_quad)end);
    double before = 0;
    if (last > 0)
        before = (double)phema_quad_exp(family->power *
                                        (all - phema_log_updates(family->every, (phema_quad)last)));
    double after = (double)phema_quad_exp(
        family->power * (all - phema_log_updates(family->every, (phema_quad)next)));
    return share_between(t, last, next, before, after);
}

/* Backwards through steps and times; kept: product of the betas after step j, the weight before its
 * end. The weight of the first listed step is spread over one step. */
static void follow_betas(double *out, const struct phema_profile *profile, const double *times,
                         size_t n)
{
    const struct phema_betas *betas = profile->betas;
    size_t j = phema_betas_count(betas, profile->t - profile->origin);
    double kept = 1;
    for (size_t i = n; i-- > 0;) {
        double t = times[i] - profile->origin;
        double step = 0, begin = 0;
        for (; j > 0; j--) {
            step = (double)betas->steps[j - 1];
            begin = fmax(j > 1 ? (double)betas->steps[j - 2] : step - 1,
                         profile->reset - profile->origin);
            if (t > begin || t >= step)
                break;
            kept *= betas->betas[j - 1];
        }
        bool is_inside = j > 0 && t < step;
        out[i] = is_inside ? share_between(t, begin, step, kept * betas->betas[j - 1], kept) : kept;
    }
}

void phema_profile_cumulative(double *out, const struct phema_profile *profile, const double *times,
                              size_t n)
{
    struct phema_family family = phema_family_of(profile);
    if (family.form == PHEMA_FAMILY_TABLE)
        follow_betas(out, profile, times, n);
    for (size_t i = 0; i < n; i++) {
        double t = times[i] < 0 ? 0 : times[i];
        if (t >= profile->t)
            out[i] = 1;
        else if (t < profile->reset)
            out[i] = 0;
        else if (family.every > 1)
            out[i] = updated_at(&family, profile->t - profile->origin,
                                profile->reset - profile->origin, t - profile->origin);
        else if (family.form != PHEMA_FAMILY_TABLE)
            out[i] = (double)phema_family_decay(&family, (phema_quad)t, (phema_quad)profile->t);
    }
}

/* ---- Betas, in quad: every machine rounds them alike ---- */

static double power_beta(const struct phema_profile *profile, uint64_t step)
{
    uint64_t every = profile->update_every;
    if (every <= 1)
        return phema_power_beta(profile->gamma, step);
    if (step <= 1)
        return 0; /* begins as a copy */
    /* the clock of the average is a step ahead */
    return (step - 1) % every ? 1 : phema_power_beta(profile->gamma, step + 1);
}

static double ema_beta(phema_quad half_life)
{
    return half_life > 0 ? (double)phema_quad_pow(2, -1 / half_life) : 0;
}

/* EDM2's TraditionalEMA: 0.5^(1 / min(half_life, ramp step)). A step is counted after it is
 * done. */
static double ramped_beta(const struct phema_profile *profile, uint64_t step)
{
    phema_quad half_life = (phema_quad)profile->half_life;
    phema_quad ramp = (phema_quad)profile->ramp * (phema_quad)step;
    return ema_beta(ramp < half_life ? ramp : half_life);
}

/* A root of F of a shape that begins at t - length; finite_beta raises the ratio of two to the
 * power. */
static phema_quad root_of_weight(enum phema_shape shape, phema_quad x)
{
    if (!(x > 0))
        return 0;
    if (!(x < 1))
        return 1;
    if (shape != PHEMA_SHAPE_COSINE)
        return x;
    /* (1 - cos(pi x)) / 2 = sin^2(pi x / 2) */
    return phema_quad_sin(phema_quad_pi() / 2 * x);
}

static double finite_beta(const struct phema_profile *profile, uint64_t step)
{
    if (step == 0)
        return 0;
    phema_quad length = (phema_quad)profile->length;
    phema_quad start = (phema_quad)profile->t - length;
    phema_quad now = root_of_weight(profile->shape, ((phema_quad)step - start) / length);
    phema_quad before = root_of_weight(profile->shape, ((phema_quad)(step - 1) - start) / length);
    if (!(before > 0))
        return 0;
    phema_quad ratio = before / now;
    if (profile->shape == PHEMA_SHAPE_COSINE)
        return (double)(ratio * ratio);
    if (profile->shape == PHEMA_SHAPE_MINUS_SQRT)
        return (double)phema_quad_sqrt(ratio);
    return (double)ratio;
}

static double table_beta(const struct phema_betas *betas, uint64_t step)
{
    size_t n = phema_betas_count(betas, (double)step);
    return n && betas->steps[n - 1] == step ? betas->betas[n - 1] : 1;
}

double phema_profile_beta(const struct phema_profile *profile, uint64_t step)
{
    if (profile->reset > 0 && (double)step <= profile->reset)
        return (double)step == profile->reset ? 0 : 1;
    step = (uint64_t)((double)step - profile->origin);
    switch (profile->shape) {
    case PHEMA_SHAPE_POWER:
        return power_beta(profile, step);
    case PHEMA_SHAPE_EMA:
        return ema_beta((phema_quad)profile->half_life);
    case PHEMA_SHAPE_RAMPED:
        return ramped_beta(profile, step);
    case PHEMA_SHAPE_WINDOW:
    case PHEMA_SHAPE_COSINE:
    case PHEMA_SHAPE_MINUS_SQRT:
        return finite_beta(profile, step);
    case PHEMA_SHAPE_TABLE:
        return table_beta(profile->betas, step);
    case PHEMA_SHAPE_RAW:
        break;
    }
    return 0;
}
