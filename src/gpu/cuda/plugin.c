// SPDX-License-Identifier: Apache-2.0
/* plugin.c - the plug-in: its table of functions, and the slots, streams and jobs of one device. A
 * lane has one stream, so its work runs in the order in which it was queued. Lanes run
 * concurrently: one is fed while another computes or copies back. One event per slot shows when the
 * device no longer uses the slot; one more event shows when a job was copied. */
#include "phema/cuda_plugin.h"

#include <stdlib.h>
#include <string.h>

#include "runtime.h"

struct lane {
    struct runtime_stream *stream;
    struct runtime_event **slot_events; /* [n_slots] */
    bool *is_busy;                      /* [n_slots] in use by the device: not waited for yet */
    struct runtime_event *job_event;
    struct runtime_blas *blas; /* or NULL */
    uint8_t *memory;           /* on the device */
    uint8_t *slots;            /* in the host's memory, followed by: */
    uint8_t *job;              /* weights, indices, blocks, laid out as on the device */
    struct phema_cuda_counts *counts;
};

struct phema_cuda_device {
    int32_t index;
    struct phema_cuda_layout layout;
    struct phema_cuda_offsets offsets;
    uint8_t *memory, *host; /* of all lanes */
    struct lane *lanes;
};

/* ---- Opening ---- */

static void close_lane(const struct phema_cuda_device *device, struct lane *lane)
{
    runtime_stream_close(lane->stream);
    runtime_blas_close(lane->blas);
    runtime_event_close(lane->job_event);
    for (uint64_t s = 0; lane->slot_events && s < device->layout.n_slots; s++)
        runtime_event_close(lane->slot_events[s]);
    free(lane->slot_events);
    free(lane->is_busy);
}

static void close_device(struct phema_cuda_device *device)
{
    struct phema_cuda_message message;
    if (!device)
        return;
    /* freeing needs the device to be current; where that fails, the device is lost with its
     * memory */
    if (runtime_select_device(device->index, &message) == PHEMA_CUDA_OK) {
        for (uint64_t i = 0; i < device->layout.n_lanes; i++)
            close_lane(device, &device->lanes[i]);
        runtime_free(device->memory);
        runtime_free_host(device->host);
    }
    free(device->lanes);
    free(device);
}

static enum phema_cuda_result open_lane(struct lane *lane, const struct phema_cuda_device *device,
                                        struct phema_cuda_message *message)
{
    const struct phema_cuda_layout *layout = &device->layout;
    lane->slot_events = calloc(layout->n_slots, sizeof(struct runtime_event *));
    lane->is_busy = calloc(layout->n_slots, sizeof(*lane->is_busy));
    if (!lane->slot_events || !lane->is_busy)
        return runtime_fail(message, PHEMA_CUDA_MEMORY, "out of memory for a lane");
    enum phema_cuda_result result = runtime_stream_open(&lane->stream, message);
    if (result)
        return result;
    result = runtime_event_open(&lane->job_event, message);
    for (uint64_t s = 0; s < layout->n_slots && !result; s++)
        result = runtime_event_open(&lane->slot_events[s], message);
    if (result || !layout->panel_inputs)
        return result;
    return runtime_blas_open(&lane->blas, lane->stream, lane->memory + device->offsets.blas,
                             message);
}

static enum phema_cuda_result open_lanes(struct phema_cuda_device *device,
                                         struct phema_cuda_message *message)
{
    const struct phema_cuda_layout *layout = &device->layout;
    uint64_t host_bytes = phema_cuda_host_bytes(layout);
    enum phema_cuda_result result =
        runtime_alloc(&device->memory, layout->n_lanes * device->offsets.bytes, message);
    if (result)
        return result;
    result = runtime_alloc_host(&device->host, layout->n_lanes * host_bytes, message);
    for (uint64_t i = 0; i < layout->n_lanes && !result; i++) {
        struct lane *lane = &device->lanes[i];
        lane->memory = device->memory + i * device->offsets.bytes;
        lane->slots = device->host + i * host_bytes;
        lane->job = lane->slots + layout->n_slots * layout->slot_bytes;
        lane->counts = (void *)(lane->job + device->offsets.job_bytes);
        result = open_lane(lane, device, message);
    }
    return result;
}

static enum phema_cuda_result open_device(struct phema_cuda_device **out, int32_t index,
                                          const struct phema_cuda_layout *layout,
                                          struct phema_cuda_message *message)
{
    enum phema_cuda_result result = runtime_select_device(index, message);
    if (result)
        return result;
    struct phema_cuda_device *device = calloc(1, sizeof(*device));
    struct lane *lanes = calloc(layout->n_lanes, sizeof(*lanes));
    if (!device || !lanes) {
        free(device);
        free(lanes);
        return runtime_fail(message, PHEMA_CUDA_MEMORY, "out of memory for lanes");
    }
    device->index = index;
    device->layout = *layout;
    device->offsets = phema_cuda_offsets(layout);
    device->lanes = lanes;
    result = open_lanes(device, message);
    if (result)
        close_device(device);
    else
        *out = device;
    return result;
}

