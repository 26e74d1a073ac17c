// SPDX-License-Identifier: Apache-2.0
/* test_families.c - inner products of every pair of shapes. The test compares them with its own
 * quadrature of the defined profiles and, step by step, with explicit weights. */
#include "support.h"

#include <math.h>
#include <stdlib.h>

#include "profiles.h"

static phema_quad half_pi(void)
{
    return phema_quad_from_text("1.57079632679489661923132169163975144");
}

static phema_quad ln_2(void)
{
    return phema_quad_from_text("0.693147180559945309417232121458176568");
}

/* ---- Profiles, from their definitions ---- */

/* Weight before t = from + at, where from is the start of an interval. at may be tiny compared with
 * from. */
static phema_quad before(const struct phema_profile *p, phema_quad from, phema_quad at)
{
    phema_quad t = (from - (phema_quad)p->origin) + at;
    phema_quad end = (phema_quad)p->t - (phema_quad)p->origin;
    phema_quad x =
        p->length > 0 ? ((from - (end - (phema_quad)p->length)) + at) / (phema_quad)p->length : 0;
    if (t >= end)
        return 1;
    if ((p->length > 0 && x <= 0) || from + at < (phema_quad)p->reset)
        return 0;
    switch (p->shape) {
    case PHEMA_SHAPE_POWER:
        return phema_quad_pow(t / end, (phema_quad)p->gamma + 1);
    case PHEMA_SHAPE_EMA:
        return phema_quad_exp(-ln_2() * (end - t) / (phema_quad)p->half_life);
    case PHEMA_SHAPE_RAMPED: {
        phema_quad turn = (phema_quad)p->half_life / (phema_quad)p->ramp;
        phema_quad power = ln_2() / (phema_quad)p->ramp;
        if (end <= turn)
            return phema_quad_pow(t / end, power);
        phema_quad late = t > turn ? t : turn;
        phema_quad kept = phema_quad_exp(-ln_2() * (end - late) / (phema_quad)p->half_life);
        return t > turn ? kept : kept * phema_quad_pow(t / turn, power);
    }
    case PHEMA_SHAPE_WINDOW:
        return x;
    case PHEMA_SHAPE_COSINE: {
        phema_quad sine = phema_quad_sin(half_pi() * x);
        return sine * sine;
    }
    case PHEMA_SHAPE_MINUS_SQRT:
        return phema_quad_sqrt(x);
    case PHEMA_SHAPE_RAW:
    case PHEMA_SHAPE_TABLE:
        break;
    }
    return 0;
}

/* The derivative of before */
static phema_quad density(const struct phema_profile *p, phema_quad from, phema_quad at)
{
    phema_quad t = (from - (phema_quad)p->origin) + at;
    phema_quad end = (phema_quad)p->t - (phema_quad)p->origin;
    phema_quad length = (phema_quad)p->length;
    phema_quad f = before(p, from, at);
    phema_quad x = length > 0 ? ((from - (end - length)) + at) / length : 0;
    if (t >= end || f == 0 || (length > 0 && x <= 0))
        return 0;
    switch (p->shape) {
    case PHEMA_SHAPE_POWER:
        return ((phema_quad)p->gamma + 1) * f / t;
    case PHEMA_SHAPE_EMA:
        return ln_2() / (phema_quad)p->half_life * f;
    case PHEMA_SHAPE_RAMPED: {
        phema_quad half_life = (phema_quad)p->ramp * t;
        if (half_life > (phema_quad)p->half_life)
            half_life = (phema_quad)p->half_life;
        return ln_2() / half_life * f;
    }
    case PHEMA_SHAPE_WINDOW:
        return 1 / length;
    case PHEMA_SHAPE_COSINE:
        return half_pi() / length * phema_quad_sin(2 * half_pi() * x);
    case PHEMA_SHAPE_MINUS_SQRT:
        return f / (2 * x * length);
    case PHEMA_SHAPE_RAW:
    case PHEMA_SHAPE_TABLE:
        break;
    }
    return 0;
}

static phema_quad after(const struct phema_profile *p, phema_quad from, phema_quad at)
{
    return 1 - before(p, from, at);
}

typedef phema_quad function(const struct phema_profile *, phema_quad, phema_quad);

/* tanh-sinh between the breaks. Steps of 1/28 give 25 digits whatever the function does at the
 * ends. */
