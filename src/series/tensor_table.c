// SPDX-License-Identifier: Apache-2.0
/* tensor_table.c - one table of tensors for all snapshots; mismatches; tied tensors. A snapshot
 * adds only its locations, and shares those with a snapshot whose files look alike, so that memory
 * does not grow with the number of snapshots. */
#include "tensor_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"
#include "phema/sort.h"
#include "phema/strbuf.h"

int tensor_locations_compare(const struct phema_tensor_location *left,
                             const struct phema_tensor_location *right)
{
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

/* fp8 codes of which only config.json knows the blocks. */
static enum phema_status fail_blocks(const struct tensor_table *tensor_table,
                                     const struct phema_tensor *codes, struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: tensor '%s': only config.json says that its scales are for blocks of %llu x %llu, and "
        "a converted checkpoint would lack it; give %sbf16",
        tensor_table->reference, phema_name_escape(&shown, codes->name, codes->name_size),
        (unsigned long long)codes->scaling->block_rows,
        (unsigned long long)codes->scaling->block_columns, phema_setting_equals(PHEMA_SET_DTYPE));
}

/* Adds tensor t of the first snapshot, if it takes part. */
static enum phema_status add_tensor(struct tensor_table *tensor_table,
                                    const struct phema_tensor *tensors, size_t t,
                                    struct phema_error *err)
{
    struct phema_series *series = tensor_table->series;
    const struct tensor_filter *filter = tensor_table->filter;
    const struct phema_tensor *listed = &tensors[t];
    struct tensor_role role;
    enum phema_status status = tensor_filter_role(&role, filter, listed, err);
    if (status)
        return status;
    const char *name = role.name;
    size_t size = role.size, i = series->n_tensors;
    bool has_raw = filter->sets->has_raw; /* which have every name */
    if (!name || filter->sets->trainer) {
        bool is_attribute = listed->kind == PHEMA_KIND_ATTRIBUTE;
        struct phema_tensor_total *total = is_attribute ? &series->attributes : &series->left_out;
        total->n_tensors++;
        total->n_elems += listed->n_elems;
        total->size_bytes += listed->size_bytes;
    }
    if (!name || (has_raw && !role.is_raw))
        return PHEMA_OK;
    if (filter->keeps_codes && listed->scaling && !phema_scaling_is_evident(listed->scaling))
        return fail_blocks(tensor_table, listed, err);
    struct phema_series_tensor *entry = &series->tensors[i];
    *entry = (struct phema_series_tensor){
        .tensor = tensor_as_read(tensor_table, listed), .same_as = i, .scale = SIZE_MAX};
    entry->tensor.name = phema_arena_copy(&series->memory, name, size);
    entry->tensor.name_size = size;
    if (!entry->tensor.name ||
        !tensor_copy_dimensions(&series->memory, &entry->tensor.shape, listed->rank) ||
        !tensor_copy_dimensions(&series->memory, &entry->tensor.stride, listed->rank) ||
        !tensor_copy_scaling(&series->memory, &entry->tensor.scaling))
        return phema_fail_memory(err);
    tensor_filter_rule(entry, listed, tensor_table->options->averages_buffers);
    tensor_table->by_name[i] = i;
    tensor_table->locations[i] = tensor_location_of(&entry->tensor);
    series->n_tensors++;
    if (series->became && !filter->sets->trainer)
        series->became[t] = i + 1;
    return PHEMA_OK;
}

static int compare_places(const void *a, const void *b, void *table)
{
    const struct tensor_filter *filter = ((const struct tensor_table *)table)->filter;
    const struct phema_tensor *left = &((const struct phema_series_tensor *)a)->tensor;
    const struct phema_tensor *right = &((const struct phema_series_tensor *)b)->tensor;
    size_t i = tensor_filter_place(filter, left->name, left->name_size);
    size_t j = tensor_filter_place(filter, right->name, right->name_size);
    return (i > j) - (i < j);
}

/* Puts the tensors in the order that those of the series have which they are like. */
static void order_alike(struct tensor_table *tensor_table)
{
    struct phema_series *series = tensor_table->series;
    phema_sort(series->tensors, series->n_tensors, sizeof(*series->tensors), compare_places,
               tensor_table);
    for (size_t i = 0; i < series->n_tensors; i++) {
        series->tensors[i].same_as = i;
        tensor_table->locations[i] = tensor_location_of(&series->tensors[i].tensor);
    }
}

