// SPDX-License-Identifier: Apache-2.0
/* test_ops.c - every operation of a device, for every dtype and many shapes, one line each with -v:
 * bits and counts equal those of the CPU. As test_sums.c it runs with host memory as the device,
 * with interpreted kernels, and with a real device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/accumulate.h"
#include "phema/gpu.h"
#include "support.h"

#define MAX_INPUTS ((size_t)200)
#define MAX_ROWS   ((size_t)64)
#define MAX_ELEMS  ((size_t)4100)
#define ROW_BYTES  ((uint64_t)33024) /* 4100 doubles, aligned */
#define SLOT_BYTES ((uint64_t)36864)
#define MAX_BLOCKS ((uint64_t)64)

static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F32, PHEMA_F64};

/* AVERAGE: our kernel. PRODUCT: inputs widened, summed by cuBLAS, rounded. */
enum op { AVERAGE, PRODUCT };
static const char *const op_names[] = {"average", "product"};

/* ANY: random bits. TAME: ordinary numbers. HARD: ties, subnormal numbers and numbers near the
 * largest of each dtype. EXACT: small integers, whose sums have no rounding in any order. */
enum numbers { ANY, TAME, HARD, EXACT };
static const char *const number_names[] = {"any bits", "tame", "hard", "exact"};

struct op_case {
    enum op op;
    enum numbers numbers;
    enum phema_dtype input, output;
    enum phema_accumulator accumulator;
    size_t n_rows, n_inputs, n_elems;
    size_t block_elems; /* 0: blocks of random sizes */
    bool saturates;
};

static struct {
    struct phema_gpus *gpus;
    struct phema_lane lane;
    uint8_t inputs[MAX_INPUTS][ROW_BYTES];
    uint32_t places[MAX_INPUTS];
    double weights[MAX_INPUTS * MAX_ROWS];
    _Alignas(64) uint8_t sums[MAX_ROWS * ROW_BYTES];
    struct phema_cuda_block blocks[MAX_BLOCKS];
    size_t n_blocks;
} bench;

static uint64_t random_state = 26;
static bool is_verbose; /* by PHEMA_VERBOSE in the environment */

static uint64_t random_u64(void)
{
    return support_random(&random_state);
}

static size_t dtype_bytes(enum phema_dtype dtype)
{
    return phema_dtype_bits(dtype) / 8;
}

static double hard_number(void)
{
    static const double edges[] = {65504,      65519.99,       65520,          0x1.fep127,
                                   0x1.ffp127, 0x1.fffffep127, 0x1.ffffffp127, 0x1p-25,
                                   0x1.8p-25,  0x1p-134,       0x1p-150,       0};
    uint64_t bits = random_u64();
    double sign = bits & 1 ? -1 : 1;
    switch (bits / 2 % 5) {
    case 0:
        return sign * edges[bits / 16 % ARRAY_LEN(edges)];
    case 1: /* few bits: ties are frequent */
        return sign * ldexp((double)(bits / 16 % 8192), (int)(bits >> 48) % 40 - 30);
    case 2: /* subnormal numbers of BF16 and F32 */
        return sign * ldexp((double)(bits / 16 % 4096), -150 + (int)(bits >> 48) % 30);
    case 3: /* subnormal numbers of F16 */
        return sign * ldexp((double)(bits / 16 % 4096), -36 + (int)(bits >> 48) % 20);
    default: /* half-way between two numbers of BF16 */
        return sign * ldexp((double)(bits / 16 % 256 * 2 + 1), (int)(bits >> 48) % 100 - 50);
    }
}

static void fill_input(uint8_t *out, const struct op_case *test)
{
    if (test->numbers == ANY || test->numbers == TAME) {
        support_fill_numbers(out, test->input, test->n_elems, test->numbers == ANY, &random_state);
        return;
    }
    for (size_t i = 0; i < test->n_elems; i++) {
        double number = test->numbers == HARD ? hard_number() : (double)(random_u64() % 31) - 15;
        struct phema_narrow_counts counts = {0, 0, 0};
        _Alignas(64) double numbers[1] = {number};
        phema_narrow(phema_backend_named("ref"), out + i * dtype_bytes(test->input), test->input,
                     PHEMA_ACCUMULATE_F64, numbers, 1, PHEMA_OVERFLOW_INF, &counts);
    }
}

