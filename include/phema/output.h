/* output.h - the outputs of a plan: form, files, the place of every tensor, and provenance. */
#ifndef PHEMA_OUTPUT_H
#define PHEMA_OUTPUT_H

#include "phema/plan.h"

/* ---- Outputs ---- */

enum phema_output_form {
    PHEMA_FORM_FRESH,               /* a new safetensors file */
    PHEMA_FORM_COMPRESSED,          /* that file, compressed with zstd */
    PHEMA_FORM_SHARDED,             /* a directory of safetensors files and their index */
    PHEMA_FORM_TEMPLATE,            /* a copy of a checkpoint file in which tensors are replaced */
    PHEMA_FORM_DISTRIBUTED,         /* a directory of zips of boxes of tensors, and .metadata */
    PHEMA_FORM_DISTRIBUTED_TEMPLATE /* a copy of such a directory in which tensors are replaced */
};

/* A file of tensors, or the provenance of a directory, which is all header. */
struct phema_output_file {
    char *name;         /* in the directory of a sharded output; NULL: the output itself */
    const char *source; /* the file begins as its copy; borrowed, or NULL */
    uint8_t *header;    /* data begin after it; NULL in a copy, where header_size is 0 */
    size_t header_size;
    uint64_t size_bytes;
};

struct phema_output {
    char *path;
    size_t place; /* of one that is kept: among all, in the order of the targets */
    struct phema_output_file *files;
    size_t n_files;
    uint64_t size_bytes; /* of all files */
    /* [n_tensors] the place of each tensor: offset + shift after the header of its file; shared */
    const struct phema_tensor_location *locations;
    uint64_t shift;
    const struct phema_checkpoint *template; /* the output begins as its copy; borrowed, or NULL */
    char *sidecar; /* text of PATH.json, the provenance of a copy; NULL: in a header, or none */
    size_t provenance_file; /* whose header has the provenance */
    /* [n_digests] offsets in the sidecar, or else in the header of that file: the digits of the
     * data digest of each snapshot that the target may use. They are zeros until all data are
     * read. n_digests 0: without hashes_inputs */
    size_t *digest_offsets;
    size_t n_digests;
};

/* Hashing costs a few percent of a run whose snapshots are in the page cache (docs/speed.md). */
#define PHEMA_HASHES_INPUTS true

/* A box of a tensor in a distributed checkpoint, in a zip of its own. */
struct phema_piece {
    size_t tensor, file;
    const uint64_t *start, *size; /* [rank] first index and extent in every dimension */
    uint64_t zip_at, zip_bytes;   /* in the file */
    uint64_t data_at, size_bytes; /* of the data in the file */
};

/* Levels of zstd. */
#define PHEMA_DEFAULT_LEVEL 3
#define PHEMA_MAX_LEVEL     22

struct phema_outputs_options {
    const char *out;      /* OUT: a file, a directory, or a template of names */
    const char *into;     /* the checkpoint to copy; NULL: the newest snapshot */
    const char *key;      /* subtree of --into, or one of its sets; NULL: found by the names */
    uint64_t shard_bytes; /* of the tensors of a shard; 0: as the newest snapshot */
    uint64_t ranks;       /* files of a distributed checkpoint; 0: another form */
    int level;            /* of compression, up to PHEMA_MAX_LEVEL; 0: PHEMA_DEFAULT_LEVEL */
    bool is_conversion;   /* the checkpoint itself in another format; no provenance */
    bool hashes_inputs;   /* provenance identifies the data read; default PHEMA_HASHES_INPUTS */
    struct phema_checkpoint_options checkpoint;
    bool has_dtype;          /* --dtype other than auto and same */
    bool keeps_dtypes;       /* same: fp8 tensors with scales, too, with new scales (the series has
                              * keeps_scales); auto writes them as BF16 */
    enum phema_dtype dtype;  /* of averaged floats; integers and bookkeeping keep theirs */
    const char *accumulator; /* for the provenance: "auto" */
    /* The command that makes one output, without its target and without options that cannot change
     * the bytes (threads, messages); shell-quoted. */
    const char *command_options;
};

