// SPDX-License-Identifier: Apache-2.0
/* plan_watch.c - shows that snapshots are opened or weights are solved for, when that takes longer than
 * a second. A thread of its own draws, so that no solver has to report. */
#include <pthread.h>
#include <time.h>

#include "phema/clock.h"
#include "phema/parallel.h"
#include "print_summary.h"

#define SILENT_S 1.0 /* most plans are made before */
#define EVERY_S  0.2

struct watch {
    struct progress progress;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    const char *stage; /* guarded by lock, as is_over is */
    bool is_over;
    double start_s;
    /* the caller's */
    enum phema_status (*check)(void *context, const struct phema_series *series, size_t n,
                               struct phema_error *err);
    void *context;
};

/* Called between the two stages. */
static enum phema_status begin_solving(void *context, const struct phema_series *series, size_t n,
                                       struct phema_error *err)
{
    struct watch *watch = context;
    pthread_mutex_lock(&watch->lock);
    watch->stage = "solving for the weights";
    pthread_mutex_unlock(&watch->lock);
    return watch->check ? watch->check(watch->context, series, n, err) : PHEMA_OK;
}

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
            const struct phema_progress state = {.stage = watch->stage, .elapsed_s = elapsed_s};
            progress_report(&watch->progress, &state);
        }
        wait_for(watch, elapsed_s < SILENT_S ? SILENT_S - elapsed_s : EVERY_S);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* Without a thread nothing is shown. */
static void start(struct watch *watch)
{
    pthread_condattr_t attributes;
    (void)pthread_mutex_init(&watch->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&watch->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    watch->is_started = watch->progress.style != CLI_PROGRESS_NONE &&
                        phema_thread_start(&watch->thread, run_watch, watch) == 0;
}

static void stop(struct watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->is_over = true;
    (void)pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    if (watch->is_started)
        (void)pthread_join(watch->thread, NULL);
    (void)pthread_cond_destroy(&watch->wake);
    (void)pthread_mutex_destroy(&watch->lock);
    progress_finish(&watch->progress);
}

PHEMA_FALLIBLE cli_make_plan(struct phema_plan **out, const struct cli_common *common,
                             const struct phema_plan_options *options, struct phema_error *err)
{
    struct phema_plan_options watched = *options;
    struct watch watch = {.stage = "opening the snapshots",
                          .start_s = phema_clock_s(),
                          .check = options->check,
                          .context = options->context};
    progress_init(&watch.progress, common);
    watch.progress.kept = PROGRESS_WRITES_NOTHING;
    watched.check = begin_solving;
    watched.context = &watch;
    start(&watch);
    enum phema_status status = phema_plan_make(out, &watched, err);
    stop(&watch);
    return status;
}
