// SPDX-License-Identifier: Apache-2.0
/* part.c - one process' part of an output. Nothing here relies on locks alone, since network
 * filesystems may have locks of one machine only. A shared file is never emptied, only brought
 * to its size, which is equal for all parts of one output. A part writes its own marker before it
 * reads the others'. Of two parts of different outputs, at least one therefore sees the other. */
#include "part.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "phema/strbuf.h"
#include "writer_internal.h"
#include "zstd_encoder.h"

/* Of a copied file, for its checksums. */
#define COUNTED_BYTES ((size_t)1 << 20)

struct phema_writer_part {
    const struct phema_writer_part_options *options;
    struct pending out;        /* PATH.partial, file or directory, locked shared */
    struct pending plain;      /* of a compressed output its content, the same */
    struct pending marker;     /* locked exclusively; a failure removes it once it is this run's */
    struct pending frames;     /* of a compressed output, once they are complete; not locked */
    struct part_blocks blocks; /* of the bytes that this part has written */
    struct part_numbers sizes; /* of the frames that this part has compressed */
    uint64_t frames_bytes, frames_hash;
};

/* Opens and locks the marker. A new one is removed when the program dies; an existing one tells how
 * far an earlier run came, and stays until this run begins. Ending signals are held. */
static enum phema_status open_marker(struct phema_writer_part *part, struct phema_error *err)
{
    enum phema_status status = pending_open(&part->marker, PENDING_MARKER, err);
    if (status == PHEMA_NO)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: part %llu of %llu is being written by another run", part->out.path,
                          (unsigned long long)part->options->part,
                          (unsigned long long)part->options->n_parts);
    return status || !part->marker.is_ours ? status : pending_guard(&part->marker, err);
}

static enum phema_status write_marker(const struct phema_writer_part *part, bool is_done,
                                      struct phema_error *err)
{
    const struct phema_writer_part_options *options = part->options;
    const struct part_blocks *blocks = &part->blocks;
    struct stat st;
    if (fstat(part->out.lock, &st))
        return writer_fail_errno(err, part->out.path, "cannot be examined", errno);
    uint64_t *shares = calloc(blocks->n + 1, sizeof(*shares));
    if (!shares)
        return phema_fail_memory(err);
    for (size_t b = 0; b < blocks->n; b++)
        shares[b] = atomic_load(&blocks->items[b]);
    struct part_marker marker = {.state = is_done ? MARKER_DONE : MARKER_UNFINISHED,
                                 .part = options->part,
                                 .n_parts = options->n_parts,
                                 .is_directory = options->is_directory,
                                 .files = part_writable(options->files),
                                 .n_files = options->n_files,
                                 .sidecar = part_writable(options->sidecar),
                                 .sidecar_bytes = options->sidecar ? strlen(options->sidecar) : 0,
                                 .sums_file = options->sums_file,
                                 .sums = part_writable(options->sums),
                                 .n_sums = options->n_sums,
                                 .crcs = part_writable(options->crcs),
                                 .n_crcs = options->n_crcs,
                                 .has_blocks = is_done,
                                 .block_bytes = blocks->block_bytes,
                                 .blocks = {shares, blocks->n},
                                 .is_compressed = options->frames != NULL,
                                 .verifies = options->verifies,
                                 .frames = part->sizes,
                                 .frames_bytes = part->frames_bytes,
                                 .frames_hash = part->frames_hash,
                                 .inode = (uint64_t)st.st_ino};
    if (options->frames)
        marker.all_frames = *options->frames;
    (void)snprintf(marker.digest, sizeof(marker.digest), "%s", options->digest);
    enum phema_status status = part_marker_write(part->marker.lock, part->marker.partial_path,
                                                 &marker, options->syncs, err);
    free(shares);
    return status;
}

/* ---- The other parts ---- */

static enum phema_status fail_mismatch(const struct phema_writer_part *part, const char *name,
                                       const char *what, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: %s is %s; to start anew, remove %s.partial and all %s.part-*",
                      part->out.path, name, what, phema_path_last_name(part->out.path),
                      phema_path_last_name(part->out.path));
}

/* The file or directory that holds the data of all parts. */
static const struct pending *data_of(const struct phema_writer_part *part)
{
    return part->options->frames ? &part->plain : &part->out;
}

