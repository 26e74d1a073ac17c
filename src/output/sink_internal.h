/* sink_internal.h - the state of a sink, and the steps that its files share. */
#ifndef OUTPUT_SINK_INTERNAL_H
#define OUTPUT_SINK_INTERNAL_H

#include <stdatomic.h>
#include <stdio.h>

#include "phema/checksum.h"
#include "phema/sink.h"
#include "phema/writer.h"

/* Data with a CRC-32 in the output: a box of a new distributed checkpoint, or a record of a copied
 * zip. */
struct sink_piece {
    size_t file;
    uint64_t data_at, size_bytes; /* in the file */
    _Atomic uint64_t n_bytes;     /* written by this run, or found done */
    _Atomic uint32_t crc;         /* the shares of these bytes */
    _Atomic bool has_first;       /* the first byte is among them */
};

struct sink {
    const struct phema_plan *plan;
    const struct phema_outputs *outputs;
    const struct phema_output *output;
    const struct phema_output_traits *form;
    struct sink_options options;
    struct phema_writer **writers;             /* [output->n_files] that tensors go to */
    struct phema_writer *compressed, *sidecar; /* where there is one */
    struct phema_writer_directory *directory;
    struct phema_writer_part *part; /* NULL: the output is written whole */
    struct phema_writer_journal *journal;
    enum phema_writer_journal_state found_journal; /* before the output was opened */
    enum sink_start_state start_state;
    bool is_kept;
    struct phema_writer_part_options part_options;
    struct phema_writer_part_file *part_files;
    struct phema_writer_part_sum *part_sums; /* of the data that were read for the part */
    struct phema_writer_part_crc *part_crcs; /* of pieces that other parts write as well */
    char digest[PHEMA_PART_DIGEST];
    uint8_t *map; /* of a copy with strided tensors */
    uint64_t size_bytes;
    /* [n_tensors] hashes of all data written to each tensor, less those reread: a sum that does not
     * depend on the order. NULL: nothing will be reread */
    _Atomic uint64_t *sums;
    bool is_verifying;
    struct sink_piece *pieces; /* [n_pieces] sorted by file and place in a copy; or NULL */
    size_t n_pieces;
    struct phema_record *records;      /* [n_pieces] in a copy; else NULL */
    struct phema_writer_frames frames; /* of a compressed output */
    /* [frames.n] of a part: bytes of each frame that this run has written, or found done */
    _Atomic uint64_t *frame_bytes;
    uint8_t *scratch; /* [scratch_size] for rereading */
    size_t scratch_size;
};

/* Bytes that are read back at once. */
#define SINK_CHUNK_BYTES ((size_t)1 << 20)

/* PATH, two suffixes, and "/NAME" unless name is NULL; the caller's. NULL: out of memory */
static inline char *sink_path(const char *path, const char *suffix, const char *end,
                              const char *name)
{
    char *made = NULL;
    int size = asprintf(&made, "%s%s%s%s%s", path, suffix, end, name ? "/" : "", name ? name : "");
    return size < 0 ? NULL : made;
}

/* sink_write without data: reads the range, and adds its hash to sum or to the sink's sums
 * (sink_verify.c).
 *   offset  in the file: of element first, or of the tensor where it is strided */
PHEMA_FALLIBLE sink_reread(struct sink *sink, size_t i, uint64_t offset, uint64_t first, uint64_t n,
                           uint64_t *sum, struct phema_error *err);

/* Writes the side files, unless another part does: those that come last, or the others (sink.c). */
PHEMA_FALLIBLE sink_add_side_files(struct sink *sink, bool are_last, struct phema_error *err);

/* Restores from the template what no replaced tensor holds, and of a part its share of that
 * (sink_pieces.c). */
PHEMA_FALLIBLE sink_restore_template(struct sink *sink, struct phema_error *err);

/* ---- sink_frames.c: compressed outputs ---- */

/* Cuts a compressed output into frames. */
PHEMA_FALLIBLE sink_open_frames(struct sink *sink, struct phema_error *err);

/* Bytes of a part that were written, or found done. */
void sink_note_frames(struct sink *sink, uint64_t offset, uint64_t size);

/* Compresses the output; of a part the frames that no other part writes to. */
PHEMA_FALLIBLE sink_compress(struct sink *sink, struct phema_error *err);

/* ---- sink_pieces.c: elements and their places, pieces with checksums ---- */

/* Writes elements [first, first + n) of tensor i to their places. */
PHEMA_FALLIBLE sink_write_runs(struct sink *sink, size_t i, uint64_t first, uint64_t n,
                               const void *data, struct phema_error *err);

/* Reads them into data.  is_done: they count as written by this run */
PHEMA_FALLIBLE sink_read_runs(struct sink *sink, size_t i, uint64_t first, uint64_t n, bool is_done,
                              void *data, struct phema_error *err);

PHEMA_FALLIBLE sink_open_pieces(struct sink *sink, struct phema_error *err);

/* Bytes that were written to a file of a copy, or found there: adds their shares to the checksums of
 * the pieces that hold them. */
void sink_note_bytes(struct sink *sink, size_t file, uint64_t offset, const void *data,
                     size_t size);

/* Writes checksums, and of new zips headers and ends, when all data of this process are written. */
PHEMA_FALLIBLE sink_finish_pieces(struct sink *sink, struct phema_error *err);

/* Rereads what sink_finish_pieces has written.  is_same: out */
PHEMA_FALLIBLE sink_check_pieces(bool *is_same, struct sink *sink, struct phema_error *err);

/* Where tensor i begins in its file. */
static inline uint64_t sink_tensor_offset(const struct sink *sink, size_t i)
{
    const struct phema_tensor_location *location = &sink->output->locations[i];
    return sink->output->files[location->file].header_size + location->offset + sink->output->shift;
}

/* Hash of data and their place. */
static inline uint64_t sink_hash(const struct sink *sink, size_t i, uint64_t offset, uint64_t first,
                                 const void *data, size_t size)
{
    uint64_t file = sink->output->locations[i].file; /* 16 bits distinguish enough files */
    return phema_hash_at(data, size, (offset + first) ^ file << 48);
}

#endif
