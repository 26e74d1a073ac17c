// SPDX-License-Identifier: Apache-2.0
/* frame_index.c - Frame headers and seek table, validated without decompressing: RFC 8878, and
 * zstd's seekable format. Headers of blocks bound the content of each frame from below and above;
 * sizes in the file must agree with these bounds. */
#include "zstd/frame_index.h"

#include <stdlib.h>

#include "format.h"

#define FRAME_MAGIC       0xFD2FB528u
#define SKIPPABLE_MAGIC   0x184D2A50u /* to 0x184D2A5F */
#define SEEK_TABLE_MAGIC  0x184D2A5Eu
#define SEEK_FOOTER_MAGIC 0x8F92EAB1u
#define SEEK_FOOTER_BYTES 9u

/* libzstd's default, and the window of `zstd --long` (27). Each open file may keep that much. */
#define MAX_WINDOW_BYTES ((uint64_t)128 << 20)

#define MAX_BLOCK_BYTES ((uint64_t)128 << 10)

/* libzstd copies in strides that may reach beyond the end of its history. */
#define HISTORY_SLACK_BYTES 64u

/* 4 TiB in frames of 4 MiB. A file of more frames is read from its beginning: a file of empty
 * frames could make the index too large. */
#define MAX_INDEXED_FRAMES ((size_t)1 << 20)

/* Content of a frame. A backward read decompresses half a frame on average, some 10 ms. `zstd FILE`
 * makes one frame of the whole file: for tensors in another order that is no better than no
 * index. */
#define MAX_SEEK_FRAME_BYTES ((uint64_t)16 << 20)

/* Pages are released in steps of this size behind the walk. */
#define RELEASE_BYTES ((uint64_t)64 << 20)

struct frame {
    uint64_t file_offset;
    uint64_t least, most; /* content; equal when it is known */
};

/* A frame with content. */
struct start {
    uint64_t file_offset, first;
};

struct zstd_frames {
    const struct phema_file *file;
    struct phema_span bytes;
    uint64_t window, history;
    uint64_t least, most; /* content of all frames */
    uint64_t last;        /* start of the last frame */
    struct frame *frames; /* until settled; NULL: too many */
    size_t n_frames, frames_capacity;
    bool is_too_many;
    uint64_t content_size;
    struct start *starts; /* the index: [n_starts], in order */
    size_t n_starts;
    uint64_t largest_frame; /* of the index: content */
};

/* The header of a frame. */
struct frame_header {
    size_t size;
    uint64_t window, block_max;
    uint64_t content_size;
    bool has_content_size, has_checksum;
};

static bool is_skippable(uint32_t magic)
{
    return (magic & 0xFFFFFFF0u) == SKIPPABLE_MAGIC;
}

static enum phema_status fail_short(uint64_t at, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_FILE,
                      "the zstd frame at offset %llu is cut short; the file is damaged",
                      (unsigned long long)at);
}

static enum phema_status check_descriptor(uint8_t descriptor, uint64_t at, struct phema_error *err)
{
    if (descriptor & 0x08)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the zstd frame at offset %llu has a reserved bit set; the file is "
                          "damaged, or newer than RFC 8878",
                          (unsigned long long)at);
    if (descriptor & 0x03)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the zstd frame at offset %llu needs a dictionary, which a checkpoint "
                          "does not bring along; compress it without one",
                          (unsigned long long)at);
    return PHEMA_OK;
}

/* frame: from the frame's first byte to the end of the file */
static enum phema_status read_header(struct frame_header *out, struct phema_span frame, uint64_t at,
                                     struct phema_error *err)
{
    static const unsigned widths[] = {0, 2, 4, 8};
    if (frame.size < 6)
        return fail_short(at, err);
    uint8_t descriptor = frame.data[4];
    enum phema_status status = check_descriptor(descriptor, at, err);
    if (status)
        return status;
    bool is_single = descriptor & 0x20; /* the window is the content */
    unsigned width = widths[descriptor >> 6];
    if (is_single && width == 0)
        width = 1;
    out->size = 5u + !is_single + width;
    if (frame.size < out->size)
        return fail_short(at, err);
    out->has_checksum = descriptor & 0x04;
    out->has_content_size = width > 0;
    out->content_size = load_number(frame.data + 5 + !is_single, width);
    if (width == 2)
        out->content_size += 256;
    uint64_t base = (uint64_t)1 << (10 + (frame.data[5] >> 3));
    out->window = is_single ? out->content_size : base + base / 8 * (frame.data[5] & 7);
    if (out->window > MAX_WINDOW_BYTES)
        return phema_fail(
            err, PHEMA_ERR_FILE,
            "is compressed with a zstd window of %llu MiB, more than the 128 MiB that "
            "are accepted",
            (unsigned long long)((out->window >> 20) + (out->window % (1u << 20) != 0)));
    out->block_max = out->window < MAX_BLOCK_BYTES ? out->window : MAX_BLOCK_BYTES;
    return PHEMA_OK;
}

