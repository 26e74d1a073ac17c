// SPDX-License-Identifier: Apache-2.0
/* safetensors.c - reading one safetensors file (format 0.x of the Rust library; docs/formats/
 * safetensors.md). Stricter than the library: duplicate keys and unknown fields are refused. */
#include "format.h"

#include <stdlib.h>
#include <string.h>

#include "json_scan.h"
#include "phema/text.h"

struct header {
    struct phema_checkpoint *checkpoint;
    size_t file;
    struct json_scan scan;
    uint64_t data_offset; /* 8 + N */
    uint64_t data_size;   /* or the most that 64 bits can count behind the header */
    bool is_open_ended;   /* nobody has counted the data: they end with the last tensor */
    bool takes_metadata;
    bool has_metadata;
};

static bool span_is(struct phema_span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

static bool probe(struct phema_span content)
{
    if (content.size < 9)
        return false;
    uint64_t size = phema_load_u64(content.data);
    return size <= SAFETENSORS_MAX_HEADER_BYTES && size <= content.size - 8 &&
           content.data[8] == '{';
}

/* The JSON, which then lies inside the file. */
static enum phema_status find_header(struct phema_span *out, struct phema_span content,
                                     struct phema_error *err)
{
    if (content.size < 8)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "%zu bytes are too few for a safetensors header; the file is damaged or "
                          "no checkpoint",
                          content.size);
    uint64_t size = phema_load_u64(content.data);
    if (size > SAFETENSORS_MAX_HEADER_BYTES || size > content.size - 8)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a safetensors header of at most %u bytes inside the file of "
                          "%zu bytes, found a length of %llu; the file is cut short, damaged or no "
                          "checkpoint",
                          SAFETENSORS_MAX_HEADER_BYTES, content.size, (unsigned long long)size);
    *out = (struct phema_span){content.data + 8, (size_t)size};
    return PHEMA_OK;
}

static enum phema_status check_text(struct phema_span json, struct phema_error *err)
{
    if (json.size == 0 || json.data[0] != '{')
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected '{' as the first byte of the safetensors header; the file is "
                          "damaged or no checkpoint");
    if (!phema_is_utf8((const char *)json.data, json.size))
        return phema_fail(err, PHEMA_ERR_FILE, "the safetensors header is not valid UTF-8");
    return PHEMA_OK;
}

/* Copies a string that was read into the arena, with a NUL behind it. */
static enum phema_status keep(const char **out, struct header *header, struct phema_span text,
                              struct phema_error *err)
{
    *out = phema_arena_copy(&header->checkpoint->arena, text.data, text.size);
    return *out ? PHEMA_OK : fail_memory(err);
}

static enum phema_status read_pair(struct header *header, struct name_index *keys,
                                   struct phema_error *err)
{
    struct phema_arena *arena = &header->checkpoint->arena;
    struct phema_span key = {NULL, 0};
    struct phema_span value = {NULL, 0};
    enum phema_status status = json_scan_string(&key, &header->scan, arena, err);
    if (status)
        return status;
    if (!json_scan_take(&header->scan, ':'))
        return json_scan_fail(&header->scan, "':'", err);
    status = json_scan_string(&value, &header->scan, arena, err);
    if (status)
        return status;

    struct phema_name_buffer shown;
    switch (name_index_add(keys, (const char *)key.data, key.size, 0)) {
    case NAME_NO_MEMORY:
        return fail_memory(err);
    case NAME_EXISTS:
        return phema_fail(err, PHEMA_ERR_FILE, "duplicate key '%s'",
                          phema_name_shown(&shown, (const char *)key.data, key.size));
    case NAME_ADDED:
        break;
    }
    if (span_is(key, "DCP_SHARDING_INFO")) /* its tensors are pieces of others */
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the file is a shard of a PyTorch Distributed Checkpoint in safetensors "
                          "(DCP_SHARDING_INFO), which is not read; consolidate it with "
                          "torch.distributed.checkpoint.HuggingFaceStorageWriter");
    if (!header->takes_metadata)
        return PHEMA_OK;
    struct phema_metadata pair = {NULL, NULL, key.size, value.size};
    status = keep(&pair.key, header, key, err);
    if (!status)
        status = keep(&pair.value, header, value, err);
    return status ? status : checkpoint_add_metadata(header->checkpoint, &pair, err);
}

