// SPDX-License-Identifier: Apache-2.0
/* directory.c - PATH.partial/ as a unit: locked, filled with plain files, and published as PATH by
 * rename or by exchange with an old directory. The old one is removed when the exchange is durable,
 * and comes back where that fails. Memory and descriptors are reserved before the exchange. A
 * leftover of a killed run is emptied only where it holds plain files alone, or a provenance
 * of this program: other entries are not this program's to remove. */
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
#include "phema/array.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "phema/strbuf.h"
#include "write_error.h"
#include "writer_internal.h"

/* Removed by its name: when it is removed there may be no memory for a listing, nor a
 * descriptor. */
struct directory_file {
    char *name;
    struct phema_cleanup_entry *entry;
};

struct phema_writer_directory {
    char *path, *partial_path;
    int descriptor; /* of PATH.partial, which it locks */
    bool is_ours;   /* this run may remove PATH.partial */
    bool took_over;
    bool is_kept;       /* stays when it is abandoned */
    mode_t usual_write; /* as of a writer */
    mode_t old_mode;    /* of the directory that it was exchanged with */
    struct phema_writer_options options;
    struct phema_cleanup_entry *entry;
    struct directory_file *files;
    size_t n_files, files_capacity;
    struct folder_list folders;
    int parent; /* opened before anything is published; or -1 */
    DIR *old;   /* the directory to replace: opened before, so that it can be emptied afterwards */
};

static unsigned traits_of(const struct phema_writer_directory *directory)
{
    return directory->options.has_folders ? DIRECTORY_MAY_HAVE_FOLDERS : 0;
}

