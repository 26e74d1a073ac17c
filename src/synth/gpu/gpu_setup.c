// SPDX-License-Identifier: Apache-2.0
/* gpu_setup.c - chooses and starts the GPUs of a run. */
#include "gpu/gpu_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forecast/measure_rates.h"
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
    run->device.is_gpu = true;
    run->device.n_gpus = gpu_run->n_gpus;
    return PHEMA_OK;
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
        format_requested(&run->device, options);
        return make_gpu_run(run, NULL, err);
    }
    enum phema_status status = phema_gpus_open(&gpus, options, err);
    if (status && run->is_dry_run && !options->uses_all)
        return phema_blame(
            err,
            phema_fail_in(
                err, status, "%scuda: without a device %sSIZE says for how much memory to plan",
                phema_setting_equals(PHEMA_SET_DEVICE), phema_setting_equals(PHEMA_SET_GPU_MEMORY)),
            PHEMA_SET_DEVICE);
    if (status)
        return phema_blame(
            err, phema_fail_in(err, status, "%scuda", phema_setting_equals(PHEMA_SET_DEVICE)),
            PHEMA_SET_DEVICE);
    (void)snprintf(run->device.name, sizeof(run->device.name), "%s", phema_gpus_format(gpus));
    return make_gpu_run(run, gpus, err);
}

/* The CPU with all targets, and with one target, which costs no more than reading. */
static enum phema_status measure_cpu(struct phema_gpu_rates *rates, struct run *run,
                                     struct phema_error *err)
{
    enum phema_status status = memory_budget_make(&run->budget, run, err);
    if (status)
        return status;
    status = measure_sum_rate(&rates->processor, run, err);
    if (status)
        return status;
    run->budget.targets_per_pass = 1;
    return measure_sum_rate(&rates->reading, run, err);
}

static enum phema_status measure(struct phema_gpu_rates *rates, struct run *run,
                                 struct phema_error *err)
{
    bool is_assumed;
    struct gpu_run *gpu_run = run->gpu_run;
    run->gpu_run = NULL;
    enum phema_status status = measure_cpu(rates, run, err);
    run->gpu_run = gpu_run;
    if (status)
        return status;
    rates->n_gpus = gpu_run->n_gpus;
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
    struct phema_device_choice *choice = &run->device;
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
    struct phema_device_choice *choice = &run->device;
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
    run->device.gpu_bytes = usage.allocated_bytes;
    run->device.n_tile_passes = gpu_run->fit.n_tile_passes;
    return gpu_run_check(gpu_run, run->backend, err);
}

bool gpu_run_may_shrink(const struct run *run)
{
    return run->gpu_run->fit.tile_elems > PHEMA_GPU_LEAST_TILE_ELEMS;
}

void gpu_run_shrink(struct run *run)
{
    struct phema_name_buffer size;
    struct gpu_run *gpu_run = run->gpu_run;
    uint64_t tile = gpu_run->fit.tile_elems / 2 / BLOCK_ELEMS * BLOCK_ELEMS;
    gpu_run->max_tile_elems = tile > PHEMA_GPU_LEAST_TILE_ELEMS ? tile : PHEMA_GPU_LEAST_TILE_ELEMS;
    (void)snprintf(run->device.note, sizeof(run->device.note),
                   "the device had no %s to give: tiles of %llu elements instead",
                   phema_size_format(&size, gpu_run->fit.gpu_bytes),
                   (unsigned long long)gpu_run->max_tile_elems);
}

/* ---- Speed ---- */

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
        status = gpu_run_check(gpu_run, run->backend, err);
    if (!status)
        status = gpu_selftest(per_s, gpu_run, run->plan->m, err);
    phema_gpus_stop(gpu_run->gpus);
    return status == PHEMA_NO ? PHEMA_ERR_RESOURCE : status;
}
