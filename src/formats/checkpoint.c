// SPDX-License-Identifier: Apache-2.0
/* checkpoint.c - Open and close a checkpoint, whatever its format: a file, or the one checkpoint of
 * a directory. Two tensors with one name are refused here, for all formats. */
#include "phema/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_directory.h"
#include "phema/path.h"
#include "phema/strbuf.h"
#include "reader.h"
#include "zstd/frame_index.h"

static enum phema_status index_names(struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct phema_tensor *tensor = &checkpoint->tensors[i];
        switch (name_table_add(&checkpoint->names, tensor->name, tensor->name_size, i)) {
        case NAME_ADDED:
            break;
        case NAME_EXISTS:
            (void)phema_fail(
                err, PHEMA_ERR_FILE, "two tensors have this name%s, expected each name once",
                tensor->kind == PHEMA_KIND_FROZEN ? ", here and in the file of frozen tensors"
                                                  : "");
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
    enum phema_status status =
        checkpoint_add_file(checkpoint, path, phema_path_last_name(path), err);
    if (status)
        return status;
    checkpoint->format = format_probe(checkpoint_content(checkpoint, 0));
    status = checkpoint->format->open(checkpoint, options, err);
    if (!status)
        status = frozen_read(checkpoint, err);
    return status ? status : index_names(checkpoint, err);
}

/* ---- Directories ---- */

static enum phema_status open_part(struct phema_checkpoint *checkpoint, const char *name,
                                   const struct phema_checkpoint_options *options,
                                   struct phema_error *err)
{
    char *path = phema_arena_printf(&checkpoint->arena, "%s/%s/.metadata", checkpoint->path, name);
    char *label = phema_arena_printf(&checkpoint->arena, "%s/.metadata", name);
    char *start = phema_arena_printf(&checkpoint->arena, "%s.", name);
    if (!path || !label || !start)
        return phema_fail_memory(err);
    enum phema_status status = checkpoint_add_file(checkpoint, path, label, err);
    if (status)
        return status;
    checkpoint->base = checkpoint->n_files - 1;
    checkpoint->part = (struct phema_span){(const uint8_t *)start, strlen(start)};
    checkpoint->format = format_probe(checkpoint_content(checkpoint, checkpoint->base));
    if (strcmp(checkpoint->format->info.name, "dcp") != 0)
        return phema_fail(err, PHEMA_ERR_FILE, "expected the metadata of a distributed checkpoint");
    return checkpoint->format->open(checkpoint, options, err);
}

static enum phema_status open_parts(struct phema_checkpoint *checkpoint,
                                    const struct directory_scan *scan,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    struct phema_name_buffer shown;
    for (size_t i = 0; i < scan->n_parts; i++) {
        const char *name = scan->parts[i];
        enum phema_status status = open_part(checkpoint, name, options, err);
        if (status)
            return phema_fail_in(err, status, "%s/.metadata", phema_name_show(&shown, name));
    }
    checkpoint->base = 0;
    checkpoint->part = (struct phema_span){NULL, 0};
    return index_names(checkpoint, err);
}

static enum phema_status open_found(struct phema_checkpoint *checkpoint,
                                    struct directory_scan *scan,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    const char *name = NULL;
    enum phema_status status = directory_scan(scan, checkpoint->path, err);
    if (!status && directory_is_bare(scan))
        status = directory_find_parts(scan, checkpoint->path, err);
    if (status)
        return status;
    if (scan->n_parts)
        return open_parts(checkpoint, scan, options, err);
    bool is_certain = false;
    if (!scan->is_distributed && !scan->n_indices)
        checkpoint->format = format_probe_directory(&is_certain, &scan->names);
    if (checkpoint->format) {
        status = checkpoint->format->open_directory(checkpoint, &scan->names, options, err);
        return status ? status : index_names(checkpoint, err);
    }
    status = directory_choose(&name, scan, checkpoint->path, err);
    if (status)
        return status;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", checkpoint->path, name) < 0)
        return phema_fail_memory(err);
    status = open_file(checkpoint, path, options, err);
    free(path);
    struct phema_name_buffer shown;
    if (status)
        return phema_fail_in(err, status, "%s", phema_name_show(&shown, name));
    return PHEMA_OK;
}

static enum phema_status open_directory(struct phema_checkpoint *checkpoint,
                                        const struct phema_checkpoint_options *options,
                                        struct phema_error *err)
{
    struct directory_scan found = {0};
    enum phema_status status = open_found(checkpoint, &found, options, err);
    directory_scan_clear(&found);
    return status;
}

/* ---- Open and close ---- */

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
    checkpoint->keeps_descriptors = options->keeps_descriptors;
    if (phema_path_is_directory(path))
        status = open_directory(checkpoint, options, err);
    else
        status = open_file(checkpoint, path, options, err);
    if (status)
        goto fail;
    for (size_t f = 0; f < checkpoint->n_files; f++)
        phema_file_expect_sparse(checkpoint->files[f].file, false);
    status = scaling_find(checkpoint, options->alike, err);
    if (status)
        goto fail;
    status = phema_checkpoint_check_unchanged(checkpoint, err);
    if (status) { /* the message has the path already */
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

void phema_checkpoint_close(struct phema_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    phema_checkpoint_forget_listing(checkpoint);
    phema_arena_clear(&checkpoint->chunk_arena);
    zstd_frames_free(checkpoint->frames);
    for (size_t i = 0; i < checkpoint->n_files; i++) {
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