#define PHEMA_MAX_RANKS 4096 /* of a new distributed checkpoint; its files are open at once */

/* A file of a directory without tensors: an index, or a copied file. */
struct phema_side_file {
    char *name;
    char *source; /* path of the file to copy; NULL: the contents are text */
    char *text;   /* [size], may contain NULs */
    size_t size;
    bool is_last; /* written after all others, when all tensors are written */
};

struct phema_outputs {
    enum phema_output_form form;
    struct phema_output
        *items; /* [plan->m], and behind them those that are kept, with their targets */
    size_t m, n_kept;
    enum phema_dtype *dtypes;                /* [series->n_tensors] as written */
    struct phema_tensor_location *locations; /* [series->n_tensors] of all outputs that are not
                                             copies of a snapshot */
    struct phema_side_file *side_files;      /* [n_side_files] of every sharded output */
    size_t n_side_files;
    struct phema_piece *pieces; /* of every distributed output, in the order of tensors; or NULL */
    size_t *first_piece;        /* [series->n_tensors + 1] */
    struct phema_checkpoint **templates; /* [n_templates] */
    size_t n_templates;
    const char *into_key; /* names in --into that are replaced: the subtree, "" for all; NULL: none
                             was chosen */
    const char *into_names; /* where they have a suffix too: "ema.state.NAME.ema_params"; or NULL */
    bool *is_replaced;      /* [series->n_tensors] in copies, where other tensors stay; else NULL */
    bool has_new_scales; /* fp8 numbers are written as codes, and their scales are computed again */
    bool is_in_order;    /* an element has several places or names in a template: the last one
                             written stays, so one thread writes all, in order */
    int level;           /* of compression */
    const char *made_directory; /* the directory to create for the outputs; NULL: it exists */
    struct phema_arena memory;  /* of the arrays above */
};

/* Whether all outputs fit where the first one lies, before they are compressed.
 * PHEMA_ERR_OUTPUT  they do not: the size needed, and the free space */
PHEMA_FALLIBLE phema_outputs_check_space(const struct phema_outputs *outputs,
                                         struct phema_error *err);

/* Checks of OUT that need no snapshot, before anything is solved. phema_outputs_make repeats them
 * for n targets. is_new: a file OUT may not exist yet.
 * PHEMA_ERR_USAGE   several targets for one file
 * PHEMA_ERR_OUTPUT  the file exists, or its directory does not */
PHEMA_FALLIBLE phema_outputs_check_out(const struct phema_outputs_options *options, size_t n,
                                       bool is_new, struct phema_error *err);

/* Checks that OUT fits the newest snapshot and n targets, before they are solved.
 * phema_outputs_make makes these checks again.
 * PHEMA_ERR_USAGE  as phema_outputs_make
 * PHEMA_ERR_FILE   the newest snapshot cannot be read */
PHEMA_FALLIBLE phema_outputs_check_form(const struct phema_outputs_options *options,
                                        const struct phema_series *series, size_t n,
                                        struct phema_error *err);

/* Plans paths, headers, places and provenance of every output.
 * PHEMA_ERR_USAGE   OUT does not fit the targets, names two of them alike, or has the extension of
 *                   a format that cannot be written
 * PHEMA_ERR_INPUTS  a copy would change other tensors, or is not of the same model
 * PHEMA_ERR_OUTPUT  safetensors does not have a dtype, or the index would be too large to read */
PHEMA_FALLIBLE phema_outputs_make(struct phema_outputs *out, const struct phema_plan *plan,
                                  const struct phema_outputs_options *options,
                                  struct phema_error *err);
void phema_outputs_clear(struct phema_outputs *outputs);

/* For another process, after phema_plan_pack: all that phema_synth_run needs of outputs. */
PHEMA_FALLIBLE phema_outputs_pack(struct phema_outputs *outputs, struct phema_packer *packer,
                                  const struct phema_plan *plan, struct phema_error *err);

