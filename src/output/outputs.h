/* outputs.h - outputs while they are planned: paths first, then a layout for their form, with the
 * provenance of each. */
#ifndef OUTPUT_OUTPUTS_H
#define OUTPUT_OUTPUTS_H

#include <string.h>

#include "phema/output.h"
#include "phema/strbuf.h"
#include "phema/tensor_sets.h"

/* Outputs while they are planned. */
struct draft {
    struct phema_outputs *outputs;
    const struct phema_plan *plan;
    const struct phema_outputs_options *options;
    const struct phema_checkpoint *newest; /* opened again: the series kept only tensor locations */
    struct phema_tensor *tensors;          /* [series->n_tensors] as they are written */
    struct phema_arena *arena;             /* that of the outputs */
    struct phema_tensor_set into;          /* the names in --into that are replaced */
};

/* Whether a tensor is a trainer's counter: never converted, and not part of the model. */
static inline bool outputs_is_counter(const struct phema_series_tensor *entry)
{
    return entry->rule == PHEMA_RULE_COPY && strcmp(entry->reason, "bookkeeping") == 0;
}

/* The configuration of a model, beside its tensors. */
#define OUTPUTS_CONFIG "config.json"

/* ---- copy_changes.c: what is replaced in a copy ---- */

struct extent_list {
    struct phema_extent *items; /* [n] the caller's (free) */
    size_t n, capacity;
};

/* The bytes of a tensor in the files of its checkpoint. */
PHEMA_FALLIBLE extents_add(struct extent_list *list, const struct phema_tensor *tensor,
                           struct phema_error *err);
void extents_sort(struct extent_list *list); /* by file and start */

/* The tensor of the template that an average replaces; or NULL. */
const struct phema_tensor *template_find(const struct phema_checkpoint *template,
                                         const struct phema_tensor_set *set,
                                         const struct phema_tensor *tensor);
/* Sets into, into_key and into_names: by --key, or by the names of the tensors.
 * PHEMA_ERR_INPUTS  the template is not of this model
 * PHEMA_ERR_USAGE   it holds several averages, and --key chooses none */
PHEMA_FALLIBLE template_find_set(struct draft *draft, const struct phema_checkpoint *template,
                                 struct phema_error *err);

/* ---- output_paths.c ---- */

/* Form and paths of all outputs.
 * PHEMA_ERR_USAGE  OUT does not fit the targets, or its extension does not fit the snapshots */
PHEMA_FALLIBLE outputs_set_paths(struct draft *draft, struct phema_error *err);

/* The checks of the name of OUT alone.
 *   is_copy  out: a copy of the newest snapshot would be written */
PHEMA_FALLIBLE outputs_check_name(bool *is_copy, struct draft *draft, struct phema_error *err);

/* The end of a path from the last dot of its name on; NULL: the name has none. */
const char *outputs_extension(const char *path);

/* Suggests OUT with the extension .safetensors, and returns the status. */
enum phema_status outputs_fail_name(struct phema_error *err, enum phema_status status,
                                    const char *out);

/* ---- layout_safetensors.c, layout_sharded.c, layout_copy.c, layout_distributed.c ---- */

/* Files, places and sizes. */
PHEMA_FALLIBLE outputs_lay_out_safetensors(struct draft *draft, struct phema_error *err);
PHEMA_FALLIBLE outputs_lay_out_sharded(struct draft *draft, struct phema_error *err);
PHEMA_FALLIBLE outputs_lay_out_copies(struct draft *draft, struct phema_error *err);
PHEMA_FALLIBLE outputs_lay_out_distributed(struct draft *draft, struct phema_error *err);

/* Files of a copy of a directory, and whether its tensors may be replaced
 * (layout_copy_directory.c); locations, dtypes and is_replaced are known.
 * PHEMA_ERR_INPUTS  a replaced tensor shares bytes with another one, or is stored with strides
 * PHEMA_ERR_USAGE   the directory holds other things than files and folders */
PHEMA_FALLIBLE outputs_check_directory_copy(const struct draft *draft,
                                            const struct phema_checkpoint *template,
                                            struct phema_error *err);
PHEMA_FALLIBLE outputs_add_directory_copy(struct draft *draft, size_t output,
                                          struct phema_error *err);
PHEMA_FALLIBLE outputs_add_directory_files(struct draft *draft,
                                           const struct phema_checkpoint *template,
                                           struct phema_error *err);

/* Fills file f of an output with the provenance (layout_distributed.c). */
PHEMA_FALLIBLE outputs_add_provenance(struct draft *draft, struct phema_output *output, size_t f,
                                      struct phema_error *err);

/* Sorts the side files by name: directories have no order (layout_sharded.c). */
void outputs_sort_side_files(struct phema_outputs *outputs);

/* Adds a file without tensors (layout_sharded.c). Owns source and text, of which one is NULL, in
 * any case. */
PHEMA_FALLIBLE outputs_add_side_file(struct draft *draft, const char *name, char *source,
                                     const struct phema_strbuf *text, bool is_last,
                                     struct phema_error *err);

/* Whether the newest snapshot can be copied to a file of this name (layout_copy.c). */
PHEMA_FALLIBLE outputs_check_copy(const struct phema_checkpoint *newest,
                                  const struct phema_outputs_options *options,
                                  struct phema_error *err);

/* Adds a safetensors file with n of the tensors to an output, and fills their locations
 * (layout_safetensors.c).
 *   target  whose provenance the file carries, or SIZE_MAX
 *   name    NULL: the file is the output
 *   index   [n] of the tensors in the file */
PHEMA_FALLIBLE outputs_add_file(struct draft *draft, struct phema_output *output, size_t target,
                                const char *name, const size_t *index, size_t n,
                                struct phema_error *err);

/* Finds the digests of the snapshots' data, which are zeros so far, in a text that carries the
 * provenance of a target; fills digest_offsets (layout_safetensors.c). Without hashes_inputs there
 * are no digests. */
PHEMA_FALLIBLE outputs_find_digests(const struct draft *draft, struct phema_output *output,
                                    size_t target, const char *text, size_t size,
                                    struct phema_error *err);

/* ---- provenance_write.c ---- */

/* Key of the digest of a snapshot's data, and its placeholder until all data are read. */
#define PROVENANCE_DATA_DIGEST "data_xxh3"
#define PROVENANCE_NO_DIGEST   "00000000000000000000000000000000"

struct provenance_metadata {
    struct phema_metadata items[8];
    size_t n;
    struct phema_strbuf text; /* holds the value of posthoc_ema.provenance */
    struct phema_name_buffer numbers[3];
};

/* How an output was made, as metadata inside it: keys posthoc_ema.time, .sigma_rel and .gamma, or
 * .profile of other shapes, .unit, and .provenance: one JSON object with inputs, weights, target,
 * errors, version and the command that makes this output alone. Nothing in it depends on threads,
 * other targets of the run, time or machine. The digests of the snapshots' data are zeros here. */
PHEMA_FALLIBLE provenance_write(struct provenance_metadata *out, const struct draft *draft,
                                size_t target, struct phema_error *err);
/* The same as the text of a file. Starts as {0}; on failure the caller's too. */
PHEMA_FALLIBLE provenance_write_file(struct phema_strbuf *text, const struct draft *draft,
                                     size_t target, struct phema_error *err);
void provenance_clear(struct provenance_metadata *provenance);

#endif
