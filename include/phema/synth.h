/* synth.h - runs a plan. Every tensor of every snapshot is read once in a pass, tile by tile,
 * summed for all targets of the pass, and written. An output appears when its pass has ended. Its
 * bytes depend on the plan alone: not on threads, tiles, the CPU or the other targets of the run.
 */
#ifndef PHEMA_SYNTH_H
#define PHEMA_SYNTH_H

#include "phema/accumulate.h"
#include "phema/error.h"
#include "phema/file_reader.h"
#include "phema/gpu.h"
#include "phema/memory_profile.h"
#include "phema/output.h"

enum phema_overflow_rule {
    PHEMA_OVERFLOW_IS_ERROR, /* a sum beyond the range of the dtype ends the run */
    PHEMA_OVERFLOW_SATURATES,
    PHEMA_OVERFLOW_BECOMES_INF
};

/* The precision of sums. Auto is float32 for a target's tensors of F16 and of 8 and 4 bits that are
 * written with 16 bits or fewer, if its weights keep the error of the sums below a hundredth of
 * that dtype's rounding error. Otherwise it is float64. */
enum phema_sums { PHEMA_SUMS_F64, PHEMA_SUMS_F32, PHEMA_SUMS_AUTO };

struct phema_progress {
    uint64_t done_bytes, total_bytes; /* of input; of a stage: of its output, of
                                      * "compressing" those of all outputs; total 0: unknown */
    double elapsed_s;                 /* since the start of the run, or of the stage */
    const char *tensor;               /* in progress; NULL in a stage */
    size_t tensor_size;
    const char *stage; /* "compressing", "checking", "storing" an output, "rereading" the snapshots;
                             * NULL: reading */
    size_t item, n_items;   /* of the stage: the output, from 1; 0: no output */
    bool is_other_unit;     /* steps, not bytes */
    uint64_t resumed_bytes; /* of input, done by an earlier run and not in total_bytes */
    size_t n_published;     /* outputs */
    const char *next;       /* a long stage that follows; NULL: none */
};

struct phema_synth_options {
    unsigned n_threads; /* > 0 */
    enum phema_sums sums;
    enum phema_overflow_rule overflow;
    bool replaces, syncs;
    enum phema_io io; /* how files of snapshots are read */
    bool drops_cache; /* removes inputs and outputs from the page cache */
    /* Reads past the page cache that are in flight at once, of all threads; 0: as many as raise the
     * rate, within a fixed memory. */
    uint64_t io_depth;
    /* Limit of the process' anonymous memory; 0: that of the control group, if it has one. Tiles
     * shrink to fit, then targets are split over several passes. */
    uint64_t max_ram_bytes;
    /* The GPUs that sum; {0}: the CPU sums. */
    struct phema_gpu_options gpu;
    struct phema_memory_profile *memory_profile; /* of memory by stage; NULL: not recorded */
    /* This process' part of the outputs, from 1. It writes PATH.partial and a marker (writer.h);
     * phema_writer_join_commit publishes them. 0 of 0: outputs are written whole. */
    uint64_t part, n_parts;
    /* Resumes outputs of an interrupted run with the same snapshots, weights and options. Outputs
     * that this run leaves unfinished are kept, whatever ends it, and can be resumed. */
    bool resumes;
    bool is_repeated;   /* more parts of the same plan follow: files of snapshots stay open */
    bool has_made_part; /* the same plan's, before: other processes' parts were checked then */
    bool verifies;      /* snapshots and outputs are reread before outputs are published */
    bool refuses_nan;   /* an average that is NaN or infinite ends the run */
    /* verify: number of tiles, spread evenly over all of them; 0: all */
    uint64_t sample;
    /* Called from the calling thread about ten times a second; may be NULL. */
    void (*report)(void *context, const struct phema_progress *progress);
    /* Called after it; may be NULL. true ends the run with PHEMA_NO, if tensors are still being
     * summed. */
    bool (*is_stopped)(void *context);
    void *context;
};

/* What sums, the CPU or GPUs, and the reason for the choice. */
struct phema_device_choice {
    bool is_gpu;
    char name[320];         /* "cpu", or the GPUs */
    char why[512];          /* the reason; "" when the user chose */
    char note[160];         /* a deviation from the plan, or "" */
    uint64_t gpu_bytes;     /* memory of all lanes, on all GPUs */
    uint64_t n_tile_passes; /* through the inputs of a tile, on the GPU */
    unsigned n_gpus;
};

