// SPDX-License-Identifier: Apache-2.0
/* layout_copy.c - A copy of a checkpoint with tensors replaced. Dtypes and shapes stay, and so does
 * every place in the file. A copy that would change other tensors is refused: those that share
 * storage with a replaced one, and expanded tensors, whose rows are one row in the file. */
#include <stdlib.h>
#include <string.h>

#include "outputs.h"
#include "phema/setting.h"

/* ---- Names of OUT ---- */

static enum phema_status check_name(const char *out, const struct phema_checkpoint *template,
                                    const struct phema_outputs_options *options,
                                    struct phema_error *err)
{
    const struct phema_format_info *format = phema_checkpoint_format_info(template);
    const char *path = phema_file_path(phema_checkpoint_file(template, 0));
    const char *own = outputs_extension(path);
    if ((own && phema_ends_with(out, own)) ||
        phema_format_has_extension(format, out, PHEMA_NAMES_OUTPUT))
        return PHEMA_OK;
    enum phema_status status = phema_fail(
        err, PHEMA_ERR_USAGE, "%s: would be a copy of %s, which is of format %s; end OUT in %s",
        out, path, format->name,
        options->into ? "the extension of that file"
        : own         ? own
                      : phema_format_extension("safetensors"));
    return options->into ? status : outputs_fail_name(err, status, out);
}

static enum phema_status check_format(const struct phema_checkpoint *template,
                                      const struct phema_outputs_options *options,
                                      struct phema_error *err)
{
    const struct phema_format_info *format = phema_checkpoint_format_info(template);
    if (format->can_be_template && (options->into || format->output == PHEMA_OUTPUT_COPY))
        return PHEMA_OK;
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE,
                   "%s: format %s cannot be written as a copy with other tensors; end OUT in "
                   ".safetensors, or %s %s%s",
                   phema_checkpoint_path(template), format->name,
                   options->into ? "give" : "name a checkpoint to copy with",
                   phema_setting_name(PHEMA_SET_INTO),
                   options->into ? " a PyTorch, pickle or safetensors file" : "");
    return options->into ? phema_suggest(err, status, PHEMA_SET_INTO, "")
                         : outputs_fail_name(err, status, options->out);
}

PHEMA_FALLIBLE outputs_check_copy(const struct phema_checkpoint *newest,
                                  const struct phema_outputs_options *options,
                                  struct phema_error *err)
{
    enum phema_status status = check_format(newest, options, err);
    return status ? status : check_name(options->out, newest, options, err);
}

/* ---- Tensors that a copy would change ---- */

static bool same_view(const struct phema_tensor *a, const struct phema_tensor *b)
{
    if (a->offset != b->offset || a->dtype != b->dtype || a->rank != b->rank ||
        !a->stride != !b->stride)
        return false;
    for (unsigned d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d] || (a->stride && a->stride[d] != b->stride[d]))
            return false;
    return true;
}

/* The tensors that are replaced in a copy. */
struct replacement {
    const struct draft *draft;
    const struct phema_checkpoint *template;
    struct replaced {
        struct phema_tensor tensor; /* as it lies in the template */
        size_t index;               /* in the series */
    } * items;                      /* [n] by offset */
    size_t n;
    bool *is_replaced; /* [n of the template's tensors] other names of a replaced tensor as well */
};

static int by_offset(const void *a, const void *b)
{
    const struct replaced *left = a, *right = b;
    if (left->tensor.offset != right->tensor.offset)
        return left->tensor.offset < right->tensor.offset ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static void mark_replaced(struct replacement *replacement)
{
    const struct phema_checkpoint *template = replacement->template;
    const struct replaced *items = replacement->items;
    const struct phema_tensor *listed = phema_checkpoint_tensors(template);
    for (size_t t = 0; t < phema_checkpoint_n_tensors(template); t++) {
        size_t low = 0, high = replacement->n; /* the first at this offset or later */
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (items[middle].tensor.offset < listed[t].offset)
                low = middle + 1;
            else
                high = middle;
        }
        bool *is_replaced = &replacement->is_replaced[t];
        for (; low < replacement->n && items[low].tensor.offset == listed[t].offset; low++)
            *is_replaced = *is_replaced || same_view(&items[low].tensor, &listed[t]);
    }
}