static phema_quad integrate(function *f, const struct phema_profile *a,
                            const struct phema_profile *b, phema_quad l, phema_quad u)
{
    phema_quad sum = 0;
    for (int i = -6 * 28; i <= 5 * 28; i++) {
        phema_quad grown = phema_quad_exp((phema_quad)i / 28);
        phema_quad s = half_pi() * (grown - 1 / grown) / 2;
        phema_quad slope = half_pi() * (grown + 1 / grown) / 2;
        phema_quad small = phema_quad_exp(-2 * phema_quad_abs(s));
        phema_quad at = (u - l) * (s < 0 ? small : 1) / (1 + small);
        phema_quad weight = (u - l) * 2 * slope * small / ((1 + small) * (1 + small));
        if (weight > 0 && at > 0 && l + at < u)
            sum += weight * f(a, l, at) * f(b, l, at);
    }
    return sum / 28;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t breaks_of(double *found, const struct phema_profile *p)
{
    found[0] = p->t;
    found[1] = p->length > 0 ? p->t - p->length : 0;
    found[2] = p->shape == PHEMA_SHAPE_RAMPED ? p->origin + p->half_life / p->ramp : 0;
    found[3] = p->reset;
    return 4;
}

static phema_quad product(function *f, const struct phema_profile *a, const struct phema_profile *b)
{
    double breaks[9] = {0};
    double end = fmin(a->t, b->t);
    size_t n = 1 + breaks_of(breaks + 1, a) + breaks_of(breaks + 5, b);
    qsort(breaks, n, sizeof(*breaks), compare);
    phema_quad sum = 0;
    for (size_t i = 1; i < n; i++)
        if (breaks[i] > breaks[i - 1] && breaks[i] <= end)
            sum += integrate(f, a, b, (phema_quad)breaks[i - 1], (phema_quad)breaks[i]);
    return sum;
}

/* ---- Continuous ---- */

static const struct phema_profile shapes[] = {
    {.gamma = 6.94, .t = 1000},
    {.gamma = -0.25, .t = 400},
    {.shape = PHEMA_SHAPE_EMA, .t = 1000, .half_life = 90},
    {.shape = PHEMA_SHAPE_EMA, .t = 700, .half_life = 3000}, /* 85 % before step 1 */
    {.shape = PHEMA_SHAPE_EMA, .t = 900, .half_life = 2},    /* e^-300 */
    {.shape = PHEMA_SHAPE_RAMPED, .t = 1000, .half_life = 50, .ramp = 0.0625},
    {.shape = PHEMA_SHAPE_RAMPED, .t = 600, .half_life = 50, .ramp = 0.0625},
    {.shape = PHEMA_SHAPE_WINDOW, .t = 1000, .length = 250},
    {.shape = PHEMA_SHAPE_WINDOW, .t = 800, .length = 800},
    {.shape = PHEMA_SHAPE_WINDOW, .t = 1000, .length = 700},
    {.shape = PHEMA_SHAPE_COSINE, .t = 1000, .length = 300},
    {.shape = PHEMA_SHAPE_COSINE, .t = 500, .length = 500},
    {.shape = PHEMA_SHAPE_MINUS_SQRT, .t = 1000, .length = 400},
    {.shape = PHEMA_SHAPE_RAW, .t = 1000},
    {.shape = PHEMA_SHAPE_RAW, .t = 550},
    {.gamma = 6.94, .t = 1000, .origin = -500},
    {.gamma = 2.5, .t = 600, .origin = -30.5},
    {.gamma = 2.5, .t = 930, .reset = 400, .origin = -500},
    {.gamma = 6.94, .t = 1000, .reset = 550},
    {.gamma = 2.5, .t = 930, .reset = 310.5, .origin = 310.5},
    {.gamma = 2.5, .t = 940, .reset = 820, .origin = 310.5},
    {.shape = PHEMA_SHAPE_EMA, .t = 900, .half_life = 90, .reset = 820},
    {.shape = PHEMA_SHAPE_EMA, .t = 900, .half_life = 90, .reset = 820, .origin = 820},
    {.shape = PHEMA_SHAPE_RAMPED, .t = 1000, .half_life = 50, .ramp = 0.125, .reset = 310.5},
    {.shape = PHEMA_SHAPE_RAMPED,
     .t = 1000,
     .half_life = 50,
     .ramp = 0.125,
     .reset = 400,
     .origin = 400},
    {.shape = PHEMA_SHAPE_RAMPED,
     .t = 1000,
     .half_life = 50,
     .ramp = 0.125,
     .reset = 960,
     .origin = 400},
    {.shape = PHEMA_SHAPE_EMA, .t = 550, .half_life = 1.3}, /* ends within a peak */
};

static phema_quad cosine_of(const struct phema_gram *gram, size_t i, size_t j)
{
    return phema_quad_from_fixed(gram->matrix[i * gram->n + j]) * gram->lengths[i] *
           gram->lengths[j];
}

static void assert_digits(phema_quad got, phema_quad wanted, phema_quad scale, size_t i, size_t j)
{
    double error = (double)(phema_quad_abs(got - wanted) / scale);
    if (!(error <= 1e-25))
        fail_msg("shapes %zu and %zu: off by %.1e of %.17g", i, j, error, (double)wanted);
}

/* The weight on the very time of a reset: what a copy has left of it. */
static phema_quad peak_of(const struct phema_profile *p)
{
    return p->reset > 0 ? before(p, (phema_quad)p->reset, 0) : 0;
}

/* Just before a time, where the profile may end, or the mean over the unit before it. */
static phema_quad density_near(const struct phema_profile *p, phema_quad t)
{
    phema_quad at = density(p, t, -(phema_quad)1e-28 * t);
    phema_quad rate = p->shape == PHEMA_SHAPE_EMA ? ln_2() / (phema_quad)p->half_life : 0;
    return rate < (phema_quad)0.5 ? at : at * (1 - phema_quad_exp(-rate)) / rate;
}

static phema_quad density_before(const struct phema_profile *p, phema_quad t)
{
    return t <= (phema_quad)p->t && t > (phema_quad)p->reset ? density_near(p, t) : 0;
}

/* Of the peaks of resets, each one unit wide, as of those of raw profiles. */
static phema_quad peak_product(const struct phema_profile *a, const struct phema_profile *b)
{
    phema_quad of_a = peak_of(a), of_b = peak_of(b);
    phema_quad sum = of_a * density_before(b, (phema_quad)a->reset) +
                     of_b * density_before(a, (phema_quad)b->reset);
    return a->reset == b->reset ? sum + of_a * of_b : sum;
}

/* Products without an integral. The density of a raw profile is a peak one unit wide. The density
 * of a square root is not square-integrable at its start. */
static phema_quad white_product(size_t i, size_t j)
{
    const struct phema_profile *a = &shapes[i];
    const struct phema_profile *b = &shapes[j];
    if (b->shape == PHEMA_SHAPE_RAW) {
        const struct phema_profile *swapped = a;
        a = b;
        b = swapped;
    }
    if (a->shape == PHEMA_SHAPE_RAW && b->shape == PHEMA_SHAPE_RAW)
        return a->t == b->t;
    if (a->shape == PHEMA_SHAPE_RAW && a->t > b->t)
        return 0;
    if (a->shape == PHEMA_SHAPE_RAW && a->t == b->reset)
        return peak_of(b);
    if (a->shape == PHEMA_SHAPE_RAW && a->t < b->reset)
        return 0;
    if (a->shape == PHEMA_SHAPE_RAW)
        return density_near(b, (phema_quad)a->t);
    if (a->shape == PHEMA_SHAPE_MINUS_SQRT && i == j)
        return (4 + phema_quad_log((phema_quad)a->length)) / (4 * (phema_quad)a->length);
    return product(density, a, b) + peak_product(a, b);
}

static void products_of_shapes_are_the_integrals(void **state)
{
    (void)state;
    struct phema_grams grams;
    struct phema_error err = {0};
    size_t n = ARRAY_LEN(shapes);
    assert_ok(build_grams(&grams, shapes, n, NULL, 0, &err), &err);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            phema_quad lengths = grams.walk.lengths[i] * grams.walk.lengths[j];
            assert_digits(cosine_of(&grams.walk, i, j), product(after, &shapes[i], &shapes[j]),
                          lengths, i, j);
            lengths = grams.white.lengths[i] * grams.white.lengths[j];
            assert_digits(cosine_of(&grams.white, i, j), white_product(i, j), lengths, i, j);
        }
    }
    phema_grams_clear(&grams);
}

