// SPDX-License-Identifier: Apache-2.0
/* spec_resolve.c - SPEC plus end time to a profile, or to a sum of profiles; merges (PMA, WSM), lines. */
#include <math.h>
#include <stdio.h>

#include "phema/quad.h"
#include "phema/setting.h"
#include "spec.h"

/* NVIDIA's Cosmos: a power function whose clock is ahead by iteration_shift. */
static enum phema_status set_cosmos(struct phema_profile *profile,
                                    const struct phema_spec_term *term, struct phema_error *err)
{
    profile->origin = -spec_value(term, "shift");
    return phema_gamma_from_sigma_rel(&profile->gamma, spec_value(term, "sigma-rel"), err);
}

PHEMA_FALLIBLE spec_resolve_power(double *sigma_rel, double *gamma,
                                  const struct phema_spec_term *term, struct phema_error *err)
{
    double width = spec_value(term, "sigma");
    if (isnan(width)) {
        *gamma = spec_value(term, "gamma");
        *sigma_rel = phema_sigma_rel_from_gamma(*gamma);
        return PHEMA_OK;
    }
    *sigma_rel = width;
    return phema_gamma_from_sigma_rel(gamma, width, err);
}

/* ---- One average ---- */

static const enum phema_shape shapes[] = {
    [BUILD_POWER] = PHEMA_SHAPE_POWER,   [BUILD_EMA] = PHEMA_SHAPE_EMA,
    [BUILD_RAMPED] = PHEMA_SHAPE_RAMPED, [BUILD_WINDOW] = PHEMA_SHAPE_WINDOW,
    [BUILD_COSINE] = PHEMA_SHAPE_COSINE, [BUILD_MINUS_SQRT] = PHEMA_SHAPE_MINUS_SQRT,
    [BUILD_RAW] = PHEMA_SHAPE_RAW,       [BUILD_TABLE] = PHEMA_SHAPE_TABLE,
    [BUILD_CLASS] = PHEMA_SHAPE_TABLE,   [BUILD_COSMOS] = PHEMA_SHAPE_POWER,
    [BUILD_BEMA] = PHEMA_SHAPE_TABLE,
};

/* 0 where the shape does not have the number */
static double value_or_0(const struct phema_spec_term *term, const char *key)
{
    double value = spec_value(term, key);
    return isnan(value) ? 0 : value;
}

static enum phema_status set_shape(struct phema_profile *profile, struct phema_spec *spec,
                                   struct phema_spec_term *term, struct phema_error *err)
{
    double decay = spec_value(term, "decay"), every = spec_value(term, "update-every"), ignored;
    profile->shape = term->is_stepped ? PHEMA_SHAPE_TABLE : shapes[term->kind->build];
    profile->half_life = value_or_0(term, "half-life");
    profile->length = value_or_0(term, "length");
    profile->ramp = value_or_0(term, "ramp");
    profile->update_every = isnan(every) ? 1 : (uint64_t)every;
    if (term->kind->build == BUILD_COSMOS)
        return set_cosmos(profile, term, err);
    if (profile->shape == PHEMA_SHAPE_POWER)
        return spec_resolve_power(&ignored, &profile->gamma, term, err);
    if (profile->shape == PHEMA_SHAPE_TABLE)
        return spec_betas(&profile->betas, term, profile->t, spec->arena, err);
    if (profile->shape == PHEMA_SHAPE_EMA && !isnan(decay)) /* the nearest double, as below */
        profile->half_life =
            (double)(-phema_quad_log((phema_quad)2) / phema_quad_log((phema_quad)decay));
    return PHEMA_OK;
}

static enum phema_status make_average(struct phema_profile *out, struct phema_spec *spec,
                                      struct phema_spec_term *term, double t,
                                      struct phema_error *err)
{
    struct phema_profile profile = {.t = t};
    struct phema_name_buffer length, end;
    if (!(t > 0 && t < 0x1p53))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: expected a time above 0 and below 2^53, "
                          "found %g",
                          spec->canonical, t);
    enum phema_status status = set_shape(&profile, spec, term, err);
    if (!status && profile.length > t)
        status = phema_fail(
            err, PHEMA_ERR_INPUTS, "reaches %s back from time %s, before the training began",
            phema_number_format(&length, profile.length), phema_number_format(&end, t));
    if (status)
        return phema_fail_in(err, status, "%s", spec->canonical);
    *out = profile;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_spec_profile(struct phema_profile *out, struct phema_spec *spec, double t,
                                  struct phema_error *err)
{
    if (!spec->is_average)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: is made of several snapshots; a snapshot is one average",
                          spec->canonical);
    return make_average(out, spec, &spec->terms[0], t, err);
}

