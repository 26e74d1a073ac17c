// SPDX-License-Identifier: Apache-2.0
/* synth.c - the run: open the outputs, start the workers, watch them, publish. */
#include "phema/synth.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/memory.h"
#include "phema/text.h"
#include "phema/writer.h"
#include "worker.h"

/* Sums of all workers together, and mapped input of all jobs in flight: what bounds memory. */
#define MAX_SUM_BYTES  ((size_t)32 << 20)
#define MAX_JOB_BYTES  ((uint64_t)8 << 20)
#define MAX_READ_BYTES ((uint64_t)256 << 20)

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t peak_resident_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss << 10 : 0;
}

/* What was needed until now, to open the snapshots and to solve; files have hardly been touched. */
static uint64_t peak_so_far(void)
{
    uint64_t peak_bytes = peak_resident_bytes(), file_bytes = phema_memory_now().file_bytes;
    return peak_bytes > file_bytes ? peak_bytes - file_bytes : 0;
}

/* ---- Outputs ---- */

static enum phema_status make_directory(const struct phema_outputs *outputs,
                                        struct phema_cleanup_entry **made, struct phema_error *err)
{
    if (!outputs->made_directory)
        return PHEMA_OK;
    phema_cleanup_hold();
    enum phema_status status = PHEMA_OK;
    if (mkdir(outputs->made_directory, 0777) == 0)
        status = phema_cleanup_add_partial(made, outputs->made_directory, true, err);
    else if (errno != EEXIST)
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: cannot be made: %s",
                            outputs->made_directory, strerror(errno));
    phema_cleanup_resume();
    return status;
}

static enum phema_status open_outputs(struct run *run, struct phema_error *err)
{
    struct sink_options options = {run->options->replaces, run->options->syncs,
                                   run->options->n_threads};
    enum phema_status status =
        phema_writer_allow(run->outputs->m * sink_n_files(run->outputs), err);
    for (size_t j = 0; !status && j < run->outputs->m; j++)
        status = sink_check(run->plan, run->outputs, j, &options, err);
    for (size_t j = 0; !status && j < run->outputs->m; j++)
        status = sink_open(&run->sinks[j], run->plan, run->outputs, j, &options, err);
    return status;
}

static enum phema_status check_inputs(const struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; !status && k < series->n; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        status = phema_reader_finish(run->readers[k], err);
        if (!status)
            status = phema_checkpoint_check_unchanged(checkpoint, err);
    }
    for (size_t t = 0; !status && t < run->outputs->n_templates; t++)
        status = phema_checkpoint_check_unchanged(run->outputs->templates[t], err);
    return status;
}

static enum phema_status publish(struct run *run, bool is_directory_made, struct phema_error *err)
{
    enum phema_status status = check_inputs(run, err);
    for (size_t j = 0; !status && j < run->outputs->m; j++) {
        status = sink_finish(run->sinks[j], err);
        run->outputs->items[j].size_bytes = sink_size_bytes(run->sinks[j]);
    }
    for (size_t j = 0; !status && j < run->outputs->m; j++) {
        struct sink *sink = run->sinks[j];
        run->sinks[j] = NULL;
        status = sink_commit(sink, err);
    }
    if (!status && is_directory_made && run->options->syncs)
        status = phema_writer_sync_entry(run->outputs->made_directory, err);
    return status;
}

/* ---- Workers ---- */

struct crew {
    struct worker *workers;
    pthread_t *threads;
    unsigned n, n_running;
    pthread_mutex_t lock;
    pthread_cond_t is_done;
    unsigned n_done;
};

struct crew_member {
    struct crew *crew;
    struct worker *worker;
};

static void *work(void *argument)
{
    struct crew_member *member = argument;
    struct crew *crew = member->crew;
    worker_run(member->worker);
    free(member);
    (void)pthread_mutex_lock(&crew->lock);
    crew->n_done++;
    (void)pthread_cond_signal(&crew->is_done);
    (void)pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static enum phema_status start(struct crew *crew, struct run *run, struct phema_error *err)
{
    crew->workers = calloc(crew->n, sizeof(*crew->workers));
    crew->threads = calloc(crew->n, sizeof(*crew->threads));
    if (!crew->workers || !crew->threads)
        return phema_fail_memory(err);
    for (unsigned i = 0; i < crew->n; i++) {
        enum phema_status status = worker_init(&crew->workers[i], run, err);
        if (status)
            return status;
    }
    for (; crew->n_running < crew->n; crew->n_running++) {
        struct crew_member *member = malloc(sizeof(*member));
        if (!member)
            return phema_fail_memory(err);
        *member = (struct crew_member){crew, &crew->workers[crew->n_running]};
        int failed = pthread_create(&crew->threads[crew->n_running], NULL, work, member);
        if (failed) {
            free(member);
            return phema_fail(err, PHEMA_ERR_RESOURCE, "thread %u cannot be started: %s",
                              crew->n_running + 1, strerror(failed));
        }
    }
    return PHEMA_OK;
}

static void tell(struct run *run, double start_s, uint64_t *peak_bytes)
{
    uint64_t anonymous = phema_memory_now().anonymous_bytes;
    if (anonymous > *peak_bytes)
        *peak_bytes = anonymous;
    if (!run->options->report)
        return;
    const struct phema_tensor *tensor =
        &run->plan->series->tensors[atomic_load(&run->tensor)].tensor;
    struct phema_progress progress = {
        .done_bytes = atomic_load(&run->done_bytes) * run->plan->series->n,
        .total_bytes = run->cut.read_bytes * run->plan->series->n,
        .elapsed_s = now_s() - start_s,
        .tensor = tensor->name,
        .tensor_size = tensor->name_size,
    };
    run->options->report(run->options->context, &progress);
}

/* Wait for all, telling how far they are ten times a second. */
static void watch(struct crew *crew, struct run *run, double start_s, uint64_t *peak_bytes)
{
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
            (void)pthread_mutex_lock(&crew->lock);
        }
    }
    (void)pthread_mutex_unlock(&crew->lock);
    tell(run, start_s, peak_bytes);
}