/* The dtype in which outputs have a tensor of the series. */
enum phema_dtype phema_output_dtype(const struct phema_series_tensor *entry,
                                    const struct phema_outputs *outputs,
                                    const struct phema_outputs_options *options);

/* Capabilities of a form: a row of the table in src/output/forms.c. Code outside src/output
 * reads these fields and never compares with PHEMA_FORM_*. */
struct phema_output_traits {
    bool is_directory;        /* PATH is a directory of tensor files and side files */
    bool is_copy;             /* begins as a copy of a checkpoint, in which tensors are replaced */
    bool has_provenance_file; /* PHEMA_PROVENANCE_FILE in the directory */
    bool is_compressed;       /* written plain, and compressed when all tensors are written */
    bool has_finish; /* sink_finish reads the output again: to compress it, or for checksums */
    const char *plain_suffix; /* tensors are written to PATH, this suffix, and ".partial" */
};

const struct phema_output_traits *phema_output_traits(const struct phema_outputs *outputs);

/* PHEMA_ERR_USAGE where processes cannot write parts of these outputs. */
PHEMA_FALLIBLE phema_outputs_check_parts(const struct phema_plan *plan,
                                         const struct phema_outputs *outputs,
                                         struct phema_error *err);

/* Digests that each thread of a run can hold: 8 MiB. Above snapshots x (rules + 2) = 2^19, digests
 * are disabled. */
#define PHEMA_MAX_DIGESTS ((size_t)1 << 19)

/* Writes the digits of the digests into header or sidecar text, when all data have been read.
 * sums: [n_digests] */
void phema_output_set_digests(struct phema_output *output, const struct phema_hash_sum *sums);

/* Bytes of a file of a copy that are not the template's: of a replaced tensor, or of a chunk of one,
 * or a checksum. */
struct phema_extent {
    size_t file;
    uint64_t start, end;
};
/* The bytes of all replaced tensors, of a strided one with its gaps, and the checksums of records;
 * sorted by file and start.
 *   out  the caller's (free) */
PHEMA_FALLIBLE phema_output_extents(struct phema_extent **out, size_t *n,
                                    const struct phema_plan *plan,
                                    const struct phema_outputs *outputs, size_t output,
                                    const struct phema_record *records, size_t n_records,
                                    struct phema_error *err);

/* The records of the template that hold a replaced tensor and have a CRC-32, sorted by file and
 * place. out: [n] the caller's (free), also after a failure
 * PHEMA_ERR_FILE      the template was changed since it was opened, and is damaged
 * PHEMA_ERR_RESOURCE  out of memory */
PHEMA_FALLIBLE phema_output_records(struct phema_record **out, size_t *n,
                                    const struct phema_plan *plan,
                                    const struct phema_outputs *outputs, size_t output,
                                    struct phema_error *err);

/* Tensor i as it lies in an output, without the header of its file. */
struct phema_tensor phema_output_tensor(const struct phema_plan *plan,
                                        const struct phema_outputs *outputs,
                                        const struct phema_output *output, size_t i);

/* Takes an output and its target from plan and outputs: it exists already. keep: behind the others
 * it can still be named. */
void phema_outputs_keep(struct phema_outputs *outputs, struct phema_plan *plan, size_t output);
void phema_outputs_remove(struct phema_outputs *outputs, struct phema_plan *plan, size_t output);

/* ---- Provenance of an existing output ---- */

struct phema_provenance_input {
    const char *file; /* label of the snapshot */
    double weight;
    /* values of the snapshot; NaN and NULL where the row has none */
    double time, sigma_rel, gamma;
    const char *spec;      /* of other shapes than power */
    uint64_t update_every; /* 1 where the row has none */
    double reset, origin;  /* 0 where the row has none */
    uint64_t bytes;
    const char *digest;             /* NULL: the version that made it did not identify its inputs */
    bool has_data_sum;              /* all inputs have one, or none */
    struct phema_hash_sum data_sum; /* of all data that were read of the snapshot */
};

struct phema_provenance_rule {
    const char *pattern;
    bool is_copy;
    double sigma_rel, gamma;
    double *weights; /* [n_inputs], NULL for copies */
};

