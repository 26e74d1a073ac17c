// SPDX-License-Identifier: Apache-2.0
/* runtime.c - the CUDA operations that the plug-in uses (src/gpu/cuda/runtime.h) on host memory, so
 * that every machine has a device. Queued work runs as late as a real device may run it: when it is
 * waited for. Code that does not wait finds unwritten memory, and new memory is filled with a
 * poison value. Tests change this behaviour by variables of the environment. */
#include "runtime.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/environment.h"
#include "kernels.h"

#define POISON 0xA5

enum phema_cuda_result runtime_fail(struct phema_cuda_message *message,
                                    enum phema_cuda_result result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message->text, sizeof(message->text), format, args);
    va_end(args);
    return result;
}

/* ---- Devices ---- */

static _Atomic uint64_t allocated_bytes, n_waits;

static uint64_t total_bytes(void)
{
    return setting("SIM_BYTES", (uint64_t)1 << 30);
}

enum phema_cuda_result runtime_count(int32_t *n, struct phema_cuda_message *message)
{
    if (is_set("SIM_DRIVER", "none"))
        return runtime_fail(message, PHEMA_CUDA_ABSENT, "no NVIDIA driver is installed");
    *n = (int32_t)setting("SIM_DEVICES", 1);
    return *n ? PHEMA_CUDA_OK : runtime_fail(message, PHEMA_CUDA_ABSENT, "there is no CUDA device");
}

enum phema_cuda_result runtime_describe(struct phema_cuda_info *out, int32_t index,
                                        struct phema_cuda_message *message)
{
    enum phema_cuda_result result = runtime_select_device(index, message);
    *out = (struct phema_cuda_info){.name = "memory of the host",
                                    .total_bytes = total_bytes(),
                                    .free_bytes = total_bytes(),
                                    .major = (int32_t)setting("SIM_MAJOR", 9)};
    return result;
}

enum phema_cuda_result runtime_select_device(int32_t index, struct phema_cuda_message *message)
{
    if (index < 0 || index >= (int32_t)setting("SIM_DEVICES", 1))
        return runtime_fail(message, PHEMA_CUDA_FAILED, "no device %d", (int)index);
    return PHEMA_CUDA_OK;
}

enum phema_cuda_result runtime_free_bytes(uint64_t *bytes, struct phema_cuda_message *message)
{
    (void)message;
    uint64_t allocated = atomic_load(&allocated_bytes);
    *bytes = allocated < total_bytes() ? total_bytes() - allocated : 0;
    return PHEMA_CUDA_OK;
}

/* ---- Memory, preceded by its size ---- */

#define HEADER_BYTES ((size_t)PHEMA_CUDA_PAGE)

static uint8_t *allocate(uint64_t bytes)
{
    uint64_t whole = HEADER_BYTES + (bytes + HEADER_BYTES - 1) / HEADER_BYTES * HEADER_BYTES;
    uint8_t *memory = aligned_alloc(HEADER_BYTES, whole);
    if (!memory)
        return NULL;
    memset(memory, POISON, whole);
    memcpy(memory, &bytes, sizeof(bytes));
    return memory + HEADER_BYTES;
}

enum phema_cuda_result runtime_alloc(uint8_t **out, uint64_t bytes,
                                     struct phema_cuda_message *message)
{
    *out = NULL;
    if (bytes > setting("SIM_LARGEST", UINT64_MAX) ||
        atomic_load(&allocated_bytes) + bytes > total_bytes() * setting("SIM_DEVICES", 1) ||
        !(*out = allocate(bytes)))
        return runtime_fail(message, PHEMA_CUDA_MEMORY, "memory of the device: out of memory");
    atomic_fetch_add(&allocated_bytes, bytes);
    atomic_store(&n_waits, 0); /* every run begins with an allocation */
    return PHEMA_CUDA_OK;
}

void runtime_free(uint8_t *memory)
{
    if (!memory)
        return;
    uint64_t bytes;
    memcpy(&bytes, memory - HEADER_BYTES, sizeof(bytes));
    atomic_fetch_sub(&allocated_bytes, bytes);
    free(memory - HEADER_BYTES);
}

enum phema_cuda_result runtime_alloc_host(uint8_t **out, uint64_t bytes,
                                          struct phema_cuda_message *message)
{
    *out = allocate(bytes);
    return *out ? PHEMA_CUDA_OK : runtime_fail(message, PHEMA_CUDA_MEMORY, "out of memory");
}

void runtime_free_host(uint8_t *memory)
{
    if (memory)
        free(memory - HEADER_BYTES);
}

/* ---- Streams: queues of steps ---- */

enum action { COPY, AVERAGE, ROUND, WIDEN, MULTIPLY };

struct step {
    struct step *next;
    enum action action;
    uint8_t *to; /* COPY, WIDEN */
    const uint8_t *from;
    uint64_t bytes;
    struct runtime_job job;
    uint64_t first, n, n_numbers; /* WIDEN */
    struct runtime_product product;
};

struct runtime_stream {
    struct step *first, **end;
    uint64_t n_queued, n_done;
};

struct runtime_event {
    struct runtime_stream *stream; /* NULL: never recorded */
    uint64_t until;
};

static void execute(const struct step *step)
{
    switch (step->action) {
    case COPY:
        memcpy(step->to, step->from, step->bytes);
        break;
    case AVERAGE:
        sim_average(&step->job, is_set("SIM_SUMS", "wrong"));
        break;
    case ROUND:
        sim_round(&step->job);
        break;
    case WIDEN:
        sim_widen(step->to, &step->job, step->first, step->n, step->n_numbers);
        break;
    case MULTIPLY:
        sim_multiply(&step->product);
        break;
    }
}

