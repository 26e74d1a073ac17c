// SPDX-License-Identifier: Apache-2.0
/* copy_changes.c - What is replaced in a copy: names of tensors, their bytes, and checksums. The names
 * in the checkpoint that is copied may be below a key, or between a prefix and a suffix next to the
 * tensors of the training. */
#include <stdlib.h>
#include <string.h>

#include "outputs.h"
#include "phema/array.h"
#include "phema/setting.h"

/* ---- Names ---- */

/* The folder of one of flux_action's averages alone. */
static const struct phema_tensor_set tensors_alone = {.prefix = "tensors.", .suffix = ""};

const struct phema_tensor *template_find(const struct phema_checkpoint *template,
                                         const struct phema_tensor_set *set,
                                         const struct phema_tensor *tensor)
{
    struct phema_strbuf name = {0};
    phema_strbuf_puts(&name, set->prefix);
    phema_strbuf_append(&name, tensor->name, tensor->name_size);
    phema_strbuf_puts(&name, set->suffix);
    const struct phema_tensor *found =
        name.is_failed ? NULL
                       : phema_checkpoint_find(template, name.data ? name.data : "", name.size);
    phema_strbuf_clear(&name);
    return found;
}

/* Whether the template has a tied tensor in the place of tensor i, as checkpoints that keep tied
 * parameters under one name. */
static bool has_tied(const struct phema_checkpoint *template, const struct phema_tensor_set *set,
                     const struct phema_series *series, size_t i)
{
    bool is_found = false;
    for (size_t j = 0; j < series->n_tensors && !is_found; j++)
        is_found = series->tensors[j].same_as == series->tensors[i].same_as &&
                   template_find(template, set, &series->tensors[j].tensor);
    return is_found;
}

/* The first tensor that the template does not have; SIZE_MAX: it has all. A set of averages
 * has no tensors that are not averaged. */
static size_t find_missing(const struct phema_checkpoint *template,
                           const struct phema_tensor_set *set, bool are_averages,
                           const struct phema_series *series)
{
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        bool is_needed =
            are_averages ? entry->rule == PHEMA_RULE_AVERAGE : !outputs_is_counter(entry);
        if (is_needed && !template_find(template, set, &entry->tensor) &&
            !has_tied(template, set, series, i))
            return i;
    }
    return SIZE_MAX;
}

static bool holds_averages(const struct phema_checkpoint *template,
                           const struct phema_tensor_set *set, const struct phema_series *series)
{
    bool is_any = false;
    for (size_t i = 0; i < series->n_tensors && !is_any; i++)
        is_any = series->tensors[i].rule == PHEMA_RULE_AVERAGE;
    return is_any && find_missing(template, set, true, series) == SIZE_MAX;
}

/* Sets into and into_key, or into_names of averages between a prefix and a suffix. */
static enum phema_status choose(struct draft *draft, const struct phema_tensor_set *set,
                                bool is_subtree, struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    draft->into = *set;
    outputs->into_key = is_subtree ? set->name : "";
    if (is_subtree)
        return PHEMA_OK;
    outputs->into_names = phema_arena_printf(draft->arena, "%sNAME%s", set->prefix, set->suffix);
    return outputs->into_names ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status fail_missing(const struct draft *draft,
                                      const struct phema_checkpoint *template,
                                      const struct phema_tensor_set *set, bool are_averages,
                                      struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    const struct phema_tensor *missing =
        &series->tensors[find_missing(template, set, are_averages, series)].tensor;
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: has no tensor '%s%s%s', so it is no checkpoint of the same model; %s "
                      "names the subtree, %s what to replace",
                      phema_checkpoint_path(template), set->prefix,
                      phema_name_escape(&shown, missing->name, missing->name_size), set->suffix,
                      phema_setting_name(PHEMA_SET_KEY), phema_setting_name(PHEMA_SET_INCLUDE));
}

/* ---- Below a key ---- */

