// SPDX-License-Identifier: Apache-2.0
/* directory.c - PATH.partial/ as a unit: locked, filled with plain files, and published as PATH by
 * rename or by exchange with an old directory. The old one is removed when the exchange is durable,
 * and comes back where that fails. Memory and descriptors are reserved before the exchange. A
 * leftover of a killed run is emptied only where it holds plain files alone, or a provenance
 * of this program: other entries are not this program's to remove. Trainers keep model and averages
 * side by side in folders, which are made before their files. */
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "part.h"
#include "phema/array.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "phema/strbuf.h"
#include "writer_internal.h"

/* A file or folder inside. Removed by its name: when it is removed there may be no memory for a
 * listing, nor a descriptor. */
struct entry {
    char *name; /* below the directory */
    bool is_folder;
    struct phema_cleanup_entry *cleanup;
};

struct phema_writer_directory {
    struct pending out;
    struct phema_writer_options options;
    struct entry *entries; /* [n] as they were made */
    size_t n, capacity;
};

static unsigned traits_of(const struct phema_writer_directory *directory)
{
    return directory->options.has_folders ? DIRECTORY_MAY_HAVE_FOLDERS : 0;
}

PHEMA_FALLIBLE phema_writer_directory_check(const char *path, bool replaces, bool has_folders,
                                            struct phema_error *err)
{
    struct stat st;
    bool is_empty = false;
    const char *name = phema_path_last_name(path);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: expected the name of a directory to make",
                          path);
    if (lstat(path, &st))
        return errno == ENOENT ? PHEMA_OK
                               : writer_fail_errno(err, path, "cannot be examined", errno);
    if (!S_ISDIR(st.st_mode))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: exists already and is not a directory; remove it or choose another "
                          "name",
                          path);
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return writer_fail_errno(err, path, "cannot be examined", errno);
    unsigned traits = has_folders ? DIRECTORY_MAY_HAVE_FOLDERS : 0;
    enum phema_status status = directory_check_entries(&is_empty, descriptor, traits, path, err);
    bool is_full = status || !is_empty;
    if (is_full && !replaces)
        status = writer_fail_exists(err, path, "it and all its files");
    else if (is_full && !status && faccessat(descriptor, ".", W_OK | X_OK, AT_EACCESS))
        status = writer_fail_errno(err, path, "cannot be emptied", errno);
    (void)close(descriptor);
    return status;
}

/* Creates or takes over PATH.partial, locks and empties it, and puts it on the list of paths to
 * remove when the program dies. Ending signals are held. */
static enum phema_status open_partial(struct phema_writer_directory *directory,
                                      struct phema_error *err)
{
    struct pending *out = &directory->out;
    const char *path = out->partial_path;
    unsigned traits = traits_of(directory) | DIRECTORY_IS_LEFTOVER;
    bool is_empty = false, resumes = directory->options.resumes;
    enum phema_status status = pending_open(out, PENDING_EXCLUSIVE, err);
    if (!status)
        status = directory_check_entries(&is_empty, out->lock, traits, path, err);
    if (!status && !is_empty)
        status = writer_check_no_parts(out->path, err);
    if (status)
        return status;
    out->is_ours = true;
    out->is_kept = resumes && !is_empty;
    if (!is_empty && !resumes) { /* files of a dead run must not be published */
        DIR *stream = directory_list(out->lock, ".");
        if (!stream)
            return writer_fail_errno(err, path, "cannot be listed", errno);
        directory_remove_listed(stream, traits);
        status = directory_check_listed(&is_empty, stream, traits, path, err);
        (void)closedir(stream);
        if (!status && !is_empty)
            status = phema_fail(err, PHEMA_ERR_OUTPUT,
                                "%s: the leftovers of an earlier run cannot be removed", path);
    }
    if (status)
        return status;
    status = pending_guard(out, err);
    return status ? phema_fail_in(err, status, "%s", out->path) : PHEMA_OK;
}

static enum phema_status new_directory(struct phema_writer_directory **out, const char *path,
                                       const struct phema_writer_options *options,
                                       struct phema_error *err)
{
    struct phema_writer_directory *directory = calloc(1, sizeof(*directory));
    if (!directory)
        return writer_fail_memory(err, path);
    directory->options = *options;
    if (!pending_init(&directory->out, path, ".partial")) {
        phema_writer_directory_abandon(directory);
        return writer_fail_memory(err, path);
    }
    directory->out.is_directory = true;
    directory->out.replaces = options->replaces;
    directory->out.usual_write = permissions_usual_write(directory->out.path);
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
    status = phema_writer_directory_check(directory->out.path, options->replaces,
                                          options->has_folders, err);
    phema_cleanup_hold();
    if (!status)
        status = open_partial(directory, err);
    phema_cleanup_resume();
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
        (*out)->out.lock = descriptor;
    return status;
}