static enum phema_status read_pairs(struct header *header, struct name_index *keys,
                                    struct phema_error *err)
{
    if (!json_scan_take(&header->scan, '{'))
        return json_scan_fail(&header->scan, "an object of strings", err);
    if (json_scan_take(&header->scan, '}'))
        return PHEMA_OK;
    for (;;) {
        enum phema_status status = read_pair(header, keys, err);
        if (status)
            return status;
        if (json_scan_take(&header->scan, '}'))
            return PHEMA_OK;
        if (!json_scan_take(&header->scan, ','))
            return json_scan_fail(&header->scan, "',' or '}'", err);
    }
}

static enum phema_status read_metadata(struct header *header, struct phema_error *err)
{
    if (header->has_metadata)
        return phema_fail(err, PHEMA_ERR_FILE, "duplicate key '__metadata__'");
    header->has_metadata = true;
    struct name_index keys = {0};
    enum phema_status status = read_pairs(header, &keys, err);
    name_index_clear(&keys);
    return status ? phema_fail_in(err, status, "__metadata__") : PHEMA_OK;
}

/* Everything about a tensor that its JSON object says. */
struct entry {
    struct phema_tensor tensor;
    uint64_t begin, end;
    bool has_dtype, has_shape, has_offsets;
};

static enum phema_status read_dtype(struct entry *entry, struct header *header,
                                    struct phema_error *err)
{
    struct phema_span name = {NULL, 0};
    enum phema_status status =
        json_scan_string(&name, &header->scan, &header->checkpoint->arena, err);
    if (status)
        return status;
    struct phema_name_buffer shown;
    if (!phema_dtype_from_name(&entry->tensor.dtype, (const char *)name.data, name.size) ||
        entry->tensor.dtype == PHEMA_C128)
        return phema_fail(err, PHEMA_ERR_FILE, "safetensors has no dtype '%s'",
                          phema_name_shown(&shown, (const char *)name.data, name.size));
    return PHEMA_OK;
}

static enum phema_status read_shape(struct entry *entry, struct header *header,
                                    struct phema_error *err)
{
    uint64_t shape[PHEMA_MAX_RANK];
    unsigned rank = 0;
    if (!json_scan_take(&header->scan, '['))
        return json_scan_fail(&header->scan, "a list of sizes", err);
    bool is_end = json_scan_take(&header->scan, ']');
    while (!is_end) {
        if (rank == PHEMA_MAX_RANK)
            return phema_fail(err, PHEMA_ERR_FILE, "the shape has more than %d dimensions",
                              PHEMA_MAX_RANK);
        enum phema_status status = json_scan_u64(&shape[rank], &header->scan, err);
        if (status)
            return status;
        rank++;
        is_end = json_scan_take(&header->scan, ']');
        if (!is_end && !json_scan_take(&header->scan, ','))
            return json_scan_fail(&header->scan, "',' or ']'", err);
    }
    uint64_t *kept = phema_arena_array(&header->checkpoint->arena, rank, sizeof(*kept));
    if (!kept)
        return fail_memory(err);
    memcpy(kept, shape, rank * sizeof(*kept));
    entry->tensor.shape = kept;
    entry->tensor.rank = rank;
    return PHEMA_OK;
}

static enum phema_status read_offsets(struct entry *entry, struct header *header,
                                      struct phema_error *err)
{
    if (!json_scan_take(&header->scan, '['))
        return json_scan_fail(&header->scan, "a list of two offsets", err);
    enum phema_status status = json_scan_u64(&entry->begin, &header->scan, err);
    if (status)
        return status;
    if (!json_scan_take(&header->scan, ','))
        return json_scan_fail(&header->scan, "','", err);
    status = json_scan_u64(&entry->end, &header->scan, err);
    if (status)
        return status;
    if (!json_scan_take(&header->scan, ']'))
        return json_scan_fail(&header->scan, "']' after two offsets", err);
    return PHEMA_OK;
}

