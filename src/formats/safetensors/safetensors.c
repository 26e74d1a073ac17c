// SPDX-License-Identifier: Apache-2.0
/* safetensors.c - Reader of one safetensors file (format 0.x of the Rust library; docs/formats/
 * safetensors.md). Stricter than the library: duplicate keys and unknown fields are refused. */
#include "format.h"

#include <stdlib.h>
#include <string.h>

#include "phema/sort.h"
#include "phema/strbuf.h"
#include "safetensors/safetensors.h"

struct header {
    struct phema_checkpoint *checkpoint;
    size_t file;
    struct json_lexer scan;
    uint64_t data_offset; /* 8 + N */
    uint64_t data_size;   /* unknown: the most that 64 bits can count after the header */
    bool keeps_metadata;
    bool is_shard; /* tensors may be parts of tensors */
    bool has_metadata;
    struct name_table keys;          /* of the metadata, while they are read */
    uint64_t shape[PHEMA_MAX_RANK];  /* of a tensor, while it is read */
    struct phema_span sharding_info; /* in the arena; NULL: there is none */
    size_t metadata_end;             /* in the text, if the metadata are the first member; else 0 */
    size_t end;                      /* after the last brace */
};

static bool probe(struct phema_span content)
{
    return safetensors_header_end(content) > 0;
}

/* Finds the JSON and checks that it lies inside the file. */
static enum phema_status find_header(struct phema_span *out, struct phema_span content,
                                     struct phema_error *err)
{
    if (content.size < 8)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "%zu bytes are too few for a safetensors header; the file is damaged or "
                          "no checkpoint",
                          content.size);
    uint64_t size = phema_load_u64(content.data);
    if (size > SAFETENSORS_MAX_HEADER_BYTES && foreign_refuse(content, err))
        return PHEMA_ERR_FILE;
    if (size > SAFETENSORS_MAX_HEADER_BYTES)
        return phema_fail(
            err, PHEMA_ERR_FILE,
            "its first bytes are those of no format that is read, such as safetensors "
            "or PyTorch's; the file is damaged or no checkpoint");
    if (size > content.size - 8)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected a safetensors header of at most %u bytes inside the file of "
                          "%zu bytes, found a length of %llu; the file is cut short, damaged or no "
                          "checkpoint",
                          SAFETENSORS_MAX_HEADER_BYTES, content.size, (unsigned long long)size);
    *out = (struct phema_span){content.data + 8, (size_t)size};
    return PHEMA_OK;
}

/* Copies a string that was read into the arena and appends a NUL. */
static enum phema_status keep(const char **out, struct header *header, struct phema_span text,
                              struct phema_error *err)
{
    *out = phema_arena_copy(&header->checkpoint->arena, text.data, text.size);
    return *out ? PHEMA_OK : phema_fail_memory(err);
}

/* ---- Metadata ---- */

static enum phema_status read_pair(void *context, struct phema_error *err)
{
    struct header *header = context;
    struct phema_span key = {NULL, 0};
    struct phema_span value = {NULL, 0};
    enum phema_status status = json_lexer_key(&key, &header->scan, err);
    if (status)
        return status;
    status = json_lexer_string(&value, &header->scan, err);
    if (status)
        return status;

    struct phema_name_buffer shown;
    switch (name_table_add(&header->keys, (const char *)key.data, key.size, 0)) {
    case NAME_NO_MEMORY:
        return phema_fail_memory(err);
    case NAME_EXISTS:
        return phema_fail(err, PHEMA_ERR_FILE, "duplicate key '%s'",
                          phema_name_escape(&shown, (const char *)key.data, key.size));
    case NAME_ADDED:
        break;
    }
    if (span_is(key, SHARDING_INFO_KEY)) { /* about these bytes alone: never passed on */
        const char *kept = NULL;
        status = keep(&kept, header, value, err);
        header->sharding_info = (struct phema_span){(const uint8_t *)kept, value.size};
        return status;
    }
    if (!header->keeps_metadata)
        return PHEMA_OK;
    struct phema_metadata pair = {NULL, NULL, key.size, value.size};
    status = keep(&pair.key, header, key, err);
    if (status)
        return status;
    status = keep(&pair.value, header, value, err);
    return status ? status : checkpoint_add_metadata(header->checkpoint, &pair, err);
}

