// SPDX-License-Identifier: Apache-2.0
/* test_sums.c - sums of a device, compared with the CPU's. The test programs load a plug-in that
 * needs no device; scripts/test-gpu runs the same program with the real plug-in. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/accumulate.h"
#include "phema/gpu.h"
#include "support.h"

#define MAX_INPUTS ((size_t)70) /* more than have their weights in shared memory at once */
#define MAX_ROWS   ((size_t)64)
#define MAX_ELEMS  ((size_t)20000)
#define ROW_BYTES  ((uint64_t)160256) /* 20000 doubles, aligned */
#define N_SLOTS    3
#define SLOT_BYTES ((uint64_t)163840)
#define MAX_BLOCKS ((uint64_t)400)

static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F32, PHEMA_F64};

static uint64_t random_state = 1;

static uint64_t random_u64(void)
{
    return support_random(&random_state);
}

struct bench {
    struct phema_gpus *gpus;
    struct phema_lane lane;
    uint8_t *inputs[MAX_INPUTS];
    uint32_t places[MAX_INPUTS];
    double *weights; /* [MAX_INPUTS x MAX_ROWS] */
    double *sums;    /* [MAX_ROWS x MAX_ELEMS], or floats */
    uint8_t *wanted;
    struct phema_cuda_block blocks[MAX_BLOCKS];
    size_t n_blocks;
};

struct shape {
    enum phema_dtype input, output;
    enum phema_accumulator accumulator;
    size_t n_elems, n_inputs, n_rows;
    size_t shift; /* bytes from the start of a slot */
    bool is_tame, saturates, uses_blas;
};

static int open_bench(void **state)
{
    static struct bench bench;
    struct phema_error err = {0};
    struct phema_gpu_options request = {.kind = PHEMA_DEVICE_CUDA};
    struct phema_cuda_layout layout = {.n_lanes = 2,
                                       .n_slots = N_SLOTS,
                                       .slot_bytes = SLOT_BYTES,
                                       .n_inputs = MAX_INPUTS,
                                       .input_bytes = ROW_BYTES,
                                       .n_rows = MAX_ROWS,
                                       .row_bytes = ROW_BYTES,
                                       .n_blocks = MAX_BLOCKS,
                                       .panel_inputs = 32,
                                       .sum_bytes = ROW_BYTES};
    assert_ok(phema_gpus_open(&bench.gpus, &request, &err), &err);
    assert_ok(phema_gpus_start(bench.gpus, &layout, &err), &err);
    bench.lane = phema_gpus_lane(bench.gpus, 1); /* not the first: offsets count */
    for (size_t k = 0; k < MAX_INPUTS; k++)
        bench.inputs[k] = malloc(ROW_BYTES);
    bench.weights = calloc(MAX_INPUTS * MAX_ROWS, sizeof(double));
    bench.sums = aligned_alloc(64, MAX_ROWS * ROW_BYTES);
    bench.wanted = malloc(ROW_BYTES);
    *state = &bench;
    return 0;
}

static int close_bench(void **state)
{
    struct bench *bench = *state;
    phema_gpus_close(bench->gpus);
    for (size_t k = 0; k < MAX_INPUTS; k++)
        free(bench->inputs[k]);
    free(bench->weights);
    free(bench->sums);
    free(bench->wanted);
    return 0;
}

/* Blocks of random sizes up to the largest, without gaps, as in tiles of small tensors. */
static void make_blocks(struct bench *bench, size_t n_elems)
{
    bench->n_blocks = 0;
    for (size_t at = 0; at < n_elems;) {
        size_t left = n_elems - at, n = 1 + random_u64() % PHEMA_CUDA_MAX_BLOCK;
        bool is_last = bench->n_blocks + n_elems / PHEMA_CUDA_MAX_BLOCK + 2 > MAX_BLOCKS;
        n = is_last ? PHEMA_CUDA_MAX_BLOCK : n;
        n = n < left ? n : left;
        bench->blocks[bench->n_blocks++] = (struct phema_cuda_block){(uint32_t)at, (uint32_t)n};
        at += n;
    }
}

static void make_inputs(struct bench *bench, const struct shape *shape)
{
    for (size_t k = 0; k < shape->n_inputs; k++) {
        support_fill_numbers(bench->inputs[k], shape->input, shape->n_elems, !shape->is_tame,
                             &random_state);
        bench->places[k] = (uint32_t)k;
    }
    for (size_t k = shape->n_inputs; k > 1; k--) { /* in any order */
        size_t other = random_u64() % k;
        uint32_t place = bench->places[k - 1];
        bench->places[k - 1] = bench->places[other];
        bench->places[other] = place;
    }
    for (size_t i = 0; i < shape->n_inputs * shape->n_rows; i++)
        bench->weights[i] = (double)(int64_t)random_u64() * 0x1p-63;
    make_blocks(bench, shape->n_elems);
}

