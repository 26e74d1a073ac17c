// SPDX-License-Identifier: Apache-2.0
/* sink_files.c - Files of a directory that hold no tensors: written as text, or copied. */
#include "sink_internal.h"

/* Of a directory, or of the part that writes the side files. */
static enum phema_status add_side_file(struct sink *sink, size_t f, struct phema_error *err)
{
    const struct phema_side_file *file = &sink->outputs->side_files[f];
    size_t index = sink->output->n_files + f; /* in the files of a part */
    if (file->source && sink->part)
        return phema_writer_part_copy_file(sink->part, index, file->source, err);
    if (file->source)
        return phema_writer_directory_copy_file(sink->directory, file->name, file->source, err);
    struct phema_writer *writer = NULL;
    enum phema_status status = sink->part
                                   ? phema_writer_part_file(&writer, sink->part, index, err)
                                   : phema_writer_directory_add(&writer, sink->directory,
                                                                file->name, NULL, file->size, err);
    if (status)
        return status;
    status = phema_writer_write(writer, 0, file->text, file->size, err);
    if (!status)
        return phema_writer_commit(writer, err);
    phema_writer_abandon(writer);
    return status;
}

PHEMA_FALLIBLE sink_add_side_files(struct sink *sink, bool are_last, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (sink->options.part > 1)
        return PHEMA_OK;
    for (size_t f = 0; f < sink->outputs->n_side_files && !status; f++)
        if (sink->outputs->side_files[f].is_last == are_last)
            status = add_side_file(sink, f, err);
    return status;
}
