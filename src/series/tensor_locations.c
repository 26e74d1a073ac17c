// SPDX-License-Identifier: Apache-2.0
/* tensor_locations.c - where a snapshot has the tensors of the series, and mismatches. */
#include <string.h>

#include "phema/setting.h"
#include "phema/strbuf.h"
#include "tensor_table.h"

struct phema_tensor_location tensor_location_of(const struct phema_tensor *tensor)
{
    return (struct phema_tensor_location){.offset = tensor->offset,
                                          .stride = tensor->stride,
                                          .file = tensor->file,
                                          .chunks = tensor->chunks,
                                          .n_chunks = tensor->n_chunks,
                                          .scaling = tensor->scaling};
}

struct phema_tensor phema_series_tensor_in(const struct phema_series *series, size_t k, size_t i)
{
    struct phema_tensor tensor = series->tensors[i].tensor;
    const struct phema_snapshot *snapshot = &series->snapshots[k];
    tensor.offset = snapshot->locations[i].offset + phema_snapshot_shift(snapshot, &tensor);
    tensor.stride = snapshot->locations[i].stride;
    tensor.file = snapshot->locations[i].file;
    tensor.chunks = snapshot->locations[i].chunks;
    tensor.n_chunks = snapshot->locations[i].n_chunks;
    tensor.is_widened = snapshot->locations[i].is_widened;
    tensor.stored_dtype = snapshot->locations[i].stored_dtype;
    tensor.scaling = snapshot->locations[i].scaling;
    tensor.is_compressed = snapshot->is_compressed;
    return tensor;
}

struct phema_tensor tensor_as_read(const struct tensor_table *tensor_table,
                                   const struct phema_tensor *listed)
{
    struct phema_tensor tensor = phema_tensor_values(listed);
    if (tensor_table->filter->keeps_codes) {
        tensor = *listed;
        tensor.scaling = NULL;
    }
    return tensor;
}

bool tensor_copy_dimensions(struct phema_arena *arena, const uint64_t **dimensions, unsigned rank)
{
    if (!*dimensions || !rank) /* rank 0: nothing is read there */
        return true;
    uint64_t *copy = phema_arena_array(arena, rank, sizeof(*copy));
    if (copy)
        memcpy(copy, *dimensions, rank * sizeof(*copy));
    *dimensions = copy;
    return copy != NULL;
}

bool tensor_copy_scaling(struct phema_arena *arena, const struct phema_scaling **scaling)
{
    if (!*scaling)
        return true;
    struct phema_scaling *copy = phema_arena_alloc(arena, sizeof(*copy));
    if (!copy)
        return false;
    *copy = **scaling;
    copy->name = phema_arena_copy(arena, copy->name, copy->name_size);
    *scaling = copy;
    return copy->name && tensor_copy_dimensions(arena, &copy->shape, copy->rank);
}

bool dtype_is_narrower(enum phema_dtype stored, enum phema_dtype wanted)
{
    bool is_half = stored == PHEMA_F16 || stored == PHEMA_BF16;
    return (is_half && (wanted == PHEMA_F32 || wanted == PHEMA_F64)) ||
           (stored == PHEMA_F32 && wanted == PHEMA_F64);
}

size_t tensor_table_find(const struct tensor_table *tensor_table, const char *name, size_t size,
                         size_t hint)
{
    const struct phema_series *series = tensor_table->series;
    if (hint < series->n_tensors) {
        const struct phema_tensor *guess = &series->tensors[hint].tensor;
        if (phema_bytes_compare(guess->name, guess->name_size, name, size) == 0)
            return hint;
    }
    size_t low = 0, high = series->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct phema_tensor *tensor = &series->tensors[tensor_table->by_name[middle]].tensor;
        int order = phema_bytes_compare(tensor->name, tensor->name_size, name, size);
        if (!order)
            return tensor_table->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

PHEMA_FALLIBLE tensor_table_role(size_t *index, struct tensor_role *role,
                                 const struct tensor_table *tensor_table,
                                 const struct tensor_filter *filter,
                                 const struct phema_tensor *listed, size_t hint,
                                 struct phema_error *err)
{
    enum phema_status status = tensor_filter_role(role, filter, listed, err);
    bool takes_part = !status && role->name;
    *index = takes_part ? tensor_table_find(tensor_table, role->name, role->size, hint) : SIZE_MAX;
    return status;
}

static void append_shape(struct phema_strbuf *text, const struct phema_tensor *tensor)
{
    phema_strbuf_printf(text, "%s ", phema_dtype_name(phema_tensor_stored_dtype(tensor)));
    phema_tensor_write_shape(text, tensor);
}

static enum phema_status fail_differs(const struct tensor_table *tensor_table,
                                      const struct phema_snapshot *snapshot,
                                      const struct phema_tensor *wanted,
                                      const struct phema_tensor *found, struct phema_error *err)
{
    struct phema_strbuf shapes = {0};
    append_shape(&shapes, found);
    phema_strbuf_puts(&shapes, " here, but ");
    append_shape(&shapes, wanted);
    struct phema_name_buffer shown;
    enum phema_status status = phema_strbuf_check(&shapes, err);
    if (!status)
        status =
            phema_fail(err, PHEMA_ERR_INPUTS,
                       "%s: tensor '%s': is %s in %s; snapshots of one training agree in shape "
                       "and dtype",
                       snapshot->path, phema_name_escape(&shown, wanted->name, wanted->name_size),
                       shapes.data, tensor_table->reference);
    phema_strbuf_clear(&shapes);
    return status;
}

static enum phema_status fail_missing(const struct tensor_table *tensor_table,
                                      const struct phema_snapshot *snapshot, const char *name,
                                      size_t size, bool is_extra, struct phema_error *err)
{
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: tensor '%s': is %s, but %s in %s; snapshots of one training hold the "
                      "same tensors (see %s)",
                      snapshot->path, phema_name_escape(&shown, name, size),
                      is_extra ? "here" : "not here", is_extra ? "not" : "is",
                      tensor_table->reference, phema_setting_name(PHEMA_SET_EXCLUDE));
}

