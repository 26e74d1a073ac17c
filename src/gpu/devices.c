// SPDX-License-Identifier: Apache-2.0
/* devices.c - the devices of a run, opened through the module, and their lanes. */
#include "phema/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"
#include "phema/strbuf.h"

struct device {
    int32_t index;
    struct phema_cuda_info info;       /* when it was found */
    struct phema_cuda_device *started; /* with its lanes, or NULL */
};

struct phema_devices {
    const struct phema_cuda_module *module;
    struct device items[PHEMA_MAX_DEVICES];
    unsigned n;
    uint64_t limit;           /* of each */
    uint64_t allocated_bytes; /* of all, by lanes */
    char shown[320];
};

static const char *shown_text(struct phema_name_buffer *buffer,
                              const struct phema_cuda_message *message)
{
    return phema_name_escape(buffer, message->text, strnlen(message->text, sizeof(message->text)));
}

static enum phema_status fail_device(const struct device *device, enum phema_status status,
                                     const struct phema_cuda_message *message,
                                     struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(err, status, "cuda:%d: %s", (int)device->index, shown_text(&shown, message));
}

bool phema_device_may_exist(void)
{
    /* what drivers make: NVIDIA's, that of Windows below Linux, that of Jetson */
    static const char *const files[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (access(files[i], F_OK) == 0)
            return true;
    return false;
}

/* ---- Finding ---- */

static enum phema_status choose(struct phema_devices *devices,
                                const struct phema_device_request *request, struct phema_error *err)
{
    int32_t n_found = 0;
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = devices->module->count(&n_found, &message);
    if (result) {
        struct phema_name_buffer shown;
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s", shown_text(&shown, &message));
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

static enum phema_status look(struct phema_devices *devices, struct device *device,
                              struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    if (devices->module->describe(&device->info, device->index, &message))
        return fail_device(device, PHEMA_ERR_RESOURCE, &message, err);
    device->info.name[sizeof(device->info.name) - 1] = '\0';
    if (device->info.major < PHEMA_CUDA_LEAST_MAJOR)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "cuda:%d: %s has compute capability %d.%d, and at least %d.0 is needed",
                          (int)device->index, device->info.name, (int)device->info.major,
                          (int)device->info.minor, PHEMA_CUDA_LEAST_MAJOR);
    return PHEMA_OK;
}

/* The same of each device: what the one with the least free memory may give. */
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

static void set_format(struct phema_devices *devices)
{
    struct phema_strbuf text = {0};
    for (unsigned i = 0; i < devices->n; i++)
        phema_strbuf_printf(&text, "%s%d", i ? "," : "cuda:", (int)devices->items[i].index);
    phema_strbuf_printf(&text, " (");
    if (devices->n > 1)
        phema_strbuf_printf(&text, "%u x ", devices->n);
    phema_strbuf_puts_escaped(&text, devices->items[0].info.name);
    phema_strbuf_puts(&text, ")");
    (void)snprintf(devices->shown, sizeof(devices->shown), "%s",
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
    enum phema_status status = module_load(&devices->module, err);
    if (!status)
        status = choose(devices, request, err);
    for (unsigned i = 0; i < devices->n && !status; i++)
        status = look(devices, &devices->items[i], err);
    if (status) {
        phema_devices_close(devices);
        return status;
    }
    set_limit(devices, request);
    set_format(devices);
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
    return devices->shown;
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
            devices->module->open(&device->started, device->index, layout, &message);
        if (result) {
            phema_devices_stop(devices);
            return fail_device(device, result == PHEMA_CUDA_MEMORY ? PHEMA_NO : PHEMA_ERR_RESOURCE,
                               &message, err);
        }
        devices->allocated_bytes += layout->n_lanes * phema_cuda_places(layout).bytes;
    }
    return PHEMA_OK;
}

void phema_devices_stop(struct phema_devices *devices)
{
    for (unsigned i = 0; i < devices->n; i++) {
        devices->module->close(devices->items[i].started);
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
        if (device->started && devices->module->free_bytes(&n_free, device->started, &message))
            continue; /* it is broken, and that is told by what is done with it */
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
    return lane->devices->module->slots(device_of(lane)->started, lane->index);
}

const struct phema_cuda_counts *phema_lane_counts(const struct phema_lane *lane)
{
    return lane->devices->module->counts(device_of(lane)->started, lane->index);
}

PHEMA_FALLIBLE phema_lane_feed(const struct phema_lane *lane, uint64_t slot, const uint8_t *from,
                               uint64_t bytes, uint64_t input, struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = lane->devices->module->feed(
        device_of(lane)->started, lane->index, slot, from, bytes, input, &message);
    return status_of(lane, result, &message, err);
}

PHEMA_FALLIBLE phema_lane_average(const struct phema_lane *lane, const struct phema_cuda_job *job,
                                  struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result =
        lane->devices->module->average(device_of(lane)->started, lane->index, job, &message);
    return status_of(lane, result, &message, err);
}

PHEMA_FALLIBLE phema_lane_fetch(const struct phema_lane *lane, uint64_t row, uint64_t bytes,
                                uint64_t slot, struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result = lane->devices->module->fetch(
        device_of(lane)->started, lane->index, row, bytes, slot, &message);
    return status_of(lane, result, &message, err);
}

PHEMA_FALLIBLE phema_lane_wait(const struct phema_lane *lane, uint64_t slot,
                               struct phema_error *err)
{
    struct phema_cuda_message message = {""};
    enum phema_cuda_result result =
        lane->devices->module->wait(device_of(lane)->started, lane->index, slot, &message);
    return status_of(lane, result, &message, err);
}
