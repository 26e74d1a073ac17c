// SPDX-License-Identifier: Apache-2.0
/* gpu_setup.c - chooses and starts the GPUs of a run, compares their bits with the CPU's, and
 * measures their speed. */
#include "gpu/gpu_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forecast/measure_rates.h"
#include "phema/clock.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

/* A GPU takes a second to start. The CPU sums fewer bytes than this in that time. */
#define LEAST_AUTO_BYTES ((uint64_t)8 << 30)
/* Host to GPU, where no GPU can be measured: PCI Express 4.0 with 16 lanes, as commonly
 * observed. */
#define TYPICAL_RATE 24e9

/* ---- Choice ---- */

static enum phema_status make_gpu_run(struct run *run, struct phema_gpus *gpus,
                                      struct phema_error *err)
{
    const struct phema_gpu_options *options = &run->options.gpu;
    struct gpu_run *gpu_run = calloc(1, sizeof(*gpu_run));
    if (!gpu_run) {
        phema_gpus_close(gpus);
        return phema_fail_memory(err);
    }
    gpu_run->gpus = gpus;
    gpu_run->n_gpus = gpus ? phema_gpus_n(gpus) : (unsigned)options->n;
    gpu_run->limit = gpus ? phema_gpus_limit(gpus) : options->memory_bytes;
    gpu_run->max_tile_elems = PHEMA_GPU_TILE_ELEMS;
    run->gpu_run = gpu_run;
    run->result->device.is_gpu = true;
    run->result->device.n_gpus = gpu_run->n_gpus;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_synth_check_device(const struct phema_gpu_options *options,
                                        struct phema_error *err)
{
    enum phema_status status =
        options->kind == PHEMA_DEVICE_CUDA ? phema_gpus_check(options, err) : PHEMA_OK;
    return status ? phema_blame(err,
                                phema_fail_in(err, status, "%scuda",
                                              phema_setting_equals(PHEMA_SET_DEVICE)),
                                PHEMA_SET_DEVICE)
                  : PHEMA_OK;
}

/* Names the requested GPUs, which may be absent. */
static void format_requested(struct phema_device_choice *choice,
                             const struct phema_gpu_options *options)
{
    struct phema_strbuf text = {0};
    for (size_t i = 0; i < options->n; i++)
        phema_strbuf_printf(&text, "%s%d", i ? "," : "cuda:", (int)options->indices[i]);
    (void)snprintf(choice->name, sizeof(choice->name), "%s",
                   text.data && !text.is_failed ? text.data : "cuda");
    phema_strbuf_clear(&text);
}

static enum phema_status open_requested(struct run *run, struct phema_error *err)
{
    const struct phema_gpu_options *options = &run->options.gpu;
    struct phema_gpus *gpus = NULL;
    bool is_known = options->memory_bytes && !options->uses_all; /* without opening the GPUs */
    if (run->is_dry_run && is_known) {
        format_requested(&run->result->device, options);
        return make_gpu_run(run, NULL, err);
    }
    enum phema_status status = phema_gpus_open(&gpus, options, err);
    if (status && run->is_dry_run && !options->uses_all)
        status = phema_fail_in(
            err, status, "%scuda: without a device %sSIZE says for how much memory to plan",
            phema_setting_equals(PHEMA_SET_DEVICE), phema_setting_equals(PHEMA_SET_GPU_MEMORY));
    else if (status)
        status = phema_fail_in(err, status, "%scuda", phema_setting_equals(PHEMA_SET_DEVICE));
    if (status)
        return phema_blame(err, status, PHEMA_SET_DEVICE);
    (void)snprintf(run->result->device.name, sizeof(run->result->device.name), "%s",
                   phema_gpus_format(gpus));
    return make_gpu_run(run, gpus, err);
}

/* The CPU with all targets, and with one target, which costs no more than reading; and the GPU. */
static enum phema_status measure(struct phema_gpu_rates *rates, struct run *run,
                                 struct phema_error *err)
{
    bool is_assumed;
    struct gpu_run *gpu_run = run->gpu_run;
    run->gpu_run = NULL;
    enum phema_status status = memory_budget_make(&run->budget, run, err);
    if (!status)
        status = measure_sum_rate(&rates->processor, run, err);
    run->budget.targets_per_pass = 1;
    if (!status)
        status = measure_sum_rate(&rates->reading, run, err);
    run->gpu_run = gpu_run;
    rates->n_gpus = gpu_run->n_gpus;
    if (!status)
        status = memory_budget_make(&run->budget, run, err);
    return status ? status : gpu_run_rate(&rates->gpu, &is_assumed, run, err);
}

static void set_reason(struct phema_device_choice *choice, const char *why)
{
    (void)snprintf(choice->why, sizeof(choice->why), "%.*s", (int)sizeof(choice->why) - 1, why);
}

/* A failure here is not one of the run: the CPU sums, and the reason is reported. */
static enum phema_status choose_automatically(struct run *run, struct phema_error *err)
{
    struct phema_device_choice *choice = &run->result->device;
    uint64_t bytes = gpu_work_bytes(run);
    struct phema_name_buffer size;
    if (!phema_gpu_may_exist()) {
        set_reason(choice, "no NVIDIA driver on this machine");
        return PHEMA_OK;
    }
    if (bytes < LEAST_AUTO_BYTES) {
        (void)snprintf(choice->why, sizeof(choice->why),
                       "a sum of %s is too small to start a device for",
                       phema_size_format(&size, bytes));
        return PHEMA_OK;
    }
    struct phema_error own = {0};
    struct phema_gpus *gpus = NULL;
    struct phema_gpu_rates rates = {0};
    enum phema_status status = phema_gpus_open(&gpus, &run->options.gpu, &own);
    if (status) {
        set_reason(choice, own.message);
        return PHEMA_OK;
    }
    if (make_gpu_run(run, gpus, err))
        return PHEMA_ERR_RESOURCE;
    status = measure(&rates, run, &own);
    if (status) {
        set_reason(choice, own.message);
    } else if (phema_gpu_wins(choice->why, sizeof(choice->why), &rates)) {
        (void)snprintf(choice->name, sizeof(choice->name), "%s", phema_gpus_format(gpus));
        return PHEMA_OK;
    }
    gpu_run_close(run);
    choice->is_gpu = false;
    choice->n_gpus = 0;
    return PHEMA_OK;
}

PHEMA_FALLIBLE gpu_run_choose(struct run *run, struct phema_error *err)
{
    struct phema_device_choice *choice = &run->result->device;
    *choice = (struct phema_device_choice){.name = "cpu"};
    enum phema_device_kind kind = run->options.gpu.kind;
    if (kind == PHEMA_DEVICE_CPU)
        return PHEMA_OK;
    if (kind == PHEMA_DEVICE_AUTO)
        return choose_automatically(run, err);
    if (gpu_work_bytes(run) == 0) {
        set_reason(choice, "no tensor has a dtype that the device sums");
        return PHEMA_OK;
    }
    return open_requested(run, err);
}

void gpu_run_close(struct run *run)
{
    if (!run->gpu_run)
        return;
    phema_gpus_close(run->gpu_run->gpus);
    phema_memory_profile_note_device(run->gpu_run->memory_profile, 0, 0);
    free(run->gpu_run);
    run->gpu_run = NULL;
}

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
        if (!status)
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
        const uint8_t *inputs[CHECK_INPUTS];
        for (size_t k = 0; k < check->n_inputs; k++)
            inputs[k] = check->inputs[k];
        struct phema_tile tile = {inputs,           check->weights, check->n_inputs,
                                  check->n_targets, check->n_elems, check->dtype};
        memset(check->sums, 0, sizeof(check->sums));
        phema_accumulate(backend, check->accumulator, check->sums, sizeof(check->sums[0]), &tile);
        enum phema_status status = run_job(check, err);
        if (!status)
            status = compare(check, backend, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* Checks that every started GPU gives the CPU's bits for a small tile of each dtype.
 * PHEMA_ERR_RESOURCE  names a GPU that does not, and the dtype */
static enum phema_status check_gpus(const struct gpu_run *gpu_run,
                                    const struct phema_backend *backend, struct phema_error *err)
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

/* ---- Memory ---- */

PHEMA_FALLIBLE gpu_run_start(struct run *run, struct phema_error *err)
{
    struct gpu_run *gpu_run = run->gpu_run;
    enum phema_status status = phema_gpus_start(gpu_run->gpus, &gpu_run->fit.layout, err);
    if (status)
        return status;
    struct phema_gpu_usage usage = phema_gpus_usage(gpu_run->gpus);
    gpu_run->memory_profile = run->options.memory_profile;
    phema_memory_profile_note_device(gpu_run->memory_profile, usage.allocated_bytes,
                                     usage.reserved_bytes);
    run->result->device.gpu_bytes = usage.allocated_bytes;
    run->result->device.n_tile_passes = gpu_run->fit.n_tile_passes;
    return check_gpus(gpu_run, run->backend, err);
}

void gpu_run_shrink(struct run *run)
{
    struct phema_name_buffer size;
    struct gpu_run *gpu_run = run->gpu_run;
    uint64_t tile = gpu_run->fit.tile_elems / 2 / BLOCK_ELEMS * BLOCK_ELEMS;
    gpu_run->max_tile_elems = tile > PHEMA_GPU_LEAST_TILE_ELEMS ? tile : PHEMA_GPU_LEAST_TILE_ELEMS;
    (void)snprintf(run->result->device.note, sizeof(run->result->device.note),
                   "the device had no %s to give: tiles of %llu elements instead",
                   phema_size_format(&size, gpu_run->fit.gpu_bytes),
                   (unsigned long long)gpu_run->max_tile_elems);
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

static enum phema_status measure_lane(double *per_s, const struct gpu_run *gpu_run,
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

/* Input bytes per second, from the slots of one lane to sums of n targets and back. */
static enum phema_status measure_gpu(double *per_s, const struct gpu_run *gpu_run, size_t n_targets,
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
    status = measure_lane(per_s, gpu_run, &job, n_targets, err);
end:
    free(inputs);
    free(weights);
    free(blocks);
    return status;
}

PHEMA_FALLIBLE gpu_run_rate(double *per_s, bool *is_assumed, struct run *run,
                            struct phema_error *err)
{
    struct gpu_run *gpu_run = run->gpu_run;
    *is_assumed = gpu_run->gpus == NULL;
    *per_s = TYPICAL_RATE;
    if (*is_assumed)
        return PHEMA_OK;
    enum phema_status status = phema_gpus_start(gpu_run->gpus, &gpu_run->fit.layout, err);
    if (!status)
        status = check_gpus(gpu_run, run->backend, err);
    if (!status)
        status = measure_gpu(per_s, gpu_run, run->plan->m, err);
    phema_gpus_stop(gpu_run->gpus);
    return status == PHEMA_NO ? PHEMA_ERR_RESOURCE : status;
}