/* The products of a target of several parts are the sums of the parts' products. */
static void mixes_are_sums(void **state)
{
    (void)state;
    const struct phema_profile snapshots[] = {shapes[0], shapes[2], shapes[1]};
    const struct phema_profile parts[] = {shapes[2], shapes[14], shapes[12]};
    const double factors[] = {2, -1.5, 0.5};
    const struct phema_mix mix = {.parts = parts, .factors = factors, .n_parts = 3};
    const struct phema_problem problem = {.snapshots = snapshots, .n = 3, .targets = &mix, .m = 1};
    struct phema_grams grams;
    struct phema_error err = {0};
    assert_ok(phema_grams_build(&grams, &problem, true, &err), &err);
    phema_quad self = 0;
    for (size_t p = 0; p < 3; p++)
        for (size_t q = 0; q < 3; q++)
            self += (phema_quad)(factors[p] * factors[q]) * product(after, &parts[p], &parts[q]);
    phema_quad length = grams.walk.lengths[3];
    assert_digits(length * length, self, self, 3, 3);
    for (size_t i = 0; i < 3; i++) {
        phema_quad wanted = 0;
        for (size_t p = 0; p < 3; p++)
            wanted += (phema_quad)factors[p] * product(after, &parts[p], &snapshots[i]);
        phema_quad scale = length * grams.walk.lengths[i];
        assert_digits(grams.walk.cosines[i] * scale, wanted, scale, 3, i);
    }
    phema_grams_clear(&grams);
}

