// SPDX-License-Identifier: Apache-2.0
/* test_cuda_scalar.c - the device's scalar code, compiled for the host, compared bit by bit with
 * the reference conversions and sums of accumulate/. */
#include "scalar.h"

#include <math.h>
#include <stdlib.h>

#include "phema/accumulate.h"
#include "support.h"

static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F32, PHEMA_F64};
static const enum phema_cuda_dtype cuda_dtypes[] = {PHEMA_CUDA_F16, PHEMA_CUDA_BF16, PHEMA_CUDA_F32,
                                                    PHEMA_CUDA_F64};
static uint64_t random_state;

static uint64_t random_u64(void)
{
    return support_random(&random_state);
}

static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof(a)) == 0;
}

/* Every 16-bit code, and random bits of the wider dtypes. */
static void elements_decode_as_on_the_cpu(void **state)
{
    (void)state;
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
        for (uint32_t code = 0; code < 0x10000; code++) {
            uint64_t bits = random_u64();
            uint8_t data[8];
            if (d < 2)
                bits = code;
            memcpy(data, &bits, sizeof(bits));
            double wanted;
            phema_widen(&wanted, dtypes[d], data, 1);
            assert_true(is_same(scalar_load(cuda_dtypes[d], data, 0), wanted));
            assert_int_equal(scalar_bytes(cuda_dtypes[d]), phema_dtype_bits(dtypes[d]) / 8);
        }
    }
}

/* Numbers near limits, ties, subnormal numbers and special values; or random bits. */
static double random_sum(void)
{
    static const double specials[] = {0.0,
                                      -0.0,
                                      65504,
                                      65519.999,
                                      65520,
                                      -65520,
                                      0x1p-149,
                                      -0x1p-150,
                                      0x1p-1074,
                                      0x1p-133,
                                      0x1p-134,
                                      0x1p-126,
                                      0x1p-25,
                                      0x1p-24,
                                      0x1.8p-25,
                                      0x1.fep127,
                                      0x1.ffp127,
                                      0x1.fffffep127,
                                      0x1.ffffffp127,
                                      3e38,
                                      -1e300,
                                      0x1.8p-150,
                                      0x1p-151,
                                      (double)NAN,
                                      (double)INFINITY,
                                      -(double)INFINITY};
    uint64_t bits = random_u64();
    double any;
    switch (bits % 6) {
    case 0:
        return specials[random_u64() % ARRAY_LEN(specials)];
    case 1: /* few bits: ties are frequent */
        return ldexp((double)(int)(random_u64() % 8192) - 4096, (int)(random_u64() % 40) - 30);
    case 2: /* subnormal numbers of BF16 and F32 */
        return ldexp((double)(int64_t)random_u64() * 0x1p-63, -118 - (int)(random_u64() % 44));
    case 3: /* subnormal numbers of F16, and numbers too large for it */
        return ldexp((double)(int64_t)random_u64() * 0x1p-63, (int)(random_u64() % 44) - 26);
    default:
        bits = random_u64();
        memcpy(&any, &bits, sizeof(any));
        return any;
    }
}

static void check_store(size_t d, double sum, bool saturates)
{
    uint8_t wanted[8] = {0}, got[8] = {0};
    struct phema_narrow_counts counts = {0, 0, 0};
    _Alignas(64) double sums[1] = {sum};
    phema_narrow(phema_backend_named("ref"), wanted, dtypes[d], PHEMA_ACCUMULATE_F64, sums, 1,
                 saturates ? PHEMA_OVERFLOW_SATURATE : PHEMA_OVERFLOW_INF, &counts);
    enum scalar_rounding rounding = scalar_store(cuda_dtypes[d], got, 0, sum, saturates);
    if (memcmp(wanted, got, sizeof(got)) != 0)
        fail_msg("%s of %a: other bits", phema_dtype_name(dtypes[d]), sum);
    assert_int_equal(rounding == SCALAR_OVERFLOWS, counts.n_overflow);
    assert_int_equal(rounding == SCALAR_IS_NAN, counts.n_nan);
    assert_int_equal(rounding == SCALAR_IS_INFINITE, counts.n_inf);
}

static void sums_are_rounded_and_counted_as_on_the_cpu(void **state)
{
    (void)state;
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++)
        for (size_t i = 0; i < 300000; i++)
            check_store(d, random_sum(), i % 2);
}

/* Half-way between any two neighbours of F16 and BF16, and one double to either side. */
static void every_tie_goes_to_the_even_neighbour(void **state)
{
    (void)state;
    for (size_t d = 0; d < 2; d++) {
        for (uint32_t code = 0; code + 1 < 0x8000; code++) {
            const uint64_t low = code, high = code + 1;
            double between = (scalar_load(cuda_dtypes[d], (const uint8_t *)&low, 0) +
                              scalar_load(cuda_dtypes[d], (const uint8_t *)&high, 0)) /
                             2;
            if (!isfinite(between))
                continue;
            check_store(d, between, false);
            check_store(d, -between, true);
            check_store(d, nextafter(between, 0), false);
            check_store(d, nextafter(between, (double)INFINITY), false);
        }
    }
}

static void sums_have_the_bits_of_the_plain_loop(void **state)
{
    (void)state;
    enum { N_INPUTS = 9, N_ELEMS = 256 };
    static uint8_t data[N_INPUTS][N_ELEMS * 8];
    const uint8_t *inputs[N_INPUTS];
    double weights[N_INPUTS];
    _Alignas(64) static double sums[N_ELEMS];
    for (size_t d = 0; d < ARRAY_LEN(dtypes) * 2; d++) {
        enum phema_accumulator accumulator = (enum phema_accumulator)(d % 2);
        size_t dtype = d / 2;
        if (accumulator == PHEMA_ACCUMULATE_F32 && dtypes[dtype] == PHEMA_F64)
            continue;
        for (size_t k = 0; k < N_INPUTS; k++) {
            for (size_t i = 0; i < sizeof(data[k]); i++)
                data[k][i] = (uint8_t)random_u64();
            inputs[k] = data[k];
            weights[k] = (double)(int64_t)random_u64() * 0x1p-62;
        }
        memset(sums, 0, sizeof(sums));
        struct phema_tile tile = {inputs, weights, N_INPUTS, 1, N_ELEMS, dtypes[dtype]};
        phema_accumulate(phema_backend_named("ref"), accumulator, sums, sizeof(sums), &tile);
        for (size_t i = 0; i < N_ELEMS; i++) {
            double wide = 0;
            float single = 0;
            for (size_t k = 0; k < N_INPUTS; k++) {
                double x = scalar_load(cuda_dtypes[dtype], data[k], i);
                wide = scalar_add_f64(weights[k], x, wide);
                single = scalar_add_f32((float)weights[k], (float)x, single);
            }
            const float *singles = (const void *)sums;
            if (accumulator == PHEMA_ACCUMULATE_F64)
                assert_true(is_same(wide, sums[i]));
            else
                assert_true(is_same((double)single, (double)singles[i]));
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(elements_decode_as_on_the_cpu),
    cmocka_unit_test(sums_are_rounded_and_counted_as_on_the_cpu),
    cmocka_unit_test(every_tie_goes_to_the_even_neighbour),
    cmocka_unit_test(sums_have_the_bits_of_the_plain_loop),
};
TEST_GROUP(tests)