/* HARD: the first input counts, the others change little, so that sums stay near the edges. */
static double weight_of(const struct op_case *test, size_t k)
{
    double random = (double)(int64_t)random_u64() * 0x1p-63;
    if (test->numbers == HARD)
        return k == 0 ? 1 : k % 3 ? 0 : ldexp(random, -30);
    return test->numbers == EXACT ? (double)(random_u64() % 9) / 8 - 0.5 : random;
}

static void make_case(const struct op_case *test)
{
    for (size_t k = 0; k < test->n_inputs; k++) {
        fill_input(bench.inputs[k], test);
        bench.places[k] =
            (uint32_t)((k * 7 + 3) % MAX_INPUTS); /* 7 and 200 have no common factor */
        for (size_t m = 0; m < test->n_rows; m++)
            bench.weights[k * test->n_rows + m] = weight_of(test, k);
    }
    bench.n_blocks = 0;
    for (size_t at = 0; at < test->n_elems;) {
        size_t left = test->n_elems - at, n = 1 + random_u64() % PHEMA_CUDA_MAX_BLOCK;
        n = bench.n_blocks + 3 > MAX_BLOCKS || random_u64() % 2 ? PHEMA_CUDA_MAX_BLOCK : n;
        n = test->block_elems ? test->block_elems : n;
        n = n < left ? n : left;
        bench.blocks[bench.n_blocks++] = (struct phema_cuda_block){(uint32_t)at, (uint32_t)n};
        at += n;
    }
}

static void sum_on_cpu(const struct op_case *test)
{
    const uint8_t *inputs[MAX_INPUTS];
    for (size_t k = 0; k < test->n_inputs; k++)
        inputs[k] = bench.inputs[k];
    memset(bench.sums, 0, sizeof(bench.sums));
    struct phema_tile tile = {inputs,       bench.weights, test->n_inputs,
                              test->n_rows, test->n_elems, test->input};
    phema_accumulate(phema_backend_for_cpu(), test->accumulator, (void *)bench.sums, ROW_BYTES,
                     &tile);
}

static PHEMA_FALLIBLE sum_on_device(const struct op_case *test, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    size_t bytes = test->n_elems * dtype_bytes(test->input);
    for (size_t k = 0; k < test->n_inputs && !status; k++) {
        uint8_t *slot = phema_lane_slots(&bench.lane) + k % 2 * SLOT_BYTES;
        status = phema_lane_wait(&bench.lane, k % 2, err);
        if (status)
            return status;
        memcpy(slot, bench.inputs[k], bytes);
        status = phema_lane_feed(&bench.lane, k % 2, slot, bytes, bench.places[k], err);
    }
    struct phema_cuda_job job = {.input = phema_gpu_dtype(test->input),
                                 .output = phema_gpu_dtype(test->output),
                                 .is_f64 = test->accumulator == PHEMA_ACCUMULATE_F64,
                                 .saturates = test->saturates,
                                 .uses_blas = test->op == PRODUCT,
                                 .inputs = bench.places,
                                 .weights = bench.weights,
                                 .stride = test->n_rows,
                                 .n_inputs = test->n_inputs,
                                 .n_rows = test->n_rows,
                                 .blocks = bench.blocks,
                                 .n_blocks = bench.n_blocks,
                                 .n_numbers = test->n_elems};
    return status ? status : phema_lane_average(&bench.lane, &job, err);
}

/* The same bits. Of a product zeros may differ in their sign, since cuBLAS need not begin its sums
 * with 0: seen with one input and one number on an H200. */
static bool is_same(const struct op_case *test, const uint8_t *a, const uint8_t *b)
{
    static const uint8_t zeros[8] = {0};
    size_t width = dtype_bytes(test->output);
    if (memcmp(a, b, width) == 0)
        return true;
    return test->op == PRODUCT && memcmp(a, zeros, width - 1) == 0 &&
           memcmp(b, zeros, width - 1) == 0 && (a[width - 1] & 0x7f) == 0 &&
           (b[width - 1] & 0x7f) == 0;
}

