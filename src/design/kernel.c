// SPDX-License-Identifier: Apache-2.0
/* kernel.c - profiles in double, for the filter, where the last digits do not matter. */
#include "filter.h"

#include <math.h>

PHEMA_FALLIBLE kernel_make(struct kernel *kernel, const struct phema_profile *profile, double end,
                           struct phema_error *err)
{
    double begin = end - profile->length;
    *kernel = (struct kernel){.shape = profile->shape, .origin = profile->origin};
    switch (profile->shape) {
    case PHEMA_SHAPE_RAW:
        return PHEMA_OK;
    case PHEMA_SHAPE_POWER:
        kernel->power = profile->gamma + 1;
        break;
    case PHEMA_SHAPE_EMA:
        kernel->rate = M_LN2 / profile->half_life;
        break;
    case PHEMA_SHAPE_RAMPED:
        kernel->rate = M_LN2 / profile->half_life;
        kernel->power = M_LN2 / profile->ramp;
        kernel->turn = profile->half_life / profile->ramp;
        break;
    case PHEMA_SHAPE_WINDOW:
    case PHEMA_SHAPE_COSINE:
    case PHEMA_SHAPE_MINUS_SQRT:
        if (!(begin >= 0))
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "a window of %g reaches back beyond the training's begin, from %g on",
                              profile->length, end);
        kernel->origin = begin;
        kernel->end = end;
        kernel->power = profile->shape == PHEMA_SHAPE_WINDOW ? 1 : 0.5;
        break;
    default:
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "a table of betas cannot be planned for: it is made of steps of one "
                          "training; expected a power function, an EMA or a window");
    }
    if (profile->update_every > 1 || profile->reset > 0)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "averages that are updated every %g steps, or were reset, cannot be "
                          "planned with; they lose more than a plan wins",
                          (double)profile->update_every);
    return PHEMA_OK;
}

static double rise(const struct kernel *kernel, double t)
{
    double sine = sin(M_PI_2 * (t - kernel->origin) / (kernel->end - kernel->origin));
    return sine * sine;
}

double kernel_decay(const struct kernel *kernel, double from, double to)
{
    double begin = from - kernel->origin, end = to - kernel->origin;
    if (kernel->shape == PHEMA_SHAPE_EMA)
        return exp(kernel->rate * (from - to));
    if (kernel->shape == PHEMA_SHAPE_RAW || begin <= 0 || end <= 0)
        return 0;
    if (kernel->shape == PHEMA_SHAPE_COSINE)
        return rise(kernel, from) / rise(kernel, to);
    if (kernel->shape != PHEMA_SHAPE_RAMPED)
        return exp(kernel->power * log(begin / end));
    double turn = fmin(fmax(kernel->turn, begin), end);
    return exp(kernel->power * log(begin / turn) - kernel->rate * (end - turn));
}

double kernel_density(const struct kernel *kernel, double t, double decay)
{
    double since = t - kernel->origin;
    if (kernel->shape == PHEMA_SHAPE_EMA)
        return kernel->rate * decay;
    if (kernel->shape == PHEMA_SHAPE_RAW || since <= 0)
        return 0;
    if (kernel->shape == PHEMA_SHAPE_RAMPED && since > kernel->turn)
        return kernel->rate * decay;
    if (kernel->shape != PHEMA_SHAPE_COSINE)
        return kernel->power * decay / since;
    double whole = kernel->end - kernel->origin;
    return decay * M_PI / whole / tan(M_PI_2 * since / whole);
}

double kernel_scale(const struct kernel *kernel, double t)
{
    double scale = t;
    if (kernel->power > 0 && t > kernel->origin)
        scale = fmin(scale, (t - kernel->origin) / kernel->power);
    if (kernel->rate > 0)
        scale = fmin(scale, 1 / kernel->rate);
    return scale;
}

bool kernel_equals(const struct kernel *a, const struct kernel *b)
{
    return a->shape == b->shape && a->power == b->power && a->origin == b->origin &&
           a->end == b->end && a->rate == b->rate && a->turn == b->turn;
}