/* ---- Queries ---- */

static enum phema_cuda_result free_bytes(uint64_t *bytes, struct phema_cuda_device *device,
                                         struct phema_cuda_message *message)
{
    enum phema_cuda_result result = runtime_select_device(device->index, message);
    return result ? result : runtime_free_bytes(bytes, message);
}

static uint8_t *slots_of(struct phema_cuda_device *device, uint64_t lane)
{
    return device->lanes[lane].slots;
}

static const struct phema_cuda_counts *counts_of(struct phema_cuda_device *device, uint64_t lane)
{
    return device->lanes[lane].counts;
}

/* ---- Slots ---- */

static enum phema_cuda_result mark_busy(struct lane *lane, uint64_t slot,
                                        struct phema_cuda_message *message)
{
    enum phema_cuda_result result = runtime_record(lane->slot_events[slot], lane->stream, message);
    lane->is_busy[slot] = !result;
    return result;
}

static enum phema_cuda_result feed(struct phema_cuda_device *device, uint64_t lane_index,
                                   uint64_t slot, const uint8_t *from, uint64_t bytes,
                                   uint64_t input, struct phema_cuda_message *message)
{
    struct lane *lane = &device->lanes[lane_index];
    uint8_t *to = lane->memory + device->offsets.inputs + input * device->layout.input_bytes;
    enum phema_cuda_result result = runtime_select_device(device->index, message);
    if (result)
        return result;
    result = runtime_copy_to_device(to, from, bytes, lane->stream, message);
    return result ? result : mark_busy(lane, slot, message);
}

static enum phema_cuda_result fetch(struct phema_cuda_device *device, uint64_t lane_index,
                                    uint64_t row, uint64_t bytes, uint64_t slot,
                                    struct phema_cuda_message *message)
{
    struct lane *lane = &device->lanes[lane_index];
    const uint8_t *from = lane->memory + device->offsets.rows + row * device->layout.row_bytes;
    uint8_t *to = lane->slots + slot * device->layout.slot_bytes;
    enum phema_cuda_result result = runtime_select_device(device->index, message);
    if (result)
        return result;
    result = runtime_copy_to_host(to, from, bytes, lane->stream, message);
    return result ? result : mark_busy(lane, slot, message);
}

static enum phema_cuda_result wait_for_slot(struct phema_cuda_device *device, uint64_t lane_index,
                                            uint64_t slot, struct phema_cuda_message *message)
{
    struct lane *lane = &device->lanes[lane_index];
    if (!lane->is_busy[slot])
        return PHEMA_CUDA_OK;
    enum phema_cuda_result result = runtime_select_device(device->index, message);
    if (result)
        return result;
    result = runtime_wait(lane->slot_events[slot], message);
    lane->is_busy[slot] = result != PHEMA_CUDA_OK;
    return result;
}

/* ---- Averages ---- */

static void store_weight(uint8_t *weights, uint64_t at, double weight, bool is_f64)
{
    float single = (float)weight;
    if (is_f64)
        memcpy(weights + at * sizeof(weight), &weight, sizeof(weight));
    else
        memcpy(weights + at * sizeof(single), &single, sizeof(single));
}

/* By groups of targets; for cuBLAS one group holds all targets. */
static void arrange_weights(uint8_t *out, const struct phema_cuda_job *job, uint64_t group_size)
{
    uint64_t at = 0;
    for (uint64_t first = 0; first < job->n_rows; first += group_size)
        for (uint64_t k = 0; k < job->n_inputs; k++)
            for (uint64_t m = first; m < first + group_size; m++, at++)
                store_weight(out, at, m < job->n_rows ? job->weights[k * job->stride + m] : 0,
                             job->is_f64);
}

/* Copies weights, indices and blocks to the device in one transfer. */
static enum phema_cuda_result send_job(struct phema_cuda_device *device, struct lane *lane,
                                       const struct phema_cuda_job *job, uint64_t group_size,
                                       struct phema_cuda_message *message)
{
    const struct phema_cuda_offsets *offsets = &device->offsets;
    enum phema_cuda_result result = runtime_wait(lane->job_event, message);
    if (result)
        return result;
    arrange_weights(lane->job, job, group_size);
    memcpy(lane->job + (offsets->indices - offsets->weights), job->inputs,
           job->n_inputs * sizeof(*job->inputs));
    memcpy(lane->job + (offsets->blocks - offsets->weights), job->blocks,
           job->n_blocks * sizeof(*job->blocks));
    result = runtime_copy_to_device(lane->memory + offsets->weights, lane->job, offsets->job_bytes,
                                    lane->stream, message);
    return result ? result : runtime_record(lane->job_event, lane->stream, message);
}