#define PHEMA_N_LABELS 5

struct phema_provenance {
    struct phema_checkpoint *checkpoint; /* the output */
    const char
        *labels[PHEMA_N_LABELS]; /* time, sigma_rel, gamma, profile, unit as they stand beside
                                            the provenance; NULL: absent */
    const char *program, *command, *accumulator;
    double time, sigma_rel, gamma; /* of the target; NaN: absent */
    const char *spec;              /* of the target; NULL: absent */
    const char *unit;              /* of times; NULL: absent */
    const char *verdict, *reason;  /* of the checks of the snapshots; NULL: absent */
    struct phema_provenance_input *inputs;
    size_t n_inputs;
    struct phema_provenance_rule *rules;
    size_t n_rules;
    struct phema_arena memory; /* of all strings and arrays above */
};

/* Opens an output and reads its provenance: from PATH.json where that exists, else from the
 * metadata of the checkpoint. No file that the provenance names is opened.
 * PHEMA_ERR_FILE    the output cannot be read, or its provenance is damaged
 * PHEMA_ERR_INPUTS  the output has no provenance */
PHEMA_FALLIBLE phema_provenance_open(struct phema_provenance **out, const char *path,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err);
/* Whether an output can be read and has a provenance. */
bool phema_provenance_exists(const char *path, const struct phema_checkpoint_options *options);
/* Reads a provenance from its JSON text; checkpoint is NULL. */
PHEMA_FALLIBLE phema_provenance_parse(struct phema_provenance **out, struct phema_span text,
                                      struct phema_error *err);
void phema_provenance_close(struct phema_provenance *provenance); /* takes NULL */

/* The index of the plan's target that the output was made for; SIZE_MAX: no target matches. */
size_t phema_provenance_find_target(const struct phema_provenance *provenance,
                                    const struct phema_plan *plan);

/* Checks that the snapshots that the target may use are those of the provenance: by name, and by
 * size and digest where the provenance has them. The series must have fingerprints.
 * PHEMA_ERR_INPUTS  names the first snapshot that has changed, is missing or was added */
PHEMA_FALLIBLE phema_provenance_check_inputs(const struct phema_provenance *provenance,
                                             const struct phema_plan *plan, size_t target,
                                             struct phema_error *err);

/* Checks that the labels beside the provenance, which other programs read, are those of its target.
 * PHEMA_NO  names the label and both values */
PHEMA_FALLIBLE phema_provenance_check_labels(const struct phema_provenance *provenance,
                                             struct phema_error *err);

/* Checks that unit, times and widths of inputs and rules in the provenance equal those of the plan.
 * The inputs must be those of the plan (phema_provenance_check_inputs).
 * PHEMA_NO  names the row and both values */
PHEMA_FALLIBLE phema_provenance_check_rows(const struct phema_provenance *provenance,
                                           const struct phema_plan *plan, struct phema_error *err);

/* Finds the inputs whose data differ from those that were read for the output; all inputs must have
 * data sums. Returns how many differ.
 *   changed  out: [n_inputs] indices of these inputs
 *   sums     [n_inputs] of the data as they are now */
size_t phema_provenance_find_changed(size_t *changed, const struct phema_provenance *provenance,
                                     const struct phema_hash_sum *sums);

/* Checks that weights and rules equal those of the provenance, to the last bit. The inputs must be
 * those of the plan (phema_provenance_check_inputs).
 * PHEMA_NO  the message names the difference */
PHEMA_FALLIBLE phema_provenance_check_weights(const struct phema_provenance *provenance,
                                              const struct phema_plan *plan, size_t target,
                                              struct phema_error *err);

/* Reduces the plan to one target, with the weights of the provenance.
 * PHEMA_ERR_INPUTS  rules or number of snapshots differ from the plan's */
PHEMA_FALLIBLE phema_provenance_apply(const struct phema_provenance *provenance,
                                      struct phema_plan *plan, size_t target,
                                      struct phema_error *err);

#endif
