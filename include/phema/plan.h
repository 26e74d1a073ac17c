/* plan.h - from what the user asked for to what will be done, before any tensor is read.
 * A series is the snapshots of one training, which agree on names, shapes and dtypes; a plan adds
 * the targets, their weights, the rule for every tensor and the layout of every output. Plans do
 * not change once made: synth executes them and decides nothing. */
#ifndef PHEMA_PLAN_H
#define PHEMA_PLAN_H

#include "phema/arena.h"
#include "phema/claims.h"
#include "phema/error.h"
#include "phema/formats.h"
#include "phema/hash.h"
#include "phema/ledger.h"
#include "phema/profile.h"

/* ---- Series ---- */

/* Where one tensor of one snapshot lies. */
struct phema_place {
    uint64_t offset;        /* absolute, before the snapshot's shift */
    const uint64_t *stride; /* [rank] in elements, NULL in C order */
    size_t file;
    const struct phema_part *parts; /* [n_parts], the checkpoint's; NULL: in one place */
    size_t n_parts;
};

struct phema_snapshot {
    char *path;        /* to open it; NULL in a manifest without files */
    char *label;       /* as listings name it: relative to SNAPSHOTS, ":KEY" behind it */
    char *key;         /* its subtree, of a file that holds several; NULL: the series' */
    double named_time; /* as its name or the manifest writes it: kimg for EDM2 */
    double time;       /* on the clock of its average: images for EDM2 */
    /* How it was averaged; label is its own. Of no meaning where kind is NULL. */
    struct phema_profile profile;
    double sigma_rel, gamma; /* of a power function, else NaN */
    const char *kind; /* "power", "ema", ...; NULL when unknown (weights given from outside) */
    const char *spec; /* the profile as text (spec.h); NULL likewise */
    double rounding;  /* relative rms error of its dtypes, 0 when unknown */
    struct phema_checkpoint *checkpoint; /* mapped, listing forgotten; NULL when never opened */
    bool is_checkpoint_shared;           /* with the snapshot before, which closes it */
    bool is_decoded;                     /* its data are decompressed as they are read */
    bool is_one_of_many;                 /* its file holds several snapshots */
    const struct phema_place *places;    /* [n_tensors]; tables are shared where files look alike */
    uint64_t shift;                      /* added to every offset of places */
    char digest[PHEMA_DIGEST];           /* by what it is known again; "": not identified */
};

enum phema_rule {
    PHEMA_RULE_AVERAGE,
    PHEMA_RULE_COPY /* from the newest snapshot */
};

struct phema_series_tensor {
    struct phema_tensor tensor; /* of the newest snapshot; name without the subtree's prefix */
    enum phema_rule rule;
    const char *reason; /* for a copy: "integer", "bookkeeping", "buffer", "optimizer", "rule";
                         * "attribute" in a conversion, elsewhere those take no part */
    size_t same_as;     /* the first tensor of the same storage in every snapshot; itself if none */
};

/* Codes of a quantised tensor, and the scale that they are to be multiplied by. */
struct phema_scaled {
    const char *codes, *scale; /* names in the first file, as they are shown */
    enum phema_dtype dtype;    /* of the codes */
    size_t codes_at, scale_at; /* in the series' tensors; SIZE_MAX: takes no part */
    struct phema_scaled *next;
};

struct phema_tensor_total {
    size_t n_tensors;
    uint64_t n_elems, size_bytes;
};

