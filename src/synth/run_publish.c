// SPDX-License-Identifier: Apache-2.0
/* run_publish.c - the outputs of a pass are completed, synced and renamed. Syncs take most of that
 * time: all files are synced at once, and a directory once for all names in it. A failure leaves
 * the outputs before it published. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "input_digests.h"
#include "phema/parallel.h"
#include "phema/path.h"
#include "tile.h"

/* Calls of fsync at once. Their threads only wait: the disk merges what they ask for. */
#define N_SYNCING 8

/* ---- An output is complete ---- */

/* An output that failed verification must not be resumed. */
static void discard(struct run *run)
{
    for (size_t j = 0; j < run->outputs->m; j++)
        if (run->sinks[j])
            sink_keep(run->sinks[j], false);
}

/* Completes the provenance: digests are known after all data were read. Those of a part cover only
 * its share of the data, and go into its marker. */
static enum phema_status write_digests(struct run *run, size_t j, struct phema_error *err)
{
    struct phema_output *output = &run->outputs->items[j];
    if (!run->input_digests || !output->n_digests)
        return PHEMA_OK;
    struct phema_hash_sum *sums = calloc(output->n_digests + 1, sizeof(*sums));
    if (!sums)
        return phema_fail_memory(err);
    input_digests_of_output(sums, run, j);
    if (!run->options.n_parts)
        phema_output_set_digests(output, sums);
    enum phema_status status = sink_write_digests(run->sinks[j], sums, err);
    free(sums);
    return status;
}

/* Rereads a finished output before it is published, if options.verifies. PHEMA_ERR_OUTPUT names the
 * output and a tensor that differs from the written data. */
static enum phema_status reread_output(struct run *run, size_t output, struct phema_error *err)
{
    if (!run->options.verifies)
        return PHEMA_OK;
    size_t hint = 0;
    run_begin_stage(run, "checking", output);
    enum phema_status status = sink_begin_verify(run->sinks[output], err);
    for (uint64_t t = 0; t < tiling_n_tiles(&run->tiling) && !status; t++) {
        struct tile_range range = tiling_tile(&run->tiling, t, &hint);
        status = tile_transfer(run, output, &range, NULL, NULL, err);
        atomic_fetch_add(&run->stage_bytes,
                         phema_dtype_bytes(run->outputs->dtypes[range.tensor], range.n_elems));
        run_report_stage(run);
    }
    if (!status)
        status = sink_end_verify(run->sinks[output], err);
    run->stage = NULL;
    return status;
}

static enum phema_status finish(void *sink, struct phema_error *err)
{
    return sink_finish(sink, err);
}

static enum phema_status complete_output(struct run *run, size_t j, struct phema_error *err)
{
    phema_memory_profile_begin_stage(run->options.memory_profile, PHEMA_STAGE_WRITE);
    enum phema_status status = write_digests(run, j, err);
    if (status)
        return status;
    run->is_stage_of_all = phema_output_traits(run->outputs)->is_compressed;
    status = run_do_step(run, run->is_stage_of_all ? "compressing" : "finishing", j, finish,
                         run->sinks[j], err);
    run->is_stage_of_all = false;
    if (status)
        return status;
    status = reread_output(run, j, err);
    if (status)
        discard(run);
    return status;
}

/* ---- Its data are on disk ---- */

struct syncing {
    struct run *run;
    size_t first, end; /* outputs */
};

static void sync_file(void *context, size_t index)
{
    const struct syncing *syncing = context;
    struct run *run = syncing->run;
    size_t j = syncing->first;
    for (; index >= sink_n_synced_files(run->sinks[j]); j++)
        index -= sink_n_synced_files(run->sinks[j]);
    atomic_store(&run->stage_output, j);
    sink_sync_file(run->sinks[j], index);
}

static enum phema_status sync_files(void *context, struct phema_error *err)
{
    (void)err; /* the commits report failures, in the order of the outputs */
    const struct syncing *syncing = context;
    size_t n = 0;
    for (size_t j = syncing->first; j < syncing->end; j++)
        n += sink_n_synced_files(syncing->run->sinks[j]);
    phema_parallel(n, N_SYNCING, sync_file, context);
    return PHEMA_OK;
}

/* ---- It has its name ---- */

static enum phema_status commit(void *sink, struct phema_error *err)
{
    return sink_commit(sink, err);
}

static enum phema_status do_storing(struct run *run, size_t j, run_step *step, void *context,
                                    struct phema_error *err)
{
    bool may_wait = run->options.syncs && run->options.report;
    return may_wait ? run_do_step(run, "storing", j, step, context, err) : step(context, err);
}

static bool are_in_one_directory(const char *a, const char *b)
{
    char *left = phema_path_directory(a), *right = phema_path_directory(b);
    bool are = left && right && strcmp(left, right) == 0;
    free(left);
    free(right);
    return are;
}

/* *is_left: the directory is still to be synced. */
static enum phema_status name_output(bool *is_left, struct run *run, size_t j, size_t end,
                                     struct phema_error *err)
{
    struct phema_output *output = &run->outputs->items[j];
    struct sink *sink = run->sinks[j];
    output->size_bytes = sink_size_bytes(sink);
    *is_left = j + 1 < end && are_in_one_directory(output[0].path, output[1].path) &&
               sink_leave_entry(sink);
    run->sinks[j] = NULL;
    enum phema_status status = do_storing(run, j, commit, sink, err);
    run->n_published += !status;
    return status;
}

/* Publishes complete outputs. Where one fails, those before it are durable. */
static enum phema_status publish_complete(struct run *run, size_t first, size_t end,
                                          struct phema_error *err)
{
    phema_memory_profile_begin_stage(run->options.memory_profile, PHEMA_STAGE_PUBLISH);
    struct syncing syncing = {run, first, end};
    enum phema_status status = run->options.syncs && first < end
                                   ? do_storing(run, first, sync_files, &syncing, err)
                                   : PHEMA_OK;
    bool was_left = false;
    for (size_t j = first; j < end && !status; j++) {
        bool is_left = false;
        status = name_output(&is_left, run, j, end, err);
        struct phema_error ignored; /* the first failure counts */
        if (status && was_left &&
            phema_writer_sync_entry(run->outputs->items[j - 1].path, &ignored))
            break;
        was_left = is_left;
    }
    return status;
}

/* Compressed outputs are published one by one: each takes long, and gives back its plain file. */
static enum phema_status publish_outputs(struct run *run, size_t first, size_t end,
                                         struct phema_error *err)
{
    size_t batch = phema_output_traits(run->outputs)->is_compressed ? 1 : end - first;
    enum phema_status status = PHEMA_OK;
    while (first < end && !status) {
        size_t n = 0;
        while (n < batch && !status) {
            status = complete_output(run, first + n, err);
            n += !status;
        }
        struct phema_error earlier;
        enum phema_status published = publish_complete(run, first, first + n, &earlier);
        if (published)
            *err = earlier;
        status = published ? published : status;
        first += n;
    }
    return status;
}

PHEMA_FALLIBLE run_publish(struct run *run, struct phema_error *err)
{
    enum phema_status status = run_check_inputs_unchanged(run, err);
    if (status)
        discard(run);
    else
        status = publish_outputs(run, run->first_output, run->end_output, err);
    if (status)
        return status;
    bool is_of_parts = run->options.n_parts && run->outputs->made_directory;
    if (!run->options.syncs)
        return PHEMA_OK;
    status = phema_writer_sync_directories(&run->made, err);
    return status || !is_of_parts ? status
                                  : phema_writer_sync_entry(run->outputs->made_directory, err);
}
