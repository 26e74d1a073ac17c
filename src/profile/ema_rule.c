// SPDX-License-Identifier: Apache-2.0
/* ema_rule.c - one family of exponential averages, step by step: which steps are updates, the beta of
 * each, and the sum of the weights in float32. */
#include "spec.h"

#include <float.h>
#include <math.h>

#include "phema/quad.h"

#define NONE PHEMA_UNKNOWN

/* ---- Betas ---- */

/* Whether `from` - rest rounds to one double although rest, from libm, may be wrong by `slack`. A
 * long training has a million betas, and quad takes a microsecond: it is used only where this
 * fails, so that every machine has the same betas. */
static bool is_certain(double *out, double from, double rest, double slack)
{
    *out = from - rest;
    return from - (rest + slack) == from - (rest - slack);
}

double spec_one_minus_power(double base, double exponent)
{
    double value, rest = pow(base, -exponent);
    if (is_certain(&value, 1, rest, 2 * DBL_EPSILON * rest))
        return value;
    return (double)(1 - phema_quad_pow((phema_quad)base, -(phema_quad)exponent));
}

/* 2^-x */
static double halved(double x)
{
    double value, rest = -expm1(-M_LN2 * x);
    if (is_certain(&value, 1, rest, 2 * DBL_EPSILON * rest))
        return value;
    return (double)phema_quad_pow(2, -(phema_quad)x);
}

/* 1 - e^-x */
static double risen(double x)
{
    double value, rest = exp(-x);
    if (is_certain(&value, 1, rest, 2 * DBL_EPSILON * rest))
        return value;
    return (double)(1 - phema_quad_exp(-(phema_quad)x));
}

/* From begin to end on half a cosine, at share x of the way. */
static double turned(double begin, double end, double x)
{
    double value, way = end - begin;
    if (is_certain(&value, end, way * (1 + cos(M_PI * x)) / 2, 4 * DBL_EPSILON * way))
        return value;
    phema_quad part = (1 + phema_quad_cos(phema_quad_pi() * (phema_quad)x)) / 2;
    return (double)((phema_quad)end - ((phema_quad)end - (phema_quad)begin) * part);
}

/* From 1 - first to 1 - last, evenly over the updates 1 to `n_updates`. */
static double ramped(double first, double last, double update, double n_updates)
{
    double x = fmin((update - 1) / fmax(1, n_updates - 1), 1);
    return 1 - (first + (last - first) * x);
}

static double form_beta(const struct spec_rule *rule, double n)
{
    const double *a = rule->numbers;
    switch (rule->form) {
    case FORM_NONE:
        break;
    case FORM_RATIO:
        return (a[0] + n) / (a[1] + n);
    case FORM_POWER:
        return spec_one_minus_power(1 + n / a[1], a[0]);
    case FORM_EXP:
        return rule->most * risen(n / a[0]);
    case FORM_LINEAR:
        return ramped(a[0], 1 - rule->most, n, a[1]);
    case FORM_COSINE:
        return turned(a[0], rule->most, fmin(n / a[1], 1));
    case FORM_RAMP:
        return halved(1 / (a[0] * n));
    case FORM_KARRAS:
        return phema_power_beta(a[0], (uint64_t)fmax(n, 1));
    }
    return rule->most;
}

/* The beta of an average that is divided by the sum of its weights so far. The term keeps the sum. */
static double divided_beta(struct phema_spec_term *term, double beta)
{
    bool is_f32 = term->rule.is_mul_f32;
    double kept = (is_f32 ? (double)(float)beta : beta) * term->sum;
    double sum = kept + (is_f32 ? (double)(float)(1 - beta) : 1 - beta);
    term->sum = sum;
    return sum > 0 ? kept / sum : 1;
}

bool spec_rule_beta(double *beta, struct phema_spec_term *term, uint64_t step)
{
    const struct spec_rule *rule = &term->rule;
    double since = (double)step - rule->start;
    bool is_update = fmod((double)step - rule->phase, rule->every) == 0;
    if (step == 1)
        term->sum = rule->begins_with_0 ? 0 : 1;
    if (since <= 0) {
        bool copies =
            rule->before == BEFORE_FOLLOWS || (rule->before == BEFORE_COPIES && is_update);
        *beta = 0;
        term->sum = copies ? 1 : term->sum;
        return copies;
    }
    if (!is_update)
        return false;
    bool copies = term->n_updates++ == 0 && rule->copies_first;
    double n = (rule->counts_updates ? (double)term->n_updates : since) + rule->offset;
    double value = form_beta(rule, fmax(n, rule->lowest_n));
    /* a warm-up from a smaller share of the parameters is above the last beta */
    value = rule->form == FORM_LINEAR ? value : fmin(value, rule->most);
    *beta = copies ? 0 : fmax(fmin(fmax(value, rule->least), 1), 0);
    if (rule->begins_with_0 || rule->is_mul_f32)
        *beta = divided_beta(term, *beta);
    return true;
}

