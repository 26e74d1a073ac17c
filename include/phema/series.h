/* series.h - a series: the snapshots of one training, which agree on names, shapes and dtypes of
 * their tensors. Opening a series reads headers alone, and of raw parameters beside averages those
 * that may be tied. A sample of about 2000 elements is read on request. */
#ifndef PHEMA_SERIES_H
#define PHEMA_SERIES_H

#include "phema/arena.h"
#include "phema/checksum.h"
#include "phema/claims.h"
#include "phema/error.h"
#include "phema/formats.h"
#include "phema/path.h"
#include "phema/profile.h"
#include "phema/strbuf.h"

/* ---- Snapshots and tensors ---- */

/* Snapshots of one training. A recorder writes an id of it into each. */
struct phema_training_run {
    const char *id;    /* NULL: of the snapshots that have none */
    size_t n;          /* snapshots, ... */
    double from, to;   /* ... their named times, ... */
    const char *label; /* ... and the label of an early one */
};

/* Location of one tensor in one snapshot. */
struct phema_tensor_location {
    uint64_t offset;        /* absolute [bytes], before the snapshot's shift */
    const uint64_t *stride; /* [rank] in elements, NULL in C order */
    size_t file;
    const struct phema_chunk *chunks; /* [n_chunks], owned by the checkpoint; NULL: contiguous */
    size_t n_chunks;
    bool is_widened; /* stored_dtype is narrower than the series' dtype (formats.h) */
    enum phema_dtype stored_dtype;
    /* of fp8 codes, which are read as numbers; owned by the series; or NULL */
    const struct phema_scaling *scaling;
};

/* Whether a read finds the elements as they are in the file, one after the other. */
static inline bool phema_location_is_plain(const struct phema_tensor_location *location)
{
    return !location->stride && !location->chunks && !location->scaling && !location->is_widened;
}

struct phema_snapshot {
    const char *path;  /* to open it; NULL in a manifest without files */
    const char *label; /* for listings: relative to SNAPSHOTS, followed by ":KEY" */
    char *key; /* its subtree in a file of several snapshots; NULL: its file has no others */
    double named_time; /* as written in its name or the manifest: kimg for EDM2 */
    double time;       /* on the clock of its average: images for EDM2 */

    /* its profile; undefined where kind is NULL */
    struct phema_profile profile; /* with its own label */
    double sigma_rel, gamma;      /* of a power function, else NaN */
    const char *kind; /* "power", "ema", ...; NULL: unknown (weights given from outside) */
    const char *spec; /* the profile as text (profile.h); NULL: unknown */
    const char *run;  /* the id of its training; NULL: unknown */
    bool is_assumed;  /* see struct phema_series */
    double n_updates; /* of its average, as a counter inside says; NaN: none does */

    /* its data */
    double rounding;                     /* relative rms error of its dtypes, 0: unknown */
    struct phema_checkpoint *checkpoint; /* mapped, listing forgotten; NULL: never opened */
    bool is_checkpoint_shared;           /* with the previous snapshot, which closes it */
    bool is_only_compared;               /* while a series is opened: no snapshot of it */
    bool is_compressed;                  /* data are decompressed as they are read */
    const struct phema_tensor_location *locations; /* [n_tensors]; similar files share a table */
    uint64_t shift;            /* [bytes] added to offsets of locations (phema_snapshot_shift) */
    char digest[PHEMA_DIGEST]; /* fingerprint (phema_series_identify); "": none */
};

/* The shift of a tensor: none in the file that all snapshots share. */
static inline uint64_t phema_snapshot_shift(const struct phema_snapshot *snapshot,
                                            const struct phema_tensor *tensor)
{
    return tensor->kind == PHEMA_KIND_FROZEN ? 0 : snapshot->shift;
}

enum phema_rule {
    PHEMA_RULE_AVERAGE,
    PHEMA_RULE_COPY /* from the newest snapshot */
};

struct phema_series_tensor {
    /* of the newest snapshot; name without the subtree's prefix. fp8 tensors with scales are
     * numbers (phema_tensor_values), and their scales are tensors of the series with keeps_scales
     * alone */
    struct phema_tensor tensor;
    enum phema_rule rule;
    const char *reason;  /* for a copy: "integer", "bookkeeping", "buffer", "optimizer", "rule",
                         * "complex128", "no average", "activation scale"; "scale" with
                         * keeps_scales, "attribute" in a conversion only */
    size_t same_as;      /* the first tensor that shares its storage in every snapshot, or itself */
    const char *tied_to; /* the tensor whose average it has, since the raw parameters have the same
                          * bytes in every file; NULL: its own */
    size_t scale;        /* with keeps_scales: of fp8 numbers, the tensor of their scale, and
                         * conversely; else SIZE_MAX */
};

