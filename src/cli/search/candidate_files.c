// SPDX-License-Identifier: Apache-2.0
/* candidate_files.c - the files of candidates: kept, removed, or removed by a signal. */
#include "search/candidate_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *candidate_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum phema_status add_entry(struct candidate *candidate, const char *path, bool is_directory,
                                   struct phema_error *err)
{
    enum phema_status status = phema_cleanup_add_partial(&candidate->entries[candidate->n_entries],
                                                         path, is_directory, err);
    candidate->n_entries += !status;
    return status;
}

/* path, or path/name, or path.json */
static enum phema_status add_file(struct candidate *candidate, const char *name, const char *end,
                                  struct phema_error *err)
{
    struct phema_strbuf path = {0};
    phema_strbuf_puts(&path, candidate->path);
    if (name)
        phema_strbuf_printf(&path, "/%s", name);
    phema_strbuf_puts(&path, end);
    enum phema_status status = phema_strbuf_check(&path, err);
    if (!status)
        status = add_entry(candidate, path.data, false, err);
    phema_strbuf_clear(&path);
    return status;
}

static enum phema_status add_files(struct candidate *candidate, const struct phema_outputs *outputs,
                                   size_t j, struct phema_error *err)
{
    const struct phema_output *output = &outputs->items[j];
    enum phema_status status = PHEMA_OK;
    candidate->entries =
        calloc(output->n_files + outputs->n_side_files + 2, sizeof(struct phema_cleanup_entry *));
    if (!candidate->entries)
        return phema_fail_memory(err);
    for (size_t f = 0; f < output->n_files && !status; f++)
        status = add_file(candidate, output->files[f].name, "", err);
    bool is_directory = phema_output_traits(outputs)->is_directory;
    for (size_t f = 0; is_directory && f < outputs->n_side_files && !status; f++)
        status = add_file(candidate, outputs->side_files[f].name, "", err);
    if (!status && output->sidecar)
        status = add_file(candidate, NULL, ".json", err);
    if (!status && is_directory)
        status = add_entry(candidate, candidate->path, true, err);
    return status;
}

PHEMA_FALLIBLE candidate_set(struct candidate *out, const struct phema_outputs *outputs, size_t j,
                             bool is_own, struct phema_error *err)
{
    *out = (struct candidate){.is_own = is_own, .path = strdup(outputs->items[j].path)};
    if (!out->path)
        return phema_fail_memory(err);
    return is_own ? add_files(out, outputs, j, err) : PHEMA_OK;
}

void candidate_keep(struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_entries; i++)
        phema_cleanup_remove(candidate->entries[i]);
    candidate->n_entries = 0;
}

void candidate_clear(struct candidate *candidate)
{
    candidate_keep(candidate);
    free(candidate->entries);
    free(candidate->path);
    *candidate = (struct candidate){0};
}

/* Removes the regular files in it, and the directory if it is empty then. */
static void remove_directory(const char *path)
{
    DIR *stream = opendir(path);
    if (!stream)
        return;
    for (const struct dirent *entry = NULL; (entry = readdir(stream));) {
        struct stat st;
        if (fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
    }
    (void)closedir(stream);
    (void)rmdir(path);
}

/* A journal may come from anywhere: each file that it names is checked before it is removed. */
static bool is_synthesised(const char *path, const struct phema_checkpoint_options *options)
{
    struct phema_provenance *recorded = NULL;
    struct phema_error unused;
    if (phema_provenance_open(&recorded, path, options, &unused))
        return false;
    phema_provenance_close(recorded);
    return true;
}

void candidate_remove(const char *directory, const char *name,
                      const struct phema_checkpoint_options *options)
{
    struct phema_strbuf path = {0};
    struct stat st;
    phema_strbuf_printf(&path, "%s/%s", directory, name);
    if (!path.is_failed && lstat(path.data, &st) == 0 && is_synthesised(path.data, options)) {
        if (S_ISDIR(st.st_mode))
            remove_directory(path.data);
        else if (S_ISREG(st.st_mode) && unlink(path.data) == 0) {
            phema_strbuf_puts(&path, ".json");
            if (!path.is_failed)
                (void)unlink(path.data);
        }
    }
    phema_strbuf_clear(&path);
}