/* phi(a, x) = a integral s^(a-1) e^(-x (1-s)), for each nth pair of a and x. They lie where the series, the
 * asymptotics and the integral meet. */
static void compare_phi(size_t nth)
{
    const double as[] = {0.5, 1, 2, 7.94, 60, 130, 7000, 90000};
    const double xs[] = {0, 1e-9, 0.5, 30, 119, 121, 260, 10999, 11001, 180001};
    for (size_t i = 0; i < ARRAY_LEN(as); i++) {
        for (size_t j = i % nth; j < ARRAY_LEN(xs); j += nth) {
            phema_quad a = (phema_quad)as[i];
            phema_quad x = (phema_quad)xs[j];
            /* with r = 1 - s = y / (1 + a + x), the peak has width 1, and so has each piece */
            phema_quad unit = 1 / (1 + a + x);
            phema_quad sum = 0;
            for (int piece = 0; piece < 90; piece++) {
                phema_quad l = piece * unit;
                phema_quad u = l + unit < 1 ? l + unit : 1;
                for (int k = -6 * 24; l < u && k <= 5 * 24; k++) {
                    phema_quad grown = phema_quad_exp((phema_quad)k / 24);
                    phema_quad s = half_pi() * (grown - 1 / grown) / 2;
                    phema_quad slope = half_pi() * (grown + 1 / grown) / 2;
                    phema_quad small = phema_quad_exp(-2 * phema_quad_abs(s));
                    /* distance from the upper end, where s may be 0 */
                    phema_quad left = (u - l) * (s > 0 ? small : 1) / (1 + small);
                    phema_quad weight = (u - l) * 2 * slope * small / ((1 + small) * (1 + small));
                    phema_quad power = phema_quad_pow((1 - u) + left, a - 1);
                    if (weight > 0 && left > 0)
                        sum += weight * a * power * phema_quad_exp(-x * (u - left)) / 24;
                }
            }
            double error = (double)phema_quad_abs(phema_phi(a, x) / sum - 1);
            if (!(error <= 1e-25))
                fail_msg("phi(%g, %g): off by %.1e", as[i], xs[j], error);
        }
    }
}

static void phi_is_its_integral(void **state)
{
    (void)state;
    compare_phi(5);
}

/* Slow: 80 integrals in quad precision; by default a fifth of them is compared. */
static void slow_phi_is_its_integral_for_all_pairs(void **state)
{
    (void)state;
    compare_phi(1);
}

/* ---- Step by step ---- */

static const uint64_t table_steps[] = {1, 4, 5, 9, 20, 21, 40, 61};
static const double table_betas[] = {0.25, 0.5, 0, 0.75, 0.125, 1, 0.5, 0.875};
static const struct phema_betas table = {table_steps, table_betas, ARRAY_LEN(table_steps), NULL};