static enum phema_status check_other(const struct phema_writer_part *part, const char *path,
                                     struct phema_error *err)
{
    struct stat st;
    struct part_marker marker = {0};
    const struct phema_writer_part_options *options = part->options;
    enum phema_status status = part_marker_read(&marker, path, err);
    if (status)
        return status;
    bool is_there = lstat(data_of(part)->partial_path, &st) == 0;
    if (is_there && options->is_directory)
        is_there = S_ISDIR(st.st_mode);
    else if (is_there)
        is_there = S_ISREG(st.st_mode) && (uint64_t)st.st_size == options->files[0].size_bytes;
    if (*marker.digest && strcmp(marker.digest, part->options->digest) != 0)
        status = fail_mismatch(part, phema_path_last_name(path),
                               "of another output: targets, options, the program's version or a "
                               "snapshot differ",
                               err);
    else if (marker.state == MARKER_DONE && !is_there)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: %s says that its part is done, but %s is not what it has "
                            "left; to start anew, remove all %s.part-*",
                            part->out.path, phema_path_last_name(path),
                            phema_path_last_name(data_of(part)->partial_path),
                            phema_path_last_name(part->out.path));
    part_marker_clear(&marker);
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
    enum phema_status status = part_marker_list_make(&list, part->out.path, err);
    for (size_t i = 0; i < list.n && !status; i++) {
        const struct part_marker_name *name = &list.items[i];
        if (name->n_parts == part->options->n_parts && name->part == part->options->part)
            continue;
        *is_alone = false;
        status = name->n_parts == part->options->n_parts
                     ? check_other(part, name->path, err)
                     : fail_mismatch(part, phema_path_last_name(name->path),
                                     "of another number of parts", err);
    }
    part_marker_list_clear(&list);
    return status;
}

/* ---- The shared output ---- */

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
        &is_empty, part->out.lock, DIRECTORY_IS_LEFTOVER, part->out.partial_path, err);
    if (status)
        return status;
    directory_remove_unwanted(part->out.lock, 0, is_wanted, part);
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
                              part->out.path, phema_name_show(&shown, name));
    }
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
    if (!status)
        status = check_others(&is_alone, part, err);
    if (!status)
        status = pending_open(&part->out, PENDING_SHARED, err);
    if (!status && part->options->frames)
        status = pending_open(&part->plain, PENDING_SHARED, err);
    if (status)
        return status;
    phema_cleanup_hold(); /* overwrites the marker of an earlier run */
    status = part->marker.entry ? PHEMA_OK : pending_guard(&part->marker, err);
    part->marker.is_ours = !status;
    if (!status)
        status = write_marker(part, false, err);
    phema_cleanup_resume();
    if (!status)
        status = check_others(&is_alone, part, err); /* again: the others see this marker now */
    if (status || !part->options->is_directory || !is_alone)
        return status;
    return remove_unwanted(part, err);
}

/* false without memory; the part can be abandoned in any case. */
static bool name_files(struct phema_writer_part *part, const char *path)
{
    char *marker = part_marker_path("", part->options->part, part->options->n_parts);
    char *frames = part_frames_path(marker);
    bool is_made = pending_init(&part->out, path, ".partial");
    is_made &= pending_init(&part->plain, path, PHEMA_PLAIN_SUFFIX ".partial");
    is_made &= pending_init(&part->marker, path, marker);
    is_made &= pending_init(&part->frames, path, frames);
    part->out.is_directory = part->options->is_directory;
    free(marker);
    free(frames);
    return is_made;
}

PHEMA_FALLIBLE phema_writer_part_open(struct phema_writer_part **out, const char *path,
                                      const struct phema_writer_part_options *options,
                                      struct phema_error *err)
{
    struct phema_writer_part *part = calloc(1, sizeof(*part));
    if (!part)
        return writer_fail_memory(err, path);
    part->options = options;
    enum phema_status status =
        name_files(part, path) ? begin(part, err) : writer_fail_memory(err, path);
    if (status)
        phema_writer_part_abandon(part);
    else
        *out = part;
    return status;
}

/* ---- Its files ---- */

/* Opens file f, of whatever size. A shared file is neither renamed nor removed. */
static enum phema_status begin_file(struct phema_writer **out, struct phema_writer_part *part,
                                    size_t f, struct phema_error *err)
{
    const char *name = part->options->files[f].name, *all = part->out.path;
    struct phema_writer_options options = {.syncs = part->options->syncs};
    struct phema_writer *writer = NULL;
    char *path = name ? path_inside(all, name) : path_add(all, "");
    enum phema_status status = writer_new(&writer, path, path_add(path, ""), &options, all, err);
    if (status)
        return status;
    writer->is_inside = true;
    if (!name) {
        status = writer_share(writer, data_of(part)->lock, "cannot be written", err);
        return writer_hand_over(out, writer, status);
    }
    bool is_new = false;
    int *descriptor = &writer->descriptor;
    char *shared_path = path_inside(part->out.partial_path, name);
    status = shared_path ? partial_open_shared_file(descriptor, &is_new, part->out.lock, name,
                                                    shared_path, err)
                         : phema_fail_memory(err);
    if (!status && *descriptor < 0)
        status = writer_fail_errno(err, shared_path, "cannot be written", ENOENT);
    free(shared_path);
    return writer_hand_over(out, writer, status);
}

