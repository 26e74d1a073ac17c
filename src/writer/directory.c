// SPDX-License-Identifier: Apache-2.0
/* directory.c - PATH.partial/ as a unit: locked and filled with plain files. A leftover of a killed
 * run is emptied only where it holds plain files alone: other entries are not this program's to
 * remove. */
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "part.h"
#include "partial.h"
#include "path_names.h"
#include "permissions.h"
#include "phema/array.h"
#include "phema/cleanup.h"
#include "phema/strbuf.h"
#include "write_error.h"
#include "writer_internal.h"

static enum phema_status check_old(int descriptor, const char *path, bool replaces,
                                   struct phema_error *err)
{
    bool is_empty = false;
    enum phema_status status = directory_check_entries(&is_empty, descriptor, false, path, err);
    if (is_empty && !status)
        return PHEMA_OK;
    if (!replaces)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: exists already; --force replaces it", path);
    if (!status && faccessat(descriptor, ".", W_OK | X_OK, AT_EACCESS))
        status = writer_fail_errno(err, path, "cannot be emptied", errno);
    return status;
}

PHEMA_FALLIBLE phema_writer_directory_check(const char *path, bool replaces,
                                            struct phema_error *err)
{
    struct stat st;
    const char *name = path_last_name(path);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: expected the name of a directory to make",
                          path);
    if (lstat(path, &st)) {
        if (errno == ENOENT)
            return PHEMA_OK;
        return writer_fail_errno(err, path, "cannot be examined", errno);
    }
    if (!S_ISDIR(st.st_mode))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: exists already and is not a directory; remove it or choose another "
                          "name",
                          path);
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return writer_fail_errno(err, path, "cannot be examined", errno);
    enum phema_status status = check_old(descriptor, path, replaces, err);
    (void)close(descriptor);
    return status;
}

static enum phema_status open_locked(struct phema_writer_directory *directory,
                                     struct phema_error *err)
{
    const struct partial_request request = {.path = directory->path,
                                            .partial_path = directory->partial_path,
                                            .use = PARTIAL_EXCLUSIVE,
                                            .is_directory = true};
    bool is_new = false;
    enum phema_status status = partial_open(&directory->descriptor, &is_new, &request, err);
    if (status)
        return status == PHEMA_NO ? writer_fail_locked(err, directory->path) : status;
    directory->is_ours = is_new;
    directory->took_over = !is_new;
    return PHEMA_OK;
}

/* Files of a dead run must not be published. */
static enum phema_status empty(struct phema_writer_directory *directory, struct phema_error *err)
{
    bool is_empty = false;
    const char *path = directory->partial_path;
    enum phema_status status = directory_remove_files(directory->descriptor, path, err);
    if (status)
        return status;
    status = directory_check_entries(&is_empty, directory->descriptor, true, path, err);
    if (status || is_empty)
        return status;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: what an ended run has left in it cannot be removed", path);
}

/* Creates or takes over PATH.partial, locks and empties it, and puts it on the list of paths to
 * remove when the program dies. Ending signals are held. */
static enum phema_status open_partial(struct phema_writer_directory *directory,
                                      struct phema_error *err)
{
    bool is_empty = false, resumes = directory->options.resumes;
    enum phema_status status = open_locked(directory, err);
    if (status)
        return status;
    status = directory_check_entries(&is_empty, directory->descriptor, true,
                                     directory->partial_path, err);
    if (!status && !is_empty)
        status = writer_check_no_parts(directory->path, err);
    if (status)
        return status;
    directory->is_ours = true;
    directory->is_kept = resumes && !is_empty;
    if (!is_empty && !resumes)
        status = empty(directory, err);
    if (status)
        return status;
    status = phema_cleanup_add_partial(&directory->entry, directory->partial_path, true, err);
    return status ? phema_fail_in(err, status, "%s", directory->path) : PHEMA_OK;
}

