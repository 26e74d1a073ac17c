// SPDX-License-Identifier: Apache-2.0
/* series_packed.c - what a run needs of a series, as bytes for another process, and back. */
#include <stdlib.h>
#include <string.h>

#include "phema/packed.h"
#include "phema/series.h"

/* ---- Places ---- */

static void pack_chunks(struct phema_strbuf *out, const struct phema_chunk *chunks, size_t n,
                        unsigned rank)
{
    phema_pack_u64(out, chunks ? n : 0);
    for (size_t i = 0; chunks && i < n; i++) {
        phema_pack_u64s(out, chunks[i].start, rank);
        phema_pack_u64s(out, chunks[i].size, rank);
        phema_pack_u64(out, chunks[i].stride != NULL);
        if (chunks[i].stride)
            phema_pack_u64s(out, chunks[i].stride, rank);
        phema_pack_u64(out, chunks[i].file);
        phema_pack_u64(out, chunks[i].offset);
    }
}

/* NULL: no chunks. */
static const struct phema_chunk *unpack_chunks(size_t *n, struct phema_unpacker *in, unsigned rank,
                                               size_t n_files)
{
    *n = phema_unpack_count(in, 24);
    struct phema_chunk *chunks = *n ? phema_unpack_array(in, *n, sizeof(*chunks)) : NULL;
    for (size_t i = 0; chunks && i < *n; i++) {
        chunks[i].start = phema_unpack_u64s(in, rank);
        chunks[i].size = phema_unpack_u64s(in, rank);
        chunks[i].stride = phema_unpack_bool(in) ? phema_unpack_u64s(in, rank) : NULL;
        chunks[i].file = phema_unpack_index(in, n_files);
        chunks[i].offset = phema_unpack_u64(in);
    }
    return chunks;
}

static void pack_scaling(struct phema_strbuf *out, const struct phema_scaling *scaling)
{
    phema_pack_u64(out, scaling != NULL);
    if (!scaling)
        return;
    phema_pack_bytes(out, scaling->name, scaling->name_size);
    phema_pack_u64(out, scaling->codes);
    phema_pack_u64(out, scaling->dtype);
    phema_pack_u64(out, scaling->is_power_of_two);
    phema_pack_u64s(out,
                    (const uint64_t[]){scaling->rows, scaling->columns, scaling->block_rows,
                                       scaling->block_columns, scaling->scale_rows,
                                       scaling->scale_columns, scaling->distance, scaling->file,
                                       scaling->n_elems},
                    9);
    phema_pack_u64(out, scaling->rank);
    phema_pack_u64s(out, scaling->shape, scaling->rank);
    pack_chunks(out, scaling->chunks, scaling->n_chunks, scaling->rank);
    phema_pack_u64(out, scaling->values != NULL);
    if (scaling->values)
        phema_pack_bytes(out, scaling->values, (size_t)scaling->n_elems * sizeof(float));
}

static enum phema_dtype unpack_dtype(struct phema_unpacker *in)
{
    return (enum phema_dtype)phema_unpack_index(in, PHEMA_N_DTYPES);
}

/* SIZE_MAX: of the numbers of a table, which have no file. */
static const struct phema_scaling *unpack_scaling(struct phema_unpacker *in, size_t n_files)
{
    if (!phema_unpack_bool(in))
        return NULL;
    struct phema_scaling *scaling = phema_unpack_array(in, 1, sizeof(*scaling));
    if (!scaling)
        return NULL;
    scaling->name = phema_unpack_text(in, &scaling->name_size);
    scaling->codes = unpack_dtype(in);
    scaling->dtype = unpack_dtype(in);
    scaling->is_power_of_two = phema_unpack_bool(in);
    scaling->rows = phema_unpack_u64(in);
    scaling->columns = phema_unpack_u64(in);
    scaling->block_rows = phema_unpack_u64(in);
    scaling->block_columns = phema_unpack_u64(in);
    scaling->scale_rows = phema_unpack_u64(in);
    scaling->scale_columns = phema_unpack_u64(in);
    scaling->distance = phema_unpack_u64(in);
    scaling->file = phema_unpack_index(in, n_files);
    scaling->n_elems = phema_unpack_u64(in);
    scaling->rank = (unsigned)phema_unpack_index(in, PHEMA_MAX_RANK + 1);
    scaling->shape = phema_unpack_u64s(in, scaling->rank);
    scaling->chunks = unpack_chunks(&scaling->n_chunks, in, scaling->rank, n_files);
    if (phema_unpack_bool(in)) {
        size_t size = 0;
        scaling->values = (const float *)(const void *)phema_unpack_text(in, &size);
        in->is_damaged = in->is_damaged || size / sizeof(float) != scaling->n_elems;
    }
    return scaling;
}