static void sum_on_cpu(struct bench *bench, const struct shape *shape)
{
    const uint8_t *inputs[MAX_INPUTS];
    for (size_t k = 0; k < shape->n_inputs; k++)
        inputs[k] = bench->inputs[k];
    memset(bench->sums, 0, MAX_ROWS * ROW_BYTES);
    struct phema_tile tile = {inputs,        bench->weights, shape->n_inputs,
                              shape->n_rows, shape->n_elems, shape->input};
    phema_accumulate(phema_backend_for_cpu(), shape->accumulator, bench->sums, ROW_BYTES, &tile);
}

static void run_job(struct bench *bench, const struct shape *shape)
{
    struct phema_error err = {0};
    uint8_t *slots = phema_lane_slots(&bench->lane);
    size_t n_bytes = shape->n_elems * phema_dtype_bits(shape->input) / 8;
    for (size_t k = 0; k < shape->n_inputs; k++) {
        uint64_t slot = k % N_SLOTS;
        uint8_t *from = slots + slot * SLOT_BYTES + shape->shift;
        assert_ok(phema_lane_wait(&bench->lane, slot, &err), &err);
        memcpy(from, bench->inputs[k], n_bytes);
        assert_ok(phema_lane_feed(&bench->lane, slot, from, n_bytes, bench->places[k], &err), &err);
    }
    struct phema_cuda_job job = {.input = phema_gpu_dtype(shape->input),
                                 .output = phema_gpu_dtype(shape->output),
                                 .is_f64 = shape->accumulator == PHEMA_ACCUMULATE_F64,
                                 .saturates = shape->saturates,
                                 .uses_blas = shape->uses_blas,
                                 .inputs = bench->places,
                                 .weights = bench->weights,
                                 .stride = shape->n_rows,
                                 .n_inputs = shape->n_inputs,
                                 .n_rows = shape->n_rows,
                                 .blocks = bench->blocks,
                                 .n_blocks = bench->n_blocks,
                                 .n_numbers = shape->n_elems};
    assert_ok(phema_lane_average(&bench->lane, &job, &err), &err);
}

/* Row m, copied back from the device. */
static const uint8_t *fetch(struct bench *bench, const struct shape *shape, size_t m)
{
    struct phema_error err = {0};
    size_t n_bytes = shape->n_elems * phema_dtype_bits(shape->output) / 8;
    uint64_t slot = m % N_SLOTS;
    assert_ok(phema_lane_wait(&bench->lane, slot, &err), &err);
    assert_ok(phema_lane_fetch(&bench->lane, m, n_bytes, slot, &err), &err);
    assert_ok(phema_lane_wait(&bench->lane, slot, &err), &err);
    return phema_lane_slots(&bench->lane) + slot * SLOT_BYTES;
}

/* All rows and all counts, bit by bit. */
static void check_shape(struct bench *bench, const struct shape *shape)
{
    make_inputs(bench, shape);
    sum_on_cpu(bench, shape);
    run_job(bench, shape);
    size_t scalar = shape->accumulator == PHEMA_ACCUMULATE_F64 ? 8 : 4;
    for (size_t m = 0; m < shape->n_rows; m++) {
        const uint8_t *row = fetch(bench, shape, m);
        const struct phema_cuda_counts *found =
            phema_lane_counts(&bench->lane) + m * bench->n_blocks;
        const uint8_t *sums = (const uint8_t *)bench->sums + m * ROW_BYTES;
        for (size_t b = 0; b < bench->n_blocks; b++) {
            size_t first = bench->blocks[b].first, n = bench->blocks[b].n;
            struct phema_narrow_counts counts = {0, 0, 0};
            phema_narrow(phema_backend_for_cpu(), bench->wanted, shape->output, shape->accumulator,
                         sums + first * scalar, n,
                         shape->saturates ? PHEMA_OVERFLOW_SATURATE : PHEMA_OVERFLOW_INF, &counts);
            size_t width = phema_dtype_bits(shape->output) / 8;
            if (memcmp(bench->wanted, row + first * width, n * width) != 0)
                fail_msg("%s to %s, accumulator %d, %zu elements, %zu inputs, %zu targets: block "
                         "%zu of target %zu differs",
                         phema_dtype_name(shape->input), phema_dtype_name(shape->output),
                         (int)shape->accumulator, shape->n_elems, shape->n_inputs, shape->n_rows, b,
                         m);
            assert_int_equal(found[b].n_overflow, counts.n_overflow);
            assert_int_equal(found[b].n_nan, counts.n_nan);
            assert_int_equal(found[b].n_inf, counts.n_inf);
        }
    }
}

