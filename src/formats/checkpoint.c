// SPDX-License-Identifier: Apache-2.0
/* checkpoint.c - opening, closing and asking a checkpoint. What all formats have in common is
 * checked here once: two tensors with one name are refused. */
#include "phema/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format.h"
#include "phema/strbuf.h"
#include "zstd/frame_index.h"

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
    enum phema_status status = phema_file_open(&added.file, path, err);
    if (status) {
        free(added.label);
        return status;
    }
    checkpoint->files[checkpoint->n_files++] = added;
    return PHEMA_OK;
}

struct phema_span checkpoint_content(const struct phema_checkpoint *checkpoint, size_t file)
{
    return phema_file_span(checkpoint->files[file].file);
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

static enum phema_status index_names(struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct phema_tensor *tensor = &checkpoint->tensors[i];
        switch (name_table_add(&checkpoint->names, tensor->name, tensor->name_size, i)) {
        case NAME_ADDED:
            break;
        case NAME_EXISTS:
            (void)phema_fail(err, PHEMA_ERR_FILE,
                             "two tensors have this name, expected each name once");
            return fail_in_tensor(err, PHEMA_ERR_FILE, tensor->name, tensor->name_size);
        case NAME_NO_MEMORY:
            return phema_fail_memory(err);
        }
    }
    return PHEMA_OK;
}

static enum phema_status open_file(struct phema_checkpoint *checkpoint, const char *path,
                                   const struct phema_checkpoint_options *options,
                                   struct phema_error *err)
{
    const char *slash = strrchr(path, '/');
    enum phema_status status = checkpoint_add_file(checkpoint, path, slash ? slash + 1 : path, err);
    if (status)
        return status;
    checkpoint->format = format_of(checkpoint_content(checkpoint, 0));
    status = checkpoint->format->open(checkpoint, options, err);
    if (status)
        return status;
    return index_names(checkpoint, err);
}

static enum phema_status open_directory(struct phema_checkpoint *checkpoint,
                                        const struct phema_checkpoint_options *options,
                                        struct phema_error *err)
{
    char *name = NULL;
    enum phema_status status = directory_find_checkpoint(&name, checkpoint->path, err);
    if (status)
        return status;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", checkpoint->path, name) < 0) {
        free(name);
        return phema_fail_memory(err);
    }
    status = open_file(checkpoint, path, options, err);
    struct phema_name_buffer shown;
    if (status)
        (void)phema_fail_in(err, status, "%s", phema_name_escape(&shown, name, strlen(name)));
    free(path);
    free(name);
    return status;
}

enum phema_status phema_checkpoint_open(struct phema_checkpoint **out, const char *path,
                                        const struct phema_checkpoint_options *options,
                                        struct phema_error *err)
{
    static const struct phema_checkpoint_options defaults = {0};
    enum phema_status status = PHEMA_OK;
    struct phema_checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
    if (!checkpoint || !(checkpoint->path = strdup(path))) {
        status = phema_fail_memory(err);
        goto fail;
    }
    if (!options)
        options = &defaults;
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        status = open_directory(checkpoint, options, err);
    else
        status = open_file(checkpoint, path, options, err);
    if (status)
        goto fail;
    status = phema_checkpoint_check_unchanged(checkpoint, err);
    if (status) { /* names the file itself */
        phema_checkpoint_close(checkpoint);
        return status;
    }
    *out = checkpoint;
    return PHEMA_OK;

fail:
    phema_checkpoint_close(checkpoint);
    return phema_fail_in(err, status, "%s", path);
}

PHEMA_FALLIBLE phema_checkpoint_check_unchanged(const struct phema_checkpoint *checkpoint,
                                                struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < checkpoint->n_files && !status; f++)
        status = phema_file_check_unchanged(checkpoint->files[f].file, err);
    return status;
}

void phema_checkpoint_forget_listing(struct phema_checkpoint *checkpoint)
{
    name_table_clear(&checkpoint->names);
    phema_arena_clear(&checkpoint->arena);
    free(checkpoint->tensors);
    checkpoint->tensors = NULL;
    checkpoint->n_tensors = checkpoint->tensors_capacity = 0;
    free(checkpoint->metadata);
    checkpoint->metadata = NULL;
    checkpoint->n_metadata = checkpoint->metadata_capacity = 0;
    free(checkpoint->values);
    checkpoint->values = NULL;
    checkpoint->n_values = checkpoint->values_capacity = 0;
    for (size_t i = 0; i < checkpoint->n_files; i++) /* the headers that were read */
        phema_file_evict(checkpoint->files[i].file, 0,
                         phema_file_span(checkpoint->files[i].file).size);
}

void phema_checkpoint_close(struct phema_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    phema_checkpoint_forget_listing(checkpoint);
    phema_arena_clear(&checkpoint->parts);
    for (size_t i = 0; i < checkpoint->n_files; i++) {
        zstd_frames_free(checkpoint->files[i].frames);
        phema_file_close(checkpoint->files[i].file);
        free(checkpoint->files[i].label);
    }
    free(checkpoint->files);
    for (size_t i = 0; i < checkpoint->n_warnings; i++)
        free(checkpoint->warnings[i]);
    free(checkpoint->warnings);
    free(checkpoint->path);
    free(checkpoint);
}

const char *phema_checkpoint_path(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->path;
}

const char *phema_checkpoint_format(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->format->name;
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

size_t phema_checkpoint_n_warnings(const struct phema_checkpoint *checkpoint)
{
    return checkpoint->n_warnings;
}

const char *phema_checkpoint_warning(const struct phema_checkpoint *checkpoint, size_t index)
{
    return checkpoint->warnings[index];
}
