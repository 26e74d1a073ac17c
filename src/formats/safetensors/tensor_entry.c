// SPDX-License-Identifier: Apache-2.0
/* tensor_entry.c - One tensor's entry in the header: dtype, shape, offsets. */
#include "safetensors/tensor_entry.h"

#include <string.h>

#include "format.h"
#include "phema/strbuf.h"

struct entry {
    struct phema_tensor tensor;
    struct json_lexer *scan;
    struct phema_arena *arena;
    uint64_t begin, end;
    bool has_dtype, has_shape, has_offsets;
};

static enum phema_status read_dtype(struct entry *entry, struct phema_error *err)
{
    struct phema_span name = {NULL, 0};
    enum phema_status status = json_lexer_string(&name, entry->scan, entry->arena, err);
    if (status)
        return status;
    struct phema_name_buffer shown;
    if (!phema_dtype_from_name(&entry->tensor.dtype, (const char *)name.data, name.size) ||
        entry->tensor.dtype == PHEMA_C128)
        return phema_fail(err, PHEMA_ERR_FILE, "safetensors has no dtype '%s'",
                          phema_name_escape(&shown, (const char *)name.data, name.size));
    return PHEMA_OK;
}

static enum phema_status read_shape(struct entry *entry, struct phema_error *err)
{
    uint64_t shape[PHEMA_MAX_RANK];
    unsigned rank = 0;
    if (!json_lexer_accept(entry->scan, '['))
        return json_lexer_fail(entry->scan, "a list of sizes", err);
    bool is_end = json_lexer_accept(entry->scan, ']');
    while (!is_end) {
        if (rank == PHEMA_MAX_RANK)
            return phema_fail(err, PHEMA_ERR_FILE, "the shape has more than %d dimensions",
                              PHEMA_MAX_RANK);
        enum phema_status status = json_lexer_u64(&shape[rank], entry->scan, err);
        if (status)
            return status;
        rank++;
        is_end = json_lexer_accept(entry->scan, ']');
        if (!is_end && !json_lexer_accept(entry->scan, ','))
            return json_lexer_fail(entry->scan, "',' or ']'", err);
    }
    uint64_t *kept = phema_arena_array(entry->arena, rank, sizeof(*kept));
    if (!kept)
        return phema_fail_memory(err);
    memcpy(kept, shape, rank * sizeof(*kept));
    entry->tensor.shape = kept;
    entry->tensor.rank = rank;
    return PHEMA_OK;
}

static enum phema_status read_offsets(struct entry *entry, struct phema_error *err)
{
    if (!json_lexer_accept(entry->scan, '['))
        return json_lexer_fail(entry->scan, "a list of two offsets", err);
    enum phema_status status = json_lexer_u64(&entry->begin, entry->scan, err);
    if (status)
        return status;
    if (!json_lexer_accept(entry->scan, ','))
        return json_lexer_fail(entry->scan, "','", err);
    status = json_lexer_u64(&entry->end, entry->scan, err);
    if (status)
        return status;
    if (!json_lexer_accept(entry->scan, ']'))
        return json_lexer_fail(entry->scan, "']' after two offsets", err);
    return PHEMA_OK;
}

static const struct field {
    const char *name;
    size_t has; /* offset of its flag in struct entry */
    enum phema_status (*read)(struct entry *entry, struct phema_error *err);
} fields[] = {
    {"dtype", offsetof(struct entry, has_dtype), read_dtype},
    {"shape", offsetof(struct entry, has_shape), read_shape},
    {"data_offsets", offsetof(struct entry, has_offsets), read_offsets},
};

static enum phema_status read_field(struct entry *entry, struct phema_error *err)
{
    struct phema_span key = {NULL, 0};
    enum phema_status status = json_lexer_string(&key, entry->scan, entry->arena, err);
    if (status)
        return status;
    if (!json_lexer_accept(entry->scan, ':'))
        return json_lexer_fail(entry->scan, "':'", err);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (!span_is(key, fields[i].name))
            continue;
        bool *has = (bool *)((char *)entry + fields[i].has);
        if (*has)
            return phema_fail(err, PHEMA_ERR_FILE, "duplicate key '%s'", fields[i].name);
        *has = true;
        return fields[i].read(entry, err);
    }
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_FILE,
                      "expected the fields dtype, shape and data_offsets alone, found '%s'",
                      phema_name_escape(&shown, (const char *)key.data, key.size));
}

static enum phema_status read_fields(struct entry *entry, struct phema_error *err)
{
    if (!json_lexer_accept(entry->scan, '{'))
        return json_lexer_fail(entry->scan, "an object", err);
    bool is_end = json_lexer_accept(entry->scan, '}');
    while (!is_end) {
        enum phema_status status = read_field(entry, err);
        if (status)
            return status;
        is_end = json_lexer_accept(entry->scan, '}');
        if (!is_end && !json_lexer_accept(entry->scan, ','))
            return json_lexer_fail(entry->scan, "',' or '}'", err);
    }
    if (!entry->has_dtype || !entry->has_shape || !entry->has_offsets)
        return phema_fail(err, PHEMA_ERR_FILE, "lacks %s",
                          !entry->has_dtype   ? "dtype"
                          : !entry->has_shape ? "shape"
                                              : "data_offsets");
    return PHEMA_OK;
}

/* Checks that the length by the offsets equals the length by the shape. */
static enum phema_status check_entry(struct entry *entry, uint64_t data_size,
                                     struct phema_error *err)
{
    struct phema_tensor *tensor = &entry->tensor;
    if (entry->begin > entry->end || entry->end > data_size)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected data_offsets in order and inside the %llu bytes of data, found "
                          "[%llu, %llu]",
                          (unsigned long long)data_size, (unsigned long long)entry->begin,
                          (unsigned long long)entry->end);
    unsigned bits = phema_dtype_bits(tensor->dtype);
    uint64_t n_elems = 1;
    uint64_t n_bits = 0;
    bool fits = true;
    for (unsigned i = 0; i < tensor->rank && fits; i++)
        fits = phema_size_mul(&n_elems, n_elems, tensor->shape[i]);
    if (!fits || !phema_size_mul(&n_bits, n_elems, bits))
        return phema_fail(err, PHEMA_ERR_FILE, "the product of the shape overflows");
    if (n_bits % 8 || n_bits / 8 != entry->end - entry->begin)
        return phema_fail(
            err, PHEMA_ERR_FILE, "expected %llu elements of %u bits, found %llu bytes",
            (unsigned long long)n_elems, bits, (unsigned long long)(entry->end - entry->begin));
    tensor->n_elems = n_elems;
    tensor->size_bytes = n_bits / 8;
    tensor->offset = entry->begin;
    return PHEMA_OK;
}

enum phema_status safetensors_entry_read(struct phema_tensor *tensor, struct json_lexer *scan,
                                         struct phema_arena *arena, uint64_t data_size,
                                         struct phema_error *err)
{
    struct entry entry = {.tensor = *tensor, .scan = scan, .arena = arena};
    enum phema_status status = read_fields(&entry, err);
    if (!status)
        status = check_entry(&entry, data_size, err);
    if (!status)
        *tensor = entry.tensor;
    return status;
}