static enum phema_status read_metadata(struct header *header, struct phema_error *err)
{
    if (header->has_metadata)
        return phema_fail(err, PHEMA_ERR_FILE, "duplicate key '__metadata__'");
    header->has_metadata = true;
    if (json_lexer_accept_null(&header->scan)) /* as MLX writes it without metadata */
        return PHEMA_OK;
    enum phema_status status = json_lexer_items(&header->scan, '{', "an object of strings or null",
                                                read_pair, header, err);
    name_table_clear(&header->keys);
    return status ? phema_fail_in(err, status, "__metadata__") : PHEMA_OK;
}

/* ---- Tensors ---- */

/* A tensor's dtype, shape and offsets, which count from the beginning of the data. */
struct entry {
    struct header *header;
    struct phema_tensor *tensor;
    uint64_t begin, end;
    bool has_dtype, has_shape, has_offsets;
};

static enum phema_status read_dtype(struct entry *entry, struct phema_error *err)
{
    struct phema_span name = {NULL, 0};
    enum phema_status status = json_lexer_string(&name, &entry->header->scan, err);
    if (status)
        return status;
    struct phema_name_buffer shown;
    if (!phema_dtype_from_name(&entry->tensor->dtype, (const char *)name.data, name.size) ||
        entry->tensor->dtype == PHEMA_C128)
        return phema_fail(err, PHEMA_ERR_FILE, "safetensors has no dtype '%s'",
                          phema_name_escape(&shown, (const char *)name.data, name.size));
    return PHEMA_OK;
}

static enum phema_status read_size(void *context, struct phema_error *err)
{
    struct entry *entry = context;
    if (entry->tensor->rank == PHEMA_MAX_RANK)
        return phema_fail(err, PHEMA_ERR_FILE, "the shape has more than %d dimensions",
                          PHEMA_MAX_RANK);
    return json_lexer_u64(&entry->header->shape[entry->tensor->rank++], &entry->header->scan, err);
}

static enum phema_status read_shape(struct entry *entry, struct phema_error *err)
{
    enum phema_status status =
        json_lexer_items(&entry->header->scan, '[', "a list of sizes", read_size, entry, err);
    if (status)
        return status;
    size_t rank = entry->tensor->rank;
    uint64_t *kept = phema_arena_array(&entry->header->checkpoint->arena, rank, sizeof(*kept));
    if (!kept)
        return phema_fail_memory(err);
    memcpy(kept, entry->header->shape, rank * sizeof(*kept));
    entry->tensor->shape = kept;
    return PHEMA_OK;
}

static enum phema_status read_offsets(struct entry *entry, struct phema_error *err)
{
    struct json_lexer *scan = &entry->header->scan;
    if (!json_lexer_accept(scan, '['))
        return json_lexer_fail(scan, "a list of two offsets", err);
    enum phema_status status = json_lexer_u64(&entry->begin, scan, err);
    if (status)
        return status;
    if (!json_lexer_accept(scan, ','))
        return json_lexer_fail(scan, "','", err);
    status = json_lexer_u64(&entry->end, scan, err);
    if (status)
        return status;
    return json_lexer_accept(scan, ']') ? PHEMA_OK
                                        : json_lexer_fail(scan, "']' after two offsets", err);
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

static enum phema_status read_field(void *context, struct phema_error *err)
{
    struct entry *entry = context;
    struct phema_span key = {NULL, 0};
    enum phema_status status = json_lexer_key(&key, &entry->header->scan, err);
    if (status)
        return status;
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

/* Checks that the length by the offsets equals the length by the shape. */
static enum phema_status check_entry(const struct entry *entry, struct phema_error *err)
{
    struct phema_tensor *tensor = entry->tensor;
    uint64_t data_size = entry->header->data_size;
    if (entry->begin > entry->end)
        return phema_fail(err, PHEMA_ERR_FILE, "expected data_offsets in order, found [%llu, %llu]",
                          (unsigned long long)entry->begin, (unsigned long long)entry->end);
    if (entry->end > data_size)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "ends after %llu bytes of data, of which %llu are there; the file is cut "
                          "short, or its header is damaged",
                          (unsigned long long)entry->end, (unsigned long long)data_size);
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
    tensor->offset = entry->header->data_offset + entry->begin;
    return PHEMA_OK;
}

static enum phema_status read_tensor(struct header *header, struct phema_span name,
                                     struct phema_error *err)
{
    struct phema_tensor tensor = {.name_size = name.size, .file = header->file};
    struct entry entry = {.header = header, .tensor = &tensor};
    enum phema_status status = keep(&tensor.name, header, name, err);
    if (!status)
        status = json_lexer_items(&header->scan, '{', "an object", read_field, &entry, err);
    if (status)
        return status;
    if (!entry.has_dtype || !entry.has_shape || !entry.has_offsets)
        return phema_fail(err, PHEMA_ERR_FILE, "lacks %s",
                          !entry.has_dtype   ? "dtype"
                          : !entry.has_shape ? "shape"
                                             : "data_offsets");
    status = check_entry(&entry, err);
    return status ? status : checkpoint_add_tensor(header->checkpoint, &tensor, err);
}

static enum phema_status read_member(void *context, struct phema_error *err)
{
    struct header *header = context;
    struct phema_span name = {NULL, 0};
    enum phema_status status = json_lexer_key(&name, &header->scan, err);
    if (status)
        return status;
    if (!span_is(name, "__metadata__")) {
        status = read_tensor(header, name, err);
        return status ? fail_in_tensor(err, status, (const char *)name.data, name.size) : PHEMA_OK;
    }
    status = read_metadata(header, err);
    if (header->checkpoint->n_tensors == 0)
        header->metadata_end = header->scan.at;
    return status;
}

/* ---- The whole header ---- */

static int by_place(const void *a, const void *b, void *unused)
{
    (void)unused;
    const struct phema_tensor *left = *(const struct phema_tensor *const *)a;
    const struct phema_tensor *right = *(const struct phema_tensor *const *)b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return (left->size_bytes > right->size_bytes) - (left->size_bytes < right->size_bytes);
}

/* Checks that the tensors fill the data without hole or overlap; *end is that of the last one. */
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
    return PHEMA_OK;
}