static const size_t row_counts[] = {1, 2, 7, 8, 9, 25, 64};

/* Every dtype to every dtype, random bits and ordinary numbers, odd sizes. */
static void sums_equal_those_of_the_cpu(void **state)
{
    for (size_t i = 0; i < 16 * 2 * ARRAY_LEN(row_counts); i += SUPPORT_STRIDE) {
        struct shape shape = {.input = dtypes[i % 4],
                              .output = dtypes[i / 4 % 4],
                              .accumulator = (enum phema_accumulator)(i / 16 % 2),
                              .n_rows = row_counts[i / 32],
                              .n_inputs = 1 + random_u64() % MAX_INPUTS,
                              .n_elems = 1 + random_u64() % 3000,
                              .shift = random_u64() % 9,
                              .is_tame = random_u64() % 2,
                              .saturates = random_u64() % 2};
        if (shape.input == PHEMA_F64)
            shape.accumulator = PHEMA_ACCUMULATE_F64;
        check_shape(*state, &shape);
    }
}

static void whole_tiles_and_single_elements_are_summed_alike(void **state)
{
    static const size_t sizes[] = {1, 2, 1023, 1024, 1025, 2048, 4097, 19999, 20000};
    for (size_t i = 0; i < ARRAY_LEN(sizes) * 4; i += SUPPORT_STRIDE) {
        struct shape shape = {.input = dtypes[i % 4],
                              .output = dtypes[i % 4],
                              .n_rows = 1 + i % 3 * 4,
                              .n_inputs = 1 + i % 5,
                              .n_elems = sizes[i / 4],
                              .shift = i % 2,
                              .is_tame = i % 3 > 0};
        check_shape(*state, &shape);
    }
}

/* Repeating the same job gives the same bytes. */
static void repeated_runs_are_equal(void **state)
{
    struct bench *bench = *state;
    struct shape shape = {.input = PHEMA_BF16,
                          .output = PHEMA_F32,
                          .accumulator = PHEMA_ACCUMULATE_F32,
                          .n_rows = 25,
                          .n_inputs = 40,
                          .n_elems = 5000,
                          .is_tame = true};
    uint8_t *before = malloc((size_t)25 * 5000 * 4);
    assert_non_null(before);
    for (int uses_blas = 0; uses_blas < 2; uses_blas++) {
        shape.uses_blas = uses_blas;
        make_inputs(bench, &shape);
        for (int round = 0; round < 3; round++) {
            run_job(bench, &shape);
            for (size_t m = 0; m < shape.n_rows; m++) {
                const uint8_t *row = fetch(bench, &shape, m);
                if (round)
                    assert_memory_equal(before + m * 20000, row, 20000);
                memcpy(before + m * 20000, row, 20000);
            }
        }
    }
    free(before);
}

/* cuBLAS sums in its own order. In any order a term of a sum of n products is rounded at most n
 * times, by at most u = half an epsilon. It is rounded once as a product, and n - 1 times in
 * additions. Each sum is within n u / (1 - n u) sum |w x| of the exact one. Two sums differ by at
 * most twice that. Both use the same weights, rounded to the type of the sums before. The result in
 * F64 is not rounded again. */
static void cublas_sums_are_within_the_bound(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < 4 * 2 * 3; i++) {
        struct shape shape = {.input = dtypes[i % 4],
                              .output = PHEMA_F64,
                              .accumulator = (enum phema_accumulator)(i / 4 % 2),
                              .n_rows = i / 8 == 0   ? 9
                                        : i / 8 == 1 ? 25
                                                     : 64,
                              .n_inputs = 1 + random_u64() % MAX_INPUTS,
                              .n_elems = 1 + random_u64() % 3000,
                              .is_tame = true,
                              .uses_blas = true};
        if (shape.input == PHEMA_F64)
            shape.accumulator = PHEMA_ACCUMULATE_F64;
        bool is_f64 = shape.accumulator == PHEMA_ACCUMULATE_F64;
        double unit = (is_f64 ? 0x1p-53 : 0x1p-24) * (double)shape.n_inputs;
        make_inputs(bench, &shape);
        sum_on_cpu(bench, &shape);
        run_job(bench, &shape);
        for (size_t m = 0; m < shape.n_rows; m++) {
            const uint8_t *row = fetch(bench, &shape, m);
            const uint8_t *sums = (const uint8_t *)bench->sums + m * ROW_BYTES;
            for (size_t e = 0; e < shape.n_elems; e++) {
                double got, wanted, size = 0;
                float single;
                memcpy(&got, row + 8 * e, sizeof(got));
                memcpy(&single, sums + 4 * e, sizeof(single));
                memcpy(&wanted, sums + 8 * (is_f64 ? e : 0), sizeof(wanted));
                wanted = is_f64 ? wanted : (double)single;
                for (size_t k = 0; k < shape.n_inputs; k++) {
                    double x;
                    uint64_t bytes = phema_dtype_bits(shape.input) / 8;
                    phema_widen(&x, shape.input, bench->inputs[k] + e * bytes, 1);
                    size += fabs(bench->weights[k * shape.n_rows + m] * x);
                }
                if (!(fabs(got - wanted) <= 2.01 * unit / (1 - unit) * size))
                    fail_msg("%s, accumulator %d: %a instead of %a of terms of size %a",
                             phema_dtype_name(shape.input), (int)shape.accumulator, got, wanted,
                             size);
            }
        }
    }
}

