// SPDX-License-Identifier: Apache-2.0
/* family.c - profiles of one family within an interval: closed forms for pairs of powers,
 * exponentials and windows (docs/numerics.md), quadrature for the others: Gauss-Legendre where a
 * function is analytic well beyond the interval, tanh-sinh (Takahasi and Mori 1974) where a power
 * begins at its end. */
#include "phema/family.h"

/* Beyond this the asymptotic series of phi, which leaves out e^-x, is exact to a quad. */
#define LARGE_X   120
#define LARGEST_X 11000 /* e^-x is still a normal number */

/* Per interval of a Gauss rule: e^8 is a polynomial of degree 47 to 1e-38. */
#define MAX_EXPONENT 8
/* e^-100 is negligible next to 1 in a quad. */
#define NO_EXPONENT 100

#define STEP       ((phema_quad)1 / 28)
#define MAX_STEPS  (28 * 9)
#define NEGLIGIBLE ((phema_quad)1e-37)

/* at: distance from the lower end, exact however small */
typedef phema_quad integrand(const void *context, phema_quad at);

static phema_quad ln_2(void)
{
    return phema_quad_from_text("0.693147180559945309417232121458176568");
}

struct phema_family phema_family_of(const struct phema_profile *profile)
{
    struct phema_family family = {.every = 1,
                                  .step = 1,
                                  .reset = (phema_quad)profile->reset,
                                  .origin = (phema_quad)profile->origin};
    phema_quad begin = (phema_quad)profile->t - (phema_quad)profile->length;
    switch (profile->shape) {
    case PHEMA_SHAPE_POWER:
        family.power = (phema_quad)profile->gamma + 1;
        family.every = profile->update_every > 1 ? profile->update_every : 1;
        break;
    case PHEMA_SHAPE_WINDOW:
        family.power = 1;
        family.origin = begin;
        break;
    case PHEMA_SHAPE_MINUS_SQRT:
        family.power = (phema_quad)0.5;
        family.origin = begin;
        break;
    case PHEMA_SHAPE_COSINE:
        family.form = PHEMA_FAMILY_COSINE;
        family.origin = begin;
        family.end = (phema_quad)profile->t;
        break;
    case PHEMA_SHAPE_RAMPED:
        family.form = PHEMA_FAMILY_RAMPED;
        family.ramp = (phema_quad)profile->ramp;
        family.power = ln_2() / family.ramp;
        family.turn = (phema_quad)profile->half_life / family.ramp;
        family.rate = ln_2() / (phema_quad)profile->half_life;
        break;
    case PHEMA_SHAPE_EMA:
        family.form = PHEMA_FAMILY_EXPONENTIAL;
        family.rate = ln_2() / (phema_quad)profile->half_life;
        break;
    case PHEMA_SHAPE_RAW:
        family.form = PHEMA_FAMILY_RAW;
        family.step = profile->length > 0 ? (phema_quad)profile->length : 1;
        break;
    case PHEMA_SHAPE_TABLE:
        family.form = PHEMA_FAMILY_TABLE;
        family.betas = profile->betas;
        break;
    }
    return family;
}

bool phema_family_equals(const struct phema_family *a, const struct phema_family *b)
{
    return a->form == b->form && a->power == b->power && a->origin == b->origin &&
           a->end == b->end && a->rate == b->rate && a->turn == b->turn && a->every == b->every &&
           a->betas == b->betas && a->reset == b->reset && a->step == b->step;
}

size_t phema_family_breaks(const struct phema_family *family,
                           phema_quad found[PHEMA_FAMILY_MAX_BREAKS])
{
    size_t n = 0;
    phema_quad changes = family->origin;
    if (family->form == PHEMA_FAMILY_RAMPED)
        changes += family->turn;
    if (changes > 0)
        found[n++] = changes;
    if (family->reset > 0)
        found[n++] = family->reset;
    return n;
}

static phema_quad risen(const struct phema_family *family, phema_quad t)
{
    if (t >= family->end)
        return 1;
    phema_quad sine =
        phema_quad_sin(phema_quad_pi() / 2 * (t - family->origin) / (family->end - family->origin));
    return sine * sine;
}

