// SPDX-License-Identifier: Apache-2.0
/* gpus.c - the GPUs of a run, their lanes, and Cholesky for the solver, all through the plug-in. */
#include "phema/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

struct gpu {
    int32_t index;
    struct phema_cuda_info info;       /* at opening */
    struct phema_cuda_device *started; /* with its lanes, or NULL */
};

struct phema_gpus {
    const struct phema_cuda_plugin *plugin;
    struct gpu items[PHEMA_MAX_GPUS];
    unsigned n;
    uint64_t limit;           /* of each */
    uint64_t allocated_bytes; /* of all, by lanes */
    char description[320];
};

static const char *escape_message(struct phema_name_buffer *buffer,
                                  const struct phema_cuda_message *message)
{
    return phema_name_escape(buffer, message->text, strnlen(message->text, sizeof(message->text)));
}

static enum phema_status fail_gpu(const struct gpu *gpu, enum phema_status status,
                                  const struct phema_cuda_message *message, struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(err, status, "cuda:%d: %s", (int)gpu->index, escape_message(&shown, message));
}

bool phema_gpu_may_exist(void)
{
    /* device files of the drivers: NVIDIA's on Linux, on WSL, on Jetson */
    static const char *const files[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (access(files[i], F_OK) == 0)
            return true;
    return false;
}

/* ---- Opening ---- */

static enum phema_status resolve_indices(struct phema_gpus *gpus,
                                         const struct phema_gpu_options *options,
                                         struct phema_error *err)
{
    int32_t n_found = 0;
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = gpus->plugin->count(&n_found, &message);
    if (result) {
        struct phema_name_buffer shown;
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s", escape_message(&shown, &message));
    }
    bool uses_all = options->uses_all;
    size_t n = uses_all ? (size_t)n_found : options->n ? options->n : 1;
    for (size_t i = 0; i < n && i < PHEMA_MAX_GPUS; i++) {
        int32_t index = uses_all ? (int32_t)i : options->n ? options->indices[i] : 0;
        if (index >= n_found)
            return phema_fail(err, PHEMA_ERR_RESOURCE,
                              "cuda:%d: there is no such device, the last one is cuda:%d",
                              (int)index, (int)n_found - 1);
        gpus->items[gpus->n++].index = index;
    }
    return PHEMA_OK;
}

/* Returns how many processes take the same GPU as this one. */
static unsigned deal(struct phema_gpus *gpus, const struct phema_gpu_options *options)
{
    if (!options->local_size || !gpus->n)
        return 1;
    unsigned turn = options->local_rank % gpus->n;
    unsigned n_sharing = (options->local_size - turn + gpus->n - 1) / gpus->n;
    gpus->items[0] = gpus->items[turn];
    gpus->n = 1;
    return n_sharing;
}

static enum phema_status describe(struct phema_gpus *gpus, struct gpu *gpu, struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    if (gpus->plugin->describe(&gpu->info, gpu->index, &message))
        return fail_gpu(gpu, PHEMA_ERR_RESOURCE, &message, err);
    gpu->info.name[sizeof(gpu->info.name) - 1] = '\0';
    if (gpu->info.major < PHEMA_CUDA_LEAST_MAJOR)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "cuda:%d: %s has compute capability %d.%d, and at least %d.0 is needed",
                          (int)gpu->index, gpu->info.name, (int)gpu->info.major,
                          (int)gpu->info.minor, PHEMA_CUDA_LEAST_MAJOR);
    return PHEMA_OK;
}

/* One limit for all GPUs: that of the one with the least free memory. */
static void set_limit(struct phema_gpus *gpus, const struct phema_gpu_options *options,
                      unsigned n_sharing)
{
    double fraction = options->memory_fraction > 0 ? options->memory_fraction : PHEMA_GPU_FRACTION;
    fraction /= n_sharing;
    gpus->limit = options->memory_bytes ? options->memory_bytes : UINT64_MAX;
    for (unsigned i = 0; i < gpus->n && !options->memory_bytes; i++) {
        uint64_t allowed = (uint64_t)((double)gpus->items[i].info.free_bytes * fraction);
        gpus->limit = allowed < gpus->limit ? allowed : gpus->limit;
    }
}

