// SPDX-License-Identifier: Apache-2.0
/* part.c - one process' part of an output. Nothing here relies on locks alone, since network
 * filesystems may have locks of one machine only. A shared file is never emptied, only brought
 * to its size, which is equal for all parts of one output. A part writes its own marker before it
 * reads the others'. Of two parts of different outputs, at least one therefore sees the other. */
#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "partial.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "phema/strbuf.h"
#include "write_error.h"
#include "writer_internal.h"
#include "zstd_encoder.h"

/* Of a copied file, for its checksums. */
#define COUNTED_BYTES ((size_t)1 << 20)

struct phema_writer_part {
    char *path, *partial_path, *part_marker_path;
    char *plain_path, *frames_path; /* of a compressed output */
    const struct phema_writer_part_options *options;
    int marker;     /* locked exclusively, or -1 */
    int descriptor; /* of PATH.partial, file or directory, locked shared, or -1 */
    int plain;      /* of PATH.plain.partial, the same, of a compressed output */
    bool is_ours;   /* this run has created the marker or written to it: a failure removes it */
    struct part_blocks blocks;              /* of the bytes that this part has written */
    struct phema_writer_part_frames frames; /* that this part has compressed */
    struct phema_cleanup_entry *entry, *frames_entry;
};

/* Opens and locks the marker. A new one is removed when the program dies; an existing one tells how
 * far an earlier run came, and stays until this run begins. Ending signals are held. */
static enum phema_status open_marker(struct phema_writer_part *part, struct phema_error *err)
{
    const struct partial_request request = {
        .path = part->path, .partial_path = part->part_marker_path, .use = PARTIAL_MARKER};
    bool is_new = false;
    enum phema_status status = partial_open(&part->marker, &is_new, &request, err);
    if (status == PHEMA_NO)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: part %llu of %llu is being written by another run", part->path,
                          (unsigned long long)part->options->part,
                          (unsigned long long)part->options->n_parts);
    if (status || !is_new)
        return status;
    part->is_ours = true;
    return phema_cleanup_add_partial(&part->entry, part->part_marker_path, false, err);
}

static enum phema_status write_marker(const struct phema_writer_part *part, bool is_done,
                                      struct phema_error *err)
{
    struct stat st;
    if (fstat(part->descriptor, &st))
        return writer_fail_errno(err, part->path, "cannot be examined", errno);
    return part_marker_write(part->marker, part->part_marker_path, part->options, &part->blocks,
                             &part->frames, (uint64_t)st.st_ino, is_done, err);
}

/* Overwrites the marker of an earlier run. Ending signals are held. */
static enum phema_status begin_marker(struct phema_writer_part *part, struct phema_error *err)
{
    if (!part->entry) {
        enum phema_status status =
            phema_cleanup_add_partial(&part->entry, part->part_marker_path, false, err);
        if (status)
            return status;
    }
    part->is_ours = true;
    return write_marker(part, false, err);
}

/* ---- The other parts ---- */

static enum phema_status fail_mismatch(const struct phema_writer_part *part, const char *name,
                                       const char *what, struct phema_error *err)
{
    return phema_fail(
        err, PHEMA_ERR_OUTPUT, "%s: %s is %s; to start anew, remove %s.partial and all %s.part-*",
        part->path, name, what, phema_path_last_name(part->path), phema_path_last_name(part->path));
}

/* The file or directory that holds the data of all parts. */
static const char *data_path(const struct phema_writer_part *part)
{
    return part->plain_path ? part->plain_path : part->partial_path;
}

/* true when this file or directory is of the kind and size that a finished part leaves. */
static bool is_data_there(const struct phema_writer_part *part)
{
    struct stat st;
    if (lstat(data_path(part), &st))
        return false;
    return part->options->is_directory
               ? S_ISDIR(st.st_mode)
               : S_ISREG(st.st_mode) && (uint64_t)st.st_size == part->options->files[0].size_bytes;
}

