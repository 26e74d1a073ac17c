// SPDX-License-Identifier: Apache-2.0
/* device_option.c - parses the value of --device, and decides between CPU and GPU where it is auto.
 * All bytes come from files, through the CPU's memory. With few targets the CPU sums as fast as it
 * reads, and copying to a GPU only adds time. With many targets the CPU spends most of its time on
 * arithmetic, which a GPU does while the files are read. */
#include "phema/gpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/setting.h"
#include "phema/strbuf.h"

#define MAX_INDEX 1023
/* Smaller gains do not justify the power and complexity of a GPU. */
#define LEAST_GAIN 1.3

static enum phema_status fail_text(const char *text, struct phema_error *err)
{
    return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_DEVICE,
                              "'%s' is not auto, cpu, cuda, cuda:all or devices by number such as "
                              "cuda:0,1, at most %d, each once",
                              text, PHEMA_MAX_GPUS);
}

static bool has(const struct phema_gpu_options *options, int32_t index)
{
    for (size_t i = 0; i < options->n; i++)
        if (options->indices[i] == index)
            return true;
    return false;
}

/* "0,1" */
static bool read_indices(struct phema_gpu_options *options, const char *at)
{
    do {
        int32_t index = 0;
        const char *start = at;
        for (; *at >= '0' && *at <= '9' && index <= MAX_INDEX; at++)
            index = 10 * index + (*at - '0');
        if (at == start || index > MAX_INDEX || options->n == PHEMA_MAX_GPUS || has(options, index))
            return false;
        options->indices[options->n++] = index;
    } while (*at == ',' && *++at);
    return *at == '\0' && at[-1] != ',';
}

PHEMA_FALLIBLE phema_gpu_options_parse(struct phema_gpu_options *options, const char *text,
                                       struct phema_error *err)
{
    static const char cuda[] = "cuda";
    struct phema_gpu_options read = *options;
    read.kind = PHEMA_DEVICE_AUTO;
    read.uses_all = read.is_unnumbered = false;
    read.n = 0;
    if (text && strcmp(text, "cpu") == 0) {
        read.kind = PHEMA_DEVICE_CPU;
    } else if (text && strncmp(text, cuda, sizeof(cuda) - 1) == 0) {
        const char *rest = text + sizeof(cuda) - 1;
        read.kind = PHEMA_DEVICE_CUDA;
        read.uses_all = strcmp(rest, ":all") == 0;
        read.is_unnumbered = !*rest;
        if (!*rest)
            read.indices[read.n++] = 0;
        else if (!read.uses_all && (*rest != ':' || !read_indices(&read, rest + 1)))
            return fail_text(text, err);
    } else if (text && strcmp(text, "auto") != 0) {
        return fail_text(text, err);
    }
    *options = read;
    return PHEMA_OK;
}

bool phema_gpu_wins(char *why, size_t why_size, const struct phema_gpu_rates *rates)
{
    double gpu = fmin(rates->gpu * rates->n_gpus, rates->reading);
    bool wins = gpu > LEAST_GAIN * rates->processor;
    struct phema_name_buffer ours, theirs;
    (void)snprintf(why, why_size, "%s/s of snapshots on the device, %s/s on the processor%s",
                   phema_size_format(&theirs, (uint64_t)gpu),
                   phema_size_format(&ours, (uint64_t)rates->processor),
                   wins                            ? ""
                   : rates->reading < gpu * 1.0001 ? ", which reading bounds"
                                                   : "");
    return wins;
}