static void set_description(struct phema_gpus *gpus)
{
    struct phema_strbuf text = {0};
    for (unsigned i = 0; i < gpus->n; i++)
        phema_strbuf_printf(&text, "%s%d", i ? "," : "cuda:", (int)gpus->items[i].index);
    phema_strbuf_printf(&text, " (");
    if (gpus->n > 1)
        phema_strbuf_printf(&text, "%u x ", gpus->n);
    phema_strbuf_puts_escaped(&text, gpus->items[0].info.name);
    phema_strbuf_puts(&text, ")");
    (void)snprintf(gpus->description, sizeof(gpus->description), "%s",
                   text.data && !text.is_failed ? text.data : "cuda");
    phema_strbuf_clear(&text);
}

PHEMA_FALLIBLE phema_gpus_check(const struct phema_gpu_options *options, struct phema_error *err)
{
    struct phema_gpus *gpus = calloc(1, sizeof(*gpus));
    enum phema_status status = gpus ? plugin_load(&gpus->plugin, err) : phema_fail_memory(err);
    if (!status)
        status = resolve_indices(gpus, options, err);
    free(gpus);
    return status;
}

PHEMA_FALLIBLE phema_gpus_open(struct phema_gpus **out, const struct phema_gpu_options *options,
                               struct phema_error *err)
{
    struct phema_gpus *gpus = calloc(1, sizeof(*gpus));
    unsigned n_sharing = 1;
    if (!gpus)
        return phema_fail_memory(err);
    enum phema_status status = plugin_load(&gpus->plugin, err);
    if (status)
        goto fail;
    status = resolve_indices(gpus, options, err);
    n_sharing = deal(gpus, options);
    for (unsigned i = 0; i < gpus->n && !status; i++)
        status = describe(gpus, &gpus->items[i], err);
    if (status)
        goto fail;
    set_limit(gpus, options, n_sharing);
    set_description(gpus);
    *out = gpus;
    return PHEMA_OK;

fail:
    phema_gpus_close(gpus);
    return status;
}

void phema_gpus_close(struct phema_gpus *gpus)
{
    if (!gpus)
        return;
    phema_gpus_stop(gpus);
    free(gpus);
}

unsigned phema_gpus_n(const struct phema_gpus *gpus)
{
    return gpus->n;
}

const char *phema_gpus_format(const struct phema_gpus *gpus)
{
    return gpus->description;
}

uint64_t phema_gpus_limit(const struct phema_gpus *gpus)
{
    return gpus->limit;
}

/* ---- Memory ---- */

PHEMA_FALLIBLE phema_gpus_start(struct phema_gpus *gpus, const struct phema_cuda_layout *layout,
                                struct phema_error *err)
{
    for (unsigned i = 0; i < gpus->n; i++) {
        struct gpu *gpu = &gpus->items[i];
        struct phema_cuda_message message = {""};
        enum phema_cuda_result result =
            gpus->plugin->open(&gpu->started, gpu->index, layout, &message);
        if (result) {
            phema_gpus_stop(gpus);
            return fail_gpu(gpu, result == PHEMA_CUDA_MEMORY ? PHEMA_NO : PHEMA_ERR_RESOURCE,
                            &message, err);
        }
        gpus->allocated_bytes += layout->n_lanes * phema_cuda_offsets(layout).bytes;
    }
    return PHEMA_OK;
}

void phema_gpus_stop(struct phema_gpus *gpus)
{
    for (unsigned i = 0; i < gpus->n; i++) {
        gpus->plugin->close(gpus->items[i].started);
        gpus->items[i].started = NULL;
    }
    gpus->allocated_bytes = 0;
}

