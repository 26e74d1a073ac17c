// SPDX-License-Identifier: Apache-2.0
/* gen.c - A simulated training: checks the options, distributes runs of parameters over threads,
 * publishes the files. Each run goes through the whole training at once and writes its part of
 * every file. So memory is one run for each thread, and results do not depend on the threads. */
#include "phema/gen.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "files.h"
#include "phema/accumulate.h"
#include "phema/clock.h"
#include "phema/parallel.h"
#include "phema/setting.h"

/* Every step takes two doubles or more, and microseconds for each beta. */
#define MAX_STEPS   100000000u
#define MAX_PARAMS  (1ULL << 50)
#define MAX_TENSORS 1000000u
#define MAX_TIMES   1000000u

struct work {
    const struct gen_training *training;
    const struct gen_model *model;
    const struct gen_files *files;
    const struct phema_backend *backend;
    _Atomic uint64_t next_run;
    atomic_bool is_failed; /* the other workers stop */
    const struct phema_gen_options *options;
    double start_s, reported_s;
    _Atomic uint64_t n_done; /* parameters, from stop to stop */
    uint64_t n_total;
};

#define REPORT_EVERY_S 0.1

/* By the first worker alone. */
static void report(struct work *work)
{
    double now_s = phema_clock_s();
    if (!work->options->report || now_s - work->reported_s < REPORT_EVERY_S)
        return;
    work->reported_s = now_s;
    work->options->report(work->options->context, atomic_load(&work->n_done), work->n_total,
                          now_s - work->start_s);
}

static bool is_writable_dtype(enum phema_dtype dtype)
{
    return dtype == PHEMA_F16 || dtype == PHEMA_BF16 || dtype == PHEMA_F32 || dtype == PHEMA_F64;
}

/* Suggests the least value, or the default for one that is too large. */
static enum phema_status fail_range(const char *what, enum phema_setting setting, uint64_t value,
                                    uint64_t least, uint64_t most, struct phema_error *err)
{
    char enough[32] = "";
    if (value < least)
        (void)snprintf(enough, sizeof(enough), "%" PRIu64, least);
    (void)phema_fail(err, PHEMA_ERR_USAGE,
                     "number of %s (%s): expected %" PRIu64 " to %" PRIu64 ", found %" PRIu64, what,
                     phema_setting_name(setting), least, most, value);
    return phema_suggest(err, PHEMA_ERR_USAGE, setting, enough);
}

static enum phema_status check_ranges(const struct phema_gen_options *options,
                                      struct phema_error *err)
{
    const struct {
        const char *what;
        enum phema_setting setting;
        uint64_t value, least, most;
    } ranges[] = {
        {"snapshots", PHEMA_SET_COUNT, options->count, 1, MAX_TIMES},
        {"steps", PHEMA_SET_STEPS, options->steps, options->count, MAX_STEPS},
        {"tensors", PHEMA_SET_TENSORS, options->n_tensors, 1, MAX_TENSORS},
        {"parameters", PHEMA_SET_PARAMS, options->n_params, options->n_tensors, MAX_PARAMS},
        {"steps between updates", PHEMA_SET_UPDATE_EVERY, options->update_every, 1, MAX_STEPS},
        {"threads", PHEMA_SET_THREADS, options->n_threads, 1, 65536},
    };
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most)
            return fail_range(ranges[i].what, ranges[i].setting, ranges[i].value, ranges[i].least,
                              ranges[i].most, err);
    }
    for (uint64_t i = 0; options->times && i < options->count; i++)
        if (options->times[i] <= (i ? options->times[i - 1] : 0) ||
            options->times[i] > options->steps)
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "times of snapshots: expected ascending steps from 1 to %" PRIu64
                              ", found %" PRIu64,
                              options->steps, options->times[i]);
    if (!is_writable_dtype(options->dtype) || !is_writable_dtype(options->truth_dtype))
        return phema_fail(err, PHEMA_ERR_USAGE, "dtype: expected F16, BF16, F32 or F64, found %s",
                          phema_dtype_name(is_writable_dtype(options->dtype) ? options->truth_dtype
                                                                             : options->dtype));
    return PHEMA_OK;
}

static enum phema_status put_run(const struct work *work, const struct gen_state *state,
                                 const struct gen_file *file, size_t tensor, uint64_t first_elem,
                                 size_t n, void *buffer, struct phema_error *err)
{
    struct phema_narrow_counts counts = {0};
    const double *source = file->item->average == GEN_RAW
                               ? state->parameters
                               : state->averages + file->item->average * GEN_RUN_ELEMS;
    uint64_t elem_bytes = phema_dtype_bits(file->dtype) / 8;
    phema_narrow(work->backend, buffer, file->dtype, PHEMA_ACCUMULATE_F64, source, n,
                 PHEMA_OVERFLOW_INF, &counts);
    uint64_t offset = file->data_at + (work->files->first_elems[tensor] + first_elem) * elem_bytes;
    return phema_writer_write(file->writer, offset, buffer, n * elem_bytes, err);
}

