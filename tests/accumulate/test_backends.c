// SPDX-License-Identifier: Apache-2.0
/* test_backends.c - every set of kernels compared with the plain loop, bit for bit. The cases are
 * all dtypes, odd numbers of everything, any addresses, and data that end at the end of mapped
 * memory. */
#include "phema/accumulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define MAX_INPUTS  ((size_t)40)
#define MAX_TARGETS ((size_t)81)
#define MAX_ELEMS   ((size_t)40000)
#define CANARY      0x5a

static const enum phema_dtype dtypes[] = {
    PHEMA_F16,     PHEMA_BF16,    PHEMA_F32,         PHEMA_F64,         PHEMA_F8_E4M3,
    PHEMA_F8_E5M2, PHEMA_F8_E8M0, PHEMA_F8_E4M3FNUZ, PHEMA_F8_E5M2FNUZ, PHEMA_F4};
static const char *const simd_names[] = {"avx2", "avx512", "neon"};

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return support_random(&random_state);
}

static double random_weight(void)
{
    return ((double)(int64_t)random_u64()) * 0x1p-62;
}

/* The same bits, or any NaN on both sides. */
static bool is_same_sum(enum phema_accumulator accumulator, const uint8_t *a, const uint8_t *b,
                        size_t i)
{
    if (accumulator == PHEMA_ACCUMULATE_F64) {
        uint64_t x = phema_load_u64(a + 8 * i), y = phema_load_u64(b + 8 * i);
        const uint64_t infinity = 0x7ff0000000000000, magnitude = INT64_MAX;
        return x == y || ((x & magnitude) > infinity && (y & magnitude) > infinity);
    }
    uint32_t x = phema_load_u32(a + 4 * i), y = phema_load_u32(b + 4 * i);
    return x == y || ((x & INT32_MAX) > 0x7f800000 && (y & INT32_MAX) > 0x7f800000);
}

struct arena {
    uint8_t *inputs[MAX_INPUTS]; /* MAX_ELEMS * 8 bytes and one, before an inaccessible page */
    uint8_t *sums, *wanted;      /* MAX_TARGETS rows of doubles, likewise */
    double weights[MAX_INPUTS * MAX_TARGETS];
};

#define INPUT_BYTES (MAX_ELEMS * 8 + 64)
#define SUMS_BYTES  (MAX_TARGETS * MAX_ELEMS * 8 + 64 * MAX_TARGETS)

static void make_arena(struct arena *arena)
{
    for (size_t k = 0; k < MAX_INPUTS; k++)
        arena->inputs[k] = support_guarded(NULL, INPUT_BYTES);
    arena->sums = support_guarded(NULL, SUMS_BYTES);
    arena->wanted = malloc(SUMS_BYTES);
    assert_non_null(arena->wanted);
}

struct shape {
    enum phema_dtype dtype;
    enum phema_accumulator accumulator;
    size_t n_elems, n_inputs, n_targets;
    size_t shift; /* bytes between the end of the data and the inaccessible page */
};

static void check_shape(struct arena *arena, const struct phema_backend *backend,
                        const struct shape *shape)
{
    const uint8_t *inputs[MAX_INPUTS];
    bool is_tame = random_u64() % 2;
    size_t input_bytes = shape->n_elems * phema_dtype_bits(shape->dtype) / 8;
    for (size_t k = 0; k < shape->n_inputs; k++) {
        uint8_t *start = arena->inputs[k] + INPUT_BYTES - shape->shift - input_bytes;
        support_fill_numbers(start, shape->dtype, shape->n_elems, !is_tame, &random_state);
        inputs[k] = start;
    }
    for (size_t i = 0; i < shape->n_inputs * shape->n_targets; i++)
        arena->weights[i] = random_weight();
    size_t sum_bytes = shape->accumulator == PHEMA_ACCUMULATE_F64 ? 8 : 4;
    size_t row_bytes = (shape->n_elems * sum_bytes + 63) / 64 * 64;
    size_t all_bytes = row_bytes * shape->n_targets;
    uint8_t *sums = arena->sums + SUMS_BYTES - all_bytes;
    memset(sums, CANARY, all_bytes);
    for (size_t m = 0; m < shape->n_targets; m++)
        memset(sums + m * row_bytes, 0, shape->n_elems * sum_bytes);
    memcpy(arena->wanted, sums, all_bytes);

    struct phema_tile tile = {inputs,           arena->weights, shape->n_inputs,
                              shape->n_targets, shape->n_elems, shape->dtype};
    phema_accumulate(phema_backend_named("ref"), shape->accumulator, arena->wanted, row_bytes,
                     &tile);
    phema_accumulate(backend, shape->accumulator, sums, row_bytes, &tile);
    for (size_t m = 0; m < shape->n_targets; m++) {
        const uint8_t *row = sums + m * row_bytes, *wanted = arena->wanted + m * row_bytes;
        for (size_t i = 0; i < shape->n_elems; i++) {
            if (!is_same_sum(shape->accumulator, row, wanted, i))
                fail_msg("%s, %s, accumulator %d, %zu elements, %zu inputs, %zu targets: sum %zu "
                         "of target %zu differs",
                         phema_backend_name(backend), phema_dtype_name(shape->dtype),
                         (int)shape->accumulator, shape->n_elems, shape->n_inputs, shape->n_targets,
                         i, m);
        }
        size_t used = shape->n_elems * sum_bytes;
        assert_memory_equal(row + used, wanted + used, row_bytes - used);
    }
}