/* Takes the entries off the list of files to remove. */
static void forget_entries(struct phema_writer_directory *directory)
{
    for (size_t i = 0; i < directory->n; i++) {
        phema_cleanup_remove(directory->entries[i].cleanup);
        directory->entries[i].cleanup = NULL;
    }
}

bool phema_writer_directory_took_over(const struct phema_writer_directory *directory)
{
    return directory->out.took_over;
}

void phema_writer_directory_keep(struct phema_writer_directory *directory, bool keeps)
{
    if (keeps)
        forget_entries(directory);
    pending_keep(&directory->out, keeps);
}

static bool has_entry(const struct phema_writer_directory *directory, const char *name,
                      bool is_folder)
{
    for (size_t i = 0; i < directory->n; i++)
        if (directory->entries[i].is_folder == is_folder &&
            strcmp(directory->entries[i].name, name) == 0)
            return true;
    return false;
}

static bool is_added(const void *context, const char *name)
{
    return has_entry(context, name, false);
}

void phema_writer_directory_remove_others(struct phema_writer_directory *directory)
{
    directory_remove_unwanted(directory->out.lock, traits_of(directory), is_added, directory);
}

/* ---- Its files ---- */

/* Whether a file of this name lies below the directory, in few folders. */
static bool is_name_valid(const char *name)
{
    size_t depth = 0;
    for (const char *part = name;; part++) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && part[0] == '.') ||
            (size == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += size;
        if (!*part)
            return depth <= MAX_FOLDER_DEPTH;
        depth++;
    }
}

/* Owns name, which may be NULL. The entry is on the list once n counts it. */
static enum phema_status make_entry(struct entry **out, struct phema_writer_directory *directory,
                                    char *name, const char *shown, struct phema_error *err)
{
    if (!name || !phema_array_grow(&directory->entries, &directory->capacity, directory->n,
                                   sizeof(*directory->entries))) {
        free(name);
        return writer_fail_memory(err, shown);
    }
    *out = &directory->entries[directory->n];
    **out = (struct entry){.name = name};
    return PHEMA_OK;
}

/* A folder that a resumed run finds is its own: directory_check_entries has seen it. */
static enum phema_status make_folder(struct phema_writer_directory *directory, char *name,
                                     struct phema_error *err)
{
    struct entry *entry = NULL;
    const char *partial_path = directory->out.partial_path;
    enum phema_status status = make_entry(&entry, directory, name, partial_path, err);
    if (status)
        return status;
    char *path = path_inside(partial_path, entry->name);
    entry->is_folder = true;
    if (!path)
        status = writer_fail_memory(err, partial_path);
    else if (mkdirat(directory->out.lock, entry->name, WRITER_PARTIAL_DIRECTORY_MODE) &&
             errno != EEXIST)
        status = writer_fail_errno(err, path, "cannot be made", errno);
    if (status)
        free(entry->name);
    else
        directory->n++;
    if (!status)
        status = phema_cleanup_add_partial(&entry->cleanup, path, true, err);
    free(path);
    return status;
}

/* Opens a file of the directory and puts it on the list of files to remove. Ending signals are
 * held. */
static enum phema_status begin_file(struct phema_writer **out,
                                    struct phema_writer_directory *directory, const char *name,
                                    struct phema_error *err)
{
    struct entry *entry = NULL;
    struct pending *all = &directory->out;
    enum phema_status status = PHEMA_OK;
    for (const char *slash = strchr(name, '/'); slash && !status; slash = strchr(slash + 1, '/')) {
        char *folder = strndup(name, (size_t)(slash - name));
        if (folder && has_entry(directory, folder, true))
            free(folder);
        else
            status = make_folder(directory, folder, err);
    }
    if (!status)
        status = writer_new(out, path_inside(all->path, name), path_inside(all->partial_path, name),
                            &directory->options, all->path, err);
    if (status)
        return status;
    struct pending *file = &(*out)->out;
    status = make_entry(&entry, directory, strdup(name), file->path, err);
    if (status)
        return status;
    status = writer_begin_inside(*out, err);
    if (!status && !file->is_kept)
        status = phema_cleanup_add_partial(&entry->cleanup, file->partial_path, false, err);
    if (status)
        free(entry->name);
    else
        directory->n++;
    return status;
}