phema_quad phema_family_decay(const struct phema_family *family, phema_quad from, phema_quad to)
{
    if (from == to)
        return 1;
    if (from < family->reset)
        return 0;
    switch (family->form) {
    case PHEMA_FAMILY_POWER:
        if (from <= family->origin)
            return 0;
        return phema_quad_pow((from - family->origin) / (to - family->origin), family->power);
    case PHEMA_FAMILY_EXPONENTIAL:
        return phema_quad_exp(-family->rate * (to - from));
    case PHEMA_FAMILY_RAMPED: {
        phema_quad begin = from - family->origin, end = to - family->origin;
        phema_quad turn = family->turn < begin ? begin : family->turn > end ? end : family->turn;
        phema_quad before = turn > begin ? phema_quad_pow(begin / turn, family->power) : 1;
        return before * phema_quad_exp(-family->rate * (end - turn));
    }
    case PHEMA_FAMILY_COSINE:
        return from <= family->origin ? 0 : risen(family, from) / risen(family, to);
    case PHEMA_FAMILY_RAW:
    case PHEMA_FAMILY_TABLE:
        break;
    }
    return 0;
}

struct phema_local phema_family_local(const struct phema_family *family, phema_quad l, phema_quad u,
                                      phema_quad decay)
{
    struct phema_local local = {.form = family->form,
                                .power = family->power,
                                .rate = family->rate,
                                .from = l - family->origin,
                                .to = u - family->origin,
                                .span = family->end - family->origin,
                                .length = u - l,
                                .step = family->step,
                                .decay = decay};
    if (family->form == PHEMA_FAMILY_RAMPED)
        local.form = local.to <= family->turn ? PHEMA_FAMILY_POWER : PHEMA_FAMILY_EXPONENTIAL;
    if (l < family->reset)
        local.form = PHEMA_FAMILY_RAW;
    local.is_zero = local.form == PHEMA_FAMILY_RAW || local.to <= 0;
    return local;
}

/* ---- Quadrature ---- */

/* P_n and its derivative by the three-term recurrence */
static phema_quad legendre(phema_quad x, phema_quad *derivative)
{
    const int n = PHEMA_GAUSS_POINTS;
    phema_quad before = 1;
    phema_quad value = x;
    for (int k = 2; k <= n; k++) {
        phema_quad next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
        before = value;
        value = next;
    }
    *derivative = n * (before - x * value) / (1 - x * x);
    return value;
}

static void find_rule(struct phema_quadrature *rule)
{
    rule->is_found = true;
    for (int i = 0; i < PHEMA_GAUSS_POINTS; i++) {
        phema_quad x = (phema_quad)cos(3.14159265358979 * (i + 0.75) / (PHEMA_GAUSS_POINTS + 0.5));
        phema_quad derivative = 1;
        for (int round = 0; round < 6; round++)
            x -= legendre(x, &derivative) / derivative;
        (void)legendre(x, &derivative);
        rule->nodes[i] = x;
        rule->weights[i] = 2 / ((1 - x * x) * derivative * derivative);
    }
}

static phema_quad gauss(struct phema_quadrature *rule, integrand *f, const void *context,
                        phema_quad begin, phema_quad end)
{
    if (!rule->is_found)
        find_rule(rule);
    phema_quad half = (end - begin) / 2;
    phema_quad sum = 0;
    for (int i = 0; i < PHEMA_GAUSS_POINTS; i++)
        sum += rule->weights[i] * f(context, begin + half * (1 + rule->nodes[i]));
    return half * sum;
}

/* at = end / (1 + e^-2s), s = pi/2 sinh t: near the lower end as exact as anywhere */
static phema_quad tanh_sinh_term(integrand *f, const void *context, phema_quad end, phema_quad t)
{
    phema_quad grown = phema_quad_exp(t);
    phema_quad s = phema_quad_pi() / 2 * (grown - 1 / grown) / 2;
    phema_quad slope = phema_quad_pi() / 2 * (grown + 1 / grown) / 2;
    phema_quad small = phema_quad_exp(-2 * phema_quad_abs(s));
    phema_quad share = s < 0 ? small / (1 + small) : 1 / (1 + small);
    phema_quad weight = 2 * slope * small / ((1 + small) * (1 + small));
    return weight > 0 && share > 0 ? end * weight * f(context, end * share) : 0;
}

