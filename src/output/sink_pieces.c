// SPDX-License-Identifier: Apache-2.0
/* sink_pieces.c - Tensors that lie in several places of the output, and the zips of a new
 * distributed checkpoint. A zip's headers need the CRC of its data, which arrive in any order and
 * from any thread: each block adds its share (phema_crc32_share). So data are read once, headers
 * are written last, and nothing but a number is held for each piece. Of a piece that several
 * parts write, each part records its share, and join adds them up. */
#include <stdlib.h>
#include <string.h>

#include "dcp.h"
#include "phema/parallel.h"
#include "sink_internal.h"

/* ---- Runs ---- */

struct transfer {
    struct sink *sink;
    size_t tensor;
    uint64_t first; /* the element at data */
    const uint8_t *written;
    uint8_t *read; /* one of both */
    bool is_done;  /* what was read counts as written */
};

static void note_block(struct sink *sink, size_t piece, uint64_t offset, const void *data,
                       size_t size)
{
    const struct phema_piece *place = &sink->outputs->pieces[piece];
    struct sink_piece *state = &sink->pieces[piece];
    uint64_t behind = place->data_at + place->size_bytes - (offset + size);
    uint32_t share = phema_crc32_share(phema_crc32(0, data, size), behind);
    atomic_fetch_xor_explicit(&state->crc, share, memory_order_relaxed);
    atomic_fetch_add_explicit(&state->n_bytes, size, memory_order_relaxed);
}

static enum phema_status transfer_run(void *context, const struct phema_run *run,
                                      struct phema_error *err)
{
    const struct transfer *transfer = context;
    struct sink *sink = transfer->sink;
    enum phema_dtype dtype = sink->outputs->dtypes[transfer->tensor];
    uint64_t at = phema_dtype_bytes(dtype, run->first - transfer->first);
    size_t size = (size_t)phema_dtype_bytes(dtype, run->n);
    struct phema_writer *writer = sink->writers[run->file];
    enum phema_status status =
        transfer->read ? phema_writer_read(writer, run->offset, transfer->read + at, size, err)
                       : phema_writer_write(writer, run->offset, transfer->written + at, size, err);
    if (!status && sink->pieces && (transfer->written || transfer->is_done))
        note_block(sink, sink->outputs->first_piece[transfer->tensor] + run->chunk, run->offset,
                   transfer->read ? transfer->read + at : transfer->written + at, size);
    return status;
}

static enum phema_status transfer_range(struct transfer *transfer, uint64_t n,
                                        struct phema_error *err)
{
    const struct sink *sink = transfer->sink;
    size_t i = transfer->tensor;
    const struct phema_tensor_location *location = &sink->output->locations[i];
    struct phema_tensor tensor = sink->plan->series->tensors[i].tensor;
    tensor.dtype = sink->outputs->dtypes[i];
    tensor.chunks = location->chunks;
    tensor.n_chunks = location->n_chunks;
    if (location->chunks)
        return phema_tensor_visit_runs(&tensor, transfer->first, n, transfer_run, transfer, err);
    const struct phema_run all = {.file = location->file,
                                  .offset = sink_tensor_offset(sink, i) +
                                            phema_dtype_bytes(tensor.dtype, transfer->first),
                                  .first = transfer->first,
                                  .n = n};
    return transfer_run(transfer, &all, err);
}

PHEMA_FALLIBLE sink_write_runs(struct sink *sink, size_t i, uint64_t first, uint64_t n,
                               const void *data, struct phema_error *err)
{
    struct transfer transfer = {.sink = sink, .tensor = i, .first = first, .written = data};
    return transfer_range(&transfer, n, err);
}

PHEMA_FALLIBLE sink_read_runs(struct sink *sink, size_t i, uint64_t first, uint64_t n, bool is_done,
                              void *data, struct phema_error *err)
{
    struct transfer transfer = {
        .sink = sink, .tensor = i, .first = first, .read = data, .is_done = is_done};
    return transfer_range(&transfer, n, err);
}

/* ---- Zips ---- */

static size_t n_pieces(const struct sink *sink)
{
    return sink->outputs->first_piece[sink->plan->series->n_tensors];
}

PHEMA_FALLIBLE sink_open_pieces(struct sink *sink, struct phema_error *err)
{
    if (!sink->outputs->pieces)
        return PHEMA_OK;
    sink->pieces = calloc(n_pieces(sink), sizeof(*sink->pieces));
    return sink->pieces ? PHEMA_OK : phema_fail_memory(err);
}

/* The parts of a piece's frame, in the file or as they ought to be. */
struct frame_place {
    const uint8_t *bytes;
    uint64_t at;
    size_t size;
};

/* How much of a piece is this process' own. Zips without data are those of the first part. */
enum piece_share { PIECE_OF_OTHERS, PIECE_SHARED, PIECE_OWN };

static enum piece_share share_of(const struct sink *sink, size_t p)
{
    uint64_t size = sink->outputs->pieces[p].size_bytes;
    uint64_t n_bytes = atomic_load(&sink->pieces[p].n_bytes);
    if (size == 0)
        return sink->options.part > 1 ? PIECE_OF_OTHERS : PIECE_OWN;
    if (n_bytes == size)
        return PIECE_OWN;
    return n_bytes ? PIECE_SHARED : PIECE_OF_OTHERS;
}