struct phema_series {
    const char *layout; /* "edm2", "ema-pytorch", "posthoc-ema", "own", "names", "manifest",
                         * "lightning", "hf" */
    const char *unit;   /* "steps", "images", ... */
    char *root;         /* SNAPSHOTS as given */
    char *key;          /* the subtree that is averaged, "" for all; of several averages in a
                         * file, what holds them */
    struct phema_snapshot *snapshots; /* [n] by time, then by width */
    size_t n;
    struct phema_series_tensor *tensors; /* [n_tensors] in the newest's order */
    size_t n_tensors;
    /* tensors of the first file that take no part: attributes of objects, and all others */
    struct phema_tensor_total attributes, left_out;
    struct phema_scaled *scaled; /* of the first file */
    /* of a checkpoint alone: what became of its tensors [as it lists them], 1 + index in tensors,
     * or 0 when left out; NULL for a series */
    size_t *became;
    const char *unsampled; /* why files that say no more than names are not open; NULL: they are */
    char **notes;          /* [n_notes] sentences: what was recognised, left out, guessed */
    size_t n_notes;
    bool has_profiles;           /* that of every snapshot is known */
    struct phema_motion *motion; /* how the parameters moved; NULL: not looked at, or unmoved */
    char *unmoved; /* why that cannot be known: what metric walk is used instead of motion for */
    bool has_odd_snapshot; /* the reason is one that is zero, or far larger than the newest */
    char *doubts;          /* a sentence: the snapshots do not look like averages of update_every */
    double named_ahead;    /* posthoc-ema: named times run this much ahead of the clock */
    double (*clock)(double named_time); /* NULL: times are as named */
    struct phema_arena memory;          /* names, shapes, places */
    /* What is read for it, and for a plan and its outputs: all files but directories. NULL: nothing
     * is known */
    struct phema_claims *claims;
};

struct phema_series_options {
    const char *snapshots;      /* directory, manifest.json or @list */
    const char *layout;         /* NULL or "auto": recognised */
    const char *name_regex;     /* NULL: the layout's own */
    const char *unit;           /* NULL: the layout's own */
    const double *input_sigmas; /* [n] by index */
    size_t n_input_sigmas;
    const char *const *input_profiles; /* [n] by index, one for all: SPECs where nothing says it */
    size_t n_input_profiles;
    uint64_t update_every;       /* 0: not given */
    double from, to;             /* named times, both included; NaN: not given */
    uint64_t every, last;        /* of the times, counted from the newest; 0: not given */
    const char *const *includes; /* [n] regular expressions on the names of tensors */
    size_t n_includes;
    const char *const *excludes;
    size_t n_excludes;
    const char *key;   /* subtree; NULL: guessed, "." : all */
    bool may_lack_key; /* key is that of --into where the snapshots have no such subtree */
    struct phema_checkpoint_options checkpoint;
    bool averages_buffers;    /* --buffers average */
    bool needs_no_profiles;   /* weights come from outside */
    bool is_alone;            /* snapshots is one checkpoint, whatever its name says: inspect */
    bool is_conversion;       /* and whatever is in it: all of its tensors, unless key says which */
    bool needs_no_tensors;    /* weights: files are opened only where they say more than names */
    bool may_be_sampled;      /* and beyond that where all can be, for phema_sample_read */
    uint64_t max_ram_bytes;   /* of anonymous memory; 0: no limit */
    const char *command;      /* the whole command line, for a message that completes it */
    const char *command_tail; /* what of it stands behind the verb */
};

PHEMA_FALLIBLE phema_series_open(struct phema_series **out,
                                 const struct phema_series_options *options,
                                 struct phema_error *err);
void phema_series_close(struct phema_series *series); /* takes NULL */

/* A time as names write it, on the clock of the averages. */
double phema_series_clock(const struct phema_series *series, double named_time);

/* The tensor as it lies in snapshot k: for phema_reader_read. */
struct phema_tensor phema_series_tensor_in(const struct phema_series *series, size_t k, size_t i);

/* Of the files of a snapshot; 0 where it has none that are open. */
uint64_t phema_snapshot_bytes(const struct phema_snapshot *snapshot);

/* By what each snapshot is known again, for provenances, beside the size of its files: the XXH3 of
 * its tensors' names, dtypes and shapes and of some of their bytes. These are all of them where the
 * series has at most 262144 elements, else those of 64 windows of up to 1024 elements, evenly over
 * the model (16 windows of a compressed snapshot, where frames begin; none where it has
 * no seek table of small frames). PHEMA_ERR_FILE, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_series_identify(struct phema_series *series, struct phema_error *err);

/* ---- Sample ---- */