static enum phema_status new_directory(struct phema_writer_directory **out, const char *path,
                                       const struct phema_writer_options *options,
                                       struct phema_error *err)
{
    struct phema_writer_directory *directory = calloc(1, sizeof(*directory));
    if (!directory)
        return writer_fail_memory(err, path);
    directory->descriptor = -1;
    directory->parent = -1;
    directory->options = *options;
    directory->path = path_trim(path);
    directory->partial_path = directory->path ? path_partial(directory->path) : NULL;
    if (!directory->partial_path) {
        phema_writer_directory_abandon(directory);
        return writer_fail_memory(err, path);
    }
    directory->usual_write = permissions_usual_write(directory->path);
    *out = directory;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_writer_directory_open(struct phema_writer_directory **out, const char *path,
                                           const struct phema_writer_options *options,
                                           struct phema_error *err)
{
    struct phema_writer_directory *directory = NULL;
    enum phema_status status = new_directory(&directory, path, options, err);
    if (status)
        return status;
    status = phema_writer_directory_check(directory->path, options->replaces, err);
    if (!status) {
        phema_cleanup_hold();
        status = open_partial(directory, err);
        phema_cleanup_resume();
    }
    if (status)
        phema_writer_directory_abandon(directory);
    else
        *out = directory;
    return status;
}

PHEMA_FALLIBLE directory_adopt(struct phema_writer_directory **out, const char *path,
                               int descriptor, const struct phema_writer_options *options,
                               struct phema_error *err)
{
    enum phema_status status = new_directory(out, path, options, err);
    if (status)
        (void)close(descriptor);
    else
        (*out)->descriptor = descriptor;
    return status;
}

bool phema_writer_directory_took_over(const struct phema_writer_directory *directory)
{
    return directory->took_over;
}

void phema_writer_directory_keep(struct phema_writer_directory *directory, bool keeps)
{
    directory->is_kept = keeps;
    if (keeps)
        directory_forget(directory);
}

static bool is_added(const void *context, const char *name)
{
    const struct phema_writer_directory *directory = context;
    for (size_t i = 0; i < directory->n_files; i++)
        if (strcmp(directory->files[i].name, name) == 0)
            return true;
    return false;
}

void phema_writer_directory_remove_others(struct phema_writer_directory *directory)
{
    directory_remove_unwanted(directory->descriptor, is_added, directory);
}

/* Opens a file of the directory and puts it on the list of files to remove. */
static enum phema_status begin_file(struct phema_writer **out,
                                    struct phema_writer_directory *directory, const char *path,
                                    const char *partial_path, struct phema_error *err)
{
    if (!phema_array_grow(&directory->files, &directory->files_capacity, directory->n_files,
                          sizeof(*directory->files)))
        return writer_fail_memory(err, path);
    struct phema_writer *writer = NULL;
    struct directory_file file = {.name = strdup(path_last_name(path))};
    if (!file.name)
        return writer_fail_memory(err, path);
    phema_cleanup_hold();
    enum phema_status status =
        writer_begin_inside(&writer, path, partial_path, &directory->options, err);
    if (!status && !writer->is_kept)
        status = phema_cleanup_add_partial(&file.entry, partial_path, false, err);
    if (!status) {
        directory->files[directory->n_files++] = file;
    } else {
        phema_writer_abandon(writer);
        free(file.name);
    }
    phema_cleanup_resume();
    if (!status)
        *out = writer;
    return status;
}

static enum phema_status begin_named(struct phema_writer **out,
                                     struct phema_writer_directory *directory, const char *name,
                                     struct phema_error *err)
{
    struct phema_name_buffer shown;
    if (!name[0] || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: expected the name of a file in it, found '%s'", directory->path,
                          phema_name_escape(&shown, name, strlen(name)));
    char *path = NULL;
    char *partial_path = NULL;
    enum phema_status status = PHEMA_OK;
    if (asprintf(&path, "%s/%s", directory->path, name) < 0) {
        path = NULL;
        status = writer_fail_memory(err, directory->path);
    } else if (asprintf(&partial_path, "%s/%s", directory->partial_path, name) < 0) {
        partial_path = NULL;
        status = writer_fail_memory(err, path);
    } else {
        status = begin_file(out, directory, path, partial_path, err);
    }
    free(path);
    free(partial_path);
    return status;
}

PHEMA_FALLIBLE phema_writer_directory_add(struct phema_writer **out,
                                          struct phema_writer_directory *directory,
                                          const char *name, uint64_t size_bytes,
                                          struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status = begin_named(&writer, directory, name, err);
    if (!status && !writer_resumes(writer, size_bytes))
        status = writer_allocate(writer, size_bytes, err);
    if (!status)
        writer->is_fresh = size_bytes > 0;
    return writer_hand_over(out, writer, status);
}

PHEMA_FALLIBLE phema_writer_directory_add_copy(struct phema_writer **out,
                                               struct phema_writer_directory *directory,
                                               const char *name, const char *source,
                                               struct phema_error *err)
{
    int descriptor = -1;
    uint64_t size_bytes = 0;
    struct phema_writer *writer = NULL;
    enum phema_status status = writer_open_source(&descriptor, &size_bytes, source, err);
    if (status)
        return status;
    status = begin_named(&writer, directory, name, err);
    if (!status)
        status = writer_copy(writer, descriptor, source, size_bytes, err);
    (void)close(descriptor);
    return writer_hand_over(out, writer, status);
}

PHEMA_FALLIBLE phema_writer_directory_copy_file(struct phema_writer_directory *directory,
                                                const char *name, const char *source,
                                                struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status =
        phema_writer_directory_add_copy(&writer, directory, name, source, err);
    return status ? status : phema_writer_commit(writer, err);
}
