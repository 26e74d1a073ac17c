// SPDX-License-Identifier: Apache-2.0
/* frame_index.c - All frames of a file, validated without decompressing. Headers of blocks bound the
 * content of each frame from below and above; sizes in the file must agree with these bounds. Where
 * a seek table and the headers of all frames agree, blocks are left alone. */
#include "zstd/frame_index.h"

#include <stdlib.h>

#include "format.h"
#include "phema/zstd_seek_table.h"
#include "zstd/frame_header.h"

/* libzstd copies in strides that may reach beyond the end of its history. */
#define HISTORY_SLACK_BYTES 64u

/* 4 TiB in frames of 4 MiB. A file of more frames is read from its beginning: a file of empty
 * frames could make the index too large. */
#define MAX_INDEXED_FRAMES ((size_t)1 << 20)

/* Content of a frame. A backward read decompresses half a frame on average, some 10 ms. `zstd FILE`
 * makes one frame of the whole file: for tensors in another order that is no better than no
 * index. */
#define MAX_SEEK_FRAME_BYTES ((uint64_t)16 << 20)

/* Of a frame: a block that repeats a byte, 128 KiB at most. */
#define LEAST_BLOCK_BYTES 4u

/* Pages are released in steps of this size behind the walk. */
#define RELEASE_BYTES ((uint64_t)64 << 20)

struct frame {
    uint64_t file_offset;
    uint64_t least, most; /* content; equal when it is known */
};

/* A frame with content. */
struct start {
    uint64_t file_offset, file_end, first;
};

struct zstd_frames {
    const struct phema_file *file;
    struct phema_span bytes;
    uint64_t window, history;
    uint64_t least, most; /* content of all frames */
    uint64_t last;        /* start of the last frame */
    struct frame *frames; /* until settled; NULL: too many */
    size_t n_frames, frames_capacity;
    bool is_too_many, is_by_table; /* blocks were not walked over */
    uint64_t content_size;
    struct start *starts; /* the index: [n_starts], in order */
    size_t n_starts;
    uint64_t largest_frame; /* of the index: content */
};

/* Walks the blocks of the frame at `at` and fills in its bounds; *size is that of the frame. */
static enum phema_status walk_blocks(struct frame *out, uint64_t *size, struct phema_span frame,
                                     const struct zstd_frame_header *header,
                                     struct phema_error *err)
{
    uint64_t block_max = header->block_max;
    uint64_t at = header->size;
    for (bool is_last = false; !is_last;) {
        if (frame.size - at < 3)
            return zstd_fail_short_frame(out->file_offset, err);
        uint32_t block = (uint32_t)load_number(frame.data + at, 3);
        at += 3;
        is_last = block & 1;
        unsigned type = block >> 1 & 3; /* raw, RLE, compressed, reserved */
        uint64_t block_size = block >> 3;
        if (type == 3 || block_size > block_max)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "the zstd frame at offset %llu has a block %s; the file is damaged",
                              (unsigned long long)out->file_offset,
                              type == 3 ? "of the reserved type" : "above the largest size");
        uint64_t stored = type == 1 ? 1 : block_size;
        if (stored > frame.size - at)
            return zstd_fail_short_frame(out->file_offset, err);
        at += stored;
        /* no overflow: at most 128 KiB for 3 bytes of a file */
        out->least += type == 2 ? 0 : block_size;
        out->most += type == 2 ? block_max : block_size;
    }
    if (header->has_checksum && frame.size - at < 4)
        return zstd_fail_short_frame(out->file_offset, err);
    *size = at + (header->has_checksum ? 4 : 0);
    return PHEMA_OK;
}

static void note_memory(struct zstd_frames *frames, const struct zstd_frame_header *header)
{
    uint64_t history = header->window + header->block_max + HISTORY_SLACK_BYTES;
    if (header->has_content_size && header->content_size < history)
        history = header->content_size;
    if (header->window > frames->window)
        frames->window = header->window;
    if (history > frames->history)
        frames->history = history;
}

static enum phema_status walk_data_frame(struct frame *out, uint64_t *size,
                                         struct zstd_frames *frames, struct phema_span bytes,
                                         struct phema_error *err)
{
    struct zstd_frame_header header = {0};
    enum phema_status status = zstd_read_frame_header(&header, bytes, out->file_offset, err);
    if (status)
        return status;
    status = walk_blocks(out, size, bytes, &header, err);
    if (status)
        return status;
    if (header.has_content_size) {
        if (header.content_size < out->least || header.content_size > out->most)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "the zstd frame at offset %llu says it holds %llu bytes, but its "
                              "blocks hold %llu to %llu; the file is damaged",
                              (unsigned long long)out->file_offset,
                              (unsigned long long)header.content_size,
                              (unsigned long long)out->least, (unsigned long long)out->most);
        out->least = out->most = header.content_size;
    }
    note_memory(frames, &header);
    return PHEMA_OK;
}

