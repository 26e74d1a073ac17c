// SPDX-License-Identifier: Apache-2.0
/* join_frames.c - a compressed output from the frames of its parts. Frames that no part has
 * compressed lie where parts meet, or hold the header, whose digests are known now: they are
 * compressed here, from the content that all parts have written. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "join.h"
#include "partial.h"
#include "phema/parallel.h"
#include "write_error.h"
#include "writer_internal.h"
#include "zstd_encoder.h"

/* "PATH.part-2-of-8.frames"; the caller's, NULL without memory. */
static char *frames_path(const struct phema_writer_join *join, uint64_t part)
{
    char *marker_path = part_marker_path(join->path, part, join->n_parts);
    char *path = marker_path ? part_frames_path(marker_path) : NULL;
    free(marker_path);
    return path;
}

/* ---- Gathering and checking ---- */

static enum phema_status make_room(struct join_frames *frames, uint64_t n_parts, size_t n,
                                   struct phema_error *err)
{
    if (!frames->files)
        frames->files = calloc((size_t)n_parts, sizeof(*frames->files));
    struct join_frame *items =
        frames->files && n > frames->n ? realloc(frames->items, n * sizeof(*items)) : frames->items;
    if (!frames->files || (n > frames->n && !items))
        return phema_fail_memory(err);
    frames->items = items;
    for (; frames->n < n; frames->n++)
        items[frames->n] = (struct join_frame){0};
    return PHEMA_OK;
}

PHEMA_FALLIBLE join_add_frames(struct phema_writer_join *join, const struct part_marker *marker,
                               uint64_t part, struct phema_error *err)
{
    const struct phema_writer_part_frames *own = &marker->frames;
    struct join_frames *all = &join->frames;
    enum phema_status status = make_room(all, join->n_parts, own->n, err);
    if (status)
        return status;
    uint64_t offset = 0;
    for (size_t f = 0; f < own->n; f++) {
        if (!own->sizes[f])
            continue;
        if (all->items[f].size)
            return phema_fail(err, PHEMA_ERR_OUTPUT,
                              "%s: parts %u and %llu both have frame %zu; write all parts again",
                              join->path, all->items[f].part, (unsigned long long)part, f);
        all->items[f] = (struct join_frame){offset, own->sizes[f], (uint32_t)part};
        offset += own->sizes[f];
    }
    all->files[part - 1].size_bytes = own->size_bytes;
    all->files[part - 1].hash = own->hash;
    all->verifies |= marker->verifies;
    return PHEMA_OK;
}

/* path: of the frames of a part */
static enum phema_status fail_frames(const struct phema_writer_join *join, const char *path,
                                     uint64_t part, const char *what, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: %s; remove it and %s.part-%llu-of-%llu, and write part %llu again", path,
                      what, join->path, (unsigned long long)part, (unsigned long long)join->n_parts,
                      (unsigned long long)part);
}

/* Opens the frames of a part, whose marker tells their size. */
static enum phema_status open_frames(int *out, const struct phema_writer_join *join, uint64_t part,
                                     const char *path, struct phema_error *err)
{
    struct stat st;
    int descriptor = -1;
    enum phema_status status =
        leftover_open(&descriptor, AT_FDCWD, path, path, O_RDONLY, S_IFREG, err);
    if (!status && descriptor < 0)
        status = fail_frames(join, path, part, "is gone, though its part is done", err);
    if (!status && fstat(descriptor, &st))
        status = writer_fail_errno(err, path, "cannot be examined", errno);
    if (!status && (uint64_t)st.st_size != join->frames.files[part - 1].size_bytes)
        status = fail_frames(join, path, part, "is not as long as its part says", err);
    if (status && descriptor >= 0)
        (void)close(descriptor);
    else
        *out = descriptor;
    return status;
}

static enum phema_status check_part(const struct phema_writer_join *join, uint64_t part,
                                    struct phema_error *err)
{
    int descriptor = -1;
    char *path = frames_path(join, part);
    enum phema_status status =
        path ? open_frames(&descriptor, join, part, path, err) : phema_fail_memory(err);
    if (!status)
        (void)close(descriptor);
    free(path);
    return status;
}

