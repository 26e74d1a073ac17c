/* run_state.h - the state of one run, shared by all workers, and queries on it. It is built by
 * run_prepare.c before the workers start. */
#ifndef SYNTH_RUN_STATE_H
#define SYNTH_RUN_STATE_H

#include <stdatomic.h>

#include "decode_order.h"
#include "memory_budget.h"
#include "phema/sink.h"
#include "phema/synth.h"
#include "target_groups.h"
#include "tiling.h"

/* Slots for inputs that are copied before they are summed: as many as the kernels read at once.
 * That is more for many targets, whose tiles are small. */
#define FEW_TARGETS 8
#define FEW_SLOTS   8
#define MAX_SLOTS   32

/* The tensors that follow one rule, or no rule, in a pass. */
struct rule_state {
    struct group *groups;
    size_t n_groups;
    size_t *reference_of; /* [n_groups] index of the reference tile that inputs are compared with */
    size_t n_used;        /* snapshots that the averages are made of */
    uint64_t bytes;       /* of one snapshot, in this part */
    bool is_needed;       /* some averaged tensor follows the rule */
    bool needs_float64;   /* the sums of one of them do, whatever the weights */
};

struct compare_output; /* compare_output.h */
struct gpu_run;        /* gpu/gpu_fit.h */
struct input_digests;  /* input_digests.h */
struct journal_writer; /* resume/journal_write.h */

struct run {
    const struct phema_plan *plan;
    struct phema_outputs *outputs;
    struct phema_synth_options options;
    struct phema_synth_result *result; /* counts and peaks are added to it; NULL in a forecast */
    double start_s;                    /* phema_clock_s */
    const struct phema_backend *backend;
    struct sink **sinks;     /* [outputs->m] */
    struct gpu_run *gpu_run; /* NULL: the CPU sums everything */
    bool is_dry_run;         /* for a forecast: nothing is executed */
    struct phema_device_choice device;
    struct compare_output *comparison; /* tiles are compared with it; NULL: they are written */
    struct phema_reader **readers;     /* [series->n] */
    struct decode_order *decode_order; /* NULL when no snapshot is compressed */
    bool maps_local;                   /* too few descriptors to read local files with pread */
    size_t n_mapped, n_read, n_direct; /* files */
    const char *filesystem;            /* a network file system that forces reads, or NULL */
    uint64_t max_mapped_bytes;         /* of one snapshot, mapped before a worker releases pages */
    uint64_t max_prefetch_bytes;       /* requested from the disk at one time */
    struct memory_budget budget;
    struct rule_state *rule_states; /* [n_rule_states] 0: tensors without a rule; r: rule r - 1 */
    size_t n_rule_states;
    size_t max_groups; /* of one rule, in the pass */
    struct tiling tiling;
    size_t *next_alias;      /* [n_tensors] next tensor of the same storage, SIZE_MAX at the end */
    _Atomic uint8_t *varies; /* [n_tensors] true when snapshots differ */
    size_t n_newest;         /* snapshots that copies of the pass are made from */
    _Atomic uint64_t next_job;
    _Atomic uint64_t done_bytes; /* read so far, of all snapshots */
    uint64_t total_bytes;
    _Atomic size_t tensor; /* the one in progress, for progress reports */
    _Atomic bool is_stopped;
    struct journal_writer *journal;      /* NULL: no journal is kept */
    struct input_digests *input_digests; /* NULL: snapshot data are not hashed */
    size_t n_stale_partials;             /* outputs that a killed run began and this one restarts */
    size_t n_published;
};

/* The outputs of a pass: [*first, *end). */
void run_outputs_of(const struct run *run, size_t pass, size_t *first, size_t *end);

/* The rule of a tensor. Copies come from the newest snapshot whatever the rule. */
const struct rule_state *run_rule_of(const struct run *run, size_t tensor);

/* Whether a tile has to be processed: it is in the sample, if there is one, and was not done by an
 * earlier run. A sample of n of N tiles holds the last one of each n-th. */
bool run_includes_tile(const struct run *run, uint64_t tile, const struct tile_range *range);

/* Bytes that one tile reads of all snapshots in a pass. */
uint64_t run_read_bytes(const struct run *run, const struct tile_range *range);

/* Removes tiles that an earlier run has done from the total. Returns their bytes. */
uint64_t run_subtract_done(struct run *run);

/* Whether some inputs are copied before they are summed: strided, in chunks, compressed, or read
 * instead of mapped. */
bool run_is_any_copied(const struct run *run);

/* No worker starts another job, and none waits. */
void run_stop(struct run *run);

#endif