struct phema_gpu_usage phema_gpus_usage(const struct phema_gpus *gpus)
{
    struct phema_gpu_usage usage = {.allocated_bytes = gpus->allocated_bytes};
    for (unsigned i = 0; i < gpus->n; i++) {
        const struct gpu *gpu = &gpus->items[i];
        struct phema_cuda_message message;
        uint64_t n_free = gpu->info.free_bytes;
        if (gpu->started && gpus->plugin->free_bytes(&n_free, gpu->started, &message))
            continue; /* the GPU is broken; its next use reports that */
        if (n_free < gpu->info.free_bytes)
            usage.reserved_bytes += gpu->info.free_bytes - n_free;
    }
    return usage;
}

/* ---- Lanes ---- */

struct phema_lane phema_gpus_lane(const struct phema_gpus *gpus, unsigned i)
{
    return (struct phema_lane){gpus, i % gpus->n, i / gpus->n};
}

static const struct gpu *gpu_of(const struct phema_lane *lane)
{
    return &lane->gpus->items[lane->gpu];
}

static enum phema_status status_of(const struct phema_lane *lane, enum phema_cuda_result result,
                                   const struct phema_cuda_message *message,
                                   struct phema_error *err)
{
    return result ? fail_gpu(gpu_of(lane), PHEMA_ERR_RESOURCE, message, err) : PHEMA_OK;
}

uint8_t *phema_lane_slots(const struct phema_lane *lane)
{
    return lane->gpus->plugin->slots(gpu_of(lane)->started, lane->index);
}

const struct phema_cuda_counts *phema_lane_counts(const struct phema_lane *lane)
{
    return lane->gpus->plugin->counts(gpu_of(lane)->started, lane->index);
}

PHEMA_FALLIBLE phema_lane_feed(const struct phema_lane *lane, uint64_t slot, const uint8_t *from,
                               uint64_t bytes, uint64_t input, struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = lane->gpus->plugin->feed(gpu_of(lane)->started, lane->index,
                                                             slot, from, bytes, input, &message);
    return status_of(lane, result, &message, err);
}

PHEMA_FALLIBLE phema_lane_average(const struct phema_lane *lane, const struct phema_cuda_job *job,
                                  struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result =
        lane->gpus->plugin->average(gpu_of(lane)->started, lane->index, job, &message);
    return status_of(lane, result, &message, err);
}

PHEMA_FALLIBLE phema_lane_fetch(const struct phema_lane *lane, uint64_t row, uint64_t bytes,
                                uint64_t slot, struct phema_error *err)
{
    enum phema_status status = phema_lane_wait(lane, slot, err);
    if (status)
        return status;
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result =
        lane->gpus->plugin->fetch(gpu_of(lane)->started, lane->index, row, bytes, slot, &message);
    return status_of(lane, result, &message, err);
}

PHEMA_FALLIBLE phema_lane_wait(const struct phema_lane *lane, uint64_t slot,
                               struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result =
        lane->gpus->plugin->wait(gpu_of(lane)->started, lane->index, slot, &message);
    return status_of(lane, result, &message, err);
}

/* ---- Solver ---- */

/* The plug-in stays loaded; nothing stays allocated on the GPU. */
static enum phema_status factor(double *matrix, size_t n, struct phema_error *err)
{
    const struct phema_cuda_plugin *plugin = NULL;
    enum phema_status status = plugin_load(&plugin, err);
    if (status)
        return phema_blame(
            err, phema_fail_in(err, status, "%scusolver", phema_setting_equals(PHEMA_SET_SOLVER)),
            PHEMA_SET_SOLVER);
    int32_t n_found = 0;
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = plugin->count(&n_found, &message);
    if (!result)
        result = plugin->factor(0, matrix, n, &message);
    if (result == PHEMA_CUDA_NO)
        return PHEMA_NO;
    struct phema_name_buffer shown;
    return result ? phema_blame(err,
                                phema_fail(err, PHEMA_ERR_RESOURCE, "%scusolver: %s",
                                           phema_setting_equals(PHEMA_SET_SOLVER),
                                           escape_message(&shown, &message)),
                                PHEMA_SET_SOLVER)
                  : PHEMA_OK;
}

const struct phema_factorer *phema_gpu_factorer(void)
{
    static const struct phema_factorer factorer = {"cusolver", factor};
    return &factorer;
}
