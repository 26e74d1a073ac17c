/* outputs.h - outputs while they are planned: paths first, then a layout for their form. */
#ifndef OUTPUT_OUTPUTS_H
#define OUTPUT_OUTPUTS_H

#include "phema/output.h"
#include "phema/strbuf.h"

/* Outputs while they are planned. */
struct draft {
    struct phema_outputs *outputs;
    const struct phema_plan *plan;
    const struct phema_outputs_options *options;
    const struct phema_checkpoint *newest; /* opened again: the series kept only tensor locations */
    struct phema_tensor *tensors;          /* [series->n_tensors] as they are written */
    struct phema_arena *arena;             /* that of the outputs */
};

/* Whether a tensor is a trainer's counter: never converted, and not part of the model
 * (layout_copy.c). */
bool outputs_is_counter(const struct phema_series_tensor *entry);

/* Form and paths of all outputs (output_paths.c).
 * PHEMA_ERR_USAGE  OUT does not fit the targets, or its extension does not fit the snapshots */
PHEMA_FALLIBLE outputs_set_paths(struct draft *draft, struct phema_error *err);

/* Files, places and sizes (layout_safetensors.c, layout_sharded.c, layout_copy.c). */
PHEMA_FALLIBLE outputs_lay_out_safetensors(struct draft *draft, struct phema_error *err);
PHEMA_FALLIBLE outputs_lay_out_sharded(struct draft *draft, struct phema_error *err);
PHEMA_FALLIBLE outputs_lay_out_copies(struct draft *draft, struct phema_error *err);

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

/* Whether tensors may be replaced at these places of a copy of the template (copy_checks.c).
 * PHEMA_ERR_INPUTS  a replaced tensor shares bytes with a tensor that stays, or with another
 *                   replaced one that not all snapshots share alike */
PHEMA_FALLIBLE copy_check_locations(const struct draft *draft,
                                    const struct phema_checkpoint *template,
                                    const struct phema_tensor_location *locations, uint64_t shift,
                                    struct phema_error *err);

#endif
