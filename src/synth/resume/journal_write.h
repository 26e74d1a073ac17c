/* journal_write.h - records finished tiles in the journals of the outputs: their positions,
 * checksums and counts. Workers note their tiles; the watching thread writes the journals. */
#ifndef SYNTH_RESUME_JOURNAL_WRITE_H
#define SYNTH_RESUME_JOURNAL_WRITE_H

#include "resume/done_ranges.h"
#include "worker_state.h"

PHEMA_FALLIBLE journal_writer_open(struct journal_writer **out, const struct run *run,
                                   struct phema_error *err);
void journal_writer_close(struct journal_writer *writer); /* takes NULL */

/* The most memory of a writer for m outputs, with this many bytes of digests. */
uint64_t journal_writer_bytes(size_t m, unsigned n_threads, uint64_t input_digests_bytes);

/* Starts a pass of outputs [first, end). done: the tiles that all of them have already, which are
 * not done again; moved into the writer. */
void journal_writer_begin_pass(struct journal_writer *writer, size_t first, size_t end,
                               struct done_ranges *done);

/* Whether a tile was done by an earlier run. */
bool journal_writer_has(const struct journal_writer *writer, const struct tile_range *range);

/* Notes that the worker has written a tile to all outputs of the pass; from any thread. The
 * worker's accounts and digests are moved out of it. */
PHEMA_FALLIBLE journal_writer_note(struct journal_writer *writer, const struct tile_range *range,
                                   struct worker *worker, struct phema_error *err);

/* From the watching thread: writes all that was noted since the last time, if that is long enough
 * ago or is_last. From the first record on outputs are kept after a failure. */
PHEMA_FALLIBLE journal_writer_write(struct journal_writer *writer, bool is_last,
                                    struct phema_error *err);

/* ---- Records ---- */

struct journal_segment {
    uint64_t first, end; /* position of the first tile, and the end of the last one */
    struct tile_account account;
};

struct journal_record {
    struct phema_span bytes;
    uint64_t tile_elems, n_segments, n_varying;
    uint64_t nan_tensor;
    uint64_t n_digests; /* of all data read for the n_unit segments in the following records */
    uint64_t n_unit;
};

/* false: not a record of this version. The record borrows the bytes. */
bool journal_record_open(struct journal_record *record, struct phema_span bytes);
struct journal_segment journal_record_segment(const struct journal_record *record, uint64_t i);
uint64_t journal_record_varying(const struct journal_record *record, uint64_t i);
struct phema_hash_sum journal_record_digest(const struct journal_record *record, uint64_t i);

#endif