static enum phema_status fill_table(struct tensor_table *tensor_table,
                                    const struct phema_checkpoint *checkpoint,
                                    struct phema_error *err)
{
    struct phema_series *series = tensor_table->series;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    size_t n = phema_checkpoint_n_tensors(checkpoint);
    series->tensors = phema_arena_array(&series->memory, n + 1, sizeof(*series->tensors));
    tensor_table->by_name = phema_arena_array(&series->memory, n + 1, sizeof(size_t));
    tensor_table->locations =
        phema_arena_array(&series->memory, n + 1, sizeof(*tensor_table->locations));
    if (tensor_table->options->is_alone)
        series->became = phema_arena_array(&series->memory, n + 1, sizeof(size_t));
    if (!series->tensors || !tensor_table->by_name || !tensor_table->locations ||
        (tensor_table->options->is_alone && !series->became))
        return phema_fail_memory(err);
    for (size_t t = 0; t < n; t++) {
        enum phema_status status = add_tensor(tensor_table, tensors, t, err);
        if (status)
            return status;
    }
    if (tensor_table->filter->like)
        order_alike(tensor_table);
    phema_sort(tensor_table->by_name, series->n_tensors, sizeof(size_t), tensor_names_compare,
               series->tensors);
    enum phema_status status = PHEMA_OK; /* fp8 numbers get the scales that take part */
    for (size_t i = 0; i < series->n_tensors && tensor_table->filter->keeps_scales && !status;
         i++) {
        struct phema_series_tensor *entry = &series->tensors[i];
        const struct phema_scaling *scaling = entry->tensor.scaling;
        const struct phema_tensor *listed =
            scaling ? phema_checkpoint_find(checkpoint, scaling->name, scaling->name_size) : NULL;
        struct tensor_role role;
        if (listed)
            status = tensor_table_role(&entry->scale, &role, tensor_table, tensor_table->filter,
                                       listed, SIZE_MAX, err);
        if (listed && entry->scale != SIZE_MAX)
            series->tensors[entry->scale].scale = i;
    }
    return status;
}

/* ---- Averages beside raw parameters ---- */

/* An entry has the dtype of its average, or of the raw parameter where that is wider and both are
 * summed: float32 of float16 and bfloat16. false: no memory */
static bool note_average(struct tensor_table *tensor_table, struct phema_series_tensor *entry,
                         const struct phema_tensor *listed)
{
    struct phema_tensor average = tensor_as_read(tensor_table, listed);
    bool is_averaged_alone = tensor_table->options->use == PHEMA_USE_AVERAGES;
    bool is_float = phema_dtype_is_float(average.dtype);
    bool are_halves = dtype_is_narrower(average.dtype, PHEMA_F32) &&
                      dtype_is_narrower(entry->tensor.dtype, PHEMA_F32);
    if (!is_averaged_alone && are_halves && entry->tensor.dtype != average.dtype)
        average.dtype = PHEMA_F32;
    if (!is_float || (!is_averaged_alone && !dtype_is_narrower(entry->tensor.dtype, average.dtype)))
        return true;
    entry->tensor.dtype = average.dtype;
    entry->tensor.size_bytes = phema_dtype_bytes(average.dtype, entry->tensor.n_elems);
    entry->tensor.scaling = average.scaling;
    return tensor_copy_scaling(&tensor_table->series->memory, &entry->tensor.scaling);
}

/* Entries that are tied to a listed tensor have its average.
 *   is_averaged  [n_tensors] out */
static enum phema_status note_ties(struct tensor_table *tensor_table,
                                   const struct tensor_filter *of_average,
                                   const struct phema_tensor *average, bool *is_averaged,
                                   struct phema_error *err)
{
    struct phema_series *series = tensor_table->series;
    size_t n = 0;
    const struct tie *ties = tensor_filter_ties(of_average, average, &n);
    for (size_t t = 0; t < n; t++) {
        size_t i = tensor_table_find(tensor_table, (const char *)ties[t].name.data,
                                     ties[t].name.size, SIZE_MAX);
        if (i == SIZE_MAX || series->tensors[i].rule == PHEMA_RULE_COPY)
            continue;
        series->tensors[i].tied_to =
            phema_arena_copy(&series->memory, ties[t].average.data, ties[t].average.size);
        if (!series->tensors[i].tied_to ||
            !note_average(tensor_table, &series->tensors[i], average))
            return phema_fail_memory(err);
        is_averaged[i] = true;
    }
    return PHEMA_OK;
}