static enum phema_status check_other(const struct phema_writer_part *part, const char *path,
                                     struct phema_error *err)
{
    struct part_marker marker = {0};
    enum phema_status status = part_marker_read(&marker, path, err);
    if (status)
        return status;
    if (*marker.digest && strcmp(marker.digest, part->options->digest) != 0)
        status = fail_mismatch(part, phema_path_last_name(path),
                               "of another output: targets, options, the program's version or a "
                               "snapshot differ",
                               err);
    else if (marker.state == MARKER_DONE && !is_data_there(part))
        status =
            phema_fail(err, PHEMA_ERR_OUTPUT,
                       "%s: %s says that its part is done, but %s is not what it has "
                       "left; to start anew, remove all %s.part-*",
                       part->path, phema_path_last_name(path),
                       phema_path_last_name(data_path(part)), phema_path_last_name(part->path));
    part_marker_clear(&marker);
    return status;
}

static enum phema_status check_listed(const struct phema_writer_part *part,
                                      const struct part_marker_name *name, struct phema_error *err)
{
    char *path = part_marker_path(part->path, name->part, name->n_parts);
    if (!path)
        return writer_fail_memory(err, part->path);
    enum phema_status status =
        name->n_parts == part->options->n_parts
            ? check_other(part, path, err)
            : fail_mismatch(part, phema_path_last_name(path), "of another number of parts", err);
    free(path);
    return status;
}

/* *is_alone: no other part was found. Where each part of a thousand looked at all others, a million
 * markers would be read. */
static enum phema_status check_others(bool *is_alone, const struct phema_writer_part *part,
                                      struct phema_error *err)
{
    struct part_marker_list list = {0};
    *is_alone = !part->options->has_made_part;
    if (part->options->has_made_part)
        return PHEMA_OK;
    enum phema_status status = part_marker_list_make(&list, part->path, err);
    for (size_t i = 0; i < list.n && !status; i++) {
        const struct part_marker_name *name = &list.items[i];
        if (name->n_parts == part->options->n_parts && name->part == part->options->part)
            continue;
        *is_alone = false;
        status = check_listed(part, name, err);
    }
    part_marker_list_clear(&list);
    return status;
}

/* ---- The shared output ---- */

static enum phema_status open_shared(int *out, const struct phema_writer_part *part,
                                     const char *partial_path, struct phema_error *err)
{
    const struct partial_request request = {.path = part->path,
                                            .partial_path = partial_path,
                                            .use = PARTIAL_SHARED,
                                            .is_directory = part->options->is_directory};
    bool is_new = false;
    enum phema_status status = partial_open(out, &is_new, &request, err);
    return status == PHEMA_NO ? writer_fail_locked(err, part->path) : status;
}

static enum phema_status open_partial(struct phema_writer_part *part, struct phema_error *err)
{
    enum phema_status status = open_shared(&part->descriptor, part, part->partial_path, err);
    return status || !part->plain_path ? status
                                       : open_shared(&part->plain, part, part->plain_path, err);
}

static bool is_wanted(const void *context, const char *name)
{
    const struct phema_writer_part *part = context;
    for (size_t f = 0; f < part->options->n_files; f++)
        if (strcmp(part->options->files[f].name, name) == 0)
            return true;
    return false;
}

/* Removes files that a killed run of another plan has left in the directory. No other part is
 * there. */
static enum phema_status remove_unwanted(const struct phema_writer_part *part,
                                         struct phema_error *err)
{
    bool is_empty = false;
    enum phema_status status = directory_check_entries(
        &is_empty, part->descriptor, DIRECTORY_IS_LEFTOVER, part->partial_path, err);
    if (status)
        return status;
    directory_remove_unwanted(part->descriptor, 0, is_wanted, part);
    return PHEMA_OK;
}

/* Markers are JSON, and join compares the files with the names in them. */
static enum phema_status check_names(const struct phema_writer_part *part, struct phema_error *err)
{
    struct phema_name_buffer shown;
    for (size_t f = 0; f < part->options->n_files; f++) {
        const char *name = part->options->files[f].name;
        if (name && !phema_is_utf8(name, strlen(name)))
            return phema_fail(err, PHEMA_ERR_OUTPUT,
                              "%s: the name '%s' is not UTF-8, and what is written in parts has to "
                              "have such names",
                              part->path, phema_name_escape(&shown, name, strlen(name)));
    }
    return PHEMA_OK;
}

