/* output.h - the outputs of a plan: form, files, place of every tensor, and provenance. */
#ifndef PHEMA_OUTPUT_H
#define PHEMA_OUTPUT_H

#include "phema/plan.h"

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
    const struct phema_tensor_location *places;
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
    enum phema_dtype *dtypes;             /* [series->n_tensors] as written */
    struct phema_tensor_location *places; /* [series->n_tensors] the same in every output, unless
                                   templates differ */
    struct phema_side_file *side_files;   /* [n_side_files] of every sharded output */
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

struct phema_provenance_input {
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

struct phema_provenance_rule {
    const char *pattern;
    bool is_copy;
    double sigma_rel, gamma;
    double *weights; /* [n_inputs], NULL for copies */
};

struct phema_provenance {
    struct phema_checkpoint *checkpoint; /* the output */
    const char *program, *command, *accumulator;
    double time, sigma_rel, gamma; /* of the target, NaN where there is none */
    const char *spec;              /* likewise NULL */
    struct phema_provenance_input *inputs;
    size_t n_inputs;
    struct phema_provenance_rule *rules;
    size_t n_rules;
    struct phema_arena memory; /* all of it */
};

/* Opens an output and reads its provenance, from PATH.json where that is there, else from its
 * metadata. Nothing that it names is opened.
 * PHEMA_ERR_FILE    it cannot be read, or the provenance is damaged
 * PHEMA_ERR_INPUTS  it has none */
PHEMA_FALLIBLE phema_provenance_open(struct phema_provenance **out, const char *path,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err);
/* Of the provenance alone: checkpoint is NULL. */
PHEMA_FALLIBLE phema_provenance_parse(struct phema_provenance **out, struct phema_span text,
                                      struct phema_error *err);
void phema_provenance_close(struct phema_provenance *recorded); /* takes NULL */

/* The target of the plan that it was made for; SIZE_MAX when there is none. */
size_t phema_provenance_target(const struct phema_provenance *recorded,
                               const struct phema_plan *plan);

/* Whether the snapshots that the target may use, whose series is identified, are those of the
 * record: else PHEMA_ERR_INPUTS names the first that has changed, is missing or was added. Where
 * the record does not identify them, by their names. */
PHEMA_FALLIBLE phema_provenance_check_inputs(const struct phema_provenance *recorded,
                                             const struct phema_plan *plan, size_t target,
                                             struct phema_error *err);

/* Whether the rows of the inputs, which are those of the plan, and of the rules say what the series
 * says of times and widths: else PHEMA_NO names the row and both values. */
PHEMA_FALLIBLE phema_provenance_check_rows(const struct phema_provenance *recorded,
                                           const struct phema_plan *plan, struct phema_error *err);

/* The inputs whose data are not those that were read for the output, by these sums.
 *   changed  out: [n_inputs] their indices
 *   sums     [n_inputs], which identify all of them */
size_t phema_provenance_changed(size_t *changed, const struct phema_provenance *recorded,
                                const struct phema_hash_sum *sums);

/* Whether weights and rules are those of the record, to the last bit: else PHEMA_NO says what is
 * not. The inputs are. */
PHEMA_FALLIBLE phema_provenance_check_weights(const struct phema_provenance *recorded,
                                              const struct phema_plan *plan, size_t target,
                                              struct phema_error *err);

/* The plan becomes what was recorded: one target with those weights. Its rules are those recorded,
 * and so are its inputs. PHEMA_ERR_INPUTS the rules are others */
PHEMA_FALLIBLE phema_provenance_apply(const struct phema_provenance *recorded,
                                      struct phema_plan *plan, size_t target,
                                      struct phema_error *err);

#endif