double phema_spec_decay(const struct phema_spec *spec)
{
    const struct phema_spec_term *term = &spec->terms[0];
    return spec->is_average && term->kind->set_rule ? term->rule.most : PHEMA_UNKNOWN;
}

bool phema_spec_asks_dtype(const struct phema_spec *spec)
{
    const double *arithmetic = spec_find_value(&spec->terms[0], "arithmetic");
    return arithmetic && isnan(*arithmetic) && spec->terms[0].n_followed == 0;
}

void phema_spec_set_float32(struct phema_spec *spec)
{
    spec->terms[0].rule.is_mul_f32 = spec->terms[0].rule.is_scaled = true;
}

/* ---- The rule of a SPEC ---- */

const struct spec_warmup spec_warmups[] = {
    [FORM_NONE] = {{{NULL, SPEC_NUMBER, 0, 0, NULL, 0, false}}},
    [FORM_RATIO] = {{{"", SPEC_NUMBER, 0, 1e9, "a number up to 1e9", 1, false},
                     {"", A_SCALE, 10, false}}},
    [FORM_POWER] = {{{"", AN_EXPONENT, 2.0 / 3, false}, {"", A_SCALE, 1, false}}},
    [FORM_EXP] = {{{"", A_LENGTH, 2000, false}}},
    [FORM_LINEAR] = {{{"", A_SHARE, NONE, true}, {"", A_LENGTH, NONE, true}}},
    [FORM_COSINE] = {{{"", A_SHARE, NONE, true}, {"", A_LENGTH, NONE, true}}},
    [FORM_RAMP] = {{{"", A_RAMP, 0.05, false}}},
    [FORM_KARRAS] = {{{"", SPEC_NUMBER, -0.5 + 0x1p-54, 1e9, "a number above -0.5 and up to 1e9",
                       NONE, true}}},
};

void spec_set_form(struct spec_rule *rule, enum spec_form form, double a, double b)
{
    rule->form = form;
    rule->numbers[0] = a;
    rule->numbers[1] = b;
}

double spec_decay_of_half_life(double half_life)
{
    return (double)phema_quad_pow(2, -1 / (phema_quad)half_life);
}

void spec_set_ema(struct spec_rule *rule, const struct phema_spec_term *term)
{
    double decay = spec_value(term, "decay");
    const double *warmup = spec_find_value(term, "warmup"); /* a form and its numbers */
    rule->most = isnan(decay) ? spec_decay_of_half_life(spec_value(term, "half-life")) : decay;
    spec_set_form(rule, (enum spec_form)warmup[0], warmup[1], warmup[2]);
    rule->copies_first = spec_value(term, "first") == 1;
    rule->phase = spec_value(term, "phase");
    rule->before = (enum spec_before)spec_value(term, "before");
    rule->counts_updates = spec_value(term, "count") == 1;
    rule->offset = spec_value(term, "offset");
    rule->least = spec_value(term, "min");
    rule->begins_with_0 = spec_value(term, "debias") == 1;
}

static double value_or(const struct phema_spec_term *term, const char *key, double otherwise)
{
    double value = spec_value(term, key);
    return isnan(value) ? otherwise : value;
}

void spec_set_rule(struct phema_spec_term *term)
{
    struct spec_rule *rule = &term->rule;
    double arithmetic = spec_value(term, "arithmetic");
    if (!term->kind->set_rule)
        return;
    *rule = (struct spec_rule){.most = value_or(term, "decay", 1),
                               .every = value_or(term, "every", 1),
                               .start = value_or(term, "start", 0),
                               .is_mul_f32 = arithmetic == 1};
    term->kind->set_rule(rule, term);
    rule->is_scaled |= rule->is_mul_f32;
    term->is_stepped = term->kind->build == BUILD_CLASS || rule->form || rule->copies_first ||
                       rule->every > 1 || rule->start > 0 || rule->begins_with_0 ||
                       rule->is_mul_f32 || rule->least > rule->most;
}