static void the_factor_reproduces_the_matrix(void **state)
{
    (void)state;
    enum { N = 300 };
    struct phema_error err = {0};
    double *matrix = calloc((size_t)N * N, sizeof(double));
    double *factor = calloc((size_t)N * N, sizeof(double));
    assert_non_null(matrix);
    assert_non_null(factor);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) /* correlations that fall with the distance */
            matrix[i * N + j] = exp2(-fabs((double)i - (double)j) / 16);
    memcpy(factor, matrix, (size_t)N * N * sizeof(double));
    assert_ok(phema_gpu_factorer()->factor(factor, N, &err), &err);
    double worst = 0; /* of L L^T - A: at most about N u for an A of diagonal 1 */
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = 0;
            for (size_t k = 0; k <= j; k++)
                sum += factor[i * N + k] * factor[j * N + k];
            worst = fmax(worst, fabs(sum - matrix[i * N + j]));
        }
    }
    assert_true(worst < N * 0x1p-52);
    memcpy(factor, matrix, (size_t)N * N * sizeof(double));
    factor[(size_t)7 * N + 7] = -1;
    assert_int_equal(phema_gpu_factorer()->factor(factor, N, &err), PHEMA_NO);
    free(matrix);
    free(factor);
}

static void memory_is_counted_and_freed(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_gpus *gpus = NULL;
    struct phema_gpu_options request = {.kind = PHEMA_DEVICE_CUDA, .memory_fraction = 0.5};
    struct phema_cuda_layout layout = {.n_lanes = 3,
                                       .n_slots = 2,
                                       .slot_bytes = 1 << 20,
                                       .n_inputs = 4,
                                       .input_bytes = 1 << 20,
                                       .n_rows = 8,
                                       .row_bytes = 1 << 20,
                                       .n_blocks = 100};
    assert_ok(phema_gpus_open(&gpus, &request, &err), &err);
    uint64_t limit = phema_gpus_limit(gpus);
    assert_true(limit > 0 && limit < UINT64_MAX);
    assert_int_equal(phema_gpus_usage(gpus).allocated_bytes, 0);
    assert_ok(phema_gpus_start(gpus, &layout, &err), &err);
    struct phema_gpu_usage usage = phema_gpus_usage(gpus);
    assert_int_equal(usage.allocated_bytes, 3 * phema_cuda_offsets(&layout).bytes);
    assert_true(usage.reserved_bytes >= usage.allocated_bytes);
    phema_gpus_stop(gpus);
    layout.n_inputs = (uint64_t)1 << 30; /* 3 PiB */
    assert_int_equal(phema_gpus_start(gpus, &layout, &err), PHEMA_NO);
    assert_int_equal(phema_gpus_usage(gpus).allocated_bytes, 0);
    layout.n_inputs = 4;
    assert_ok(phema_gpus_start(gpus, &layout, &err), &err); /* the failure left nothing behind */
    phema_gpus_close(gpus);
}

static void missing_devices_are_named(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_gpus *gpus = NULL;
    struct phema_gpu_options request = {.kind = PHEMA_DEVICE_CUDA, .n = 1, .indices = {999}};
    assert_fails(phema_gpus_open(&gpus, &request, &err), PHEMA_ERR_RESOURCE, &err,
                 "cuda:999: there is no such device");
    assert_null(gpus);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_equal_those_of_the_cpu),
    cmocka_unit_test(whole_tiles_and_single_elements_are_summed_alike),
    cmocka_unit_test(repeated_runs_are_equal),
    cmocka_unit_test(cublas_sums_are_within_the_bound),
    cmocka_unit_test(the_factor_reproduces_the_matrix),
    cmocka_unit_test(memory_is_counted_and_freed),
    cmocka_unit_test(missing_devices_are_named),
};
TEST_GROUP_WITH(tests, open_bench, close_bench)