static void run_until(struct runtime_stream *stream, uint64_t until)
{
    while (stream->n_done < until) {
        struct step *step = stream->first;
        execute(step);
        stream->first = step->next;
        stream->n_done++;
        if (!stream->first)
            stream->end = &stream->first;
        free(step);
    }
}

static enum phema_cuda_result queue(struct runtime_stream *stream, const struct step *given,
                                    struct phema_cuda_message *message)
{
    struct step *step = malloc(sizeof(*step));
    if (!step)
        return runtime_fail(message, PHEMA_CUDA_FAILED, "out of memory");
    *step = *given;
    step->next = NULL;
    *stream->end = step;
    stream->end = &step->next;
    stream->n_queued++;
    if (is_set("SIM_TIME", "now"))
        run_until(stream, stream->n_queued);
    return PHEMA_CUDA_OK;
}

enum phema_cuda_result runtime_stream_open(struct runtime_stream **out,
                                           struct phema_cuda_message *message)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return runtime_fail(message, PHEMA_CUDA_MEMORY, "out of memory");
    (*out)->end = &(*out)->first;
    return PHEMA_CUDA_OK;
}

void runtime_stream_close(struct runtime_stream *stream)
{
    if (stream)
        run_until(stream, stream->n_queued);
    free(stream);
}

enum phema_cuda_result runtime_event_open(struct runtime_event **out,
                                          struct phema_cuda_message *message)
{
    *out = calloc(1, sizeof(**out));
    return *out ? PHEMA_CUDA_OK : runtime_fail(message, PHEMA_CUDA_MEMORY, "out of memory");
}

void runtime_event_close(struct runtime_event *event)
{
    free(event);
}

enum phema_cuda_result runtime_record(struct runtime_event *event, struct runtime_stream *stream,
                                      struct phema_cuda_message *message)
{
    (void)message;
    event->stream = stream;
    event->until = stream->n_queued;
    return PHEMA_CUDA_OK;
}

enum phema_cuda_result runtime_wait(struct runtime_event *event, struct phema_cuda_message *message)
{
    if (event->stream)
        run_until(event->stream, event->until);
    if (atomic_fetch_add(&n_waits, 1) + 1 == setting("SIM_BREAKS_AT", 0))
        return runtime_fail(message, PHEMA_CUDA_FAILED,
                            "adding up on the device: an illegal memory access was encountered");
    return PHEMA_CUDA_OK;
}

enum phema_cuda_result runtime_copy_to_device(uint8_t *device, const uint8_t *host, uint64_t bytes,
                                              struct runtime_stream *stream,
                                              struct phema_cuda_message *message)
{
    return queue(stream, &(struct step){.action = COPY, .to = device, .from = host, .bytes = bytes},
                 message);
}

enum phema_cuda_result runtime_copy_to_host(uint8_t *host, const uint8_t *device, uint64_t bytes,
                                            struct runtime_stream *stream,
                                            struct phema_cuda_message *message)
{
    return queue(stream, &(struct step){.action = COPY, .to = host, .from = device, .bytes = bytes},
                 message);
}

enum phema_cuda_result runtime_average(const struct runtime_job *job, struct runtime_stream *stream,
                                       struct phema_cuda_message *message)
{
    return queue(stream, &(struct step){.action = AVERAGE, .job = *job}, message);
}

enum phema_cuda_result runtime_round(const struct runtime_job *job, struct runtime_stream *stream,
                                     struct phema_cuda_message *message)
{
    return queue(stream, &(struct step){.action = ROUND, .job = *job}, message);
}

enum phema_cuda_result runtime_widen(uint8_t *panel, const struct runtime_job *job, uint64_t first,
                                     uint64_t n, uint64_t n_numbers, struct runtime_stream *stream,
                                     struct phema_cuda_message *message)
{
    struct step step = {
        .action = WIDEN, .to = panel, .job = *job, .first = first, .n = n, .n_numbers = n_numbers};
    return queue(stream, &step, message);
}

/* ---- Libraries ---- */

struct runtime_blas {
    struct runtime_stream *stream;
};

enum phema_cuda_result runtime_blas_open(struct runtime_blas **out, struct runtime_stream *stream,
                                         uint8_t *work, struct phema_cuda_message *message)
{
    memset(work, POISON, PHEMA_CUDA_BLAS_BYTES); /* faults if the workspace is smaller */
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return runtime_fail(message, PHEMA_CUDA_MEMORY, "out of memory");
    (*out)->stream = stream;
    return PHEMA_CUDA_OK;
}

void runtime_blas_close(struct runtime_blas *blas)
{
    free(blas);
}

enum phema_cuda_result runtime_multiply(struct runtime_blas *blas,
                                        const struct runtime_product *product,
                                        struct phema_cuda_message *message)
{
    return queue(blas->stream, &(struct step){.action = MULTIPLY, .product = *product}, message);
}

enum phema_cuda_result runtime_factor(double *matrix, uint64_t n,
                                      struct phema_cuda_message *message)
{
    for (uint64_t j = 0; j < n; j++) {
        for (uint64_t i = j; i < n; i++) {
            double sum = matrix[i * n + j];
            for (uint64_t k = 0; k < j; k++)
                sum -= matrix[i * n + k] * matrix[j * n + k];
            if (i == j && !(sum > 0))
                return runtime_fail(message, PHEMA_CUDA_NO, "pivot %llu is not positive",
                                    (unsigned long long)i + 1);
            matrix[i * n + j] = i == j ? sqrt(sum) : sum / matrix[j * n + j];
        }
    }
    return PHEMA_CUDA_OK;
}
