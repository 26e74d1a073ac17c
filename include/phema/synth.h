/* synth.h - a plan carried out: every tensor of every snapshot read once, tile by tile, added up
 * for all targets, written to its place; each output appears as soon as it is whole: when the pass
 * through the snapshots that it is made in has ended. The bytes of an output depend on the plan
 * alone: not on threads, tiles, the CPU or the other targets of the run. */
#ifndef PHEMA_SYNTH_H
#define PHEMA_SYNTH_H

#include "phema/accumulate.h"
#include "phema/error.h"
#include "phema/file_reader.h"
#include "phema/gpu.h"
#include "phema/memory_profile.h"
#include "phema/output.h"

enum phema_overflow_rule {
    PHEMA_OVERFLOW_IS_ERROR, /* a sum that does not fit the dtype ends the run */
    PHEMA_OVERFLOW_SATURATES,
    PHEMA_OVERFLOW_BECOMES_INF
};

/* The precision of sums. Auto is float32 for a target's tensors of F16 and of 8 and 4 bits, written
 * with 16 bits or fewer, where its weights keep the error of the sums below a hundredth of what
 * that dtype rounds off; else float64. */
enum phema_sums { PHEMA_SUMS_F64, PHEMA_SUMS_F32, PHEMA_SUMS_AUTO };

struct phema_progress {
    uint64_t done_bytes, total_bytes; /* of input */
    double elapsed_s;
    const char *tensor; /* one that is being worked on */
    size_t tensor_size;
};

struct phema_synth_options {
    unsigned n_threads; /* > 0 */
    enum phema_sums sums;
    enum phema_overflow_rule overflow;
    bool replaces, syncs;
    enum phema_io io; /* how files of snapshots are read */
    bool drops_cache; /* nothing of inputs and outputs is left in the page cache */
    /* Anonymous memory of the process may be; 0: no limit but that of the control group. Tiles
     * shrink to fit, then targets are split over several passes. */
    uint64_t max_ram_bytes;
    /* Who adds up; without it, as with 0, the processor. */
    struct phema_device_request device;
    struct phema_memory_profile *ledger; /* NULL: nothing is recorded */
    /* This process' part of the outputs, from 1: PATH.partial and its marker (writer.h), which
     * phema_writer_join_commit publishes; 0 of 0: outputs are written whole. */
    uint64_t part, n_parts;
    /* What an ended run has left of outputs is gone on with where it is of the same snapshots,
     * weights and options, and what this one leaves can be: it stays whatever ends the run. */
    bool resumes;
    bool verifies;    /* outputs are read back before they are published */
    bool refuses_nan; /* an average that is NaN or infinite ends the run */
    /* verify: of the tiles only so many, evenly over all of them; 0: all */
    uint64_t sample;
    /* Called from the calling thread about ten times a second; NULL for none. */
    void (*report)(void *context, const struct phema_progress *progress);
    /* Asked behind it, NULL for never: true ends the run with PHEMA_NO, as long as tensors are
     * added up. */
    bool (*is_stopped)(void *context);
    void *context;
};

/* Who adds up, and why. */
struct phema_device_choice {
    bool is_device;
    char shown[320];        /* "cpu", or devices */
    char why[512];          /* of the choice; "" when it was the user's */
    char note[160];         /* what went otherwise than planned, or "" */
    uint64_t device_bytes;  /* of all devices, that lanes have */
    uint64_t n_tile_passes; /* over the inputs of a tile, on the device */
    unsigned n_devices;
};

struct phema_synth_result {
    uint64_t read_bytes, written_bytes;
    double elapsed_s;
    uint64_t n_nan, n_inf, n_overflow; /* elements written, over all outputs */
    size_t nan_tensor; /* index of the first tensor with NaN or infinity, or SIZE_MAX */
    size_t n_averaged, n_copied, n_constant; /* tensors; constant: equal in all snapshots, copied */
    uint64_t peak_anonymous_bytes; /* sampled; of the whole process where a ledger was given */
    uint64_t peak_resident_bytes;  /* with mapped pages of files, as the kernel counted it */
    size_t n_stale_partials;       /* outputs that a killed run had begun, and are made anew */
    /* Where it resumes: outputs that it goes on with, that were begun as others and are made anew,
     * and of a form that is always made in one go. */
    size_t n_resumed, n_stale_journals, n_not_resumable;
    uint64_t resumed_bytes;            /* of snapshots, that need not be read again */
    size_t n_mapped, n_read, n_direct; /* files of snapshots */
    const char *filesystem;            /* of one that is read because of it, or NULL */
    const char *backend;
    unsigned n_threads; /* that added up: no more than there was work for */
    size_t n_passes;    /* through the snapshots */
    struct phema_device_choice device;
    uint64_t part, n_parts; /* as asked for: all counts are those of the part */
};