static enum phema_status begin_named(struct phema_writer **out,
                                     struct phema_writer_directory *directory, const char *name,
                                     struct phema_error *err)
{
    struct phema_name_buffer shown;
    struct phema_writer *writer = NULL;
    if (!is_name_valid(name) || (strchr(name, '/') && !directory->options.has_folders))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: expected the name of a file in it, found '%s'", directory->out.path,
                          phema_name_show(&shown, name));
    phema_cleanup_hold();
    enum phema_status status = begin_file(&writer, directory, name, err);
    status = writer_hand_over(out, writer, status);
    phema_cleanup_resume();
    return status;
}

PHEMA_FALLIBLE phema_writer_directory_add(struct phema_writer **out,
                                          struct phema_writer_directory *directory,
                                          const char *name, const char *source, uint64_t size_bytes,
                                          struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status = begin_named(&writer, directory, name, err);
    if (status)
        return status;
    return writer_hand_over(out, writer, writer_fill(writer, source, size_bytes, err));
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

static enum phema_status remove_replaced(const char *path, const char *old_path, DIR *old,
                                         unsigned traits, struct phema_error *err)
{
    bool is_empty = false;
    enum phema_status status = directory_check_listed(&is_empty, old, traits, old_path, err);
    if (!status) {
        permissions_close_directory(old); /* a kill would leave it behind */
        directory_remove_listed(old, traits);
        if (rmdir(old_path))
            status = writer_fail_errno(err, old_path, "cannot be removed", errno);
    }
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

/* Syncs what is inside, and opens what the publication needs. */
static enum phema_status finish(struct phema_writer_directory *directory, struct phema_error *err)
{
    struct pending *out = &directory->out;
    bool syncs = directory->options.syncs;
    for (size_t i = 0; i < directory->n && syncs; i++) {
        const struct entry *entry = &directory->entries[i];
        if (!entry->is_folder)
            continue;
        int folder = directory_open_folder(out->lock, entry->name);
        int result = folder < 0 ? -1 : file_sync(folder), number = errno;
        if (folder >= 0)
            (void)close(folder);
        if (result && number != EINVAL)
            return writer_fail_errno(err, out->path, "cannot be synced", number);
    }
    if (syncs && file_sync(out->lock) && errno != EINVAL)
        return writer_fail_errno(err, out->path, "cannot be synced", errno);
    enum phema_status status = syncs ? writer_open_parent(&out->parent, out->path, err) : PHEMA_OK;
    if (status || !out->replaces)
        return status;
    out->old = opendir(out->path);
    if (out->old || errno == ENOENT || errno == ENOTDIR)
        return PHEMA_OK;
    return writer_fail_errno(err, out->path, "cannot be opened", errno);
}

static void open_permissions(const struct phema_writer_directory *directory)
{
    const struct pending *out = &directory->out;
    for (size_t i = 0; i < directory->n && out->usual_write; i++) {
        const struct entry *entry = &directory->entries[i];
        int folder = entry->is_folder ? directory_open_folder(out->lock, entry->name) : -1;
        if (folder < 0)
            continue;
        permissions_open_directory(folder, out->usual_write);
        (void)close(folder);
    }
    permissions_open_directory(out->lock, out->usual_write);
}

PHEMA_FALLIBLE phema_writer_directory_commit(struct phema_writer_directory *directory,
                                             struct phema_error *err)
{
    struct pending *out = &directory->out;
    enum phema_status status = finish(directory, err);
    phema_cleanup_hold(); /* a signal waits until the old directory is removed or restored */
    if (!status)
        status = pending_publish(out, true, err);
    if (!status) {
        forget_entries(directory);
        open_permissions(directory);
        status = writer_sync_parent(out->parent, out->path, err);
        bool is_exchanged = out->state == PENDING_EXCHANGED;
        if (status)
            pending_undo(out);
        else
            out->state = PENDING_FINAL;
        if (!status && is_exchanged)
            status =
                remove_replaced(out->path, out->aside_path ? out->aside_path : out->partial_path,
                                out->old, traits_of(directory), err);
    }
    phema_writer_directory_abandon(directory);
    phema_cleanup_resume();
    return status;
}

void phema_writer_directory_abandon(struct phema_writer_directory *directory)
{
    if (!directory)
        return;
    struct pending *out = &directory->out;
    bool is_removed = out->state == PENDING_HIDDEN && out->is_ours && !out->is_kept;
    for (size_t i = directory->n; i > 0 && is_removed;
         i--) /* folders were made before their files */
        (void)unlinkat(out->lock, directory->entries[i - 1].name,
                       directory->entries[i - 1].is_folder ? AT_REMOVEDIR : 0);
    forget_entries(directory);
    for (size_t i = 0; i < directory->n; i++)
        free(directory->entries[i].name);
    free(directory->entries);
    pending_clear(out);
    free(directory);
}
