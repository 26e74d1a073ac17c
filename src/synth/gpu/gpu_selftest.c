// SPDX-License-Identifier: Apache-2.0
/* gpu_selftest.c - compares a GPU's bits with the CPU's, and measures its speed. */
#include "gpu/gpu_run.h"

#include <stdlib.h>
#include <string.h>

#include "phema/clock.h"
#include "phema/setting.h"

/* ---- The same bits ---- */

#define CHECK_ELEMS   512
#define CHECK_INPUTS  3
#define CHECK_TARGETS 9 /* one more than are summed at once */

struct check {
    const struct gpu_run *gpu_run;
    struct phema_lane lane;
    enum phema_dtype dtype;
    enum phema_accumulator accumulator;
    size_t n_elems, n_inputs, n_targets;
    uint32_t places[CHECK_INPUTS];
    double weights[CHECK_INPUTS * CHECK_TARGETS];
    uint8_t inputs[CHECK_INPUTS][CHECK_ELEMS * sizeof(double)];
    _Alignas(64) double sums[CHECK_TARGETS][CHECK_ELEMS]; /* or floats */
    uint8_t wanted[CHECK_ELEMS * sizeof(double)];
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

/* Random bits: subnormal numbers, NaN and infinities are among them. */
static void fill(struct check *check)
{
    uint64_t state = 0x9E3779B97F4A7C15u + (uint64_t)check->dtype;
    for (size_t k = 0; k < check->n_inputs; k++) {
        for (size_t i = 0; i < sizeof(check->inputs[k]); i++)
            check->inputs[k][i] = (uint8_t)(next_random(&state) >> 40);
        check->places[k] = (uint32_t)(check->n_inputs - 1 - k);
    }
    for (size_t i = 0; i < check->n_inputs * check->n_targets; i++)
        check->weights[i] = (double)(int64_t)next_random(&state) * 0x1p-63;
}

static void sum_on_cpu(struct check *check, const struct phema_backend *backend)
{
    const uint8_t *inputs[CHECK_INPUTS];
    for (size_t k = 0; k < check->n_inputs; k++)
        inputs[k] = check->inputs[k];
    struct phema_tile tile = {inputs,           check->weights, check->n_inputs,
                              check->n_targets, check->n_elems, check->dtype};
    memset(check->sums, 0, sizeof(check->sums));
    phema_accumulate(backend, check->accumulator, check->sums, sizeof(check->sums[0]), &tile);
}

static enum phema_status run_job(struct check *check, struct phema_error *err)
{
    struct phema_cuda_block block = {0, (uint32_t)check->n_elems};
    struct phema_cuda_job job = {.input = phema_gpu_dtype(check->dtype),
                                 .output = phema_gpu_dtype(check->dtype),
                                 .is_f64 = check->accumulator == PHEMA_ACCUMULATE_F64,
                                 .inputs = check->places,
                                 .weights = check->weights,
                                 .stride = check->n_targets,
                                 .n_inputs = check->n_inputs,
                                 .n_rows = check->n_targets,
                                 .blocks = &block,
                                 .n_blocks = 1,
                                 .n_numbers = check->n_elems};
    size_t n_bytes = phema_dtype_bytes(check->dtype, check->n_elems);
    uint8_t *slots = phema_lane_slots(&check->lane);
    for (size_t k = 0; k < check->n_inputs; k++) { /* all through one slot */
        enum phema_status status = phema_lane_wait(&check->lane, 0, err);
        if (status)
            return status;
        memcpy(slots, check->inputs[k], n_bytes);
        status = phema_lane_feed(&check->lane, 0, slots, n_bytes, check->places[k], err);
        if (status)
            return status;
    }
    return phema_lane_average(&check->lane, &job, err);
}

static enum phema_status compare(struct check *check, const struct phema_backend *backend,
                                 struct phema_error *err)
{
    size_t n_bytes = phema_dtype_bytes(check->dtype, check->n_elems);
    const uint8_t *row = phema_lane_slots(&check->lane);
    for (size_t m = 0; m < check->n_targets; m++) {
        struct phema_narrow_counts counts = {0, 0, 0};
        enum phema_status status = phema_lane_fetch(&check->lane, m, n_bytes, 0, err);
        if (status)
            return status;
        status = phema_lane_wait(&check->lane, 0, err);
        if (status)
            return status;
        const struct phema_cuda_counts *found = &phema_lane_counts(&check->lane)[m];
        phema_narrow(backend, check->wanted, check->dtype, check->accumulator, check->sums[m],
                     check->n_elems, PHEMA_OVERFLOW_INF, &counts);
        if (memcmp(row, check->wanted, n_bytes) != 0 || found->n_overflow != counts.n_overflow ||
            found->n_nan != counts.n_nan || found->n_inf != counts.n_inf)
            return phema_fail(err, PHEMA_ERR_RESOURCE,
                              "%s does not sum %s as the processor does; %scpu works without it",
                              phema_gpus_format(check->gpu_run->gpus),
                              phema_dtype_name(check->dtype),
                              phema_setting_equals(PHEMA_SET_DEVICE));
    }
    return PHEMA_OK;
}

static enum phema_status check_lane(struct check *check, const struct phema_backend *backend,
                                    struct phema_error *err)
{
    static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F32, PHEMA_F64};
    const struct phema_cuda_layout *layout = &check->gpu_run->fit.layout;
    for (size_t i = 0; i < 2 * ARRAY_LEN(dtypes) - 1; i++) {
        check->dtype = dtypes[i / 2];
        check->accumulator = i % 2 ? PHEMA_ACCUMULATE_F32 : PHEMA_ACCUMULATE_F64;
        uint64_t capacity =
            layout->input_bytes < layout->row_bytes ? layout->input_bytes : layout->row_bytes;
        capacity = capacity * 8 / phema_dtype_bits(check->dtype);
        check->n_elems = capacity < CHECK_ELEMS ? (size_t)capacity : CHECK_ELEMS;
        fill(check);
        sum_on_cpu(check, backend);
        enum phema_status status = run_job(check, err);
        if (status)
            return status;
        status = compare(check, backend, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE gpu_run_check(const struct gpu_run *gpu_run, const struct phema_backend *backend,
                             struct phema_error *err)
{
    const struct phema_cuda_layout *layout = &gpu_run->fit.layout;
    struct check *check = aligned_alloc(64, (sizeof(*check) + 63) / 64 * 64);
    if (!check)
        return phema_fail_memory(err);
    *check = (struct check){.gpu_run = gpu_run};
    check->n_inputs = layout->n_inputs < CHECK_INPUTS ? layout->n_inputs : CHECK_INPUTS;
    check->n_targets = layout->n_rows < CHECK_TARGETS ? layout->n_rows : CHECK_TARGETS;
    enum phema_status status = PHEMA_OK;
    for (unsigned i = 0; i < gpu_run->n_gpus && !status; i++) {
        check->lane = phema_gpus_lane(gpu_run->gpus, i);
        status = check_lane(check, backend, err);
    }
    free(check);
    return status;
}

/* ---- Speed ---- */

#define TRIAL_SECONDS 0.1

/* Sums one tile: all its inputs, all targets. */
static enum phema_status sum_tile(const struct phema_lane *lane,
                                  const struct phema_cuda_layout *layout,
                                  struct phema_cuda_job *job, size_t n_targets,
                                  struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    uint64_t slot_bytes = layout->slot_bytes;
    uint64_t in_bytes = layout->input_bytes < slot_bytes ? layout->input_bytes : slot_bytes;
    uint64_t out_bytes = layout->row_bytes < slot_bytes ? layout->row_bytes : slot_bytes;
    for (uint64_t k = 0; k < layout->n_inputs; k++) {
        uint64_t slot = k % layout->n_slots;
        status = phema_lane_wait(lane, slot, err);
        if (status)
            return status;
        status = phema_lane_feed(lane, slot, phema_lane_slots(lane) + slot * slot_bytes, in_bytes,
                                 k, err);
        if (status)
            return status;
    }
    for (size_t m = 0; m < n_targets && !status; m += job->n_rows) {
        status = phema_lane_average(lane, job, err);
        for (uint64_t r = 0; r < job->n_rows && !status; r++)
            status = phema_lane_fetch(lane, r, out_bytes, r % layout->n_slots, err);
    }
    for (uint64_t slot = 0; slot < layout->n_slots && !status; slot++)
        status = phema_lane_wait(lane, slot, err);
    return status;
}

static enum phema_status measure(double *per_s, const struct gpu_run *gpu_run,
                                 struct phema_cuda_job *job, size_t n_targets,
                                 struct phema_error *err)
{
    const struct phema_cuda_layout *layout = &gpu_run->fit.layout;
    struct phema_lane lane = phema_gpus_lane(gpu_run->gpus, 0);
    /* untimed: the first one takes longer */
    enum phema_status status = sum_tile(&lane, layout, job, n_targets, err);
    double start = phema_clock_s(), elapsed = 0;
    uint64_t n_bytes = 0;
    while (!status && elapsed < TRIAL_SECONDS) {
        status = sum_tile(&lane, layout, job, n_targets, err);
        n_bytes += layout->n_inputs * layout->input_bytes;
        elapsed = phema_clock_s() - start;
    }
    *per_s = (double)n_bytes / elapsed;
    return status;
}

PHEMA_FALLIBLE gpu_selftest(double *per_s, const struct gpu_run *gpu_run, size_t n_targets,
                            struct phema_error *err)
{
    const struct phema_cuda_layout *layout = &gpu_run->fit.layout;
    uint64_t n_numbers = gpu_run->fit.tile_elems;
    if (n_numbers > layout->input_bytes / 2)
        n_numbers = layout->input_bytes / 2;
    uint64_t n_blocks = (n_numbers + BLOCK_ELEMS - 1) / BLOCK_ELEMS;
    uint32_t *inputs = calloc(layout->n_inputs, sizeof(*inputs));
    double *weights = calloc(layout->n_inputs * layout->n_rows, sizeof(*weights));
    struct phema_cuda_block *blocks = calloc(n_blocks, sizeof(*blocks));
    enum phema_status status = PHEMA_OK;
    if (!inputs || !weights || !blocks) {
        status = phema_fail_memory(err);
        goto end;
    }
    for (uint64_t k = 0; k < layout->n_inputs; k++)
        inputs[k] = (uint32_t)k;
    for (uint64_t b = 0; b < n_blocks; b++) {
        uint64_t left = n_numbers - b * BLOCK_ELEMS;
        blocks[b] = (struct phema_cuda_block){(uint32_t)(b * BLOCK_ELEMS),
                                              (uint32_t)(left < BLOCK_ELEMS ? left : BLOCK_ELEMS)};
    }
    struct phema_cuda_job job = {.input = PHEMA_CUDA_F16,
                                 .output = PHEMA_CUDA_F16,
                                 .is_f64 = true,
                                 .inputs = inputs,
                                 .weights = weights,
                                 .stride = layout->n_rows,
                                 .n_inputs = layout->n_inputs,
                                 .n_rows = layout->n_rows,
                                 .blocks = blocks,
                                 .n_blocks = n_blocks,
                                 .n_numbers = n_numbers};
    status = measure(per_s, gpu_run, &job, n_targets, err);
end:
    free(inputs);
    free(weights);
    free(blocks);
    return status;
}