static enum phema_status fail_overlap(const struct phema_checkpoint *template, const size_t pair[2],
                                      bool is_kept, struct phema_error *err)
{
    const struct phema_tensor *a = &phema_checkpoint_tensors(template)[pair[0]];
    const struct phema_tensor *b = &phema_checkpoint_tensors(template)[pair[1]];
    struct phema_name_buffer first, second;
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: tensor '%s': shares storage with '%s', %s; write .safetensors instead",
        phema_checkpoint_path(template), phema_name_escape(&first, a->name, a->name_size),
        phema_name_escape(&second, b->name, b->name_size),
        is_kept ? "which is not replaced" : "and the snapshots do not all share it alike");
}

/* Whether all snapshots have the same overlaps: overlapping views then get the same averages. The
 * exception are elements of a block that is equal in all snapshots: one view copies them, the other
 * sums them. */
static bool are_alike(const struct replacement *replacement)
{
    const struct phema_series *series = replacement->draft->plan->series;
    const struct replaced *items = replacement->items;
    for (size_t k = 0; k < series->n; k++)
        for (size_t x = 0; x < replacement->n; x++) {
            const struct phema_tensor here = phema_series_tensor_in(series, k, items[x].index);
            const struct phema_tensor first = phema_series_tensor_in(series, k, items[0].index);
            struct phema_tensor moved = items[x].tensor;
            moved.offset += first.offset - items[0].tensor.offset; /* may wrap around, and back */
            moved.dtype = here.dtype;
            if (here.chunks || !same_view(&here, &moved))
                return false;
        }
    return true;
}

static enum phema_status check_overlaps(const struct replacement *replacement,
                                        struct phema_error *err)
{
    const struct phema_checkpoint *template = replacement->template;
    const struct phema_tensor *listed = phema_checkpoint_tensors(template);
    size_t n_listed = phema_checkpoint_n_tensors(template), pair[2] = {0, 0};
    bool found = false;
    enum phema_status status = phema_find_overlap(pair, &found, PHEMA_OVERLAP_KEPT, listed,
                                                  replacement->is_replaced, n_listed, err);
    if (status)
        return status;
    if (found)
        return fail_overlap(template, pair, true, err);
    status = phema_find_overlap(pair, &found, PHEMA_OVERLAP_REPLACED, listed,
                                replacement->is_replaced, n_listed, err);
    if (status || !found)
        return status;
    replacement->draft->outputs->is_in_order = true;
    return are_alike(replacement) ? PHEMA_OK : fail_overlap(template, pair, false, err);
}

/* Of several names of one tensor, one is written. Of tensors that share a place in the template
 * alone, the last one written stays. */
static void leave_out_repeated(const struct replacement *replacement)
{
    const struct phema_series_tensor *tensors = replacement->draft->plan->series->tensors;
    struct phema_outputs *outputs = replacement->draft->outputs;
    for (size_t x = 1; x < replacement->n; x++) {
        const struct replaced *before = &replacement->items[x - 1], *item = &replacement->items[x];
        if (!same_view(&before->tensor, &item->tensor))
            continue;
        if (tensors[before->index].same_as == tensors[item->index].same_as)
            outputs->is_replaced[item->index] = false;
        else
            outputs->is_in_order = true;
    }
}

/* A tensor that is expanded in the template must be expanded in every snapshot. */
static enum phema_status check_expanded(const struct replacement *replacement,
                                        const struct replaced *item, struct phema_error *err)
{
    const struct phema_series *series = replacement->draft->plan->series;
    const struct phema_tensor *tensor = &item->tensor;
    for (unsigned d = 0; tensor->stride && d < tensor->rank; d++) {
        if (tensor->stride[d] != 0 || tensor->shape[d] <= 1)
            continue;
        replacement->draft->outputs->is_in_order = true;
        for (size_t k = 0; k < series->n; k++) {
            const uint64_t *stride = series->snapshots[k].locations[item->index].stride;
            struct phema_name_buffer shown;
            if (!stride || stride[d] != 0)
                return phema_fail(
                    err, PHEMA_ERR_INPUTS,
                    "%s: tensor '%s': is expanded (its rows are one row in the file), but not in "
                    "%s; write .safetensors instead",
                    phema_checkpoint_path(replacement->template),
                    phema_name_escape(&shown, tensor->name, tensor->name_size),
                    series->snapshots[k].label);
        }
    }
    return PHEMA_OK;
}

