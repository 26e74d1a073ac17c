/* left.h - what the journal of an output says that an ended run has done, as far as it can be so.
 */
#ifndef SYNTH_LEFT_H
#define SYNTH_LEFT_H

#include "phema/writer.h"
#include "resume/journal_write.h"
#include "run_state.h"

struct left {
    struct segment {
        struct progress_segment said;
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
PHEMA_FALLIBLE left_read(struct left *left, const struct run *run,
                         struct phema_writer_journal *journal, struct phema_error *err);
void left_clear(struct left *left);

/* Whether a record is one that this program writes. */
bool left_is_ours(struct progress_record *record, struct phema_span bytes);

#endif
