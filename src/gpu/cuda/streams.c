// SPDX-License-Identifier: Apache-2.0
/* streams.c - see streams.h. A lane has one stream, so that what it queues is done in that order;
 * lanes run beside each other, and while one computes or copies back another one is fed. An event
 * for each slot tells when the device has let go of it, and one more when a job was copied. */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

#include "runtime.h"

struct stream {
    struct runtime_stream *stream;
    struct runtime_event **slot_events; /* [n_slots] */
    bool *is_lent;                      /* [n_slots] to the device: not waited for yet */
    struct runtime_event *job_event;
    struct runtime_blas *blas; /* or NULL */
    uint8_t *memory;           /* on the device */
    uint8_t *slots;            /* in the host's memory, and behind them: */
    uint8_t *job;              /* weights, indices, blocks as they lie on the device */
    struct phema_cuda_counts *counts;
};

struct phema_cuda_device {
    int32_t index;
    struct phema_cuda_layout layout;
    struct phema_cuda_places places;
    uint8_t *memory, *host; /* of all lanes */
    struct stream *lanes;
};

/* ---- Opening ---- */

static enum phema_cuda_result open_lane(struct stream *lane, const struct phema_cuda_device *device,
                                        struct phema_cuda_message *message)
{
    const struct phema_cuda_layout *layout = &device->layout;
    lane->slot_events = calloc(layout->n_slots, sizeof(struct runtime_event *));
    lane->is_lent = calloc(layout->n_slots, sizeof(*lane->is_lent));
    if (!lane->slot_events || !lane->is_lent)
        return runtime_fail(message, PHEMA_CUDA_MEMORY, "out of memory for a lane");
    enum phema_cuda_result result = runtime_stream_open(&lane->stream, message);
    if (!result)
        result = runtime_event_open(&lane->job_event, message);
    for (uint64_t s = 0; s < layout->n_slots && !result; s++)
        result = runtime_event_open(&lane->slot_events[s], message);
    if (!result && layout->panel_inputs)
        result = runtime_blas_open(&lane->blas, lane->stream, lane->memory + device->places.blas,
                                   message);
    return result;
}

static enum phema_cuda_result open_lanes(struct phema_cuda_device *device,
                                         struct phema_cuda_message *message)
{
    const struct phema_cuda_layout *layout = &device->layout;
    uint64_t host_bytes = phema_cuda_host_bytes(layout);
    enum phema_cuda_result result =
        runtime_take(&device->memory, layout->n_lanes * device->places.bytes, message);
    if (!result)
        result = runtime_take_host(&device->host, layout->n_lanes * host_bytes, message);
    for (uint64_t i = 0; i < layout->n_lanes && !result; i++) {
        struct stream *lane = &device->lanes[i];
        lane->memory = device->memory + i * device->places.bytes;
        lane->slots = device->host + i * host_bytes;
        lane->job = lane->slots + layout->n_slots * layout->slot_bytes;
        lane->counts = (void *)(lane->job + device->places.job_bytes);
        result = open_lane(lane, device, message);
    }
    return result;
}

enum phema_cuda_result streams_open(struct phema_cuda_device **out, int32_t index,
                                    const struct phema_cuda_layout *layout,
                                    struct phema_cuda_message *message)
{
    enum phema_cuda_result result = runtime_use(index, message);
    if (result)
        return result;
    struct phema_cuda_device *device = calloc(1, sizeof(*device));
    struct stream *lanes = calloc(layout->n_lanes, sizeof(*lanes));
    if (!device || !lanes) {
        free(device);
        free(lanes);
        return runtime_fail(message, PHEMA_CUDA_MEMORY, "out of memory for lanes");
    }
    device->index = index;
    device->layout = *layout;
    device->places = phema_cuda_places(layout);
    device->lanes = lanes;
    result = open_lanes(device, message);
    if (result)
        streams_close(device);
    else
        *out = device;
    return result;
}

static void close_lane(const struct phema_cuda_device *device, struct stream *lane)
{
    runtime_stream_close(lane->stream);
    runtime_blas_close(lane->blas);
    runtime_event_close(lane->job_event);
    for (uint64_t s = 0; lane->slot_events && s < device->layout.n_slots; s++)
        runtime_event_close(lane->slot_events[s]);
    free(lane->slot_events);
    free(lane->is_lent);
}