/* ---- Merges of snapshots: PMA (arXiv:2505.12082: simple, weighted and exponential moving average)
 * and WSM (arXiv:2507.17634) ---- */

/* M_1 = W_1, M_i = alpha W_i + (1 - alpha) M_(i-1). */
static void fill_recursive(double *factors, size_t n, double alpha)
{
    double left = 1;
    for (size_t i = n; i-- > 1;) {
        factors[i] = alpha * left;
        left *= 1 - alpha;
    }
    factors[0] = left;
}

/* Cosines and roots in quad, rounded once to double: those of libm differ in the last bit between
 * machines, and the bytes of an output would differ with them. */
static phema_quad decay_cosine(size_t i, size_t n)
{
    return (1 + phema_quad_cos(phema_quad_pi() * (phema_quad)i / (phema_quad)n)) / 2;
}

static phema_quad decay_minus_sqrt(size_t i, size_t n)
{
    return 1 - phema_quad_sqrt((phema_quad)i / (phema_quad)n);
}

/* decay(i/n) - decay((i+1)/n), 1 - decay(1/n) for i = 0, decay(i/n) for the last */
static double step_of(phema_quad (*decay)(size_t i, size_t n), size_t i, size_t n)
{
    phema_quad before = i ? decay(i, n) : 1;
    return (double)(i + 1 < n ? before - decay(i + 1, n) : before);
}

/* A sum over snapshots with the factors c_j is the first one plus each step between two of them
 * times w_i = sum of the c_j from i on. So c_j = w_j - w_(j+1) has the effect of a learning rate
 * that decays as w does. With n snapshots, w_i = decay(i/n), i = 1..n-1. */
static void fill_merge_factors(double *factors, size_t n, const struct phema_spec_term *term)
{
    double sum = (double)n * ((double)n + 1) / 2;
    if (term->kind->build == BUILD_RECURSIVE) {
        fill_recursive(factors, n, spec_value(term, "alpha"));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        switch (term->kind->build) {
        case BUILD_ASCENDING:
            factors[i] = (double)(i + 1) / sum;
            break;
        case BUILD_WSM_COSINE:
            factors[i] = step_of(decay_cosine, i, n);
            break;
        case BUILD_WSM_MINUS_SQRT:
            factors[i] = step_of(decay_minus_sqrt, i, n);
            break;
        default: /* a linear decay of w is the uniform average */
            factors[i] = 1 / (double)n;
        }
    }
}

/* ---- Sums ---- */

/* The least-squares line through parameters at these times, at another time (N40): 1/n + (to -
 * mean)(t_i - mean) / sum of (t_j - mean)^2. */
static void fill_extrapolation(double *factors, const double *times, size_t n, double to)
{
    phema_quad mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += (phema_quad)times[i] / (phema_quad)n;
    for (size_t i = 0; i < n; i++)
        squares += ((phema_quad)times[i] - mean) * ((phema_quad)times[i] - mean);
    for (size_t i = 0; i < n; i++)
        factors[i] = (double)(1 / (phema_quad)n +
                              ((phema_quad)to - mean) * ((phema_quad)times[i] - mean) / squares);
}

struct sum {
    struct phema_profile *parts;
    double *factors;
    size_t n;
    struct phema_fit *fits;
    size_t n_fits;
};

static size_t count_until(const double *times, size_t n, double t)
{
    size_t count = 0;
    while (count < n && times[count] <= t)
        count++;
    return count;
}

#define BEMA_PARTS ((size_t)3)

/* The profile of the parameters at a time; at 0, those before training. */
static struct phema_profile parameters_at(double time, double end)
{
    static const uint64_t steps[] = {1};
    static const double betas[] = {1};
    static const struct phema_betas never = {.steps = steps, .betas = betas, .n = 1};
    if (time > 0)
        return (struct phema_profile){.t = time, .update_every = 1, .shape = PHEMA_SHAPE_RAW};
    return (struct phema_profile){
        .t = end, .update_every = 1, .shape = PHEMA_SHAPE_TABLE, .betas = &never};
}

/* ema + alpha (theta_t - theta_0) of the last update until t. */
static enum phema_status add_bema(struct sum *sum, struct phema_spec *spec,
                                  struct phema_spec_term *term, double t, struct phema_error *err)
{
    double update = spec_bema_update(term, t);
    struct phema_name_buffer end;
    if (update == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: has no update until time %s", spec->canonical,
                          phema_number_format(&end, t));
    double factor = spec_bema_factor(term, update);
    sum->factors[sum->n] = 1;
    enum phema_status status = make_average(&sum->parts[sum->n++], spec, term, update, err);
    if (status)
        return status;
    sum->factors[sum->n] = factor;
    sum->parts[sum->n++] = parameters_at(update, update);
    sum->factors[sum->n] = -factor;
    sum->parts[sum->n++] = parameters_at(spec_value(term, "after"), update);
    return PHEMA_OK;
}

