// SPDX-License-Identifier: Apache-2.0
/* beta.c - the recurrence of a profile: what an average keeps of itself at a step. In quad, so that
 * every machine rounds it alike. */
#include "phema/profile.h"

#include "phema/quad.h"

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

/* EDM2's TraditionalEMA: 0.5^(1 / min(half_life, ramp step)), the step counted when it is done. */
static double ramped_beta(const struct phema_profile *profile, uint64_t step)
{
    phema_quad half_life = (phema_quad)profile->half_life;
    phema_quad ramp = (phema_quad)profile->ramp * (phema_quad)step;
    return ema_beta(ramp < half_life ? ramp : half_life);
}

/* A power of F of a shape that begins at t - length, which the ratio of two of them is raised to in
 * the end. */
static phema_quad root_of_weight(enum phema_shape shape, phema_quad x)
{
    if (!(x > 0))
        return 0;
    if (!(x < 1))
        return 1;
    if (shape != PHEMA_SHAPE_COSINE)
        return x;
    /* (1 - cos(pi x)) / 2 = sin^2(pi x / 2) */
    phema_quad half_pi =
        phema_quad_from_text("1.57079632679489661923132169163975144209858469968755");
    return phema_quad_sin(half_pi * x);
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
    size_t low = 0, high = betas->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (betas->steps[middle] < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low < betas->n && betas->steps[low] == step ? betas->betas[low] : 1;
}

double phema_profile_beta(const struct phema_profile *profile, uint64_t step)
{
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