/* The same elements of every snapshot, about 2000 and spread over all that is averaged: what says
 * how parameters move (phema_motion_fit). Which ones they are follows from the names and shapes of
 * the tensors and from the number of snapshots, whatever files they lie in, in whatever order;
 * where snapshots are compressed they lie closer together (docs/solver.md). Complex elements are
 * two numbers each. */
struct phema_sample {
    size_t n, n_elems;  /* snapshots, numbers of each */
    double *values;     /* [n x n_elems] row-major, row k is snapshot k of the series */
    double *rounding;   /* [n] rms of what rounding to the dtypes in the files leaves, relative to
                         * sqrt(mean_square) */
    double *sizes;      /* [n] rms of each snapshot's numbers, relative to sqrt(mean_square) */
    double mean_square; /* of the newest snapshot's numbers */
};

/* Reads every snapshot once, forward. Elements that are not finite in some snapshot, or beyond
 * 1e100, are left out of all of them. Memory: 16 KiB a snapshot, at most 64 MiB or so, and a
 * decoder where snapshots are compressed; all of it is given back on failure. PHEMA_NO there is
 * nothing to look at, and the message says why: no files, or not for every snapshot; compressed
 * without a seek table, or in large frames; no tensor is averaged; no element of use PHEMA_ERR_FILE
 * a file cannot be read, is corrupt, or was written to since it was opened PHEMA_ERR_RESOURCE  no
 * memory, or more than max_ram_bytes (0: no limit) would be needed */
PHEMA_FALLIBLE phema_sample_read(struct phema_sample *out, const struct phema_series *series,
                                 uint64_t max_ram_bytes, struct phema_error *err);
void phema_sample_clear(struct phema_sample *sample);

/* Fills in the squares: mean of (x_i - x_j)^2 over the elements, in mean_square. */
void phema_sample_measure(const struct phema_sample *sample, struct phema_distance *distances,
                          size_t n_distances);

/* "motion": {...}: amplitudes of the series' motion by interval, and the rounding of its snapshots;
 * nothing where no motion is known. */
struct phema_json_out;
void phema_series_write_motion(struct phema_json_out *out, const struct phema_series *series);

/* ---- Errors ---- */

/* The predicted errors of averages of these widths at the newest snapshot, for parameters that
 * wander evenly: no tensor is read, and it takes a tenth of a second at most.
 *   errors  out: [m]
 *   every   out: 1, or of more than 256 snapshots every how many-th time was looked at; with all of
 *           them errors are smaller
 * PHEMA_NO  nothing says how the snapshots were averaged; and what the solver fails with */
PHEMA_FALLIBLE phema_series_errors(double *errors, size_t *every, const struct phema_series *series,
                                   const double *sigma_rels, size_t m, struct phema_error *err);

/* ---- Plan ---- */

struct phema_pattern;

/* A width of their own for the tensors whose names match. */
struct phema_plan_rule {
    char *expression; /* searched for in the names that the series gives its tensors */
    struct phema_pattern *pattern;
    bool is_copy;            /* no average: the newest snapshot's bytes, as of integers */
    double sigma_rel, gamma; /* NaN for copies */
    size_t n_tensors;        /* that follow it, 0 where no tensor is known */
};