/* Walks the blocks of the frame at `at` and fills in its bounds; *size is that of the frame. */
static enum phema_status walk_blocks(struct frame *out, uint64_t *size, struct phema_span frame,
                                     const struct frame_header *header, struct phema_error *err)
{
    uint64_t block_max = header->block_max;
    uint64_t at = header->size;
    for (bool is_last = false; !is_last;) {
        if (frame.size - at < 3)
            return fail_short(out->file_offset, err);
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
            return fail_short(out->file_offset, err);
        at += stored;
        /* no overflow: at most 128 KiB for 3 bytes of a file */
        out->least += type == 2 ? 0 : block_size;
        out->most += type == 2 ? block_max : block_size;
    }
    if (header->has_checksum && frame.size - at < 4)
        return fail_short(out->file_offset, err);
    *size = at + (header->has_checksum ? 4 : 0);
    return PHEMA_OK;
}

static enum phema_status walk_data_frame(struct frame *out, uint64_t *size,
                                         struct zstd_frames *frames, struct phema_span bytes,
                                         struct phema_error *err)
{
    struct frame_header header = {0};
    enum phema_status status = read_header(&header, bytes, out->file_offset, err);
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
    uint64_t history = header.window + header.block_max + HISTORY_SLACK_BYTES;
    if (header.has_content_size && header.content_size < history)
        history = header.content_size;
    if (header.window > frames->window)
        frames->window = header.window;
    if (history > frames->history)
        frames->history = history;
    return PHEMA_OK;
}

static enum phema_status walk_frame(struct frame *out, uint64_t *size, struct zstd_frames *frames,
                                    struct phema_span bytes, struct phema_error *err)
{
    if (bytes.size < 4)
        return fail_short(out->file_offset, err);
    uint32_t magic = phema_load_u32(bytes.data);
    if (magic == FRAME_MAGIC)
        return walk_data_frame(out, size, frames, bytes, err);
    if (!is_skippable(magic))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a zstd frame at offset %llu, found something else; the file is "
                          "damaged",
                          (unsigned long long)out->file_offset);
    if (bytes.size < 8 || phema_load_u32(bytes.data + 4) > bytes.size - 8)
        return fail_short(out->file_offset, err);
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

enum phema_status zstd_frames_new(struct zstd_frames **out, const struct phema_file *file,
                                  struct phema_error *err)
{
    struct zstd_frames *frames = calloc(1, sizeof(*frames));
    if (!frames)
        return phema_fail_memory(err);
    frames->file = file;
    frames->bytes = phema_file_span(file);
    enum phema_status status = walk(frames, err);
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

/* The n entries of the seek table at the end of a file; NULL: there is none. */
static const uint8_t *find_table(size_t *n, size_t *entry_size, struct phema_span file)
{
    if (file.size < 8 + SEEK_FOOTER_BYTES)
        return NULL;
    const uint8_t *footer = file.data + file.size - SEEK_FOOTER_BYTES;
    uint8_t descriptor = footer[4];
    *n = phema_load_u32(footer);
    *entry_size = descriptor & 0x80 ? 12 : 8; /* with a checksum of the content */
    uint64_t size = 8 + (uint64_t)*n * *entry_size + SEEK_FOOTER_BYTES;
    if (phema_load_u32(footer + 5) != SEEK_FOOTER_MAGIC || descriptor & 0x7C || size > file.size)
        return NULL;
    const uint8_t *table = file.data + (file.size - (size_t)size);
    return phema_load_u32(table) == SEEK_TABLE_MAGIC ? table + 8 : NULL;
}

/* Uses the sizes of a seek table that agrees with every frame and with the total. A decoder may
 * ignore the table, so a table that disagrees is ignored. */
static bool accept_table(struct zstd_frames *frames, uint64_t content_size)
{
    size_t n = 0, entry_size = 0;
    const uint8_t *entries = find_table(&n, &entry_size, frames->bytes);
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
        frames->starts[frames->n_starts++] = (struct start){frame->file_offset, first};
        first += frame->most;
        if (frame->most > frames->largest_frame)
            frames->largest_frame = frame->most;
    }
    return PHEMA_OK;
}

