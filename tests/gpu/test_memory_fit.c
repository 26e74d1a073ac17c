// SPDX-License-Identifier: Apache-2.0
/* test_memory_fit.c - device memory of a run: bounds that follow from the layout, for any
 * demand. */
#include "phema/gpu.h"

#include <string.h>

#include "support.h"

#define GIB ((uint64_t)1 << 30)

static struct phema_gpu_demand demand_of(enum phema_dtype dtype, uint64_t n_inputs, uint64_t n_rows)
{
    struct phema_gpu_demand demand = {.n_inputs = n_inputs,
                                      .n_rows = n_rows,
                                      .numbers_per_elem = 1,
                                      .block_elems = 1024,
                                      .n_more_blocks = 256,
                                      .n_slots = 4,
                                      .max_tile_elems = PHEMA_GPU_TILE_ELEMS,
                                      .n_threads = 16,
                                      .n_gpus = 1,
                                      .is_f64 = true};
    demand.n_in[dtype] = demand.n_out[dtype] = (uint64_t)1 << 32;
    demand.n_through[dtype] = (uint64_t)1 << 32;
    return demand;
}

static void with_enough_memory_tiles_are_as_large_as_useful(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_gpu_fit fit;
    struct phema_gpu_demand demand = demand_of(PHEMA_F16, 32, 64);
    assert_ok(phema_gpu_fit(&fit, &demand, 80 * GIB, &err), &err);
    assert_int_equal(fit.tile_elems, 512 << 10); /* 1 MiB of float16 */
    assert_int_equal(fit.layout.slot_bytes, 1 << 20);
    assert_int_equal(fit.layout.input_bytes, 1 << 20);
    assert_int_equal(fit.layout.n_lanes, 16);
    assert_int_equal(fit.layout.n_rows, 64);
    assert_int_equal(fit.n_tile_passes, 1);
    /* 16 lanes of 32 inputs and 64 rows, and a little */
    assert_true(fit.gpu_bytes >= 16 * (uint64_t)96 << 20);
    assert_true(fit.gpu_bytes < 16 * (uint64_t)98 << 20);
    /* 4 slots a lane, and a little */
    uint64_t host_bytes = fit.layout.n_lanes * phema_cuda_host_bytes(&fit.layout);
    assert_true(host_bytes >= 16 * (uint64_t)4 << 20);
    assert_true(host_bytes < 16 * (uint64_t)5 << 20);
}

/* First fewer targets at a time, which costs nothing, then smaller tiles and fewer threads. */
static void tight_limits_are_kept_to_the_byte(void **state)
{
    (void)state;
    uint64_t tile_before = UINT64_MAX, bytes_before = UINT64_MAX;
    bool has_failed = false;
    struct phema_gpu_demand demand = demand_of(PHEMA_F32, 64, 200);
    for (uint64_t limit = 16 * GIB; limit >= 1 << 16; limit = limit / 4 * 3) {
        struct phema_error err = {0};
        struct phema_gpu_fit fit;
        enum phema_status status = phema_gpu_fit(&fit, &demand, limit, &err);
        if (status) {
            assert_int_equal(status, PHEMA_ERR_RESOURCE);
            assert_non_null(strstr(err.message, "64 snapshots"));
            has_failed = true;
            continue;
        }
        assert_false(has_failed); /* if a smaller limit is enough, a larger one is too */
        assert_true(fit.gpu_bytes <= limit);
        assert_int_equal(fit.gpu_bytes, fit.layout.n_lanes * phema_cuda_offsets(&fit.layout).bytes);
        assert_true(fit.tile_elems <= tile_before && fit.gpu_bytes <= bytes_before);
        assert_true(fit.tile_elems >= PHEMA_GPU_LEAST_TILE_ELEMS);
        assert_true(fit.layout.n_rows >= PHEMA_CUDA_GROUP);
        assert_true(fit.tile_elems >= 128 << 10 || fit.layout.n_rows == PHEMA_CUDA_GROUP);
        assert_true(fit.n_tile_passes * fit.layout.n_rows >= 200);
        assert_true(fit.n_threads >= 1 && fit.layout.n_lanes == fit.n_threads);
        tile_before = fit.tile_elems;
        bytes_before = fit.gpu_bytes;
    }
    assert_true(has_failed);
}

static void the_message_names_an_amount_that_is_enough(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_gpu_fit fit;
    struct phema_gpu_demand demand = demand_of(PHEMA_F64, 8192, 8);
    assert_fails(phema_gpu_fit(&fit, &demand, GIB / 8, &err), PHEMA_ERR_RESOURCE, &err,
                 "at least 257 MiB are needed");
    assert_ok(phema_gpu_fit(&fit, &demand, (uint64_t)257 << 20, &err), &err);
    assert_int_equal(fit.n_threads, 1);
    assert_int_equal(fit.tile_elems, PHEMA_GPU_LEAST_TILE_ELEMS);
}