static enum phema_status walk_frame(struct frame *out, uint64_t *size, struct zstd_frames *frames,
                                    struct phema_span bytes, struct phema_error *err)
{
    if (bytes.size < 4)
        return zstd_fail_short_frame(out->file_offset, err);
    uint32_t magic = phema_load_u32(bytes.data);
    if (zstd_is_data(magic))
        return walk_data_frame(out, size, frames, bytes, err);
    if (!zstd_is_skippable(magic))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a zstd frame at offset %llu, found something else; the file is "
                          "damaged",
                          (unsigned long long)out->file_offset);
    if (bytes.size < 8 || phema_load_u32(bytes.data + 4) > bytes.size - 8)
        return zstd_fail_short_frame(out->file_offset, err);
    *size = 8 + (uint64_t)phema_load_u32(bytes.data + 4);
    return PHEMA_OK;
}

static enum phema_status note_frame(struct zstd_frames *frames, const struct frame *frame,
                                    struct phema_error *err)
{
    frames->last = frame->file_offset;
    if (!phema_size_add(&frames->least, frames->least, frame->least) ||
        !phema_size_add(&frames->most, frames->most, frame->most))
        return phema_fail(err, PHEMA_ERR_FILE, "holds more content than 64 bits can count");
    if (frames->n_frames == MAX_INDEXED_FRAMES) {
        free(frames->frames);
        frames->frames = NULL;
        frames->is_too_many = true;
    }
    if (frames->is_too_many)
        return PHEMA_OK;
    if (!phema_array_grow(&frames->frames, &frames->frames_capacity, frames->n_frames,
                          sizeof(*frames->frames)))
        return phema_fail_memory(err);
    frames->frames[frames->n_frames++] = *frame;
    return PHEMA_OK;
}

static enum phema_status walk(struct zstd_frames *frames, struct phema_error *err)
{
    uint64_t released = 0;
    for (uint64_t at = 0; at < frames->bytes.size;) {
        struct phema_span rest = {frames->bytes.data + at, frames->bytes.size - (size_t)at};
        struct frame frame = {.file_offset = at};
        uint64_t size = 0;
        enum phema_status status = walk_frame(&frame, &size, frames, rest, err);
        if (status)
            return status;
        status = note_frame(frames, &frame, err);
        if (status)
            return status;
        at += size;
        if (at - released >= RELEASE_BYTES) {
            phema_file_evict(frames->file, released, at - released);
            released = at;
        }
    }
    return PHEMA_OK;
}

/* Whether the table gives the sizes of all bytes before it, and each frame's header those of its
 * content. Then no block is looked at before it is decompressed, as libzstd compares the content of
 * a frame with its header, and decoder.c its end with the table. */
static bool note_table(struct zstd_frames *frames, struct phema_error *ignored)
{
    size_t n = 0, entry_size = 0;
    struct phema_span bytes = frames->bytes;
    const uint8_t *entries = zstd_find_seek_table(&n, &entry_size, bytes);
    uint64_t at = 0, end = entries ? (uint64_t)(entries - bytes.data) - ZSTD_SEEK_HEAD_BYTES : 0;
    for (size_t i = 0; entries && i < n && i < MAX_INDEXED_FRAMES; i++) {
        uint64_t size = phema_load_u32(entries + i * entry_size);
        uint64_t content = phema_load_u32(entries + i * entry_size + 4);
        struct phema_span rest = {bytes.data + at, (size_t)(end - at)};
        struct zstd_frame_header header = {0};
        if (size > rest.size || size < LEAST_BLOCK_BYTES || !content ||
            content / ZSTD_MAX_BLOCK_BYTES > size / LEAST_BLOCK_BYTES ||
            !zstd_is_data(phema_load_u32(rest.data)) ||
            zstd_read_frame_header(&header, rest, at, ignored) || !header.has_content_size ||
            header.content_size != content ||
            note_frame(frames, &(struct frame){at, content, content}, ignored))
            return false;
        note_memory(frames, &header);
        at += size;
    }
    return entries && at == end && n < MAX_INDEXED_FRAMES &&
           note_frame(frames, &(struct frame){.file_offset = end}, ignored) == PHEMA_OK;
}

/* Walks over the blocks of all frames. */
static enum phema_status walk_anew(struct zstd_frames *frames, struct phema_error *err)
{
    free(frames->frames);
    free(frames->starts);
    frames->frames = NULL;
    frames->starts = NULL;
    frames->n_frames = frames->frames_capacity = frames->n_starts = 0;
    frames->window = frames->history = frames->least = frames->most = frames->largest_frame = 0;
    frames->is_by_table = false;
    return walk(frames, err);
}

static enum phema_status build_index(struct zstd_frames *frames, struct phema_error *err)
{
    frames->starts = calloc(frames->n_frames, sizeof(*frames->starts));
    if (!frames->starts)
        return phema_fail_memory(err);
    uint64_t first = 0;
    for (size_t i = 0; i < frames->n_frames; i++) {
        const struct frame *frame = &frames->frames[i];
        if (!frame->most)
            continue;
        uint64_t end = i + 1 < frames->n_frames ? frame[1].file_offset : frames->bytes.size;
        frames->starts[frames->n_starts++] = (struct start){frame->file_offset, end, first};
        first += frame->most;
        if (frame->most > frames->largest_frame)
            frames->largest_frame = frame->most;
    }
    return PHEMA_OK;
}

