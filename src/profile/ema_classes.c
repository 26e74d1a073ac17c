// SPDX-License-Identifier: Apache-2.0
/* ema_classes.c - one family of recurrences, step by step, and the classes of libraries that are members
 * of it, in their own words. Each was compared with the real class, or with its source where
 * docs/averages.md says so. */
#include "spec.h"

#include <float.h>
#include <math.h>
#include <string.h>

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

/* The weights of a step where these do not add up to 1: of the average and of the parameters. The
 * average is shown divided by the sum of all weights so far, which the term keeps. */
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
        *beta = 0;
        term->sum = 1;
        return rule->before == BEFORE_FOLLOWS || (rule->before == BEFORE_COPIES && is_update);
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
    const struct phema_spec_term *term = &spec->terms[0];
    for (size_t i = 0; i < spec_n_keys(term->kind); i++)
        if (strcmp(term->kind->keys[i].name, "arithmetic") == 0)
            return isnan(term->values[i]) && term->n_followed == 0;
    return false;
}

void phema_spec_set_float32(struct phema_spec *spec)
{
    spec->terms[0].rule.is_mul_f32 = spec->terms[0].rule.is_scaled = true;
}

/* ---- Classes ---- */

#define A_DECAY     SPEC_NUMBER, 0, 1 - 0x1p-53, "a number from 0 and below 1"
#define A_SCALE     SPEC_NUMBER, 1e-6, 1e9, "a number from 1e-6 to 1e9"
#define AN_EXPONENT SPEC_NUMBER, 0, 1e3, "a number from 0 to 1000"
#define A_LENGTH    SPEC_NUMBER, 1e-6, 1e15, "a number from 1e-6 to 1e15"
#define ARITHMETIC  "arithmetic", SPEC_CHOICE, 0, 1, "exact|mul-f32"

const struct spec_warmup spec_warmups[] = {
    [FORM_NONE] = {"none", {{NULL, SPEC_NUMBER, 0, 0, NULL, 0, false}}},
    [FORM_RATIO] = {"ratio",
                    {{"", SPEC_NUMBER, 0, 1e9, "a number up to 1e9", 1, false},
                     {"", A_SCALE, 10, false}}},
    [FORM_POWER] = {"power", {{"", AN_EXPONENT, 2.0 / 3, false}, {"", A_SCALE, 1, false}}},
    [FORM_EXP] = {"exp", {{"", A_LENGTH, 2000, false}}},
    [FORM_LINEAR] = {"linear", {{"", A_SHARE, NONE, true}, {"", A_LENGTH, NONE, true}}},
    [FORM_COSINE] = {"cosine", {{"", A_SHARE, NONE, true}, {"", A_LENGTH, NONE, true}}},
    [FORM_RAMP] = {"ramp",
                   {{"", SPEC_NUMBER, 1e-6, 1e6, "a number from 1e-6 to 1e6", 0.05, false}}},
    [FORM_KARRAS] = {"karras",
                     {{"", SPEC_NUMBER, -0.5 + 0x1p-54, 1e9, "a number above -0.5 and up to 1e9",
                       NONE, true}}},
};
const size_t spec_n_warmups = ARRAY_LEN(spec_warmups);

static void set_form(struct spec_rule *rule, enum spec_form form, double a, double b)
{
    rule->form = form;
    rule->numbers[0] = a;
    rule->numbers[1] = b;
}

/* Updates after the steps 1, 1 + every, ... */
static void begin_at_1(struct spec_rule *rule, double every)
{
    rule->every = every;
    rule->phase = 1;
}

static double decay_of_half_life(double half_life)
{
    return (double)phema_quad_pow(2, -1 / (phema_quad)half_life);
}

