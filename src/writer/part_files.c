// SPDX-License-Identifier: Apache-2.0
/* part_files.c - files that several parts write: opened or created, and brought to their size. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "part.h"
#include "partial.h"
#include "write_error.h"
#include "writer_internal.h"

/* The file is never emptied: other parts may be writing it. */
static enum phema_status bring_to_size(struct phema_writer *writer, uint64_t size_bytes,
                                       struct phema_error *err)
{
    struct stat st;
    writer->size_bytes = size_bytes;
    if (size_bytes > INT64_MAX)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: larger than any file can be", writer->path);
    if (fstat(writer->descriptor, &st))
        return writer_fail_errno(err, writer->path, "cannot be examined", errno);
    if ((uint64_t)st.st_size > size_bytes && file_truncate(writer->descriptor, size_bytes))
        return writer_fail_errno(err, writer->path, "cannot be cut to its size", errno);
    return file_reserve(writer->descriptor, size_bytes)
               ? writer_fail_size(err, writer->path, size_bytes, errno)
               : PHEMA_OK;
}

static enum phema_status open_inside(int *out, const struct phema_writer_part *part,
                                     const char *name, struct phema_error *err)
{
    char *path = NULL;
    bool is_new = false;
    if (asprintf(&path, "%s/%s", part->partial_path, name) < 0)
        return phema_fail_memory(err);
    enum phema_status status =
        partial_open_shared_file(out, &is_new, part->descriptor, name, path, err);
    if (!status && *out < 0)
        status = writer_fail_errno(err, path, "cannot be written", ENOENT);
    free(path);
    return status;
}

/* Opens file f, of whatever size. A shared file has no separate partial path: it is neither renamed
 * nor removed. */
static enum phema_status begin_file(struct phema_writer **out, struct phema_writer_part *part,
                                    size_t f, struct phema_error *err)
{
    const char *name = part->options->files[f].name;
    struct phema_writer_options options = {.syncs = part->options->syncs};
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", part->path, name ? "/" : "", name ? name : "") < 0)
        return writer_fail_memory(err, part->path);
    struct phema_writer *writer = writer_new(path, &options);
    free(path);
    if (!writer)
        return writer_fail_memory(err, part->path);
    writer->is_inside = true;
    enum phema_status status = PHEMA_OK;
    if (name)
        status = open_inside(&writer->descriptor, part, name, err);
    else if ((writer->descriptor = fcntl(part->descriptor, F_DUPFD_CLOEXEC, 0)) < 0)
        status = writer_fail_errno(err, writer->path, "cannot be written", errno);
    return writer_hand_over(out, writer, status);
}

PHEMA_FALLIBLE phema_writer_part_file(struct phema_writer **out, struct phema_writer_part *part,
                                      size_t f, struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status = begin_file(&writer, part, f, err);
    if (status)
        return status;
    status = bring_to_size(writer, part->options->files[f].size_bytes, err);
    return writer_hand_over(out, writer, status);
}

PHEMA_FALLIBLE phema_writer_part_copy_file(struct phema_writer_part *part, size_t f,
                                           const char *source, struct phema_error *err)
{
    int descriptor = -1;
    uint64_t size_bytes = 0;
    struct phema_writer *writer = NULL;
    enum phema_status status = writer_open_source(&descriptor, &size_bytes, source, err);
    if (status)
        return status;
    if (size_bytes != part->options->files[f].size_bytes)
        status = phema_fail(err, PHEMA_ERR_FILE, "%s: changed while it was being used", source);
    if (!status)
        status = begin_file(&writer, part, f, err);
    if (!status)
        status = writer_copy(writer, descriptor, source, size_bytes, err);
    (void)close(descriptor);
    if (!status)
        return phema_writer_commit(writer, err);
    phema_writer_abandon(writer);
    return status;
}