/* The subtree that holds the model: --key, that of the snapshots, or a usual name. */
static enum phema_status find_key(struct draft *draft, const struct phema_checkpoint *template,
                                  const char *asked, struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    const char *const guesses[] = {asked ? asked : series->key,
                                   series->key,
                                   "",
                                   "state_dict",
                                   "ema",
                                   "ema_model",
                                   "model",
                                   "model_state_dict",
                                   "module",
                                   "net",
                                   "state_dict.model"};
    /* a key that differs from that of the snapshots is meant for this file */
    size_t n = asked && strcmp(asked, series->key) != 0 ? 1 : ARRAY_LEN(guesses);
    struct phema_tensor_set first = {0};
    for (size_t g = 0; g < n; g++) {
        struct phema_tensor_set set;
        if (!phema_tensor_set_below(&set, guesses[g], draft->arena))
            return phema_fail_memory(err);
        if (find_missing(template, &set, false, series) == SIZE_MAX)
            return choose(draft, &set, true, err);
        first = g ? first : set;
    }
    return fail_missing(draft, template, &first, false, err);
}

/* ---- A set of a trainer's checkpoint ---- */

static enum phema_status fail_ambiguous(const struct phema_tensor_sets *sets,
                                        struct phema_error *err)
{
    struct phema_strbuf names = {0};
    for (size_t s = 0; s < sets->n; s++)
        phema_strbuf_printf(&names, "%s%s",
                            s == 0            ? ""
                            : s + 1 < sets->n ? ", "
                                              : " or ",
                            sets->items[s]->name);
    enum phema_status status = phema_strbuf_check(&names, err);
    if (!status)
        status = phema_fail(err, PHEMA_ERR_USAGE,
                            "%s: holds several averages; %s%s chooses the one to replace",
                            phema_checkpoint_path(sets->checkpoint),
                            phema_setting_equals(PHEMA_SET_KEY), names.data);
    phema_strbuf_clear(&names);
    return status;
}

/* The set that --key names, or the only average that has the averaged tensors. *found: NULL:
 * none */
static enum phema_status find_set(const struct phema_tensor_set **found, struct draft *draft,
                                  const struct phema_checkpoint *template, const char *asked,
                                  struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    struct phema_tensor_sets sets;
    size_t n_meant = 0;
    enum phema_status status = phema_tensor_sets_list(&sets, draft->arena, template, err);
    *found = NULL;
    for (size_t s = 0; !status && s < sets.n; s++) {
        const struct phema_tensor_set *set = sets.items[s];
        if (asked ? strcmp(set->name, asked) != 0
                  : set->is_raw || !holds_averages(template, set, series))
            continue;
        n_meant++;
        *found = set;
    }
    return status || n_meant < 2 ? status : fail_ambiguous(&sets, err);
}

PHEMA_FALLIBLE template_find_set(struct draft *draft, const struct phema_checkpoint *template,
                                 struct phema_error *err)
{
    const struct phema_series *series = draft->plan->series;
    const char *asked = draft->options->key;
    const struct phema_tensor_set *found = NULL;
    enum phema_status status = find_set(&found, draft, template, asked, err);
    if (status)
        return status;
    if (found && find_missing(template, found, true, series) != SIZE_MAX)
        return fail_missing(draft, template, found, true, err);
    if (!found && !asked && holds_averages(template, &tensors_alone, series))
        found = &tensors_alone;
    if (found)
        return choose(draft, found, false, err);
    return find_key(draft, template, asked && strcmp(asked, ".") == 0 ? "" : asked, err);
}

/* ---- Bytes ---- */

struct phema_tensor phema_output_tensor(const struct phema_plan *plan,
                                        const struct phema_outputs *outputs,
                                        const struct phema_output *output, size_t i)
{
    const struct phema_tensor_location *location = &output->locations[i];
    struct phema_tensor tensor = plan->series->tensors[i].tensor;
    tensor.dtype = outputs->dtypes[i];
    tensor.size_bytes = phema_dtype_bytes(tensor.dtype, tensor.n_elems);
    tensor.offset = location->offset + output->shift;
    tensor.stride = location->stride;
    tensor.file = location->file;
    tensor.chunks = location->chunks;
    tensor.n_chunks = location->n_chunks;
    tensor.is_compressed = false;
    tensor.scaling = NULL;
    return tensor;
}

