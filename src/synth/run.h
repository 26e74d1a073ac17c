/* run.h - the state of one run, shared by all workers, and the steps of a run. run_prepare.c builds
 * the state before the workers start. */
#ifndef SYNTH_RUN_H
#define SYNTH_RUN_H

#include <stdatomic.h>

#include "phema/sink.h"
#include "phema/synth.h"
#include "phema/writer.h"
#include "target_groups.h"
#include "tiling.h"

/* Slots for inputs that are copied before they are summed: as many as the kernels read at once.
 * That is more for many targets, whose tiles are small. */
#define FEW_TARGETS 8
#define FEW_SLOTS   8
#define MAX_SLOTS   32

/* Stack that a thread touches, and the memory that libc keeps for it. */
#define BUDGET_THREAD_BYTES ((uint64_t)192 << 10)

/* Allocations of one worker [bytes], multiples of 64. */
struct worker_buffers {
    size_t sums;       /* all rows */
    size_t n_slots;    /* of inputs that are not views, at once */
    size_t slot;       /* one of them: a tile in C order */
    size_t copied;     /* all slots */
    size_t span;       /* tiles of an input that are read ahead together */
    size_t ahead_slot; /* their bytes, more for aligned reads */
    size_t n_ahead;    /* such reads at once, at most; 0: inputs are not read ahead */
    size_t ahead;      /* their buffer: fewer of them fit if each is of ahead_slot */
    size_t written;    /* a tile of an output */
    size_t reference;  /* a tile of one of the first inputs */
    size_t references; /* all reference tiles */
    size_t digests;    /* sums over the data read */
};

struct memory_budget {
    uint64_t limit; /* 0: none */
    bool is_limit_of_cgroup;
    bool is_tight; /* few inputs are read ahead, so that tiles need not shrink so much */
    size_t targets_per_pass, n_passes;
    size_t tile_elems;
    size_t sum_elems; /* of a row of sums: two for each complex element */
    struct worker_buffers buffers;
    unsigned n_threads;   /* that sum */
    unsigned n_finishers; /* threads that compress or recompute checksums */
    uint64_t baseline;    /* memory in use after opening and solving */
    uint64_t weights;     /* of a pass, and its new scales */
    uint64_t decoders;    /* of all compressed snapshots, and of all threads that have their own */
    uint64_t lanes;       /* host memory of GPUs, without slots */
    uint64_t finisher;    /* of one of those threads */
};

/* The tensors that follow one rule, or no rule, in a pass. */
struct rule_state {
    struct group *groups;
    size_t n_groups;
    size_t n_used;      /* snapshots that the averages are made of */
    uint64_t bytes;     /* of one snapshot, in this part */
    bool is_needed;     /* some averaged tensor follows the rule */
    bool needs_float64; /* the sums of one of them do, whatever the weights */
};

struct compare_output; /* compare_output.h */
struct decode_order;   /* decode_order.h */
struct gpu_run;        /* gpu/gpu_run.h */
struct input_digests;  /* input_digests.h */
struct journal_writer; /* resume/resume.h */
struct new_scales;     /* new_scales.h */

