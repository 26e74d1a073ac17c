/* provenance_write.h - how an output was made, as metadata inside it. */
#ifndef OUTPUT_PROVENANCE_WRITE_H
#define OUTPUT_PROVENANCE_WRITE_H

#include "phema/output.h"
#include "phema/strbuf.h"

/* Key of the digest of a snapshot's data, and its placeholder until all data are read. */
#define PROVENANCE_DATA_DIGEST "data_xxh3"
#define PROVENANCE_NO_DIGEST   "00000000000000000000000000000000"

struct provenance_metadata {
    struct phema_metadata items[8];
    size_t n;
    struct phema_strbuf text; /* holds the value of posthoc_ema.provenance */
    struct phema_name_buffer numbers[3];
};

/* Keys posthoc_ema.time, .sigma_rel and .gamma, or .profile of other shapes, .unit, and
 * .provenance: one JSON object with inputs, weights, target, errors, version and the command that
 * makes this output alone. Nothing in it depends on threads, other targets of the run, time or
 * machine. The digests of the snapshots' data are zeros here. */
PHEMA_FALLIBLE provenance_write(struct provenance_metadata *out, const struct phema_plan *plan,
                                const struct phema_target *target,
                                const struct phema_outputs_options *options,
                                struct phema_error *err);
void provenance_clear(struct provenance_metadata *provenance);

#endif
