// SPDX-License-Identifier: Apache-2.0
/* outputs.c - Paths, files and tensor places of every output, before any data is read. All of it
 * follows from the plan: the same plan gives the same bytes. */
#include "outputs.h"

#include <stdlib.h>
#include <string.h>

#include "phema/filesystem.h"

enum phema_dtype phema_output_dtype(const struct phema_series_tensor *entry,
                                    const struct phema_outputs *outputs,
                                    const struct phema_outputs_options *options)
{
    if (!phema_dtype_is_float(entry->tensor.dtype) || outputs_is_counter(entry) ||
        entry->tensor.kind == PHEMA_KIND_ACTIVATION_SCALE || entry->tensor.kind == PHEMA_KIND_SCALE)
        return entry->tensor.dtype;
    if (options->has_dtype)
        return options->dtype;
    if (!entry->tensor.scaling)
        return entry->tensor.dtype;
    return outputs->has_new_scales ? entry->tensor.scaling->codes : PHEMA_BF16;
}

/* fp8 tensors with scales are averaged as numbers. They are written without scales, or as codes
 * with new scales. */
static enum phema_status check_scaled(const struct draft *draft,
                                      const struct phema_series_tensor *entry,
                                      struct phema_error *err)
{
    const struct phema_output_traits *form = phema_output_traits(draft->outputs);
    bool has_config = form->is_copy || draft->outputs->form == PHEMA_FORM_SHARDED;
    if (!entry->tensor.scaling)
        return PHEMA_OK;
    const char *dtype = phema_setting_equals(PHEMA_SET_DTYPE);
    enum phema_status status = PHEMA_OK;
    if (!draft->options->keeps_dtypes) {
        if (form->is_copy && !draft->options->into)
            status = phema_fail(err, PHEMA_ERR_USAGE,
                                "is fp8 with a scale, and a copy keeps its dtypes; give %ssame, "
                                "which makes new scales, or end OUT in .safetensors",
                                dtype);
    } else if (entry->scale == SIZE_MAX) {
        status = phema_fail(err, PHEMA_ERR_USAGE,
                            "is fp8 with a scale, and its scale takes no part, which %ssame writes "
                            "anew; give %sbf16",
                            dtype, dtype);
    } else if (!has_config && !phema_scaling_is_evident(entry->tensor.scaling)) {
        status = phema_fail(err, PHEMA_ERR_USAGE,
                            "is fp8 with a scale, whose blocks have a size that only config.json "
                            "says, and OUT would lack it; write a directory, or give %sbf16",
                            dtype);
    }
    const struct phema_tensor *tensor = &entry->tensor;
    struct phema_name_buffer shown;
    return status ? phema_fail_in(err, status, "%s: tensor '%s'", draft->plan->series->root,
                                  phema_name_escape(&shown, tensor->name, tensor->name_size))
                  : PHEMA_OK;
}

static enum phema_status set_tensors(struct draft *draft, struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    struct phema_outputs *outputs = draft->outputs;
    size_t n = series->n_tensors + 1;
    outputs->dtypes = phema_arena_array(draft->arena, n, sizeof(*outputs->dtypes));
    outputs->locations = phema_arena_array(draft->arena, n, sizeof(*outputs->locations));
    draft->tensors = calloc(series->n_tensors + 1, sizeof(*draft->tensors));
    if (!outputs->dtypes || !outputs->locations || !draft->tensors)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors; i++) {
        struct phema_tensor *tensor = &draft->tensors[i];
        *tensor = series->tensors[i].tensor;
        tensor->scaling = NULL;
        tensor->dtype = outputs->dtypes[i] =
            phema_output_dtype(&series->tensors[i], outputs, draft->options);
        tensor->size_bytes = phema_dtype_bytes(tensor->dtype, tensor->n_elems);
    }
    return PHEMA_OK;
}

static enum phema_status fill_outputs(struct draft *draft, struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    enum phema_status status = outputs_set_paths(draft, err);
    for (size_t i = 0; i < series->n_tensors && !status; i++)
        status = check_scaled(draft, &series->tensors[i], err);
    draft->outputs->has_new_scales =
        draft->options->keeps_dtypes && phema_series_n_scaled(series) > 0;
    if (!status)
        status = set_tensors(draft, err);
    if (status)
        return status;
    const struct phema_output_traits *form = phema_output_traits(draft->outputs);
    if (draft->outputs->form == PHEMA_FORM_DISTRIBUTED)
        return outputs_lay_out_distributed(draft, err);
    if (form->is_copy)
        return outputs_lay_out_copies(draft, err);
    return form->is_directory ? outputs_lay_out_sharded(draft, err)
                              : outputs_lay_out_safetensors(draft, err);
}