/* Tensors without an average are copied. */
static enum phema_status find_averages(struct tensor_table *tensor_table,
                                       const struct phema_checkpoint *checkpoint,
                                       struct phema_error *err)
{
    struct phema_series *series = tensor_table->series;
    struct tensor_filter of_average = *tensor_table->filter;
    of_average.set = of_average.sets->reference;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    bool *is_averaged =
        phema_arena_array(&series->memory, series->n_tensors + 1, sizeof(*is_averaged));
    if (!is_averaged)
        return phema_fail_memory(err);
    for (size_t j = 0; j < phema_checkpoint_n_tensors(checkpoint); j++) {
        struct tensor_role role;
        size_t i;
        enum phema_status status =
            tensor_table_role(&i, &role, tensor_table, &of_average, &tensors[j], SIZE_MAX, err);
        if (!status)
            status = note_ties(tensor_table, &of_average, &tensors[j], is_averaged, err);
        if (status)
            return status;
        /* an average without a raw parameter: tensor_locations_fill refuses it */
        if (i == SIZE_MAX || role.is_raw)
            continue;
        is_averaged[i] = true;
        if (!note_average(tensor_table, &series->tensors[i], &tensors[j]))
            return phema_fail_memory(err);
    }
    for (size_t i = 0; i < series->n_tensors; i++) {
        struct phema_series_tensor *entry = &series->tensors[i];
        if (is_averaged[i] || entry->rule == PHEMA_RULE_COPY)
            continue;
        entry->rule = PHEMA_RULE_COPY;
        entry->reason = "no average";
    }
    return PHEMA_OK;
}

/* The snapshot keeps the current locations; the next one is compared in others. */
static enum phema_status keep_locations(struct tensor_table *tensor_table,
                                        struct phema_snapshot *snapshot, struct phema_error *err)
{
    snapshot->locations = tensor_table->locations;
    tensor_table->locations =
        phema_arena_array(&tensor_table->series->memory, tensor_table->series->n_tensors,
                          sizeof(*tensor_table->locations));
    return tensor_table->locations ? PHEMA_OK : phema_fail_memory(err);
}

/* True when a filter without these expressions chooses a tensor. */
static bool chooses_without(const struct tensor_table *tensor_table,
                            const struct phema_checkpoint *checkpoint, bool includes, bool excludes)
{
    struct tensor_filter filter = *tensor_table->filter;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    struct phema_error ignored = {0};
    struct tensor_role role = {NULL, 0, false};
    filter.n_includes = includes ? 0 : filter.n_includes;
    filter.n_excludes = excludes ? 0 : filter.n_excludes;
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint) && !role.name; i++)
        if (tensor_filter_role(&role, &filter, &tensors[i], &ignored))
            return false;
    return role.name != NULL;
}

/* Suggests to leave out the option that chooses nothing, and no other. */
static enum phema_status fail_empty(const struct tensor_table *tensor_table,
                                    const struct phema_snapshot *snapshot, struct phema_error *err)
{
    const struct phema_series_options *options = tensor_table->options;
    const struct phema_checkpoint *checkpoint = snapshot->checkpoint;
    bool has_tensors = phema_checkpoint_n_tensors(checkpoint) > 0;
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_INPUTS, "%s: holds no tensor%s; see %s%s%s%s%s", snapshot->path,
                   has_tensors ? " that is chosen" : "", phema_setting_name(PHEMA_SET_KEY),
                   options->n_includes ? ", " : "",
                   options->n_includes ? phema_setting_name(PHEMA_SET_INCLUDE) : "",
                   options->n_excludes ? ", " : "",
                   options->n_excludes ? phema_setting_name(PHEMA_SET_EXCLUDE) : "");
    if (!has_tensors)
        return status;
    if (options->n_excludes && chooses_without(tensor_table, checkpoint, false, true))
        return phema_suggest(err, status, PHEMA_SET_EXCLUDE, "");
    if (options->n_includes && chooses_without(tensor_table, checkpoint, true, false))
        return phema_suggest(err, status, PHEMA_SET_INCLUDE, "");
    if (chooses_without(tensor_table, checkpoint, true, true)) {
        (void)phema_suggest(err, status, PHEMA_SET_INCLUDE, "");
        return phema_suggest(err, status, PHEMA_SET_EXCLUDE, "");
    }
    return options->key ? phema_suggest(err, status, PHEMA_SET_KEY, "") : status;
}

