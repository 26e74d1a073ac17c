// SPDX-License-Identifier: Apache-2.0
/* cudart.c - the CUDA runtime without a device: the functions that the plug-in and the host code of
 * nvcc call. Kernels are their own PTX, interpreted. Queued work is executed as late as a device
 * may execute it: when something waits for it. Wrong use is an error with a sentence, which stays,
 * as after a fault of a device. The environment variables are those of tests/sim/runtime.c. */
#include "cudart.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/environment.h"
#include "phema/strbuf.h"
#include "ptx.h"

#define POISON      0xA5
#define MAX_KERNELS 64

/* ---- Errors ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char report[2048];
static _Thread_local cudaError_t last_error;
static _Thread_local int current_device;

void cudart_report(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)pthread_mutex_lock(&lock);
    if (!report[0]) {
        (void)vsnprintf(report, sizeof(report), format, args);
        (void)fprintf(stderr, "CUDA without a device: %s\n", report);
    }
    (void)pthread_mutex_unlock(&lock);
    va_end(args);
}

static cudaError_t fail(cudaError_t error)
{
    last_error = error;
    return error;
}

static cudaError_t fail_with(const struct phema_error *err)
{
    cudart_report("%s", err->message);
    return fail(cudaErrorLaunchFailure);
}

static cudaError_t sticky_error(void)
{
    (void)pthread_mutex_lock(&lock);
    bool has_failed = report[0] != 0;
    (void)pthread_mutex_unlock(&lock);
    return has_failed ? fail(cudaErrorLaunchFailure) : cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaErrorLaunchFailure:
        return report;
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    default:
        return "invalid use";
    }
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/* ---- Devices ---- */

static uint64_t total_bytes(void)
{
    return setting("SIM_BYTES", (uint64_t)1 << 30);
}

int cudart_current_device(void)
{
    return current_device;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = is_set("SIM_DRIVER", "none") ? 0 : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = (int)setting("SIM_DEVICES", 1);
    return is_set("SIM_DRIVER", "none") ? fail(cudaErrorInsufficientDriver) : cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || (uint64_t)device >= setting("SIM_DEVICES", 1))
        return fail(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    (void)device;
    *out = (struct cudaDeviceProp){.name = "memory of the host",
                                   .major = (int)setting("SIM_MAJOR", 9)};
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *n_free, size_t *total)
{
    uint64_t allocated = ptx_allocated_bytes(current_device);
    *total = total_bytes();
    *n_free = allocated < *total ? *total - allocated : 0;
    return cudaSuccess;
}

/* ---- Memory ---- */

struct host_allocation {
    struct host_allocation *next;
    uint8_t *start;
    size_t bytes;
};

static struct host_allocation *host_allocations;
static _Atomic uint64_t n_waits;

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    struct phema_error err = {0};
    if (bytes > setting("SIM_LARGEST", UINT64_MAX) ||
        bytes + ptx_allocated_bytes(current_device) > total_bytes() ||
        ptx_alloc((uint8_t **)out, current_device, bytes, &err))
        return fail(cudaErrorMemoryAllocation);
    atomic_store(&n_waits, 0); /* every run begins with an allocation */
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    struct phema_error err = {0};
    return memory && ptx_free(memory, &err) ? fail_with(&err) : cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    struct host_allocation *allocation = calloc(1, sizeof(*allocation));
    uint8_t *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!allocation || !memory || flags != cudaHostAllocPortable) {
        free(allocation);
        free(memory);
        return fail(cudaErrorMemoryAllocation);
    }
    memset(memory, POISON, bytes);
    (void)pthread_mutex_lock(&lock);
    *allocation = (struct host_allocation){host_allocations, memory, bytes};
    host_allocations = allocation;
    (void)pthread_mutex_unlock(&lock);
    *out = memory;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    (void)pthread_mutex_lock(&lock);
    struct host_allocation **at = &host_allocations;
    while (*at && (*at)->start != memory)
        at = &(*at)->next;
    struct host_allocation *found = *at;
    if (found)
        *at = found->next;
    (void)pthread_mutex_unlock(&lock);
    if (!found)
        return fail(cudaErrorInvalidValue);
    free(found->start);
    free(found);
    return cudaSuccess;
}