struct phema_target {
    double named_time, time;
    double sigma_rel, gamma; /* of a power function, else NaN */
    struct phema_mix mix;    /* what is wanted; no parts when the weights came without a target */
    const char *kind;        /* "power", "ema", "sma", "difference", ...; NULL likewise */
    const char *spec;        /* as text (spec.h); NULL likewise */
    const char *file_part;   /* of names of files, of other shapes than power; else NULL */
    struct phema_solution solution; /* weights: [series->n], 0 for snapshots left out */
    /* [plan->n_rules] of the tensors that follow a rule, the same for all targets of one time;
     * weights: likewise, NULL for copies */
    const struct phema_solution *ruled;
    /* of the weights that believe the labels; PHEMA_UNKNOWN where those are true */
    double label_profile_error, label_predicted_error;
    size_t n_left_out; /* snapshots later than the target */
    size_t n_repeated; /* left out since another one is the same average */
    size_t newest;     /* the last snapshot that is not later: what copies come from */
    /* how the provenance says it again: the exponent was given; a file of weights says both */
    bool is_by_gamma, is_width_in_file, is_time_in_file; /* width: or SPEC */
};

struct phema_plan_options {
    struct phema_series_options series;
    const double *sigma_rels; /* [n] targets by width ... */
    size_t n_sigma_rels;
    const double *gammas; /* ... or by exponent */
    size_t n_gammas;
    const char *const *profiles; /* ... or as SPECs of any shape */
    size_t n_profiles;
    const double *ats; /* [n] named times; none: the newest snapshot */
    size_t n_ats;
    const char *weights_file; /* NULL: solve */
    /* 'RE=SIGMA' and 'RE=copy', for averaged tensors: the first one that matches a name is followed
     * instead of the target's width */
    const char *const *rules;
    size_t n_rules;
    bool is_conversion; /* no average: one checkpoint with the weight 1, as it is */
    struct phema_solve_options solve;
    struct phema_ledger *ledger; /* NULL: nothing is recorded */
};

struct phema_plan {
    struct phema_series *series;
    struct phema_target *targets; /* [m]: all averages at the first time, then at the next */
    size_t m;
    struct phema_arena memory; /* what targets are */
    const char *metric;        /* "motion", "walk", "profile", "given" */
    bool has_given_weights;
    struct phema_plan_rule *rules; /* [n_rules] in the order of the options */
    size_t n_rules;
    size_t *rule_of;              /* [n_tensors] 1 + index of the rule it follows, 0 for none */
    struct phema_solution *ruled; /* [n_ruled] behind the targets' */
    size_t n_ruled;
};

/* PHEMA_ERR_USAGE     no target, or weights and a target that do not go together; a rule or a SPEC
 *                     that is none
 * PHEMA_ERR_INPUTS    a rule that no averaged tensor follows, or that parts tensors of one storage;
 *                     a quantised tensor is averaged without its scale, or with it
 * PHEMA_ERR_RESOURCE  more than max_ram_bytes would be needed
 * and what series, profile and formats fail with */
PHEMA_FALLIBLE phema_plan_make(struct phema_plan **out, const struct phema_plan_options *options,
                               struct phema_error *err);
void phema_plan_free(struct phema_plan *plan); /* takes NULL */

/* ---- Advice ---- */

struct phema_plan_advice {
    size_t *removed; /* [n_removed] snapshots of the series that may go, the least useful first */
    size_t n_removed, n_considered; /* of how many: later ones than the targets are not */
    double error_before, error_after;
    struct phema_saving saving;
};

/* What could be deleted, and how often to save, for all targets of the plan together (profile.h).
 * PHEMA_ERR_USAGE  weights were given, targets of several times, no max_error */
PHEMA_FALLIBLE phema_plan_advise(struct phema_plan_advice *out, const struct phema_plan *plan,
                                 double max_error, struct phema_error *err);
void phema_plan_advice_clear(struct phema_plan_advice *advice);

/* ---- Outputs ---- */

enum phema_output_form {
    PHEMA_FORM_FRESH,      /* a new safetensors file */
    PHEMA_FORM_COMPRESSED, /* that file, compressed with zstd */
    PHEMA_FORM_SHARDED,    /* a directory of safetensors files and their index */
    PHEMA_FORM_TEMPLATE    /* a copy of a checkpoint file in which tensors are replaced */
};

/* A file of tensors. */
struct phema_output_file {
    char *name;      /* in the directory of a sharded output; NULL: the output itself */
    uint8_t *header; /* data begin behind it; NULL in a template */
    size_t header_size;
    uint64_t size_bytes;
};

