/* run_digest.h - a digest of everything that determines the output's bytes. Parts use it to check
 * that they belong together; `--resume` uses it to recognise its own journal. */
#ifndef SYNTH_RUN_DIGEST_H
#define SYNTH_RUN_DIGEST_H

#include "phema/synth.h"
#include "phema/writer.h"

struct run_digest {
    uint64_t state;
    char text[PHEMA_PART_DIGEST];
};

/* Hashes the state that all outputs share: version, options, and size and modification time of each
 * snapshot file. Paths may differ between machines and are left out.
 * PHEMA_ERR_FILE  a snapshot is gone */
PHEMA_FALLIBLE run_digest_of_inputs(struct run_digest *out, const struct phema_plan *plan,
                                    const struct phema_synth_options *options,
                                    struct phema_error *err);

/* Adds one output: its files, headers (with the weights) and sizes; for a copy its template, the
 * replaced tensors and the provenance. */
struct run_digest run_digest_of_output(const struct run_digest *inputs,
                                       const struct phema_plan *plan,
                                       const struct phema_outputs *outputs, size_t output);

#endif