PHEMA_FALLIBLE join_check_frames(struct phema_writer_join *join, struct phema_error *err)
{
    const struct phema_writer_frames *all = &join->first.all_frames;
    bool is_valid = all->n && join->frames.n <= all->n;
    for (size_t f = 0; f < join->frames.n && is_valid; f++)
        is_valid = join->frames.items[f].size <= zstd_frame_capacity(all, f);
    if (!is_valid)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: the frames of its parts are not those that part 1 tells; remove all "
                          "%s.part-*, and write all parts again",
                          join->path, join->path);
    for (uint64_t part = 1; part <= join->n_parts; part++) {
        if (!join->frames.files[part - 1].size_bytes)
            continue;
        enum phema_status status = check_part(join, part, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Writing ---- */

static enum phema_status open_source(struct zstd_source *source,
                                     const struct phema_writer_join *join, uint64_t part,
                                     const char *path, struct phema_error *err)
{
    if (source->descriptor >= 0 && source->number == part)
        return PHEMA_OK;
    if (source->descriptor >= 0)
        (void)close(source->descriptor);
    *source = (struct zstd_source){-1, (size_t)part};
    return open_frames(&source->descriptor, join, part, path, err);
}

static enum phema_status read_from(struct zstd_source *source, struct phema_writer_join *join,
                                   const struct join_frame *frame, const char *path,
                                   uint8_t *compressed, struct phema_error *err)
{
    enum phema_status status = open_source(source, join, frame->part, path, err);
    if (status)
        return status;
    ssize_t size = file_read_fully(source->descriptor, compressed, frame->size, frame->offset);
    if (size < 0)
        return writer_fail_errno(err, path, "cannot be read", errno);
    if ((size_t)size != frame->size)
        return fail_frames(join, path, frame->part, "is not as long as its part says", err);
    atomic_fetch_add(&join->frames.files[frame->part - 1].read_hash,
                     phema_hash_at(compressed, frame->size, frame->offset));
    return PHEMA_OK;
}

/* Threads take frames in order, so that most are in the file that is open. */
static enum phema_status read_ready(size_t *size, uint8_t *compressed, struct zstd_source *source,
                                    const struct zstd_job *job, size_t number,
                                    struct phema_error *err)
{
    struct phema_writer_join *join = job->context;
    *size = number < join->frames.n ? join->frames.items[number].size : 0;
    if (!*size)
        return PHEMA_OK;
    const struct join_frame *frame = &join->frames.items[number];
    char *path = frames_path(join, frame->part);
    enum phema_status status =
        path ? read_from(source, join, frame, path, compressed, err) : phema_fail_memory(err);
    free(path);
    return status;
}

/* Every frame was read once. */
static enum phema_status check_hashes(const struct phema_writer_join *join, struct phema_error *err)
{
    for (uint64_t part = 1; part <= join->n_parts; part++) {
        const struct join_part_file *file = &join->frames.files[part - 1];
        if (atomic_load(&file->read_hash) == file->hash)
            continue;
        char *path = frames_path(join, part);
        enum phema_status status =
            path ? fail_frames(join, path, part, "is not what its part has written", err)
                 : phema_fail_memory(err);
        free(path);
        return status;
    }
    return PHEMA_OK;
}

/* Rereads the file, from the disk where that is possible. */
static enum phema_status verify(const struct phema_writer_join *join, const struct zstd_job *job,
                                struct phema_error *err)
{
    if (!join->frames.verifies)
        return PHEMA_OK;
    if (fdatasync(join->descriptor))
        return writer_fail_errno(err, join->partial_path, "cannot be synced", errno);
    (void)posix_fadvise(join->descriptor, 0, 0, POSIX_FADV_DONTNEED);
    return zstd_check_frames(job, err);
}

/* Opens a writer of a file that is open, which stays open and stays there. */
static enum phema_status share_file(struct phema_writer **out, const char *path, int descriptor,
                                    const struct phema_writer_join *join, struct phema_error *err)
{
    int shared = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    return shared < 0 ? writer_fail_errno(err, path, "cannot be written", errno)
                      : writer_adopt(out, path, shared, &join->options, err);
}

static enum phema_status write_file(struct phema_writer_join *join, struct zstd_job *job,
                                    struct phema_error *err)
{
    enum phema_status status = share_file(&job->writer, join->path, join->descriptor, join, err);
    if (!status)
        status = share_file(&job->plain, join->path, join->plain, join, err);
    if (!status && file_truncate(join->descriptor, 0)) /* a join that was killed has left it */
        status = writer_fail_errno(err, join->partial_path, "cannot be emptied", errno);
    if (!status)
        status = zstd_write_file(&join->size_bytes, job, err);
    if (!status)
        status = check_hashes(join, err);
    return status ? status : verify(join, job, err);
}

PHEMA_FALLIBLE join_write_frames(struct phema_writer_join *join, struct phema_error *err)
{
    const struct phema_writer_frames *all = &join->first.all_frames;
    struct zstd_job job = {.frames = all,
                           .sizes = calloc(all->n, sizeof(*job.sizes)),
                           .read_ready = read_ready,
                           .context = join,
                           .n_threads = phema_parallel_threads()};
    enum phema_status status = job.sizes ? write_file(join, &job, err) : phema_fail_memory(err);
    phema_writer_abandon(job.writer);
    phema_writer_abandon(job.plain);
    free(job.sizes);
    if (status)
        (void)file_truncate(join->descriptor, 0);
    join->frames.are_written = !status;
    return status;
}

/* ---- Removing ---- */

/* path: NULL without memory; freed */
static enum phema_status remove_file(char *path, struct phema_error *err)
{
    enum phema_status status = path ? PHEMA_OK : phema_fail_memory(err);
    if (!status && unlink(path) && errno != ENOENT)
        status = writer_fail_errno(err, path, "cannot be removed", errno);
    free(path);
    return status;
}

PHEMA_FALLIBLE join_remove_plain(const struct phema_writer_join *join, struct phema_error *err)
{
    return remove_file(part_plain_path(join->path), err);
}

void join_frames_clear(struct phema_writer_join *join)
{
    free(join->frames.items);
    free(join->frames.files);
}
