// SPDX-License-Identifier: Apache-2.0
/* sink.c - see sink.h. */
#include "sink.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "phema/writer.h"

struct sink {
    const struct phema_plan *plan;
    const struct phema_outputs *outputs;
    const struct phema_output *output;
    struct sink_options options;
    struct phema_writer **writers; /* [output->n_files] */
};

/* Replacing a snapshot by an average of it is never what was meant. */
static enum phema_status check_is_no_input(const struct phema_series *series, const char *path,
                                           struct phema_error *err)
{
    struct stat out, in;
    if (stat(path, &out))
        return PHEMA_OK; /* does not exist */
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        for (size_t f = 0; checkpoint && f < phema_checkpoint_n_files(checkpoint); f++)
            if (stat(phema_file_path(phema_checkpoint_file(checkpoint, f)), &in) == 0 &&
                in.st_dev == out.st_dev && in.st_ino == out.st_ino)
                return phema_fail(err, PHEMA_ERR_OUTPUT,
                                  "%s: is one of the snapshots; choose another name", path);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE sink_check(const struct phema_plan *plan, const struct phema_outputs *outputs,
                          size_t output, const struct sink_options *options,
                          struct phema_error *err)
{
    const char *path = outputs->items[output].path;
    enum phema_status status = check_is_no_input(plan->series, path, err);
    if (!status && !options->replaces)
        status = phema_writer_check_absent(path, err);
    return status;
}

size_t sink_n_files(const struct phema_outputs *outputs)
{
    return outputs->m ? outputs->items[0].n_files : 0;
}

PHEMA_FALLIBLE sink_open(struct sink **out, const struct phema_plan *plan,
                         const struct phema_outputs *outputs, size_t output,
                         const struct sink_options *options, struct phema_error *err)
{
    struct sink *sink = calloc(1, sizeof(*sink));
    if (!sink)
        return phema_fail_memory(err);
    *sink = (struct sink){plan, outputs, &outputs->items[output], *options, NULL};
    struct phema_writer_options writing = {.replaces = options->replaces, .syncs = options->syncs};
    sink->writers = calloc(sink->output->n_files, sizeof(struct phema_writer *));
    enum phema_status status = sink->writers ? PHEMA_OK : phema_fail_memory(err);
    for (size_t f = 0; f < sink->output->n_files && !status; f++) {
        const struct phema_output_file *file = &sink->output->files[f];
        status = phema_writer_open(&sink->writers[f], sink->output->path, file->size_bytes,
                                   &writing, err);
        if (!status)
            status = phema_writer_put(sink->writers[f], 0, file->header, file->header_size, err);
    }
    if (status) {
        sink_abandon(sink);
        return status;
    }
    *out = sink;
    return PHEMA_OK;
}

PHEMA_FALLIBLE sink_put(struct sink *sink, size_t i, uint64_t first, uint64_t n, const void *data,
                        struct phema_error *err)
{
    enum phema_dtype dtype = sink->outputs->dtypes[i];
    const struct phema_place *place = &sink->output->places[i];
    const struct phema_output_file *file = &sink->output->files[place->file];
    uint64_t offset =
        file->header_size + place->offset + sink->output->shift + phema_dtype_bytes(dtype, first);
    return phema_writer_put(sink->writers[place->file], offset, data,
                            (size_t)phema_dtype_bytes(dtype, n), err);
}

PHEMA_FALLIBLE sink_finish(struct sink *sink, struct phema_error *err)
{
    (void)sink;
    (void)err;
    return PHEMA_OK;
}

PHEMA_FALLIBLE sink_commit(struct sink *sink, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < sink->output->n_files && !status; f++) {
        struct phema_writer *writer = sink->writers[f];
        sink->writers[f] = NULL;
        status = phema_writer_commit(writer, err);
    }
    sink_abandon(sink);
    return status;
}

void sink_abandon(struct sink *sink)
{
    if (!sink)
        return;
    for (size_t f = 0; sink->writers && f < sink->output->n_files; f++)
        phema_writer_abandon(sink->writers[f]);
    free(sink->writers);
    free(sink);
}