static enum phema_status employ(struct run *run, struct phema_synth_result *result, double start_s,
                                struct phema_error *err)
{
    struct crew crew = {.n = run->options->n_threads,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .is_done = PTHREAD_COND_INITIALIZER};
    enum phema_status status = start(&crew, run, err);
    if (status)
        run_stop(run);
    watch(&crew, run, start_s, &result->peak_anonymous_bytes);
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
        worker_clear(worker);
    }
    free(crew.workers);
    free(crew.threads);
    return status;
}

/* ---- Together ---- */

static void link_aliases(struct run *run)
{
    const struct phema_series *series = run->plan->series;
    for (size_t i = 0; i < series->n_tensors; i++)
        run->next_alias[i] = SIZE_MAX;
    for (size_t i = 0; i < series->n_tensors; i++) {
        size_t first = series->tensors[i].same_as;
        if (first == i)
            continue;
        run->next_alias[i] = run->next_alias[first];
        run->next_alias[first] = i;
    }
}

/* Where inputs are copied one after another, the first one of each group is kept to compare the
 * others with; most groups begin with the same. */
static enum phema_status count_references(struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    run->reference_of = calloc(run->n_groups + 1, sizeof(*run->reference_of));
    if (!run->reference_of)
        return phema_fail_memory(err);
    bool is_any_copied = false;
    for (size_t k = 0; k < series->n; k++) {
        is_any_copied = is_any_copied || series->snapshots[k].is_decoded;
        for (size_t i = 0; i < series->n_tensors && !is_any_copied; i++)
            is_any_copied =
                series->snapshots[k].places[i].stride || series->snapshots[k].places[i].parts;
    }
    for (size_t g = 0; g < run->n_groups && is_any_copied; g++) {
        size_t same = 0;
        while (same < g && (run->groups[same].n_inputs == 0 || run->groups[g].n_inputs == 0 ||
                            run->groups[same].inputs[0] != run->groups[g].inputs[0]))
            same++;
        run->reference_of[g] = same < g ? run->reference_of[same] : run->n_references++;
    }
    return PHEMA_OK;
}

static enum phema_status open_readers(struct run *run, struct phema_error *err)
{
    const struct phema_series *series = run->plan->series;
    run->readers = calloc(series->n + 1, sizeof(struct phema_reader *));
    if (!run->readers)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    bool is_decoded = false;
    for (size_t k = 0; k < series->n && !status; k++) {
        status = phema_reader_open(&run->readers[k], series->snapshots[k].checkpoint, err);
        is_decoded = is_decoded || series->snapshots[k].is_decoded;
    }
    if (!status && is_decoded)
        status = turns_make(&run->turns, series, err);
    return status;
}

/* What compressing takes for each thread: input, output and a compressor, measured at the highest
 * levels for pieces of 4 MiB. */
#define COMPRESSOR_BYTES ((uint64_t)96 << 20)

/* How large the sums of all workers may be. Beside them stand what opening and solving have left,
 * and one decoder for each compressed snapshot; compressing begins when the sums are gone. */
