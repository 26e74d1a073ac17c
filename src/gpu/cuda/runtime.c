// SPDX-License-Identifier: Apache-2.0
/* runtime.c - calls of the CUDA runtime, with messages. Kernels are in kernels.cu. */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>

enum phema_cuda_result runtime_fail(struct phema_cuda_message *message,
                                    enum phema_cuda_result result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message->text, sizeof(message->text), format, args);
    va_end(args);
    return result;
}

/* Out of memory has its own result: the caller then tries a smaller layout. */
static enum phema_cuda_result check(cudaError_t error, const char *doing,
                                    struct phema_cuda_message *message)
{
    if (error == cudaSuccess)
        return PHEMA_CUDA_OK;
    (void)cudaGetLastError(); /* else the next call would report it again */
    return runtime_fail(message,
                        error == cudaErrorMemoryAllocation ? PHEMA_CUDA_MEMORY : PHEMA_CUDA_FAILED,
                        "%s: %s", doing, cudaGetErrorString(error));
}

static enum phema_cuda_result fail_driver(struct phema_cuda_message *message)
{
    int known = 0;
    (void)cudaDriverGetVersion(&known);
    if (known == 0)
        return runtime_fail(message, PHEMA_CUDA_ABSENT, "no NVIDIA driver is installed");
    return runtime_fail(message, PHEMA_CUDA_ABSENT,
                        "the NVIDIA driver knows CUDA up to %d.%d, and the module was made with %s",
                        known / 1000, known % 1000 / 10, PHEMA_CUDA_TOOLKIT);
}

enum phema_cuda_result runtime_count(int32_t *n, struct phema_cuda_message *message)
{
    int found = 0;
    cudaError_t error = cudaGetDeviceCount(&found);
    if (error == cudaErrorInsufficientDriver)
        return fail_driver(message);
    if (error == cudaErrorNoDevice || (error == cudaSuccess && found == 0))
        return runtime_fail(message, PHEMA_CUDA_ABSENT, "there is no CUDA device");
    *n = found;
    return check(error, "CUDA does not start", message);
}

enum phema_cuda_result runtime_describe(struct phema_cuda_info *out, int32_t index,
                                        struct phema_cuda_message *message)
{
    enum phema_cuda_result result = runtime_select_device(index, message);
    if (result)
        return result;
    struct cudaDeviceProp properties;
    result =
        check(cudaGetDeviceProperties(&properties, index), "the device does not answer", message);
    if (result)
        return result;
    size_t n_free = 0, total = 0;
    result = check(cudaMemGetInfo(&n_free, &total), "the device does not answer", message);
    if (result)
        return result;
    *out = (struct phema_cuda_info){.total_bytes = total,
                                    .free_bytes = n_free,
                                    .major = properties.major,
                                    .minor = properties.minor};
    size_t size = 0;
    for (; size + 1 < sizeof(out->name) && properties.name[size]; size++)
        out->name[size] = properties.name[size];
    return PHEMA_CUDA_OK;
}

enum phema_cuda_result runtime_select_device(int32_t index, struct phema_cuda_message *message)
{
    return check(cudaSetDevice(index), "the device cannot be used", message);
}

enum phema_cuda_result runtime_free_bytes(uint64_t *bytes, struct phema_cuda_message *message)
{
    size_t n_free = 0, total = 0;
    enum phema_cuda_result result =
        check(cudaMemGetInfo(&n_free, &total), "the device does not answer", message);
    *bytes = n_free;
    return result;
}

/* ---- Memory ---- */

enum phema_cuda_result runtime_alloc(uint8_t **out, uint64_t bytes,
                                     struct phema_cuda_message *message)
{
    void *memory = NULL;
    enum phema_cuda_result result =
        check(cudaMalloc(&memory, bytes), "memory of the device", message);
    *out = result ? NULL : memory;
    return result;
}

void runtime_free(uint8_t *memory)
{
    (void)cudaFree(memory);
}

enum phema_cuda_result runtime_alloc_host(uint8_t **out, uint64_t bytes,
                                          struct phema_cuda_message *message)
{
    void *memory = NULL;
    /* portable: any thread may use a lane, whatever device the thread used before */
    enum phema_cuda_result result = check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable),
                                          "memory that the device can read", message);
    *out = result ? NULL : memory;
    return result;
}

void runtime_free_host(uint8_t *memory)
{
    if (memory)
        (void)cudaFreeHost(memory);
}

/* ---- Streams ---- */

enum phema_cuda_result runtime_stream_open(struct runtime_stream **out,
                                           struct phema_cuda_message *message)
{
    cudaStream_t stream = NULL;
    enum phema_cuda_result result =
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream", message);
    *out = (struct runtime_stream *)stream;
    return result;
}

void runtime_stream_close(struct runtime_stream *stream)
{
    if (!stream)
        return;
    (void)cudaStreamSynchronize((cudaStream_t)stream);
    (void)cudaStreamDestroy((cudaStream_t)stream);
}

enum phema_cuda_result runtime_event_open(struct runtime_event **out,
                                          struct phema_cuda_message *message)
{
    cudaEvent_t event = NULL;
    /* waiting threads sleep: spinning ones would take processor time from reading files */
    enum phema_cuda_result result =
        check(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming),
              "an event", message);
    *out = (struct runtime_event *)event;
    return result;
}

void runtime_event_close(struct runtime_event *event)
{
    if (event)
        (void)cudaEventDestroy((cudaEvent_t)event);
}

enum phema_cuda_result runtime_copy_to_device(uint8_t *device, const uint8_t *host, uint64_t bytes,
                                              struct runtime_stream *stream,
                                              struct phema_cuda_message *message)
{
    return check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, (cudaStream_t)stream),
                 "copying to the device", message);
}

enum phema_cuda_result runtime_copy_to_host(uint8_t *host, const uint8_t *device, uint64_t bytes,
                                            struct runtime_stream *stream,
                                            struct phema_cuda_message *message)
{
    return check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, (cudaStream_t)stream),
                 "copying from the device", message);
}

enum phema_cuda_result runtime_record(struct runtime_event *event, struct runtime_stream *stream,
                                      struct phema_cuda_message *message)
{
    return check(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream), "recording an event",
                 message);
}

/* Reports errors of kernels and copies that were queued earlier. */
enum phema_cuda_result runtime_wait(struct runtime_event *event, struct phema_cuda_message *message)
{
    return check(cudaEventSynchronize((cudaEvent_t)event), "adding up on the device", message);
}
