// SPDX-License-Identifier: Apache-2.0
/* run_threads.c - starts the workers, reports progress, collects failures. */
#include "run.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "input_digests.h"
#include "phema/clock.h"
#include "phema/memory.h"
#include "phema/parallel.h"
#include "resume/resume.h"
#include "worker.h"

#define REPORT_INTERVAL_NS 100000000

/* Threads that work while the calling thread watches them. */
struct thread_pool {
    struct pool_thread *threads;
    unsigned n_running;
    pthread_mutex_t lock;
    pthread_cond_t is_done;
    unsigned n_done;
};

struct pool_thread {
    struct thread_pool *pool;
    pthread_t thread;
    void (*work)(void *context);
    void *context;
};

static void *run_thread(void *argument)
{
    struct pool_thread *thread = argument;
    struct thread_pool *pool = thread->pool;
    thread->work(thread->context);
    (void)pthread_mutex_lock(&pool->lock);
    pool->n_done++;
    (void)pthread_cond_signal(&pool->is_done);
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static bool start_thread(struct thread_pool *pool, void (*work)(void *context), void *context)
{
    struct pool_thread *thread = &pool->threads[pool->n_running];
    thread->pool = pool;
    thread->work = work;
    thread->context = context;
    if (phema_thread_start(&thread->thread, run_thread, thread))
        return false;
    pool->n_running++;
    return true;
}

/* ---- Watching ---- */

static void report_progress(struct run *run)
{
    uint64_t anonymous = phema_memory_now().anonymous_bytes;
    if (anonymous > run->result->peak_anonymous_bytes)
        run->result->peak_anonymous_bytes = anonymous;
    if (!run->options.report)
        return;
    const struct phema_tensor *tensor =
        &run->plan->series->tensors[atomic_load(&run->tensor)].tensor;
    struct phema_progress progress = {
        .done_bytes = atomic_load(&run->done_bytes),
        .total_bytes = run->total_bytes,
        .elapsed_s = phema_clock_s() - run->start_s,
        .tensor = tensor->name,
        .tensor_size = tensor->name_size,
        .resumed_bytes = run->result->resumed_bytes,
        .n_items = run->outputs->m,
        .n_published = run->n_published,
        .next = phema_output_traits(run->outputs)->is_compressed ? "compressing" : NULL,
    };
    size_t output = atomic_load(&run->stage_output);
    struct phema_progress of_stage = {
        .done_bytes = run->stage_before_bytes + atomic_load(&run->stage_bytes),
        .total_bytes = run->stage_total_bytes,
        .elapsed_s = phema_clock_s() - run->stage_start_s,
        .stage = run->stage,
        .item = output + 1,
        .n_items = run->outputs->m,
        .n_published = run->n_published,
    };
    if (!of_stage.done_bytes) /* the stage does not count */
        of_stage.total_bytes = 0;
    run->options.report(run->options.context, run->stage ? &of_stage : &progress);
    if (run->options.is_stopped && run->options.is_stopped(run->options.context))
        run_stop(run);
}

void run_begin_stage(struct run *run, const char *stage, size_t output)
{
    run->stage = stage;
    atomic_store(&run->stage_output, output);
    run->stage_total_bytes = run->outputs->m ? run->outputs->items[output].size_bytes : 0;
    run->stage_start_s = run->reported_s = phema_clock_s();
    run->stage_before_bytes = 0;
    atomic_store(&run->stage_bytes, 0);
    if (!run->is_stage_of_all)
        return;
    /* outputs of one run are alike */
    run->stage_before_bytes = (output - run->first_output) * run->stage_total_bytes;
    run->stage_total_bytes *= run->end_output - run->first_output;
    if (output == run->first_output)
        run->first_stage_start_s = run->stage_start_s;
    run->stage_start_s = run->first_stage_start_s;
}

void run_report_stage(struct run *run)
{
    if (phema_clock_s() - run->reported_s < REPORT_INTERVAL_NS / 1e9)
        return;
    run->reported_s = phema_clock_s();
    report_progress(run);
}

/* A journal that cannot be written ends the run. */
static enum phema_status write_journals(struct run *run, bool is_last, struct phema_error *err)
{
    if (!run->journal)
        return PHEMA_OK;
    enum phema_status status = journal_writer_write(run->journal, is_last, err);
    if (status)
        run_stop(run);
    return status;
}

static struct timespec next_report(void)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += REPORT_INTERVAL_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

/* Waits for all threads. Reports progress ten times a second, and writes the journals. */
static enum phema_status watch(struct thread_pool *pool, struct run *run, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    (void)pthread_mutex_lock(&pool->lock);
    while (pool->n_done < pool->n_running) {
        struct timespec until = next_report();
        (void)pthread_cond_timedwait(&pool->is_done, &pool->lock, &until);
        if (pool->n_done == pool->n_running)
            break;
        (void)pthread_mutex_unlock(&pool->lock);
        report_progress(run);
        if (!status && !run->stage) /* in a stage all tiles are in the journals */
            status = write_journals(run, false, err);
        (void)pthread_mutex_lock(&pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    report_progress(run);
    for (unsigned i = 0; i < pool->n_running; i++)
        (void)pthread_join(pool->threads[i].thread, NULL);
    return status;
}

/* ---- Workers ---- */

static void work(void *worker)
{
    worker_run(worker);
}

/* One worker is enough: fewer workers or threads than requested do the work of all. */
static enum phema_status start_workers(struct thread_pool *pool, struct worker *workers, unsigned n,
                                       struct run *run, struct phema_error *err)
{
    unsigned n_ready = 0;
    enum phema_status status = PHEMA_OK;
    while (n_ready < n && !status) {
        status = worker_init(&workers[n_ready], run, n_ready, err);
        n_ready += !status;
    }
    if (n_ready == 0)
        return status;
    for (unsigned i = 0; i < n_ready && start_thread(pool, work, &workers[i]); i++)
        continue;
    if (pool->n_running == 0)
        worker_run(&workers[0]); /* without reports */
    return PHEMA_OK;
}

/* The first failure, by index of the worker. */
static enum phema_status collect(struct run *run, struct worker *workers, unsigned n,
                                 struct phema_error *err)
{
    struct phema_synth_result *result = run->result;
    enum phema_status status = PHEMA_OK;
    for (unsigned i = 0; i < n; i++) {
        struct worker *worker = &workers[i];
        if (!worker->run) /* not begun */
            continue;
        if (!status && worker->status) {
            status = worker->status;
            *err = worker->err;
        }
        run_add_counts(run, &worker->counts);
        if (worker->nan_tensor < result->nan_tensor)
            result->nan_tensor = worker->nan_tensor;
        if (worker->digests)
            input_digests_move(run->input_digests->sums, worker->digests,
                               input_digests_n_sums(run));
        worker_clear(worker);
    }
    return status;
}

static enum phema_status run_workers(struct thread_pool *pool, struct worker *workers, unsigned n,
                                     struct run *run, struct phema_error *err)
{
    enum phema_status status = start_workers(pool, workers, n, run, err);
    if (status)
        run_stop(run);
    struct phema_error later;
    enum phema_status watched = watch(pool, run, status ? &later : err);
    status = status ? status : watched;
    enum phema_status worked = collect(run, workers, n, status ? &later : err);
    status = status ? status : worked;
    /* after a failure as well: finished tiles stay finished */
    enum phema_status written = write_journals(run, true, status ? &later : err);
    return status ? status : written;
}

PHEMA_FALLIBLE run_process_tiles(struct run *run, struct phema_error *err)
{
    unsigned n = run->budget.n_threads;
    struct thread_pool pool = {.threads = calloc(n, sizeof(*pool.threads)),
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .is_done = PTHREAD_COND_INITIALIZER};
    struct worker *workers = calloc(n, sizeof(*workers));
    enum phema_status status =
        pool.threads && workers ? run_workers(&pool, workers, n, run, err) : phema_fail_memory(err);
    free(workers);
    free(pool.threads);
    if (!status && atomic_load(&run->is_stopped))
        return phema_fail(err, PHEMA_NO, "was stopped before all tensors were summed");
    return status;
}

/* ---- A step of an output ---- */

struct step {
    run_step *step;
    void *context;
    enum phema_status status;
    struct phema_error err;
};

static void do_step(void *context)
{
    struct step *step = context;
    step->status = step->step(step->context, &step->err);
}

PHEMA_FALLIBLE run_do_step(struct run *run, const char *stage, size_t output, run_step *step,
                           void *context, struct phema_error *err)
{
    struct step own = {.step = step, .context = context};
    struct pool_thread thread;
    struct thread_pool pool = {
        .threads = &thread, .lock = PTHREAD_MUTEX_INITIALIZER, .is_done = PTHREAD_COND_INITIALIZER};
    enum phema_status status = PHEMA_OK;
    run_begin_stage(run, stage, output);
    if (start_thread(&pool, do_step, &own))
        status = watch(&pool, run, err);
    else
        do_step(&own); /* without reports */
    run->stage = NULL;
    if (own.status && !status)
        *err = own.err;
    return status ? status : own.status;
}