static enum phema_status check_replacement(struct replacement *replacement,
                                           const struct phema_tensor_location *locations,
                                           uint64_t shift, struct phema_error *err)
{
    const struct phema_series *series = replacement->draft->plan->series;
    const struct phema_outputs *outputs = replacement->draft->outputs;
    for (size_t i = 0; i < series->n_tensors; i++) {
        if (!outputs->is_replaced[i])
            continue;
        struct replaced *item = &replacement->items[replacement->n++];
        *item = (struct replaced){series->tensors[i].tensor, i};
        item->tensor.dtype = outputs->dtypes[i];
        item->tensor.offset = locations[i].offset + shift;
        item->tensor.stride = locations[i].stride;
        item->tensor.file = locations[i].file;
        enum phema_status status = check_expanded(replacement, item, err);
        if (status)
            return status;
    }
    qsort(replacement->items, replacement->n, sizeof(*replacement->items), by_offset);
    mark_replaced(replacement);
    leave_out_repeated(replacement);
    return check_overlaps(replacement, err);
}

/* Whether tensors may be replaced at these places of a copy of the template.
 * PHEMA_ERR_INPUTS  a replaced tensor shares bytes with a tensor that stays, or with another
 *                   replaced one that not all snapshots share alike */
static enum phema_status check_copy(const struct draft *draft,
                                    const struct phema_checkpoint *template,
                                    const struct phema_tensor_location *locations, uint64_t shift,
                                    struct phema_error *err)
{
    struct replacement replacement = {.draft = draft, .template = template};
    replacement.items = calloc(draft->plan->series->n_tensors + 1, sizeof(*replacement.items));
    replacement.is_replaced = calloc(phema_checkpoint_n_tensors(template) + 1, sizeof(bool));
    enum phema_status status = replacement.items && replacement.is_replaced
                                   ? check_replacement(&replacement, locations, shift, err)
                                   : phema_fail_memory(err);
    free(replacement.items);
    free(replacement.is_replaced);
    return status;
}

/* ---- The newest snapshot as the template ---- */

static enum phema_status open_template(struct phema_checkpoint **out, struct draft *draft,
                                       const char *path, struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    enum phema_status status = phema_claims_add_input(draft->plan->series->claims, path,
                                                      "the checkpoint that is copied", err);
    if (status)
        return status;
    status = phema_checkpoint_open(out, path, &draft->options->checkpoint, err);
    if (status && draft->options->into)
        return phema_error_set_about(err, status, phema_setting_option(PHEMA_SET_INTO));
    if (status)
        return status;
    outputs->templates[outputs->n_templates++] = *out;
    for (size_t f = 0; f < phema_checkpoint_n_files(*out); f++)
        if (phema_checkpoint_shares_file(*out, f))
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "%s: its frozen tensors are in '%s', so a copy would not be whole; "
                              "end OUT in .safetensors without %s",
                              path, phema_checkpoint_file_label(*out, f),
                              phema_setting_name(PHEMA_SET_INTO));
    return check_format(*out, draft->options, err);
}

/* The snapshot whose place an average takes: of several in the newest file the only average. Raw
 * parameters beside it stay. SIZE_MAX: there are several averages, or none. */
static size_t find_place(const struct phema_series *series, size_t newest)
{
    const struct phema_snapshot *snapshots = series->snapshots;
    size_t found = SIZE_MAX, n = 0;
    if (!snapshots[newest].key)
        return newest;
    for (size_t k = 0; k < series->n; k++) {
        bool is_raw = snapshots[k].kind && strcmp(snapshots[k].kind, "raw") == 0;
        if (is_raw || strcmp(snapshots[k].path, snapshots[newest].path) != 0)
            continue;
        found = k;
        n++;
    }
    return n == 1 ? found : SIZE_MAX;
}

