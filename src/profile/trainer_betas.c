// SPDX-License-Identifier: Apache-2.0
/* trainer_betas.c - the betas of trainers whose averages have no closed form: diffusers,
 * torchtitan, Lightning, TRL. */
#include <float.h>
#include <math.h>

#include "phema/quad.h"
#include "spec.h"

bool spec_is_trainer(const struct spec_kind *kind)
{
    return kind->build == BUILD_DIFFUSERS || kind->build == BUILD_TITAN ||
           kind->build == BUILD_LIGHTNING || kind->build == BUILD_BEMA;
}

/* Whether 1 - rest rounds to one double although the last two bits of rest, from libm, may be
 * wrong. A long training has a million betas, and quad takes a microsecond: it is used only where
 * this fails, so that every machine has the same betas. */
static bool is_certain(double *out, double rest)
{
    double slack = 2 * DBL_EPSILON * rest;
    *out = 1 - rest;
    return 1 - (rest + slack) == 1 - (rest - slack);
}

/* ---- diffusers ---- */

static double one_minus_power(double base, double exponent)
{
    double value;
    if (is_certain(&value, pow(base, -exponent)))
        return value;
    return (double)(1 - phema_quad_pow((phema_quad)base, -(phema_quad)exponent));
}

/* EMAModel.get_decay (src/diffusers/training_utils.py): the optimisation step is counted before the
 * decay is computed, so the first step copies the parameters. */
static double diffusers_beta(const struct phema_spec_term *term, uint64_t optimization_step)
{
    double step = (double)optimization_step - spec_value(term, "update-after") - 1;
    if (step <= 0)
        return 0;
    double value =
        spec_value(term, "warmup") != 0
            ? one_minus_power(1 + step / spec_value(term, "inv-gamma"), spec_value(term, "power"))
            : (1 + step) / (10 + step);
    return fmax(fmin(value, spec_value(term, "decay")), spec_value(term, "min-decay"));
}

/* ---- torchtitan ---- */

/* 2^-x */
static double halved(double x)
{
    double value;
    if (is_certain(&value, -expm1(-M_LN2 * x)))
        return value;
    return (double)phema_quad_pow(2, -(phema_quad)x);
}

/* torchtitan's EMA, whose half-life is a fraction of the updates so far: at update k the decay is
 * 2^(-1/(fraction k)). Which steps are updates, and what k is, depends on its version: count since
 * September 2026 (components/ema), floor in August, counter for some days between, steps before. */
static bool titan_beta(double *beta, const struct phema_spec_term *term, uint64_t step)
{
    double since = (double)step - spec_value(term, "start"), every = spec_value(term, "every");
    double bias = spec_value(term, "bias"), k = 0;
    enum titan_counting counting = (enum titan_counting)spec_value(term, "counting");
    if (since < (counting == TITAN_COUNT ? 1 : 0) || fmod(since, every) != 0)
        return false;
    switch (counting) {
    case TITAN_COUNT:
        k = since / every + bias;
        break;
    case TITAN_COUNTER: /* its first update has k = 1; there is no step 0 */
        k = since / every + (spec_value(term, "start") > 0) + bias;
        break;
    case TITAN_FLOOR:
        k = fmax(floor((since + bias) / every), 1);
        break;
    case TITAN_STEPS:
        k = fmax(since + bias, 1);
        break;
    }
    double decay = spec_value(term, "decay");
    *beta = isnan(decay) ? halved(1 / (spec_value(term, "fraction") * k)) : decay;
    return true;
}

/* ---- Lightning ---- */

/* EMAWeightAveraging (lightning.pytorch.callbacks.weight_averaging): updated after the steps 1, 1 +
 * every, ... that are later than start; the first update copies the parameters. */
static bool lightning_beta(double *beta, const struct phema_spec_term *term, uint64_t step)
{
    double before = (double)step - 1, start = spec_value(term, "start");
    double every = spec_value(term, "every");
    if (before < start || fmod(before, every) != 0)
        return false;
    *beta = before - every < start ? 0 : spec_value(term, "decay");
    return true;
}

/* ---- TRL ---- */

double spec_bema_update(const struct phema_spec_term *term, double t)
{
    double after = spec_value(term, "after"), every = spec_value(term, "every");
    double n = floor((t - after) / every);
    return n >= 1 ? after + n * every : 0;
}

/* lag + multiplier t */
static double bema_age(const struct phema_spec_term *term, double step)
{
    return spec_value(term, "lag") + spec_value(term, "multiplier") * step;
}

double spec_bema_factor(const struct phema_spec_term *term, double update)
{
    return (double)phema_quad_pow((phema_quad)bema_age(term, update),
                                  -(phema_quad)spec_value(term, "bias-power"));
}

/* BEMACallback (trl/trainer/callbacks.py; arXiv:2508.00180): at step `after` the average begins as
 * a copy of the parameters, and `every` steps later it is updated with 1 - beta =
 * age^-ema-power. */
static bool bema_beta(double *beta, const struct phema_spec_term *term, uint64_t step)
{
    double since = (double)step - spec_value(term, "after");
    if (since < 0 || fmod(since, spec_value(term, "every")) != 0)
        return false;
    double value = one_minus_power(bema_age(term, (double)step), spec_value(term, "ema-power"));
    *beta = since > 0 ? fmin(value, 1 - spec_value(term, "min-ema")) : 0;
    return true;
}

bool spec_trainer_beta(double *beta, const struct phema_spec_term *term, uint64_t step)
{
    if (term->kind->build == BUILD_TITAN)
        return titan_beta(beta, term, step);
    if (term->kind->build == BUILD_LIGHTNING)
        return lightning_beta(beta, term, step);
    if (term->kind->build == BUILD_BEMA)
        return bema_beta(beta, term, step);
    *beta = diffusers_beta(term, step);
    return true;
}