/* Fetches row m and compares it; the text of the first difference, or NULL. */
static const char *compare_row(const struct op_case *test, size_t m, struct phema_error *err)
{
    static uint8_t wanted[ROW_BYTES];
    size_t width = dtype_bytes(test->output);
    size_t scalar = test->accumulator == PHEMA_ACCUMULATE_F64 ? 8 : 4;
    const uint8_t *row = phema_lane_slots(&bench.lane);
    if (phema_lane_wait(&bench.lane, 0, err) ||
        phema_lane_fetch(&bench.lane, m, test->n_elems * width, 0, err) ||
        phema_lane_wait(&bench.lane, 0, err))
        return err->message;
    for (size_t b = 0; b < bench.n_blocks; b++) {
        size_t first = bench.blocks[b].first, n = bench.blocks[b].n;
        const struct phema_cuda_counts *found =
            &phema_lane_counts(&bench.lane)[m * bench.n_blocks + b];
        struct phema_narrow_counts counts = {0, 0, 0};
        phema_narrow(phema_backend_for_cpu(), wanted, test->output, test->accumulator,
                     bench.sums + m * ROW_BYTES + first * scalar, n,
                     test->saturates ? PHEMA_OVERFLOW_SATURATE : PHEMA_OVERFLOW_INF, &counts);
        for (size_t i = 0; i < n; i++)
            if (!is_same(test, wanted + i * width, row + (first + i) * width))
                return "other bits";
        if (found->n_overflow != counts.n_overflow || found->n_nan != counts.n_nan ||
            found->n_inf != counts.n_inf || found->unused)
            return "other counts";
    }
    return NULL;
}

/* False after a difference, which is printed. */
static bool run_case(const struct op_case *test)
{
    struct phema_error err = {0};
    make_case(test);
    sum_on_cpu(test);
    const char *problem = sum_on_device(test, &err) ? err.message : NULL;
    for (size_t m = 0; m < test->n_rows && !problem; m++)
        problem = compare_row(test, m, &err);
    if (is_verbose || problem)
        printf("%s  %-4s to %-4s  sums in %s  %2zu targets  %3zu inputs  %4zu numbers  %-8s  %-9s "
               "%s\n",
               op_names[test->op], phema_dtype_name(test->input), phema_dtype_name(test->output),
               test->accumulator == PHEMA_ACCUMULATE_F64 ? "F64" : "F32", test->n_rows,
               test->n_inputs, test->n_elems, number_names[test->numbers],
               test->saturates ? "saturates" : "", problem ? problem : "ok");
    return !problem;
}

static const struct {
    size_t n_rows, n_inputs, n_elems;
} shapes[] = {{1, 1, 1},     {1, 2, 255},  {8, 64, 257},  {9, 65, 1025}, {2, 200, 130},
              {25, 3, 2049}, {7, 5, 4097}, {1, 129, 700}, {64, 33, 97},  {1, 64, 1024}};

/* Each pair of dtypes, with each type of sums, meets each shape and kind of numbers; every other
 * shape saturates. */
static void run_dtypes(enum op op, enum numbers numbers, size_t max_rows, size_t max_inputs)
{
    size_t n_wrong = 0, n_cases = 0;
    for (size_t i = 0; i < 32 * ARRAY_LEN(shapes); i += SUPPORT_STRIDE) {
        struct op_case test = {.op = op,
                               .numbers = numbers,
                               .input = dtypes[i % 4],
                               .output = dtypes[i / 4 % 4],
                               .accumulator = (enum phema_accumulator)(i / 16 % 2),
                               .n_rows = shapes[i / 32].n_rows,
                               .n_inputs = shapes[i / 32].n_inputs,
                               .n_elems = shapes[i / 32].n_elems,
                               .saturates = (i / 32 + i / 4 + i) % 2};
        if (test.input == PHEMA_F64 && test.accumulator != PHEMA_ACCUMULATE_F64)
            continue; /* F64 is summed in F64 only */
        if (op == PRODUCT && test.n_rows <= PHEMA_CUDA_GROUP)
            test.n_rows += PHEMA_CUDA_GROUP;
        test.n_rows = test.n_rows < max_rows ? test.n_rows : max_rows;
        test.n_inputs = test.n_inputs < max_inputs ? test.n_inputs : max_inputs;
        n_wrong += !run_case(&test);
        n_cases++;
    }
    if (n_wrong)
        fail_msg("%zu of %zu cases differ from the CPU", n_wrong, n_cases);
}

