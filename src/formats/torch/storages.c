// SPDX-License-Identifier: Apache-2.0
/* storages.c - Persistent ids to storages, and views of storages to tensors. Conflicting ids are
 * refused; torch trusts the first id of a key (torch/serialization.py). */
#include <stdlib.h>

#include "format.h"
#include "phema/strbuf.h"
#include "torch/torch.h"

/* ('storage', class, key, location, length[, None]) */
static enum phema_status parse_id(struct pickle_storage *storage, const struct pickle_node *id,
                                  size_t n_fields, struct phema_error *err)
{
    static const uint8_t kinds[] = {PICKLE_TEXT, PICKLE_GLOBAL, PICKLE_TEXT,
                                    PICKLE_TEXT, PICKLE_INT,    PICKLE_NONE};
    size_t n = id->kind == PICKLE_TUPLE ? id->items.n : 0;
    if (n_fields == 6 && n == 6 && id->items.at[5]->kind != PICKLE_NONE)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "has a storage that is a view of another one, which is not read; save it "
                          "again with a newer torch");
    bool is = n == n_fields;
    for (size_t i = 0; i < n && is; i++)
        is = id->items.at[i]->kind == kinds[i];
    if (!is || !pickle_is_text(id->items.at[0], "storage") || !pickle_is_count(id->items.at[4]))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a persistent id ('storage', class, key, location, length%s)",
                          n_fields == 6 ? ", None" : "");
    const struct pickle_global *class = id->items.at[1]->global;
    bool is_untyped = class->action == ACTION_UNTYPED_STORAGE_CLASS;
    if (!is_untyped && class->action != ACTION_STORAGE_CLASS)
        return phema_fail(err, PHEMA_ERR_FILE, "'%s' is no class of storages with a dtype",
                          class->name);
    *storage = (struct pickle_storage){
        .key = id->items.at[2]->span,
        .dtype = is_untyped ? PHEMA_U8 : class->dtype,
        .is_untyped = is_untyped,
        .n_elems = (uint64_t)id->items.at[4]->integer,
    };
    return PHEMA_OK;
}

struct pickle_storage *torch_storages_named(const struct torch_storages *storages,
                                            struct phema_span key)
{
    size_t index = 0;
    if (!name_table_find(&index, &storages->keys, (const char *)key.data, key.size))
        return NULL;
    return storages->all[index];
}

static enum phema_status add(struct pickle_storage **out, struct torch_storages *storages,
                             const struct pickle_storage *met, struct phema_error *err)
{
    struct pickle_storage *storage = phema_arena_alloc(storages->arena, sizeof(*storage));
    if (!storage || !phema_array_grow(&storages->all, &storages->capacity, storages->n,
                                      sizeof(struct pickle_storage *)))
        return phema_fail_memory(err);
    *storage = *met;
    if (!phema_size_mul(&storage->size_bytes, met->n_elems, phema_dtype_bits(met->dtype) / 8))
        return phema_fail(err, PHEMA_ERR_FILE, "%llu elements of %s overflow",
                          (unsigned long long)met->n_elems, phema_dtype_name(met->dtype));
    if (storages->place) {
        enum phema_status status = storages->place(storage, storages->context, err);
        if (status)
            return status;
    }
    if (name_table_add(&storages->keys, (const char *)storage->key.data, storage->key.size,
                       storages->n) != NAME_ADDED)
        return phema_fail_memory(err);
    storages->all[storages->n++] = storage;
    *out = storage;
    return PHEMA_OK;
}

enum phema_status torch_storages_find(struct pickle_storage **out, void *storages,
                                      const struct pickle_node *id, struct phema_error *err)
{
    struct torch_storages *known = storages;
    struct pickle_storage met;
    enum phema_status status = parse_id(&met, id, known->n_id_fields, err);
    if (status)
        return status;
    struct pickle_storage *seen = torch_storages_named(known, met.key);
    if (!seen)
        status = add(out, known, &met, err);
    else if (seen->dtype == met.dtype && seen->is_untyped == met.is_untyped &&
             seen->n_elems == met.n_elems)
        *out = seen;
    else
        status =
            phema_fail(err, PHEMA_ERR_FILE, "is named twice, with different classes or lengths");
    return status ? torch_storage_fail_in(err, status, met.key) : PHEMA_OK;
}

enum phema_status torch_storage_fail_in(struct phema_error *err, enum phema_status status,
                                        struct phema_span key)
{
    struct phema_name_buffer shown;
    return phema_fail_in(err, status, "storage '%s'",
                         phema_name_escape(&shown, (const char *)key.data, key.size));
}

void torch_storages_clear(struct torch_storages *storages)
{
    name_table_clear(&storages->keys);
    free(storages->all);
}

/* ---- Views ---- */

/* Sizes and strides of a view into the arena; strides stay NULL for C order, in which sizes of 1
 * may have any stride. */
static enum phema_status lay_out(struct phema_tensor *tensor, struct phema_arena *arena,
                                 const struct pickle_tensor *view, struct phema_error *err)
{
    size_t rank = view->sizes->items.n;
    uint64_t *shape = phema_arena_array(arena, 2 * rank, sizeof(*shape));
    if (!shape)
        return phema_fail_memory(err);
    uint64_t *stride = shape + rank;
    uint64_t n_elems = 1;
    bool is_empty = false;
    for (size_t i = 0; i < rank; i++) {
        shape[i] = (uint64_t)view->sizes->items.at[i]->integer;
        stride[i] = (uint64_t)view->strides->items.at[i]->integer;
        is_empty |= shape[i] == 0;
    }
    bool is_c_order = true;
    for (size_t i = rank; i-- > 0 && !is_empty;) {
        is_c_order &= shape[i] == 1 || stride[i] == n_elems;
        n_elems *= shape[i]; /* the product was checked when the tensor was rebuilt */
    }
    if (is_empty)
        n_elems = 0;
    if (view->is_packed) {
        if (rank == 0 || !is_c_order || shape[rank - 1] > UINT64_MAX / 2)
            return phema_fail(
                err, PHEMA_ERR_FILE,
                "a view of packed float4 elements that is not in C order is not read");
        shape[rank - 1] *= 2;
        n_elems *= 2;
    }
    tensor->rank = (unsigned)rank;
    tensor->shape = shape;
    tensor->stride = is_c_order ? NULL : stride;
    tensor->n_elems = n_elems;
    return PHEMA_OK;
}

enum phema_status torch_place_tensor(struct phema_tensor *tensor, struct phema_arena *arena,
                                     const struct pickle_tensor *view, struct phema_error *err)
{
    enum phema_status status = lay_out(tensor, arena, view, err);
    if (status)
        return status;
    unsigned bits = view->is_packed ? 8 : phema_dtype_bits(view->dtype);
    tensor->dtype = view->dtype;
    tensor->file = view->storage->file;
    tensor->offset = view->storage->offset;
    tensor->size_bytes = tensor->n_elems / (view->is_packed ? 2 : 1) * bits / 8;
    if (tensor->n_elems) /* an empty view may claim to begin anywhere: then it begins with the
                            storage */
        tensor->offset += view->first * bits / 8;
    return PHEMA_OK;
}
