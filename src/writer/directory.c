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

#include "partial.h"
#include "phema/cleanup.h"
#include "phema/text.h"

struct phema_writer_directory {
    char *path, *partial_path;
    int descriptor; /* of PATH.partial, which it locks */
    bool is_ours;   /* PATH.partial is: it may be removed */
    struct phema_writer_options options;
    struct phema_cleanup_entry *entry, **files;
    size_t n_files, files_capacity;
};

static enum phema_status check_old(int descriptor, const char *path, bool replaces,
                                   struct phema_error *err)
{
    bool is_empty = false;
    enum phema_status status = writer_check_files_alone(&is_empty, descriptor, path, err);
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
        if (mkdir(directory->partial_path, 0777) && errno != EEXIST)
            return writer_fail_errno(err, directory->path, "cannot be made", errno);
        int descriptor =
            open(directory->partial_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (descriptor < 0 && errno == ENOENT) /* the run that had it has ended */
            continue;
        if (descriptor < 0 && (errno == ENOTDIR || errno == ELOOP))
            return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: is not a directory; remove it",
                              directory->partial_path);
        if (descriptor < 0)
            return writer_fail_errno(err, directory->path, "cannot be written", errno);
        directory->descriptor = descriptor;
        enum phema_status status = writer_lock(descriptor, directory->path, err);
        if (status || writer_is_still_named(descriptor, directory->partial_path))
            return status;
        (void)close(descriptor);
        directory->descriptor = -1;
    }
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: other runs keep writing it", directory->path);
}

/* Made, locked, empty and on the list of what goes when the program dies. */
static enum phema_status take(struct phema_writer_directory *directory, struct phema_error *err)
{
    bool is_empty = false;
    phema_cleanup_hold();
    enum phema_status status = open_locked(directory, err);
    if (!status)
        status = writer_check_files_alone(&is_empty, directory->descriptor, directory->partial_path,
                                          err);
    if (!status && !is_empty)
        status = writer_check_no_parts(directory->path, err);
    if (!status) {
        directory->is_ours = true;
        writer_remove_files(directory->descriptor);
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
    directory->options = *options;
    directory->path = strndup(path, size);
    if (!directory->path || asprintf(&directory->partial_path, "%s.partial", directory->path) < 0) {
        directory->partial_path = NULL;
        phema_writer_directory_abandon(directory);
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
    }
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

/* An empty file of the directory, on the list of what goes. */
static enum phema_status begin_file(struct phema_writer **out,
                                    struct phema_writer_directory *directory, const char *path,
                                    const char *partial_path, struct phema_error *err)
{
    if (directory->n_files == directory->files_capacity) {
        size_t capacity = directory->files_capacity ? 2 * directory->files_capacity : 16;
        struct phema_cleanup_entry **larger =
            realloc(directory->files, capacity * sizeof(struct phema_cleanup_entry *));
        if (!larger)
            return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: out of memory", path);
        directory->files = larger;
        directory->files_capacity = capacity;
    }
    struct phema_writer *writer = NULL;
    phema_cleanup_hold();
    enum phema_status status =
        writer_begin_inside(&writer, path, partial_path, &directory->options, err);
    if (!status)
        status = phema_cleanup_add_partial(&directory->files[directory->n_files], partial_path,
                                           false, err);
    if (!status)
        directory->n_files++;
    else if (writer)
        phema_writer_abandon(writer);
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
                          phema_name_shown(&shown, name, strlen(name)));
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
    if (!status)
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

int writer_move_aside(const char *path, const char *partial_path, const char *aside_path)
{
    if (rename(path, aside_path))
        return -1;
    if (rename(partial_path, path) == 0)
        return 0;
    int number = errno;
    (void)rename(aside_path, path);
    errno = number;
    return -1;
}

/* Puts the new directory in the old one's place; where the old one is then comes out. */
static int exchange(char **old_path, const struct phema_writer_directory *directory)
{
    char *aside_path = NULL;
    char *partial_path = strdup(directory->partial_path);
    if (!partial_path || asprintf(&aside_path, "%s.replaced", directory->path) < 0) {
        free(partial_path);
        errno = ENOMEM;
        return -1;
    }
    int result = renameat2(AT_FDCWD, partial_path, AT_FDCWD, directory->path, RENAME_EXCHANGE);
    bool moves_aside = result && (errno == EINVAL || errno == ENOSYS);
    if (moves_aside)
        result = writer_move_aside(directory->path, partial_path, aside_path);
    int number = errno;
    *old_path = moves_aside ? aside_path : partial_path;
    free(moves_aside ? partial_path : aside_path);
    errno = number;
    return result;
}

static void forget_entries(struct phema_writer_directory *directory)
{
    for (size_t i = 0; i < directory->n_files; i++)
        phema_cleanup_remove(directory->files[i]);
    directory->n_files = 0;
    phema_cleanup_remove(directory->entry);
    directory->entry = NULL;
}

/* Of directories, rename replaces empty ones alone. */
static enum phema_status publish(char **old_path, struct phema_writer_directory *directory,
                                 struct phema_error *err)
{
    phema_cleanup_hold();
    int result = rename(directory->partial_path, directory->path);
    int number = errno;
    if (result && (number == ENOTEMPTY || number == EEXIST) && directory->options.replaces) {
        result = exchange(old_path, directory);
        number = errno;
    }
    if (!result) {
        directory->is_ours = false;
        forget_entries(directory);
    }
    phema_cleanup_resume();
    if (!result)
        return PHEMA_OK;
    if (number == ENOTEMPTY || number == EEXIST || number == ENOTDIR)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: appeared while this run was writing; it was left as it is "
                          "(--force replaces directories of files)",
                          directory->path);
    return writer_fail_errno(err, directory->path, "cannot be renamed into place", number);
}

static enum phema_status remove_old(const char *path, const char *old_path, struct phema_error *err)
{
    bool is_empty = false;
    int descriptor = open(old_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    enum phema_status status = descriptor < 0
                                   ? writer_fail_errno(err, old_path, "cannot be opened", errno)
                                   : writer_check_files_alone(&is_empty, descriptor, old_path, err);
    if (!status) {
        writer_remove_files(descriptor);
        if (rmdir(old_path))
            status = writer_fail_errno(err, old_path, "cannot be removed", errno);
    }
    if (descriptor >= 0)
        (void)close(descriptor);
    if (status)
        (void)phema_fail_in(err, status, "%s: is in place, but what it replaced is left", path);
    return status;
}

PHEMA_FALLIBLE phema_writer_directory_commit(struct phema_writer_directory *directory,
                                             struct phema_error *err)
{
    char *old_path = NULL;
    enum phema_status status = PHEMA_OK;
    if (directory->options.syncs && fsync(directory->descriptor) && errno != EINVAL)
        status = writer_fail_errno(err, directory->path, "cannot be synced", errno);
    if (!status)
        status = publish(&old_path, directory, err);
    if (!status && directory->options.syncs)
        status = phema_writer_sync_entry(directory->path, err);
    if (!status && old_path)
        status = remove_old(directory->path, old_path, err);
    free(old_path);
    phema_writer_directory_abandon(directory);
    return status;
}

void phema_writer_directory_abandon(struct phema_writer_directory *directory)
{
    if (!directory)
        return;
    if (directory->is_ours && directory->partial_path) {
        writer_remove_files(directory->descriptor);
        (void)rmdir(directory->partial_path);
    }
    forget_entries(directory);
    if (directory->descriptor >= 0)
        (void)close(directory->descriptor);
    free(directory->files);
    free(directory->partial_path);
    free(directory->path);
    free(directory);
}