static void averages_of_any_bits(void **state)
{
    (void)state;
    run_dtypes(AVERAGE, ANY, MAX_ROWS, MAX_INPUTS);
}

static void averages_of_ordinary_numbers(void **state)
{
    (void)state;
    run_dtypes(AVERAGE, TAME, MAX_ROWS, MAX_INPUTS);
}

static void averages_at_the_edges_of_rounding(void **state)
{
    (void)state;
    run_dtypes(AVERAGE, HARD, MAX_ROWS, MAX_INPUTS);
}

/* With one input, or where no sum is rounded, cuBLAS's order does not matter. */
static void products_without_rounding_have_the_same_bits(void **state)
{
    (void)state;
    run_dtypes(PRODUCT, EXACT, MAX_ROWS, MAX_INPUTS);
    run_dtypes(PRODUCT, HARD, MAX_ROWS, 1);
}

static const struct phema_cuda_layout usual_layout = {.n_lanes = 2,
                                                      .n_slots = 2,
                                                      .slot_bytes = SLOT_BYTES,
                                                      .n_inputs = MAX_INPUTS,
                                                      .input_bytes = ROW_BYTES,
                                                      .n_rows = MAX_ROWS,
                                                      .row_bytes = ROW_BYTES,
                                                      .n_blocks = MAX_BLOCKS,
                                                      .panel_inputs = 32,
                                                      .sum_bytes = ROW_BYTES};

static PHEMA_FALLIBLE start(const struct phema_cuda_layout *layout, struct phema_error *err)
{
    phema_gpus_stop(bench.gpus);
    enum phema_status status = phema_gpus_start(bench.gpus, layout, err);
    bench.lane = phema_gpus_lane(bench.gpus, 1); /* not the first: offsets count */
    return status;
}

/* Memory without a byte to spare: rows and counts fill it to the end, so that a write behind them
 * is outside of it or changes weights. */
static void a_full_lane_is_not_exceeded(void **state)
{
    (void)state;
    enum { N_ROWS = 25, N_INPUTS = 3, N_ELEMS = 2048, BLOCK = 64 };
    struct phema_error err = {0};
    struct phema_cuda_layout layout = usual_layout;
    layout.n_inputs = MAX_INPUTS;
    layout.input_bytes = layout.row_bytes = (uint64_t)N_ELEMS * sizeof(double);
    layout.n_rows = N_ROWS;
    layout.n_blocks = N_ELEMS / BLOCK;
    layout.panel_inputs = layout.sum_bytes = 0;
    assert_ok(start(&layout, &err), &err);
    for (size_t i = 0; i < 16; i++) {
        struct op_case test = {.numbers = ANY,
                               .input = dtypes[i % 4],
                               .output = dtypes[i / 4],
                               .n_rows = N_ROWS,
                               .n_inputs = N_INPUTS,
                               .n_elems = N_ELEMS,
                               .block_elems = BLOCK};
        assert_true(run_case(&test));
    }
    assert_ok(start(&usual_layout, &err), &err);
}

static int open_bench(void **state)
{
    (void)state;
    is_verbose = getenv("PHEMA_VERBOSE") != NULL;
    struct phema_error err = {0};
    struct phema_gpu_options request = {.kind = PHEMA_DEVICE_CUDA};
    if (!phema_gpus_open(&bench.gpus, &request, &err) && !start(&usual_layout, &err))
        return 0;
    printf("%s\n", err.message);
    return 1;
}

static int close_bench(void **state)
{
    (void)state;
    phema_gpus_close(bench.gpus);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(averages_of_any_bits),
    cmocka_unit_test(averages_of_ordinary_numbers),
    cmocka_unit_test(averages_at_the_edges_of_rounding),
    cmocka_unit_test(products_without_rounding_have_the_same_bits),
    cmocka_unit_test(a_full_lane_is_not_exceeded),
};
TEST_GROUP_WITH(tests, open_bench, close_bench)