/* The checksum of a shared piece stays 0 until join knows it. */
static enum phema_status make_frame(struct frame_place places[2], struct dcp_frame *frame,
                                    const struct sink *sink, size_t p, struct phema_error *err)
{
    const struct phema_piece *piece = &sink->outputs->pieces[p];
    bool is_own = share_of(sink, p) == PIECE_OWN;
    unsigned rank = sink->plan->series->tensors[piece->tensor].tensor.rank;
    enum phema_status status =
        dcp_frame_make(frame, sink->outputs->dtypes[piece->tensor], piece->size, rank,
                       is_own ? atomic_load(&sink->pieces[p].crc) : 0, err);
    if (status)
        return status;
    const uint8_t *bytes = (const uint8_t *)frame->bytes.data;
    size_t n_behind = frame->bytes.size - frame->data_at;
    places[0] = (struct frame_place){bytes, piece->zip_at, frame->data_at};
    places[1] =
        (struct frame_place){bytes + frame->data_at, piece->data_at + piece->size_bytes, n_behind};
    return PHEMA_OK;
}

static enum phema_status write_frame(struct dcp_frame *frame, const struct sink *sink, size_t p,
                                     struct phema_error *err)
{
    struct frame_place places[2];
    struct phema_writer *writer = sink->writers[sink->outputs->pieces[p].file];
    enum phema_status status = make_frame(places, frame, sink, p, err);
    for (size_t x = 0; x < ARRAY_LEN(places) && !status; x++)
        status = phema_writer_write(writer, places[x].at, places[x].bytes, places[x].size, err);
    return status;
}

/* Pieces that one task finishes. */
enum { PIECES_PER_TASK = 256 };

static enum phema_status finish_pieces(void *context, size_t task, struct phema_error *err)
{
    const struct sink *sink = context;
    struct dcp_frame frame = {0};
    size_t first = task * PIECES_PER_TASK, n = n_pieces(sink);
    enum phema_status status = PHEMA_OK;
    for (size_t p = first; p < n && p < first + PIECES_PER_TASK && !status; p++) {
        enum piece_share share = share_of(sink, p);
        if (share != PIECE_OWN && !sink->options.n_parts)
            status = phema_fail(err, PHEMA_BUG, "%s: %llu of %llu bytes of a piece were written",
                                sink->output->path,
                                (unsigned long long)atomic_load(&sink->pieces[p].n_bytes),
                                (unsigned long long)sink->outputs->pieces[p].size_bytes);
        else if (share != PIECE_OF_OTHERS)
            status = write_frame(&frame, sink, p, err);
    }
    phema_strbuf_clear(&frame.bytes);
    return status;
}

/* A part is a contiguous range of the elements: few of its pieces are shared. */
static enum phema_status list_shared(struct sink *sink, struct phema_error *err)
{
    size_t n = 0, n_all = n_pieces(sink);
    for (size_t p = 0; p < n_all; p++)
        n += share_of(sink, p) == PIECE_SHARED;
    sink->part_crcs = calloc(n + 1, sizeof(*sink->part_crcs));
    if (!sink->part_crcs)
        return phema_fail_memory(err);
    struct dcp_frame frame = {0};
    struct frame_place places[2];
    enum phema_status status = PHEMA_OK;
    n = 0;
    for (size_t p = 0; p < n_all && !status; p++) {
        if (share_of(sink, p) != PIECE_SHARED)
            continue;
        const struct phema_piece *piece = &sink->outputs->pieces[p];
        status = make_frame(places, &frame, sink, p, err);
        if (!status)
            sink->part_crcs[n++] = (struct phema_writer_part_crc){
                piece->file,
                {piece->zip_at + frame.crc_at[0], piece->zip_at + frame.crc_at[1]},
                atomic_load(&sink->pieces[p].crc)};
    }
    phema_strbuf_clear(&frame.bytes);
    sink->part_options.crcs = sink->part_crcs;
    sink->part_options.n_crcs = n;
    return status;
}

PHEMA_FALLIBLE sink_finish_pieces(struct sink *sink, struct phema_error *err)
{
    if (!sink->pieces)
        return PHEMA_OK;
    size_t n_tasks = (n_pieces(sink) + PIECES_PER_TASK - 1) / PIECES_PER_TASK;
    enum phema_status status =
        phema_parallel_try(n_tasks, sink->options.n_threads, finish_pieces, sink, err);
    return status || !sink->options.n_parts ? status : list_shared(sink, err);
}

/* is_same: out */
static enum phema_status check_frame(bool *is_same, struct dcp_frame *frame, uint8_t *scratch,
                                     const struct sink *sink, size_t p, struct phema_error *err)
{
    struct frame_place places[2];
    struct phema_writer *writer = sink->writers[sink->outputs->pieces[p].file];
    enum phema_status status = make_frame(places, frame, sink, p, err);
    *is_same = true;
    for (size_t x = 0; x < ARRAY_LEN(places) && !status; x++) {
        status = phema_writer_read(writer, places[x].at, scratch, places[x].size, err);
        *is_same = *is_same && !status && memcmp(scratch, places[x].bytes, places[x].size) == 0;
    }
    return status;
}

PHEMA_FALLIBLE sink_check_pieces(bool *is_same, struct sink *sink, struct phema_error *err)
{
    struct dcp_frame frame = {0};
    uint8_t scratch[4096]; /* a half of a frame has 128 sizes at most */
    enum phema_status status = PHEMA_OK;
    *is_same = true;
    for (size_t p = 0; sink->pieces && p < n_pieces(sink) && *is_same && !status; p++)
        if (share_of(sink, p) != PIECE_OF_OTHERS)
            status = check_frame(is_same, &frame, scratch, sink, p, err);
    phema_strbuf_clear(&frame.bytes);
    return status;
}
