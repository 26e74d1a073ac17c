// SPDX-License-Identifier: Apache-2.0
/* series_packed.c - what a run needs of a series, as bytes for another process, and back. */
#include <stdlib.h>
#include <string.h>

#include "phema/packed.h"
#include "phema/series.h"

/* ---- Places ---- */

/* chunks: NULL for none */
static void pack_chunks(struct phema_packer *packer, const struct phema_chunk **chunks, size_t *n,
                        unsigned rank, size_t n_files)
{
    *n = *chunks ? *n : 0;
    phema_pack_count(packer, n, 24);
    struct phema_chunk *items = *n ? phema_pack_array(packer, *chunks, *n, sizeof(*items)) : NULL;
    for (size_t i = 0; items && i < *n; i++) {
        phema_pack_u64s(packer, &items[i].start, rank);
        phema_pack_u64s(packer, &items[i].size, rank);
        if (phema_pack_presence(packer, items[i].stride != NULL))
            phema_pack_u64s(packer, &items[i].stride, rank);
        phema_pack_index(packer, &items[i].file, n_files);
        phema_pack_u64(packer, &items[i].offset);
    }
    *chunks = items;
}

static enum phema_dtype pack_dtype(struct phema_packer *packer, enum phema_dtype dtype)
{
    return (enum phema_dtype)phema_pack_choice(packer, dtype, PHEMA_N_DTYPES);
}

static void pack_rank(struct phema_packer *packer, unsigned *rank)
{
    *rank = phema_pack_choice(packer, *rank, PHEMA_MAX_RANK + 1);
}

/* Returns the scaling, which may be NULL. n_files: SIZE_MAX for tables of numbers, which have no
 * file. */
static const struct phema_scaling *pack_scaling(const struct phema_scaling *scaling,
                                                struct phema_packer *packer, size_t n_files)
{
    if (!phema_pack_presence(packer, scaling != NULL))
        return NULL;
    struct phema_scaling *s = phema_pack_array(packer, scaling, 1, sizeof(*s));
    if (!s)
        return NULL;
    phema_pack_bytes(packer, &s->name, &s->name_size);
    s->codes = pack_dtype(packer, s->codes);
    s->dtype = pack_dtype(packer, s->dtype);
    phema_pack_bool(packer, &s->is_power_of_two);
    phema_pack_u64(packer, &s->rows);
    phema_pack_u64(packer, &s->columns);
    phema_pack_u64(packer, &s->block_rows);
    phema_pack_u64(packer, &s->block_columns);
    phema_pack_u64(packer, &s->scale_rows);
    phema_pack_u64(packer, &s->scale_columns);
    phema_pack_u64(packer, &s->distance);
    phema_pack_index(packer, &s->file, n_files);
    phema_pack_u64(packer, &s->n_elems);
    pack_rank(packer, &s->rank);
    phema_pack_u64s(packer, &s->shape, s->rank);
    pack_chunks(packer, &s->chunks, &s->n_chunks, s->rank, n_files);
    const char *values = (const char *)(const void *)s->values;
    size_t size = (size_t)s->n_elems * sizeof(float);
    if (phema_pack_presence(packer, values != NULL)) {
        phema_pack_bytes(packer, &values, &size);
        packer->is_damaged = packer->is_damaged || size / sizeof(float) != s->n_elems;
        s->values = (const float *)(const void *)values;
    }
    return s;
}

struct phema_tensor_location *phema_locations_pack(const struct phema_tensor_location *locations,
                                                   struct phema_packer *packer,
                                                   const struct phema_series *series,
                                                   size_t n_files)
{
    struct phema_tensor_location *items =
        phema_pack_array(packer, locations, series->n_tensors, sizeof(*items));
    for (size_t i = 0; items && i < series->n_tensors; i++) {
        struct phema_tensor_location *location = &items[i];
        unsigned rank = series->tensors[i].tensor.rank;
        phema_pack_u64(packer, &location->offset);
        phema_pack_index(packer, &location->file, n_files);
        phema_pack_bool(packer, &location->is_widened);
        location->stored_dtype = pack_dtype(packer, location->stored_dtype);
        if (phema_pack_presence(packer, location->stride != NULL))
            phema_pack_u64s(packer, &location->stride, rank);
        pack_chunks(packer, &location->chunks, &location->n_chunks, rank, n_files);
        location->scaling = pack_scaling(location->scaling, packer, n_files);
    }
    return items;
}

/* ---- Tensors ---- */