static phema_quad tanh_sinh(integrand *f, const void *context, phema_quad end)
{
    phema_quad sum = tanh_sinh_term(f, context, end, 0);
    for (int sign = -1; sign <= 1; sign += 2) {
        int n_small = 0;
        for (int i = 1; i <= MAX_STEPS && n_small < 3; i++) {
            phema_quad term = tanh_sinh_term(f, context, end, sign * i * STEP);
            sum += term;
            n_small = phema_quad_abs(term) <= NEGLIGIBLE * phema_quad_abs(sum) ? n_small + 1 : 0;
        }
    }
    return sum * STEP;
}

/* A power of (at + from) that is nowhere nearer than the interval is long is analytic in an ellipse
 * of foci at the ends and half-axes adding up to 5.8: 5.8^-48 = 1e-37. */
static phema_quad integrate_part(struct phema_quadrature *rule, integrand *f, const void *context,
                                 phema_quad begin, phema_quad end, phema_quad from, phema_quad rate,
                                 phema_quad length, int depth)
{
    if (rate * (length - end) > NO_EXPONENT)
        return 0;
    bool is_short = rate * (end - begin) <= MAX_EXPONENT;
    if (is_short && from + begin >= end - begin)
        return gauss(rule, f, context, begin, end);
    if (is_short && begin == 0 && from == 0)
        return tanh_sinh(f, context, end);
    if (depth == 0)
        return gauss(rule, f, context, begin, end);
    phema_quad middle = begin + (end - begin) / 2;
    return integrate_part(rule, f, context, begin, middle, from, rate, length, depth - 1) +
           integrate_part(rule, f, context, middle, end, from, rate, length, depth - 1);
}

/* Integral over [0, length] of a function that is analytic there, except for a power of (at + from)
 * at the lower end, and that grows like e^(rate at) at most. */
static phema_quad integrate(struct phema_quadrature *rule, integrand *f, const void *context,
                            phema_quad length, phema_quad from, phema_quad rate)
{
    return integrate_part(rule, f, context, 0, length, from, rate, length, 60);
}

/* ---- phi ---- */

/* e^-x sum_k x^k/k! a/(a+k): all terms are positive */
static phema_quad phi_series(phema_quad a, phema_quad x)
{
    phema_quad term = 1;
    phema_quad sum = 1;
    for (int k = 1; term > sum * (phema_quad)1e-36; k++) {
        term *= x / k;
        sum += term * a / (a + k);
    }
    return sum * phema_quad_exp(-x);
}

/* a/x sum_j (1-a)(2-a).../x^j up to its least term: by parts, without the e^-x of the lower end */
static phema_quad phi_asymptotic(phema_quad a, phema_quad x)
{
    phema_quad term = a / x;
    phema_quad sum = term;
    for (int j = 1; j < 4 * LARGE_X; j++) {
        phema_quad next = -term * (a - j) / x;
        if (phema_quad_abs(next) >= phema_quad_abs(term) ||
            phema_quad_abs(next) < sum * (phema_quad)1e-36)
            break;
        term = next;
        sum += term;
    }
    return sum;
}

struct phi {
    phema_quad a, x, begin;
};

static phema_quad phi_integrand(const void *context, phema_quad at)
{
    const struct phi *phi = context;
    at += phi->begin; /* 1 - s */
    return phi->a * phema_quad_pow(1 - at, phi->a - 1) * phema_quad_exp(-phi->x * at);
}

/* Both are so large that the e^-x of the series underflows. Only s close to 1 matters. */
static phema_quad phi_integral(phema_quad a, phema_quad x)
{
    struct phema_quadrature rule = {0};
    phema_quad width = 4 / (a + x);
    phema_quad sum = 0;
    for (int i = 0; i < 25; i++) { /* to e^-100 */
        struct phi phi = {a, x, i * width};
        sum += integrate(&rule, phi_integrand, &phi, width, 1, 0);
    }
    return sum;
}

phema_quad phema_phi(phema_quad a, phema_quad x)
{
    if (x > LARGE_X && a < x / 2)
        return phi_asymptotic(a, x);
    return x < LARGEST_X ? phi_series(a, x) : phi_integral(a, x);
}

/* ---- Without a closed form ---- */

struct pair {
    const struct phema_local *a, *b; /* b may be NULL */
    bool of_densities;
};