void phema_locations_pack(struct phema_strbuf *out, const struct phema_series *series,
                          const struct phema_tensor_location *locations)
{
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_tensor_location *location = &locations[i];
        unsigned rank = series->tensors[i].tensor.rank;
        phema_pack_u64(out, location->offset);
        phema_pack_u64(out, location->file);
        phema_pack_u64(out, location->is_widened);
        phema_pack_u64(out, location->stored_dtype);
        phema_pack_u64(out, location->stride != NULL);
        if (location->stride)
            phema_pack_u64s(out, location->stride, rank);
        pack_chunks(out, location->chunks, location->n_chunks, rank);
        pack_scaling(out, location->scaling);
    }
}

struct phema_tensor_location *
phema_locations_unpack(struct phema_unpacker *in, const struct phema_series *series, size_t n_files)
{
    struct phema_tensor_location *locations =
        phema_unpack_array(in, series->n_tensors, sizeof(*locations));
    for (size_t i = 0; locations && i < series->n_tensors; i++) {
        struct phema_tensor_location *location = &locations[i];
        unsigned rank = series->tensors[i].tensor.rank;
        location->offset = phema_unpack_u64(in);
        location->file = phema_unpack_index(in, n_files);
        location->is_widened = phema_unpack_bool(in);
        location->stored_dtype = unpack_dtype(in);
        location->stride = phema_unpack_bool(in) ? phema_unpack_u64s(in, rank) : NULL;
        location->chunks = unpack_chunks(&location->n_chunks, in, rank, n_files);
        location->scaling = unpack_scaling(in, n_files);
    }
    return locations;
}

/* ---- Tensors ---- */

static void pack_tensor(struct phema_strbuf *out, const struct phema_series_tensor *entry)
{
    const struct phema_tensor *tensor = &entry->tensor;
    phema_pack_bytes(out, tensor->name, tensor->name_size);
    phema_pack_u64(out, tensor->dtype);
    phema_pack_u64(out, tensor->kind);
    phema_pack_u64(out, tensor->rank);
    phema_pack_u64s(out, tensor->shape, tensor->rank);
    phema_pack_u64(out, tensor->n_elems);
    phema_pack_u64(out, tensor->size_bytes);
    phema_pack_u64(out, tensor->is_widened);
    phema_pack_u64(out, tensor->stored_dtype);
    pack_scaling(out, tensor->scaling);
    phema_pack_u64(out, entry->rule);
    phema_pack_text(out, entry->reason);
    phema_pack_u64(out, entry->same_as);
    phema_pack_u64(out, entry->scale == SIZE_MAX ? 0 : entry->scale + 1);
}

static void unpack_tensor(struct phema_series_tensor *entry, struct phema_unpacker *in, size_t n)
{
    struct phema_tensor *tensor = &entry->tensor;
    tensor->name = phema_unpack_text(in, &tensor->name_size);
    tensor->dtype = unpack_dtype(in);
    tensor->kind = (enum phema_tensor_kind)phema_unpack_index(in, PHEMA_KIND_ACTIVATION_SCALE + 1);
    tensor->rank = (unsigned)phema_unpack_index(in, PHEMA_MAX_RANK + 1);
    tensor->shape = phema_unpack_u64s(in, tensor->rank);
    tensor->n_elems = phema_unpack_u64(in);
    tensor->size_bytes = phema_unpack_u64(in);
    tensor->is_widened = phema_unpack_bool(in);
    tensor->stored_dtype = unpack_dtype(in);
    tensor->scaling = unpack_scaling(in, SIZE_MAX); /* its file is that of locations */
    entry->rule = (enum phema_rule)phema_unpack_index(in, PHEMA_RULE_COPY + 1);
    entry->reason = phema_unpack_text(in, NULL);
    entry->same_as = phema_unpack_index(in, n);
    size_t scale = phema_unpack_index(in, n + 1);
    entry->scale = scale ? scale - 1 : SIZE_MAX;
}

/* ---- Snapshots ---- */

/* The first snapshot that has this table of locations. */
static size_t find_table(const struct phema_series *series, size_t k)
{
    size_t first = k ? k - 1 : 0;
    if (series->snapshots[first].locations != series->snapshots[k].locations)
        for (first = 0; series->snapshots[first].locations != series->snapshots[k].locations;)
            first++;
    return first;
}

