/* journal_read.h - reads the journal of an interrupted run and drops records that cannot be valid.
 */
#ifndef SYNTH_RESUME_JOURNAL_READ_H
#define SYNTH_RESUME_JOURNAL_READ_H

#include "phema/writer.h"
#include "resume/journal_write.h"

struct journal_contents {
    struct segment {
        struct journal_segment recorded;
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

/* The contents have to be cleared after a failure as well. */
PHEMA_FALLIBLE journal_read(struct journal_contents *contents, const struct run *run,
                            struct phema_writer_journal *journal, struct phema_error *err);
void journal_contents_clear(struct journal_contents *contents);

/* Whether this version of the program writes such records. */
bool journal_is_current_version(struct journal_record *record, struct phema_span bytes);

#endif
