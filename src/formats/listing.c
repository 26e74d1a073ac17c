// SPDX-License-Identifier: Apache-2.0
/* listing.c - Fill and query a checkpoint: files, tensors, metadata, values and warnings. Formats
 * fill a checkpoint through this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "phema/strbuf.h"

/* ---- Filling ---- */

/* Most headers, the directory of a zip file and a seek table of zstd lie within so many bytes of an
 * end. */
#define EDGE_BYTES ((uint64_t)64 << 10)

void header_prefetch(const struct phema_file *file)
{
    struct phema_span content = phema_file_span(file);
    uint64_t edge = content.size < EDGE_BYTES ? content.size : EDGE_BYTES;
    phema_file_expect_sparse(file, true);
    phema_file_prefetch(file, 0, edge);
    uint64_t end = safetensors_header_end(content); /* waits for the first page */
    if (end > edge)
        phema_file_prefetch(file, edge, end - edge);
    else if (end == 0)
        phema_file_prefetch(file, content.size - edge, edge);
}

enum phema_status fail_expected(struct phema_error *err, const char *wanted)
{
    return phema_fail(err, PHEMA_ERR_FILE, "expected %s", wanted);
}

enum phema_status fail_in_tensor(struct phema_error *err, enum phema_status status,
                                 const char *name, size_t name_size)
{
    struct phema_name_buffer shown;
    return phema_fail_in(err, status, "tensor '%s'", phema_name_escape(&shown, name, name_size));
}

enum phema_status checkpoint_add_file(struct phema_checkpoint *checkpoint, const char *path,
                                      const char *label, struct phema_error *err)
{
    if (!phema_array_grow(&checkpoint->files, &checkpoint->files_capacity, checkpoint->n_files,
                          sizeof(*checkpoint->files)))
        return phema_fail_memory(err);
    struct checkpoint_file added = {.label = strdup(label)};
    if (!added.label)
        return phema_fail_memory(err);
    enum phema_status status = checkpoint->keeps_descriptors
                                   ? phema_file_open_once(&added.file, path, err)
                                   : phema_file_open(&added.file, path, err);
    if (status) {
        free(added.label);
        return status;
    }
    header_prefetch(added.file);
    checkpoint->files[checkpoint->n_files++] = added;
    return PHEMA_OK;
}

/* ---- Files that file 0 names ---- */

bool path_has_parent(const char *path, size_t size)
{
    for (size_t start = 0; start < size;) {
        const char *slash = memchr(path + start, '/', size - start);
        size_t end = slash ? (size_t)(slash - path) : size;
        if (end - start == 2 && path[start] == '.' && path[start + 1] == '.')
            return true;
        start = end + 1;
    }
    return false;
}

const char *relative_path_fault(const char *name, size_t size)
{
    if (size == 0)
        return "is empty";
    if (memchr(name, '\0', size))
        return "holds a NUL";
    if (name[0] == '/')
        return "is absolute";
    if (memmem(name, size, "://", 3))
        return "is a URL";
    return path_has_parent(name, size) ? "leads out of the checkpoint's directory" : NULL;
}

enum phema_status checkpoint_add_relative(struct phema_checkpoint *checkpoint, const char *name,
                                          size_t size, struct phema_error *err)
{
    const char *base_path = phema_file_path(phema_checkpoint_file(checkpoint, checkpoint->base));
    const char *slash = strrchr(base_path, '/');
    size_t directory_size = slash ? (size_t)(slash - base_path) + 1 : 0;
    size_t label_at =
        checkpoint->part.size ? directory_size - checkpoint->part.size : directory_size;
    struct phema_strbuf path = {0};
    phema_strbuf_append(&path, base_path, directory_size);
    phema_strbuf_append(&path, name, size);
    enum phema_status status = phema_strbuf_check(&path, err);
    if (!status)
        status = checkpoint_add_file(checkpoint, path.data, path.data + label_at, err);
    phema_strbuf_clear(&path);
    return status;
}

enum phema_status checkpoint_add_member(struct phema_checkpoint *checkpoint, const char *name,
                                        struct phema_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", checkpoint->path, name) < 0)
        return phema_fail_memory(err);
    enum phema_status status = checkpoint_add_file(checkpoint, path, name, err);
    free(path);
    return status;
}

