// SPDX-License-Identifier: Apache-2.0
/* gpu_setup.c - see gpu_setup.h. */
#include "gpu/gpu_setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forecast/measure_sum_rate.h"
#include "gpu/gpu_selftest.h"
#include "phema/strbuf.h"
#include "sum_dtypes.h"

/* A device takes a second to start: below this, as long as the processor needs for all of it. */
#define LEAST_AUTO_BYTES ((uint64_t)8 << 30)
/* From the host to a device, where none can be asked: PCI Express 4.0 with 16 lanes, as it is
 * mostly seen. */
#define USUAL_RATE 24e9

/* ---- What is there to do ---- */

static bool is_averaged(const struct run *run, size_t i)
{
    return run->plan->series->tensors[i].rule == PHEMA_RULE_AVERAGE;
}

static bool can_take(const struct run *run, size_t i)
{
    return phema_device_takes(run->plan->series->tensors[i].tensor.dtype) &&
           phema_device_takes(run->outputs->dtypes[i]);
}

bool gpu_can_sum(const struct run *run, size_t tensor)
{
    return run->gpu_run && can_take(run, tensor);
}

bool gpu_leaves_tensors_to_cpu(const struct run *run)
{
    for (size_t i = 0; i < run->plan->series->n_tensors; i++)
        if (is_averaged(run, i) && !can_take(run, i))
            return true;
    return false;
}

/* Of all snapshots, that a device would add up. */
static uint64_t work_bytes(const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    uint64_t bytes = 0;
    for (size_t i = 0; i < series->n_tensors; i++)
        if (is_averaged(run, i) && can_take(run, i) && series->tensors[i].same_as == i)
            bytes += series->tensors[i].tensor.size_bytes;
    return bytes * series->n;
}