static void sums_equal_the_reference(void **state)
{
    (void)state;
    struct arena arena;
    make_arena(&arena);
    for (size_t b = 0; b < ARRAY_LEN(simd_names); b++) {
        const struct phema_backend *backend = phema_backend_named(simd_names[b]);
        for (size_t d = 0; backend && d < ARRAY_LEN(dtypes); d++) {
            size_t unit = dtypes[d] == PHEMA_F4 ? 2 : 1;
            for (size_t i = 0; i <= 262; i += SUPPORT_STRIDE) {
                struct shape shape = {.dtype = dtypes[d],
                                      .accumulator = (enum phema_accumulator)(i % 2),
                                      .n_elems = i / 2 * unit,
                                      .n_inputs = 1 + random_u64() % MAX_INPUTS,
                                      .n_targets = 1 + random_u64() % MAX_TARGETS,
                                      .shift = random_u64() % 8};
                check_shape(&arena, backend, &shape);
            }
        }
    }
    free(arena.wanted);
}

/* Targets go to the registers in sets of up to 13 and by 39 at most, inputs by 8 or 32. Data end at
 * the inaccessible page, or begin at an odd address. */
static void any_number_of_targets_and_inputs_gives_the_same_bits(void **state)
{
    (void)state;
    struct arena arena;
    make_arena(&arena);
    for (size_t b = 0; b < ARRAY_LEN(simd_names); b++) {
        const struct phema_backend *backend = phema_backend_named(simd_names[b]);
        for (size_t d = 0; backend && d < ARRAY_LEN(dtypes); d++) {
            for (size_t i = 0; i < 2 * MAX_TARGETS; i += SUPPORT_STRIDE) {
                struct shape shape = {.dtype = dtypes[d],
                                      .accumulator = (enum phema_accumulator)(i % 2),
                                      .n_elems = 64 * (random_u64() % 4) + 2 * (random_u64() % 32),
                                      .n_inputs = 1 + (i + i / MAX_INPUTS) % MAX_INPUTS,
                                      .n_targets = 1 + i / 2,
                                      .shift = i / 2 % 2};
                check_shape(&arena, backend, &shape);
            }
        }
    }
    free(arena.wanted);
}

/* Three limits cut elements into blocks. The sums of a block have 512 KiB, with at least 1024
 * elements. The inputs of a group have 256 KiB (several sets), and the panel of a table 24 KiB. */
static void blocks_of_elements_are_contiguous(void **state)
{
    (void)state;
    static const struct {
        enum phema_dtype dtype;
        size_t n_inputs, n_targets, block_elems; /* in float64 */
    } cuts[] = {{PHEMA_F16, 3, 2, 32768},  {PHEMA_F16, 9, 33, 1984},   {PHEMA_F32, 2, 81, 1024},
                {PHEMA_F16, 32, 14, 4096}, {PHEMA_F64, 32, 14, 1024},  {PHEMA_F32, 20, 25, 2560},
                {PHEMA_BF16, 40, 7, 6528}, {PHEMA_F8_E4M3, 32, 3, 64}, {PHEMA_F4, 8, 14, 384},
                {PHEMA_F8_E5M2, 7, 1, 384}};
    struct arena arena;
    make_arena(&arena);
    for (size_t b = 0; b < ARRAY_LEN(simd_names); b++) {
        const struct phema_backend *backend = phema_backend_named(simd_names[b]);
        for (size_t i = 0; backend && i < ARRAY_LEN(cuts) * 6; i += SUPPORT_STRIDE) {
            size_t cut = i / 6, off = i % 3;
            struct shape shape = {.dtype = cuts[cut].dtype,
                                  .accumulator = (enum phema_accumulator)(i / 3 % 2),
                                  .n_inputs = cuts[cut].n_inputs,
                                  .n_targets = cuts[cut].n_targets,
                                  .n_elems = cuts[cut].block_elems * (1 + i / 3 % 2) + 2 * off - 2,
                                  .shift = off};
            if (shape.n_elems > MAX_ELEMS)
                shape.n_elems = MAX_ELEMS;
            check_shape(&arena, backend, &shape);
        }
    }
    free(arena.wanted);
}

