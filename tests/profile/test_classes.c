// SPDX-License-Identifier: Apache-2.0
/* test_classes.c - betas of classes of libraries, steps 1 to 2000, against the formulas measured on
 * them with a unit impulse (docs/averages.md), and sums of weights in float32. The real classes are run
 * by tests/averages_classes.py. */
#include "support.h"

#include <math.h>
#include <stdio.h>

#include "profile_at.h"

enum { LAST = 2000 };

/* ---- Formulas: the beta of call k, 1 where nothing is updated ---- */

static double d99(double value)
{
    return fmin(value, 0.99);
}

static double averaged_model(int k)
{
    return k == 1 ? 0 : 0.99;
}

static double averaged_model_of_some(int k)
{
    return k < 21 || k % 10 != 1 ? 1 : k == 21 ? 0 : 0.99;
}

static double timm(int k)
{
    return k <= 31 ? 0 : 0.99;
}

static double timm_warmup(int k)
{
    return k <= 31 ? 0 : d99(1 - pow(k - 30, -2.0 / 3));
}

static double ema_pytorch(int k)
{
    if ((k - 1) % 10 != 0)
        return 1;
    return k <= 101 ? 0 : d99(1 - pow(k - 100, -2.0 / 3));
}

static double ema_pytorch_odd(int k) /* copies at calls 1, 8, ..., 99; blends from 106 on */
{
    if ((k - 1) % 7 != 0)
        return 1;
    return k <= 101 ? 0 : fmax(d99(1 - pow(1 + (k - 101) / 3.0, -0.5)), 0.2);
}

static double torch_ema(int k)
{
    return d99((1.0 + k) / (10.0 + k));
}

static double d2go(int k)
{
    return d99((1.0 + k) / (4.0 + k));
}

static double mmengine(int k)
{
    return k == 1 ? 0 : (k - 1) % 5 == 0 ? 0.99 : 1;
}

static double mmengine_begin(int k) /* copies until the first call that counts, which is 20 */
{
    return k <= 20 ? 0 : (k - 20) % 5 == 0 ? 0.99 : 1;
}

static double annealing(int k)
{
    if ((k - 1) % 2 != 0)
        return 1;
    return 1 - fmax(0.01, 100.0 / (100 + k - 1));
}

static double mmdet_exp(int k)
{
    return k == 1 ? 0 : 0.99 * (1 - exp(-k / 500.0));
}

static double ultralytics(int k)
{
    return 0.99 * (1 - exp(-k / 2000.0));
}

static double ignite(int k)
{
    if (k % 3 != 0)
        return 1;
    int update = k / 3;
    return 1 - (update >= 100 ? 0.01 : 0.001 + (0.01 - 0.001) * (update - 1) / 99.0);
}

static double composer(int k) /* half-life 200, every 10, from batch 7 on */
{
    if (k <= 7)
        return 0;
    return k % 10 == 0 ? exp2(-10.0 / 200) : 1;
}

static double nemo(int k)
{
    return (k - 1) % 4 == 0 ? 0.99 : 1;
}

static double fairseq(int k)
{
    if (k % 8 != 0)
        return 1;
    return k < 100 ? 0 : 0.99;
}

static double dino(int k)
{
    return 1 - (1 - 0.992) * (1 + cos(M_PI * (k - 1) / 1500.0)) / 2;
}

static double dino_whole(int k)
{
    return k > 1500 ? 1 : dino(k);
}

static double keras(int k)
{
    return k == 1 ? 0 : pow(0.99, 4);
}

static double optax(int k) /* divided by 1 - decay^k */
{
    return 0.99 * (1 - pow(0.99, k - 1)) / (1 - pow(0.99, k));
}

static double debias_late(int k) /* zeros until step 50 */
{
    return k <= 50 ? 1 : optax(k - 50);
}

static double swa(int k)
{
    return (k - 1.0) / k;
}

static double karras(int k)
{
    return pow(1 - 1.0 / k, 7.94);
}

static double edm(int k) /* of batches: the half-life is 0.05 of the batches before, at most 60 */
{
    return k == 1 ? 0 : exp2(-1 / fmin(60, 0.05 * (k - 1)));
}