bool tensor_same_dimensions(const uint64_t *a, const uint64_t *b, unsigned rank)
{
    if (!a || !b)
        return a == b;
    return rank == 0 || memcmp(a, b, rank * sizeof(*a)) == 0;
}

/* ---- fp8 tensors with scales ---- */

static void append_scaling(struct phema_strbuf *text, const struct phema_scaling *scaling)
{
    struct phema_name_buffer shown;
    if (!scaling) {
        phema_strbuf_puts(text, "no scale");
        return;
    }
    phema_strbuf_printf(text, "the scale '%s' (%s, blocks of %llu x %llu)",
                        phema_name_escape(&shown, scaling->name, scaling->name_size),
                        phema_dtype_name(scaling->dtype), (unsigned long long)scaling->block_rows,
                        (unsigned long long)scaling->block_columns);
}

static enum phema_status fail_scaling(const struct tensor_table *tensor_table,
                                      const struct phema_snapshot *snapshot,
                                      const struct phema_tensor *wanted,
                                      const struct phema_tensor *found, struct phema_error *err)
{
    const char *fault = phema_checkpoint_scale_fault(snapshot->checkpoint, found);
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, wanted->name, wanted->name_size);
    if (fault)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: tensor '%s': %s", snapshot->path, shown.text,
                          fault);
    struct phema_strbuf text = {0};
    phema_strbuf_puts(&text, "has ");
    append_scaling(&text, found->scaling);
    phema_strbuf_puts(&text, " here, but ");
    append_scaling(&text, wanted->scaling);
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status)
        status = phema_fail(err, PHEMA_ERR_INPUTS,
                            "%s: tensor '%s': %s in %s; fp8 tensors of one training have scales "
                            "everywhere or nowhere, for the same blocks",
                            snapshot->path, shown.text, text.data, tensor_table->reference);
    phema_strbuf_clear(&text);
    return status;
}

/* Before names are compared: a scale that does not fit, or has no codes, counts as a tensor. */
static enum phema_status check_scalings(const struct tensor_table *tensor_table,
                                        const struct phema_snapshot *snapshot,
                                        struct phema_error *err)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(snapshot->checkpoint);
    size_t n = phema_checkpoint_n_tensors(snapshot->checkpoint);
    for (size_t j = 0; j < n; j++) {
        if (tensors[j].dtype != PHEMA_F8_E4M3 && tensors[j].dtype != PHEMA_F8_E5M2)
            continue;
        struct tensor_role role;
        size_t i;
        enum phema_status status =
            tensor_table_role(&i, &role, tensor_table, tensor_table->filter, &tensors[j], j, err);
        if (status)
            return status;
        if (i == SIZE_MAX ||
            !tensor_filter_takes(tensor_table->filter, &role, &tensor_table->series->tensors[i]))
            continue;
        const struct phema_tensor *wanted = &tensor_table->series->tensors[i].tensor;
        struct phema_tensor tensor = tensor_as_read(tensor_table, &tensors[j]);
        const struct phema_scaling *a = wanted->scaling, *b = tensor.scaling;
        bool is_same = a && b ? a->dtype == b->dtype && a->block_rows == b->block_rows &&
                                    a->block_columns == b->block_columns &&
                                    a->scale_rows == b->scale_rows &&
                                    a->scale_columns == b->scale_columns
                              : a == b;
        if (phema_tensor_stored_dtype(wanted) == tensors[j].dtype && !is_same)
            return fail_scaling(tensor_table, snapshot, wanted, &tensors[j], err);
    }
    return PHEMA_OK;
}