/* Tiles of other sizes, and targets one by one, give the same bits. */
static void sums_do_not_depend_on_the_tiling(void **state)
{
    (void)state;
    static uint8_t data[11][6000];
    static _Alignas(64) float whole[6][3008], parts[6][3008];
    double weights[66], column[11];
    const uint8_t *inputs[11], *later[11];
    const size_t n_elems = 3000, n_inputs = 11, n_targets = 6, n_cut = 1027;
    for (size_t k = 0; k < n_inputs; k++) {
        support_fill_numbers(data[k], PHEMA_F16, n_elems, false, &random_state);
        inputs[k] = data[k];
        later[k] = data[k] + 2 * n_cut;
    }
    for (size_t i = 0; i < ARRAY_LEN(weights); i++)
        weights[i] = random_weight();

    const struct phema_backend *backend = phema_backend_for_cpu();
    struct phema_tile tile = {inputs, weights, n_inputs, n_targets, n_elems, PHEMA_F16};
    phema_accumulate(backend, PHEMA_ACCUMULATE_F32, whole, sizeof(whole[0]), &tile);
    for (size_t m = 0; m < n_targets; m++) {
        for (size_t k = 0; k < n_inputs; k++)
            column[k] = weights[k * n_targets + m];
        struct phema_tile front = {inputs, column, n_inputs, 1, n_cut, PHEMA_F16};
        phema_accumulate(backend, PHEMA_ACCUMULATE_F32, parts[m], sizeof(parts[0]), &front);
        struct phema_tile back = {later, column, n_inputs, 1, n_elems - n_cut, PHEMA_F16};
        phema_accumulate(backend, PHEMA_ACCUMULATE_F32, parts[m] + n_cut, sizeof(parts[0]), &back);
    }
    assert_memory_equal(whole, parts, sizeof(whole));
}

/* Numbers near everything relevant to the dtype: its exponents, ties, limits, and special
 * values. */
static double random_sum(enum phema_dtype dtype)
{
    static const double specials[] = {0.0,        -0.0,       65504,     65519.999, 65520, -65520,
                                      0x1p-149,   -0x1p-150,  0x1p-1074, 0x1p-133,  448,   464,
                                      464.0001,   0x1p-126,   0x1p-25,   57344,     61440, 240,
                                      0x1.fep127, 0x1.ffp127, 6,         7,         3e38,  -1e300};
    uint64_t bits = random_u64();
    switch (bits % 8) {
    case 0:
        return specials[random_u64() % ARRAY_LEN(specials)];
    case 1:
        return bits & 8 ? (double)NAN : bits & 16 ? -(double)INFINITY : (double)INFINITY;
    case 2:
        return random_weight();
    case 3: /* few bits: ties are frequent */
        return ldexp((double)(int)(random_u64() % 8192) - 4096, (int)(random_u64() % 40) - 30);
    case 4: /* subnormals of BF16 and F32 */
        return ldexp(random_weight(), -120 - (int)(random_u64() % 40));
    default:
        return ldexp(random_weight(), dtype == PHEMA_F64 ? (int)(random_u64() % 2000) - 1000
                                                         : (int)(random_u64() % 44) - 26);
    }
}