static const struct phema_profile stepwise[] = {
    {.gamma = 6.94, .t = 60},
    {.shape = PHEMA_SHAPE_TABLE, .t = 64, .betas = &table},
    {.shape = PHEMA_SHAPE_TABLE, .t = 30, .betas = &table},
    {.shape = PHEMA_SHAPE_EMA, .t = 64, .half_life = 6},
    {.shape = PHEMA_SHAPE_EMA, .t = 31, .half_life = 200},
    {.shape = PHEMA_SHAPE_RAMPED, .t = 64, .half_life = 4, .ramp = 0.125},
    {.shape = PHEMA_SHAPE_WINDOW, .t = 64, .length = 20},
    {.shape = PHEMA_SHAPE_WINDOW, .t = 50, .length = 12.5},
    {.shape = PHEMA_SHAPE_COSINE, .t = 64, .length = 33},
    {.shape = PHEMA_SHAPE_MINUS_SQRT, .t = 61, .length = 15},
    {.shape = PHEMA_SHAPE_RAW, .t = 64},
    {.shape = PHEMA_SHAPE_RAW, .t = 40},
    {.gamma = 6.94, .t = 60, .origin = -21},
    {.gamma = 2.5, .t = 64, .reset = 33, .origin = -21},
    {.gamma = 6.94, .t = 60, .reset = 17},
    {.gamma = 2.5, .t = 64, .reset = 33, .origin = 33},
    {.gamma = 2.5, .t = 62, .reset = 40, .origin = 17},
    {.shape = PHEMA_SHAPE_TABLE, .t = 64, .betas = &table, .reset = 20},
    {.shape = PHEMA_SHAPE_TABLE, .t = 64, .betas = &table, .reset = 17, .origin = 17},
    {.shape = PHEMA_SHAPE_EMA, .t = 64, .half_life = 6, .reset = 40},
    {.shape = PHEMA_SHAPE_RAMPED,
     .t = 64,
     .half_life = 4,
     .ramp = 0.125,
     .reset = 17,
     .origin = 17},
    {.shape = PHEMA_SHAPE_RAMPED, .t = 63, .half_life = 4, .ramp = 0.125, .reset = 21},
};

static phema_quad beta_of(const struct phema_profile *p, uint64_t step)
{
    if (p->shape == PHEMA_SHAPE_RAW)
        return 0;
    if ((double)step < p->reset)
        return (phema_quad)0.5; /* does not matter */
    if ((double)step == p->reset)
        return 0;
    uint64_t count = (uint64_t)((double)step - p->origin);
    if (p->shape == PHEMA_SHAPE_TABLE) {
        for (size_t i = 0; i < table.n; i++)
            if (table_steps[i] == count)
                return (phema_quad)table_betas[i];
        return 1;
    }
    if (p->shape == PHEMA_SHAPE_EMA || p->shape == PHEMA_SHAPE_RAMPED) {
        double half_life = p->half_life;
        if (p->shape == PHEMA_SHAPE_RAMPED)
            half_life = fmin(half_life, p->ramp * (double)count);
        return phema_quad_exp(-ln_2() / (phema_quad)half_life);
    }
    phema_quad now = before(p, (phema_quad)step, 0);
    return now > 0 ? before(p, (phema_quad)(step - 1), 0) / now : 1;
}

/* [t + 1]: at 0, the weight of everything before the first step */
static phema_quad *weights_of(const struct phema_profile *p)
{
    uint64_t end = (uint64_t)p->t;
    phema_quad *weights = calloc(end + 1, sizeof(*weights));
    assert_non_null(weights);
    weights[0] = 1;
    for (uint64_t step = 1; step <= end; step++) {
        phema_quad beta = beta_of(p, step);
        for (uint64_t j = 0; j < step; j++)
            weights[j] *= beta;
        weights[step] = 1 - beta;
    }
    return weights;
}

static void steps_of_shapes_are_explicit_weights(void **state)
{
    (void)state;
    struct phema_grams grams;
    struct phema_error err = {0};
    size_t n = ARRAY_LEN(stepwise);
    assert_ok(build_grams(&grams, stepwise, n, NULL, 0, &err), &err);
    assert_true(grams.set.is_stepwise);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            phema_quad *a = weights_of(&stepwise[i]);
            phema_quad *b = weights_of(&stepwise[j]);
            uint64_t end = (uint64_t)fmin(stepwise[i].t, stepwise[j].t);
            phema_quad white = 0, walk = 0, before_a = a[0], before_b = b[0];
            for (uint64_t step = 1; step <= end; step++) {
                white += a[step] * b[step];
                walk += (1 - before_a) * (1 - before_b);
                before_a += a[step];
                before_b += b[step];
            }
            double errors[] = {(double)(phema_quad_abs(cosine_of(&grams.white, i, j) - white) /
                                        (grams.white.lengths[i] * grams.white.lengths[j])),
                               (double)(phema_quad_abs(cosine_of(&grams.walk, i, j) - walk) /
                                        (grams.walk.lengths[i] * grams.walk.lengths[j]))};
            /* Long double steps, compensated. An average that hardly forgets loses a digit or two,
             * because its Q is the difference of two sums. */
            if (!(errors[0] < 1e-18 && errors[1] < 2e-17))
                fail_msg("shapes %zu and %zu: off by %.1e and %.1e", i, j, errors[0], errors[1]);
            free(a);
            free(b);
        }
    }
    phema_grams_clear(&grams);
}