/* The table has the names of the raw parameters, and says which of them are averaged. */
static enum phema_status init_of_trainer(struct tensor_table *tensor_table,
                                         struct phema_snapshot *snapshot, struct phema_error *err)
{
    const struct phema_checkpoint *checkpoint = snapshot->checkpoint;
    const struct phema_tensor_sets *sets = tensor_table->filter->sets;
    struct phema_series *series = tensor_table->series;
    tensor_table->is_taken = phema_arena_array(
        &series->memory, phema_checkpoint_n_tensors(checkpoint) + 1, sizeof(bool));
    if (!tensor_table->is_taken)
        return phema_fail_memory(err);
    for (size_t x = 1; x < series->n_tensors; x++) {
        const struct phema_tensor *left = &series->tensors[tensor_table->by_name[x - 1]].tensor;
        const struct phema_tensor *right = &series->tensors[tensor_table->by_name[x]].tensor;
        struct phema_name_buffer shown;
        if (phema_bytes_compare(left->name, left->name_size, right->name, right->name_size) == 0)
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "%s: tensor '%s': two raw parameters have this name without their "
                              "prefixes; choose one with %s",
                              snapshot->path,
                              phema_name_escape(&shown, left->name, left->name_size),
                              phema_setting_name(PHEMA_SET_KEY));
    }
    enum phema_status status = PHEMA_OK;
    if (sets->has_raw && sets->reference && tensor_table->options->use != PHEMA_USE_RAW)
        status = find_averages(tensor_table, checkpoint, err);
    bool is_alike = false;
    if (!status)
        status = tensor_locations_fill(tensor_table, snapshot, &is_alike, err);
    if (status)
        return status;
    tensor_table->first = tensor_table->locations;
    return keep_locations(tensor_table, snapshot, err);
}

/* Where half of the parameters are vectors without elements, these are elsewhere. */
static enum phema_status check_elements(const struct phema_series *series,
                                        const struct phema_snapshot *snapshot,
                                        struct phema_error *err)
{
    const struct phema_tensor *empty = NULL;
    size_t n_empty = 0, n_averaged = 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_tensor *tensor = &series->tensors[i].tensor;
        n_averaged += series->tensors[i].rule == PHEMA_RULE_AVERAGE;
        if (series->tensors[i].rule != PHEMA_RULE_AVERAGE || tensor->rank != 1 || tensor->n_elems)
            continue;
        empty = empty ? empty : tensor;
        n_empty++;
    }
    struct phema_name_buffer shown;
    if (n_empty < 2 || 2 * n_empty < n_averaged)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: %zu tensors such as '%s' have no elements: ZeRO-3 keeps the parameters "
                      "with its optimizer, and zero_to_fp32.py of DeepSpeed puts them together; "
                      "tensors that are meant to be empty are left out with %s",
                      snapshot->path, n_empty,
                      phema_name_escape(&shown, empty->name, empty->name_size),
                      phema_setting_name(PHEMA_SET_EXCLUDE));
}

PHEMA_FALLIBLE tensor_table_init(struct tensor_table *tensor_table, struct phema_snapshot *snapshot,
                                 struct phema_error *err)
{
    tensor_table->reference = snapshot->label;
    tensor_table->checkpoint = snapshot->checkpoint;
    /* mirai keeps the tensors of large checkpoints in a folder beside a file that names it */
    if (!isnan(snapshot_metadata_value(snapshot->checkpoint, "__mirai_sharded_checkpoint__")))
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "%s: has its tensors in a folder *.bundle-* beside it, as mirai's checkpoints "
            "of 512 MiB and more, which is not read; save what mirai's load_checkpoint "
            "returns with torch.save",
            snapshot->path);
    enum phema_status status = fill_table(tensor_table, snapshot->checkpoint, err);
    if (status)
        return status;
    const struct phema_series *series = tensor_table->series;
    bool has_tensors = phema_checkpoint_n_tensors(snapshot->checkpoint) > 0;
    if (series->n_tensors == 0 && (has_tensors || !tensor_table->options->is_conversion))
        return fail_empty(tensor_table, snapshot, err);
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_tensor *tensor = &series->tensors[i].tensor;
        struct phema_name_buffer shown;
        if (series->tensors[i].rule == PHEMA_RULE_AVERAGE &&
            (tensor->dtype == PHEMA_F6_E2M3 || tensor->dtype == PHEMA_F6_E3M2))
            return phema_fail(
                err, PHEMA_ERR_INPUTS,
                "%s: tensor '%s': %s cannot be averaged by this version; leave it out with %s",
                snapshot->path, phema_name_escape(&shown, tensor->name, tensor->name_size),
                phema_dtype_name(tensor->dtype), phema_setting_name(PHEMA_SET_EXCLUDE));
    }
    status = check_elements(series, snapshot, err);
    if (status)
        return status;
    if (tensor_table->filter->sets->trainer)
        return init_of_trainer(tensor_table, snapshot, err);
    tensor_table->first = tensor_table->locations;
    return keep_locations(tensor_table, snapshot, err);
}