void spec_set_ema(struct spec_rule *rule, const struct phema_spec_term *term)
{
    double decay = spec_value(term, "decay");
    rule->most = isnan(decay) ? decay_of_half_life(spec_value(term, "half-life")) : decay;
    set_form(rule, (enum spec_form)spec_value(term, "warmup"), term->values[3], term->values[4]);
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

/* torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn; arithmetic: get_ema_avg_fn */
static void set_averaged_model(struct spec_rule *rule, const struct phema_spec_term *term)
{
    (void)term;
    rule->copies_first = true;
}

/* ModelEmaV3.update(model, step=step) */
static void set_timm(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->start = spec_value(term, "update-after") + 1;
    rule->before = BEFORE_COPIES;
    if (spec_value(term, "warmup") == 1)
        set_form(rule, FORM_POWER, 2.0 / 3, 1);
}

static void set_ema_pytorch(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->most = spec_value(term, "beta");
    rule->least = spec_value(term, "min-value");
    rule->start = spec_value(term, "update-after") + 1;
    rule->before = BEFORE_COPIES;
    begin_at_1(rule, spec_value(term, "update-every"));
    set_form(rule, FORM_POWER, spec_value(term, "power"), spec_value(term, "inv-gamma"));
}

static void set_torch_ema(struct spec_rule *rule, const struct phema_spec_term *term)
{
    (void)term;
    set_form(rule, FORM_RATIO, 1, 10);
}

static void set_d2go(struct spec_rule *rule, const struct phema_spec_term *term)
{
    double factor = spec_value(term, "factor");
    if (!isnan(factor))
        set_form(rule, FORM_RATIO, 1, factor);
}

/* EMAHook copies until begin; the average counts its calls from there on, and copies at the first. */
static void set_mmengine(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->most = 1 - spec_value(term, "momentum");
    rule->start = fmax(spec_value(term, "begin") - 1, 0);
    rule->before = BEFORE_FOLLOWS;
    rule->every = spec_value(term, "interval");
    rule->phase = rule->start + 1;
    rule->copies_first = true;
}

static void set_mmengine_annealing(struct spec_rule *rule, const struct phema_spec_term *term)
{
    set_mmengine(rule, term);
    set_form(rule, FORM_RATIO, 0, spec_value(term, "gamma"));
    rule->offset = -1;
}

static void set_mmdet_exp(struct spec_rule *rule, const struct phema_spec_term *term)
{
    set_mmengine(rule, term);
    set_form(rule, FORM_EXP, spec_value(term, "gamma"), 0);
}

static void set_ultralytics(struct spec_rule *rule, const struct phema_spec_term *term)
{
    set_form(rule, FORM_EXP, spec_value(term, "tau"), 0);
}

/* Its AveragedModel copies at the first update. */
static void set_rf_detr(struct spec_rule *rule, const struct phema_spec_term *term)
{
    set_ultralytics(rule, term);
    rule->copies_first = true;
}

static void set_ignite(struct spec_rule *rule, const struct phema_spec_term *term)
{
    double first = spec_value(term, "warmup-momentum"), n_updates = spec_value(term, "warmup");
    rule->most = 1 - spec_value(term, "momentum");
    rule->counts_updates = true;
    if (!isnan(first) && !isnan(n_updates))
        set_form(rule, FORM_LINEAR, first, n_updates);
}

/* The average begins as a copy at the first batch from start on, whatever `every` is. */
static void set_composer(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->most = decay_of_half_life(spec_value(term, "half-life") / rule->every);
    rule->start = fmax(rule->start, 1);
    rule->before = BEFORE_FOLLOWS;
}

static void set_nemo(struct spec_rule *rule, const struct phema_spec_term *term)
{
    begin_at_1(rule, spec_value(term, "every"));
}

static void set_fairseq(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->every = spec_value(term, "freq");
    rule->start = fmax(rule->start - 1, 0);
    rule->before = BEFORE_COPIES;
}

/* The teacher of DINO and DINOv2: a schedule that ends with 1, by iterations from 0. */
static void set_dino(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->most = 1;
    rule->offset = -1;
    set_form(rule, FORM_COSINE, spec_value(term, "momentum"), spec_value(term, "total"));
}

/* With accumulated gradients the average is updated by each batch, the parameters by every
 * accumulation-th. */
static void set_keras(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->most = (double)phema_quad_pow((phema_quad)rule->most,
                                        (phema_quad)spec_value(term, "accumulation"));
    rule->copies_first = true;
}

/* EmaState.ema: from zeros, and not divided by what its weights add up to. */
static void set_optax(struct spec_rule *rule, const struct phema_spec_term *term)
{
    (void)term;
    rule->begins_with_0 = rule->is_scaled = true;
}

/* EMAModel.get_decay counts the step before it computes the decay, so that the first one copies. */
static void set_diffusers(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->start = spec_value(term, "update-after") + 1;
    rule->before = BEFORE_COPIES;
    rule->least = spec_value(term, "min-decay");
    set_form(rule, FORM_RATIO, 1, 10);
    if (spec_value(term, "warmup") == 1)
        set_form(rule, FORM_POWER, spec_value(term, "power"), spec_value(term, "inv-gamma"));
}

enum titan_counting { COUNT, COUNTER, FLOOR, STEPS }; /* by index of the word */

/* torchtitan's EMA, whose half-life is a fraction of the updates so far: at update k the decay is
 * 2^(-1/(fraction k)). Which steps are updates, and what k is, depends on its version: count since
 * September 2026 (components/ema), floor in August, counter for some days between, steps before. */
static void set_titan(struct spec_rule *rule, const struct phema_spec_term *term)
{
    double start = spec_value(term, "start"), bias = spec_value(term, "bias");
    enum titan_counting counting = (enum titan_counting)spec_value(term, "counting");
    bool starts_with_update = start > 0 && counting != COUNT; /* there is no step 0 */
    rule->start = starts_with_update ? start - 1 : start;
    rule->phase = start;
    rule->counts_updates = counting != STEPS;
    rule->offset = counting == FLOOR ? floor(bias / rule->every) : bias;
    if (starts_with_update && counting != COUNTER)
        rule->offset--;
    rule->lowest_n = counting == FLOOR || counting == STEPS;
    if (isnan(spec_value(term, "decay"))) {
        rule->most = 1;
        set_form(rule, FORM_RAMP, spec_value(term, "fraction"), 0);
    }
}

/* EMAWeightAveraging (lightning.pytorch.callbacks.weight_averaging) */
static void set_lightning(struct spec_rule *rule, const struct phema_spec_term *term)
{
    begin_at_1(rule, spec_value(term, "every"));
    rule->copies_first = true;
}

#define CLASS(its_name, set, version, ...)                                                         \
    .name = its_name, .build = BUILD_CLASS, .set_rule = set, .of_class = version,                  \
    .keys = {__VA_ARGS__}
#define DECAY(decay)        "decay", A_SHARE, decay, false
#define MOMENTUM            "momentum", A_SHARE, 0.0002, false
#define PERIOD(name, steps) name, A_PERIOD, steps, false
#define BEGIN(name, step)   name, A_START, step, false
#define INV_GAMMA           "inv-gamma", A_SCALE, 1, false
#define EXPONENT            "power", AN_EXPONENT, 2.0 / 3, false
#define WARMUP              "warmup", SPEC_YES_NO, 0, 1, "yes or no", 0, false
#define TAU(updates)        "tau", A_LENGTH, updates, false

const struct spec_kind spec_classes[] = {
    {CLASS("diffusers", set_diffusers, "diffusers 0.42.1 EMAModel", {DECAY(0.9999)}, {WARMUP},
           {INV_GAMMA}, {EXPONENT}, {BEGIN("update-after", 0)}, {"min-decay", A_SHARE, 0, false})},
    {CLASS("titan", set_titan, "the source of torchtitan",
           {"fraction", SPEC_NUMBER, 1e-6, 1e6, "a number from 1e-6 to 1e6", 0.05, false},
           {"decay", A_DECAY, NONE, false}, {BEGIN("start", 0)}, {PERIOD("every", 1)},
           {BEGIN("bias", 0)},
           {"counting", SPEC_CHOICE, 0, 3, "count|counter|floor|steps", COUNT, false}),
     .has_alternatives = true},
    {CLASS("lightning", set_lightning, "pytorch-lightning 2.6.6 EMAWeightAveraging", {DECAY(0.999)},
           {PERIOD("every", 1)}, {BEGIN("start", 0)}, {ARITHMETIC, NONE, false})},
    {CLASS("averaged-model", set_averaged_model, "torch 2.15.0 AveragedModel", {DECAY(0.999)},
           {ARITHMETIC, 0, false})},
    {CLASS("timm", set_timm, "timm 1.0.31 ModelEmaV3", {DECAY(0.9999)}, {WARMUP},
           {BEGIN("update-after", 0)})},
    {CLASS("ema-pytorch", set_ema_pytorch, "ema-pytorch 0.8.3 EMA",
           {"beta", A_SHARE, 0.9999, false}, {PERIOD("update-every", 10)},
           {BEGIN("update-after", 100)}, {INV_GAMMA}, {EXPONENT},
           {"min-value", A_SHARE, 0, false})},
    {CLASS("torch-ema", set_torch_ema, "torch-ema 0.3", {"decay", A_SHARE, NONE, true})},
    {CLASS("d2go", set_d2go, "d2go f4ac156", {DECAY(0.999)},
           {"factor", SPEC_NUMBER, 0, 1e9, "a number up to 1e9", NONE, false})},
    {CLASS("mmengine", set_mmengine, "mmengine 0.10.7 ExponentialMovingAverage", {MOMENTUM},
           {PERIOD("interval", 1)}, {BEGIN("begin", 0)})},
    {CLASS("mmengine-annealing", set_mmengine_annealing, "mmengine 0.10.7 MomentumAnnealingEMA",
           {MOMENTUM}, {"gamma", A_SCALE, 100, false}, {PERIOD("interval", 1)},
           {BEGIN("begin", 0)})},
    {CLASS("mmdet-exp", set_mmdet_exp, "the source of mmdet's ExpMomentumEMA", {MOMENTUM},
           {"gamma", A_LENGTH, 2000, false}, {PERIOD("interval", 1)}, {BEGIN("begin", 0)})},
    {CLASS("ultralytics", set_ultralytics, "ultralytics 8.4.190 ModelEMA", {DECAY(0.9999)},
           {TAU(2000)})},
    {CLASS("rf-detr", set_rf_detr, "the source of RF-DETR 1.11.2", {DECAY(0.993)}, {TAU(100)})},
    {CLASS("ignite", set_ignite, "pytorch-ignite 0.5.5 EMAHandler", {MOMENTUM},
           {"warmup-momentum", A_SHARE, NONE, false}, {PERIOD("warmup", NONE)},
           {PERIOD("every", 1)}, {ARITHMETIC, NONE, false})},
    {CLASS("composer", set_composer, "mosaicml 0.32.1 EMA", {"half-life", A_LENGTH, NONE, true},
           {PERIOD("every", 1)}, {BEGIN("start", 0)}, {ARITHMETIC, NONE, false})},
    {CLASS("nemo", set_nemo, "NeMo 3.0.0 EMAOptimizer", {"decay", A_SHARE, NONE, true},
           {PERIOD("every", 1)}, {ARITHMETIC, NONE, false})},
    {CLASS("fairseq", set_fairseq, "fairseq 3d262bb EMA", {DECAY(0.9999)}, {BEGIN("start", 0)},
           {PERIOD("freq", 1)})},
    {CLASS("dino", set_dino, "the source of DINOv2 b8931f7", {"momentum", A_SHARE, 0.992, false},
           {"total", A_LENGTH, NONE, true})},
    {CLASS("keras", set_keras, "keras 3.15.1 use_ema", {DECAY(0.99)}, {PERIOD("accumulation", 1)})},
    {CLASS("optax", set_optax, "optax 0.2.8 EmaState", {"decay", A_DECAY, NONE, true})},
};
const size_t spec_n_classes = ARRAY_LEN(spec_classes);
