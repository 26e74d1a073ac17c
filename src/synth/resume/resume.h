/* resume.h - records finished tiles in journals of the outputs, and finds which tiles of a pass are
 * already on disk and match the journal. They are read again before they are relied on. So a run
 * syncs nothing before its end, and tiles that were torn or replaced since are recomputed. */
#ifndef SYNTH_RESUME_RESUME_H
#define SYNTH_RESUME_RESUME_H

#include "phema/writer.h"
#include "worker.h"

/* ---- done_ranges.c: finished ranges of a tiling, by position (tiling.h). There are few, since
 * tiles are finished nearly in order. ---- */

struct done_range {
    uint64_t first, end;
};

/* Starts as {0}. Ranges are sorted, not empty, and no two touch. */
struct done_ranges {
    struct done_range *items; /* [n] */
    size_t n, capacity;
};

/* Whether all of [first, end) is in the set. */
bool done_ranges_has(const struct done_ranges *done, uint64_t first, uint64_t end);
/* PHEMA_ERR_RESOURCE: nothing has changed */
PHEMA_FALLIBLE done_ranges_add(struct done_ranges *done, uint64_t first, uint64_t end,
                               struct phema_error *err);
PHEMA_FALLIBLE done_ranges_remove(struct done_ranges *done, uint64_t first, uint64_t end,
                                  struct phema_error *err);
/* Removes all that the other set does not have. */
PHEMA_FALLIBLE done_ranges_intersect(struct done_ranges *done, const struct done_ranges *other,
                                     struct phema_error *err);
void done_ranges_clear(struct done_ranges *done);

/* ---- resume.c ---- */

/* Reads the journals of the outputs of the pass to their ends.
 *   done  out: tiles that all outputs of the pass have; their counts are added to run->result,
 *         and their varying tensors are marked in the run
 * PHEMA_ERR_OUTPUT    a journal cannot be read
 * PHEMA_ERR_RESOURCE  out of memory */
PHEMA_FALLIBLE resume_pass(struct done_ranges *done, struct run *run, struct phema_error *err);

/* ---- journal.c: writing. Workers note their tiles; the watching thread writes the journals. ---- */

PHEMA_FALLIBLE journal_writer_open(struct journal_writer **out, const struct run *run,
                                   struct phema_error *err);
void journal_writer_close(struct journal_writer *writer); /* takes NULL */

/* The most memory of a run's writer. */
uint64_t journal_writer_bytes(const struct run *run);

/* Starts a pass of the run. done: the tiles that all of them have already, which are
 * not done again; moved into the writer. */
void journal_writer_begin_pass(struct journal_writer *writer, struct done_ranges *done);

/* Whether a tile was done by an earlier run. */
bool journal_writer_has(const struct journal_writer *writer, const struct tile_range *range);

/* Notes that the worker has written its tile to all outputs of the pass; from any thread. The
 * worker's accounts and digests are moved out of it. */
PHEMA_FALLIBLE journal_writer_note(struct journal_writer *writer, struct worker *worker,
                                   struct phema_error *err);

/* From the watching thread: writes all that was noted since the last time, if that is long enough
 * ago or is_last. From the first record on outputs are kept after a failure. */
PHEMA_FALLIBLE journal_writer_write(struct journal_writer *writer, bool is_last,
                                    struct phema_error *err);

/* ---- journal.c: reading ---- */

struct journal_record {
    struct phema_span bytes;
    uint64_t tile_elems, n_segments, n_varying;
    uint64_t nan_tensor;
    uint64_t n_digests; /* of all data read for the n_unit segments in the following records */
    uint64_t n_unit;
};

/* false: not a record of this version of the program. The record borrows the bytes. */
bool journal_record_open(struct journal_record *record, struct phema_span bytes);
struct phema_hash_sum journal_record_digest(const struct journal_record *record, uint64_t i);

struct journal_contents {
    struct segment {
        uint64_t first, end; /* position of the first tile, and the end of the last one */
        struct tile_account account;
        uint64_t tile_elems;
        size_t unit;
    } * items; /* [n] sorted; no two overlap */
    size_t n, capacity;
    /* Segments from a record with digests to the next one are a unit: the digests cover all of
     * them. Segments before the first such record have no digests. */
    bool *is_torn; /* [n_units] a segment is missing or was replaced */
    size_t n_units, unit_capacity;
    uint64_t n_missing; /* segments of the last unit */
    uint8_t *varies;    /* [n_tensors] */
    uint64_t nan_tensor;
};

/* Drops records that cannot be valid. The contents have to be cleared after a failure as well. */
PHEMA_FALLIBLE journal_read(struct journal_contents *contents, const struct run *run,
                            struct phema_writer_journal *journal, struct phema_error *err);
void journal_contents_clear(struct journal_contents *contents);

#endif
