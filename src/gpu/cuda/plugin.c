// SPDX-License-Identifier: Apache-2.0
/* plugin.c - the plug-in's function table. */
#include "phema/cuda_plugin.h"

#include "runtime.h"
#include "streams.h"

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
    .open = streams_open,
    .close = streams_close,
    .free_bytes = streams_free_bytes,
    .slots = streams_slots,
    .counts = streams_counts,
    .feed = streams_feed,
    .average = streams_average,
    .fetch = streams_fetch,
    .wait = streams_wait,
    .factor = factor,
};