/* The codes of a quantised tensor and the scale that multiplies them, which are tensors of their
 * own. */
struct phema_quantised {
    const char *codes, *scale; /* names in the first file, escaped for messages */
    const char
        *fault; /* the reason why the codes are not read as numbers; NULL: no fp8, or unknown */
    enum phema_dtype dtype;    /* of the codes */
    size_t codes_at, scale_at; /* in the series' tensors; SIZE_MAX: takes no part */
    struct phema_quantised *next;
};

struct phema_tensor_total {
    size_t n_tensors;
    uint64_t n_elems, size_bytes;
};

/* ---- What a directory was taken to hold ---- */

/* A group of tensors that are the same parameters as those of another set. */
struct phema_recognised_set {
    const char *name; /* its key, "" for all tensors; of files their name with # for numbers */
    const char *role; /* "average" or "raw" */
    const char *by;   /* what decided that: "data", "names", "trainer" or "labels" */
    double margin;    /* of the data: |difference| / sum of the squared distances; NaN: others */
};

struct phema_recognised_file {
    const char *file, *reason; /* "made by posthoc-ema" */
};

struct phema_recognised {
    const char *times; /* where they are: "names", "counter", "metadata" or "manifest" */
    const char *field; /* the expression for the names, NULL: the layout's; the counter's name */
    struct phema_recognised_set *sets; /* [n_sets] */
    size_t n_sets;
    struct phema_recognised_file *left_out; /* [n_left_out] by name */
    size_t n_left_out;
};

/* Its names are copied; other texts are literals. */
PHEMA_FALLIBLE phema_recognised_copy(struct phema_recognised *out,
                                     const struct phema_recognised *from,
                                     struct phema_arena *memory, struct phema_error *err);

/* ---- Series ---- */

struct phema_series {
    /* its source */
    char *root;          /* SNAPSHOTS as given */
    const char *layout;  /* "edm2", "edm2-pt", "ema-pytorch", "posthoc-ema", "own", "names",
                         * "manifest", "lightning", "hf", "torchtitan", "cosmos", "flux-action",
                         * "megatron" */
    char *key;           /* the averaged subtree, "" for all; the parent of several averages in a
                         * file */
    char *key_to_choose; /* of one of several averages, where profiles are needed; NULL: none */
    bool is_key_usual;   /* the layout's own, which no note names */
    char **notes;        /* [n_notes] sentences: layout recognised, files left out, guesses */
    size_t n_notes;
    size_t n_warnings; /* the last of them: averages may not be what was asked for */
    struct phema_recognised recognised;
    struct phema_error *damage; /* the first file that cannot be read; NULL: none was left out */
    /* A profile that neither the files nor the options say; NULL: none was assumed. */
    const char *assumed;      /* as a SPEC */
    const char *trainer;      /* whose default that is */
    const char *to_fill;      /* a SPEC with a word where the user has to give a number */
    const char *const *usual; /* [ends with NULL] SPECs that users of the trainer set instead */
    const char *assumption;   /* the note that says so */

    /* its snapshots and their clock */
    struct phema_snapshot *snapshots; /* [n] by time, then by width */
    size_t n;
    struct phema_training_run
        *runs; /* [n_runs] none, one, or one and the snapshots without an id */
    size_t n_runs;
    bool has_profiles;     /* every snapshot's profile is known */
    const char *doubted;   /* another SPEC that the averages may have as well; NULL: none */
    bool may_be_raw;       /* a snapshot whose profile is unknown */
    bool may_drop_update;  /* update_every is the option's alone, and may be left out */
    bool leaves_out_raw;   /* of averages: files of their own, or a part of each file */
    size_t n_sampled_with; /* samples are chosen as for so many snapshots; 0: for n */
    const char *unit;      /* of times: "steps", "images", ... */
    double step;           /* [unit] of the training, at most 1 */
    bool is_unit_of_names; /* words in the names say it, and nothing else does */
    double (*clock)(double named_time); /* NULL: named times are times */
    double named_ahead;                 /* posthoc-ema: named time minus time */
    double time_offset;                 /* --time-offset: added to named times first */
    const char *unsampled; /* the reason why optional files are not open; NULL: all are open */

    /* its tensors */
    struct phema_series_tensor *tensors; /* [n_tensors] in the newest's order */
    size_t n_tensors;
    /* tensors of the first file that take no part: attributes of objects, and all others */
    struct phema_tensor_total attributes, left_out;
    struct phema_quantised *quantised; /* of the first file */
    /* of a single checkpoint: for each tensor that it lists, 1 + index in tensors or 0: left out */
    size_t *became; /* NULL for a series */

    struct phema_arena memory;   /* names, shapes, locations */
    struct phema_claims *claims; /* files read for the series, its plan and outputs (no
                                  * directories); NULL: unknown */
};

