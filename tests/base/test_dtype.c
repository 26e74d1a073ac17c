// SPDX-License-Identifier: Apache-2.0
/* Element types. Names and widths are those of the safetensors 0.8 crate, and rounding is compared
 * with a simulation. */
#include "phema/dtype.h"

#include <math.h>
#include <string.h>

#include "support.h"

/* safetensors 0.8.0, tensor.rs, enum Dtype and its bitsize; C128 is PyTorch's complex128. */
static const struct {
    enum phema_dtype dtype;
    const char *name;
    unsigned bits;
    bool is_float;
    unsigned mantissa_bits; /* of float types: IEEE 754, bfloat16, OCP MX */
} published[] = {
    {PHEMA_BOOL, "BOOL", 8, false, 0},
    {PHEMA_F4, "F4", 4, true, 1},
    {PHEMA_F6_E2M3, "F6_E2M3", 6, true, 3},
    {PHEMA_F6_E3M2, "F6_E3M2", 6, true, 2},
    {PHEMA_U8, "U8", 8, false, 0},
    {PHEMA_I8, "I8", 8, false, 0},
    {PHEMA_F8_E5M2, "F8_E5M2", 8, true, 2},
    {PHEMA_F8_E4M3, "F8_E4M3", 8, true, 3},
    {PHEMA_F8_E8M0, "F8_E8M0", 8, true, 0},
    {PHEMA_F8_E4M3FNUZ, "F8_E4M3FNUZ", 8, true, 3},
    {PHEMA_F8_E5M2FNUZ, "F8_E5M2FNUZ", 8, true, 2},
    {PHEMA_I16, "I16", 16, false, 0},
    {PHEMA_U16, "U16", 16, false, 0},
    {PHEMA_F16, "F16", 16, true, 10},
    {PHEMA_BF16, "BF16", 16, true, 7},
    {PHEMA_I32, "I32", 32, false, 0},
    {PHEMA_U32, "U32", 32, false, 0},
    {PHEMA_F32, "F32", 32, true, 23},
    {PHEMA_C64, "C64", 64, false, 0},
    {PHEMA_F64, "F64", 64, true, 52},
    {PHEMA_I64, "I64", 64, false, 0},
    {PHEMA_U64, "U64", 64, false, 0},
    {PHEMA_C128, "C128", 128, false, 0},
};

static void every_dtype_is_as_published(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_LEN(published), PHEMA_N_DTYPES);
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        enum phema_dtype dtype = published[i].dtype;
        assert_string_equal(phema_dtype_name(dtype), published[i].name);
        assert_int_equal(phema_dtype_bits(dtype), published[i].bits);
        assert_int_equal(phema_dtype_is_float(dtype), published[i].is_float);
        assert_int_equal(phema_dtype_mantissa_bits(dtype), published[i].mantissa_bits);
    }
}

static void names_are_found_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        size_t size = strlen(published[i].name);
        /* no NUL after the name, as in a header */
        const char *name = (const char *)support_guarded(published[i].name, size);
        enum phema_dtype dtype = PHEMA_N_DTYPES;
        assert_true(phema_dtype_from_name(&dtype, name, size));
        assert_int_equal(dtype, published[i].dtype);
    }
}

static void other_names_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t size;
    } others[] = {{"", 0},      {"F", 1},         {"F3", 2},   {"F32 ", 4},   {"f32", 3},
                  {"F32\0", 4}, {"F320", 4},      {"F128", 4}, {"F8_E4M", 6}, {"float32", 7},
                  {"BF1", 3},   {"F8_E4M3FN", 9}, {"I6", 2},   {"\0", 1},     {"U64U64", 6}};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        enum phema_dtype dtype = PHEMA_N_DTYPES;
        const char *name = (const char *)support_guarded(others[i].name, others[i].size);
        assert_false(phema_dtype_from_name(&dtype, name, others[i].size));
        assert_int_equal(dtype, PHEMA_N_DTYPES); /* unchanged */
    }
}

/* Rounds numbers with uniform logarithms over one octave to p mantissa bits. The root of the summed
 * squares is the definition of the constant. */
static double simulated_rounding(unsigned mantissa_bits)
{
    const int n = 200003;
    double errors = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        double x = exp2((i + 0.5) / n);
        double steps = ldexp(x, (int)mantissa_bits);
        double error = (nearbyint(steps) - steps) * ldexp(1, -(int)mantissa_bits);
        errors += error * error;
        squares += x * x;
    }
    return sqrt(errors / squares);
}

/* The formula assumes a uniform error within each step, which is accurate from 7 bits on. Steps are
 * then 1/128 of a number, and the density of numbers changes by less than 1 % within one. Up to 14
 * bits, the simulation has at least 10 samples per step. */
static void rounding_agrees_with_measured_errors(void **state)
{
    (void)state;
    static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16};
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++) {
        double simulated = simulated_rounding(phema_dtype_mantissa_bits(dtypes[i]));
        assert_near(phema_dtype_rounding(dtypes[i]), simulated, 0.01 * simulated);
    }
    /* each further bit halves it */
    assert_near(phema_dtype_rounding(PHEMA_F32) / phema_dtype_rounding(PHEMA_F16), ldexp(1, -13),
                1e-15);
    assert_near(phema_dtype_rounding(PHEMA_F64) / phema_dtype_rounding(PHEMA_F32), ldexp(1, -29),
                1e-15);
}

static void integers_are_not_rounded(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(published); i++)
        if (!published[i].is_float)
            assert_true(phema_dtype_rounding(published[i].dtype) == 0);
        else
            assert_true(phema_dtype_rounding(published[i].dtype) > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_dtype_is_as_published),
    cmocka_unit_test(names_are_found_exactly),
    cmocka_unit_test(other_names_are_refused),
    cmocka_unit_test(rounding_agrees_with_measured_errors),
    cmocka_unit_test(integers_are_not_rounded),
};
TEST_GROUP(tests)
