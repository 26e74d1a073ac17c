/* journal_write.h - what a run writes into the journals of its outputs while it goes on: which
 * tiles have been put, by what their bytes are known again, and what was counted in them. Workers
 * note their tiles, the thread that watches them writes. */
#ifndef SYNTH_RESUME_JOURNAL_WRITE_H
#define SYNTH_RESUME_JOURNAL_WRITE_H

#include "resume/done_ranges.h"
#include "run_state.h"

struct worker;

/* Of one output. */
struct tile_account {
    uint64_t sum; /* of what was put (sink.h) */
    struct phema_narrow_counts counts;
};

static inline void counts_add(struct phema_narrow_counts *counts,
                              const struct phema_narrow_counts *more)
{
    counts->n_overflow += more->n_overflow;
    counts->n_nan += more->n_nan;
    counts->n_inf += more->n_inf;
}

static inline bool counts_any(const struct phema_narrow_counts *counts)
{
    return counts->n_overflow || counts->n_nan || counts->n_inf;
}

PHEMA_FALLIBLE journal_writer_open(struct journal_writer **out, const struct run *run,
                                   struct phema_error *err);
void journal_writer_close(struct journal_writer *progress); /* takes NULL */

/* What it may hold for m outputs, with so many bytes of digests. */
uint64_t journal_writer_bytes(size_t m, unsigned n_threads, uint64_t input_digests_bytes);

/* Outputs [first, end) are made from here on; what is done of all of them already becomes the
 * progress', and is not done again. */
void journal_writer_begin_pass(struct journal_writer *progress, size_t first, size_t end,
                               struct done_ranges *done);

/* Whether a tile need not be done. */
bool journal_writer_has(const struct journal_writer *progress, const struct tile_range *piece);

/* From any thread: its worker has put a tile to all outputs of the pass. The worker's accounts of
 * them, and its digests, are begun anew. */
PHEMA_FALLIBLE journal_writer_note(struct journal_writer *progress, const struct tile_range *piece,
                                   struct worker *worker, struct phema_error *err);

/* From the thread that watches: what was noted since the last time goes to the journals, where that
 * is long enough ago, or is_last. From the first record on outputs are kept. */
PHEMA_FALLIBLE journal_writer_write(struct journal_writer *progress, bool is_last,
                                    struct phema_error *err);

/* ---- What a record says ---- */

struct journal_writer_segment {
    uint64_t first, end; /* positions of the first tile and behind the last one */
    struct tile_account account;
};

/* A record, and what of it is to be read next. */
struct journal_record {
    struct phema_span bytes;
    uint64_t tile_elems, n_segments, n_varying;
    uint64_t nan_tensor;
    uint64_t n_digests; /* of all that was read for the n_unit segments in the records behind it */
    uint64_t n_unit;
};

/* false: it is none of this version. */
bool journal_record_open(struct journal_record *record, struct phema_span bytes);
struct journal_writer_segment journal_record_segment(const struct journal_record *record,
                                                     uint64_t i);
uint64_t journal_record_varying(const struct journal_record *record, uint64_t i);
struct phema_hash_sum journal_record_digest(const struct journal_record *record, uint64_t i);

#endif
