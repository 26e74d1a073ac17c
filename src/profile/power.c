// SPDX-License-Identifier: Apache-2.0
/* power.c - power-function profiles: sigma_rel, gamma, half-life, beta (arXiv:2312.02696, section
 * 3.1 and appendix C.1). Roots and betas are computed in quad, so that every machine rounds them
 * alike. */
#include "phema/profile.h"

#include "phema/quad.h"
#include "phema/strbuf.h"

/* f(g) = g^3 + 7 g^2 + (16 - s^-2) g + 12 - s^-2 is convex for g > -7/3 and f(1/s) > 0: Newton from
 * 1/s walks down to the largest root without crossing it. */
static double largest_root(phema_quad sigma_rel)
{
    phema_quad c = 1 / (sigma_rel * sigma_rel);
    phema_quad gamma = 1 / sigma_rel;
    for (;;) {
        phema_quad value = ((gamma + 7) * gamma + (16 - c)) * gamma + (12 - c);
        phema_quad slope = (3 * gamma + 14) * gamma + (16 - c);
        phema_quad next = gamma - value / slope;
        if (!(next < gamma))
            return (double)gamma;
        gamma = next;
    }
}

enum phema_status phema_gamma_from_sigma_rel(double *gamma, double sigma_rel,
                                             struct phema_error *err)
{
    struct phema_name_buffer found;
    if (!(sigma_rel > 0) || isinf(sigma_rel) || sigma_rel >= PHEMA_SIGMA_REL_SUPREMUM)
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "expected a sigma_rel above 0 and below 0.289, found %s; no "
                          "power-function average is wider than 0.300283 of its training time "
                          "(gamma -0.382 has that), and EDM2 ends at 0.289",
                          phema_number_format(&found, sigma_rel));
    if (sigma_rel >= PHEMA_SIGMA_REL_LIMIT)
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "expected a sigma_rel above 0 and below 0.289, where EDM2 ends, found "
                          "%s; from 0.288675 on, gamma is negative and the average weighs the "
                          "oldest parameters most, and at 0.300283 no wider one exists at all",
                          phema_number_format(&found, sigma_rel));
    if (sigma_rel < 0x1p-52)
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "expected a sigma_rel above 2.3e-16 and below 0.289, found %s",
                          phema_number_format(&found, sigma_rel));
    *gamma = largest_root((phema_quad)sigma_rel);
    return PHEMA_OK;
}

double phema_sigma_rel_from_gamma(double gamma)
{
    return sqrt(gamma + 1) / ((gamma + 2) * sqrt(gamma + 3));
}

double phema_power_beta(double gamma, uint64_t step)
{
    if (step < 2)
        return 0;
    phema_quad ratio = (phema_quad)(step - 1) / (phema_quad)step;
    return (double)phema_quad_pow(ratio, (phema_quad)gamma + 1);
}

double phema_half_life_from_gamma(double gamma, double t)
{
    return -t * expm1(-M_LN2 / (gamma + 1));
}

enum phema_status phema_gamma_from_half_life(double *gamma, double half_life, double t,
                                             struct phema_error *err)
{
    if (!(t > 0) || isinf(t))
        return phema_fail(err, PHEMA_ERR_TARGET, "expected a time above 0, found %.17g", t);
    /* gamma = -1/2, the end of the square-integrable ones, has t (1 - 2^-2) */
    struct phema_name_buffer given, time; /* the wrong number comes first */
    if (!(half_life > 0) || half_life >= 0.75 * t)
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "a half-life of %s is not above 0 and below three quarters of the "
                          "training time %s; no square-integrable power-function average is longer",
                          phema_number_format(&given, half_life), phema_number_format(&time, t));
    double found = -M_LN2 / log1p(-half_life / t) - 1;
    if (!(found < 0x1p53))
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "a half-life of %s is too short beside the training time %s",
                          phema_number_format(&given, half_life), phema_number_format(&time, t));
    *gamma = found;
    return PHEMA_OK;
}

static enum phema_status find_gamma(double *gamma, double t, enum phema_length unit, double value,
                                    struct phema_error *err)
{
    switch (unit) {
    case PHEMA_SIGMA_REL:
        return phema_gamma_from_sigma_rel(gamma, value, err);
    case PHEMA_HALF_LIFE:
    case PHEMA_HALF_LIFE_REL:
        return phema_gamma_from_half_life(gamma, value, unit == PHEMA_HALF_LIFE ? t : 1, err);
    case PHEMA_DECAY:
        return phema_gamma_from_sigma_rel(gamma, -1 / log(value) / t, err);
    case PHEMA_EMA_HALF_LIFE:
        return phema_gamma_from_sigma_rel(gamma, value / M_LN2 / t, err);
    default:
        *gamma = unit == PHEMA_BETA ? log(value) / log1p(-1 / t) - 1 : value;
        return PHEMA_OK;
    }
}

/* The exponential EMA that matches has the same standard deviation in time: 1/k = sigma_rel t, and
 * decay e^-k for each step (arXiv:2312.02696, section 3.1, where sigma_rel is that width). The beta
 * of a step is (1 - 1/step)^(gamma+1) (eq. 127). */
enum phema_status phema_power_lengths(double out[PHEMA_LENGTHS], double t, enum phema_length unit,
                                      double value, struct phema_error *err)
{
    double gamma = PHEMA_UNKNOWN;
    enum phema_status status = find_gamma(&gamma, t, unit, value, err);
    if (status)
        return status;
    if (!(gamma > -0.5) || !isfinite(gamma))
        return phema_fail(err, PHEMA_ERR_TARGET,
                          "gamma %g is not above -0.5, where power functions cease to be "
                          "square-integrable",
                          gamma);
    double sigma_rel = phema_sigma_rel_from_gamma(gamma);
    out[PHEMA_SIGMA_REL] = sigma_rel;
    out[PHEMA_GAMMA] = gamma;
    out[PHEMA_HALF_LIFE_REL] = phema_half_life_from_gamma(gamma, 1);
    out[PHEMA_TIME] = t;
    out[PHEMA_WIDTH] = sigma_rel * t;
    out[PHEMA_HALF_LIFE] = phema_half_life_from_gamma(gamma, t);
    out[PHEMA_BETA] = t > 1 ? exp((gamma + 1) * log1p(-1 / t)) : 0;
    out[PHEMA_DECAY] = exp(-1 / out[PHEMA_WIDTH]);
    out[PHEMA_EMA_HALF_LIFE] = M_LN2 * sigma_rel * t;
    if (unit < PHEMA_TIME)
        out[unit] = value; /* not what the formulas make of it */
    return PHEMA_OK;
}
