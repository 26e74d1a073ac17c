// SPDX-License-Identifier: Apache-2.0
/* device_list.c - parses the value of --device. */
#include <stdlib.h>
#include <string.h>

#include "phema/gpu.h"

#define MAX_INDEX 1023

static enum phema_status fail_text(const char *text, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "--device: '%s' is not auto, cpu, cuda, cuda:all or devices by number such "
                      "as cuda:0,1, at most %d, each once",
                      text, PHEMA_MAX_DEVICES);
}

static bool has(const struct phema_device_request *request, int32_t index)
{
    for (size_t i = 0; i < request->n; i++)
        if (request->indices[i] == index)
            return true;
    return false;
}

/* "0,1" */
static bool read_indices(struct phema_device_request *request, const char *at)
{
    do {
        int32_t index = 0;
        const char *start = at;
        for (; *at >= '0' && *at <= '9' && index <= MAX_INDEX; at++)
            index = 10 * index + (*at - '0');
        if (at == start || index > MAX_INDEX || request->n == PHEMA_MAX_DEVICES ||
            has(request, index))
            return false;
        request->indices[request->n++] = index;
    } while (*at == ',' && *++at);
    return *at == '\0' && at[-1] != ',';
}

PHEMA_FALLIBLE phema_device_list_parse(struct phema_device_request *request, const char *text,
                                       struct phema_error *err)
{
    static const char cuda[] = "cuda";
    struct phema_device_request read = *request;
    read.kind = PHEMA_DEVICE_AUTO;
    read.takes_all = false;
    read.n = 0;
    if (text && strcmp(text, "cpu") == 0) {
        read.kind = PHEMA_DEVICE_CPU;
    } else if (text && strncmp(text, cuda, sizeof(cuda) - 1) == 0) {
        const char *rest = text + sizeof(cuda) - 1;
        read.kind = PHEMA_DEVICE_CUDA;
        read.takes_all = strcmp(rest, ":all") == 0;
        if (!*rest)
            read.indices[read.n++] = 0;
        else if (!read.takes_all && (*rest != ':' || !read_indices(&read, rest + 1)))
            return fail_text(text, err);
    } else if (text && strcmp(text, "auto") != 0) {
        return fail_text(text, err);
    }
    *request = read;
    return PHEMA_OK;
}