void streams_close(struct phema_cuda_device *device)
{
    struct phema_cuda_message message;
    if (!device)
        return;
    /* what is given back is the device's in use: where that fails, it is gone with all it had */
    if (runtime_use(device->index, &message) == PHEMA_CUDA_OK) {
        for (uint64_t i = 0; i < device->layout.n_lanes; i++)
            close_lane(device, &device->lanes[i]);
        runtime_give(device->memory);
        runtime_give_host(device->host);
    }
    free(device->lanes);
    free(device);
}

/* ---- Looking ---- */

enum phema_cuda_result streams_free_bytes(uint64_t *bytes, struct phema_cuda_device *device,
                                          struct phema_cuda_message *message)
{
    enum phema_cuda_result result = runtime_use(device->index, message);
    return result ? result : runtime_free_bytes(bytes, message);
}

uint8_t *streams_slots(struct phema_cuda_device *device, uint64_t lane)
{
    return device->lanes[lane].slots;
}

const struct phema_cuda_counts *streams_counts(struct phema_cuda_device *device, uint64_t lane)
{
    return device->lanes[lane].counts;
}

/* ---- Slots ---- */

static enum phema_cuda_result lend(struct stream *lane, uint64_t slot,
                                   struct phema_cuda_message *message)
{
    enum phema_cuda_result result = runtime_record(lane->slot_events[slot], lane->stream, message);
    lane->is_lent[slot] = !result;
    return result;
}

enum phema_cuda_result streams_feed(struct phema_cuda_device *device, uint64_t lane_index,
                                    uint64_t slot, const uint8_t *from, uint64_t bytes,
                                    uint64_t input, struct phema_cuda_message *message)
{
    struct stream *lane = &device->lanes[lane_index];
    uint8_t *to = lane->memory + device->places.inputs + input * device->layout.input_bytes;
    enum phema_cuda_result result = runtime_use(device->index, message);
    if (!result)
        result = runtime_send(to, from, bytes, lane->stream, message);
    return result ? result : lend(lane, slot, message);
}

enum phema_cuda_result streams_fetch(struct phema_cuda_device *device, uint64_t lane_index,
                                     uint64_t row, uint64_t bytes, uint64_t slot,
                                     struct phema_cuda_message *message)
{
    struct stream *lane = &device->lanes[lane_index];
    const uint8_t *from = lane->memory + device->places.rows + row * device->layout.row_bytes;
    uint8_t *to = lane->slots + slot * device->layout.slot_bytes;
    enum phema_cuda_result result = runtime_use(device->index, message);
    if (!result)
        result = runtime_receive(to, from, bytes, lane->stream, message);
    return result ? result : lend(lane, slot, message);
}

enum phema_cuda_result streams_wait(struct phema_cuda_device *device, uint64_t lane_index,
                                    uint64_t slot, struct phema_cuda_message *message)
{
    struct stream *lane = &device->lanes[lane_index];
    if (!lane->is_lent[slot])
        return PHEMA_CUDA_OK;
    enum phema_cuda_result result = runtime_use(device->index, message);
    if (!result)
        result = runtime_wait(lane->slot_events[slot], message);
    lane->is_lent[slot] = result != PHEMA_CUDA_OK;
    return result;
}

/* ---- Averages ---- */

static void put_weight(uint8_t *weights, uint64_t at, double weight, bool is_f64)
{
    float single = (float)weight;
    if (is_f64)
        memcpy(weights + at * sizeof(weight), &weight, sizeof(weight));
    else
        memcpy(weights + at * sizeof(single), &single, sizeof(single));
}

/* Group by group of targets; for cuBLAS as one group that has them all. */
static void lay_out_weights(uint8_t *out, const struct phema_cuda_job *job, uint64_t n_grouped)
{
    uint64_t at = 0;
    for (uint64_t first = 0; first < job->n_rows; first += n_grouped)
        for (uint64_t k = 0; k < job->n_inputs; k++)
            for (uint64_t m = first; m < first + n_grouped; m++, at++)
                put_weight(out, at, m < job->n_rows ? job->weights[k * job->stride + m] : 0,
                           job->is_f64);
}

