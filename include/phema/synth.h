/* synth.h - a plan carried out: every tensor of every snapshot read once, tile by tile, added up
 * for all targets, written to its place; outputs appear when all of them are whole. The bytes of an
 * output depend on the plan alone: not on threads, tiles, the CPU or the other targets of the run.
 */
#ifndef PHEMA_SYNTH_H
#define PHEMA_SYNTH_H

#include "phema/accumulate.h"
#include "phema/error.h"
#include "phema/ledger.h"
#include "phema/plan.h"

enum phema_overflow_rule {
    PHEMA_OVERFLOW_IS_ERROR, /* a sum that does not fit the dtype ends the run */
    PHEMA_OVERFLOW_SATURATES,
    PHEMA_OVERFLOW_BECOMES_INF
};

struct phema_progress {
    uint64_t done_bytes, total_bytes; /* of input */
    double elapsed_s;
    const char *tensor; /* one that is being worked on */
    size_t tensor_size;
};

struct phema_synth_options {
    unsigned n_threads; /* > 0 */
    enum phema_accumulator accumulator;
    enum phema_overflow_rule overflow;
    bool replaces, syncs;
    /* Anonymous memory of the process may be; 0: no limit but that of the control group. Tiles
     * shrink to fit, then targets are split over several passes. */
    uint64_t max_ram_bytes;
    struct phema_ledger *ledger; /* NULL: nothing is recorded */
    /* Called from the calling thread about ten times a second; NULL for none. */
    void (*report)(void *context, const struct phema_progress *progress);
    void *context;
};

struct phema_synth_result {
    uint64_t read_bytes, written_bytes;
    double elapsed_s;
    uint64_t n_nan, n_inf, n_overflow; /* elements written, over all outputs */
    size_t nan_tensor; /* index of the first tensor with NaN or infinity, or SIZE_MAX */
    size_t n_averaged, n_copied, n_constant; /* tensors; constant: equal in all snapshots, copied */
    uint64_t peak_anonymous_bytes;           /* sampled */
    uint64_t peak_resident_bytes; /* with mapped pages of files, as the kernel counted it */
    const char *backend;
    unsigned n_threads; /* that added up: no more than there was work for */
    size_t n_passes;    /* through the snapshots */
};

/* Sizes of compressed outputs are not known before, and put into outputs.
 * PHEMA_ERR_OUTPUT    an output exists, cannot be written, or a sum does not fit its dtype
 * PHEMA_ERR_FILE      a snapshot changed while it was read
 * PHEMA_ERR_RESOURCE  memory, threads; max_ram_bytes is below what the run needs */
PHEMA_FALLIBLE phema_synth_run(struct phema_synth_result *result, const struct phema_plan *plan,
                               struct phema_outputs *outputs,
                               const struct phema_synth_options *options, struct phema_error *err);

#endif