static enum phema_status check_places(uint64_t *end, const struct header *header, size_t first,
                                      struct phema_error *err)
{
    size_t n = header->checkpoint->n_tensors - first;
    const struct phema_tensor **places = calloc(n + 1, sizeof(const struct phema_tensor *));
    if (!places)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        places[i] = &header->checkpoint->tensors[first + i];
    phema_sort(places, n, sizeof(const struct phema_tensor *), by_place, NULL);
    enum phema_status status = check_cover(end, header, places, n, err);
    free(places);
    return status;
}

static enum phema_status read_header(uint64_t *end, struct header *header, struct phema_error *err)
{
    struct json_lexer *scan = &header->scan;
    size_t first = header->checkpoint->n_tensors;
    if (scan->text.size == 0 || scan->text.data[0] != '{')
        return phema_fail(err, PHEMA_ERR_FILE,
                          "expected '{' as the first byte of the safetensors header; the file is "
                          "damaged or no checkpoint");
    if (!phema_is_utf8((const char *)scan->text.data, scan->text.size))
        return phema_fail(err, PHEMA_ERR_FILE, "the safetensors header is not valid UTF-8");
    enum phema_status status = json_lexer_items(scan, '{', "'{'", read_member, header, err);
    header->end = scan->at;
    while (!status && scan->at < scan->text.size && scan->text.data[scan->at] == ' ')
        scan->at++;
    if (!status && scan->at < scan->text.size)
        status = json_lexer_fail(scan, "nothing but spaces after the header", err);
    if (!status && header->sharding_info.data && !header->is_shard)
        status = sharding_info_check_whole(header->checkpoint, first, header->sharding_info, err);
    if (status)
        return phema_fail_in(err, status, "safetensors header");
    return check_places(end, header, first, err);
}

/* header: checkpoint, file and keeps_metadata are set */
static enum phema_status read_file(struct header *header, struct phema_error *err)
{
    struct phema_span content = checkpoint_content(header->checkpoint, header->file);
    enum phema_status status = find_header(&header->scan.text, content, err);
    if (status)
        return status;
    header->data_offset = 8 + header->scan.text.size;
    header->data_size = content.size - header->data_offset;
    uint64_t end = 0;
    status = read_header(&end, header, err);
    if (status)
        return status;
    if (end != content.size)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the tensors end after %llu bytes of data, but the file holds %llu",
                          (unsigned long long)(end - header->data_offset),
                          (unsigned long long)header->data_size);
    return PHEMA_OK;
}

enum phema_status safetensors_read(struct phema_checkpoint *checkpoint, size_t file,
                                   bool keeps_metadata, struct phema_span *sharding_info,
                                   struct phema_error *err)
{
    struct header header = {.checkpoint = checkpoint,
                            .file = file,
                            .scan = {.arena = &checkpoint->arena},
                            .keeps_metadata = keeps_metadata,
                            .is_shard = sharding_info != NULL};
    enum phema_status status = read_file(&header, err);
    if (sharding_info)
        *sharding_info = header.sharding_info;
    return status;
}

