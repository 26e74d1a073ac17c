// SPDX-License-Identifier: Apache-2.0
/* join.c - the parts of an output become that output. Markers go last, since they alone say that it
 * is whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "join.h"
#include "partial.h"
#include "phema/strbuf.h"

PHEMA_FALLIBLE phema_writer_join_open(struct phema_writer_join **out, const char *path,
                                      const struct phema_writer_options *options,
                                      struct phema_error *err)
{
    struct phema_writer_join *join = calloc(1, sizeof(*join));
    if (!join)
        return phema_fail_memory(err);
    *join = (struct phema_writer_join){.options = *options, .descriptor = -1};
    join->path = part_marker_base_of(path);
    join->directory = join->path ? part_marker_directory_of(join->path) : NULL;
    enum phema_status status = PHEMA_OK;
    if (!join->directory || asprintf(&join->partial_path, "%s.partial", join->path) < 0) {
        join->partial_path = NULL;
        status = phema_fail_memory(err);
    }
    if (!status)
        status = join_check(join, err);
    if (!status)
        join->usual_write = writer_usual_write(join->path);
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

/* Nothing is written over but what was left free for it. */
static enum phema_status check_digits(const struct phema_writer_join *join, int descriptor,
                                      uint64_t offset, struct phema_error *err)
{
    char digits[PHEMA_DIGEST] = "";
    struct phema_hash_sum ignored;
    for (size_t done = 0; done < PHEMA_DIGEST - 1;) {
        ssize_t n =
            pread(descriptor, digits + done, PHEMA_DIGEST - 1 - done, (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return writer_fail_errno(err, join->partial_path, "cannot be read", errno);
        if (n == 0)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    if (phema_hash_sum_read(&ignored, digits))
        return PHEMA_OK;
    return phema_fail(
        err, PHEMA_ERR_OUTPUT,
        "%s: expected 32 hexadecimal digits at byte %llu, as its parts say; remove it "
        "and all %s.part-*, and write all parts again",
        join->partial_path, (unsigned long long)offset, join->path);
}

static enum phema_status put_digits(const struct phema_writer_join *join, int descriptor,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0; k < join->first.n_sums && !status; k++)
        status = check_digits(join, descriptor, join->first.sums[k].offset, err);
    for (size_t k = 0; k < join->first.n_sums && !status; k++) {
        const struct phema_writer_part_sum *sum = &join->first.sums[k];
        char digits[PHEMA_DIGEST];
        phema_hash_sum_show(digits, &sum->sum);
        for (size_t done = 0; done < PHEMA_DIGEST - 1 && !status;) {
            ssize_t n = pwrite(descriptor, digits + done, PHEMA_DIGEST - 1 - done,
                               (off_t)(sum->offset + done));
            if (n <= 0 && !(n < 0 && errno == EINTR))
                status = writer_fail_errno(err, join->partial_path, "cannot be written",
                                           n ? errno : ENOSPC);
            done += n > 0 ? (size_t)n : 0;
        }
    }
    return status;
}

/* What was read for all parts, into the header that the first one has written. One that is stopped
 * here does the same again. */
static enum phema_status put_sums(const struct phema_writer_join *join, struct phema_error *err)
{
    const struct part_marker *wanted = &join->first;
    if (!wanted->n_sums)
        return PHEMA_OK;
    if (!wanted->is_directory)
        return put_digits(join, join->descriptor, err);
    int descriptor = openat(join->descriptor, wanted->files[0].name,
                            O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return writer_fail_errno(err, join->partial_path, "cannot be opened", errno);
    enum phema_status status = put_digits(join, descriptor, err);
    if (!status && join->options.syncs && writer_sync(descriptor))
        status = writer_fail_errno(err, join->path, "cannot be synced", errno);
    (void)close(descriptor);
    return status;
}

static enum phema_status publish_file(const struct phema_writer_join *join, struct phema_error *err)
{
    if (join->options.syncs && writer_sync(join->descriptor))
        return writer_fail_errno(err, join->path, "cannot be synced", errno);
    if (writer_publish(join->partial_path, join->path, join->options.replaces))
        return writer_fail_publish(join->path, errno, err);
    writer_open_to_others(join->descriptor, join->usual_write);
    return join->options.syncs ? phema_writer_sync_entry(join->path, err) : PHEMA_OK;
}

static enum phema_status publish_directory(struct phema_writer_join *join, struct phema_error *err)
{
    struct phema_writer_directory *directory = NULL;
    int descriptor = join->descriptor;
    join->descriptor = -1;
    enum phema_status status =
        writer_directory_adopt(&directory, join->path, descriptor, &join->options, err);
    return status ? status : phema_writer_directory_commit(directory, err);
}

static enum phema_status publish(struct phema_writer_join *join, struct phema_error *err)
{
    if (!join->is_published) {
        enum phema_status status = put_sums(join, err);
        if (status)
            return status;
        return join->first.is_directory ? publish_directory(join, err) : publish_file(join, err);
    }
    enum phema_status status =
        join->options.syncs ? phema_writer_sync_entry(join->path, err) : PHEMA_OK;
    if (!status && join->first.is_directory && join->descriptor >= 0)
        status = writer_remove_replaced(join->path, join->partial_path, err);
    return status;
}

/* Of a part that was killed when it was done. */
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