PHEMA_FALLIBLE tensor_table_match(struct tensor_table *tensor_table,
                                  struct phema_snapshot *snapshot, struct phema_error *err)
{
    if (phema_checkpoint_is_alike(snapshot->checkpoint, &snapshot->shift)) {
        snapshot->locations = tensor_table->first;
        return PHEMA_OK;
    }
    snapshot->shift = 0;
    bool is_alike = false;
    enum phema_status status = tensor_locations_fill(tensor_table, snapshot, &is_alike, err);
    if (status)
        return status;
    if (is_alike) {
        snapshot->locations = tensor_table->first;
        return PHEMA_OK;
    }
    snapshot->shift = 0; /* the locations are absolute */
    return keep_locations(tensor_table, snapshot, err);
}

double tensor_table_rounding(const struct phema_series *series,
                             const struct phema_tensor_location *locations)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        if (entry->rule != PHEMA_RULE_AVERAGE)
            continue;
        enum phema_dtype dtype = locations[i].is_widened
                                     ? locations[i].stored_dtype
                                     : phema_tensor_stored_dtype(&entry->tensor);
        double rounding = phema_dtype_rounding(phema_dtype_of_parts(dtype));
        sum += (double)entry->tensor.n_elems * rounding * rounding;
        n += (double)entry->tensor.n_elems;
    }
    return n > 0 ? sqrt(sum / n) : 0;
}

/* ---- Ties ---- */

static bool shares_storage(const struct phema_series *series, size_t a, size_t b)
{
    const struct phema_tensor *left = &series->tensors[a].tensor;
    const struct phema_tensor *right = &series->tensors[b].tensor;
    if (left->dtype != right->dtype || left->rank != right->rank || left->n_elems == 0 ||
        left->kind == PHEMA_KIND_SCALE ||
        !tensor_same_dimensions(left->shape, right->shape, left->rank) ||
        series->tensors[a].rule != series->tensors[b].rule)
        return false;
    const struct phema_tensor_location *table = NULL;
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_tensor_location *locations = series->snapshots[k].locations;
        if (!locations || locations == table) /* a manifest may lack files */
            continue;
        table = locations;
        if (locations[a].chunks != locations[b].chunks || locations[a].scaling ||
            locations[b].scaling || locations[a].offset != locations[b].offset ||
            locations[a].file != locations[b].file ||
            !tensor_same_dimensions(locations[a].stride, locations[b].stride, left->rank))
            return false;
    }
    return true;
}

static int compare_first_locations(const void *a, const void *b, void *context)
{
    const struct tensor_table *tensor_table = context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const struct phema_tensor_location *left = &tensor_table->first[i];
    const struct phema_tensor_location *right = &tensor_table->first[j];
    int order = tensor_locations_compare(left, right);
    if (!order) /* pieces of one tensor are in one array */
        order = ((uintptr_t)left->chunks > (uintptr_t)right->chunks) -
                ((uintptr_t)left->chunks < (uintptr_t)right->chunks);
    return order ? order : (i > j) - (i < j);
}

PHEMA_FALLIBLE tensor_table_find_tied(struct tensor_table *tensor_table, struct phema_error *err)
{
    struct phema_series *series = tensor_table->series;
    size_t *order = phema_arena_array(&series->memory, series->n_tensors + 1, sizeof(*order));
    if (!order)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors; i++)
        order[i] = i;
    phema_sort(order, series->n_tensors, sizeof(*order), compare_first_locations, tensor_table);
    for (size_t i = 1; i < series->n_tensors; i++)
        if (shares_storage(series, order[i - 1], order[i]))
            series->tensors[order[i]].same_as = series->tensors[order[i - 1]].same_as;
    return PHEMA_OK;
}