/* Weights, indices and blocks as they will lie on the device, sent as one. */
static enum phema_cuda_result send_job(struct phema_cuda_device *device, struct stream *lane,
                                       const struct phema_cuda_job *job, uint64_t n_grouped,
                                       struct phema_cuda_message *message)
{
    const struct phema_cuda_places *places = &device->places;
    enum phema_cuda_result result = runtime_wait(lane->job_event, message);
    if (result)
        return result;
    lay_out_weights(lane->job, job, n_grouped);
    memcpy(lane->job + (places->indices - places->weights), job->inputs,
           job->n_inputs * sizeof(*job->inputs));
    memcpy(lane->job + (places->blocks - places->weights), job->blocks,
           job->n_blocks * sizeof(*job->blocks));
    result = runtime_send(lane->memory + places->weights, lane->job, places->job_bytes,
                          lane->stream, message);
    return result ? result : runtime_record(lane->job_event, lane->stream, message);
}

/* Panel after panel of inputs, and the sums rounded when all are in them. */
static enum phema_cuda_result multiply(struct phema_cuda_device *device, struct stream *lane,
                                       const struct phema_cuda_job *job,
                                       const struct runtime_job *average,
                                       struct phema_cuda_message *message)
{
    const struct phema_cuda_places *places = &device->places;
    uint8_t *panel = lane->memory + places->panel;
    uint64_t scalar_bytes = job->is_f64 ? sizeof(double) : sizeof(float);
    enum phema_cuda_result result = PHEMA_CUDA_OK;
    for (uint64_t k = 0; k < job->n_inputs && !result; k += device->layout.panel_inputs) {
        uint64_t n = job->n_inputs - k;
        n = n < device->layout.panel_inputs ? n : device->layout.panel_inputs;
        struct runtime_product product = {
            .is_f64 = job->is_f64,
            .adds = k > 0,
            .sums = lane->memory + places->sums,
            .panel = panel,
            .weights = lane->memory + places->weights + k * job->n_rows * scalar_bytes,
            .row_bytes = device->layout.sum_bytes,
            .n_inputs = n,
            .n_rows = job->n_rows,
            .n_numbers = job->n_numbers,
        };
        result = runtime_widen(panel, average, k, n, job->n_numbers, lane->stream, message);
        if (!result)
            result = runtime_multiply(lane->blas, &product, message);
    }
    return result ? result : runtime_round(average, lane->stream, message);
}

enum phema_cuda_result streams_average(struct phema_cuda_device *device, uint64_t lane_index,
                                       const struct phema_cuda_job *job,
                                       struct phema_cuda_message *message)
{
    struct stream *lane = &device->lanes[lane_index];
    const struct phema_cuda_places *places = &device->places;
    uint8_t *memory = lane->memory;
    bool uses_blas = job->uses_blas && lane->blas && job->n_inputs > 0;
    struct runtime_job average = {
        .input = job->input,
        .output = job->output,
        .is_f64 = job->is_f64,
        .saturates = job->saturates,
        .inputs = memory + places->inputs,
        .input_bytes = device->layout.input_bytes,
        .indices = (const void *)(memory + places->indices),
        .weights = memory + places->weights,
        .n_inputs = job->n_inputs,
        .n_rows = job->n_rows,
        .n_grouped = uses_blas ? job->n_rows : runtime_grouped(job->n_rows),
        .blocks = (const void *)(memory + places->blocks),
        .n_blocks = job->n_blocks,
        .rows = memory + places->rows,
        .row_bytes = device->layout.row_bytes,
        .counts = (void *)(memory + places->counts),
        .sums = memory + places->sums,
        .sum_bytes = device->layout.sum_bytes,
    };
    enum phema_cuda_result result = runtime_use(device->index, message);
    if (!result)
        result = send_job(device, lane, job, average.n_grouped, message);
    if (!result)
        result = uses_blas ? multiply(device, lane, job, &average, message)
                           : runtime_average(&average, lane->stream, message);
    if (!result)
        result = runtime_receive((uint8_t *)lane->counts, memory + places->counts,
                                 job->n_rows * job->n_blocks * sizeof(*lane->counts), lane->stream,
                                 message);
    return result;
}
