// SPDX-License-Identifier: Apache-2.0
/* devices.c - the devices of a run and their lanes, through the plug-in. */
#include "phema/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"
#include "phema/strbuf.h"

struct device {
    int32_t index;
    struct phema_cuda_info info;       /* at opening */
    struct phema_cuda_device *started; /* with its lanes, or NULL */
};

struct phema_devices {
    const struct phema_cuda_plugin *plugin;
    struct device items[PHEMA_MAX_DEVICES];
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

static enum phema_status fail_device(const struct device *device, enum phema_status status,
                                     const struct phema_cuda_message *message,
                                     struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(err, status, "cuda:%d: %s", (int)device->index,
                      escape_message(&shown, message));
}

bool phema_device_may_exist(void)
{
    /* device files of the drivers: NVIDIA's on Linux, on WSL, on Jetson */
    static const char *const files[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (access(files[i], F_OK) == 0)
            return true;
    return false;
}

/* ---- Opening ---- */

static enum phema_status resolve_indices(struct phema_devices *devices,
                                         const struct phema_device_request *request,
                                         struct phema_error *err)
{
    int32_t n_found = 0;
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = devices->plugin->count(&n_found, &message);
    if (result) {
        struct phema_name_buffer shown;
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s", escape_message(&shown, &message));
    }
    bool takes_all = request->takes_all;
    size_t n = takes_all ? (size_t)n_found : request->n ? request->n : 1;
    for (size_t i = 0; i < n && i < PHEMA_MAX_DEVICES; i++) {
        int32_t index = takes_all ? (int32_t)i : request->n ? request->indices[i] : 0;
        if (index >= n_found)
            return phema_fail(err, PHEMA_ERR_RESOURCE,
                              "cuda:%d: there is no such device, the last one is cuda:%d",
                              (int)index, (int)n_found - 1);
        devices->items[devices->n++].index = index;
    }
    return PHEMA_OK;
}

static enum phema_status describe(struct phema_devices *devices, struct device *device,
                                  struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    if (devices->plugin->describe(&device->info, device->index, &message))
        return fail_device(device, PHEMA_ERR_RESOURCE, &message, err);
    device->info.name[sizeof(device->info.name) - 1] = '\0';
    if (device->info.major < PHEMA_CUDA_LEAST_MAJOR)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "cuda:%d: %s has compute capability %d.%d, and at least %d.0 is needed",
                          (int)device->index, device->info.name, (int)device->info.major,
                          (int)device->info.minor, PHEMA_CUDA_LEAST_MAJOR);
    return PHEMA_OK;
}

/* One limit for all devices: that of the one with the least free memory. */
static void set_limit(struct phema_devices *devices, const struct phema_device_request *request)
{
    double fraction =
        request->memory_fraction > 0 ? request->memory_fraction : PHEMA_DEVICE_FRACTION;
    devices->limit = request->memory_bytes ? request->memory_bytes : UINT64_MAX;
    for (unsigned i = 0; i < devices->n && !request->memory_bytes; i++) {
        uint64_t allowed = (uint64_t)((double)devices->items[i].info.free_bytes * fraction);
        devices->limit = allowed < devices->limit ? allowed : devices->limit;
    }
}

static void set_description(struct phema_devices *devices)
{
    struct phema_strbuf text = {0};
    for (unsigned i = 0; i < devices->n; i++)
        phema_strbuf_printf(&text, "%s%d", i ? "," : "cuda:", (int)devices->items[i].index);
    phema_strbuf_printf(&text, " (");
    if (devices->n > 1)
        phema_strbuf_printf(&text, "%u x ", devices->n);
    phema_strbuf_puts_escaped(&text, devices->items[0].info.name);
    phema_strbuf_puts(&text, ")");
    (void)snprintf(devices->description, sizeof(devices->description), "%s",
                   text.data && !text.is_failed ? text.data : "cuda");
    phema_strbuf_clear(&text);
}

PHEMA_FALLIBLE phema_devices_open(struct phema_devices **out,
                                  const struct phema_device_request *request,
                                  struct phema_error *err)
{
    struct phema_devices *devices = calloc(1, sizeof(*devices));
    if (!devices)
        return phema_fail_memory(err);
    enum phema_status status = plugin_load(&devices->plugin, err);
    if (!status)
        status = resolve_indices(devices, request, err);
    for (unsigned i = 0; i < devices->n && !status; i++)
        status = describe(devices, &devices->items[i], err);
    if (status) {
        phema_devices_close(devices);
        return status;
    }
    set_limit(devices, request);
    set_description(devices);
    *out = devices;
    return PHEMA_OK;
}

void phema_devices_close(struct phema_devices *devices)
{
    if (!devices)
        return;
    phema_devices_stop(devices);
    free(devices);
}

unsigned phema_devices_n(const struct phema_devices *devices)
{
    return devices->n;
}

const char *phema_devices_format(const struct phema_devices *devices)
{
    return devices->description;
}

uint64_t phema_devices_limit(const struct phema_devices *devices)
{
    return devices->limit;
}

/* ---- Memory ---- */

PHEMA_FALLIBLE phema_devices_start(struct phema_devices *devices,
                                   const struct phema_cuda_layout *layout, struct phema_error *err)
{
    for (unsigned i = 0; i < devices->n; i++) {
        struct device *device = &devices->items[i];
        struct phema_cuda_message message = {""};
        enum phema_cuda_result result =
            devices->plugin->open(&device->started, device->index, layout, &message);
        if (result) {
            phema_devices_stop(devices);
            return fail_device(device, result == PHEMA_CUDA_MEMORY ? PHEMA_NO : PHEMA_ERR_RESOURCE,
                               &message, err);
        }
        devices->allocated_bytes += layout->n_lanes * phema_cuda_offsets(layout).bytes;
    }
    return PHEMA_OK;
}

void phema_devices_stop(struct phema_devices *devices)
{
    for (unsigned i = 0; i < devices->n; i++) {
        devices->plugin->close(devices->items[i].started);
        devices->items[i].started = NULL;
    }
    devices->allocated_bytes = 0;
}

struct phema_device_usage phema_devices_usage(const struct phema_devices *devices)
{
    struct phema_device_usage usage = {.allocated_bytes = devices->allocated_bytes};
    for (unsigned i = 0; i < devices->n; i++) {
        const struct device *device = &devices->items[i];
        struct phema_cuda_message message;
        uint64_t n_free = device->info.free_bytes;
        if (device->started && devices->plugin->free_bytes(&n_free, device->started, &message))
            continue; /* the device is broken; its next use reports that */
        if (n_free < device->info.free_bytes)
            usage.reserved_bytes += device->info.free_bytes - n_free;
    }
    return usage;
}

/* ---- Lanes ---- */

struct phema_lane phema_devices_lane(const struct phema_devices *devices, unsigned i)
{
    return (struct phema_lane){devices, i % devices->n, i / devices->n};
}

static const struct device *device_of(const struct phema_lane *lane)
{
    return &lane->devices->items[lane->device];
}

static enum phema_status status_of(const struct phema_lane *lane, enum phema_cuda_result result,
                                   const struct phema_cuda_message *message,
                                   struct phema_error *err)
{
    return result ? fail_device(device_of(lane), PHEMA_ERR_RESOURCE, message, err) : PHEMA_OK;
}

uint8_t *phema_lane_slots(const struct phema_lane *lane)
{
    return lane->devices->plugin->slots(device_of(lane)->started, lane->index);
}

const struct phema_cuda_counts *phema_lane_counts(const struct phema_lane *lane)
{
    return lane->devices->plugin->counts(device_of(lane)->started, lane->index);
}

PHEMA_FALLIBLE phema_lane_feed(const struct phema_lane *lane, uint64_t slot, const uint8_t *from,
                               uint64_t bytes, uint64_t input, struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = lane->devices->plugin->feed(
        device_of(lane)->started, lane->index, slot, from, bytes, input, &message);
    return status_of(lane, result, &message, err);
}

PHEMA_FALLIBLE phema_lane_average(const struct phema_lane *lane, const struct phema_cuda_job *job,
                                  struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result =
        lane->devices->plugin->average(device_of(lane)->started, lane->index, job, &message);
    return status_of(lane, result, &message, err);
}

PHEMA_FALLIBLE phema_lane_fetch(const struct phema_lane *lane, uint64_t row, uint64_t bytes,
                                uint64_t slot, struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = lane->devices->plugin->fetch(
        device_of(lane)->started, lane->index, row, bytes, slot, &message);
    return status_of(lane, result, &message, err);
}

PHEMA_FALLIBLE phema_lane_wait(const struct phema_lane *lane, uint64_t slot,
                               struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result =
        lane->devices->plugin->wait(device_of(lane)->started, lane->index, slot, &message);
    return status_of(lane, result, &message, err);
}