static void pack_tensor(struct phema_packer *packer, struct phema_series_tensor *entry, size_t n)
{
    struct phema_tensor *tensor = &entry->tensor;
    phema_pack_bytes(packer, &tensor->name, &tensor->name_size);
    tensor->dtype = pack_dtype(packer, tensor->dtype);
    tensor->kind =
        (enum phema_tensor_kind)phema_pack_choice(packer, tensor->kind, PHEMA_KIND_FROZEN + 1);
    pack_rank(packer, &tensor->rank);
    phema_pack_u64s(packer, &tensor->shape, tensor->rank);
    phema_pack_u64(packer, &tensor->n_elems);
    phema_pack_u64(packer, &tensor->size_bytes);
    phema_pack_bool(packer, &tensor->is_widened);
    tensor->stored_dtype = pack_dtype(packer, tensor->stored_dtype);
    tensor->scaling = pack_scaling(tensor->scaling, packer, SIZE_MAX); /* locations have its file */
    entry->rule = (enum phema_rule)phema_pack_choice(packer, entry->rule, PHEMA_RULE_COPY + 1);
    phema_pack_text(packer, &entry->reason);
    phema_pack_index(packer, &entry->same_as, n);
    size_t scale = entry->scale + 1; /* 0: none */
    phema_pack_index(packer, &scale, n + 1);
    entry->scale = scale - 1;
}

/* ---- Snapshots ---- */

static enum phema_status pack_snapshot(struct phema_series *series, size_t k,
                                       struct phema_packer *packer, struct phema_error *err)
{
    struct phema_snapshot *snapshot = &series->snapshots[k];
    phema_pack_text(packer, &snapshot->path);
    phema_pack_text(packer, &snapshot->label);
    phema_pack_double(packer, &snapshot->named_time);
    phema_pack_double(packer, &snapshot->time);
    const char *digest = snapshot->digest;
    size_t digest_size = sizeof(snapshot->digest) - 1;
    phema_pack_bytes(packer, &digest, &digest_size);
    if (phema_pack_receives(packer) && digest && digest_size == sizeof(snapshot->digest) - 1)
        memcpy(snapshot->digest, digest, digest_size);
    phema_pack_bool(packer, &snapshot->is_checkpoint_shared);
    phema_pack_bool(packer, &snapshot->is_compressed);
    enum phema_status status = phema_pack_check(packer, err);
    if (status)
        return status;
    if (!snapshot->label || (snapshot->is_checkpoint_shared && !k))
        return phema_fail(err, PHEMA_BUG, "a snapshot that cannot be was sent");
    if (!snapshot->is_checkpoint_shared)
        status = phema_checkpoint_pack(&snapshot->checkpoint, packer, err);
    else if (phema_pack_receives(packer))
        snapshot->checkpoint = snapshot[-1].checkpoint;
    if (status)
        return status;
    if (phema_pack_receives(packer))
        series->n = k + 1; /* closed with the series from here on */
    phema_pack_u64(packer, &snapshot->shift);
    size_t table = k && snapshot[-1].locations == snapshot->locations ? k - 1 : 0;
    while (!phema_pack_receives(packer) && /* the first snapshot that has its table */
           series->snapshots[table].locations != snapshot->locations)
        table++;
    phema_pack_index(packer, &table, k + 1);
    snapshot->locations =
        table < k ? series->snapshots[table].locations
                  : phema_locations_pack(snapshot->locations, packer, series,
                                         phema_checkpoint_n_files(snapshot->checkpoint));
    return phema_pack_check(packer, err);
}

/* ---- Series ---- */

static enum phema_status pack(struct phema_series *series, struct phema_packer *packer,
                              struct phema_error *err)
{
    size_t n = series->n;
    phema_pack_count(packer, &series->n_tensors, 64);
    series->tensors =
        phema_pack_array(packer, series->tensors, series->n_tensors, sizeof(*series->tensors));
    for (size_t i = 0; series->tensors && i < series->n_tensors; i++)
        pack_tensor(packer, &series->tensors[i], series->n_tensors);
    phema_pack_count(packer, &n, 64);
    enum phema_status status = phema_pack_check(packer, err);
    series->snapshots =
        phema_pack_owned_array(packer, series->snapshots, n, sizeof(*series->snapshots));
    if (!status && (!series->snapshots || (series->n_tensors && !series->tensors)))
        status = phema_fail_memory(err);
    for (size_t k = 0; k < n && !status; k++)
        status = pack_snapshot(series, k, packer, err);
    return status || !phema_pack_receives(packer) ? status : phema_claims_new(&series->claims, err);
}

PHEMA_FALLIBLE phema_series_pack(struct phema_series **series, struct phema_packer *packer,
                                 struct phema_error *err)
{
    if (!phema_pack_receives(packer))
        return pack(*series, packer, err);
    struct phema_series *received = calloc(1, sizeof(*received));
    if (!received)
        return phema_fail_memory(err);
    packer->arena = &received->memory;
    enum phema_status status = pack(received, packer, err);
    if (status)
        phema_series_close(received);
    else
        *series = received;
    return status;
}