/* false: out of memory */
static bool make_paths(struct phema_writer_part *part, const char *path)
{
    part->path = phema_path_trim(path);
    if (!part->path)
        return false;
    part->part_marker_path =
        part_marker_path(part->path, part->options->part, part->options->n_parts);
    part->partial_path = path_partial(part->path);
    if (!part->part_marker_path || !part->partial_path)
        return false;
    if (!part->options->frames)
        return true;
    part->plain_path = part_plain_path(part->path);
    part->frames_path = part_frames_path(part->part_marker_path);
    return part->plain_path && part->frames_path;
}

static enum phema_status new_part(struct phema_writer_part **out, const char *path,
                                  const struct phema_writer_part_options *options,
                                  struct phema_error *err)
{
    struct phema_writer_part *part = calloc(1, sizeof(*part));
    if (!part)
        return writer_fail_memory(err, path);
    *part =
        (struct phema_writer_part){.options = options, .marker = -1, .descriptor = -1, .plain = -1};
    if (!make_paths(part, path)) {
        phema_writer_part_abandon(part);
        return writer_fail_memory(err, path);
    }
    *out = part;
    return PHEMA_OK;
}

static enum phema_status begin(struct phema_writer_part *part, struct phema_error *err)
{
    bool is_alone = false;
    enum phema_status status = check_names(part, err);
    if (!status)
        status = part_blocks_open(&part->blocks, part->options, err);
    if (status)
        return status;
    phema_cleanup_hold();
    status = open_marker(part, err);
    phema_cleanup_resume();
    if (status)
        return status;
    status = check_others(&is_alone, part, err);
    if (status)
        return status;
    status = open_partial(part, err);
    if (status)
        return status;
    phema_cleanup_hold();
    status = begin_marker(part, err);
    phema_cleanup_resume();
    if (status)
        return status;
    status = check_others(&is_alone, part, err); /* again, now that the others see this marker */
    if (status || !part->options->is_directory || !is_alone)
        return status;
    return remove_unwanted(part, err);
}

PHEMA_FALLIBLE phema_writer_part_open(struct phema_writer_part **out, const char *path,
                                      const struct phema_writer_part_options *options,
                                      struct phema_error *err)
{
    struct phema_writer_part *part = NULL;
    enum phema_status status = new_part(&part, path, options, err);
    if (status)
        return status;
    status = begin(part, err);
    if (status)
        phema_writer_part_abandon(part);
    else
        *out = part;
    return status;
}

/* ---- Its files ---- */

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
    else if ((writer->descriptor =
                  fcntl(part->plain_path ? part->plain : part->descriptor, F_DUPFD_CLOEXEC, 0)) < 0)
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
    writer->blocks = part_blocks_of_file(&part->blocks, part->options, f);
    return writer_hand_over(out, writer, status);
}

/* A copy is made inside the kernel where that is possible. */
static enum phema_status count_source(const struct phema_writer_part *part, size_t f,
                                      int descriptor, const char *source, struct phema_error *err)
{
    const struct part_file_blocks blocks = part_blocks_of_file(&part->blocks, part->options, f);
    uint8_t *buffer = malloc(COUNTED_BYTES);
    enum phema_status status = buffer ? PHEMA_OK : phema_fail_memory(err);
    for (uint64_t at = 0; at < blocks.size_bytes && !status;) {
        ssize_t size = file_read_fully(descriptor, buffer, COUNTED_BYTES, at);
        if (size < 0)
            status =
                phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be read: %s", source, strerror(errno));
        else if (size == 0) /* it was cut, which the copy reports */
            break;
        else
            part_blocks_add(&blocks, at, buffer, (size_t)size);
        at += (uint64_t)size;
    }
    free(buffer);
    return status;
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
    else
        status = count_source(part, f, descriptor, source, err);
    if (!status)
        status = begin_file(&writer, part, f, err);
    if (!status)
        status = writer_commit_copy(writer, descriptor, source, size_bytes, err);
    (void)close(descriptor);
    return status;
}

/* ---- Compressed frames ---- */

/* Publishes the file of frames, and puts it on the list of files to remove until the marker says
 * that the part is done. */
static enum phema_status commit_frames(struct phema_writer_part *part, struct phema_writer *writer,
                                       struct phema_error *err)
{
    enum phema_status status = phema_writer_finish(writer, err);
    if (status) {
        phema_writer_abandon(writer);
        return status;
    }
    phema_cleanup_hold();
    status = phema_writer_commit(writer, err);
    if (!status)
        status = phema_cleanup_add_partial(&part->frames_entry, part->frames_path, false, err);
    phema_cleanup_resume();
    return status;
}