struct phema_span checkpoint_content(const struct phema_checkpoint *checkpoint, size_t file)
{
    return phema_file_span(checkpoint->files[file].file);
}

bool set_part_name(struct phema_tensor *tensor, struct phema_arena *arena, struct phema_span part,
                   struct phema_span name)
{
    char *joined = phema_arena_alloc(arena, part.size + name.size + 1); /* zeroed */
    if (joined && part.size)
        memcpy(joined, part.data, part.size);
    if (joined && name.size)
        memcpy(joined + part.size, name.data, name.size);
    tensor->name = joined;
    tensor->name_size = part.size + name.size;
    return joined != NULL;
}

enum phema_status checkpoint_add_tensor(struct phema_checkpoint *checkpoint,
                                        const struct phema_tensor *tensor, struct phema_error *err)
{
    if (!phema_array_grow(&checkpoint->tensors, &checkpoint->tensors_capacity,
                          checkpoint->n_tensors, sizeof(*checkpoint->tensors)))
        return phema_fail_memory(err);
    checkpoint->tensors[checkpoint->n_tensors++] = *tensor;
    return PHEMA_OK;
}

enum phema_status checkpoint_add_metadata(struct phema_checkpoint *checkpoint,
                                          const struct phema_metadata *metadata,
                                          struct phema_error *err)
{
    if (!phema_array_grow(&checkpoint->metadata, &checkpoint->metadata_capacity,
                          checkpoint->n_metadata, sizeof(*checkpoint->metadata)))
        return phema_fail_memory(err);
    checkpoint->metadata[checkpoint->n_metadata++] = *metadata;
    return PHEMA_OK;
}

enum phema_status checkpoint_add_unread(struct phema_checkpoint *checkpoint,
                                        const struct phema_unread *unread, struct phema_error *err)
{
    struct phema_unread copy = *unread;
    copy.name = phema_arena_copy(&checkpoint->arena, unread->name, unread->name_size);
    copy.class_name =
        phema_arena_copy(&checkpoint->arena, unread->class_name, strlen(unread->class_name));
    if (!copy.name || !copy.class_name ||
        !phema_array_grow(&checkpoint->unread, &checkpoint->unread_capacity, checkpoint->n_unread,
                          sizeof(*checkpoint->unread)))
        return phema_fail_memory(err);
    checkpoint->unread[checkpoint->n_unread++] = copy;
    return PHEMA_OK;
}

enum phema_status checkpoint_warn(struct phema_checkpoint *checkpoint, struct phema_error *err,
                                  const char *format, ...)
{
    if (!phema_array_grow(&checkpoint->warnings, &checkpoint->warnings_capacity,
                          checkpoint->n_warnings, sizeof(*checkpoint->warnings)))
        return phema_fail_memory(err);
    va_list args;
    va_start(args, format);
    char *warning = NULL;
    int size = vasprintf(&warning, format, args);
    va_end(args);
    if (size < 0)
        return phema_fail_memory(err);
    checkpoint->warnings[checkpoint->n_warnings++] = warning;
    return PHEMA_OK;
}

void phema_checkpoint_forget_listing(struct phema_checkpoint *checkpoint)
{
    name_table_clear(&checkpoint->names);
    phema_arena_clear(&checkpoint->arena);
    checkpoint->root_key = NULL;
    free(checkpoint->tensors);
    checkpoint->tensors = NULL;
    checkpoint->n_tensors = checkpoint->tensors_capacity = 0;
    checkpoint->scale_faults = NULL;
    free(checkpoint->metadata);
    checkpoint->metadata = NULL;
    checkpoint->n_metadata = checkpoint->metadata_capacity = 0;
    free(checkpoint->unread);
    checkpoint->unread = NULL;
    checkpoint->n_unread = checkpoint->unread_capacity = 0;
    free(checkpoint->values);
    checkpoint->values = NULL;
    checkpoint->n_values = checkpoint->values_capacity = 0;
    for (size_t i = 0; i < checkpoint->n_files; i++) /* releases the pages of the headers */
        phema_file_evict(checkpoint->files[i].file, 0,
                         phema_file_span(checkpoint->files[i].file).size);
}

/* ---- Queries ---- */

const char *phema_checkpoint_path(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->path;
}