static const struct field {
    const char *name;
    size_t has; /* where in struct entry it is noted */
    enum phema_status (*read)(struct entry *entry, struct header *header, struct phema_error *err);
} fields[] = {
    {"dtype", offsetof(struct entry, has_dtype), read_dtype},
    {"shape", offsetof(struct entry, has_shape), read_shape},
    {"data_offsets", offsetof(struct entry, has_offsets), read_offsets},
};

static enum phema_status read_field(struct entry *entry, struct header *header,
                                    struct phema_error *err)
{
    struct phema_span key = {NULL, 0};
    enum phema_status status =
        json_scan_string(&key, &header->scan, &header->checkpoint->arena, err);
    if (status)
        return status;
    if (!json_scan_take(&header->scan, ':'))
        return json_scan_fail(&header->scan, "':'", err);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (!span_is(key, fields[i].name))
            continue;
        bool *has = (bool *)((char *)entry + fields[i].has);
        if (*has)
            return phema_fail(err, PHEMA_ERR_FILE, "duplicate key '%s'", fields[i].name);
        *has = true;
        return fields[i].read(entry, header, err);
    }
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_FILE,
                      "expected the fields dtype, shape and data_offsets alone, found '%s'",
                      phema_name_shown(&shown, (const char *)key.data, key.size));
}

static enum phema_status read_fields(struct entry *entry, struct header *header,
                                     struct phema_error *err)
{
    if (!json_scan_take(&header->scan, '{'))
        return json_scan_fail(&header->scan, "an object", err);
    bool is_end = json_scan_take(&header->scan, '}');
    while (!is_end) {
        enum phema_status status = read_field(entry, header, err);
        if (status)
            return status;
        is_end = json_scan_take(&header->scan, '}');
        if (!is_end && !json_scan_take(&header->scan, ','))
            return json_scan_fail(&header->scan, "',' or '}'", err);
    }
    if (!entry->has_dtype || !entry->has_shape || !entry->has_offsets)
        return phema_fail(err, PHEMA_ERR_FILE, "lacks %s",
                          !entry->has_dtype   ? "dtype"
                          : !entry->has_shape ? "shape"
                                              : "data_offsets");
    return PHEMA_OK;
}

/* The length that the offsets claim must be that of the shape. */
static enum phema_status check_entry(struct entry *entry, const struct header *header,
                                     struct phema_error *err)
{
    struct phema_tensor *tensor = &entry->tensor;
    if (entry->begin > entry->end || entry->end > header->data_size)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected data_offsets in order and inside the %llu bytes of data, found "
                          "[%llu, %llu]",
                          (unsigned long long)header->data_size, (unsigned long long)entry->begin,
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
    tensor->offset = header->data_offset + entry->begin;
    tensor->file = header->file;
    return PHEMA_OK;
}

static enum phema_status read_member(struct header *header, struct phema_error *err)
{
    struct phema_span name = {NULL, 0};
    enum phema_status status =
        json_scan_string(&name, &header->scan, &header->checkpoint->arena, err);
    if (status)
        return status;
    if (!json_scan_take(&header->scan, ':'))
        return json_scan_fail(&header->scan, "':'", err);
    if (span_is(name, "__metadata__"))
        return read_metadata(header, err);

    struct entry entry = {0};
    entry.tensor.name_size = name.size;
    status = keep(&entry.tensor.name, header, name, err);
    if (!status)
        status = read_fields(&entry, header, err);
    if (!status)
        status = check_entry(&entry, header, err);
    if (!status)
        status = checkpoint_add_tensor(header->checkpoint, &entry.tensor, err);
    return status ? fail_in_tensor(err, status, (const char *)name.data, name.size) : PHEMA_OK;
}

static enum phema_status read_members(struct header *header, struct phema_error *err)
{
    struct json_scan *scan = &header->scan;
    if (!json_scan_take(scan, '{'))
        return json_scan_fail(scan, "'{'", err);
    bool is_end = json_scan_take(scan, '}');
    while (!is_end) {
        enum phema_status status = read_member(header, err);
        if (status)
            return status;
        is_end = json_scan_take(scan, '}');
        if (!is_end && !json_scan_take(scan, ','))
            return json_scan_fail(scan, "',' or '}'", err);
    }
    for (; scan->at < scan->text.size; scan->at++)
        if (scan->text.data[scan->at] != ' ')
            return json_scan_fail(scan, "nothing but spaces after the header", err);
    return PHEMA_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct phema_tensor *left = *(const struct phema_tensor *const *)a;
    const struct phema_tensor *right = *(const struct phema_tensor *const *)b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return (left->size_bytes > right->size_bytes) - (left->size_bytes < right->size_bytes);
}