/* Which snapshots of files that hold raw parameters beside averages. */
enum phema_use { PHEMA_USE_ALL, PHEMA_USE_AVERAGES, PHEMA_USE_RAW };

/* Names of known trainers, and "auto", in the order of the help. */
extern const char phema_series_layouts[];

struct phema_series_options {
    /* files and names */
    const char *snapshots; /* directory, manifest.json or @list */
    /* [n] in its place, where there are several: files, directories and @lists, together one series;
     * the first is snapshots, too */
    const char *const *several;
    size_t n_several;
    const char *layout;                /* one of phema_series_layouts; NULL or "auto": recognised */
    const char *name_regex;            /* NULL: the layout's own */
    const char *unit;                  /* NULL: the layout's own */
    double from, to;                   /* named times, both included; NaN: not given */
    uint64_t every, last;              /* of the times, counted from the newest; 0: not given */
    const char *const *excluded_files; /* [n] labels or paths of those that are left out */
    size_t n_excluded_files;
    const char *run; /* id of the training, or its beginning; NULL: there is only one */
    struct phema_checkpoint_options checkpoint;

    /* profiles */
    const double *input_sigmas; /* [n] by index */
    size_t n_input_sigmas;
    const char *const *input_profiles; /* SPECs [n] by index, or one for all; for files without */
    size_t n_input_profiles;
    uint64_t update_every;     /* 0: not given */
    const char *const *resets; /* [n] "T" or "T,counter", T a named time */
    size_t n_resets;
    double time_offset; /* the averages end so much later than named; NaN, 0: as named */

    /* tensors */
    const char *const *includes; /* [n] regular expressions on the names of tensors */
    size_t n_includes;
    const char *const *excludes;
    size_t n_excludes;
    const char *key;       /* subtree; NULL: guessed, ".": all */
    bool may_lack_key;     /* key is that of --into: ignored where snapshots have no such subtree */
    bool averages_buffers; /* --buffers average */
    int use;               /* enum phema_use */

    const struct phema_series *like; /* only its tensors, in its order; NULL: all */

    /* needs of the caller */
    bool needs_no_profiles; /* weights come from outside */
    bool skips_damaged;     /* files that cannot be read are left out: phema_series.damage */
    bool is_alone;          /* snapshots is one checkpoint of any name: inspect */
    bool is_conversion;     /* likewise, with all of its tensors unless key selects some */
    bool keeps_codes;       /* codes and scales of fp8 tensors are tensors of their own */
    bool keeps_scales;      /* the scales are tensors that are copied, beside numbers: for outputs
                             * with scales of their own */
    bool needs_no_tensors;  /* weights: files are opened only where they add to names */
    bool may_be_sampled;    /* other files are opened as well, for phema_sample_read */
    bool compares_samples;  /* tied tensors are found by samples, not by all of their bytes */
    uint64_t max_ram_bytes; /* of anonymous memory; 0: no limit */
    /* with is_alone: the checkpoint, which outlives the series; NULL: the series opens it */
    struct phema_checkpoint *opened;
    const struct phema_recognised_file *damaged; /* [n_damaged] the series' own: paths */
    size_t n_damaged;
};

/* Whether a file is text whose first line is the path of a file: a list without its @. */
bool phema_file_lists_paths(const char *path);

/* Opens a series. The caller closes it.
 * PHEMA_ERR_USAGE     an option is invalid: layout, expression or SPEC
 * PHEMA_ERR_FILE      a file cannot be read or is corrupt
 * PHEMA_ERR_INPUTS    no snapshots, unknown profiles, or snapshots that disagree
 * PHEMA_ERR_RESOURCE  no memory, or more than max_ram_bytes would be needed */
PHEMA_FALLIBLE phema_series_open(struct phema_series **out,
                                 const struct phema_series_options *options,
                                 struct phema_error *err);
void phema_series_close(struct phema_series *series); /* takes NULL */

/* Packs what a run needs of a series, its plan (plan.h) and outputs (output.h), or makes the
 * receiver's (packed.h): no profiles, notes and claims. The receiver's snapshots are those of
 * phema_checkpoint_pack. */
struct phema_packer;
PHEMA_FALLIBLE phema_series_pack(struct phema_series **series, struct phema_packer *packer,
                                 struct phema_error *err);
/* A table of locations of the series' tensors; n_files: of the checkpoint. Returns the table. */
struct phema_tensor_location *phema_locations_pack(const struct phema_tensor_location *locations,
                                                   struct phema_packer *packer,
                                                   const struct phema_series *series,
                                                   size_t n_files);

/* From a named time to the clock of the averages. */
double phema_series_clock(const struct phema_series *series, double named_time);

/* Tensor i as it lies in snapshot k: for phema_reader_read. */
struct phema_tensor phema_series_tensor_in(const struct phema_series *series, size_t k, size_t i);

