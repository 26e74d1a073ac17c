// SPDX-License-Identifier: Apache-2.0
/* stage_watch.c - shows what is done when it takes longer than a second: snapshots are opened,
 * weights are solved for, checkpoints compared. A thread of its own draws, so that no solver has to
 * report. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "phema/clock.h"
#include "phema/parallel.h"
#include "phema/progress.h"
#include "phema/report.h"

#define SILENT_S 1.0 /* most is done before */
#define EVERY_S  0.2

struct watch {
    struct progress progress;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    const char *stage; /* guarded by lock, as the others are */
    uint64_t done_bytes, total_bytes;
    bool is_over;
    double start_s;
};

/* With the lock; returns after so many seconds, or when the plan is made. */
static void wait_for(struct watch *watch, double seconds)
{
    struct timespec end;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    double wanted = (double)end.tv_nsec * 1e-9 + seconds;
    end.tv_sec += (time_t)wanted;
    end.tv_nsec = (long)((wanted - (double)(time_t)wanted) * 1e9);
    (void)pthread_cond_timedwait(&watch->wake, &watch->lock, &end);
}

static void *run_watch(void *argument)
{
    struct watch *watch = argument;
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_over) {
        double elapsed_s = phema_clock_s() - watch->start_s;
        if (elapsed_s >= SILENT_S) {
            const struct phema_progress state = {.stage = watch->stage,
                                                 .done_bytes = watch->done_bytes,
                                                 .total_bytes = watch->total_bytes,
                                                 .elapsed_s = elapsed_s};
            progress_report(&watch->progress, &state);
        }
        wait_for(watch, elapsed_s < SILENT_S ? SILENT_S - elapsed_s : EVERY_S);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

struct watch *watch_start(const struct render_style *style, const char *stage)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return NULL;
    watch->stage = stage;
    watch->start_s = phema_clock_s();
    progress_init(&watch->progress, style);
    watch->progress.kept = PHEMA_WRITES_NOTHING;
    pthread_condattr_t attributes;
    (void)pthread_mutex_init(&watch->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&watch->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    watch->is_started = watch->progress.style != PROGRESS_NONE &&
                        phema_thread_start(&watch->thread, run_watch, watch) == 0;
    return watch;
}

void watch_begin_stage(struct watch *watch, const char *stage)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->stage = stage;
    pthread_mutex_unlock(&watch->lock);
}

void watch_advance(struct watch *watch, uint64_t done_bytes, uint64_t total_bytes)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->done_bytes = done_bytes;
    watch->total_bytes = total_bytes;
    pthread_mutex_unlock(&watch->lock);
}

void watch_stop(struct watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->is_over = true;
    (void)pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    if (watch->is_started)
        (void)pthread_join(watch->thread, NULL);
    (void)pthread_cond_destroy(&watch->wake);
    (void)pthread_mutex_destroy(&watch->lock);
    progress_finish(&watch->progress);
    free(watch);
}