static enum phema_status use_newest(struct draft *draft, size_t j, struct phema_error *err)
{
    const struct phema_plan *plan = draft->plan;
    size_t newest = plan->targets[j].newest, k = find_place(plan->series, newest);
    const struct phema_snapshot *snapshot = &plan->series->snapshots[k < SIZE_MAX ? k : newest];
    struct phema_output *output = &draft->outputs->items[j];
    output->locations = snapshot->locations;
    output->shift = snapshot->shift;
    for (size_t i = 0; i < j; i++)
        if (plan->targets[i].newest == newest) {
            output->template = draft->outputs->items[i].template;
            return PHEMA_OK;
        }
    if (k == SIZE_MAX)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "%s: holds %s, and which of them to replace is not clear; "
                          "end OUT in .safetensors, or name a checkpoint to copy with %s",
                          snapshot->path,
                          phema_series_is_raw(plan->series) ? "averages beside raw parameters"
                                                            : "several averages",
                          phema_setting_name(PHEMA_SET_INTO));
    struct phema_checkpoint *template = NULL;
    enum phema_status status = open_template(&template, draft, snapshot->path, err);
    if (status)
        return status;
    output->template = template;
    for (size_t i = 0; i < plan->series->n_tensors; i++) /* sums with a wider set are wider */
        if (snapshot->locations[i].is_widened)
            draft->outputs->dtypes[i] = snapshot->locations[i].stored_dtype;
    status = check_name(output->path, template, draft->options, err);
    return status ? status : check_copy(draft, template, snapshot->locations, snapshot->shift, err);
}

/* ---- Any checkpoint of the model as the template ---- */

static bool may_hold(enum phema_dtype dtype, enum phema_dtype average)
{
    bool is_wide =
        dtype == PHEMA_F64 || dtype == PHEMA_F32 || dtype == PHEMA_F16 || dtype == PHEMA_BF16;
    return dtype == average || (is_wide && phema_dtype_is_float(average));
}

static bool has_same_blocks(const struct phema_scaling *a, const struct phema_scaling *b)
{
    return a && a->codes == b->codes && a->dtype == b->dtype && a->block_rows == b->block_rows &&
           a->block_columns == b->block_columns;
}

static enum phema_status locate_into(struct draft *draft, const struct phema_checkpoint *template,
                                     size_t i, struct phema_error *err)
{
    const struct phema_series_tensor *entry = &draft->plan->series->tensors[i];
    const struct phema_tensor *tensor = &entry->tensor;
    struct phema_tensor_location *location = &draft->outputs->locations[i];
    const struct phema_tensor *found = template_find(template, &draft->into, tensor);
    bool has_codes = tensor->scaling && draft->outputs->has_new_scales;
    bool fits = found && found->rank == tensor->rank &&
                (has_codes ? has_same_blocks(found->scaling, tensor->scaling)
                           : !found->scaling && may_hold(found->dtype, tensor->dtype));
    for (unsigned d = 0; fits && d < tensor->rank; d++)
        fits = found->shape[d] == tensor->shape[d];
    /* FILE keeps its own counters where they are missing, or were cast to float */
    bool is_kept = !found || (!fits && outputs_is_counter(entry));
    draft->outputs->is_replaced[i] = !is_kept && tensor->n_elems > 0;
    if (is_kept)
        return PHEMA_OK;
    size_t first = entry->same_as;
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, found->name, found->name_size);
    if (!fits && found->scaling && !has_codes)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: tensor '%s': has another shape, or a dtype that cannot hold the "
                          "average; fp8 with a scale is written by %ssame, to fp8 snapshots",
                          phema_checkpoint_path(template), shown.text,
                          phema_setting_equals(PHEMA_SET_DTYPE));
    if (!fits)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: tensor '%s': has another shape, or a dtype that cannot hold the "
                          "average; the snapshots are of another model",
                          phema_checkpoint_path(template), shown.text);
    draft->outputs->dtypes[i] = found->dtype;
    *location = (struct phema_tensor_location){.offset = found->offset,
                                               .stride = found->stride,
                                               .file = found->file,
                                               .chunks = found->chunks,
                                               .n_chunks = found->n_chunks};
    if (!draft->outputs->is_replaced[first]) /* FILE has the tied tensors under other names */
        draft->outputs->dtypes[first] = found->dtype;
    if (first != i && draft->outputs->dtypes[first] != found->dtype)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: tensor '%s': is tied to another one in the snapshots, which has "
                          "another dtype here",
                          phema_checkpoint_path(template), shown.text);
    return PHEMA_OK;
}