static const struct {
    const char *spec;
    double (*beta)(int k);
} cases[] = {
    {"averaged-model:decay=0.99", averaged_model},
    {"averaged-model:0.99,every=10,phase=1,start=20", averaged_model_of_some},
    {"lightning:decay=0.99", averaged_model},
    {"ema:decay=0.99,first=copy", averaged_model},
    {"timm:decay=0.99,update-after=30", timm},
    {"timm:decay=0.99,update-after=30,warmup=yes", timm_warmup},
    {"ema:decay=0.99,warmup=power:2/3,start=30,before=copy,offset=-1", timm_warmup},
    {"ema-pytorch:beta=0.99", ema_pytorch},
    {"ema:decay=0.99,warmup=power:2/3,1,every=10,phase=1,start=101,before=copy", ema_pytorch},
    {"ema-pytorch:0.99,update-every=7,inv-gamma=3,power=0.5,min-value=0.2", ema_pytorch_odd},
    {"torch-ema:decay=0.99", torch_ema},
    {"torch-ema:0.99", torch_ema},
    {"ema:decay=0.99,warmup=ratio", torch_ema},
    {"d2go:decay=0.99,factor=4", d2go},
    {"mmengine:momentum=0.01,interval=5", mmengine},
    {"mmengine:momentum=0.01,interval=5,begin=20", mmengine_begin},
    {"mmengine-annealing:momentum=0.01,interval=2", annealing},
    {"ema:decay=0.99,warmup=ratio:0,100,offset=-1,every=2,phase=1", annealing},
    {"mmdet-exp:momentum=0.01,gamma=500", mmdet_exp},
    {"rf-detr:decay=0.99,tau=500", mmdet_exp},
    {"ultralytics:decay=0.99", ultralytics},
    {"ignite:momentum=0.01,warmup-momentum=0.001,warmup=100,every=3", ignite},
    {"ema:decay=0.99,warmup=linear:0.001,100,count=updates,every=3", ignite},
    {"composer:half-life=200,every=10,start=7", composer},
    {"nemo:decay=0.99,every=4", nemo},
    {"fairseq:decay=0.99,start=100,freq=8", fairseq},
    {"dino:total=1500", dino_whole},
    {"keras:decay=0.99,accumulation=4", keras},
    {"optax:decay=0.99", optax},
    {"ema:decay=0.99,debias=yes", optax},
    {"ema:decay=0.99,debias=yes,start=50", debias_late},
    {"ema:decay=1,warmup=power:1,1,offset=-1", swa},
    {"ema:decay=1,warmup=karras:6.94", karras},
    {"ema:half-life=60,warmup=ramp:0.05,offset=-1", edm},
};

static void betas_are_those_of_the_classes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct phema_arena arena = {0};
        struct phema_profile profile = profile_at(&arena, cases[i].spec, LAST);
        for (int k = 1; k <= LAST; k++) {
            double found = phema_profile_beta(&profile, (uint64_t)k), wanted = cases[i].beta(k);
            if (!(fabs(found - wanted) <= 4e-15))
                fail_msg("%s: step %d: expected %.17g, found %.17g", cases[i].spec, k, wanted,
                         found);
        }
        phema_arena_clear(&arena);
    }
}

/* Known limits f32(1 - D) / (1 - f32(D)), and the sum of an average from zeros. */
static void files_hold_less_or_more_than_the_average(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        double t, scale;
    } held[] = {{"averaged-model:decay=0.9999,arithmetic=mul-f32", 300000, 0.99983406294},
                {"averaged-model:decay=0.99999,arithmetic=mul-f32", 3000000, 0.99864378430},
                {"ema:decay=0.999,arithmetic=mul-f32", 100000, 1.0000129222},
                {"nemo:decay=0.9999", 300000, 1},
                {"optax:decay=0.9", 4, 0.3439},
                {"ema:decay=0.9,debias=yes", 4, 1},
                {"ema:decay=0.9999", 300000, 1}};
    for (size_t i = 0; i < ARRAY_LEN(held); i++) {
        struct phema_arena arena = {0};
        struct phema_profile profile = profile_at(&arena, held[i].spec, held[i].t);
        assert_near(phema_profile_scale(&profile), held[i].scale, 1e-9);
        phema_arena_clear(&arena);
    }
}

/* Only classes that multiply and add in float32, and only where the text does not say otherwise. */
static void float32_decides_the_arithmetic(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        bool asks;
    } specs[] = {{"lightning", true},
                 {"ignite", true},
                 {"nemo:0.99", true},
                 {"composer:100", true},
                 {"lightning:arithmetic=exact", false},
                 {"averaged-model", false},
                 {"timm", false},
                 {"ema:decay=0.9", false},
                 {"power:sigma=0.1", false}};
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        struct phema_arena arena = {0};
        struct phema_error err = {0};
        struct phema_spec *spec = NULL;
        struct phema_profile profile;
        assert_ok(phema_spec_parse(&spec, &arena, specs[i].spec, &err), &err);
        assert_int_equal(phema_spec_asks_dtype(spec), specs[i].asks);
        if (specs[i].asks) {
            phema_spec_set_float32(spec);
            assert_ok(phema_spec_profile(&profile, spec, 10000, &err), &err);
            assert_true(phema_profile_scale(&profile) != 1);
            assert_false(phema_spec_asks_dtype(spec));
        }
        phema_arena_clear(&arena);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(betas_are_those_of_the_classes),
    cmocka_unit_test(files_hold_less_or_more_than_the_average),
    cmocka_unit_test(float32_decides_the_arithmetic),
};
TEST_GROUP(tests)
