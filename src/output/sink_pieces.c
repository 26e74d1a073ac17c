// SPDX-License-Identifier: Apache-2.0
/* sink_pieces.c - Elements of a tensor, written to their places in the files of an output, or read from
 * them; and pieces of these files with a checksum: the zips of a new distributed checkpoint, and the
 * records of a copied zip. Data arrive in any order and from any thread: each block adds its share of
 * the CRC (phema_crc32_share). So data are read once, headers are written last, and nothing but a
 * number is held for each piece. Of a piece that several parts write, each part records its share, and
 * join adds them up. One process that copies a zip reads back the records in which elements are
 * scattered or lie on each other, or bytes are the template's. */
#include <stdlib.h>
#include <string.h>

#include "dcp.h"
#include "phema/parallel.h"
#include "sink_internal.h"

/* ---- Bytes that were written ---- */

static void note_block(struct sink_piece *piece, uint64_t offset, const void *data, size_t size)
{
    uint64_t behind = piece->data_at + piece->size_bytes - (offset + size);
    uint32_t share = phema_crc32_share(phema_crc32(0, data, size), behind);
    atomic_fetch_xor_explicit(&piece->crc, share, memory_order_relaxed);
    atomic_fetch_add_explicit(&piece->n_bytes, size, memory_order_relaxed);
    if (offset == piece->data_at && size)
        atomic_store_explicit(&piece->has_first, true, memory_order_relaxed);
}

/* The first piece of a copy that ends behind this place, or n_pieces. */
static size_t find_piece(const struct sink *sink, size_t file, uint64_t offset)
{
    size_t low = 0, high = sink->n_pieces;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sink_piece *piece = &sink->pieces[middle];
        if (piece->file < file ||
            (piece->file == file && piece->data_at + piece->size_bytes <= offset))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void sink_note_bytes(struct sink *sink, size_t file, uint64_t offset, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t end = offset + size;
    for (size_t p = find_piece(sink, file, offset);
         p < sink->n_pieces && sink->pieces[p].file == file && sink->pieces[p].data_at < end; p++) {
        struct sink_piece *piece = &sink->pieces[p];
        uint64_t piece_end = piece->data_at + piece->size_bytes;
        uint64_t first = piece->data_at > offset ? piece->data_at : offset;
        uint64_t last = piece_end < end ? piece_end : end;
        note_block(piece, first, bytes + (first - offset), (size_t)(last - first));
    }
}

/* Bytes of a run of tensor i, also of a new zip. */
static void note_run(struct sink *sink, size_t i, const struct phema_run *run, const void *data,
                     size_t size)
{
    if (!sink->pieces)
        return;
    if (sink->records)
        sink_note_bytes(sink, run->file, run->offset, data, size);
    else
        note_block(&sink->pieces[sink->outputs->first_piece[i] + run->chunk], run->offset, data,
                   size);
}

/* ---- Elements and their places ---- */

struct transfer {
    struct sink *sink;
    size_t tensor;
    uint64_t first; /* the element at data */
    const uint8_t *written;
    uint8_t *read; /* one of both */
    bool is_done;  /* what was read counts as written */
};

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
    if (!status && transfer->read && transfer->is_done)
        phema_writer_count(writer, run->offset, transfer->read + at, size);
    if (!status && (transfer->written || transfer->is_done)) {
        note_run(sink, transfer->tensor, run,
                 transfer->read ? transfer->read + at : transfer->written + at, size);
        sink_note_frames(sink, run->offset, size);
    }
    return status;
}

