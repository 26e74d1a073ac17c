// SPDX-License-Identifier: Apache-2.0
/* run_threads.c - see run_threads.h. */
#include "run_threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "input_digests.h"
#include "phema/clock.h"
#include "phema/memory.h"
#include "phema/parallel.h"
#include "resume/resume.h"
#include "worker.h"

struct run_threads {
    struct worker *workers;
    struct crew_member *members;
    pthread_t *threads;
    unsigned n, n_running;
    pthread_mutex_t lock;
    pthread_cond_t is_done;
    unsigned n_done;
};

struct crew_member {
    struct run_threads *crew;
    struct worker *worker;
};

static void *work(void *argument)
{
    struct crew_member *member = argument;
    struct run_threads *crew = member->crew;
    worker_run(member->worker);
    (void)pthread_mutex_lock(&crew->lock);
    crew->n_done++;
    (void)pthread_cond_signal(&crew->is_done);
    (void)pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* One worker has to be there. Fewer than asked for, or fewer threads, do the work of all. */
static enum phema_status start(struct run_threads *crew, struct run *run, struct phema_error *err)
{
    crew->workers = calloc(crew->n, sizeof(*crew->workers));
    crew->members = calloc(crew->n, sizeof(*crew->members));
    crew->threads = calloc(crew->n, sizeof(*crew->threads));
    if (!crew->workers || !crew->members || !crew->threads)
        return phema_fail_memory(err);
    unsigned n_ready = 0;
    enum phema_status status = PHEMA_OK;
    while (n_ready < crew->n && !status) {
        status = worker_init(&crew->workers[n_ready], run, n_ready, err);
        n_ready += !status;
    }
    crew->n = n_ready;
    if (n_ready == 0)
        return status;
    for (; crew->n_running < crew->n; crew->n_running++) {
        struct crew_member *member = &crew->members[crew->n_running];
        *member = (struct crew_member){crew, &crew->workers[crew->n_running]};
        if (phema_thread_start(&crew->threads[crew->n_running], work, member))
            break;
    }
    if (crew->n_running == 0)
        worker_run(&crew->workers[0]); /* unwatched */
    return PHEMA_OK;
}

static void tell(struct run *run, double start_s, uint64_t *peak_bytes)
{
    uint64_t anonymous = phema_memory_now().anonymous_bytes;
    if (anonymous > *peak_bytes)
        *peak_bytes = anonymous;
    if (!run->options.report)
        return;
    const struct phema_tensor *tensor =
        &run->plan->series->tensors[atomic_load(&run->tensor)].tensor;
    struct phema_progress progress = {
        .done_bytes = atomic_load(&run->done_bytes),
        .total_bytes = run->total_bytes,
        .elapsed_s = phema_clock_s() - start_s,
        .tensor = tensor->name,
        .tensor_size = tensor->name_size,
    };
    run->options.report(run->options.context, &progress);
    if (run->options.is_stopped && run->options.is_stopped(run->options.context))
        run_stop(run);
}

/* A journal that cannot be written ends the run. */
static enum phema_status write_journals(struct run *run, enum phema_status before, bool is_last,
                                        struct phema_error *err)
{
    struct phema_error later;
    if (!run->progress)
        return before;
    enum phema_status status = journal_writer_write(run->progress, is_last, before ? &later : err);
    if (status)
        run_stop(run);
    return before ? before : status;
}

/* Wait for all, telling how far they are ten times a second, and writing it into journals. */
static enum phema_status watch(struct run_threads *crew, struct run *run, double start_s,
                               uint64_t *peak_bytes, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    (void)pthread_mutex_lock(&crew->lock);
    while (crew->n_done < crew->n_running) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        (void)pthread_cond_timedwait(&crew->is_done, &crew->lock, &until);
        if (crew->n_done < crew->n_running) {
            (void)pthread_mutex_unlock(&crew->lock);
            tell(run, start_s, peak_bytes);
            if (!status)
                status = write_journals(run, status, false, err);
            (void)pthread_mutex_lock(&crew->lock);
        }
    }
    (void)pthread_mutex_unlock(&crew->lock);
    tell(run, start_s, peak_bytes);
    return status;
}