struct phema_synth_result {
    uint64_t read_bytes, written_bytes;
    double elapsed_s;
    uint64_t n_nan, n_inf, n_overflow; /* elements written, over all outputs */
    size_t nan_tensor; /* index of the first tensor with NaN or infinity, or SIZE_MAX */
    size_t n_averaged, n_copied, n_constant; /* tensors; constant: equal in all snapshots, copied */
    uint64_t
        peak_anonymous_bytes; /* sampled; of the whole process where a memory profile was given */
    uint64_t peak_resident_bytes; /* with mapped pages of files, as the kernel counted it */
    size_t n_stale_partials;      /* outputs that a killed run began and this one restarted */
    /* With options.resumes: outputs that were resumed; outputs that were begun with other inputs,
     * weights or options, and restarted; outputs whose form cannot be resumed. */
    size_t n_resumed, n_stale_journals, n_not_resumable;
    uint64_t resumed_bytes;            /* of snapshots that were not read again */
    size_t n_mapped, n_read, n_direct; /* files of snapshots */
    const char *filesystem;            /* a network file system that forces reads, or NULL */
    const char *backend;
    unsigned n_threads; /* that summed: no more than there are jobs */
    size_t n_passes;    /* through the snapshots */
    struct phema_device_choice device;
    uint64_t part, n_parts; /* of the options: all counts are those of the part */
};

/* Whether a run that begins anew may write its outputs; the run checks most of it again.
 * PHEMA_ERR_OUTPUT  an output exists, or is one of the snapshots; its directory cannot be written */
PHEMA_FALLIBLE phema_synth_check_new(const struct phema_plan *plan,
                                     const struct phema_outputs *outputs,
                                     const struct phema_synth_options *options,
                                     struct phema_error *err);

/* Whether the GPUs that the options ask for are there. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_synth_check_device(const struct phema_gpu_options *options,
                                        struct phema_error *err);

/* Makes all outputs of a plan. Sets the sizes of outputs, which for compressed ones are not known
 * before.
 * PHEMA_NO            is_stopped ended the run
 * PHEMA_ERR_USAGE     outputs of this form cannot be written in parts, or cannot be reread
 * PHEMA_ERR_FILE      a snapshot changed while it was read; an average is not a number
 * PHEMA_ERR_OUTPUT    an output exists, cannot be written or differs when reread; a sum is beyond
 *                     the range of its dtype
 * PHEMA_ERR_RESOURCE  memory, threads or a GPU; the run needs more than max_ram_bytes */
PHEMA_FALLIBLE phema_synth_run(struct phema_synth_result *result, const struct phema_plan *plan,
                               struct phema_outputs *outputs,
                               const struct phema_synth_options *options, struct phema_error *err);

/* Removes parts of an output that is published and up to date (phema_writer_parts_drop). The caller
 * holds the lock of the join. */
PHEMA_FALLIBLE phema_synth_drop_parts(const struct phema_plan *plan, struct phema_outputs *outputs,
                                      size_t output, const struct phema_synth_options *options,
                                      struct phema_error *err);

/* The outputs whose part, of the options, an earlier run has finished with the same snapshots,
 * weights and options.
 *   is_done  out: [outputs->m] */
PHEMA_FALLIBLE phema_synth_find_done_parts(bool *is_done, const struct phema_plan *plan,
                                           struct phema_outputs *outputs,
                                           const struct phema_synth_options *options,
                                           struct phema_error *err);

/* ---- Verification of an existing output ---- */

struct phema_unequal {
    size_t tensor; /* of the series */
    uint64_t n_elems;
};

struct phema_verification {
    struct phema_unequal *differences; /* [n] tensors with wrong elements */
    size_t n;
    /* [n_sums] digests of the snapshots that the target may use; NULL: the output records none, or
     * not all data were read */
    struct phema_hash_sum *sums;
    size_t n_sums;
    uint64_t n_other_bytes;    /* differing bytes of a copy outside its replaced tensors */
    uint64_t n_elems;          /* compared */
    uint64_t n_taken, n_tiles; /* tiles compared, of all */
    uint64_t read_bytes;       /* of snapshots */
    double elapsed_s;
};

/* Recomputes a plan of one target and compares it with its output, which is open, instead of
 * writing. With options->sample only tensors are compared. The caller clears *out.
 * PHEMA_NO  a tensor is missing or unexpected, or its dtype or shape differs
 * Other failures are those of phema_synth_run. */