static int compare_extents(const void *a, const void *b)
{
    const struct phema_extent *left = a, *right = b;
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

static enum phema_status add_extent(struct extent_list *list, size_t file, uint64_t start,
                                    uint64_t size, struct phema_error *err)
{
    if (!phema_array_grow(&list->items, &list->capacity, list->n, sizeof(*list->items)))
        return phema_fail_memory(err);
    list->items[list->n++] = (struct phema_extent){file, start, start + size};
    return PHEMA_OK;
}

PHEMA_FALLIBLE extents_add(struct extent_list *list, const struct phema_tensor *tensor,
                           struct phema_error *err)
{
    const struct phema_chunk whole = {.size = tensor->shape,
                                      .stride = tensor->stride,
                                      .file = tensor->file,
                                      .offset = tensor->offset};
    const struct phema_chunk *chunks = tensor->chunks ? tensor->chunks : &whole;
    size_t n = tensor->chunks ? tensor->n_chunks : 1;
    for (size_t c = 0; c < n; c++) {
        const struct phema_chunk *chunk = &chunks[c];
        uint64_t n_elems = 1; /* from the first to the last, with the gaps of strides */
        bool is_empty = false;
        for (unsigned d = 0; d < tensor->rank; d++) {
            is_empty = is_empty || chunk->size[d] == 0;
            n_elems = chunk->stride ? n_elems + (chunk->size[d] - 1) * chunk->stride[d]
                                    : n_elems * chunk->size[d];
        }
        if (is_empty)
            continue;
        enum phema_status status = add_extent(list, chunk->file, chunk->offset,
                                              phema_dtype_bytes(tensor->dtype, n_elems), err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

void extents_sort(struct extent_list *list)
{
    if (list->n)
        qsort(list->items, list->n, sizeof(*list->items), compare_extents);
}

PHEMA_FALLIBLE phema_output_extents(struct phema_extent **out, size_t *n,
                                    const struct phema_plan *plan,
                                    const struct phema_outputs *outputs, size_t output,
                                    const struct phema_record *records, size_t n_records,
                                    struct phema_error *err)
{
    struct extent_list list = {0};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < plan->series->n_tensors && !status; i++) {
        struct phema_tensor tensor = phema_output_tensor(plan, outputs, &outputs->items[output], i);
        if (outputs->is_replaced[i])
            status = extents_add(&list, &tensor, err);
    }
    for (size_t r = 0; r < n_records && !status; r++)
        for (unsigned c = 0; c < records[r].n_crc && !status; c++)
            status = add_extent(&list, records[r].file, records[r].crc_at[c], 4, err);
    if (status) {
        free(list.items);
        return status;
    }
    extents_sort(&list);
    *out = list.items;
    *n = list.n;
    return PHEMA_OK;
}

/* ---- Checksums ---- */

/* Keeps the records that hold one of the extents, and were written with checksums. Both lists are
 * sorted. Returns how many are left. */
static size_t keep_changed(struct phema_record *records, size_t n_records,
                           const struct phema_extent *extents, size_t n,
                           const struct phema_checkpoint *template)
{
    size_t x = 0, n_kept = 0;
    for (size_t r = 0; r < n_records; r++) {
        const struct phema_record *record = &records[r];
        while (x < n && (extents[x].file < record->file ||
                         (extents[x].file == record->file && extents[x].start < record->offset)))
            x++;
        bool is_changed = x < n && extents[x].file == record->file &&
                          extents[x].start - record->offset < record->size_bytes;
        if (is_changed &&
            !phema_record_is_switched_off(
                record, phema_file_span(phema_checkpoint_file(template, record->file))))
            records[n_kept++] = *record;
    }
    return n_kept;
}

PHEMA_FALLIBLE phema_output_records(struct phema_record **out, size_t *n,
                                    const struct phema_plan *plan,
                                    const struct phema_outputs *outputs, size_t output,
                                    struct phema_error *err)
{
    const struct phema_checkpoint *template = outputs->items[output].template;
    struct phema_extent *extents = NULL;
    size_t n_extents = 0, n_records = 0;
    *n = 0;
    enum phema_status status = phema_checkpoint_records(out, &n_records, template, err);
    if (status || n_records == 0)
        return status;
    status = phema_output_extents(&extents, &n_extents, plan, outputs, output, NULL, 0, err);
    if (!status)
        *n = keep_changed(*out, n_records, extents, n_extents, template);
    free(extents);
    return status;
}
