// SPDX-License-Identifier: Apache-2.0
/* part_frames.c - what the marker of a part of a compressed output tells: the frames that the part
 * has compressed, and in the first part's marker where all frames end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "part.h"
#include "phema/json.h"
#include "zstd_encoder.h"

/* More would not fit into a marker. */
#define MAX_NUMBER ((uint64_t)8 << 20)

/* ---- Names ---- */

char *part_plain_path(const char *path)
{
    char *out = NULL;
    return asprintf(&out, "%s%s.partial", path, PHEMA_PLAIN_SUFFIX) < 0 ? NULL : out;
}

char *part_frames_path(const char *marker_path)
{
    char *out = NULL;
    return asprintf(&out, "%s.frames", marker_path) < 0 ? NULL : out;
}

/* ---- Reading ---- */

/* PHEMA_NO: no sizes of frames behind those before. */
static enum phema_status read_run(struct phema_writer_part_frames *frames,
                                  const struct phema_json *run, struct phema_error *err)
{
    const struct phema_json *sizes = phema_json_get(run, "sizes");
    size_t n = phema_json_length(sizes);
    uint64_t first = 0;
    if (!phema_json_u64(&first, phema_json_get(run, "first")) || first < frames->n ||
        first > MAX_NUMBER || n > MAX_NUMBER)
        return PHEMA_NO;
    uint32_t *grown = realloc(frames->sizes, ((size_t)first + n + 1) * sizeof(*grown));
    if (!grown)
        return phema_fail_memory(err);
    frames->sizes = grown;
    memset(&grown[frames->n], 0, ((size_t)first - frames->n) * sizeof(*grown));
    frames->n = (size_t)first;
    for (size_t x = 0; x < n; x++) {
        uint64_t size = 0;
        if (!phema_json_u64(&size, phema_json_at(sizes, x)) || !size || size > UINT32_MAX)
            return PHEMA_NO;
        grown[frames->n++] = (uint32_t)size;
    }
    return PHEMA_OK;
}

/* PHEMA_NO: incomplete, or the frames are not as long as their file. */
static enum phema_status read_runs(struct phema_writer_part_frames *frames,
                                   const struct phema_json *object, struct phema_error *err)
{
    const struct phema_json *runs = phema_json_get(object, "runs");
    size_t n = phema_json_length(runs), size = 0;
    const char *digits = phema_json_string(phema_json_get(object, "hash"), &size);
    struct phema_hash_sum hash = {0, 0};
    if (!n)
        return PHEMA_OK;
    if (!phema_json_u64(&frames->size_bytes, phema_json_get(object, "bytes")) || !digits ||
        strlen(digits) != size || !phema_hash_sum_read(&hash, digits))
        return PHEMA_NO;
    frames->hash = hash.low;
    enum phema_status status = PHEMA_OK;
    for (size_t r = 0; r < n && !status; r++)
        status = read_run(frames, phema_json_at(runs, r), err);
    uint64_t sum = 0;
    for (size_t f = 0; f < frames->n; f++)
        sum += frames->sizes[f];
    return status || sum == frames->size_bytes ? status : PHEMA_NO;
}

/* Whether the frames cover the content, and none is too large. */
static bool are_valid(const struct phema_writer_frames *frames, uint64_t content_size)
{
    for (size_t f = 0; f < frames->n; f++) {
        uint64_t start = f ? frames->ends[f - 1] : 0;
        if (frames->ends[f] < start || frames->ends[f] - start > ZSTD_FRAME_BYTES)
            return false;
    }
    return frames->n && frames->ends[frames->n - 1] == content_size;
}

/* PHEMA_NO: not the frames of the content. */
static enum phema_status read_ends(struct part_marker *marker, const struct phema_json *ends,
                                   struct phema_error *err)
{
    struct phema_writer_frames *frames = &marker->all_frames;
    size_t n = phema_json_length(ends);
    if (!n)
        return PHEMA_OK;
    frames->ends = calloc(n, sizeof(*frames->ends));
    if (!frames->ends)
        return phema_fail_memory(err);
    for (; frames->n < n; frames->n++)
        if (!phema_json_u64(&frames->ends[frames->n], phema_json_at(ends, frames->n)))
            return PHEMA_NO;
    return are_valid(frames, marker->files[0].size_bytes) ? PHEMA_OK : PHEMA_NO;
}

PHEMA_FALLIBLE part_frames_read(struct part_marker *marker, const struct phema_json *object,
                                struct phema_error *err)
{
    uint64_t level = 0, library = 0;
    marker->is_compressed = object != NULL;
    if (!object)
        return PHEMA_OK;
    if (marker->is_directory || !phema_json_u64(&level, phema_json_get(object, "level")) ||
        level > INT32_MAX || !phema_json_u64(&library, phema_json_get(object, "library")) ||
        library > UINT32_MAX)
        return PHEMA_NO;
    marker->all_frames.level = (int)level;
    marker->all_frames.library = (unsigned)library;
    marker->verifies = phema_json_boolean(phema_json_get(object, "verify"));
    enum phema_status status = read_runs(&marker->frames, object, err);
    return status ? status : read_ends(marker, phema_json_get(object, "ends"), err);
}

/* ---- Writing ---- */

static void write_runs(struct phema_json_out *out, const struct phema_writer_part_frames *frames,
                       size_t n)
{
    char digits[PHEMA_DIGEST];
    phema_hash_sum_show(digits, &(struct phema_hash_sum){.low = frames->hash});
    phema_json_out_u64(out, "bytes", frames->size_bytes);
    phema_json_out_string(out, "hash", digits);
    phema_json_out_open(out, "runs", '[');
    for (size_t f = 0; f < n; f++) {
        if (!frames->sizes[f])
            continue;
        phema_json_out_open(out, NULL, '{');
        phema_json_out_u64(out, "first", f);
        phema_json_out_open(out, "sizes", '[');
        for (; f < n && frames->sizes[f]; f++)
            phema_json_out_u64(out, NULL, frames->sizes[f]);
        phema_json_out_close(out, ']');
        phema_json_out_close(out, '}');
    }
    phema_json_out_close(out, ']');
}

void part_frames_write(struct phema_json_out *out, const struct phema_writer_part_options *options,
                       const struct phema_writer_part_frames *frames, bool is_done)
{
    const struct phema_writer_frames *all = options->frames;
    if (!all)
        return;
    phema_json_out_open(out, "frames", '{');
    phema_json_out_u64(out, "level", (uint64_t)all->level);
    phema_json_out_u64(out, "library", all->library);
    phema_json_out_bool(out, "verify", options->verifies);
    if (is_done && frames->size_bytes)
        write_runs(out, frames, all->n);
    if (is_done && options->part == 1) {
        phema_json_out_open(out, "ends", '[');
        for (size_t f = 0; f < all->n; f++)
            phema_json_out_u64(out, NULL, all->ends[f]);
        phema_json_out_close(out, ']');
    }
    phema_json_out_close(out, '}');
}
