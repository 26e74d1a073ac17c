/* outputs.h - private to the files that make outputs: names, then a layout for the form they have.
 */
#ifndef OUTPUT_OUTPUTS_H
#define OUTPUT_OUTPUTS_H

#include "phema/output.h"
#include "phema/strbuf.h"

/* Outputs while they are made. */
struct draft {
    struct phema_outputs *outputs;
    const struct phema_plan *plan;
    const struct phema_outputs_options *options;
    const struct phema_checkpoint *newest; /* opened again, for what was forgotten of it */
    struct phema_tensor *tensors;          /* [series->n_tensors] as they are written */
    struct phema_arena *arena;             /* that of the outputs */
};

/* Whether a tensor is a counter of trainers: never converted, and none of the model's. */
bool outputs_is_counter(const struct phema_series_tensor *entry);

/* Form and paths of all outputs (output_names.c).
 * PHEMA_ERR_USAGE  OUT does not fit the targets, or what it ends in does not fit the snapshots */
PHEMA_FALLIBLE outputs_name(struct draft *draft, struct phema_error *err);

/* Files, places and sizes (layout_fresh.c, layout_shards.c, layout_template.c). */
PHEMA_FALLIBLE outputs_lay_out_fresh(struct draft *draft, struct phema_error *err);
PHEMA_FALLIBLE outputs_lay_out_shards(struct draft *draft, struct phema_error *err);
PHEMA_FALLIBLE outputs_lay_out_templates(struct draft *draft, struct phema_error *err);

/* A file of an output that holds n of the tensors; fills their places.
 *   index     [n] of the tensors that go into the file
 *   target    whose provenance it carries, or SIZE_MAX */
PHEMA_FALLIBLE outputs_add_file(struct draft *draft, struct phema_output *output, size_t target,
                                const char *name, const size_t *index, size_t n,
                                struct phema_error *err);

/* Where in a text that carries the provenance of a target the digests of the snapshots' data go,
 * if there are any (digests_at.c). */
PHEMA_FALLIBLE outputs_find_digests(const struct draft *draft, struct phema_output *output,
                                    size_t target, const char *text, size_t size,
                                    struct phema_error *err);

/* Whether tensors may be replaced at these places of a copy of the template (template_checks.c).
 * PHEMA_ERR_INPUTS  one of them shares bytes with a tensor that stays, or with another one that not
 *                   all snapshots share alike */
PHEMA_FALLIBLE template_check(const struct draft *draft, const struct phema_checkpoint *template,
                              const struct phema_tensor_location *places, uint64_t shift,
                              struct phema_error *err);

#endif