static enum phema_status check_old(int descriptor, const char *path, bool replaces,
                                   bool has_folders, struct phema_error *err)
{
    bool is_empty = false;
    unsigned traits = has_folders ? DIRECTORY_MAY_HAVE_FOLDERS : 0;
    enum phema_status status = directory_check_entries(&is_empty, descriptor, traits, path, err);
    if (is_empty && !status)
        return PHEMA_OK;
    if (!replaces)
        return phema_suggest(err,
                             phema_fail(err, PHEMA_ERR_OUTPUT, "%s: exists already; %s replaces it",
                                        path, phema_setting_name(PHEMA_SET_FORCE)),
                             PHEMA_SET_FORCE, NULL);
    if (status || faccessat(descriptor, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return status;
    return writer_fail_errno(err, path, "cannot be emptied", errno);
}

PHEMA_FALLIBLE phema_writer_directory_check(const char *path, bool replaces, bool has_folders,
                                            struct phema_error *err)
{
    struct stat st;
    const char *name = phema_path_last_name(path);
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
    enum phema_status status = check_old(descriptor, path, replaces, has_folders, err);
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
    DIR *stream = directory_list(directory->descriptor);
    if (!stream)
        return writer_fail_errno(err, path, "cannot be listed", errno);
    unsigned traits = traits_of(directory) | DIRECTORY_IS_LEFTOVER;
    directory_remove_listed(stream, traits);
    enum phema_status status = directory_check_listed(&is_empty, stream, traits, path, err);
    (void)closedir(stream);
    if (status || is_empty)
        return status;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: the leftovers of an earlier run cannot be removed", path);
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
    status = directory_check_entries(&is_empty, directory->descriptor,
                                     traits_of(directory) | DIRECTORY_IS_LEFTOVER,
                                     directory->partial_path, err);
    if (!status && !is_empty)
        status = writer_check_no_parts(directory->path, err);
    if (status)
        return status;
    directory->is_ours = true;
    directory->is_kept = resumes && !is_empty;
    status = is_empty || resumes ? PHEMA_OK : empty(directory, err);
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
    directory->path = phema_path_trim(path);
    directory->partial_path = directory->path ? path_partial(directory->path) : NULL;
    if (!directory->partial_path) {
        phema_writer_directory_abandon(directory);
        return writer_fail_memory(err, path);
    }
    directory->usual_write = permissions_usual_write(directory->path);
    *out = directory;
    return PHEMA_OK;
}

static enum phema_status begin(struct phema_writer_directory *directory, struct phema_error *err)
{
    enum phema_status status = phema_writer_directory_check(
        directory->path, directory->options.replaces, directory->options.has_folders, err);
    if (status)
        return status;
    phema_cleanup_hold();
    status = open_partial(directory, err);
    phema_cleanup_resume();
    return status;
}

PHEMA_FALLIBLE phema_writer_directory_open(struct phema_writer_directory **out, const char *path,
                                           const struct phema_writer_options *options,
                                           struct phema_error *err)
{
    struct phema_writer_directory *directory = NULL;
    enum phema_status status = new_directory(&directory, path, options, err);
    if (status)
        return status;
    status = begin(directory, err);
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

/* Takes the directory and its files off the list of files to remove. */
static void forget(struct phema_writer_directory *directory)
{
    for (size_t i = 0; i < directory->n_files; i++) {
        phema_cleanup_remove(directory->files[i].entry);
        directory->files[i].entry = NULL;
    }
    folders_forget(&directory->folders);
    phema_cleanup_remove(directory->entry);
    directory->entry = NULL;
}

bool phema_writer_directory_took_over(const struct phema_writer_directory *directory)
{
    return directory->took_over;
}

void phema_writer_directory_keep(struct phema_writer_directory *directory, bool keeps)
{
    directory->is_kept = keeps;
    if (keeps)
        forget(directory);
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
    directory_remove_unwanted(directory->descriptor, traits_of(directory), is_added, directory);
}

/* Opens a file of the directory and puts it on the list of files to remove. Ending signals are
 * held. */
static enum phema_status begin_file(struct phema_writer **out,
                                    struct phema_writer_directory *directory, const char *name,
                                    const char *path, const char *partial_path,
                                    struct phema_error *err)
{
    enum phema_status status = folders_make(&directory->folders, directory->descriptor,
                                            directory->partial_path, name, err);
    if (status)
        return status;
    if (!phema_array_grow(&directory->files, &directory->files_capacity, directory->n_files,
                          sizeof(*directory->files)))
        return writer_fail_memory(err, path);
    struct phema_writer *writer = NULL;
    struct directory_file *file = &directory->files[directory->n_files];
    *file = (struct directory_file){.name = strdup(name)};
    if (!file->name)
        return writer_fail_memory(err, path);
    status = writer_begin_inside(&writer, path, partial_path, &directory->options, err);
    if (!status && !writer->is_kept)
        status = phema_cleanup_add_partial(&file->entry, partial_path, false, err);
    if (status)
        free(file->name);
    else
        directory->n_files++;
    return writer_hand_over(out, writer, status);
}

static enum phema_status begin_named(struct phema_writer **out,
                                     struct phema_writer_directory *directory, const char *name,
                                     struct phema_error *err)
{
    struct phema_name_buffer shown;
    if (!folders_name_is_valid(name) || (strchr(name, '/') && !directory->options.has_folders))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: expected the name of a file in it, found '%s'", directory->path,
                          phema_name_escape(&shown, name, strlen(name)));
    char *path = NULL, *partial_path = NULL;
    if (asprintf(&path, "%s/%s", directory->path, name) < 0)
        return writer_fail_memory(err, directory->path);
    if (asprintf(&partial_path, "%s/%s", directory->partial_path, name) < 0) {
        free(path);
        return writer_fail_memory(err, directory->path);
    }
    phema_cleanup_hold();
    enum phema_status status = begin_file(out, directory, name, path, partial_path, err);
    phema_cleanup_resume();
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
    if (status)
        return status;
    return writer_hand_over(out, writer, writer_make_fresh(writer, size_bytes, err));
}

PHEMA_FALLIBLE phema_writer_directory_add_copy(struct phema_writer **out,
                                               struct phema_writer_directory *directory,
                                               const char *name, const char *source,
                                               uint64_t size_bytes, struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status = begin_named(&writer, directory, name, err);
    return status
               ? status
               : writer_hand_over(out, writer, writer_make_copy(writer, source, size_bytes, err));
}

PHEMA_FALLIBLE phema_writer_directory_copy_file(struct phema_writer_directory *directory,
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
        status = writer_commit_copy(writer, descriptor, source, size_bytes, err);
    (void)close(descriptor);
    return status;
}

/* ---- Publishing ---- */

int directory_move_aside(const char *path, const char *partial_path, const char *aside_path)
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

/* Exchanges the new directory and the old one. *old_path: of the old one afterwards, the
 * caller's. */
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
        result = directory_move_aside(directory->path, partial_path, aside_path);
    int number = errno;
    *old_path = moves_aside ? aside_path : partial_path;
    free(moves_aside ? partial_path : aside_path);
    errno = number;
    return result;
}

/* Removes write permission for others, as publish.c does: the run may die before the old directory
 * is removed. Its files follow before the first one is removed. */
static void hide_old(struct phema_writer_directory *directory)
{
    struct stat st;
    if (!directory->old || fstat(dirfd(directory->old), &st))
        return;
    directory->old_mode = st.st_mode & 07777;
    mode_t hidden = directory->old_mode & ~(mode_t)(S_IWGRP | S_IWOTH);
    if (hidden != directory->old_mode)
        (void)fchmod(dirfd(directory->old), hidden);
}

/* rename replaces empty directories alone. */
static enum phema_status publish(char **old_path, struct phema_writer_directory *directory,
                                 struct phema_error *err)
{
    int result = rename(directory->partial_path, directory->path);
    int number = errno;
    if (result && (number == ENOTEMPTY || number == EEXIST) && directory->options.replaces) {
        result = exchange(old_path, directory);
        number = errno;
        if (!result)
            hide_old(directory);
    }
    if (!result) {
        directory->is_ours = false;
        forget(directory);
        folders_open_permissions(&directory->folders, directory->descriptor,
                                 directory->usual_write);
        permissions_open_directory(directory->descriptor, directory->usual_write);
        return PHEMA_OK;
    }
    if (number == ENOTEMPTY || number == EEXIST || number == ENOTDIR)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: appeared while this run was writing; it was left as it is (%s "
                          "replaces directories of files)",
                          directory->path, phema_setting_name(PHEMA_SET_FORCE));
    return writer_fail_errno(err, directory->path, "cannot be renamed into place", number);
}

/* Exchanges the directories again, so that the new one can be removed. */
static void undo(struct phema_writer_directory *directory, const char *old_path)
{
    if (directory->old && directory->old_mode)
        (void)fchmod(dirfd(directory->old), directory->old_mode);
    bool is_aside = strcmp(old_path, directory->partial_path) != 0;
    int result = is_aside
                     ? directory_move_aside(directory->path, old_path, directory->partial_path)
                     : renameat2(AT_FDCWD, old_path, AT_FDCWD, directory->path, RENAME_EXCHANGE);
    directory->is_ours =
        result == 0 && directory->n_files; /* adopted directories have no files here, and stay */
}

static enum phema_status remove_old(const char *path, DIR *old, unsigned traits,
                                    struct phema_error *err)
{
    bool is_empty = false;
    enum phema_status status = directory_check_listed(&is_empty, old, traits, path, err);
    if (status)
        return status;
    permissions_close_directory(old); /* a kill would leave it behind */
    directory_remove_listed(old, traits);
    return rmdir(path) ? writer_fail_errno(err, path, "cannot be removed", errno) : PHEMA_OK;
}

static enum phema_status remove_replaced(const char *path, const char *old_path, DIR *old,
                                         unsigned traits, struct phema_error *err)
{
    enum phema_status status = remove_old(old_path, old, traits, err);
    return status
               ? phema_fail_in(err, status, "%s: is in place, but what it replaced is left", path)
               : PHEMA_OK;
}

PHEMA_FALLIBLE directory_remove_replaced(const char *path, const char *old_path,
                                         struct phema_error *err)
{
    DIR *old = opendir(old_path);
    if (!old)
        return writer_fail_errno(err, old_path, "cannot be opened", errno);
    enum phema_status status = remove_replaced(path, old_path, old, 0, err);
    (void)closedir(old);
    return status;
}

static enum phema_status open_old(struct phema_writer_directory *directory, struct phema_error *err)
{
    if (!directory->options.replaces)
        return PHEMA_OK;
    directory->old = opendir(directory->path);
    if (directory->old || errno == ENOENT || errno == ENOTDIR)
        return PHEMA_OK;
    return writer_fail_errno(err, directory->path, "cannot be opened", errno);
}

static enum phema_status finish(struct phema_writer_directory *directory, struct phema_error *err)
{
    bool syncs = directory->options.syncs;
    enum phema_status status =
        syncs ? folders_sync(&directory->folders, directory->descriptor, directory->path, err)
              : PHEMA_OK;
    if (status)
        return status;
    if (syncs && file_sync(directory->descriptor) && errno != EINVAL)
        return writer_fail_errno(err, directory->path, "cannot be synced", errno);
    status = syncs ? writer_open_parent(&directory->parent, directory->path, err) : PHEMA_OK;
    return status ? status : open_old(directory, err);
}

PHEMA_FALLIBLE phema_writer_directory_commit(struct phema_writer_directory *directory,
                                             struct phema_error *err)
{
    char *old_path = NULL;
    enum phema_status status = finish(directory, err);
    phema_cleanup_hold(); /* a signal waits until the old directory is removed or restored */
    if (!status)
        status = publish(&old_path, directory, err);
    bool is_published = !status;
    if (is_published) {
        status = writer_sync_parent(directory->parent, directory->path, err);
        if (status && old_path)
            undo(directory, old_path);
        else if (old_path)
            status = remove_replaced(directory->path, old_path, directory->old,
                                     traits_of(directory), err);
    }
    free(old_path);
    phema_writer_directory_abandon(directory);
    phema_cleanup_resume();
    return status;
}

void phema_writer_directory_abandon(struct phema_writer_directory *directory)
{
    if (!directory)
        return;
    if (directory->is_ours && !directory->is_kept && directory->partial_path) {
        for (size_t i = 0; i < directory->n_files; i++)
            (void)unlinkat(directory->descriptor, directory->files[i].name, 0);
        folders_remove(&directory->folders, directory->descriptor);
        (void)rmdir(directory->partial_path);
    }
    forget(directory);
    if (directory->old)
        (void)closedir(directory->old);
    if (directory->parent >= 0)
        (void)close(directory->parent);
    if (directory->descriptor >= 0)
        (void)close(directory->descriptor);
    for (size_t i = 0; i < directory->n_files; i++)
        free(directory->files[i].name);
    free(directory->files);
    folders_clear(&directory->folders);
    free(directory->partial_path);
    free(directory->path);
    free(directory);
}