static enum phema_status transfer_range(struct transfer *transfer, uint64_t n,
                                        struct phema_error *err)
{
    const struct sink *sink = transfer->sink;
    size_t i = transfer->tensor;
    const struct phema_tensor tensor =
        phema_output_tensor(sink->plan, sink->outputs, sink->output, i);
    if (tensor.chunks)
        return phema_tensor_visit_runs(&tensor, transfer->first, n, transfer_run, transfer, err);
    const struct phema_run all = {.file = tensor.file,
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

/* ---- Checksums ---- */

static enum phema_status make_pieces(struct sink *sink, size_t n, struct phema_error *err)
{
    sink->n_pieces = n;
    sink->pieces = calloc(n + 1, sizeof(*sink->pieces));
    return sink->pieces ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status open_new_zips(struct sink *sink, struct phema_error *err)
{
    size_t n = sink->outputs->first_piece[sink->plan->series->n_tensors];
    enum phema_status status = make_pieces(sink, n, err);
    for (size_t p = 0; p < n && !status; p++) {
        const struct phema_piece *piece = &sink->outputs->pieces[p];
        sink->pieces[p] =
            (struct sink_piece){piece->file, piece->data_at, piece->size_bytes, 0, 0, 0};
    }
    return status;
}

static enum phema_status open_records(struct sink *sink, struct phema_error *err)
{
    size_t n = 0, output = (size_t)(sink->output - sink->outputs->items);
    enum phema_status status =
        phema_output_records(&sink->records, &n, sink->plan, sink->outputs, output, err);
    if (status || !n)
        return status;
    status = make_pieces(sink, n, err);
    for (size_t p = 0; p < n && !status; p++) {
        const struct phema_record *record = &sink->records[p];
        sink->pieces[p] =
            (struct sink_piece){record->file, record->offset, record->size_bytes, 0, 0, 0};
    }
    return status;
}

/* Whether this process must read a piece to know its checksum. */
static bool needs_reading(const struct sink *sink, size_t p)
{
    const struct sink_piece *piece = &sink->pieces[p];
    return sink->records && !sink->options.n_parts &&
           (sink->outputs->is_in_order || atomic_load(&piece->n_bytes) != piece->size_bytes);
}

static enum phema_status read_record(const struct sink *sink, struct sink_piece *piece,
                                     struct phema_error *err)
{
    uint64_t end = piece->data_at + piece->size_bytes;
    uint8_t *chunk = malloc(SINK_CHUNK_BYTES);
    atomic_store(&piece->n_bytes, 0);
    atomic_store(&piece->crc, 0);
    enum phema_status status = chunk ? PHEMA_OK : phema_fail_memory(err);
    for (uint64_t at = piece->data_at; at < end && !status; at += SINK_CHUNK_BYTES) {
        size_t size = end - at < SINK_CHUNK_BYTES ? (size_t)(end - at) : SINK_CHUNK_BYTES;
        status = phema_writer_read(sink->writers[piece->file], at, chunk, size, err);
        if (!status)
            note_block(piece, at, chunk, size);
    }
    free(chunk);
    return status;
}

PHEMA_FALLIBLE sink_open_pieces(struct sink *sink, struct phema_error *err)
{
    if (sink->outputs->pieces)
        return open_new_zips(sink, err);
    return sink->form->is_copy ? open_records(sink, err) : PHEMA_OK;
}

/* What a piece's checksum determines, in the file or as it ought to be: headers and end of a new
 * zip, or the places of a checksum. */
struct frame_place {
    const uint8_t *bytes;
    uint64_t at;
    size_t size;
};

struct piece_frame {
    struct frame_place places[PHEMA_PART_CRC_PLACES]; /* [n] */
    unsigned n;
    struct phema_writer_part_crc crc; /* its places, and the share of this process */
    struct dcp_frame zip;             /* of a new zip; reused for others */
    uint8_t checksum[4];
};

/* How much of a piece is this process' own. Zips without data are those of the first part. */
enum piece_share { PIECE_OF_OTHERS, PIECE_SHARED, PIECE_OWN };

static enum piece_share share_of(const struct sink *sink, size_t p)
{
    uint64_t size = sink->pieces[p].size_bytes;
    uint64_t n_bytes = atomic_load(&sink->pieces[p].n_bytes);
    if (size == 0)
        return sink->options.part > 1 ? PIECE_OF_OTHERS : PIECE_OWN;
    if (n_bytes == size)
        return PIECE_OWN;
    return n_bytes ? PIECE_SHARED : PIECE_OF_OTHERS;
}

static enum phema_status make_zip(struct piece_frame *frame, const struct sink *sink, size_t p,
                                  uint32_t crc, struct phema_error *err)
{
    const struct phema_piece *piece = &sink->outputs->pieces[p];
    struct dcp_frame *zip = &frame->zip;
    unsigned rank = sink->plan->series->tensors[piece->tensor].tensor.rank;
    enum phema_status status =
        dcp_frame_make(zip, sink->outputs->dtypes[piece->tensor], piece->size, rank, crc, err);
    if (status)
        return status;
    const uint8_t *bytes = (const uint8_t *)zip->bytes.data;
    size_t n_behind = zip->bytes.size - zip->data_at;
    frame->places[0] = (struct frame_place){bytes, piece->zip_at, zip->data_at};
    frame->places[1] =
        (struct frame_place){bytes + zip->data_at, piece->data_at + piece->size_bytes, n_behind};
    frame->n = frame->crc.n_places = 2;
    for (unsigned x = 0; x < frame->n; x++)
        frame->crc.at[x] = piece->zip_at + zip->crc_at[x];
    return PHEMA_OK;
}

static void make_checksum(struct piece_frame *frame, const struct phema_record *record,
                          uint32_t crc)
{
    _Static_assert(PHEMA_RECORD_CRCS == PHEMA_PART_CRC_PLACES, "join writes all of them");
    phema_store_u32(frame->checksum, crc);
    frame->n = frame->crc.n_places = record->n_crc;
    for (unsigned x = 0; x < frame->n; x++) {
        frame->crc.at[x] = record->crc_at[x];
        frame->places[x] =
            (struct frame_place){frame->checksum, record->crc_at[x], sizeof(frame->checksum)};
    }
}

/* The checksum of a shared piece stays 0 until join knows it. */
static enum phema_status make_frame(struct piece_frame *frame, const struct sink *sink, size_t p,
                                    struct phema_error *err)
{
    frame->crc.file = sink->pieces[p].file;
    frame->crc.crc = atomic_load(&sink->pieces[p].crc);
    uint32_t known = share_of(sink, p) == PIECE_OWN ? frame->crc.crc : 0;
    if (!sink->records)
        return make_zip(frame, sink, p, known, err);
    make_checksum(frame, &sink->records[p], known);
    return PHEMA_OK;
}

/* Several parts write that of a shared piece. The one that has the first byte counts it. */
static enum phema_status write_frame(struct piece_frame *frame, const struct sink *sink, size_t p,
                                     struct phema_error *err)
{
    const struct sink_piece *piece = &sink->pieces[p];
    struct phema_writer *writer = sink->writers[piece->file];
    bool is_counted = share_of(sink, p) == PIECE_OWN || atomic_load(&piece->has_first);
    enum phema_status status = make_frame(frame, sink, p, err);
    for (unsigned x = 0; x < frame->n && !status; x++) {
        const struct frame_place *place = &frame->places[x];
        status = (is_counted ? phema_writer_write : phema_writer_write_uncounted)(
            writer, place->at, place->bytes, place->size, err);
    }
    return status;
}

static enum phema_status finish_piece(void *context, size_t p, struct phema_error *err)
{
    const struct sink *sink = context;
    struct piece_frame frame = {.n = 0};
    struct sink_piece *piece = &sink->pieces[p];
    enum phema_status status = needs_reading(sink, p) ? read_record(sink, piece, err) : PHEMA_OK;
    enum piece_share share = share_of(sink, p);
    if (!status && share != PIECE_OWN && !sink->options.n_parts)
        status = phema_fail(err, PHEMA_BUG, "%s: %llu of %llu bytes of a piece were written",
                            sink->output->path, (unsigned long long)atomic_load(&piece->n_bytes),
                            (unsigned long long)piece->size_bytes);
    if (!status && share != PIECE_OF_OTHERS)
        status = write_frame(&frame, sink, p, err);
    phema_strbuf_clear(&frame.zip.bytes);
    return status;
}

/* A part is a contiguous range of the elements: few of its pieces are shared. */
static enum phema_status list_shared(struct sink *sink, struct phema_error *err)
{
    size_t n = 0, n_all = sink->n_pieces;
    for (size_t p = 0; p < n_all; p++)
        n += share_of(sink, p) == PIECE_SHARED;
    sink->part_crcs = calloc(n + 1, sizeof(*sink->part_crcs));
    if (!sink->part_crcs)
        return phema_fail_memory(err);
    struct piece_frame frame = {.n = 0};
    enum phema_status status = PHEMA_OK;
    n = 0;
    for (size_t p = 0; p < n_all && !status; p++) {
        if (share_of(sink, p) != PIECE_SHARED)
            continue;
        status = make_frame(&frame, sink, p, err);
        if (!status)
            sink->part_crcs[n++] = frame.crc;
    }
    phema_strbuf_clear(&frame.zip.bytes);
    sink->part_options.crcs = sink->part_crcs;
    sink->part_options.n_crcs = n;
    return status;
}

PHEMA_FALLIBLE sink_finish_pieces(struct sink *sink, struct phema_error *err)
{
    if (!sink->pieces)
        return PHEMA_OK;
    unsigned n_threads = sink->options.n_threads;
    enum phema_status status =
        phema_parallel_try(sink->n_pieces, n_threads, finish_piece, sink, err);
    return status || !sink->options.n_parts ? status : list_shared(sink, err);
}

/* is_same: out */
static enum phema_status check_frame(bool *is_same, struct piece_frame *frame, uint8_t *scratch,
                                     const struct sink *sink, size_t p, struct phema_error *err)
{
    struct phema_writer *writer = sink->writers[sink->pieces[p].file];
    enum phema_status status = make_frame(frame, sink, p, err);
    *is_same = true;
    for (unsigned x = 0; x < frame->n && !status; x++) {
        const struct frame_place *place = &frame->places[x];
        status = phema_writer_read(writer, place->at, scratch, place->size, err);
        *is_same = *is_same && !status && memcmp(scratch, place->bytes, place->size) == 0;
    }
    return status;
}

PHEMA_FALLIBLE sink_check_pieces(bool *is_same, struct sink *sink, struct phema_error *err)
{
    struct piece_frame frame = {.n = 0};
    uint8_t scratch[4096]; /* a half of a frame has 128 sizes at most */
    enum phema_status status = PHEMA_OK;
    *is_same = true;
    for (size_t p = 0; p < sink->n_pieces && *is_same && !status; p++)
        if (share_of(sink, p) != PIECE_OF_OTHERS)
            status = check_frame(is_same, &frame, scratch, sink, p, err);
    phema_strbuf_clear(&frame.zip.bytes);
    return status;
}

/* ---- Bytes that stay as in the template ---- */

struct restoring {
    struct sink *sink;
    uint8_t *chunk;            /* [SINK_CHUNK_BYTES] */
    size_t file;               /* index */
    uint64_t first, end;       /* of it, this process' share */
    struct phema_extent *kept; /* [n_kept] the bytes of all files that are not the template's */
    size_t n_kept;
};

/* Writes only bytes that differ: a copy may share blocks with its template. */
static enum phema_status restore_range(const struct restoring *restoring, uint64_t first,
                                       uint64_t end, struct phema_error *err)
{
    struct sink *sink = restoring->sink;
    size_t f = restoring->file;
    struct phema_span wanted = phema_file_span(phema_checkpoint_file(sink->output->template, f));
    first = first > restoring->first ? first : restoring->first;
    end = end < restoring->end ? end : restoring->end;
    for (uint64_t at = first; at < end; at += SINK_CHUNK_BYTES) {
        size_t size = (size_t)(end - at < SINK_CHUNK_BYTES ? end - at : SINK_CHUNK_BYTES);
        const uint8_t *data = wanted.data + at;
        enum phema_status status =
            phema_writer_read(sink->writers[f], at, restoring->chunk, size, err);
        if (!status && memcmp(restoring->chunk, data, size) != 0)
            status = phema_writer_write(sink->writers[f], at, data, size, err);
        else if (!status)
            phema_writer_count(sink->writers[f], at, data, size);
        if (status)
            return status;
        sink_note_bytes(sink, f, at, data, size);
    }
    return PHEMA_OK;
}

/* *x: the first of the kept bytes of this file, then the first behind it */
static enum phema_status restore_file(struct restoring *restoring, size_t *x,
                                      struct phema_error *err)
{
    const struct sink_options *options = &restoring->sink->options;
    const struct phema_extent *kept = restoring->kept;
    uint64_t at = 0, size_bytes = restoring->sink->output->files[restoring->file].size_bytes;
    uint64_t n_parts = options->n_parts ? options->n_parts : 1;
    uint64_t part = options->n_parts ? options->part : 1;
    restoring->first = phema_writer_part_end(size_bytes, part - 1, n_parts);
    restoring->end = phema_writer_part_end(size_bytes, part, n_parts);
    enum phema_status status = PHEMA_OK;
    for (; *x < restoring->n_kept && kept[*x].file == restoring->file && !status; ++*x) {
        status = restore_range(restoring, at, kept[*x].start, err);
        at = kept[*x].end > at ? kept[*x].end : at;
    }
    return status ? status : restore_range(restoring, at, size_bytes, err);
}

PHEMA_FALLIBLE sink_restore_template(struct sink *sink, struct phema_error *err)
{
    struct restoring restoring = {.sink = sink, .chunk = malloc(SINK_CHUNK_BYTES)};
    size_t x = 0, n_files = phema_checkpoint_n_files(sink->output->template);
    size_t output = (size_t)(sink->output - sink->outputs->items);
    enum phema_status status =
        restoring.chunk
            ? phema_output_extents(&restoring.kept, &restoring.n_kept, sink->plan, sink->outputs,
                                   output, sink->records, sink->records ? sink->n_pieces : 0, err)
            : phema_fail_memory(err);
    for (; restoring.file < n_files && !status; restoring.file++)
        status = restore_file(&restoring, &x, err);
    free(restoring.kept);
    free(restoring.chunk);
    return status;
}
