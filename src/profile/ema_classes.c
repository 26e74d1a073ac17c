// SPDX-License-Identifier: Apache-2.0
/* ema_classes.c - public classes that average parameters, in their own words: keys, defaults, and the
 * rule that they set. Each was compared with the real class, or with its source where
 * docs/averages.md says so. */
#include "spec.h"

#include <math.h>

#include "phema/quad.h"

#define NONE PHEMA_UNKNOWN

/* Updates after the steps 1, 1 + every, ... */
static void begin_at_1(struct spec_rule *rule, double every)
{
    rule->every = every;
    rule->phase = 1;
}

/* torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn; arithmetic: get_ema_avg_fn */
static void set_averaged_model(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->phase = spec_value(term, "phase");
    rule->copies_first = true;
}

/* ModelEmaV3.update(model, step=step) */
static void set_timm(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->start = spec_value(term, "update-after") + 1;
    rule->before = BEFORE_COPIES;
    if (spec_value(term, "warmup") == 1)
        spec_set_form(rule, FORM_POWER, 2.0 / 3, 1);
}

static void set_ema_pytorch(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->most = spec_value(term, "beta");
    rule->least = spec_value(term, "min-value");
    rule->start = spec_value(term, "update-after") + 1;
    rule->before = BEFORE_COPIES;
    begin_at_1(rule, spec_value(term, "update-every"));
    spec_set_form(rule, FORM_POWER, spec_value(term, "power"), spec_value(term, "inv-gamma"));
}

static void set_torch_ema(struct spec_rule *rule, const struct phema_spec_term *term)
{
    (void)term;
    spec_set_form(rule, FORM_RATIO, 1, 10);
}

static void set_d2go(struct spec_rule *rule, const struct phema_spec_term *term)
{
    double factor = spec_value(term, "factor");
    if (!isnan(factor))
        spec_set_form(rule, FORM_RATIO, 1, factor);
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
    spec_set_form(rule, FORM_RATIO, 0, spec_value(term, "gamma"));
    rule->offset = -1;
}

static void set_mmdet_exp(struct spec_rule *rule, const struct phema_spec_term *term)
{
    set_mmengine(rule, term);
    spec_set_form(rule, FORM_EXP, spec_value(term, "gamma"), 0);
}

static void set_ultralytics(struct spec_rule *rule, const struct phema_spec_term *term)
{
    spec_set_form(rule, FORM_EXP, spec_value(term, "tau"), 0);
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
        spec_set_form(rule, FORM_LINEAR, first, n_updates);
}

/* The average begins as a copy at the first batch from start on, whatever `every` is. */
static void set_composer(struct spec_rule *rule, const struct phema_spec_term *term)
{
    rule->most = spec_decay_of_half_life(spec_value(term, "half-life") / rule->every);
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
    spec_set_form(rule, FORM_COSINE, spec_value(term, "momentum"), spec_value(term, "total"));
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
    spec_set_form(rule, FORM_RATIO, 1, 10);
    if (spec_value(term, "warmup") == 1)
        spec_set_form(rule, FORM_POWER, spec_value(term, "power"), spec_value(term, "inv-gamma"));
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
        spec_set_form(rule, FORM_RAMP, spec_value(term, "fraction"), 0);
    }
}

/* EMAWeightAveraging (lightning.pytorch.callbacks.weight_averaging) */
static void set_lightning(struct spec_rule *rule, const struct phema_spec_term *term)
{
    begin_at_1(rule, spec_value(term, "every"));
    rule->copies_first = true;
}

#define A_DECAY    SPEC_NUMBER, 0, 1 - 0x1p-53, "a number from 0 and below 1"
#define ARITHMETIC "arithmetic", SPEC_CHOICE, 0, 1, "exact|mul-f32"
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
    {CLASS("titan", set_titan, "the source of torchtitan", {"fraction", A_RAMP, 0.05, false},
           {"decay", A_DECAY, NONE, false}, {BEGIN("start", 0)}, {PERIOD("every", 1)},
           {BEGIN("bias", 0)},
           {"counting", SPEC_CHOICE, 0, 3, "count|counter|floor|steps", COUNT, false}),
     .has_alternatives = true},
    {CLASS("lightning", set_lightning, "pytorch-lightning 2.6.6 EMAWeightAveraging", {DECAY(0.999)},
           {PERIOD("every", 1)}, {BEGIN("start", 0)}, {ARITHMETIC, NONE, false})},
    {CLASS("averaged-model", set_averaged_model, "torch 2.15.0 AveragedModel", {DECAY(0.999)},
           {PERIOD("every", 1)}, {BEGIN("phase", 0)}, {BEGIN("start", 0)}, {ARITHMETIC, 0, false})},
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
