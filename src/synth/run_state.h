/* run_state.h - one run of a plan: what is made before the workers start and shared by all of them.
 */
#ifndef SYNTH_RUN_STATE_H
#define SYNTH_RUN_STATE_H

#include <stdatomic.h>

#include "decode_order.h"
#include "memory_budget.h"
#include "phema/sink.h"
#include "phema/synth.h"
#include "target_groups.h"
#include "tiling.h"

/* Inputs that are copied before they are added up: as many as the kernels take at once, which is
 * more for many targets, whose tiles are small. */
#define FEW_TARGETS 8
#define FEW_SLOTS   8
#define MAX_SLOTS   32

/* What a pass makes of the tensors that follow one rule, or none. */
struct rule_state {
    struct group *groups;
    size_t n_groups;
    size_t *reference_of; /* [n_groups] of the tiles to compare with */
    size_t n_used;        /* snapshots that the averages are made of */
    uint64_t bytes;       /* of one snapshot, in this share */
    bool is_needed;       /* there is an averaged tensor of this kind */
    bool needs_float64;   /* so does the sum of one of them, whatever the weights */
};

struct journal_writer; /* progress.h */
struct input_digests;  /* digests.h */

/* What all workers see. */
struct run {
    const struct phema_plan *plan;
    struct phema_outputs *outputs;
    struct phema_synth_options options;
    const struct phema_backend *backend;
    struct sink **sinks;     /* [outputs->m] */
    struct gpu_run *gpu_run; /* devices that add up; NULL: the processor */
    bool is_dry_run;         /* nothing is carried out */
    struct phema_device_choice device;
    struct compare_output
        *against; /* what tiles are compared with instead of written; NULL: written */
    struct phema_reader **readers;     /* [series->n] */
    struct decode_order *turns;        /* NULL when no snapshot is decoded */
    bool maps_local;                   /* there are not descriptors enough to read them */
    size_t n_mapped, n_read, n_direct; /* files */
    const char *filesystem;            /* of one that is read because of it, or NULL */
    uint64_t max_mapped_bytes;         /* of one snapshot may be mapped before they are let go of */
    uint64_t max_prefetch_bytes; /* may be on their way from the disk before they are needed */
    struct memory_budget budget;
    struct rule_state *ruled; /* [n_ruled] for tensors without a rule, then for those of each */
    size_t n_ruled;
    size_t max_groups; /* of one of them, in the pass */
    struct tiling cut;
    size_t *next_alias;      /* [n_tensors] of the same storage, SIZE_MAX at the end */
    _Atomic uint8_t *varies; /* [n_tensors] true when snapshots differ */
    size_t n_newest;         /* snapshots that copies of the pass are made of */
    _Atomic uint64_t next_job;
    _Atomic uint64_t done_bytes; /* of all snapshots, that were read */
    uint64_t total_bytes;
    _Atomic size_t tensor; /* that is being worked on */
    _Atomic bool is_stopped;
    struct journal_writer *progress; /* NULL: no journal is kept */
    struct input_digests *digests;   /* NULL: data of snapshots are not to be known again */
    size_t n_stale_partials;         /* outputs that a killed run had begun, and are made anew */
    size_t n_published;
};

void run_init(struct run *run, const struct phema_plan *plan, struct phema_outputs *outputs,
              const struct phema_synth_options *options);

/* The budget and the cut into tiles; cleared after a failure as well. */
PHEMA_FALLIBLE run_prepare(struct run *run, struct phema_error *err);

/* Memory of devices, where they add up; tiles shrink as far as that needs. */
PHEMA_FALLIBLE run_start_devices(struct run *run, struct phema_error *err);

/* The outputs of a pass: [*first, *end). */
void run_outputs_of(const struct run *run, size_t pass, size_t *first, size_t *end);

/* Groups and readers of a pass, from 0 to budget.n_passes - 1; the one before is over. */
PHEMA_FALLIBLE run_begin_pass(struct run *run, size_t pass, struct phema_error *err);
/* When its workers are done: PHEMA_ERR_FILE when decompressed content is not whole. */
PHEMA_FALLIBLE run_end_pass(struct run *run, struct phema_error *err);

/* What a tensor follows; copies come from the newest whatever the rule. */
const struct rule_state *run_rule_of(const struct run *run, size_t tensor);

/* Whether a tile is in the sample, if one is asked for: of n of N tiles the last of each n-th; and
 * is not done already. */
bool run_includes_tile(const struct run *run, uint64_t tile, const struct tile_range *piece);

/* What is read of all snapshots in a pass for one tile. */
uint64_t run_read_bytes(const struct run *run, const struct tile_range *piece);

/* What is done of the outputs of a pass already is not read again. */
uint64_t run_subtract_done(struct run *run);

/* Whether some inputs have to be copied before they are added up: strided, in parts, decoded,
 * read. */
bool run_is_any_copied(const struct run *run);
void run_clear(struct run *run);

/* Nobody takes another job, nobody waits. */
void run_stop(struct run *run);

#endif
