// SPDX-License-Identifier: Apache-2.0
/* run.c - see run.h. */
#include "run.h"

#include <stdlib.h>

#include "phema/memory.h"
#include "phema/text.h"

/* Sums of all workers together, and mapped input of all jobs in flight: what bounds memory. */
#define MAX_SUM_BYTES  ((size_t)32 << 20)
#define MAX_JOB_BYTES  ((uint64_t)8 << 20)
#define MAX_READ_BYTES ((uint64_t)256 << 20)
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

PHEMA_FALLIBLE run_prepare(struct run *run, struct phema_error *err)
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

void run_clear(struct run *run)
{
    for (size_t j = 0; run->sinks && j < run->outputs->m; j++)
        sink_abandon(run->sinks[j]);
    for (size_t k = 0; run->readers && k < run->plan->series->n; k++)
        phema_reader_close(run->readers[k]);
    turns_free(run->turns);
    cut_clear(&run->cut);
    groups_free(run->groups, run->n_groups);
    free(run->next_alias);
    free(run->varies);
    free(run->reference_of);
    free(run->readers);
    free(run->sinks);
}

void run_stop(struct run *run)
{
    atomic_store_explicit(&run->is_stopped, true, memory_order_relaxed);
    if (run->turns)
        turns_stop(run->turns);
}