/* Inputs and rows of sums, at most: a tile follows one rule. */
static enum phema_status count_groups(struct phema_device_demand *demand, const struct run *run,
                                      struct phema_error *err)
{
    size_t n = run->plan->series->n;
    demand->n_inputs = demand->n_rows = 1;
    for (size_t r = 0; r < run->n_ruled; r++) {
        struct group *groups = NULL;
        size_t n_groups = 0, n_used = 0, n_newest = 0;
        if (!run->ruled[r].is_needed)
            continue;
        enum phema_status status = target_groups_make(&groups, &n_groups, run->plan,
                                                      run->options.sums, r, 0, run->plan->m, err);
        if (!status)
            status = target_groups_count_inputs(&n_used, &n_newest, groups, n_groups, n, err);
        for (size_t g = 0; g < n_groups; g++) {
            if (groups[g].n_rows > demand->n_rows)
                demand->n_rows = groups[g].n_rows;
            demand->is_f64 = demand->is_f64 || !groups[g].fits_float32;
        }
        if (n_used > demand->n_inputs)
            demand->n_inputs = n_used;
        target_groups_free(groups, n_groups);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static void count_elems(struct phema_device_demand *demand, const struct run *run)
{
    const struct phema_series *series = run->plan->series;
    demand->numbers_per_elem = 1;
    for (size_t i = 0; i < series->n_tensors; i++) {
        enum phema_dtype from = series->tensors[i].tensor.dtype, to = run->outputs->dtypes[i];
        uint64_t n = series->tensors[i].tensor.n_elems;
        demand->n_through[from] += n;
        demand->n_through[to] += n;
        if (!is_averaged(run, i) || !can_take(run, i))
            continue;
        demand->n_in[from] += n;
        demand->n_out[to] += n;
        demand->is_f64 = demand->is_f64 || sums_need_float64(run, i);
        if (from == PHEMA_C64)
            demand->numbers_per_elem = 2;
    }
}

PHEMA_FALLIBLE gpu_fit(struct gpu_run *gpu_run, const struct run *run, uint64_t max_tile_elems,
                       unsigned n_threads, uint64_t n_slots, struct phema_error *err)
{
    struct phema_device_demand demand = {
        .slot_room = run->n_direct ? PHEMA_INPUT_ROOM : 0,
        .block_elems = BLOCK_ELEMS,
        .n_more_blocks = MAX_STRETCH_TENSORS,
        .n_slots = n_slots,
        .max_tile_elems = max_tile_elems,
        .n_threads = n_threads,
        .n_devices = gpu_run->n_devices,
        .uses_blas = run->options.device.uses_blas,
    };
    count_elems(&demand, run);
    enum phema_status status = count_groups(&demand, run, err);
    return status ? status : phema_device_fit(&gpu_run->fit, &demand, gpu_run->limit, err);
}

/* ---- Which it is to be ---- */

static enum phema_status make_feeder(struct run *run, struct phema_devices *devices,
                                     struct phema_error *err)
{
    const struct phema_device_request *request = &run->options.device;
    struct gpu_run *gpu_run = calloc(1, sizeof(*gpu_run));
    if (!gpu_run) {
        phema_devices_close(devices);
        return phema_fail_memory(err);
    }
    gpu_run->devices = devices;
    gpu_run->n_devices = devices ? phema_devices_n(devices) : (unsigned)request->n;
    gpu_run->limit = devices ? phema_devices_limit(devices) : request->memory_bytes;
    gpu_run->max_tile_elems = PHEMA_DEVICE_TILE_ELEMS;
    run->gpu_run = gpu_run;
    run->device.is_device = true;
    run->device.n_devices = gpu_run->n_devices;
    return PHEMA_OK;
}

/* For devices that need not be there: what they are called. */
static void show_request(struct phema_device_choice *choice,
                         const struct phema_device_request *request)
{
    struct phema_strbuf text = {0};
    for (size_t i = 0; i < request->n; i++)
        phema_strbuf_printf(&text, "%s%d", i ? "," : "cuda:", (int)request->indices[i]);
    (void)snprintf(choice->shown, sizeof(choice->shown), "%s",
                   text.data && !text.is_failed ? text.data : "cuda");
    phema_strbuf_clear(&text);
}

static enum phema_status open_asked(struct run *run, struct phema_error *err)
{
    const struct phema_device_request *request = &run->options.device;
    struct phema_devices *devices = NULL;
    bool is_known = request->memory_bytes && !request->takes_all; /* without looking */
    if (run->is_dry_run && is_known) {
        show_request(&run->device, request);
        return make_feeder(run, NULL, err);
    }
    enum phema_status status = phema_devices_open(&devices, request, err);
    if (status && run->is_dry_run && !request->takes_all)
        return phema_fail_in(err, status,
                             "--device cuda: without a device --gpu-memory SIZE says for how much "
                             "memory to plan");
    if (status)
        return phema_fail_in(err, status, "--device cuda");
    (void)snprintf(run->device.shown, sizeof(run->device.shown), "%s",
                   phema_devices_format(devices));
    return make_feeder(run, devices, err);
}

/* The processor, with all targets and with one, which costs no more than reading. */
static enum phema_status measure_processor(struct phema_device_rates *rates, struct run *run,
                                           struct phema_error *err)
{
    struct gpu_run *gpu_run = run->gpu_run;
    run->gpu_run = NULL;
    enum phema_status status = memory_budget_make(&run->budget, run, err);
    if (!status)
        status = measure_sum_rate(&rates->processor, run, err);
    run->budget.targets_per_pass = 1;
    if (!status)
        status = measure_sum_rate(&rates->reading, run, err);
    run->gpu_run = gpu_run;
    return status;
}

static enum phema_status measure(struct phema_device_rates *rates, struct run *run,
                                 struct phema_error *err)
{
    bool is_assumed;
    enum phema_status status = measure_processor(rates, run, err);
    rates->n_devices = run->gpu_run->n_devices;
    if (!status)
        status = memory_budget_make(&run->budget, run, err);
    return status ? status : gpu_run_rate(&rates->device, &is_assumed, run, err);
}

/* Nothing that fails here is a failure of the run: the processor does it, and that is said. */
static enum phema_status choose_freely(struct run *run, struct phema_error *err)
{
    struct phema_device_choice *choice = &run->device;
    uint64_t bytes = work_bytes(run);
    struct phema_name_buffer size;
    if (!phema_device_may_exist()) {
        (void)snprintf(choice->why, sizeof(choice->why), "no NVIDIA driver on this machine");
        return PHEMA_OK;
    }
    if (bytes < LEAST_AUTO_BYTES) {
        (void)snprintf(choice->why, sizeof(choice->why),
                       "%s to add up are less than a device is "
                       "started for",
                       phema_size_format(&size, bytes));
        return PHEMA_OK;
    }
    struct phema_error own = {""};
    struct phema_devices *devices = NULL;
    struct phema_device_rates rates = {0};
    enum phema_status status = phema_devices_open(&devices, &run->options.device, &own);
    if (!status && make_feeder(run, devices, err))
        return PHEMA_ERR_RESOURCE;
    if (!status)
        status = measure(&rates, run, &own);
    if (!status && phema_device_wins(choice->why, sizeof(choice->why), &rates)) {
        (void)snprintf(choice->shown, sizeof(choice->shown), "%s", phema_devices_format(devices));
        return PHEMA_OK;
    }
    if (status)
        (void)snprintf(choice->why, sizeof(choice->why), "%.*s", (int)sizeof(choice->why) - 1,
                       own.message);
    gpu_run_close(run);
    choice->is_device = false;
    choice->n_devices = 0;
    return PHEMA_OK;
}

PHEMA_FALLIBLE gpu_run_choose(struct run *run, struct phema_error *err)
{
    struct phema_device_choice *choice = &run->device;
    *choice = (struct phema_device_choice){.shown = "cpu"};
    enum phema_device_kind kind = run->options.device.kind;
    if (kind == PHEMA_DEVICE_CPU)
        return PHEMA_OK;
    if (kind == PHEMA_DEVICE_AUTO)
        return choose_freely(run, err);
    if (work_bytes(run) == 0) {
        (void)snprintf(choice->why, sizeof(choice->why),
                       "no tensor is of a dtype that the device adds up");
        return PHEMA_OK;
    }
    return open_asked(run, err);
}

void gpu_run_close(struct run *run)
{
    if (!run->gpu_run)
        return;
    phema_devices_close(run->gpu_run->devices);
    phema_memory_profile_note_device(run->gpu_run->ledger, 0, 0);
    free(run->gpu_run);
    run->gpu_run = NULL;
}

/* ---- Memory ---- */

PHEMA_FALLIBLE gpu_run_start(struct run *run, struct phema_error *err)
{
    struct gpu_run *gpu_run = run->gpu_run;
    enum phema_status status = phema_devices_start(gpu_run->devices, &gpu_run->fit.layout, err);
    if (status)
        return status;
    struct phema_device_usage usage = phema_devices_usage(gpu_run->devices);
    gpu_run->ledger = run->options.ledger;
    phema_memory_profile_note_device(gpu_run->ledger, usage.allocated_bytes, usage.reserved_bytes);
    run->device.device_bytes = usage.allocated_bytes;
    run->device.n_tile_passes = gpu_run->fit.n_tile_passes;
    return gpu_run_check(gpu_run, run->backend, err);
}

bool gpu_run_may_shrink(const struct run *run)
{
    return run->gpu_run->fit.tile_elems > PHEMA_DEVICE_LEAST_TILE_ELEMS;
}

void gpu_run_shrink(struct run *run)
{
    struct phema_name_buffer size;
    struct gpu_run *gpu_run = run->gpu_run;
    uint64_t tile = gpu_run->fit.tile_elems / 2 / BLOCK_ELEMS * BLOCK_ELEMS;
    gpu_run->max_tile_elems =
        tile > PHEMA_DEVICE_LEAST_TILE_ELEMS ? tile : PHEMA_DEVICE_LEAST_TILE_ELEMS;
    (void)snprintf(run->device.note, sizeof(run->device.note),
                   "the device had no %s to give: tiles of %llu elements instead",
                   phema_size_format(&size, gpu_run->fit.device_bytes),
                   (unsigned long long)gpu_run->max_tile_elems);
}

/* ---- Speed ---- */

PHEMA_FALLIBLE gpu_run_rate(double *per_s, bool *is_assumed, struct run *run,
                            struct phema_error *err)
{
    struct gpu_run *gpu_run = run->gpu_run;
    *is_assumed = gpu_run->devices == NULL;
    *per_s = USUAL_RATE;
    if (*is_assumed)
        return PHEMA_OK;
    enum phema_status status = phema_devices_start(gpu_run->devices, &gpu_run->fit.layout, err);
    if (!status)
        status = gpu_run_check(gpu_run, run->backend, err);
    if (!status)
        status = gpu_selftest(per_s, gpu_run, run->plan->m, err);
    phema_devices_stop(gpu_run->devices);
    return status == PHEMA_NO ? PHEMA_ERR_RESOURCE : status;
}