/* ---- Locations ---- */

/* The location of a tensor in the dtype of the series. One that the file holds narrower gets the
 * strides of C order, since no view of it is possible. */
static enum phema_status set_location(struct tensor_table *tensor_table,
                                      struct phema_tensor_location *location,
                                      const struct phema_tensor *tensor,
                                      const struct phema_tensor *wanted, struct phema_error *err)
{
    static const uint64_t of_scalar[1] = {1};
    *location = tensor_location_of(tensor);
    if (tensor->dtype == wanted->dtype)
        return PHEMA_OK;
    location->is_widened = true;
    location->stored_dtype = tensor->dtype;
    if (location->stride || location->chunks)
        return PHEMA_OK;
    uint64_t *stride =
        phema_arena_array(&tensor_table->series->memory, tensor->rank + 1u, sizeof(*stride));
    if (!stride)
        return phema_fail_memory(err);
    uint64_t below = 1;
    for (unsigned d = tensor->rank; d-- > 0; below *= tensor->shape[d])
        stride[d] = below;
    location->stride = tensor->rank ? stride : of_scalar;
    return PHEMA_OK;
}

/* Whether the data of a tensor, as it is read, can be those of an entry: averages beside raw
 * parameters may be narrower floats. */
static bool fits_entry(const struct tensor_table *tensor_table, const struct phema_tensor *tensor,
                       const struct phema_tensor *wanted)
{
    bool may_be_widened =
        tensor_table->filter->sets->trainer && !tensor->scaling && !wanted->scaling;
    bool is_dtype = phema_tensor_stored_dtype(wanted) == phema_tensor_stored_dtype(tensor) ||
                    (may_be_widened && dtype_is_narrower(tensor->dtype, wanted->dtype));
    return is_dtype && wanted->rank == tensor->rank &&
           tensor_same_dimensions(wanted->shape, tensor->shape, wanted->rank);
}

/* Keeps the strides and scales of a location in the series' memory, or shares those of the first
 * snapshot that are equal; first: NULL in that one. false: no memory */
static bool keep_details(struct phema_tensor_location *location,
                         const struct phema_tensor_location *first, unsigned rank,
                         struct phema_arena *memory)
{
    if (first && tensor_same_dimensions(location->stride, first->stride, rank))
        location->stride = first->stride;
    else if (!tensor_copy_dimensions(memory, &location->stride, rank))
        return false;
    const struct phema_scaling *a = location->scaling, *b = first ? first->scaling : NULL;
    bool lies_alike = a && b && !a->chunks && !b->chunks && !a->values && !b->values &&
                      a->file == b->file && a->distance == b->distance; /* from the codes */
    if (lies_alike)
        location->scaling = b;
    return lies_alike || tensor_copy_scaling(memory, &location->scaling);
}

/* Entry i of the series comes from tensor j. A file may hold several snapshots, and a tensor may
 * serve several entries, which are tied to its own. In the first file tensor j was counted as left
 * out. */
static void note_taken(struct tensor_table *tensor_table, const struct phema_snapshot *snapshot,
                       size_t i, size_t j)
{
    struct phema_series *series = tensor_table->series;
    bool *is_taken = tensor_table->is_taken;
    if (series->became && !series->became[j])
        series->became[j] = i + 1;
    if (!snapshot->key || snapshot->checkpoint != tensor_table->checkpoint ||
        !series->left_out.n_tensors || /* a manifest names an average twice */
        (is_taken && is_taken[j]))
        return;
    if (is_taken)
        is_taken[j] = true;
    const struct phema_tensor *tensor = &phema_checkpoint_tensors(snapshot->checkpoint)[j];
    series->left_out.n_tensors--;
    series->left_out.n_elems -= tensor->n_elems;
    series->left_out.size_bytes -= tensor->size_bytes;
}

/* Where the snapshot has entry i of the series: in its tensor j. */
static enum phema_status find_location(struct tensor_table *tensor_table,
                                       struct phema_snapshot *snapshot, size_t i, size_t j,
                                       struct phema_error *err)
{
    struct phema_series *series = tensor_table->series;
    const struct phema_tensor *listed = &phema_checkpoint_tensors(snapshot->checkpoint)[j];
    const struct phema_tensor *wanted = &series->tensors[i].tensor;
    struct phema_tensor tensor = tensor_as_read(tensor_table, listed);
    if (!fits_entry(tensor_table, &tensor, wanted))
        return fail_differs(tensor_table, snapshot, wanted, listed, err);
    note_taken(tensor_table, snapshot, i, j);
    struct phema_tensor_location *location = &tensor_table->locations[i];
    struct phema_name_buffer shown;
    if (location->file != SIZE_MAX)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: tensor '%s': another tensor has the same name without its prefix; "
                          "choose one with %s",
                          snapshot->path,
                          phema_name_escape(&shown, listed->name, listed->name_size),
                          phema_setting_name(PHEMA_SET_KEY));
    enum phema_status status = set_location(tensor_table, location, &tensor, wanted, err);
    if (status)
        return status;
    const struct phema_tensor_location *first = tensor_table->first;
    if (!keep_details(location, first ? &first[i] : NULL, wanted->rank, &series->memory))
        return phema_fail_memory(err);
    return PHEMA_OK;
}

