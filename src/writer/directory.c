// SPDX-License-Identifier: Apache-2.0
/* directory.c - PATH.partial/, locked, filled with plain files; published by rename. A leftover of
 * a killed run and a directory that is replaced are emptied only where they hold files alone: what
 * somebody else has put into one of that name is not ours to remove. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "phema/cleanup.h"
#include "phema/strbuf.h"

static enum phema_status check_old(int descriptor, const char *path, bool replaces,
                                   struct phema_error *err)
{
    bool is_empty = false;
    enum phema_status status = writer_check_files_alone(&is_empty, descriptor, false, path, err);
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
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
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
    for (int attempt = 0; attempt < 16; attempt++) {
        int descriptor = -1;
        bool is_new = false;
        enum phema_status status = writer_make_directory(&descriptor, &is_new, directory->path,
                                                         directory->partial_path, err);
        if (status)
            return status;
        if (descriptor < 0) /* the run that had it has ended */
            continue;
        directory->descriptor = descriptor;
        bool is_held = false;
        status = writer_lock(&is_held, descriptor, directory->path, err);
        directory->is_ours = is_new && !is_held;
        directory->took_over = !is_new;
        if (status || writer_is_still_named(descriptor, directory->partial_path))
            return status;
        directory->is_ours = false;
        (void)close(descriptor);
        directory->descriptor = -1;
    }
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: other runs keep writing it", directory->path);
}

/* What a dead run has left in it must not be published. */
static enum phema_status empty(struct phema_writer_directory *directory, struct phema_error *err)
{
    bool is_empty = false;
    enum phema_status status =
        writer_remove_files(directory->descriptor, directory->partial_path, err);
    if (!status)
        status = writer_check_files_alone(&is_empty, directory->descriptor, true,
                                          directory->partial_path, err);
    if (!status && !is_empty)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: what an ended run has left in it cannot be removed",
                            directory->partial_path);
    return status;
}

/* Made, locked, empty and on the list of what goes when the program dies. */
static enum phema_status take(struct phema_writer_directory *directory, struct phema_error *err)
{
    bool is_empty = false;
    phema_cleanup_hold();
    enum phema_status status = open_locked(directory, err);
    if (!status)
        status = writer_check_files_alone(&is_empty, directory->descriptor, true,
                                          directory->partial_path, err);
    if (!status && !is_empty)
        status = writer_check_no_parts(directory->path, err);
    if (!status) {
        directory->is_ours = true;
        directory->is_kept = directory->options.resumes && !is_empty;
        status = is_empty || directory->options.resumes ? PHEMA_OK : empty(directory, err);
    }
    if (!status) {
        status = phema_cleanup_add_partial(&directory->entry, directory->partial_path, true, err);
        if (status)
            (void)phema_fail_in(err, status, "%s", directory->path);
    }
    phema_cleanup_resume();
    return status;
}

static enum phema_status new_directory(struct phema_writer_directory **out, const char *path,
                                       const struct phema_writer_options *options,
                                       struct phema_error *err)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    struct phema_writer_directory *directory = calloc(1, sizeof(*directory));
    if (!directory)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
    directory->descriptor = -1;
    directory->parent = -1;
    directory->options = *options;
    directory->path = strndup(path, size);
    if (!directory->path || asprintf(&directory->partial_path, "%s.partial", directory->path) < 0) {
        directory->partial_path = NULL;
        phema_writer_directory_abandon(directory);
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
    }
    directory->usual_write = writer_usual_write(directory->path);
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
    if (!status)
        status = take(directory, err);
    if (status)
        phema_writer_directory_abandon(directory);
    else
        *out = directory;
    return status;
}

PHEMA_FALLIBLE writer_directory_adopt(struct phema_writer_directory **out, const char *path,
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
        writer_directory_forget(directory);
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
    writer_remove_others(directory->descriptor, is_added, directory);
}

/* A file of the directory, on the list of what goes. */
static enum phema_status begin_file(struct phema_writer **out,
                                    struct phema_writer_directory *directory, const char *path,
                                    const char *partial_path, struct phema_error *err)
{
    if (directory->n_files == directory->files_capacity) {
        size_t capacity = directory->files_capacity ? 2 * directory->files_capacity : 16;
        struct directory_file *larger = realloc(directory->files, capacity * sizeof(*larger));
        if (!larger)
            return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
        directory->files = larger;
        directory->files_capacity = capacity;
    }
    struct phema_writer *writer = NULL;
    struct directory_file file = {.name = strdup(strrchr(path, '/') + 1)};
    if (!file.name)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
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
        status = phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", directory->path);
    } else if (asprintf(&partial_path, "%s/%s", directory->partial_path, name) < 0) {
        partial_path = NULL;
        status = phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
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