PHEMA_FALLIBLE phema_outputs_check_form(const struct phema_outputs_options *options,
                                        const struct phema_series *series, size_t n,
                                        struct phema_error *err)
{
    const struct phema_snapshot *last = &series->snapshots[series->n - 1];
    struct phema_checkpoint *newest = NULL;
    if (!n || !last->path)
        return PHEMA_OK; /* only phema_outputs_make knows */
    enum phema_status status =
        phema_checkpoint_open(&newest, last->path, &options->checkpoint, err);
    if (status)
        return status;
    struct phema_series seen = *series;
    const struct phema_plan plan = {.series = &seen, .m = n};
    struct phema_outputs outputs = {.m = n};
    struct draft draft = {.outputs = &outputs, .plan = &plan, .options = options, .newest = newest};
    bool is_copy = false;
    status = outputs_check_name(&is_copy, &draft, err);
    if (!status && is_copy)
        status = outputs_check_copy(newest, options, err);
    phema_checkpoint_close(newest);
    return status;
}

PHEMA_FALLIBLE phema_outputs_make(struct phema_outputs *out, const struct phema_plan *plan,
                                  const struct phema_outputs_options *options,
                                  struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct phema_outputs outputs = {.m = plan->m,
                                    .level = options->level ? options->level : PHEMA_DEFAULT_LEVEL};
    outputs.items = phema_arena_array(&outputs.memory, plan->m, sizeof(*outputs.items));
    if (!outputs.items)
        return phema_fail_memory(err);
    struct phema_outputs_options used = *options;
    used.hashes_inputs = options->hashes_inputs && !options->is_conversion &&
                         plan->n_rules + 2 <= PHEMA_MAX_DIGESTS / series->n;
    struct phema_checkpoint_options opening = options->checkpoint;
    opening.alike = series->snapshots[0].checkpoint; /* its tensors are listed in the series */
    struct phema_checkpoint *newest = NULL;
    enum phema_status status =
        phema_checkpoint_open(&newest, series->snapshots[series->n - 1].path, &opening, err);
    struct draft draft = {.outputs = &outputs,
                          .plan = plan,
                          .options = &used,
                          .newest = newest,
                          .arena = &outputs.memory};
    if (!status)
        status = fill_outputs(&draft, err);
    phema_checkpoint_close(newest);
    free(draft.tensors);
    if (status) {
        phema_outputs_clear(&outputs);
        return status;
    }
    *out = outputs;
    return PHEMA_OK;
}

static void clear_output(struct phema_output *output)
{
    for (size_t f = 0; f < output->n_files; f++) {
        free(output->files[f].name);
        free(output->files[f].header);
    }
    free(output->files);
    free(output->sidecar);
    free(output->digest_offsets);
    free(output->path);
}

void phema_outputs_remove(struct phema_outputs *outputs, struct phema_plan *plan, size_t output)
{
    clear_output(&outputs->items[output]);
    size_t n_after = outputs->m + outputs->n_kept - output - 1;
    memmove(&outputs->items[output], &outputs->items[output + 1],
            n_after * sizeof(*outputs->items));
    memmove(&plan->targets[output], &plan->targets[output + 1], n_after * sizeof(*plan->targets));
    outputs->m--;
    plan->m--;
}

void phema_outputs_keep(struct phema_outputs *outputs, struct phema_plan *plan, size_t output)
{
    struct phema_output kept = outputs->items[output];
    struct phema_target target = plan->targets[output];
    size_t last = outputs->m + outputs->n_kept - 1;
    kept.place = output + outputs->n_kept;
    outputs->items[output] = (struct phema_output){.path = NULL};
    phema_outputs_remove(outputs, plan, output);
    outputs->items[last] = kept;
    plan->targets[last] = target;
    outputs->n_kept++;
}

PHEMA_FALLIBLE phema_outputs_check_space(const struct phema_outputs *outputs,
                                         struct phema_error *err)
{
    uint64_t needed = 0, free_bytes = 0;
    struct phema_name_buffer size, left;
    for (size_t j = 0; j < outputs->m; j++)
        needed += outputs->items[j].size_bytes;
    if (!needed || !phema_filesystem_free(&free_bytes, outputs->items[0].path) ||
        needed <= free_bytes)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: %s%s needed, and %s free on its filesystem",
                      outputs->items[0].path, phema_size_format(&size, needed),
                      outputs->m > 1 ? " for all outputs are" : " are",
                      phema_size_format(&left, free_bytes));
}

void phema_outputs_clear(struct phema_outputs *outputs)
{
    for (size_t j = 0; j < outputs->m + outputs->n_kept; j++)
        clear_output(&outputs->items[j]);
    for (size_t f = 0; f < outputs->n_side_files; f++) {
        free(outputs->side_files[f].name);
        free(outputs->side_files[f].source);
        free(outputs->side_files[f].text);
    }
    free(outputs->side_files);
    free(outputs->pieces);
    for (size_t t = 0; t < outputs->n_templates; t++)
        phema_checkpoint_close(outputs->templates[t]);
    phema_arena_clear(&outputs->memory);
    *outputs = (struct phema_outputs){0};
}