static void check_narrow(const struct phema_backend *backend, enum phema_dtype dtype,
                         enum phema_accumulator accumulator, size_t n, bool is_tame)
{
    _Alignas(64) double sums[256];
    float *floats = (void *)sums;
    for (size_t i = 0; i < n; i++) {
        double sum = is_tame ? random_weight() : random_sum(dtype);
        if (accumulator == PHEMA_ACCUMULATE_F64)
            sums[i] = sum;
        else
            floats[i] = (float)sum;
    }
    uint8_t got[2048], wanted[2048];
    memset(got, CANARY, sizeof(got));
    memset(wanted, CANARY, sizeof(wanted));
    struct phema_narrow_counts got_counts = {1, 2, 3}, wanted_counts = {1, 2, 3};
    enum phema_overflow overflow = (enum phema_overflow)(random_u64() % 2);
    phema_narrow(backend, got + 1, dtype, accumulator, sums, n, overflow, &got_counts);
    phema_narrow(phema_backend_named("ref"), wanted + 1, dtype, accumulator, sums, n, overflow,
                 &wanted_counts);
    assert_memory_equal(got, wanted, sizeof(got));
    assert_memory_equal(&got_counts, &wanted_counts, sizeof(got_counts));
}

static void rounding_equals_the_reference(void **state)
{
    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(simd_names); b++) {
        const struct phema_backend *backend = phema_backend_named(simd_names[b]);
        for (size_t d = 0; backend && d < ARRAY_LEN(dtypes); d++) {
            for (size_t i = 0; i < 3000; i++) {
                size_t n = i % 200 / 2 * 2;
                check_narrow(backend, dtypes[d], (enum phema_accumulator)(i % 2), n, i % 3 == 0);
            }
        }
    }
}

/* One number of each kind in otherwise plain data: the vector path alone sees the others. */
static void every_lane_rounds_equally(void **state)
{
    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(simd_names); b++) {
        const struct phema_backend *backend = phema_backend_named(simd_names[b]);
        for (uint32_t code = 0; backend && code < 0x10000; code += 64) {
            _Alignas(64) double sums[64];
            uint8_t halves[128], got[128], wanted[128];
            struct phema_narrow_counts counts = {0};
            for (uint32_t i = 0; i < 64; i++) {
                halves[(size_t)2 * i] = (uint8_t)(code + i);
                halves[(size_t)2 * i + 1] = (uint8_t)((code + i) >> 8);
            }
            for (int dtype = PHEMA_F16; dtype <= PHEMA_BF16; dtype++) {
                phema_widen(sums, (enum phema_dtype)dtype, halves, 64);
                for (size_t i = 0; i < 64; i++)
                    sums[i] *= 1 + 0x1p-9 + 0x1p-40;
                phema_narrow(backend, got, (enum phema_dtype)dtype, PHEMA_ACCUMULATE_F64, sums, 64,
                             PHEMA_OVERFLOW_INF, &counts);
                phema_narrow(phema_backend_named("ref"), wanted, (enum phema_dtype)dtype,
                             PHEMA_ACCUMULATE_F64, sums, 64, PHEMA_OVERFLOW_INF, &counts);
                assert_memory_equal(got, wanted, sizeof(got));
            }
        }
    }
}

static void backends_have_their_names(void **state)
{
    (void)state;
    assert_string_equal(phema_backend_name(phema_backend_named("ref")), "ref");
    assert_null(phema_backend_named("sse9"));
    assert_ptr_equal(phema_backend_named(phema_backend_name(phema_backend_for_cpu())),
                     phema_backend_for_cpu());
    assert_int_equal(setenv("PHEMA_CPU", "ref", 1), 0);
    assert_string_equal(phema_backend_name(phema_backend_for_cpu()), "ref");
    assert_int_equal(unsetenv("PHEMA_CPU"), 0);
}

static void only_settled_floats_are_accumulated(void **state)
{
    (void)state;
    assert_true(phema_can_accumulate(PHEMA_F16));
    assert_true(phema_can_accumulate(PHEMA_F4));
    assert_false(phema_can_accumulate(PHEMA_F6_E2M3));
    assert_false(phema_can_accumulate(PHEMA_F6_E3M2));
    assert_false(phema_can_accumulate(PHEMA_I64));
    assert_false(phema_can_accumulate(PHEMA_C64));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_equal_the_reference),
    cmocka_unit_test(any_number_of_targets_and_inputs_gives_the_same_bits),
    cmocka_unit_test(blocks_of_elements_are_contiguous),
    cmocka_unit_test(sums_do_not_depend_on_the_tiling),
    cmocka_unit_test(rounding_equals_the_reference),
    cmocka_unit_test(every_lane_rounds_equally),
    cmocka_unit_test(backends_have_their_names),
    cmocka_unit_test(only_settled_floats_are_accumulated),
};
TEST_GROUP(tests)