static enum phema_status use_into(struct draft *draft, struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    struct phema_checkpoint *template = NULL;
    enum phema_status status = open_template(&template, draft, draft->options->into, err);
    if (status)
        return status;
    status = template_find_set(draft, template, err);
    for (size_t i = 0; i < draft->plan->series->n_tensors && !status; i++)
        status = locate_into(draft, template, i, err);
    bool is_directory = phema_output_traits(outputs)->is_directory;
    for (size_t j = 0; j < outputs->m && !status; j++) {
        outputs->items[j].template = template;
        outputs->items[j].locations = outputs->locations;
        if (!is_directory)
            status = check_name(outputs->items[j].path, template, draft->options, err);
    }
    if (status)
        return status;
    if (!is_directory)
        return check_copy(draft, template, outputs->locations, 0, err);
    status = outputs_check_directory_copy(draft, template, err);
    return status ? status : outputs_add_directory_files(draft, template, err);
}

/* ---- Provenance ---- */

static enum phema_status write_sidecar(struct draft *draft, size_t j, struct phema_error *err)
{
    if (draft->options->is_conversion)
        return PHEMA_OK;
    struct phema_strbuf text = {0};
    enum phema_status status = provenance_write_file(&text, draft, j, err);
    if (status) {
        phema_strbuf_clear(&text);
        return status;
    }
    struct phema_output *output = &draft->outputs->items[j];
    output->sidecar = text.data;
    return outputs_find_digests(draft, output, j, text.data, text.size, err);
}

static enum phema_status lay_out_copy(struct draft *draft, size_t j, struct phema_error *err)
{
    struct phema_output *output = &draft->outputs->items[j];
    enum phema_status status = draft->options->into ? PHEMA_OK : use_newest(draft, j, err);
    if (status)
        return status;
    if (phema_output_traits(draft->outputs)->is_directory)
        return outputs_add_directory_copy(draft, j, err);
    status = write_sidecar(draft, j, err);
    if (status)
        return status;
    output->files = calloc(1, sizeof(*output->files));
    if (!output->files)
        return phema_fail_memory(err);
    output->n_files = 1;
    output->size_bytes = phema_file_span(phema_checkpoint_file(output->template, 0)).size;
    output->files[0].size_bytes = output->size_bytes;
    return PHEMA_OK;
}

PHEMA_FALLIBLE outputs_lay_out_copies(struct draft *draft, struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    if (draft->options->has_dtype)
        return phema_fail(
            err, PHEMA_ERR_USAGE,
            "%s: a copy of a checkpoint keeps its dtypes; omit %s, or end OUT in .safetensors",
            draft->options->out, phema_setting_name(PHEMA_SET_DTYPE));
    const struct phema_series *series = draft->plan->series;
    outputs->is_replaced = phema_arena_array(draft->arena, series->n_tensors + 1, sizeof(bool));
    outputs->templates =
        phema_arena_array(draft->arena, outputs->m + 1, sizeof(struct phema_checkpoint *));
    if (!outputs->is_replaced || !outputs->templates)
        return phema_fail_memory(err);
    /* averages and their scales; tensors copied from the newest snapshot are in the template */
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        bool is_scale = entry->tensor.kind == PHEMA_KIND_SCALE && entry->scale != SIZE_MAX;
        enum phema_rule rule = is_scale ? series->tensors[entry->scale].rule : entry->rule;
        outputs->is_replaced[i] = rule == PHEMA_RULE_AVERAGE && entry->tensor.n_elems > 0;
    }
    enum phema_status status = draft->options->into ? use_into(draft, err) : PHEMA_OK;
    for (size_t j = 0; j < outputs->m && !status; j++)
        status = lay_out_copy(draft, j, err);
    return status;
}