enum phema_status zstd_frames_settle(struct zstd_frames *frames, uint64_t content_size,
                                     struct phema_error *err)
{
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
    enum phema_status status = PHEMA_OK;
    if (frames->frames && (frames->least == frames->most || accept_table(frames, content_size)))
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
    bool is_last = low + 1 == frames->n_starts;
    return (struct zstd_place){frames->starts[low].file_offset, frames->starts[low].first,
                               is_last ? frames->content_size : frames->starts[low + 1].first};
}

uint64_t zstd_frames_estimate(const struct zstd_frames *frames, uint64_t offset)
{
    struct zstd_place place = zstd_frames_find(frames, offset);
    uint64_t end = place.end < frames->content_size
                       ? zstd_frames_find(frames, place.end).file_offset
                       : frames->bytes.size;
    double part = (double)(offset - place.first) / (double)(place.end - place.first);
    uint64_t at = place.file_offset + (uint64_t)(part * (double)(end - place.file_offset));
    return end - at > MAX_BLOCK_BYTES ? at + MAX_BLOCK_BYTES : end;
}

/* ---- Requests before a walk ---- */

/* Chains of headers that are followed at once; the least and most bytes that are read of a header.
 */
enum { MAX_CHAINS = 64, LEAST_BYTES = 4, HEADER_BYTES = 14, PAGE_BYTES = 4096 };

/* The next header in [at, end) of the file: that of a frame, or inside one that of a block. */
struct chain {
    uint64_t at, end;
    bool is_inside, has_checksum;
};

/* Goes on to the next header. false: there is none, or it is damaged. */
static bool step(struct chain *chain, struct phema_span bytes)
{
    struct phema_span rest = {bytes.data + chain->at, (size_t)(chain->end - chain->at)};
    struct frame_header header = {0};
    struct phema_error ignored;
    uint32_t start = phema_load_u32(rest.data);
    if (chain->is_inside) {
        bool is_last = start & 1, is_repeated = (start >> 1 & 3) == 1;
        chain->at += 3 + (is_repeated ? 1 : (start & 0xFFFFFFu) >> 3);
        chain->at += is_last && chain->has_checksum ? 4 : 0;
        chain->is_inside = !is_last;
    } else if (is_skippable(start)) {
        if (rest.size < 8)
            return false;
        chain->at += 8 + (uint64_t)phema_load_u32(rest.data + 4);
    } else {
        if (start != FRAME_MAGIC || read_header(&header, rest, chain->at, &ignored))
            return false;
        chain->at += header.size;
        chain->is_inside = true;
        chain->has_checksum = header.has_checksum;
    }
    return chain->at + LEAST_BYTES <= chain->end;
}

/* Goes on to the next header in another page. */
static bool leave_page(struct chain *chain, struct phema_span bytes)
{
    for (uint64_t page = chain->at / PAGE_BYTES; chain->at / PAGE_BYTES == page;)
        if (!step(chain, bytes))
            return false;
    return true;
}

static void follow_all(const struct phema_file *file, struct chain *chains, size_t n)
{
    while (n) {
        size_t n_left = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t left = chains[i].end - chains[i].at;
            phema_file_prefetch(file, chains[i].at, left < HEADER_BYTES ? left : HEADER_BYTES);
        }
        for (size_t i = 0; i < n; i++)
            if (leave_page(&chains[i], phema_file_span(file)))
                chains[n_left++] = chains[i];
        n = n_left;
    }
}

void zstd_frames_prefetch(const struct phema_file *file)
{
    struct phema_span bytes = phema_file_span(file);
    struct chain chains[MAX_CHAINS] = {{.end = bytes.size}};
    size_t n = 0, n_chains = 0, entry_size = 0;
    if (bytes.size < LEAST_BYTES ||
        (phema_load_u32(bytes.data) != FRAME_MAGIC && !is_skippable(phema_load_u32(bytes.data))))
        return;
    const uint8_t *entries = find_table(&n, &entry_size, bytes);
    if (!entries) {
        follow_all(file, chains, 1);
        return;
    }
    phema_file_prefetch(file, (uint64_t)(entries - bytes.data), (uint64_t)n * entry_size);
    uint64_t at = 0, end = 0;
    for (size_t i = 0; i < n && end <= bytes.size; i++, at = end) {
        end = at + phema_load_u32(entries + i * entry_size);
        if (end <= bytes.size && end - at >= LEAST_BYTES)
            chains[n_chains++] = (struct chain){.at = at, .end = end};
        if (n_chains == MAX_CHAINS) {
            follow_all(file, chains, n_chains);
            n_chains = 0;
        }
    }
    follow_all(file, chains, n_chains);
}