static enum phema_status fit_memory(const struct run *run, size_t *max_sum_bytes,
                                    struct phema_error *err)
{
    *max_sum_bytes = MAX_SUM_BYTES;
    uint64_t limit = run->options->max_ram_bytes;
    if (!limit)
        return PHEMA_OK;
    const struct phema_series *series = run->plan->series;
    unsigned n_threads = run->options->n_threads;
    uint64_t present = phema_memory_now().anonymous_bytes + n_threads * ((uint64_t)256 << 10);
    uint64_t decoders = 0;
    for (size_t k = 0; k < series->n; k++)
        decoders += phema_checkpoint_decoder_bytes(series->snapshots[k].checkpoint);
    uint64_t sums = cut_least_bytes(run->plan->m + 2 + run->n_references) * n_threads;
    uint64_t least = decoders + sums;
    if (run->outputs->form == PHEMA_FORM_COMPRESSED && least < n_threads * COMPRESSOR_BYTES)
        least = n_threads * COMPRESSOR_BYTES;
    if (present + least > limit) {
        struct phema_name_buffer wanted, given, windows;
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "--max-ram %s: at least %s are needed with %u threads (%s of it to "
                          "decompress snapshots)",
                          phema_size_shown(&given, limit),
                          phema_size_shown(&wanted, present + least), n_threads,
                          phema_size_shown(&windows, decoders));
    }
    uint64_t left = limit - present - decoders;
    if (left < *max_sum_bytes)
        *max_sum_bytes = (size_t)left;
    return PHEMA_OK;
}

static enum phema_status prepare(struct run *run, struct phema_error *err)
{
    size_t max_sum_bytes = 0;
    const struct phema_series *series = run->plan->series;
    enum phema_status status = groups_make(&run->groups, &run->n_groups, run->plan, err);
    if (!status)
        status = open_readers(run, err);
    if (!status)
        status = count_references(run, err);
    if (!status)
        status = fit_memory(run, &max_sum_bytes, err);
    if (status)
        return status;
    unsigned n_threads = run->options->n_threads;
    uint64_t job_bytes = MAX_READ_BYTES / series->n / n_threads;
    /* beside the sums a worker has a tile in C order, a tile as written, and references */
    status =
        cut_make(&run->cut, series, run->plan->m + 2 + run->n_references, max_sum_bytes / n_threads,
                 job_bytes < MAX_JOB_BYTES ? job_bytes : MAX_JOB_BYTES, n_threads, err);
    if (status)
        return status;
    run->sum_elems = run->cut.tile_elems;
    for (size_t i = 0; i < series->n_tensors; i++)
        if (series->tensors[i].tensor.dtype == PHEMA_C64 ||
            series->tensors[i].tensor.dtype == PHEMA_C128)
            run->sum_elems = 2 * run->cut.tile_elems;
    run->next_alias = calloc(series->n_tensors + 1, sizeof(*run->next_alias));
    run->varies = calloc(series->n_tensors + 1, sizeof(*run->varies));
    run->sinks = calloc(run->outputs->m + 1, sizeof(struct sink *));
    if (!run->next_alias || !run->varies || !run->sinks)
        return phema_fail_memory(err);
    link_aliases(run);
    return PHEMA_OK;
}

static void count_tensors(const struct run *run, struct phema_synth_result *result)
{
    const struct phema_series *series = run->plan->series;
    for (size_t i = 0; i < series->n_tensors; i++) {
        if (series->tensors[i].rule == PHEMA_RULE_COPY)
            result->n_copied++;
        else if (series->tensors[i].tensor.n_elems &&
                 !atomic_load(&run->varies[series->tensors[i].same_as]))
            result->n_constant++;
        else
            result->n_averaged++;
    }
    for (size_t j = 0; j < run->outputs->m; j++)
        result->written_bytes += run->outputs->items[j].size_bytes;
    result->read_bytes = run->cut.read_bytes * series->n;
    result->peak_resident_bytes = peak_resident_bytes();
}

PHEMA_FALLIBLE phema_synth_run(struct phema_synth_result *result, const struct phema_plan *plan,
                               struct phema_outputs *outputs,
                               const struct phema_synth_options *options, struct phema_error *err)
{
    double start_s = now_s();
    *result = (struct phema_synth_result){.nan_tensor = SIZE_MAX,
                                          .n_threads = options->n_threads,
                                          .peak_anonymous_bytes = peak_so_far()};
    struct run run = {
        .plan = plan, .outputs = outputs, .options = options, .backend = phema_backend_for_cpu()};
    result->backend = phema_backend_name(run.backend);
    struct phema_cleanup_entry *made = NULL;
    enum phema_status status = prepare(&run, err);
    if (!status)
        status = make_directory(outputs, &made, err);
    if (!status)
        status = open_outputs(&run, err);
    if (!status)
        status = employ(&run, result, start_s, err);
    if (!status)
        status = publish(&run, made != NULL, err);
    if (!status)
        count_tensors(&run, result);

    for (size_t j = 0; run.sinks && j < outputs->m; j++)
        sink_abandon(run.sinks[j]);
    for (size_t k = 0; run.readers && k < plan->series->n; k++)
        phema_reader_close(run.readers[k]);
    turns_free(run.turns);
    phema_cleanup_remove(made);
    if (status && made)
        (void)rmdir(outputs->made_directory);
    cut_clear(&run.cut);
    groups_free(run.groups, run.n_groups);
    free(run.next_alias);
    free(run.varies);
    free(run.reference_of);
    free(run.readers);
    free(run.sinks);
    result->elapsed_s = now_s() - start_s;
    return status;
}