enum phema_status zstd_frames_new(struct zstd_frames **out, const struct phema_file *file,
                                  struct phema_error *err)
{
    struct phema_error ignored;
    struct zstd_frames *frames = calloc(1, sizeof(*frames));
    if (!frames)
        return phema_fail_memory(err);
    frames->file = file;
    frames->bytes = phema_file_span(file);
    frames->is_by_table = note_table(frames, &ignored) && frames->frames;
    frames->content_size = frames->most;
    /* by a table, ends of frames are compared from the first byte on */
    enum phema_status status =
        frames->is_by_table ? build_index(frames, err) : walk_anew(frames, err);
    if (status) {
        zstd_frames_free(frames);
        return status;
    }
    *out = frames;
    return PHEMA_OK;
}

void zstd_frames_free(struct zstd_frames *frames)
{
    if (!frames)
        return;
    free(frames->frames);
    free(frames->starts);
    free(frames);
}

/* Uses the sizes of a seek table that agrees with every frame and with the total. A decoder may
 * ignore the table, so a table that disagrees is ignored. */
static bool accept_table(struct zstd_frames *frames, uint64_t content_size)
{
    size_t n = 0, entry_size = 0;
    const uint8_t *entries = zstd_find_seek_table(&n, &entry_size, frames->bytes);
    if (!entries || entries != frames->bytes.data + frames->last + 8 || n + 1 != frames->n_frames)
        return false; /* the table does not count itself */
    uint64_t sum = 0; /* at most 2^20 numbers of 32 bits */
    for (size_t i = 0; i < n; i++) {
        const struct frame *frame = &frames->frames[i];
        uint64_t content = phema_load_u32(entries + i * entry_size + 4);
        if (phema_load_u32(entries + i * entry_size) != frame[1].file_offset - frame->file_offset ||
            content < frame->least || content > frame->most)
            return false;
        sum += content;
    }
    if (sum != content_size)
        return false;
    for (size_t i = 0; i < n; i++)
        frames->frames[i].least = frames->frames[i].most =
            phema_load_u32(entries + i * entry_size + 4);
    return true;
}

enum phema_status zstd_frames_settle(struct zstd_frames *frames, uint64_t content_size,
                                     struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (frames->is_by_table && content_size != frames->most)
        status = walk_anew(frames, err);
    if (status)
        return status;
    if (content_size > frames->most)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the header tells of %llu bytes of content, but the zstd frames hold no "
                          "more than %llu; the file is cut short or damaged",
                          (unsigned long long)content_size, (unsigned long long)frames->most);
    if (content_size < frames->least)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the content should end after %llu bytes, with the last tensor, but the "
                          "zstd frames hold %llu or more",
                          (unsigned long long)content_size, (unsigned long long)frames->least);
    frames->content_size = content_size;
    if (frames->frames && !frames->starts &&
        (frames->least == frames->most || accept_table(frames, content_size)))
        status = build_index(frames, err);
    free(frames->frames);
    frames->frames = NULL;
    return status;
}

const struct phema_file *zstd_frames_file(const struct zstd_frames *frames)
{
    return frames->file;
}

uint64_t zstd_frames_content_size(const struct zstd_frames *frames)
{
    return frames->content_size;
}

bool zstd_frames_has_index(const struct zstd_frames *frames)
{
    return frames->starts != NULL;
}

bool zstd_frames_can_seek(const struct zstd_frames *frames)
{
    return frames->starts && frames->largest_frame <= MAX_SEEK_FRAME_BYTES;
}

uint64_t zstd_frames_window(const struct zstd_frames *frames)
{
    return frames->window;
}

uint64_t zstd_frames_history_bytes(const struct zstd_frames *frames)
{
    return frames->history;
}

struct zstd_place zstd_frames_find(const struct zstd_frames *frames, uint64_t offset)
{
    size_t low = 0;
    for (size_t high = frames->n_starts; high - low > 1;) {
        size_t middle = low + (high - low) / 2;
        if (frames->starts[middle].first <= offset)
            low = middle;
        else
            high = middle;
    }
    const struct start *start = &frames->starts[low];
    bool is_last = low + 1 == frames->n_starts;
    return (struct zstd_place){start->file_offset, start->file_end, start->first,
                               is_last ? frames->content_size : start[1].first};
}

uint64_t zstd_frames_estimate(const struct zstd_frames *frames, uint64_t offset)
{
    struct zstd_place place = zstd_frames_find(frames, offset);
    uint64_t end = place.file_end;
    double part = (double)(offset - place.first) / (double)(place.end - place.first);
    uint64_t at = place.file_offset + (uint64_t)(part * (double)(end - place.file_offset));
    return end - at > ZSTD_MAX_BLOCK_BYTES ? at + ZSTD_MAX_BLOCK_BYTES : end;
}