static void pack_snapshot(struct phema_strbuf *out, const struct phema_series *series, size_t k)
{
    const struct phema_snapshot *snapshot = &series->snapshots[k];
    phema_pack_text(out, snapshot->path);
    phema_pack_text(out, snapshot->label);
    phema_pack_double(out, snapshot->named_time);
    phema_pack_double(out, snapshot->time);
    phema_pack_bytes(out, snapshot->digest, sizeof(snapshot->digest) - 1);
    phema_pack_u64(out, snapshot->is_checkpoint_shared);
    phema_pack_u64(out, snapshot->is_compressed);
    if (!snapshot->is_checkpoint_shared)
        phema_checkpoint_pack(out, snapshot->checkpoint);
    phema_pack_u64(out, snapshot->shift);
    size_t table = find_table(series, k);
    phema_pack_u64(out, table);
    if (table == k)
        phema_locations_pack(out, series, snapshot->locations);
}

static enum phema_status unpack_snapshot(struct phema_series *series, size_t k,
                                         struct phema_unpacker *in, struct phema_error *err)
{
    struct phema_snapshot *snapshot = &series->snapshots[k];
    size_t size = 0;
    snapshot->path = phema_unpack_text(in, NULL);
    snapshot->label = phema_unpack_text(in, NULL);
    snapshot->named_time = phema_unpack_double(in);
    snapshot->time = phema_unpack_double(in);
    const char *digest = phema_unpack_text(in, &size);
    if (digest && size == sizeof(snapshot->digest) - 1)
        memcpy(snapshot->digest, digest, size);
    snapshot->is_checkpoint_shared = phema_unpack_bool(in);
    snapshot->is_compressed = phema_unpack_bool(in);
    enum phema_status status = phema_unpack_check(in, err);
    if (status)
        return status;
    if (!snapshot->label || (snapshot->is_checkpoint_shared && !k))
        return phema_fail(err, PHEMA_BUG, "a snapshot that cannot be was sent");
    if (snapshot->is_checkpoint_shared)
        snapshot->checkpoint = snapshot[-1].checkpoint;
    else
        status = phema_checkpoint_unpack(&snapshot->checkpoint, in, err);
    if (status)
        return status;
    series->n = k + 1; /* closed with the series from here on */
    snapshot->shift = phema_unpack_u64(in);
    size_t table = phema_unpack_index(in, k + 1);
    snapshot->locations =
        table < k
            ? series->snapshots[table].locations
            : phema_locations_unpack(in, series, phema_checkpoint_n_files(snapshot->checkpoint));
    return phema_unpack_check(in, err);
}

/* ---- Series ---- */

void phema_series_pack(struct phema_strbuf *out, const struct phema_series *series)
{
    phema_pack_u64(out, series->n_tensors);
    for (size_t i = 0; i < series->n_tensors; i++)
        pack_tensor(out, &series->tensors[i]);
    phema_pack_u64(out, series->n);
    for (size_t k = 0; k < series->n; k++)
        pack_snapshot(out, series, k);
}

static enum phema_status unpack(struct phema_series *series, struct phema_unpacker *in,
                                struct phema_error *err)
{
    series->n_tensors = phema_unpack_count(in, 64);
    series->tensors = phema_unpack_array(in, series->n_tensors, sizeof(*series->tensors));
    for (size_t i = 0; series->tensors && i < series->n_tensors; i++)
        unpack_tensor(&series->tensors[i], in, series->n_tensors);
    size_t n = phema_unpack_count(in, 64);
    enum phema_status status = phema_unpack_check(in, err);
    series->snapshots = calloc(n + 1, sizeof(*series->snapshots));
    if (!status && (!series->snapshots || (series->n_tensors && !series->tensors)))
        status = phema_fail_memory(err);
    for (size_t k = 0; k < n && !status; k++)
        status = unpack_snapshot(series, k, in, err);
    return status ? status : phema_claims_new(&series->claims, err);
}

PHEMA_FALLIBLE phema_series_unpack(struct phema_series **out, struct phema_unpacker *in,
                                   struct phema_error *err)
{
    struct phema_series *series = calloc(1, sizeof(*series));
    if (!series)
        return phema_fail_memory(err);
    in->arena = &series->memory;
    enum phema_status status = unpack(series, in, err);
    if (status)
        phema_series_close(series);
    else
        *out = series;
    return status;
}
