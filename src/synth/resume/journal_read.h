/* journal_read.h - what the journal of an output says that an ended run has done, as far as it can
 * be so.
 */
#ifndef SYNTH_RESUME_JOURNAL_READ_H
#define SYNTH_RESUME_JOURNAL_READ_H

#include "phema/writer.h"
#include "resume/journal_write.h"
#include "run_state.h"

struct journal_contents {
    struct segment {
        struct journal_writer_segment said;
        uint64_t tile_elems;
        size_t unit;
    } * items; /* [n] sorted; none overlap */
    size_t n, capacity;
    /* Segments from a record with digests to the next one are a unit: those are of all of them
     * together. Those before the first one are of none. */
    bool *is_torn; /* [n_units] something of it is not there, or not any more */
    size_t n_units, unit_capacity;
    uint64_t n_missing; /* segments of the last unit */
    uint8_t *varies;    /* [n_tensors] */
    uint64_t nan_tensor;
};

/* To be cleared after a failure as well. */
PHEMA_FALLIBLE journal_read(struct journal_contents *left, const struct run *run,
                            struct phema_writer_journal *journal, struct phema_error *err);
void journal_contents_clear(struct journal_contents *left);

/* Whether a record is one that this program writes. */
bool journal_is_current_version(struct journal_record *record, struct phema_span bytes);

#endif