/* Sizes of compressed outputs are not known before, and put into outputs.
 * PHEMA_ERR_USAGE     outputs of this form are not written in parts, or cannot be read back
 * PHEMA_ERR_OUTPUT    an output exists, cannot be written, a sum does not fit its dtype, or what
 * was read back is not what was written PHEMA_ERR_FILE      a snapshot changed while it was read;
 * an average is no number PHEMA_ERR_RESOURCE  memory, threads; max_ram_bytes is below what the run
 * needs */
PHEMA_FALLIBLE phema_synth_run(struct phema_synth_result *result, const struct phema_plan *plan,
                               struct phema_outputs *outputs,
                               const struct phema_synth_options *options, struct phema_error *err);

/* ---- Whether an output is what a run would make ---- */

struct phema_unequal {
    size_t tensor; /* of the series */
    uint64_t n_elems;
};

struct phema_verification {
    struct phema_unequal *differences; /* [n] tensors that are not what they should be */
    size_t n;
    /* [n_sums] by which the data of the snapshots that the target may use are known again; NULL:
     * that was not asked for, or not all were read */
    struct phema_hash_sum *sums;
    size_t n_sums;
    uint64_t n_other_bytes; /* of a copy, that are no replaced tensor's and differ */
    uint64_t n_elems;       /* that were compared */
    uint64_t n_taken, n_tiles;
    uint64_t read_bytes; /* of snapshots */
    double elapsed_s;
};

/* Carries out a plan of one target and compares with its output, which is open, instead of writing.
 * With options->sample what is no tensor is not looked at.
 * PHEMA_NO  tensors are missing or of other dtypes or shapes, or there are others; all else as
 *           phema_synth_run */
PHEMA_FALLIBLE phema_synth_verify(struct phema_verification *out, const struct phema_plan *plan,
                                  struct phema_outputs *outputs,
                                  const struct phema_synth_options *options,
                                  const struct phema_checkpoint *checkpoint,
                                  struct phema_error *err);
void phema_verification_clear(struct phema_verification *verification);

/* ---- What a run will be ---- */

#define PHEMA_MAX_FORECAST_PARTS 8

struct phema_forecast {
    uint64_t read_bytes;  /* of tensors, all passes together; headers are not counted */
    uint64_t write_bytes; /* of all outputs */
    bool is_compressed; /* outputs: write_bytes is what they hold, their size is not known before */
    size_t n_passes, targets_per_pass, tile_elems;
    unsigned n_threads;
    uint64_t limit_bytes; /* of anonymous memory, 0: none */
    /* Anonymous memory of the process: in each stage, at most, and while tensors are added up in
     * parts whose sum that is. */
    uint64_t stage_bytes[PHEMA_N_STAGES];
    uint64_t peak_ram_bytes;
    struct {
        const char *name, *label; /* for JSON and for people */
        uint64_t bytes;
    } parts[PHEMA_MAX_FORECAST_PARTS];
    size_t n_parts;
    const char *io;      /* how most files are got at: "mmap", "read", "direct" */
    uint64_t cold_bytes; /* of the snapshots, that are not in the page cache */
    /* [bytes/s] as measured; infinite where nothing of the kind happens */
    double add_rate, fetch_rate, store_rate;
    double seconds; /* with those that opening and solving took */
    size_t n_averaged, n_copied;
    struct phema_device_choice device;
    bool is_rate_assumed; /* no device was there to be measured: add_rate is a usual one */
};

struct phema_forecast_options {
    double assumed_bandwidth; /* [bytes/s] instead of measuring; 0: measure */
    double elapsed_s;         /* until now */
};

/* What phema_synth_run would do with the same arguments; nothing of the outputs is made. Where a
 * ledger is given its stages before are those of the forecast. Takes well under a second.
 * PHEMA_ERR_RESOURCE  the limit of memory is below what the run needs; no memory
 * PHEMA_ERR_INPUTS    compressed snapshots cannot be read side by side */
PHEMA_FALLIBLE phema_synth_forecast(struct phema_forecast *out, const struct phema_plan *plan,
                                    struct phema_outputs *outputs,
                                    const struct phema_synth_options *options,
                                    const struct phema_forecast_options *timing,
                                    struct phema_error *err);

#endif