/* The file is brought to its size, but never emptied: other parts may be writing it. */
PHEMA_FALLIBLE phema_writer_part_file(struct phema_writer **out, struct phema_writer_part *part,
                                      size_t f, struct phema_error *err)
{
    struct stat st;
    struct phema_writer *writer = NULL;
    enum phema_status status = begin_file(&writer, part, f, err);
    if (status)
        return status;
    int descriptor = writer->descriptor;
    const char *path = writer->out.path;
    uint64_t size_bytes = writer->size_bytes = part->options->files[f].size_bytes;
    writer->blocks = part_blocks_of_file(&part->blocks, part->options, f);
    if (size_bytes > INT64_MAX)
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: larger than any file can be", path);
    else if (fstat(descriptor, &st))
        status = writer_fail_errno(err, path, "cannot be examined", errno);
    else if ((uint64_t)st.st_size > size_bytes && file_truncate(descriptor, size_bytes))
        status = writer_fail_errno(err, path, "cannot be cut to its size", errno);
    else if (file_reserve(descriptor, size_bytes))
        status = writer_fail_size(err, path, size_bytes, errno);
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

/* The file of frames is published, and stays on the list of files to remove until the marker says
 * that the part is done. */
static enum phema_status write_frames(struct phema_writer_part *part, struct zstd_job *job,
                                      struct phema_error *err)
{
    _Atomic uint64_t hash = 0;
    const struct phema_writer_options options = {.replaces = true, .syncs = part->options->syncs};
    enum phema_status status =
        phema_writer_open(&job->writer, part->frames.partial_path, 0, &options, err);
    if (status)
        return status;
    job->hash = &hash;
    status = zstd_write_frames(&part->frames_bytes, job, err);
    part->frames_hash = atomic_load(&hash);
    if (!status)
        status = phema_writer_finish(job->writer, err);
    if (status) {
        phema_writer_abandon(job->writer);
        return status;
    }
    phema_cleanup_hold();
    status = phema_writer_commit(job->writer, err);
    if (!status)
        status = pending_guard(&part->frames, err);
    phema_cleanup_resume();
    return status;
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
    part->sizes.items = calloc(frames->n + 1, sizeof(*part->sizes.items));
    if (!part->sizes.items)
        return phema_fail_memory(err);
    part->sizes.n = frames->n;
    struct zstd_job job = {.plain = plain,
                           .frames = frames,
                           .is_wanted = is_own,
                           .sizes = part->sizes.items,
                           .n_threads = n_threads,
                           .done_bytes = done_bytes};
    return n ? write_frames(part, &job, err) : PHEMA_OK;
}

/* ---- The end ---- */

static bool has_lost_name(const struct pending *pending)
{
    return pending->lock >= 0 && !partial_is_named(pending->lock, pending->partial_path);
}

static enum phema_status finish(struct phema_writer_part *part, struct phema_error *err)
{
    const struct phema_writer_part_options *options = part->options;
    /* bytes in a file that has lost its name are lost */
    const struct pending *lost = has_lost_name(&part->out)      ? &part->out
                                 : has_lost_name(&part->plain)  ? &part->plain
                                 : has_lost_name(&part->marker) ? &part->marker
                                                                : NULL;
    if (lost)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: was removed or replaced while part %llu of %llu was being written",
                          lost->partial_path, (unsigned long long)options->part,
                          (unsigned long long)options->n_parts);
    if (options->syncs && options->is_directory && file_sync(part->out.lock) && errno != EINVAL)
        return writer_fail_errno(err, part->out.path, "cannot be synced", errno);
    enum phema_status status =
        options->syncs ? phema_writer_sync_entry(part->out.path, err) : PHEMA_OK;
    if (status)
        return status;
    phema_cleanup_hold();
    status = write_marker(part, true, err);
    if (!status) {
        pending_keep(&part->marker, true);
        pending_keep(&part->frames, true);
    }
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
    part->frames.is_ours = part->marker.is_ours && part->options->frames;
    pending_clear(&part->frames);
    pending_clear(&part->out);
    pending_clear(&part->plain);
    pending_clear(&part->marker); /* last: then another run may write the part */
    free(part->sizes.items);
    part_blocks_clear(&part->blocks);
    free(part);
}