/* The number of parts of a term. */
static enum phema_status count_parts(size_t *n, const struct phema_spec *spec,
                                     const struct phema_spec_term *term, double t,
                                     const double *times, size_t n_times, struct phema_error *err)
{
    double wanted = spec_value(term, "n"), window = spec_value(term, "window");
    size_t found = count_until(times, n_times, t);
    struct phema_name_buffer end;
    *n = term->kind->build == BUILD_BEMA ? BEMA_PARTS : term->kind->build != BUILD_LINE;
    if (term->kind->build < BUILD_UNIFORM)
        return PHEMA_OK;
    for (size_t first = 0; !isnan(window) && first < n_times && times[first] < t - window; first++)
        found--;
    if (term->kind->build == BUILD_EXTRAPOLATE && found < 2)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: a line needs snapshots of two times or more, found %zu until %s",
                          spec->canonical, found, phema_number_format(&end, t));
    if (found == 0 || wanted > (double)found) {
        char most[64];
        (void)snprintf(most, sizeof(most), "%.32s:%zu", term->kind->name, found);
        enum phema_status status =
            phema_fail(err, PHEMA_ERR_INPUTS, "%s: there are %zu times of snapshots until %s",
                       spec->canonical, found, phema_number_format(&end, t));
        bool is_plain = found && spec->n_terms == 1;
        return is_plain ? phema_suggest(err, status, PHEMA_SET_PROFILE, most) : status;
    }
    *n = isnan(wanted) ? found : (size_t)wanted;
    return PHEMA_OK;
}

static enum phema_status add_term(struct sum *sum, struct phema_spec *spec,
                                  struct phema_spec_term *term, double t, const double *times,
                                  size_t n_times, struct phema_error *err)
{
    size_t n = 0;
    enum phema_status status = count_parts(&n, spec, term, t, times, n_times, err);
    if (status)
        return status;
    if (term->kind->build == BUILD_LINE)
        return PHEMA_OK; /* the factors of its terms */
    if (term->kind->build == BUILD_BEMA)
        return add_bema(sum, spec, term, t, err);
    if (term->kind->build < BUILD_UNIFORM) {
        sum->factors[sum->n] = 1;
        return make_average(&sum->parts[sum->n++], spec, term, t, err);
    }
    size_t first = count_until(times, n_times, t) - n;
    if (term->kind->build == BUILD_EXTRAPOLATE) {
        fill_extrapolation(sum->factors + sum->n, times + first, n, spec_value(term, "to"));
        sum->fits[sum->n_fits++] = (struct phema_fit){sum->n, n};
    } else {
        fill_merge_factors(sum->factors + sum->n, n, term);
    }
    for (size_t i = 0; i < n; i++)
        sum->parts[sum->n++] = (struct phema_profile){
            .t = times[first + i], .update_every = 1, .shape = PHEMA_SHAPE_RAW};
    return PHEMA_OK;
}

static enum phema_status make_sum(struct phema_mix *out, struct phema_spec *spec, double t,
                                  const double *times, size_t n_times, struct phema_error *err)
{
    size_t n_parts = 0;
    for (size_t i = 0; i < spec->n_terms; i++) {
        size_t n = 0;
        enum phema_status status = count_parts(&n, spec, &spec->terms[i], t, times, n_times, err);
        if (status)
            return status;
        n_parts += n;
    }
    struct sum sum = {.parts = phema_arena_array(spec->arena, n_parts, sizeof(*sum.parts)),
                      .factors = phema_arena_array(spec->arena, n_parts, sizeof(*sum.factors)),
                      .fits = phema_arena_array(spec->arena, spec->n_terms, sizeof(*sum.fits))};
    if (spec->arena->is_failed)
        return phema_fail_memory(err);
    for (size_t i = 0; i < spec->n_terms; i++) {
        size_t before = sum.n;
        enum phema_status status = add_term(&sum, spec, &spec->terms[i], t, times, n_times, err);
        if (status)
            return status;
        for (size_t k = before; k < sum.n; k++)
            sum.factors[k] *= spec->terms[i].factor;
    }
    *out = (struct phema_mix){.parts = sum.parts,
                              .factors = sum.factors,
                              .n_parts = sum.n,
                              .fits = sum.fits,
                              .n_fits = sum.n_fits};
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_spec_mix(struct phema_mix *out, struct phema_spec *spec, double t,
                              const double *times, size_t n_times, struct phema_error *err)
{
    enum phema_status status = make_sum(out, spec, t, times, n_times, err);
    return status == PHEMA_ERR_INPUTS ? PHEMA_ERR_TARGET : status;
}
