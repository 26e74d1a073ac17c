// SPDX-License-Identifier: Apache-2.0
/* join.c - publishes an output whose parts are all done. Markers are removed last, since they alone
 * tell that the output is complete. */
#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "directory.h"
#include "path_names.h"
#include "permissions.h"
#include "write_error.h"
#include "writer_internal.h"

PHEMA_FALLIBLE phema_writer_join_open(struct phema_writer_join **out, const char *path,
                                      const struct phema_writer_options *options,
                                      struct phema_error *err)
{
    struct phema_writer_join *join = calloc(1, sizeof(*join));
    if (!join)
        return phema_fail_memory(err);
    *join = (struct phema_writer_join){.options = *options, .descriptor = -1};
    join->path = path_trim(path);
    join->directory = join->path ? path_directory(join->path) : NULL;
    join->partial_path = join->path ? path_partial(join->path) : NULL;
    enum phema_status status =
        join->directory && join->partial_path ? join_check(join, err) : phema_fail_memory(err);
    if (!status)
        join->usual_write = permissions_usual_write(join->path);
    if (status)
        phema_writer_join_abandon(join);
    else
        *out = join;
    return status;
}

const char *phema_writer_join_path(const struct phema_writer_join *join)
{
    return join->path;
}

uint64_t phema_writer_join_bytes(const struct phema_writer_join *join)
{
    return join->size_bytes;
}

uint64_t phema_writer_join_n_parts(const struct phema_writer_join *join)
{
    return join->n_parts;
}

/* ---- Publishing ---- */

/* Only digits may be overwritten: the header reserves them for this. */
static enum phema_status check_digits(const struct phema_writer_join *join, int descriptor,
                                      uint64_t offset, struct phema_error *err)
{
    char digits[PHEMA_DIGEST] = "";
    struct phema_hash_sum ignored;
    if (file_read_fully(descriptor, digits, PHEMA_DIGEST - 1, offset) < 0)
        return writer_fail_errno(err, join->partial_path, "cannot be read", errno);
    if (phema_hash_sum_read(&ignored, digits))
        return PHEMA_OK;
    return phema_fail(
        err, PHEMA_ERR_OUTPUT,
        "%s: expected 32 hexadecimal digits at byte %llu, as its parts say; remove it "
        "and all %s.part-*, and write all parts again",
        join->partial_path, (unsigned long long)offset, join->path);
}

static enum phema_status write_digits(const struct phema_writer_join *join, int descriptor,
                                      struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < join->first.n_sums && !status; k++)
        status = check_digits(join, descriptor, join->first.sums[k].offset, err);
    for (size_t k = 0; k < join->first.n_sums && !status; k++) {
        const struct phema_writer_part_sum *sum = &join->first.sums[k];
        char digits[PHEMA_DIGEST];
        phema_hash_sum_show(digits, &sum->sum);
        if (file_write_fully(descriptor, digits, PHEMA_DIGEST - 1, sum->offset))
            status = writer_fail_errno(err, join->partial_path, "cannot be written", errno);
    }
    return status;
}

/* Writes the sums over the data of all parts into the header that the first part has written. The
 * next join writes the same bytes when this one is stopped here. */
static enum phema_status write_sums(const struct phema_writer_join *join, struct phema_error *err)
{
    const struct part_marker *wanted = &join->first;
    if (!wanted->n_sums)
        return PHEMA_OK;
    if (!wanted->is_directory)
        return write_digits(join, join->descriptor, err);
    int descriptor = openat(join->descriptor, wanted->files[0].name,
                            O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return writer_fail_errno(err, join->partial_path, "cannot be opened", errno);
    enum phema_status status = write_digits(join, descriptor, err);
    if (!status && join->options.syncs && file_sync(descriptor))
        status = writer_fail_errno(err, join->path, "cannot be synced", errno);
    (void)close(descriptor);
    return status;
}

static enum phema_status publish_file(const struct phema_writer_join *join, struct phema_error *err)
{
    if (join->options.syncs && file_sync(join->descriptor))
        return writer_fail_errno(err, join->path, "cannot be synced", errno);
    if (writer_publish(join->partial_path, join->path, join->options.replaces))
        return writer_fail_publish(err, join->path, errno);
    permissions_open_file(join->descriptor, join->usual_write);
    return join->options.syncs ? phema_writer_sync_entry(join->path, err) : PHEMA_OK;
}

static enum phema_status publish_directory(struct phema_writer_join *join, struct phema_error *err)
{
    struct phema_writer_directory *directory = NULL;
    int descriptor = join->descriptor;
    join->descriptor = -1;
    enum phema_status status =
        directory_adopt(&directory, join->path, descriptor, &join->options, err);
    return status ? status : phema_writer_directory_commit(directory, err);
}

static enum phema_status publish(struct phema_writer_join *join, struct phema_error *err)
{
    if (!join->is_published) {
        enum phema_status status = write_sums(join, err);
        if (status)
            return status;
        return join->first.is_directory ? publish_directory(join, err) : publish_file(join, err);
    }
    enum phema_status status =
        join->options.syncs ? phema_writer_sync_entry(join->path, err) : PHEMA_OK;
    if (!status && join->first.is_directory && join->descriptor >= 0)
        status = directory_remove_replaced(join->path, join->partial_path, err);
    return status;
}

/* The journal of a part that was killed when it was done. */
static void remove_journal(const char *marker)
{
    char *path = NULL;
    if (asprintf(&path, "%s.journal", marker) < 0)
        return;
    phema_writer_journal_remove(path);
    free(path);
}

PHEMA_FALLIBLE phema_writer_join_commit(struct phema_writer_join *join, struct phema_error *err)
{
    enum phema_status status = publish(join, err);
    for (uint64_t part = 1; part <= join->n_parts && !status; part++) {
        char *path = part_marker_path(join->path, part, join->n_parts);
        if (!path)
            status = phema_fail_memory(err);
        else if (unlink(path) && errno != ENOENT)
            status = writer_fail_errno(err, path, "cannot be removed", errno);
        if (path && !status)
            remove_journal(path);
        free(path);
    }
    if (!status && join->options.syncs)
        status = phema_writer_sync_entry(join->path, err);
    phema_writer_join_abandon(join);
    return status;
}

void phema_writer_join_abandon(struct phema_writer_join *join)
{
    if (!join)
        return;
    if (join->descriptor >= 0)
        (void)close(join->descriptor);
    part_marker_clear(&join->first);
    free(join->path);
    free(join->partial_path);
    free(join->directory);
    free(join);
}