struct phema_output {
    char *path;
    struct phema_output_file *files;
    size_t n_files;
    uint64_t size_bytes; /* of all files */
    /* [n_tensors] where each tensor goes: offset + shift behind the header of its file; shared */
    const struct phema_place *places;
    uint64_t shift;
    const struct phema_checkpoint *template; /* what it begins as: borrowed; NULL for new files */
    char *sidecar; /* text of PATH.json, the provenance, where it does not go into the file */
    /* [n_digests] where in the header of the first file, or in that text, the digits stand by which
     * the data of each snapshot that the target may use are known again: zeros until they have been
     * read; none where that is not wanted */
    size_t *digests_at;
    size_t n_digests;
};

/* It costs a few percent of a run whose snapshots are in the page cache (docs/speed.md). */
#define PHEMA_HASHES_INPUTS true

struct phema_outputs_options {
    const char *out;      /* OUT: file, directory or template */
    const char *into;     /* the checkpoint that outputs are copies of; NULL: the newest snapshot */
    const char *key;      /* subtree of --into; NULL: found by the names of the tensors */
    uint64_t shard_bytes; /* of the tensors of a shard; 0: as the snapshots are sharded, or not */
    int level;            /* of compression, 0: the default */
    bool is_conversion;   /* no provenance: the checkpoint as it is in another format */
    /* The provenance says by what all the data that were read of each snapshot are known again. */
    bool hashes_inputs; /* PHEMA_HASHES_INPUTS unless the user says */
    struct phema_checkpoint_options checkpoint;
    bool has_dtype;          /* --dtype other than same */
    enum phema_dtype dtype;  /* of averaged floats; integers and bookkeeping keep theirs */
    const char *accumulator; /* for the provenance: "auto" */
    /* The command that makes an output alone, without its target and without what cannot change the
     * bytes (threads, messages); shell-quoted. */
    const char *command_options;
};

/* A file of a sharded output that holds no tensors: the index, or one that is copied. */
struct phema_side_file {
    char *name;
    char *source; /* path; NULL: it is the text */
    char *text;
};

struct phema_outputs {
    enum phema_output_form form;
    struct phema_output *items; /* [plan->m] */
    size_t m;
    enum phema_dtype *dtypes;   /* [series->n_tensors] as written */
    struct phema_place *places; /* [series->n_tensors] the same in every output, unless templates
                                   differ */
    struct phema_side_file *side_files; /* [n_side_files] of every sharded output */
    size_t n_side_files;
    struct phema_checkpoint **templates; /* [n_templates] */
    size_t n_templates;
    const char *into_key; /* the subtree of --into that is replaced, "" for all; or NULL */
    bool *is_replaced;    /* [series->n_tensors] in copies, where the others stay; else NULL */
    bool is_in_order;     /* some element has several places or names in a template: the last one
                             written stays, so that one thread writes */
    int level;            /* of compression */
    char *made_directory; /* what has to be made for the outputs; NULL otherwise */
    struct phema_arena memory;
};

/* Names and headers of every output, with provenance.
 * PHEMA_ERR_USAGE   OUT does not fit the targets, or asks for a format that is not written
 * PHEMA_ERR_OUTPUT  two targets have one name; a dtype that safetensors does not have */
PHEMA_FALLIBLE phema_outputs_make(struct phema_outputs *out, const struct phema_plan *plan,
                                  const struct phema_outputs_options *options,
                                  struct phema_error *err);
void phema_outputs_clear(struct phema_outputs *outputs);

/* What each thread of a run holds for the data of snapshots to be known again: with more snapshots,
 * times rules and two, nothing is kept of them. Eight MiB. */
#define PHEMA_MAX_DIGESTS ((size_t)1 << 19)

/* When all was read: the digits into header or text. sums: [n_digests] */
void phema_output_put_digests(struct phema_output *output, const struct phema_hash_sum *sums);

