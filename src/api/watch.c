// SPDX-License-Identifier: Apache-2.0
/* watch.c - reports the progress of a run, or of one tensor, to the caller, who may stop it. */
#include "plan.h"

static void report(void *context, const struct phema_progress *progress)
{
    struct api_watch *watch = context;
    if (watch->is_stopped)
        return;
    if (!progress->stage) /* afterwards what was read last is reported */
        watch->read = (struct posthoc_ema_progress){
            .size = sizeof(watch->read),
            .done_bytes = progress->done_bytes,
            .total_bytes = progress->total_bytes,
            .elapsed_s = progress->elapsed_s,
            .tensor = progress->tensor,
            .tensor_size = progress->tensor_size,
        };
    if (!watch->read.size)
        return;
    const struct posthoc_ema_progress known = watch->read;
    locale_t own = uselocale(watch->callers);
    watch->is_stopped = watch->progress(watch->context, &known) != 0;
    (void)uselocale(own);
}

static bool is_stopped(void *context)
{
    return ((const struct api_watch *)context)->is_stopped;
}

void api_watch_run(struct api_watch *watch, struct phema_synth_options *options)
{
    if (!watch->progress)
        return;
    options->report = report;
    options->is_stopped = is_stopped;
    options->context = watch;
}

enum posthoc_ema_status api_watch_end(const struct api_watch *watch, enum posthoc_ema_status status)
{
    return status == POSTHOC_EMA_NO && watch->is_stopped ? POSTHOC_EMA_CANCELLED : status;
}