/* The device accesses these bytes directly. */
static bool is_pinned(const uint8_t *start, size_t bytes)
{
    (void)pthread_mutex_lock(&lock);
    const struct host_allocation *at = host_allocations;
    while (at && (start < at->start || start + bytes > at->start + at->bytes))
        at = at->next;
    (void)pthread_mutex_unlock(&lock);
    return at != NULL;
}

/* ---- Streams ---- */

struct step {
    struct step *next;
    cudart_work *work;
    uint8_t arguments[];
};

struct CUstream_st {
    struct step *first, **end;
    uint64_t n_queued, n_done;
    int device;
};

struct CUevent_st {
    cudaStream_t stream; /* NULL: never recorded */
    uint64_t until;
    int device;
};

static cudaError_t run_until(cudaStream_t stream, uint64_t until)
{
    while (stream->n_done < until) {
        struct step *step = stream->first;
        struct phema_error err = {0};
        if (sticky_error() == cudaSuccess && step->work(step->arguments, stream->device, &err))
            (void)fail_with(&err);
        stream->first = step->next;
        stream->n_done++;
        if (!stream->first)
            stream->end = &stream->first;
        free(step);
    }
    return sticky_error();
}

cudaError_t cudart_queue(cudaStream_t stream, cudart_work *work, const void *arguments,
                         size_t bytes)
{
    struct step *step = malloc(sizeof(*step) + bytes);
    if (!step)
        return fail(cudaErrorMemoryAllocation);
    step->next = NULL;
    step->work = work;
    memcpy(step->arguments, arguments, bytes);
    *stream->end = step;
    stream->end = &step->next;
    stream->n_queued++;
    return is_set("SIM_TIME", "now") ? run_until(stream, stream->n_queued) : sticky_error();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    cudaStream_t stream = calloc(1, sizeof(*stream));
    if (!stream || flags != cudaStreamNonBlocking)
        return fail(cudaErrorInvalidValue);
    stream->end = &stream->first;
    stream->device = current_device;
    *out = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return run_until(stream, stream->n_queued);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t error = run_until(stream, stream->n_queued);
    free(stream);
    return error;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    cudaEvent_t event = calloc(1, sizeof(*event));
    if (!event || flags != (cudaEventBlockingSync | cudaEventDisableTiming))
        return fail(cudaErrorInvalidValue);
    event->device = current_device;
    *out = event;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (event->device != stream->device) {
        cudart_report("an event of device %d is recorded on a stream of device %d", event->device,
                      stream->device);
        return fail(cudaErrorLaunchFailure);
    }
    event->stream = stream;
    event->until = stream->n_queued;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error = event->stream ? run_until(event->stream, event->until) : cudaSuccess;
    if (!error && atomic_fetch_add(&n_waits, 1) + 1 == setting("SIM_BREAKS_AT", 0))
        return fail(cudaErrorIllegalAddress);
    return error;
}

/* ---- Copies ---- */

struct copy {
    uint8_t *to;
    const uint8_t *from;
    size_t bytes;
    enum cudaMemcpyKind kind;
};

static enum phema_status copy_bytes(const void *arguments, int device, struct phema_error *err)
{
    const struct copy *copy = arguments;
    uint8_t *view = NULL;
    bool to_device = copy->kind == cudaMemcpyHostToDevice;
    const void *address = to_device ? copy->to : copy->from;
    enum phema_status status = ptx_view(&view, device, address, copy->bytes, !to_device, err);
    if (status)
        return phema_fail_in(err, status, to_device ? "copy to the device" : "copy to the host");
    if (to_device) {
        memcpy(view, copy->from, copy->bytes);
        ptx_mark_written(copy->to, copy->bytes);
        return PHEMA_OK;
    }
    memcpy(copy->to, view, copy->bytes);
    if (is_set("SIM_SUMS", "wrong") && copy->bytes)
        copy->to[0] ^= 1;
    return PHEMA_OK;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    struct copy copy = {to, from, bytes, kind};
    const void *host = kind == cudaMemcpyHostToDevice ? from : to;
    if (!is_pinned(host, bytes)) {
        cudart_report("copies %zu bytes of host memory that the device cannot access", bytes);
        return fail(cudaErrorLaunchFailure);
    }
    return cudart_queue(stream, copy_bytes, &copy, sizeof(copy));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct copy copy = {to, from, bytes, kind};
    struct phema_error err = {0};
    return copy_bytes(&copy, current_device, &err) ? fail_with(&err) : cudaSuccess;
}