enum phema_status safetensors_read_header(uint64_t *content_size,
                                          struct phema_checkpoint *checkpoint,
                                          struct phema_span json, struct phema_error *err)
{
    struct header header = {.checkpoint = checkpoint,
                            .scan = {.text = json, .arena = &checkpoint->arena},
                            .data_offset = 8 + json.size,
                            .data_size = UINT64_MAX - 8 - json.size,
                            .keeps_metadata = true};
    return read_header(content_size, &header, err);
}

/* ---- Headers that say the same ---- */

/* Keeps the text that the next file is compared with, unless the metadata stand among the
 * tensors. */
static enum phema_status read_single(struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct header header = {
        .checkpoint = checkpoint, .scan = {.arena = &checkpoint->arena}, .keeps_metadata = true};
    enum phema_status status = read_file(&header, err);
    struct shard_name shard;
    if (!status && header.sharding_info.data && shard_name_read(&shard, checkpoint->files[0].label))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is a shard of a distributed checkpoint (" SHARDING_INFO_KEY
                          "), so its tensors can be parts; name its directory");
    if (status || (header.has_metadata && !header.metadata_end))
        return status;
    size_t start = header.has_metadata ? header.metadata_end : 1; /* after the brace */
    checkpoint->header = (struct header_text){
        .text = {header.scan.text.data + start, header.end - start},
        .has_metadata = header.has_metadata,
        .data_offset = header.data_offset,
        .data_size = header.data_size,
    };
    return PHEMA_OK;
}

/* Reads the header up to the start of the other's text: a brace, and metadata if the other has
 * some. */
static bool read_front(struct header *header, struct phema_span front, bool has_metadata)
{
    struct phema_error ignored = {0};
    struct json_lexer *scan = &header->scan;
    struct phema_span name = {NULL, 0};
    scan->text = front;
    if (!phema_is_utf8((const char *)front.data, front.size) || !json_lexer_accept(scan, '{') ||
        front.data[0] != '{')
        return false;
    if (has_metadata && (json_lexer_key(&name, scan, &ignored) || !span_is(name, "__metadata__") ||
                         read_metadata(header, &ignored) || header->sharding_info.data))
        return false;
    return scan->at == front.size;
}

/* True when the text after the metadata and the size of the data equal those of the other file,
 * which were read and accepted. Reading the text again would give the same tensors, inside this
 * file as in the other, even if the other has changed since. For any other header the function
 * returns false and keeps nothing, and the header must be read. */
static bool is_read_as(struct phema_checkpoint *checkpoint, const struct header_text *other)
{
    struct phema_error ignored = {0};
    struct phema_span content = checkpoint_content(checkpoint, 0);
    struct header header = {
        .checkpoint = checkpoint, .scan = {.arena = &checkpoint->arena}, .keeps_metadata = true};
    struct phema_span text = {NULL, 0};
    if (!other->text.data || find_header(&text, content, &ignored))
        return false;
    uint64_t data_offset = 8 + text.size;
    while (text.size && text.data[text.size - 1] == ' ')
        text.size--;
    if (content.size - data_offset != other->data_size || text.size <= other->text.size)
        return false;
    struct phema_span front = {text.data, text.size - other->text.size};
    if (memcmp(text.data + front.size, other->text.data, other->text.size) != 0)
        return false;
    if (!read_front(&header, front, other->has_metadata) ||
        phema_checkpoint_metadatum(checkpoint, PHEMA_FROZEN_FILE)) {
        phema_checkpoint_forget_listing(checkpoint);
        return false;
    }
    checkpoint->is_alike = true;
    checkpoint->shift = data_offset - other->data_offset;
    phema_file_evict(checkpoint->files[0].file, 0, data_offset); /* the header is not read again */
    return true;
}

static enum phema_status open_single(struct phema_checkpoint *checkpoint,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    if (options->alike && is_read_as(checkpoint, &options->alike->header))
        return PHEMA_OK;
    return read_single(checkpoint, err);
}

const struct phema_format safetensors_format = {
    .info = {.name = "safetensors",
             .extensions =
                 (const struct phema_extension[]){
                     {".safetensors", PHEMA_NAMES_FILE | PHEMA_NAMES_SELF_DESCRIBED}, {NULL, 0}},
             .output = PHEMA_OUTPUT_NEW,
             .can_be_template = true},
    .probe = probe,
    .open = open_single,
};