static enum phema_status write_frames(struct phema_writer_part *part, struct zstd_job *job,
                                      struct phema_error *err)
{
    _Atomic uint64_t hash = 0;
    const struct phema_writer_options options = {.replaces = true, .syncs = part->options->syncs};
    enum phema_status status = phema_writer_open(&job->writer, part->frames_path, 0, &options, err);
    if (status)
        return status;
    job->hash = &hash;
    status = zstd_write_frames(&part->frames.size_bytes, job, err);
    if (status) {
        phema_writer_abandon(job->writer);
        return status;
    }
    part->frames.hash = atomic_load(&hash);
    return commit_frames(part, job->writer, err);
}

PHEMA_FALLIBLE phema_writer_part_compress(struct phema_writer_part *part,
                                          struct phema_writer *plain, const bool *is_own,
                                          unsigned n_threads, _Atomic uint64_t *done_bytes,
                                          struct phema_error *err)
{
    const struct phema_writer_frames *frames = part->options->frames;
    size_t n = 0;
    for (size_t f = 0; f < frames->n; f++)
        n += is_own[f];
    part->frames.sizes = calloc(frames->n + 1, sizeof(*part->frames.sizes));
    if (!part->frames.sizes)
        return phema_fail_memory(err);
    struct zstd_job job = {.plain = plain,
                           .frames = frames,
                           .is_wanted = is_own,
                           .sizes = part->frames.sizes,
                           .n_threads = n_threads,
                           .done_bytes = done_bytes};
    return n ? write_frames(part, &job, err) : PHEMA_OK;
}

/* ---- The end ---- */

static enum phema_status mark_done(struct phema_writer_part *part, struct phema_error *err)
{
    enum phema_status status = write_marker(part, true, err);
    if (status)
        return status;
    phema_cleanup_remove(part->entry);
    phema_cleanup_remove(part->frames_entry);
    part->entry = part->frames_entry = NULL;
    part->is_ours = false; /* it stays */
    return PHEMA_OK;
}

static enum phema_status finish(struct phema_writer_part *part, struct phema_error *err)
{
    const struct phema_writer_part_options *options = part->options;
    /* bytes in a file that has lost its name are lost */
    const char *lost =
        !partial_is_named(part->descriptor, part->partial_path)                ? part->partial_path
        : part->plain_path && !partial_is_named(part->plain, part->plain_path) ? part->plain_path
        : !partial_is_named(part->marker, part->part_marker_path) ? part->part_marker_path
                                                                  : NULL;
    if (lost)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: was removed or replaced while part %llu of %llu was being written",
                          lost, (unsigned long long)options->part,
                          (unsigned long long)options->n_parts);
    if (options->syncs && options->is_directory && file_sync(part->descriptor) && errno != EINVAL)
        return writer_fail_errno(err, part->path, "cannot be synced", errno);
    enum phema_status status = options->syncs ? phema_writer_sync_entry(part->path, err) : PHEMA_OK;
    if (status)
        return status;
    phema_cleanup_hold();
    status = mark_done(part, err);
    phema_cleanup_resume();
    return status;
}

PHEMA_FALLIBLE phema_writer_part_finish(struct phema_writer_part *part, struct phema_error *err)
{
    enum phema_status status = finish(part, err);
    phema_writer_part_abandon(part);
    return status;
}

void phema_writer_part_abandon(struct phema_writer_part *part)
{
    if (!part)
        return;
    if (part->is_ours) {
        (void)unlink(part->part_marker_path);
        if (part->frames_path)
            (void)unlink(part->frames_path);
    }
    phema_cleanup_remove(part->entry);
    phema_cleanup_remove(part->frames_entry);
    if (part->descriptor >= 0)
        (void)close(part->descriptor);
    if (part->plain >= 0)
        (void)close(part->plain);
    if (part->marker >= 0)
        (void)close(part->marker);
    free(part->path);
    free(part->partial_path);
    free(part->part_marker_path);
    free(part->plain_path);
    free(part->frames_path);
    free(part->frames.sizes);
    part_blocks_clear(&part->blocks);
    free(part);
}