PHEMA_FALLIBLE run_threads_execute(struct run *run, struct phema_synth_result *result,
                                   double start_s, struct phema_error *err)
{
    struct run_threads crew = {.n = run->budget.n_threads,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .is_done = PTHREAD_COND_INITIALIZER};
    enum phema_status status = start(&crew, run, err);
    struct phema_error later;
    if (status)
        run_stop(run);
    enum phema_status watched =
        watch(&crew, run, start_s, &result->peak_anonymous_bytes, status ? &later : err);
    status = status ? status : watched;
    for (unsigned i = 0; i < crew.n_running; i++)
        (void)pthread_join(crew.threads[i], NULL);
    for (unsigned i = 0; crew.workers && i < crew.n; i++) {
        struct worker *worker = &crew.workers[i];
        if (!status && worker->status) {
            status = worker->status;
            *err = worker->err;
        }
        result->n_nan += worker->counts.n_nan;
        result->n_inf += worker->counts.n_inf;
        result->n_overflow += worker->counts.n_overflow;
        if (worker->run && worker->nan_tensor < result->nan_tensor)
            result->nan_tensor = worker->nan_tensor;
        if (worker->digests)
            input_digests_move(run->digests, run->digests->sums, worker->digests);
        worker_clear(worker);
    }
    free(crew.workers);
    free(crew.members);
    free(crew.threads);
    status =
        write_journals(run, status, true, err); /* also where it failed: what is done is done */
    if (!status && atomic_load(&run->is_stopped))
        status = phema_fail(err, PHEMA_NO, "was stopped before all tensors had been added up");
    return status;
}

/* What an ended run has left of the outputs of a pass. */
static enum phema_status resume(struct run *run, size_t pass, struct phema_synth_result *result,
                                struct phema_error *err)
{
    size_t first = 0, end = 0;
    struct done_ranges done = {0};
    if (!run->progress)
        return PHEMA_OK;
    run_outputs_of(run, pass, &first, &end);
    enum phema_status status = resume_pass(&done, run, first, end, result, err);
    if (status)
        return status;
    journal_writer_begin_pass(run->progress, first, end, &done);
    result->resumed_bytes += run_subtract_done(run);
    return PHEMA_OK;
}

PHEMA_FALLIBLE run_pass(struct run *run, size_t pass, struct phema_synth_result *result,
                        double start_s, struct phema_error *err)
{
    enum phema_status status = run_begin_pass(run, pass, err);
    if (!status)
        status = resume(run, pass, result, err);
    if (!status)
        status = run_threads_execute(run, result, start_s, err);
    return status ? status : run_end_pass(run, err);
}

PHEMA_FALLIBLE run_check_inputs_unchanged(const struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; !status && k < series->n; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        status = phema_checkpoint_check_unchanged(checkpoint, err);
    }
    for (size_t t = 0; !status && t < run->outputs->n_templates; t++)
        status = phema_checkpoint_check_unchanged(run->outputs->templates[t], err);
    return status;
}

/* ---- What is left when all tensors are written ---- */

struct finishing {
    struct run_threads crew; /* of one, who has no worker */
    struct run *run;
    size_t output;
    enum phema_status status;
    struct phema_error err;
};

static void *finish(void *argument)
{
    struct finishing *finishing = argument;
    finishing->status = sink_finish(finishing->run->sinks[finishing->output], &finishing->err);
    (void)pthread_mutex_lock(&finishing->crew.lock);
    finishing->crew.n_done++;
    (void)pthread_cond_signal(&finishing->crew.is_done);
    (void)pthread_mutex_unlock(&finishing->crew.lock);
    return NULL;
}

PHEMA_FALLIBLE run_finish_outputs(struct run *run, size_t output, struct phema_synth_result *result,
                                  double start_s, struct phema_error *err)
{
    struct finishing finishing = {
        .crew = {.lock = PTHREAD_MUTEX_INITIALIZER, .is_done = PTHREAD_COND_INITIALIZER},
        .run = run,
        .output = output};
    pthread_t thread;
    enum phema_status status = PHEMA_OK;
    if (phema_thread_start(&thread, finish, &finishing) == 0) {
        finishing.crew.n_running = 1;
        status = watch(&finishing.crew, run, start_s, &result->peak_anonymous_bytes, err);
        (void)pthread_join(thread, NULL);
    } else {
        (void)finish(&finishing); /* unwatched */
    }
    if (finishing.status && !status)
        *err = finishing.err;
    return status ? status : finishing.status;
}