/* ---- Kernels ---- */

static struct {
    const void *host_function;
    const char *name;
} kernels[MAX_KERNELS];
static size_t n_kernels;
static struct ptx_module *module;
static pthread_once_t module_once = PTHREAD_ONCE_INIT;

static void load_module(void)
{
    struct phema_error err = {0};
    struct phema_strbuf text = {0};
    const char *other = getenv("PTX_FILE"), *path = other ? other : PTX_FILE;
    FILE *file = fopen(path, "rb");
    char part[65536];
    for (size_t n; file && (n = fread(part, 1, sizeof(part), file)) > 0;)
        phema_strbuf_append(&text, part, n);
    if (!file || phema_strbuf_check(&text, &err) || !text.data)
        cudart_report("%s cannot be read", path);
    else if (ptx_module_parse(&module, text.data, &err))
        cudart_report("%s: %s", path, err.message);
    if (file)
        (void)fclose(file);
    phema_strbuf_clear(&text);
}

static __attribute__((destructor)) void unload_module(void)
{
    if (getenv("PTX_STATISTICS"))
        (void)fprintf(stderr, "%llu instructions of threads\n", (unsigned long long)ptx_executed());
    ptx_module_free(module);
}

struct launch {
    const char *kernel;
    dim3 grid, block;
    uint8_t *arguments;
};

static enum phema_status run_launch(const void *arguments, int device, struct phema_error *err)
{
    struct launch launch;
    memcpy(&launch, arguments, sizeof(launch));
    struct ptx_launch interpreted = {.kernel = launch.kernel,
                                     .grid = {launch.grid.x, launch.grid.y, launch.grid.z},
                                     .block = {launch.block.x, launch.block.y, launch.block.z},
                                     .arguments = launch.arguments,
                                     .device = device};
    enum phema_status status = ptx_launch(module, &interpreted, err);
    free(launch.arguments);
    return status;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    struct launch launch = {.grid = grid, .block = block};
    struct phema_error err = {0};
    (void)pthread_once(&module_once, load_module);
    for (size_t i = 0; i < n_kernels; i++)
        if (kernels[i].host_function == function)
            launch.kernel = kernels[i].name;
    if (!module || !launch.kernel || shared_bytes || !stream || stream->device != current_device) {
        cudart_report(
            "a launch of %s: an unregistered kernel, dynamic shared memory, no stream or a "
            "stream of another device",
            launch.kernel ? launch.kernel : "?");
        return fail(cudaErrorLaunchFailure);
    }
    if (ptx_pack_arguments(&launch.arguments, module, launch.kernel, arguments, &err))
        return fail_with(&err);
    return cudart_queue(stream, run_launch, &launch, sizeof(launch));
}

/* ---- What the host code of nvcc calls. From CUDA 13 on it asks for a kernel first. ---- */

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                            const char *name, int thread_limit, uint3 *tid, uint3 *bid, dim3 *block,
                            dim3 *grid, int *warp);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream);

static void *registered;

void **__cudaRegisterFatBinary(void *binary)
{
    registered = binary;
    return &registered;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 0;
}

void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                            const char *name, int thread_limit, uint3 *tid, uint3 *bid, dim3 *block,
                            dim3 *grid, int *warp)
{
    (void)handle, (void)device_function, (void)thread_limit, (void)tid, (void)bid, (void)block;
    (void)grid, (void)warp;
    if (n_kernels < MAX_KERNELS) {
        kernels[n_kernels].host_function = host_function;
        kernels[n_kernels++].name = name;
    }
}

static _Thread_local struct {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
} configuration;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared_bytes = shared_bytes;
    configuration.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared_bytes = configuration.shared_bytes;
    memcpy(stream, &configuration.stream, sizeof(configuration.stream));
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *function)
{
    memcpy(out, &function, sizeof(function));
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream)
{
    const void *function;
    memcpy(&function, &kernel, sizeof(function));
    return cudaLaunchKernel(function, grid, block, arguments, shared_bytes, stream);
}