static phema_quad value_at(const struct phema_local *local, phema_quad at)
{
    if (local->form == PHEMA_FAMILY_POWER)
        return phema_quad_pow((local->from + at) / local->to, local->power);
    if (local->form == PHEMA_FAMILY_EXPONENTIAL)
        return phema_quad_exp(-local->rate * (local->length - at));
    phema_quad sine = phema_quad_sin(phema_quad_pi() / 2 * (local->from + at) / local->span);
    phema_quad last = phema_quad_sin(phema_quad_pi() / 2 * local->to / local->span);
    return sine * sine / (last * last);
}

static phema_quad density_at(const struct phema_local *local, phema_quad at)
{
    if (local->form == PHEMA_FAMILY_POWER)
        return local->power / local->to *
               phema_quad_pow((local->from + at) / local->to, local->power - 1);
    if (local->form == PHEMA_FAMILY_EXPONENTIAL)
        return local->rate * value_at(local, at);
    phema_quad last = phema_quad_sin(phema_quad_pi() / 2 * local->to / local->span);
    return phema_quad_pi() / 2 / local->span *
           phema_quad_sin(phema_quad_pi() * (local->from + at) / local->span) / (last * last);
}

static phema_quad product_at(const void *context, phema_quad at)
{
    const struct pair *pair = context;
    if (pair->of_densities)
        return density_at(pair->a, at) * density_at(pair->b, at);
    return value_at(pair->a, at) * (pair->b ? value_at(pair->b, at) : 1);
}

static phema_quad integrate_pair(const struct pair *pair, struct phema_quadrature *rule)
{
    phema_quad from = pair->a->length;
    phema_quad rate = 0;
    const struct phema_local *both[] = {pair->a, pair->b};
    for (size_t i = 0; i < ARRAY_LEN(both) && both[i]; i++) {
        if (both[i]->form == PHEMA_FAMILY_POWER && both[i]->from < from)
            from = both[i]->from;
        if (both[i]->form == PHEMA_FAMILY_EXPONENTIAL)
            rate += both[i]->rate;
    }
    return integrate(rule, product_at, pair, pair->a->length, from, rate);
}

/* ---- Closed forms ---- */

static bool is_power(const struct phema_local *local)
{
    return local->form == PHEMA_FAMILY_POWER;
}

static bool is_exponential(const struct phema_local *local)
{
    return local->form == PHEMA_FAMILY_EXPONENTIAL;
}

/* Integral over the interval of (x/to)^exponent, reach = (from/to)^exponent */
static phema_quad integral_of_power(const struct phema_local *local, phema_quad exponent,
                                    phema_quad reach)
{
    return local->to * (1 - local->from / local->to * reach) / (exponent + 1);
}

phema_quad phema_local_single(const struct phema_local *a, struct phema_quadrature *rule)
{
    if (a->is_zero)
        return 0;
    if (is_power(a))
        return integral_of_power(a, a->power, a->decay);
    if (is_exponential(a))
        return -phema_quad_expm1(-a->rate * a->length) / a->rate;
    return integrate_pair(&(struct pair){a, NULL, false}, rule);
}

/* integral (x/to)^A e^(-k (u-t)): the integral from the origin, minus the part before the
 * interval */
static phema_quad both_power_exponential(const struct phema_local *power,
                                         const struct phema_local *exponential)
{
    phema_quad a = power->power + 1;
    phema_quad k = exponential->rate;
    phema_quad whole = power->to / a * phema_phi(a, k * power->to);
    phema_quad before = power->from / a * phema_phi(a, k * power->from);
    return whole - power->decay * exponential->decay * before;
}

/* integral (x/to)^A (x + shift) / window->to, x counted from the power's origin */
static phema_quad both_power_window(const struct phema_local *power,
                                    const struct phema_local *window)
{
    phema_quad shift = window->to - power->to;
    phema_quad ratio = power->from / power->to;
    phema_quad linear = integral_of_power(power, power->power + 1, ratio * power->decay);
    phema_quad constant = integral_of_power(power, power->power, power->decay);
    return (linear * power->to + shift * constant) / window->to;
}

