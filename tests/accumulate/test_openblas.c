// SPDX-License-Identifier: Apache-2.0
/* test_openblas.c - the kernels compared with OpenBLAS, which shares only the definition with
 * them. */
#include "openblas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define MAX_INPUTS  ((size_t)70)
#define MAX_TARGETS ((size_t)70)
#define MAX_ELEMS   ((size_t)1500)

static uint64_t random_state = 11;

static uint64_t random_u64(void)
{
    return support_random(&random_state);
}

struct tiles {
    uint8_t data[MAX_INPUTS][MAX_ELEMS * 8 + 1];
    double values[MAX_INPUTS][MAX_ELEMS]; /* values of data */
    double weights[MAX_INPUTS * MAX_TARGETS];
    _Alignas(64) double start[MAX_TARGETS * MAX_ELEMS], sums[MAX_TARGETS * MAX_ELEMS],
        judged[MAX_TARGETS * MAX_ELEMS]; /* or floats */
};

/* Numbers in [-2, 2] of the dtype, at an odd address. */
static void fill(struct tiles *tiles, enum phema_dtype dtype, size_t n_inputs, size_t n_elems)
{
    struct phema_narrow_counts counts = {0};
    for (size_t k = 0; k < n_inputs; k++) {
        for (size_t i = 0; i < n_elems; i++)
            tiles->values[k][i] = (double)(int64_t)random_u64() * 0x1p-62;
        phema_narrow(phema_backend_named("ref"), tiles->data[k] + 1, dtype, PHEMA_ACCUMULATE_F64,
                     tiles->values[k], n_elems, PHEMA_OVERFLOW_INF, &counts);
        phema_widen(tiles->values[k], dtype, tiles->data[k] + 1, n_elems);
    }
}

static double sum_at(const double *sums, enum phema_accumulator accumulator, size_t i)
{
    return accumulator == PHEMA_ACCUMULATE_F64 ? sums[i] : (double)((const float *)sums)[i];
}

/* n products and a first sum, added in any order, with products rounded or fused. Each way is
 * within n + 1 roundings of the exact sum. Each rounding is at most u S (1 + n u), with S = |first|
 * + sum |w x| (Higham, Accuracy and Stability, 3.1). So two ways differ by at most 2 (n + 2) u S
 * while n u is small. The rounding of a subnormal number is half of the smallest one instead. */
static double bound(const struct tiles *tiles, enum phema_accumulator accumulator,
                    const struct phema_tile *tile, double first, size_t m, size_t i)
{
    bool is_double = accumulator == PHEMA_ACCUMULATE_F64;
    double total = fabs(first);
    for (size_t k = 0; k < tile->n_inputs; k++) {
        double weight = tiles->weights[k * tile->n_targets + m], x = tiles->values[k][i];
        total += is_double ? fabs(weight * x) : fabs((double)(float)weight * (double)(float)x);
    }
    double n = (double)tile->n_inputs;
    return 2 * (n + 2) * (is_double ? 0x1p-53 * total + 0x1p-1074 : 0x1p-24 * total + 0x1p-149);
}

static void check(struct tiles *tiles, const struct phema_backend *backend, enum phema_dtype dtype,
                  enum phema_accumulator accumulator)
{
    size_t n_inputs = 1 + random_u64() % MAX_INPUTS, n_targets = 1 + random_u64() % MAX_TARGETS;
    size_t n_elems = 2 * (1 + random_u64() % (MAX_ELEMS / 2));
    size_t sum_bytes = accumulator == PHEMA_ACCUMULATE_F64 ? 8 : 4;
    size_t row_elems = (n_elems * sum_bytes + 63) / 64 * 64 / sum_bytes;
    if (row_elems > MAX_ELEMS)
        row_elems = n_elems = MAX_ELEMS / 16 * 16;
    fill(tiles, dtype, n_inputs, n_elems);
    const uint8_t *inputs[MAX_INPUTS];
    for (size_t k = 0; k < n_inputs; k++)
        inputs[k] = tiles->data[k] + 1;
    for (size_t i = 0; i < n_inputs * n_targets; i++)
        tiles->weights[i] = (double)(int64_t)random_u64() * 0x1p-63;
    for (size_t i = 0; i < n_targets * row_elems; i++) {
        double first = (double)(int64_t)random_u64() * 0x1p-60;
        if (accumulator == PHEMA_ACCUMULATE_F64)
            tiles->start[i] = first;
        else
            ((float *)tiles->start)[i] = (float)first;
    }
    memcpy(tiles->sums, tiles->start, n_targets * row_elems * sum_bytes);
    memcpy(tiles->judged, tiles->start, n_targets * row_elems * sum_bytes);
    struct phema_tile tile = {inputs, tiles->weights, n_inputs, n_targets, n_elems, dtype};
    phema_accumulate(backend, accumulator, tiles->sums, row_elems * sum_bytes, &tile);
    phema_accumulate(&openblas_backend, accumulator, tiles->judged, row_elems * sum_bytes, &tile);
    for (size_t m = 0; m < n_targets; m++) {
        for (size_t i = 0; i < n_elems; i++) {
            size_t at = m * row_elems + i;
            double limit =
                bound(tiles, accumulator, &tile, sum_at(tiles->start, accumulator, at), m, i);
            assert_near(sum_at(tiles->sums, accumulator, at),
                        sum_at(tiles->judged, accumulator, at), limit);
        }
    }
}

static void sums_equal_openblas_up_to_rounding(void **state)
{
    (void)state;
    static const char *const names[] = {"ref", "avx2", "avx512", "neon"};
    static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16,    PHEMA_F32,
                                              PHEMA_F64, PHEMA_F8_E4M3, PHEMA_F4};
    struct tiles *tiles = aligned_alloc(64, (sizeof(*tiles) + 63) / 64 * 64);
    assert_non_null(tiles);
    for (size_t b = 0; b < ARRAY_LEN(names); b++) {
        const struct phema_backend *backend = phema_backend_named(names[b]);
        for (size_t d = 0; backend && d < ARRAY_LEN(dtypes); d++) {
            for (size_t i = 0; i < (b ? 6 : 2); i++)
                check(tiles, backend, dtypes[d], (enum phema_accumulator)(i % 2));
        }
    }
    free(tiles);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_equal_openblas_up_to_rounding),
};
TEST_GROUP(tests)