/* A dtype with few elements makes tiles neither larger nor smaller. */
static void rare_dtypes_cost_what_they_have(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_gpu_fit plain, mixed;
    struct phema_gpu_demand demand = demand_of(PHEMA_F16, 16, 1);
    assert_ok(phema_gpu_fit(&plain, &demand, GIB, &err), &err);
    demand.n_in[PHEMA_F64] = demand.n_out[PHEMA_F64] = demand.n_through[PHEMA_F64] = 10;
    assert_ok(phema_gpu_fit(&mixed, &demand, GIB, &err), &err);
    assert_int_equal(plain.gpu_bytes, mixed.gpu_bytes);
    assert_int_equal(plain.tile_elems, mixed.tile_elems);
}

static void devices_share_the_threads(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_gpu_fit fit;
    struct phema_gpu_demand demand = demand_of(PHEMA_BF16, 8, 2);
    demand.n_gpus = 3;
    assert_ok(phema_gpu_fit(&fit, &demand, 8 * GIB, &err), &err);
    assert_int_equal(fit.layout.n_lanes, 6); /* of 16 threads: 6, 5 and 5 */
    assert_int_equal(fit.n_threads, 16);
}

static void cublas_needs_memory_for_sums_and_panels(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_gpu_fit plain, blas;
    struct phema_gpu_demand demand = demand_of(PHEMA_F16, 40, 25);
    assert_ok(phema_gpu_fit(&plain, &demand, 80 * GIB, &err), &err);
    demand.uses_blas = true;
    assert_ok(phema_gpu_fit(&blas, &demand, 80 * GIB, &err), &err);
    uint64_t sums = (uint64_t)(25 + 32) * blas.tile_elems * 8;
    assert_int_equal(blas.gpu_bytes - plain.gpu_bytes, 16 * (sums + PHEMA_CUDA_BLAS_BYTES));
    demand.n_rows = 8; /* as many as registers hold: cuBLAS is not used */
    assert_ok(phema_gpu_fit(&blas, &demand, 80 * GIB, &err), &err);
    assert_int_equal(blas.layout.panel_inputs, 0);
}

/* In any layout all regions are aligned, and none overlap. */
static void regions_of_a_lane_are_disjoint(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int i = 0; i < 1000; i++) {
        struct phema_cuda_layout layout = {
            .n_lanes = 1,
            .n_inputs = 1 + support_random(&random) % 100,
            .input_bytes = 256 * (1 + support_random(&random) % 100),
            .n_rows = 1 + support_random(&random) % 100,
            .row_bytes = 256 * (1 + support_random(&random) % 100),
            .n_blocks = 1 + support_random(&random) % 100,
            .panel_inputs = support_random(&random) % 2 * 9,
            .sum_bytes = 512,
        };
        struct phema_cuda_offsets at = phema_cuda_offsets(&layout);
        const uint64_t starts[] = {at.inputs, at.rows,  at.weights, at.indices, at.blocks,
                                   at.counts, at.panel, at.sums,    at.blas,    at.bytes};
        const uint64_t sizes[] = {layout.n_inputs * layout.input_bytes,
                                  layout.n_rows * layout.row_bytes,
                                  layout.n_inputs * layout.n_rows * 8,
                                  layout.n_inputs * 4,
                                  layout.n_blocks * 8,
                                  layout.n_rows * layout.n_blocks * 8,
                                  layout.panel_inputs * 512,
                                  layout.panel_inputs ? layout.n_rows * 512 : 0,
                                  layout.panel_inputs ? PHEMA_CUDA_BLAS_BYTES : 0};
        for (size_t x = 0; x < ARRAY_LEN(sizes); x++) {
            assert_true(starts[x] % PHEMA_CUDA_ALIGNMENT == 0);
            assert_true(starts[x] + sizes[x] <= starts[x + 1]);
        }
        assert_int_equal(at.weights + at.job_bytes, at.counts);
        assert_int_equal(phema_cuda_host_bytes(&layout) % PHEMA_CUDA_PAGE, 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(with_enough_memory_tiles_are_as_large_as_useful),
    cmocka_unit_test(tight_limits_are_kept_to_the_byte),
    cmocka_unit_test(the_message_names_an_amount_that_is_enough),
    cmocka_unit_test(rare_dtypes_cost_what_they_have),
    cmocka_unit_test(devices_share_the_threads),
    cmocka_unit_test(cublas_needs_memory_for_sums_and_panels),
    cmocka_unit_test(regions_of_a_lane_are_disjoint),
};
TEST_GROUP(tests)