phema_quad phema_local_both(const struct phema_local *a, const struct phema_local *b,
                            struct phema_quadrature *rule)
{
    if (a->is_zero || b->is_zero)
        return 0;
    if (is_exponential(a) && is_exponential(b))
        return -phema_quad_expm1(-(a->rate + b->rate) * a->length) / (a->rate + b->rate);
    if (is_power(a) && is_exponential(b))
        return both_power_exponential(a, b);
    if (is_exponential(a) && is_power(b))
        return both_power_exponential(b, a);
    if (is_power(a) && is_power(b)) {
        if (a->to == b->to)
            return integral_of_power(a, a->power + b->power, a->decay * b->decay);
        if (b->power == 1)
            return both_power_window(a, b);
        if (a->power == 1)
            return both_power_window(b, a);
    }
    return integrate_pair(&(struct pair){a, b, false}, rule);
}

/* At the beginning, profiles of powers of a half and less are not square-integrable: the density of
 * the first unit of time is taken as even. */
static phema_quad densities_from_one(const struct phema_local *a, const struct phema_local *b,
                                     phema_quad factor, phema_quad exponent)
{
    if (a->to <= 1)
        return 1 / a->to;
    phema_quad first = phema_quad_pow(a->to, -a->power - b->power);
    if (exponent == 0)
        return first + factor * phema_quad_log(a->to);
    return first + factor * (1 - phema_quad_pow(a->to, -exponent)) / exponent;
}

/* A B / to^2 integral (x/to)^(A+B-2) */
static phema_quad densities_of_powers(const struct phema_local *a, const struct phema_local *b)
{
    phema_quad exponent = a->power + b->power - 1;
    phema_quad factor = a->power * b->power / a->to;
    if (a->from <= 0 && exponent <= 0)
        return densities_from_one(a, b, factor, exponent);
    if (a->from <= 0)
        return factor / exponent;
    if (exponent == 0)
        return factor * phema_quad_log(a->to / a->from);
    return factor * (1 - a->decay * b->decay * a->to / a->from) / exponent;
}

static phema_quad densities_power_exponential(const struct phema_local *power,
                                              const struct phema_local *exponential)
{
    phema_quad k = exponential->rate;
    return k * (phema_phi(power->power, k * power->to) -
                power->decay * exponential->decay * phema_phi(power->power, k * power->from));
}

/* From this rate on the density at the end is no longer that of the step that a raw profile is wide:
 * such averages would count as equal to it. */
#define FAST ((phema_quad)0.5)

/* p at the end of the interval, where a raw profile has all of its weight in a step */
static phema_quad density_at_end(const struct phema_local *local, phema_quad step)
{
    if (local->form == PHEMA_FAMILY_RAW)
        return 1 / (local->step > step ? local->step : step);
    if (is_exponential(local) && local->rate * step >= FAST)
        return (1 - phema_quad_exp(-local->rate * step)) / step;
    return local->is_zero ? 0 : density_at(local, local->length);
}

phema_quad phema_local_densities(const struct phema_local *a, const struct phema_local *b,
                                 struct phema_quadrature *rule)
{
    if (a->form == PHEMA_FAMILY_RAW)
        return density_at_end(b, a->step);
    if (b->form == PHEMA_FAMILY_RAW)
        return density_at_end(a, b->step);
    if (a->is_zero || b->is_zero)
        return 0;
    if (is_exponential(a) && is_exponential(b))
        return a->rate * b->rate * phema_local_both(a, b, rule);
    if (is_power(a) && is_exponential(b))
        return densities_power_exponential(a, b);
    if (is_exponential(a) && is_power(b))
        return densities_power_exponential(b, a);
    if (is_power(a) && is_power(b)) {
        if (a->to == b->to)
            return densities_of_powers(a, b);
        if (b->power == 1)
            return (1 - a->decay) / b->to;
        if (a->power == 1)
            return (1 - b->decay) / a->to;
    }
    return integrate_pair(&(struct pair){a, b, true}, rule);
}

#ifndef __GLIBC__
/* Set by libquadmath's lgammaq, which must not share it with libc: its code cannot be moved */
__attribute__((visibility("hidden"))) int signgam;
#endif

phema_quad phema_log_updates(uint64_t every, phema_quad t)
{
    uint64_t updates = ((uint64_t)t - 1) / every;
    phema_quad part = 1 / (phema_quad)every;
    int sign;
    return phema_quad_lgamma_r((phema_quad)updates + 1 + part, &sign) -
           phema_quad_lgamma_r((phema_quad)updates + 1 + 2 * part, &sign);
}