static enum phema_status do_run(struct work *work, bool reports, struct gen_state *state,
                                size_t tensor, uint64_t first_elem, void *buffer,
                                struct phema_error *err)
{
    const struct gen_tensor *place = &work->model->tensors[tensor];
    uint64_t n_left = place->n_elems - first_elem;
    struct gen_run run = {place->first_param + first_elem,
                          n_left < GEN_RUN_ELEMS ? (size_t)n_left : GEN_RUN_ELEMS, place->mean,
                          place->scale};
    const struct gen_files *files = work->files;
    gen_run_start(state, work->training, &run);
    size_t next = 0;
    for (size_t i = 0; i < work->training->n_stops; i++) {
        gen_run_advance(state, work->training, &run, i);
        atomic_fetch_add_explicit(&work->n_done, run.n, memory_order_relaxed);
        if (reports)
            report(work);
        uint64_t step = work->training->stops[i].step;
        for (; next < files->n && files->files[next].item->time == step; next++) {
            enum phema_status status =
                put_run(work, state, &files->files[next], tensor, first_elem, run.n, buffer, err);
            if (status)
                return status;
        }
    }
    return PHEMA_OK;
}

/* The work of one thread: runs until none is left. */
static enum phema_status do_runs(void *context, size_t worker, struct phema_error *err)
{
    struct work *work = context;
    struct gen_state state = {NULL, NULL, NULL};
    double *buffer = malloc(GEN_RUN_ELEMS * sizeof(double));
    enum phema_status status =
        buffer ? gen_state_init(&state, work->training, err)
               : phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the simulation");
    const struct gen_tensor *tensor = work->model->tensors;
    while (!status && !atomic_load(&work->is_failed)) {
        uint64_t run = atomic_fetch_add(&work->next_run, 1);
        if (run >= work->model->tensors[work->model->n].first_run)
            break;
        while (tensor[1].first_run <= run)
            tensor++; /* the runs of a worker ascend */
        status = do_run(work, worker == 0, &state, (size_t)(tensor - work->model->tensors),
                        (run - tensor->first_run) * GEN_RUN_ELEMS, buffer, err);
    }
    if (status)
        atomic_store(&work->is_failed, true);
    gen_state_clear(&state);
    free(buffer);
    return status;
}

static enum phema_status write_series(const char *directory,
                                      const struct phema_gen_options *options,
                                      const struct gen_training *training,
                                      const struct gen_model *model,
                                      const struct gen_request *request, struct phema_error *err)
{
    struct gen_files files;
    enum phema_status status = gen_files_open(&files, directory, options, model, request, err);
    double start_s = phema_clock_s();
    struct work work = {.training = training,
                        .model = model,
                        .files = &files,
                        .backend = phema_backend_for_cpu(),
                        .options = options,
                        .start_s = start_s,
                        .reported_s = start_s,
                        .n_total = options->n_params * training->n_stops};
    uint64_t n_runs = model->tensors[model->n].first_run;
    unsigned n_threads = options->n_threads < n_runs ? options->n_threads : (unsigned)n_runs;
    if (!status)
        status = phema_parallel_try(n_threads, n_threads, do_runs, &work, err);
    if (!status)
        status = gen_files_commit(&files, err);
    gen_files_clear(&files);
    return status;
}

enum phema_status phema_gen(const char *directory, const struct phema_gen_options *options,
                            struct phema_error *err)
{
    struct gen_request request = {0};
    struct gen_training training = {0};
    struct gen_model model = {0};
    struct phema_made_directories outer = {0}, truth = {0};
    char *inner = NULL;
    enum phema_status status = check_ranges(options, err);
    if (!status)
        status = gen_request_init(&request, options, err);
    if (!status)
        status = gen_training_init(&training, options, request.averages, request.n_averages,
                                   request.stops, request.n_stops, err);
    if (!status)
        status = gen_model_init(&model, options->n_tensors, options->n_params, err);
    if (!status)
        status = phema_writer_make_directories(&outer, directory, false, err);
    if (!status && request.n_truth_kinds && asprintf(&inner, "%s/truth", directory) < 0) {
        inner = NULL;
        status = phema_fail_memory(err);
    }
    if (!status && inner)
        status = phema_writer_make_directories(&truth, inner, false, err);
    if (!status)
        status = write_series(directory, options, &training, &model, &request, err);
    phema_writer_leave_directories(&truth, !status);
    phema_writer_leave_directories(&outer, !status);
    free(inner);
    gen_model_clear(&model);
    gen_training_clear(&training);
    gen_request_clear(&request);
    return status;
}