/* Whether all snapshots are raw parameters: merges of them have no error but their rounding. */
bool phema_series_is_raw(const struct phema_series *series);

/* Tensors that are read as fp8 codes times scales. */
size_t phema_series_n_scaled(const struct phema_series *series);

/* Size of the files of a snapshot, without one of frozen tensors [bytes]; 0 where none is open. */
uint64_t phema_snapshot_bytes(const struct phema_snapshot *snapshot);

/* Sets the digest of each snapshot. Provenances identify a snapshot by it and by the size of its
 * files. It is the XXH3 of names, dtypes and shapes of its tensors and of some of their bytes: of
 * all where the series has at most 262144 elements, else of 64 windows of up to 1024 elements,
 * evenly over the model, and of as many over frozen tensors. Compressed snapshots have 16 windows, where frames begin, and no bytes
 * without a seek table of small frames.
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_series_identify(struct phema_series *series, struct phema_error *err);

/* The same in other threads, between begin and end. Meanwhile the caller reads and changes the
 * series, but not the digests. end reports the failures, and frees the identification, as abandon
 * does, which takes NULL. A few snapshots are read in end. */
struct phema_identification;
PHEMA_FALLIBLE phema_series_identify_begin(struct phema_identification **out,
                                           struct phema_series *series, struct phema_error *err);
PHEMA_FALLIBLE phema_series_identify_end(struct phema_identification *identification,
                                         struct phema_error *err);
void phema_series_identify_abandon(struct phema_identification *identification);

/* ---- Sample ---- */

/* The same elements of every snapshot, about 2000: some of each averaged tensor, or with more than
 * 384 tensors of each few neighbours by name, and more of large ones. They show how parameters move
 * (phema_motion_fit). A number of a tensor of which few are sampled stands for many: values are
 * multiplied by the roots of such weights, whose mean is 1, so that plain means of squares estimate
 * those over the model. The choice follows from the names and shapes of the tensors and from the
 * number of snapshots, not from files or their order. Where snapshots are compressed the elements
 * lie closer together, and tensors may have none (docs/solver.md). A complex element is 2
 * numbers.
 * A tensor that is the same in every snapshot takes no part, unless all are: it is its own average.
 * Few numbers that are far larger than all others, such as data means, are divided until they have
 * the rms of the others. */
struct phema_sample {
    size_t n, n_elems;  /* snapshots, numbers of each */
    double *values;     /* [n x n_elems] row-major, row k is snapshot k of the series */
    size_t *tensors;    /* [n_elems] of the series: all numbers of a tensor are neighbours */
    double *spacings;   /* [n_elems] between neighbouring numbers of the dtype, the largest of all
                         * snapshots; multiplied as values are */
    double *rounding;   /* [n] rms of the rounding errors of the dtypes in the files, relative to
                         * sqrt(mean_square) */
    double *sizes;      /* [n] rms of each snapshot's numbers, relative to sqrt(mean_square) */
    double mean_square; /* of the newest snapshot's numbers */
    bool is_plain;      /* no tensor is constant or divided */
    struct phema_arena memory;
};

/* Reads every snapshot once, forward, or twice where most elements are of constant tensors. Elements that are not finite in some snapshot, or beyond
 * 1e100, are left out of all. Memory: 16 KiB a snapshot, at most about 64 MiB, and up to four
 * decoders where snapshots are compressed. The caller clears the sample; a failure leaves nothing
 * to clear.
 *   is_plain  constant tensors take part, and none is divided: the same elements of another series
 *             are then in the same columns
 * PHEMA_NO            no sample, and the message has the reason: no files, or not for every
 *                     snapshot; compressed without a seek table, or in large frames; no tensor is
 *                     averaged; no usable element
 * PHEMA_ERR_FILE      a file cannot be read, is corrupt, or was written to since it was opened
 * PHEMA_ERR_RESOURCE  no memory, or more than max_ram_bytes (0: no limit) would be needed */
PHEMA_FALLIBLE phema_sample_read(struct phema_sample *out, const struct phema_series *series,
                                 bool is_plain, uint64_t max_ram_bytes, struct phema_error *err);
/* The same without the running means and variances of layers of normalisation: they jitter with every
 * batch, and parameters do not. *out is unchanged where there are none, or where nothing else can be
 * compared. */
PHEMA_FALLIBLE phema_sample_read_parameters(struct phema_sample *out,
                                            const struct phema_series *series,
                                            uint64_t max_ram_bytes, struct phema_error *err);
void phema_sample_clear(struct phema_sample *sample);

/* The mean of (x_i - x_j)^2 over the elements of snapshots i and j, relative to mean_square. */
double phema_sample_distance(const struct phema_sample *sample, size_t i, size_t j);

#endif