struct run {
    const struct phema_plan *plan;
    struct phema_outputs *outputs;
    struct phema_synth_options options;
    /* Counts and peaks are added to it; the device and how files are read are kept there. */
    struct phema_synth_result *result;
    double start_s; /* phema_clock_s */
    const struct phema_backend *backend;
    struct phema_made_directories made; /* of the outputs */
    struct sink **sinks;                /* [outputs->m] */
    struct gpu_run *gpu_run;            /* NULL: the CPU sums everything */
    bool is_dry_run;                    /* for a forecast: nothing is executed */
    struct compare_output *comparison;  /* tiles are compared with it; NULL: they are written */
    /* [outputs->m x n_tensors] tensors are put there; NULL: into outputs */
    void *const *memory;
    struct phema_reader **readers;     /* [series->n] */
    struct decode_order *decode_order; /* NULL when no snapshot is compressed, or has_frame_jobs */
    bool has_frame_jobs;               /* each worker decompresses on its own (decode_order.h) */
    bool maps_local;                   /* too few descriptors to read local files with pread */
    enum phema_io *ios;                /* of all files, snapshot by snapshot */
    enum phema_read_engine engine;     /* of reads ahead of the workers */
    bool rereads;                      /* inputs, in another way than a run before */
    bool is_rereading;                 /* in a pass that reads inputs and sums nothing */
    uint64_t max_mapped_bytes;         /* of one snapshot, mapped before a worker releases pages */
    struct memory_budget budget;
    struct rule_state *rule_states; /* [n_rule_states] 0: tensors without a rule; r: rule r - 1 */
    size_t n_rule_states;
    size_t max_groups;               /* of one rule, in the pass */
    size_t first_output, end_output; /* of the pass */
    struct tiling tiling;
    size_t *next_alias;      /* [n_tensors] next tensor of the same storage, SIZE_MAX at the end */
    _Atomic uint8_t *varies; /* [n_tensors] true when snapshots differ */
    size_t n_newest;         /* snapshots that copies of the pass are made from */
    _Atomic uint64_t next_job;
    _Atomic uint64_t done_bytes; /* read so far, of all snapshots */
    uint64_t total_bytes;
    _Atomic size_t tensor; /* the one in progress, for progress reports */
    const char *stage;     /* of an output, set and read by the calling thread; NULL: reading */
    double stage_start_s, reported_s;
    uint64_t stage_total_bytes;
    bool is_stage_of_all;        /* of all outputs of the pass, one after the other */
    uint64_t stage_before_bytes; /* of the outputs before */
    double first_stage_start_s;  /* of the first one */
    _Atomic size_t stage_output;
    _Atomic uint64_t stage_bytes; /* done in the stage */
    _Atomic bool is_stopped;
    struct journal_writer *journal;      /* NULL: no journal is kept */
    struct input_digests *input_digests; /* NULL: snapshot data are not hashed */
    struct new_scales *new_scales;       /* NULL: no output is fp8 with new scales */
    bool is_measuring;                   /* in a pass that finds those scales */
    size_t n_published;
};

/* ---- run_state.c: queries ---- */

/* The rule of a tensor. Copies come from the newest snapshot whatever the rule. */
const struct rule_state *run_rule_of(const struct run *run, size_t tensor);

/* Whether a tensor is written as codes with a new scale; and whether that is measured first: copies
 * keep theirs. */
bool run_makes_codes(const struct run *run, size_t tensor);
bool run_measures(const struct run *run, size_t tensor);

/* Whether a tensor's average, or copy, in the outputs of the pass is made from snapshot k. */
bool run_has_input(const struct run *run, size_t tensor, size_t k);

/* The tiling of the run's part (tiling_make). */
PHEMA_FALLIBLE run_make_tiling(struct tiling *out, const struct run *run, size_t tile_elems,
                               uint64_t max_job_bytes, unsigned n_threads, struct phema_error *err);

/* How sums beyond the range of the dtype are rounded. */
enum phema_overflow run_overflow(const struct run *run);

/* Whether a tile has to be processed: it is in the sample, if there is one, and was not done by an
 * earlier run. A sample of n of N tiles holds the last one of each n-th. */
bool run_includes_tile(const struct run *run, uint64_t tile, const struct tile_range *range);

/* Snapshot k's tensor that holds the tile. Those of a tensor run are read as one, up to the end of
 * the tile. */
struct phema_tensor run_tile_tensor(const struct run *run, size_t k,
                                    const struct tile_range *range);

/* Bytes that one tile reads of all snapshots in a pass. */
uint64_t run_read_bytes(const struct run *run, const struct tile_range *range);

/* Whether workers read inputs past the page cache, ahead of their tiles (read_ahead.h): at least
 * one file; and whether they read all inputs so. */
bool run_reads_ahead(const struct run *run);
bool run_reads_all_ahead(const struct run *run);

/* Whether some inputs are copied before they are summed: strided, in chunks, compressed, or read
 * instead of mapped. */
bool run_is_any_copied(const struct run *run);

/* Adds to the counts of the result. */
void run_add_counts(struct run *run, const struct phema_narrow_counts *counts);

/* No worker starts another job, and none waits. */
void run_stop(struct run *run);

/* ---- memory_budget.c: tile size, passes and buffers of a run under --max-ram, computed before any of
 * them is allocated. `plan` reports the result. Under a tight limit tiles shrink first; then the
 * targets are split over several passes through the snapshots. ---- */

/* For a run whose plan, outputs and options are set.
 * PHEMA_ERR_RESOURCE  the limit is too low for one target and the smallest tiles: the message says
 *                     how much they need */