/* Entries that are found so far: all of them are the first snapshot's, `shift` bytes later. */
struct search {
    size_t n;
    bool is_alike;
};

static enum phema_status find_entry(struct search *search, struct tensor_table *tensor_table,
                                    struct phema_snapshot *snapshot, size_t i, size_t j,
                                    struct phema_error *err)
{
    const struct phema_tensor_location *first = tensor_table->first;
    const struct phema_tensor_location *location = &tensor_table->locations[i];
    enum phema_status status = find_location(tensor_table, snapshot, i, j, err);
    if (status)
        return status;
    if (first && search->n == 0)
        snapshot->shift = location->offset - first[i].offset; /* wraps, and back when added */
    search->is_alike =
        first && search->is_alike && !location->chunks && !first[i].chunks &&
        location->is_widened == first[i].is_widened && location->stride == first[i].stride &&
        location->scaling == first[i].scaling && location->file == first[i].file &&
        location->offset ==
            first[i].offset +
                phema_snapshot_shift(snapshot, &tensor_table->series->tensors[i].tensor);
    search->n++;
    return PHEMA_OK;
}

/* Entries that are tied to tensor j. */
static enum phema_status find_ties(struct search *search, struct tensor_table *tensor_table,
                                   struct phema_snapshot *snapshot, size_t j,
                                   struct phema_error *err)
{
    size_t n = 0;
    const struct tie *ties = tensor_filter_ties(
        tensor_table->filter, &phema_checkpoint_tensors(snapshot->checkpoint)[j], &n);
    enum phema_status status = PHEMA_OK;
    for (size_t t = 0; t < n && !status; t++) {
        const char *name = (const char *)ties[t].name.data;
        size_t i = tensor_table_find(tensor_table, name, ties[t].name.size, SIZE_MAX);
        const struct phema_series_tensor *tensors = tensor_table->series->tensors;
        if (i != SIZE_MAX && tensors[i].tied_to && tensors[i].rule == PHEMA_RULE_AVERAGE)
            status = find_entry(search, tensor_table, snapshot, i, j, err);
    }
    return status;
}

PHEMA_FALLIBLE tensor_locations_fill(struct tensor_table *tensor_table,
                                     struct phema_snapshot *snapshot, bool *is_alike,
                                     struct phema_error *err)
{
    const struct phema_series *series = tensor_table->series;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(snapshot->checkpoint);
    size_t n = phema_checkpoint_n_tensors(snapshot->checkpoint);
    struct search search = {.is_alike = tensor_table->first != NULL};
    enum phema_status status = check_scalings(tensor_table, snapshot, err);
    if (status)
        return status;
    for (size_t i = 0; i < series->n_tensors; i++)
        tensor_table->locations[i].file = SIZE_MAX; /* not found yet */
    for (size_t j = 0; j < n; j++) {
        struct tensor_role role;
        size_t i;
        status = tensor_table_role(&i, &role, tensor_table, tensor_table->filter, &tensors[j],
                                   search.n, err);
        if (!status && role.name && i == SIZE_MAX)
            return fail_missing(tensor_table, snapshot, role.name, role.size, true, err);
        if (i != SIZE_MAX && tensor_filter_takes(tensor_table->filter, &role, &series->tensors[i]))
            status = find_entry(&search, tensor_table, snapshot, i, j, err);
        else if (i != SIZE_MAX && role.is_raw && series->tensors[i].tied_to)
            note_taken(tensor_table, snapshot, i, j); /* its bytes are those of another */
        if (!status)
            status = find_ties(&search, tensor_table, snapshot, j, err);
        if (status)
            return status;
    }
    *is_alike = search.is_alike;
    if (search.n == series->n_tensors)
        return PHEMA_OK;
    size_t lacking = 0;
    while (tensor_table->locations[lacking].file != SIZE_MAX)
        lacking++;
    const struct phema_tensor *wanted = &series->tensors[lacking].tensor;
    return fail_missing(tensor_table, snapshot, wanted->name, wanted->name_size, false, err);
}