/* ---- Refusals ---- */

static void invalid_profiles_are_refused(void **state)
{
    (void)state;
    static const uint64_t down[] = {3, 2};
    static const double wild[] = {0.5, 1.5};
    static const struct phema_betas falling = {down, table_betas, 2, NULL};
    static const struct phema_betas outside = {table_steps, wild, 2, NULL};
    static const struct phema_betas none = {table_steps, table_betas, 0, NULL};
    static const struct {
        struct phema_profile profile;
        const char *part;
    } bad[] = {
        {{.shape = PHEMA_SHAPE_EMA, .t = 10}, "half-life above 0"},
        {{.shape = PHEMA_SHAPE_EMA, .t = 10, .half_life = HUGE_VAL}, "half-life above 0"},
        {{.shape = PHEMA_SHAPE_RAMPED, .t = 10, .half_life = 1}, "expected a ramp"},
        {{.shape = PHEMA_SHAPE_WINDOW, .t = 10}, "expected a length"},
        {{.shape = PHEMA_SHAPE_COSINE, .t = 10, .length = 11}, "at most the time 10"},
        {{.shape = PHEMA_SHAPE_MINUS_SQRT, .t = 10, .length = -1}, "expected a length"},
        {{.shape = PHEMA_SHAPE_WINDOW, .t = 10, .length = 1e-300}, "is the raw parameters"},
        {{.shape = PHEMA_SHAPE_TABLE, .t = 10}, "is empty"},
        {{.shape = PHEMA_SHAPE_TABLE, .t = 10, .betas = &none}, "is empty"},
        {{.shape = PHEMA_SHAPE_TABLE, .t = 10, .betas = &falling}, "ascending steps"},
        {{.shape = PHEMA_SHAPE_TABLE, .t = 10, .betas = &outside}, "beta from 0 to 1"},
        {{.shape = PHEMA_SHAPE_TABLE, .t = 9.5, .betas = &table}, "whole number"},
        {{.shape = PHEMA_SHAPE_TABLE, .t = 2e9, .betas = &table}, "at most 1e9 steps"},
        {{.t = 10, .reset = 10}, "before the time 10"},
        {{.t = 10, .reset = 4, .origin = 5}, "not before its count"},
        {{.t = 10, .reset = PHEMA_UNKNOWN}, "expected a reset"},
        {{.t = 10, .origin = 2}, "not before its count"},
        {{.t = 10, .origin = -0x1p53}, "not before its count"},
        {{.t = 10, .origin = -2, .update_every = 2}, "not before its count"},
        {{.shape = PHEMA_SHAPE_EMA, .t = 10, .half_life = 2, .origin = -2}, "not before its count"},
        {{.t = 10, .reset = 2.5, .update_every = 2}, "at a whole step"},
        {{.shape = PHEMA_SHAPE_RAW, .t = 10, .reset = 5}, "kept step by step"},
        {{.shape = PHEMA_SHAPE_WINDOW, .t = 10, .length = 6, .reset = 5}, "kept step by step"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct phema_grams grams;
        struct phema_error err = {0};
        assert_fails(build_grams(&grams, &bad[i].profile, 1, NULL, 0, &err), PHEMA_ERR_INPUTS, &err,
                     bad[i].part);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(products_of_shapes_are_the_integrals),
    cmocka_unit_test(mixes_are_sums),
    cmocka_unit_test(phi_is_its_integral),
    cmocka_unit_test(slow_phi_is_its_integral_for_all_pairs),
    cmocka_unit_test(steps_of_shapes_are_explicit_weights),
    cmocka_unit_test(invalid_profiles_are_refused),
};
TEST_GROUP(tests)