PHEMA_FALLIBLE phema_synth_verify(struct phema_verification *out, const struct phema_plan *plan,
                                  struct phema_outputs *outputs,
                                  const struct phema_synth_options *options,
                                  const struct phema_checkpoint *checkpoint,
                                  struct phema_error *err);
void phema_verification_clear(struct phema_verification *verification);

/* Whether an existing copy has all bytes of the file that outputs copy, but those of replaced tensors.
 * All outputs copy the same one.
 * PHEMA_NO  it has others: the file has changed */
PHEMA_FALLIBLE phema_synth_check_copied(const struct phema_plan *plan,
                                        const struct phema_outputs *outputs,
                                        const struct phema_checkpoint *checkpoint,
                                        struct phema_error *err);

/* ---- Tensors in memory ---- */

/* Makes all tensors of n targets from target j on in memory: the bytes that phema_synth_run writes,
 * in C order.
 *   data     [n x n_tensors] out: [bytes of the tensor in its dtype] each; undefined after a
 *            failure. NULL: of a tensor whose same_as is another one, which has its data
 *   dtypes   [n_tensors] as phema_output_dtype says
 *   options  of those the sums, the overflow rule, the reading, the threads and the limit of memory
 * The failures of phema_synth_run, without those of outputs. */
PHEMA_FALLIBLE phema_synth_tensors(void *const *data, const struct phema_plan *plan, size_t j,
                                   size_t n, enum phema_dtype *dtypes,
                                   const struct phema_synth_options *options,
                                   struct phema_error *err);

/* Makes tensor i of target j alone. Nothing else is read, except that compressed snapshots are
 * decompressed up to the tensor. */
PHEMA_FALLIBLE phema_synth_tensor(void *data, const struct phema_plan *plan, size_t j, size_t i,
                                  enum phema_dtype dtype, const struct phema_synth_options *options,
                                  struct phema_error *err);

/* ---- Forecast of a run ---- */

#define PHEMA_MAX_FORECAST_PARTS 8

struct phema_forecast {
    uint64_t read_bytes;  /* of tensors, in all passes, without headers */
    uint64_t write_bytes; /* of all outputs */
    bool is_compressed;   /* outputs: write_bytes is then their size before compression */
    size_t n_passes, targets_per_pass, tile_elems;
    unsigned n_threads;
    uint64_t limit_bytes; /* of anonymous memory, 0: none */
    /* Anonymous memory of the process in each stage, and the largest of them. parts add up to the
     * stage in which tensors are summed. */
    uint64_t stage_bytes[PHEMA_N_STAGES];
    uint64_t peak_ram_bytes;
    struct {
        const char *name, *label; /* for JSON and for people */
        uint64_t bytes;
    } parts[PHEMA_MAX_FORECAST_PARTS];
    size_t n_parts;
    const char *io;      /* how most files are read: "mmap", "read", "direct" */
    uint64_t cold_bytes; /* of the snapshots, not in the page cache */
    /* [bytes/s] as measured; infinite for work that the run does not do, NaN: not measured */
    double add_rate, fetch_rate, store_rate;
    double seconds; /* with those of opening and solving; NaN: nothing was measured */
    size_t n_averaged, n_copied;
    struct phema_device_choice device;
    bool is_rate_assumed; /* no GPU could be measured: add_rate is a typical one */
};

/* A run that reads and writes less takes about as long as measuring this machine. */
#define PHEMA_LEAST_MEASURED_BYTES ((uint64_t)1 << 30)

struct phema_forecast_options {
    double assumed_bandwidth; /* [bytes/s] instead of measuring; 0: measure */
    double elapsed_s;         /* until now */
    bool measures;            /* also a run of few bytes */
};

/* Predicts phema_synth_run with the same arguments, without making outputs. If there is a memory
 * profile, its earlier stages are used in the forecast. Needs well under a second.
 * PHEMA_ERR_INPUTS    compressed snapshots cannot be read in the same order
 * PHEMA_ERR_RESOURCE  the run needs more memory than the limit; out of memory */
PHEMA_FALLIBLE phema_synth_forecast(struct phema_forecast *out, const struct phema_plan *plan,
                                    struct phema_outputs *outputs,
                                    const struct phema_synth_options *options,
                                    const struct phema_forecast_options *timing,
                                    struct phema_error *err);

/* What is told of them (record.h). */
extern const struct phema_field phema_synth_result_fields[], phema_forecast_fields[];

#endif
