// SPDX-License-Identifier: Apache-2.0
/* join_content.c - fills in what is known once all parts are done, and puts compressed frames
 * together. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "join.h"
#include "phema/parallel.h"
#include "writer_internal.h"
#include "zstd_encoder.h"

/* ---- Numbers for messages ---- */

void numbers_end(struct numbers *numbers)
{
    if (!numbers->first)
        return;
    phema_strbuf_printf(&numbers->text, "%s%llu", numbers->text.size ? ", " : "",
                        (unsigned long long)numbers->first);
    if (numbers->last > numbers->first)
        phema_strbuf_printf(&numbers->text, "%s%llu",
                            numbers->last > numbers->first + 1 ? "-" : ", ",
                            (unsigned long long)numbers->last);
    numbers->first = 0;
}

void numbers_add(struct numbers *numbers, uint64_t number)
{
    numbers->n++;
    if (numbers->first && number == numbers->last + 1) {
        numbers->last = number;
        return;
    }
    numbers_end(numbers);
    numbers->first = numbers->last = number;
}

/* ---- Places that join fills in ---- */

static int compare_places(const void *a, const void *b)
{
    const struct join_place *left = a, *right = b;
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    return (left->at > right->at) - (left->at < right->at);
}

PHEMA_FALLIBLE join_list_places(struct phema_writer_join *join, struct phema_error *err)
{
    const struct part_marker *all = &join->first;
    struct join_places *out = &join->places;
    size_t n_sums = all->sidecar_bytes ? 0 : all->n_sums;
    out->items = calloc(n_sums + PHEMA_PART_CRC_PLACES * all->n_crcs + 1, sizeof(*out->items));
    if (!out->items)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n_sums; k++) {
        char digits[PHEMA_DIGEST];
        struct join_place *place = &out->items[out->n++];
        *place =
            (struct join_place){all->sums_file, all->sums[k].offset, PHEMA_DIGEST - 1, '0', {0}};
        phema_hash_sum_show(digits, &all->sums[k].sum);
        memcpy(place->bytes, digits, sizeof(place->bytes));
    }
    for (size_t k = 0; k < all->n_crcs; k++) {
        const struct phema_writer_part_crc *crc = &all->crcs[k];
        for (unsigned x = 0; x < crc->n_places; x++) {
            struct join_place *place = &out->items[out->n++];
            *place = (struct join_place){crc->file, crc->at[x], sizeof(crc->crc), '\0', {0}};
            phema_store_u32(place->bytes, crc->crc);
        }
    }
    qsort(out->items, out->n, sizeof(*out->items), compare_places);
    return PHEMA_OK;
}

/* A file of a directory, or the one that is joined. */
static enum phema_status open_file(int *descriptor, const struct phema_writer_join *join,
                                   size_t file, struct phema_error *err)
{
    const char *name = join->first.files[file].name;
    *descriptor = join_data(join)->lock;
    if (name)
        *descriptor =
            openat(join->out.lock, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    return *descriptor < 0
               ? writer_fail_errno(err, join_data(join)->partial_path, "cannot be opened", errno)
               : PHEMA_OK;
}

static void close_file(const struct phema_writer_join *join, int descriptor)
{
    if (descriptor >= 0 && descriptor != join_data(join)->lock)
        (void)close(descriptor);
}

/* Files of a directory are synced. The joined one is synced when it is published, and the content of
 * a compressed one is removed. */
PHEMA_FALLIBLE join_fill_places(const struct phema_writer_join *join, struct phema_error *err)
{
    const struct join_places *places = &join->places;
    enum phema_status status = PHEMA_OK;
    for (size_t k = 0, end = 0; k < places->n && !status; k = end) {
        int descriptor = -1;
        size_t file = places->items[k].file;
        status = open_file(&descriptor, join, file, err);
        for (; end < places->n && places->items[end].file == file && !status; end++) {
            const struct join_place *place = &places->items[end];
            if (file_write_fully(descriptor, place->bytes, place->size, place->at))
                status = writer_fail_errno(err, join_data(join)->partial_path, "cannot be written",
                                           errno);
        }
        bool is_synced = join->options.syncs && descriptor != join_data(join)->lock;
        if (!status && is_synced && file_sync(descriptor))
            status = writer_fail_errno(err, join->out.path, "cannot be synced", errno);
        close_file(join, descriptor);
    }
    return status;
}

/* Only digits may be overwritten: the header reserves them for this. */
PHEMA_FALLIBLE join_check_digits(const struct phema_writer_join *join, struct phema_error *err)
{
    int descriptor = -1;
    const char *path = join_data(join)->partial_path;
    if (!join->first.n_sums || join->first.sidecar)
        return PHEMA_OK;
    enum phema_status status = open_file(&descriptor, join, join->first.sums_file, err);
    for (size_t k = 0; k < join->first.n_sums && !status; k++) {
        char digits[PHEMA_DIGEST] = "";
        struct phema_hash_sum ignored;
        uint64_t offset = join->first.sums[k].offset;
        if (file_read_fully(descriptor, digits, PHEMA_DIGEST - 1, offset) < 0)
            status = writer_fail_errno(err, path, "cannot be read", errno);
        else if (!phema_hash_sum_read(&ignored, digits))
            status = phema_fail(
                err, PHEMA_ERR_OUTPUT,
                "%s: expected 32 hexadecimal digits at byte %llu, as its parts say; remove it "
                "and all %s.part-*, and write all parts again",
                path, (unsigned long long)offset, join->out.path);
    }
    close_file(join, descriptor);
    return status;
}

/* ---- The sidecar ---- */

PHEMA_FALLIBLE join_open_sidecar(struct phema_writer **out, const struct phema_writer_join *join,
                                 struct phema_error *err)
{
    const struct part_marker *all = &join->first;
    const struct phema_span text = {(const uint8_t *)all->sidecar, all->sidecar_bytes};
    for (size_t k = 0; k < all->n_sums; k++) {
        char digits[PHEMA_DIGEST] = "", *place = all->sidecar + all->sums[k].offset;
        struct phema_hash_sum ignored;
        memcpy(digits, place, PHEMA_DIGEST - 1);
        if (!phema_hash_sum_read(&ignored, digits))
            return phema_fail(
                err, PHEMA_ERR_OUTPUT,
                "%s: expected 32 hexadecimal digits at byte %llu of the provenance in "
                "part 1, as its parts say; remove all %s.part-*, and write all parts "
                "again",
                join->out.path, (unsigned long long)all->sums[k].offset, join->out.path);
        phema_hash_sum_show(digits, &all->sums[k].sum);
        memcpy(place, digits, PHEMA_DIGEST - 1);
    }
    return phema_writer_open_sidecar(out, join->out.path, text, &join->options, err);
}

/* ---- Frames of a compressed output ----
 * Frames that no part has compressed lie where parts meet, or hold the header, whose digests are known
 * now: they are compressed here, from the content that all parts have written. */

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

static enum phema_status write_compressed(struct phema_writer_join *join, struct zstd_job *job,
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
    enum phema_status status =
        job.sizes ? write_compressed(join, &job, err) : phema_fail_memory(err);
    phema_writer_abandon(job.writer);
    phema_writer_abandon(job.plain);
    free(job.sizes);
    if (status)
        (void)file_truncate(join->out.lock, 0);
    return status;
}