PHEMA_FALLIBLE memory_budget_make(struct memory_budget *budget, const struct run *run,
                                  struct phema_error *err);

/* Shrinks buffers and threads to what the run's tiling needs. */
PHEMA_FALLIBLE memory_budget_trim(struct memory_budget *budget, const struct run *run,
                                  struct phema_error *err);

/* Anonymous memory of the whole process while tensors are summed, and while outputs are finished.
 */
uint64_t memory_budget_accumulate_bytes(const struct memory_budget *budget);
uint64_t memory_budget_write_bytes(const struct memory_budget *budget);

/* ---- run_prepare.c ---- */

/* result: NULL where the run is not prepared */
void run_init(struct run *run, const struct phema_plan *plan, struct phema_outputs *outputs,
              const struct phema_synth_options *options, struct phema_synth_result *result);

/* The memory budget and the tiling. The run has to be cleared after a failure as well. */
PHEMA_FALLIBLE run_prepare(struct run *run, struct phema_error *err);

/* Allocates GPU memory, if GPUs sum. Tiles shrink as far as that needs. */
PHEMA_FALLIBLE run_start_gpus(struct run *run, struct phema_error *err);

/* Outputs, groups and readers of a pass, from 0 to budget.n_passes - 1, after the pass before has ended. */
PHEMA_FALLIBLE run_begin_pass(struct run *run, size_t pass, struct phema_error *err);
/* After the workers have ended. PHEMA_ERR_FILE: decompressed content is incomplete. */
PHEMA_FALLIBLE run_end_pass(struct run *run, struct phema_error *err);

void run_clear(struct run *run);

/* ---- run_passes.c ---- */

/* One pass through the snapshots, by budget.n_threads workers. The calling thread reports progress
 * ten times a second and writes the journals. Counts and the peak of memory are added to
 * run->result. Of several failures the one of the first worker, by index, is returned. */
PHEMA_FALLIBLE run_pass(struct run *run, size_t pass, struct phema_error *err);

/* Finds the scales of the outputs of a pass, in a pass of its own before it; does nothing for
 * others. */
PHEMA_FALLIBLE run_measure(struct run *run, size_t pass, struct phema_error *err);

/* With options.verifies: reads the inputs of a pass again, after it, in a pass of its own; does
 * nothing without. PHEMA_ERR_FILE names a snapshot whose data were others. */
PHEMA_FALLIBLE run_reread(struct run *run, size_t pass, struct phema_error *err);

/* PHEMA_ERR_FILE names a snapshot or template that is no longer the file that was opened. */
PHEMA_FALLIBLE run_check_inputs_unchanged(const struct run *run, struct phema_error *err);

/* ---- run_threads.c ---- */

/* Processes the tiles of a pass by budget.n_threads workers, of which at least one starts. Counts and
 * the peak of memory are added to run->result. */
PHEMA_FALLIBLE run_process_tiles(struct run *run, struct phema_error *err);

/* Does a step of an output while progress of the stage is reported as in run_pass. */
typedef enum phema_status run_step(void *context, struct phema_error *err);
PHEMA_FALLIBLE run_do_step(struct run *run, const char *stage, size_t output, run_step *step,
                           void *context, struct phema_error *err);
/* Reports progress of a stage that the calling thread does itself, ten times a second at most. */
void run_begin_stage(struct run *run, const char *stage, size_t output);
void run_report_stage(struct run *run);

/* ---- run_publish.c ---- */

/* Publishes the outputs of the pass. is_directory_made: this run has made the directory of the
 * outputs. */
PHEMA_FALLIBLE run_publish(struct run *run, struct phema_error *err);

/* ---- run_digest.c ---- */

/* A digest of everything that determines an output's bytes. Parts use it to check that they belong
 * together; `--resume` uses it to recognise its own journal. Hashed are the version, the options, and
 * of each snapshot file the size and modification time that it had when it was opened; paths may
 * differ between machines and are left out. Then the output's files, headers (with the weights) and
 * sizes; for a copy its template, the replaced tensors and the provenance. */
struct run_digest {
    char text[PHEMA_PART_DIGEST];
};

/* options: of a run, as run_init has changed them */
struct run_digest run_digest_make(const struct phema_plan *plan,
                                  const struct phema_outputs *outputs, size_t output,
                                  const struct phema_synth_options *options);

#endif
