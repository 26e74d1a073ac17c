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
#include "phema/parallel.h"
#include "writer_internal.h"
#include "zstd_encoder.h"

/* ---- Gathering and checking ---- */

PHEMA_FALLIBLE join_add_frames(struct phema_writer_join *join, const struct part_marker *marker,
                               uint64_t part, struct phema_error *err)
{
    const struct part_numbers *own = &marker->frames;
    struct join_frames *all = &join->frames;
    struct join_part *from = &join->parts[part - 1];
    uint64_t offset = 0;
    if (own->n > all->n) {
        struct join_frame *items = realloc(all->items, own->n * sizeof(*items));
        if (!items)
            return phema_fail_memory(err);
        memset(&items[all->n], 0, (own->n - all->n) * sizeof(*items));
        all->items = items;
        all->n = own->n;
    }
    for (size_t f = 0; f < own->n; f++) {
        uint32_t size = (uint32_t)own->items[f];
        if (!size)
            continue;
        if (all->items[f].size)
            return phema_fail(err, PHEMA_ERR_OUTPUT,
                              "%s: parts %u and %llu both have frame %zu; write all parts again",
                              join->out.path, all->items[f].part, (unsigned long long)part, f);
        all->items[f] = (struct join_frame){offset, size, (uint32_t)part};
        offset += size;
    }
    from->frames_bytes = marker->frames_bytes;
    from->frames_hash = marker->frames_hash;
    all->verifies |= marker->verifies;
    return PHEMA_OK;
}

static enum phema_status fail_frames(const struct phema_writer_join *join, uint64_t part,
                                     const char *what, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: %s; remove it and %s.part-%llu-of-%llu, and write part %llu again",
                      join->parts[part - 1].frames_path, what, join->out.path,
                      (unsigned long long)part, (unsigned long long)join->n_parts,
                      (unsigned long long)part);
}

/* Opens the frames of a part, whose marker tells their size. */
static enum phema_status open_frames(int *out, const struct phema_writer_join *join, uint64_t part,
                                     struct phema_error *err)
{
    struct stat st;
    const struct join_part *from = &join->parts[part - 1];
    const char *path = from->frames_path;
    int descriptor = -1;
    enum phema_status status =
        leftover_open(&descriptor, AT_FDCWD, path, path, O_RDONLY, S_IFREG, err);
    if (!status && descriptor < 0)
        status = fail_frames(join, part, "is gone, though its part is done", err);
    if (!status && fstat(descriptor, &st))
        status = writer_fail_errno(err, path, "cannot be examined", errno);
    if (!status && (uint64_t)st.st_size != from->frames_bytes)
        status = fail_frames(join, part, "is not as long as its part says", err);
    if (status && descriptor >= 0)
        (void)close(descriptor);
    else
        *out = descriptor;
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
                          join->out.path, join->out.path);
    for (uint64_t part = 1; part <= join->n_parts; part++) {
        int descriptor = -1;
        if (!join->parts[part - 1].frames_bytes)
            continue;
        enum phema_status status = open_frames(&descriptor, join, part, err);
        if (status)
            return status;
        (void)close(descriptor);
    }
    return PHEMA_OK;
}

/* ---- Writing ---- */

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
    struct join_part *from = &join->parts[frame->part - 1];
    if (source->descriptor < 0 || source->number != frame->part) {
        if (source->descriptor >= 0)
            (void)close(source->descriptor);
        *source = (struct zstd_source){-1, frame->part};
        enum phema_status status = open_frames(&source->descriptor, join, frame->part, err);
        if (status)
            return status;
    }
    ssize_t n = file_read_fully(source->descriptor, compressed, frame->size, frame->offset);
    if (n < 0)
        return writer_fail_errno(err, from->frames_path, "cannot be read", errno);
    if ((size_t)n != frame->size)
        return fail_frames(join, frame->part, "is not as long as its part says", err);
    atomic_fetch_add(&from->read_hash, phema_hash_at(compressed, frame->size, frame->offset));
    return PHEMA_OK;
}

/* Opens a writer of a file that is open, which stays open and stays there. */
static enum phema_status share_file(struct phema_writer **out, int descriptor,
                                    const struct phema_writer_join *join, struct phema_error *err)
{
    const char *path = join->out.path;
    enum phema_status status =
        writer_new(out, path_add(path, ""), path_add(path, ""), &join->options, path, err);
    return status ? status : writer_share(*out, descriptor, "cannot be written", err);
}

static enum phema_status write_file(struct phema_writer_join *join, struct zstd_job *job,
                                    struct phema_error *err)
{
    int descriptor = join->out.lock;
    enum phema_status status = share_file(&job->writer, descriptor, join, err);
    if (!status)
        status = share_file(&job->plain, join->plain.lock, join, err);
    if (!status && file_truncate(descriptor, 0)) /* a join that was killed has left it */
        status = writer_fail_errno(err, join->out.partial_path, "cannot be emptied", errno);
    if (!status)
        status = zstd_write_file(&join->size_bytes, job, err);
    for (uint64_t p = 0; p < join->n_parts && !status; p++) /* every frame was read once */
        if (atomic_load(&join->parts[p].read_hash) != join->parts[p].frames_hash)
            status = fail_frames(join, p + 1, "is not what its part has written", err);
    if (status || !join->frames.verifies)
        return status;
    if (fdatasync(descriptor)) /* rereads the file, from the disk where that is possible */
        return writer_fail_errno(err, join->out.partial_path, "cannot be synced", errno);
    (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    return zstd_check_frames(job, err);
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
        (void)file_truncate(join->out.lock, 0);
    join->frames.are_written = !status;
    return status;
}
