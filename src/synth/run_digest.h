/* run_digest.h - by what parts of one output know that they go together, and a run what it goes on
 * with: a digest of all that shapes its bytes. */
#ifndef SYNTH_RUN_DIGEST_H
#define SYNTH_RUN_DIGEST_H

#include "phema/synth.h"
#include "phema/writer.h"

struct identity {
    uint64_t state;
    char digest[PHEMA_PART_DIGEST];
};

/* What all outputs have in common: version, options, and each file of each snapshot by its size and
 * time of change (paths may differ from machine to machine).
 * PHEMA_ERR_FILE  a snapshot is gone */
PHEMA_FALLIBLE run_digest_of_inputs(struct identity *out, const struct phema_plan *plan,
                                    const struct phema_synth_options *options,
                                    struct phema_error *err);

/* And what one of them will be: its files, headers (with the weights in them) and sizes; of a copy
 * what it begins as, what is replaced, and its provenance. */
struct identity run_digest_of_output(const struct identity *inputs, const struct phema_plan *plan,
                                     const struct phema_outputs *outputs, size_t output);

#endif