/* An output that is there already needs not be made: it and its target leave plan and outputs. */
void phema_outputs_leave_out(struct phema_outputs *outputs, struct phema_plan *plan, size_t output);

/* ---- What an output says of how it was made ---- */

struct phema_recorded_input {
    const char *file; /* label of the snapshot */
    double weight;
    /* as the snapshot had them; NaN and NULL where the row says nothing */
    double time, sigma_rel, gamma;
    const char *spec;      /* of other shapes than power */
    uint64_t update_every; /* 1: not said */
    uint64_t bytes;
    const char *digest;             /* NULL: made by a version that did not identify its inputs */
    bool has_data_sum;              /* of all inputs or of none */
    struct phema_hash_sum data_sum; /* of all that was read of it */
};

struct phema_recorded_rule {
    const char *pattern;
    bool is_copy;
    double sigma_rel, gamma;
    double *weights; /* [n_inputs], NULL for copies */
};

struct phema_recorded {
    struct phema_checkpoint *checkpoint; /* the output */
    const char *program, *command, *accumulator;
    double time, sigma_rel, gamma; /* of the target, NaN where there is none */
    const char *spec;              /* likewise NULL */
    struct phema_recorded_input *inputs;
    size_t n_inputs;
    struct phema_recorded_rule *rules;
    size_t n_rules;
    struct phema_arena memory; /* all of it */
};

/* Opens an output and reads its provenance, from PATH.json where that is there, else from its
 * metadata. Nothing that it names is opened.
 * PHEMA_ERR_FILE    it cannot be read, or the provenance is damaged
 * PHEMA_ERR_INPUTS  it has none */
PHEMA_FALLIBLE phema_recorded_open(struct phema_recorded **out, const char *path,
                                   const struct phema_checkpoint_options *options,
                                   struct phema_error *err);
/* Of the provenance alone: checkpoint is NULL. */
PHEMA_FALLIBLE phema_recorded_parse(struct phema_recorded **out, struct phema_span text,
                                    struct phema_error *err);
void phema_recorded_close(struct phema_recorded *recorded); /* takes NULL */

/* The target of the plan that it was made for; SIZE_MAX when there is none. */
size_t phema_recorded_target(const struct phema_recorded *recorded, const struct phema_plan *plan);

/* Whether the snapshots that the target may use, whose series is identified, are those of the
 * record: else PHEMA_ERR_INPUTS names the first that has changed, is missing or was added. Where
 * the record does not identify them, by their names. */
PHEMA_FALLIBLE phema_recorded_check_inputs(const struct phema_recorded *recorded,
                                           const struct phema_plan *plan, size_t target,
                                           struct phema_error *err);

/* Whether the rows of the inputs, which are those of the plan, and of the rules say what the series
 * says of times and widths: else PHEMA_NO names the row and both values. */
PHEMA_FALLIBLE phema_recorded_check_rows(const struct phema_recorded *recorded,
                                         const struct phema_plan *plan, struct phema_error *err);

/* The inputs whose data are not those that were read for the output, by these sums.
 *   changed  out: [n_inputs] their indices
 *   sums     [n_inputs], which identify all of them */
size_t phema_recorded_changed(size_t *changed, const struct phema_recorded *recorded,
                              const struct phema_hash_sum *sums);

/* Whether weights and rules are those of the record, to the last bit: else PHEMA_NO says what is
 * not. The inputs are. */
PHEMA_FALLIBLE phema_recorded_check_weights(const struct phema_recorded *recorded,
                                            const struct phema_plan *plan, size_t target,
                                            struct phema_error *err);

/* The plan becomes what was recorded: one target with those weights. Its rules are those recorded,
 * and so are its inputs. PHEMA_ERR_INPUTS the rules are others */
PHEMA_FALLIBLE phema_recorded_take(const struct phema_recorded *recorded, struct phema_plan *plan,
                                   size_t target, struct phema_error *err);

#endif