/* The tensors touch one another without hole or overlap, from the first byte of data to the last;
 * *end is behind that one. */
static enum phema_status check_cover(uint64_t *end, const struct header *header,
                                     const struct phema_tensor *const *places, size_t n,
                                     struct phema_error *err)
{
    uint64_t at = header->data_offset;
    for (size_t i = 0; i < n; i++) {
        if (places[i]->offset != at) {
            (void)phema_fail(err, PHEMA_ERR_FILE,
                             "expected data at offset %llu, where the tensor before ends, found "
                             "%llu: tensors %s",
                             (unsigned long long)(at - header->data_offset),
                             (unsigned long long)(places[i]->offset - header->data_offset),
                             places[i]->offset < at ? "overlap" : "leave a hole");
            return fail_in_tensor(err, PHEMA_ERR_FILE, places[i]->name, places[i]->name_size);
        }
        at += places[i]->size_bytes;
    }
    *end = at;
    if (!header->is_open_ended && at != header->data_offset + header->data_size)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the tensors end after %llu bytes of data, but the file holds %llu",
                          (unsigned long long)(at - header->data_offset),
                          (unsigned long long)header->data_size);
    return PHEMA_OK;
}

static enum phema_status check_places(uint64_t *end, const struct header *header, size_t first,
                                      struct phema_error *err)
{
    size_t n = header->checkpoint->n_tensors - first;
    const struct phema_tensor **places = calloc(n + 1, sizeof(const struct phema_tensor *));
    if (!places)
        return fail_memory(err);
    bool is_sorted = true;
    for (size_t i = 0; i < n; i++) {
        places[i] = &header->checkpoint->tensors[first + i];
        if (i && by_place(&places[i - 1], &places[i]) > 0)
            is_sorted = false;
    }
    if (!is_sorted)
        qsort(places, n, sizeof(const struct phema_tensor *), by_place);
    enum phema_status status = check_cover(end, header, places, n, err);
    free(places);
    return status;
}

static enum phema_status read_header(uint64_t *end, struct header *header, struct phema_error *err)
{
    enum phema_status status = check_text(header->scan.text, err);
    if (status)
        return status;
    size_t first = header->checkpoint->n_tensors;
    status = read_members(header, err);
    if (status)
        return phema_fail_in(err, status, "safetensors header");
    return check_places(end, header, first, err);
}

enum phema_status safetensors_read(struct phema_checkpoint *checkpoint, size_t file,
                                   bool takes_metadata, struct phema_error *err)
{
    struct phema_span content = checkpoint_content(checkpoint, file);
    struct header header = {
        .checkpoint = checkpoint, .file = file, .takes_metadata = takes_metadata};
    enum phema_status status = find_header(&header.scan.text, content, err);
    if (status)
        return status;
    header.data_offset = 8 + header.scan.text.size;
    header.data_size = content.size - header.data_offset;
    uint64_t end = 0;
    return read_header(&end, &header, err);
}

enum phema_status safetensors_read_header(uint64_t *content_size,
                                          struct phema_checkpoint *checkpoint, size_t file,
                                          struct phema_span json, struct phema_error *err)
{
    struct header header = {.checkpoint = checkpoint,
                            .file = file,
                            .scan = {.text = json},
                            .data_offset = 8 + json.size,
                            .data_size = UINT64_MAX - 8 - json.size,
                            .is_open_ended = true,
                            .takes_metadata = true};
    return read_header(content_size, &header, err);
}

static enum phema_status open_single(struct phema_checkpoint *checkpoint,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    (void)options;
    return safetensors_read(checkpoint, 0, true, err);
}

const struct phema_format safetensors_format = {"safetensors", probe, open_single};
