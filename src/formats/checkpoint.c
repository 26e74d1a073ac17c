// SPDX-License-Identifier: Apache-2.0
/* checkpoint.c - Open and close a checkpoint, whatever its format. Two tensors with one name are
 * refused here, for all formats. */
#include "phema/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format.h"
#include "phema/strbuf.h"
#include "zstd/frame_index.h"

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
    checkpoint->format = format_probe(checkpoint_content(checkpoint, 0));
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