const char *phema_checkpoint_format(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->format->info.name;
}

const struct phema_format_info *
phema_checkpoint_format_info(const struct phema_checkpoint *checkpoint)
{
    return &checkpoint->format->info;
}

size_t phema_checkpoint_n_tensors(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->n_tensors;
}

const struct phema_tensor *phema_checkpoint_tensors(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->tensors;
}

const struct phema_tensor *phema_checkpoint_find(const struct phema_checkpoint *checkpoint,
                                                 const char *name, size_t name_size)
{
    size_t index = 0;
    if (!name_table_find(&index, &checkpoint->names, name, name_size))
        return NULL;
    return &checkpoint->tensors[index];
}

size_t phema_checkpoint_n_files(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->n_files;
}

const struct phema_file *phema_checkpoint_file(const struct phema_checkpoint *checkpoint,
                                               size_t index)
{
    return checkpoint->files[index].file;
}

const char *phema_checkpoint_file_label(const struct phema_checkpoint *checkpoint, size_t index)
{
    return checkpoint->files[index].label;
}

const char *phema_checkpoint_root_key(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->root_key;
}

bool phema_checkpoint_shares_file(const struct phema_checkpoint *checkpoint, size_t index)
{
    return checkpoint->files[index].is_shared;
}

bool phema_checkpoint_is_alike(const struct phema_checkpoint *checkpoint, uint64_t *shift)
{
    *shift = checkpoint->shift;
    return checkpoint->is_alike;
}

size_t phema_checkpoint_n_metadata(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->n_metadata;
}

const struct phema_metadata *phema_checkpoint_metadata(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->metadata;
}

const char *phema_checkpoint_metadatum(const struct phema_checkpoint *checkpoint, const char *key)
{
    size_t key_size = strlen(key);
    for (size_t i = 0; i < checkpoint->n_metadata; i++) {
        const struct phema_metadata *found = &checkpoint->metadata[i];
        if (found->key_size == key_size && memcmp(found->key, key, key_size) == 0)
            return found->value;
    }
    return NULL;
}

size_t phema_checkpoint_n_values(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->n_values;
}

const struct phema_value *phema_checkpoint_values(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->values;
}

const struct phema_unread *phema_checkpoint_unread(const struct phema_checkpoint *checkpoint,
                                                   size_t *n)
{
    *n = checkpoint->n_unread;
    return checkpoint->unread;
}

size_t phema_checkpoint_n_warnings(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->n_warnings;
}

const char *phema_checkpoint_warning(const struct phema_checkpoint *checkpoint, size_t index)
{
    return checkpoint->warnings[index];
}

/* ---- Records ---- */

static int compare_records(const void *a, const void *b)
{
    const struct phema_record *left = a, *right = b;
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

enum phema_status phema_checkpoint_records(struct phema_record **out, size_t *n,
                                           const struct phema_checkpoint *checkpoint,
                                           struct phema_error *err)
{
    struct phema_record *records = NULL;
    size_t n_records = 0;
    *out = NULL;
    *n = 0;
    if (!checkpoint->format->list_records)
        return PHEMA_OK;
    enum phema_status status =
        checkpoint->format->list_records(&records, &n_records, checkpoint, err);
    if (status) {
        free(records);
        return phema_fail_in(err, status, "%s", checkpoint->path);
    }
    if (n_records)
        qsort(records, n_records, sizeof(*records), compare_records);
    *out = records;
    *n = n_records;
    return PHEMA_OK;
}

bool phema_tensor_is_called(const struct phema_tensor *tensor, const char *const *words, size_t n)
{
    const char *dot = memrchr(tensor->name, '.', tensor->name_size);
    const char *last = dot ? dot + 1 : tensor->name;
    size_t size = tensor->name_size - (size_t)(last - tensor->name);
    return phema_bytes_are_any(last, size, words, n);
}

void phema_tensor_write_shape(struct phema_strbuf *out, const struct phema_tensor *tensor)
{
    phema_strbuf_puts(out, "[");
    for (unsigned d = 0; d < tensor->rank; d++)
        phema_strbuf_printf(out, "%s%llu", d ? ", " : "", (unsigned long long)tensor->shape[d]);
    phema_strbuf_puts(out, "]");
}