/* Adds one panel of inputs after another to the sums, then rounds them. */
static enum phema_cuda_result sum_by_cublas(struct phema_cuda_device *device, struct lane *lane,
                                            const struct phema_cuda_job *job,
                                            const struct runtime_job *average,
                                            struct phema_cuda_message *message)
{
    const struct phema_cuda_offsets *offsets = &device->offsets;
    uint8_t *panel = lane->memory + offsets->panel;
    uint64_t scalar_bytes = job->is_f64 ? sizeof(double) : sizeof(float);
    for (uint64_t k = 0; k < job->n_inputs; k += device->layout.panel_inputs) {
        uint64_t n = job->n_inputs - k;
        n = n < device->layout.panel_inputs ? n : device->layout.panel_inputs;
        struct runtime_product product = {
            .is_f64 = job->is_f64,
            .adds = k > 0,
            .sums = lane->memory + offsets->sums,
            .panel = panel,
            .weights = lane->memory + offsets->weights + k * job->n_rows * scalar_bytes,
            .row_bytes = device->layout.sum_bytes,
            .n_inputs = n,
            .n_rows = job->n_rows,
            .n_numbers = job->n_numbers,
        };
        enum phema_cuda_result result =
            runtime_widen(panel, average, k, n, job->n_numbers, lane->stream, message);
        if (result)
            return result;
        result = runtime_multiply(lane->blas, &product, message);
        if (result)
            return result;
    }
    return runtime_round(average, lane->stream, message);
}

static enum phema_cuda_result average(struct phema_cuda_device *device, uint64_t lane_index,
                                      const struct phema_cuda_job *job,
                                      struct phema_cuda_message *message)
{
    struct lane *lane = &device->lanes[lane_index];
    const struct phema_cuda_offsets *offsets = &device->offsets;
    uint8_t *memory = lane->memory;
    bool uses_blas = job->uses_blas && lane->blas && job->n_inputs > 0;
    struct runtime_job sums = {
        .input = job->input,
        .output = job->output,
        .is_f64 = job->is_f64,
        .saturates = job->saturates,
        .inputs = memory + offsets->inputs,
        .input_bytes = device->layout.input_bytes,
        .indices = (const void *)(memory + offsets->indices),
        .weights = memory + offsets->weights,
        .n_inputs = job->n_inputs,
        .n_rows = job->n_rows,
        .group_size = uses_blas ? job->n_rows : runtime_group_size(job->n_rows),
        .blocks = (const void *)(memory + offsets->blocks),
        .n_blocks = job->n_blocks,
        .rows = memory + offsets->rows,
        .row_bytes = device->layout.row_bytes,
        .counts = (void *)(memory + offsets->counts),
        .sums = memory + offsets->sums,
        .sum_bytes = device->layout.sum_bytes,
    };
    enum phema_cuda_result result = runtime_select_device(device->index, message);
    if (result)
        return result;
    result = send_job(device, lane, job, sums.group_size, message);
    if (result)
        return result;
    result = uses_blas ? sum_by_cublas(device, lane, job, &sums, message)
                       : runtime_average(&sums, lane->stream, message);
    if (result)
        return result;
    return runtime_copy_to_host((uint8_t *)lane->counts, memory + offsets->counts,
                                job->n_rows * job->n_blocks * sizeof(*lane->counts), lane->stream,
                                message);
}

/* ---- The table ---- */

static enum phema_cuda_result factor(int32_t index, double *matrix, uint64_t n,
                                     struct phema_cuda_message *message)
{
    enum phema_cuda_result result = runtime_select_device(index, message);
    return result ? result : runtime_factor(matrix, n, message);
}

/* The only visible symbol: the compiler hides all others by default. */
__attribute__((visibility("default"))) extern const struct phema_cuda_plugin posthoc_ema_cuda;

const struct phema_cuda_plugin posthoc_ema_cuda = {
    .version = PHEMA_CUDA_VERSION,
    .table_bytes = sizeof(struct phema_cuda_plugin),
    .layout_bytes = sizeof(struct phema_cuda_layout),
    .job_bytes = sizeof(struct phema_cuda_job),
    .toolkit = PHEMA_CUDA_TOOLKIT,
    .count = runtime_count,
    .describe = runtime_describe,
    .open = open_device,
    .close = close_device,
    .free_bytes = free_bytes,
    .slots = slots_of,
    .counts = counts_of,
    .feed = feed,
    .average = average,
    .fetch = fetch,
    .wait = wait_for_slot,
    .factor = factor,
};
