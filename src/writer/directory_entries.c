// SPDX-License-Identifier: Apache-2.0
/* directory_entries.c - checks of the entries of a directory before it may be replaced, and removal
 * of its files. */
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/path.h"
#include "phema/strbuf.h"

const char *directory_next_name(DIR *stream)
{
    const struct dirent *found = NULL;
    do {
        errno = 0;
        found = readdir(stream);
    } while (found && (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0));
    return found ? found->d_name : NULL;
}

int directory_open_folder(int descriptor, const char *name)
{
    return openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool directory_has_file(struct stat *st, int descriptor, const char *name)
{
    return fstatat(descriptor, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode);
}

DIR *directory_list(int descriptor, const char *name)
{
    int opened = directory_open_folder(descriptor, name);
    DIR *stream = opened < 0 ? NULL : fdopendir(opened);
    if (!stream && opened >= 0)
        (void)close(opened);
    return stream;
}

/* How deep folders may be; 0: any folder is foreign. */
static int allowed_depth(int descriptor, unsigned traits)
{
    struct stat st;
    return (traits & DIRECTORY_MAY_HAVE_FOLDERS) &&
                   directory_has_file(&st, descriptor, PHEMA_PROVENANCE_FILE)
               ? MAX_FOLDER_DEPTH
               : 0;
}

/* ---- Checks ---- */

struct entry_check {
    const char *path; /* for messages */
    unsigned traits;
    bool is_empty;
};

/* Modes of files do not matter in a directory that no other user may write: leftover_open checks
 * the mode of each file that is used. */
static enum phema_status check_entry(const struct entry_check *check, bool *is_folder,
                                     int descriptor, const char *name, int depth,
                                     struct phema_error *err)
{
    struct stat st;
    struct phema_name_buffer shown;
    (void)phema_name_show(&shown, name);
    bool is_there = fstatat(descriptor, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    *is_folder = is_there && S_ISDIR(st.st_mode) && depth > 0;
    if (!is_there || !(S_ISREG(st.st_mode) || *is_folder))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: holds '%s', which is not a regular file; a directory is "
                          "replaced only where it holds nothing else",
                          check->path, shown.text);
    if ((check->traits & DIRECTORY_IS_LEFTOVER) && st.st_uid != geteuid())
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: holds '%s', which belongs to user %u, and only leftovers of user "
                          "%u, who runs this, are used; remove it or choose another name",
                          check->path, shown.text, (unsigned)st.st_uid, (unsigned)geteuid());
    return PHEMA_OK;
}

/* The recursion is at most MAX_FOLDER_DEPTH deep. */
static enum phema_status check_listed(struct entry_check *check, DIR *stream, int depth,
                                      struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    const char *name = NULL;
    rewinddir(stream);
    while (!status && (name = directory_next_name(stream))) {
        bool is_folder = false;
        check->is_empty = false;
        status = check_entry(check, &is_folder, dirfd(stream), name, depth, err);
        DIR *folder = !status && is_folder ? directory_list(dirfd(stream), name) : NULL;
        if (folder) {
            status = check_listed(check, folder, depth - 1, err);
            (void)closedir(folder);
        } else if (!status && is_folder) {
            status = writer_fail_errno(err, check->path, "cannot be listed", errno);
        }
    }
    if (!status && errno)
        status = writer_fail_errno(err, check->path, "cannot be listed", errno);
    return status;
}

PHEMA_FALLIBLE directory_check_listed(bool *is_empty, DIR *stream, unsigned traits,
                                      const char *path, struct phema_error *err)
{
    struct entry_check check = {.path = path, .traits = traits, .is_empty = true};
    enum phema_status status =
        check_listed(&check, stream, allowed_depth(dirfd(stream), traits), err);
    *is_empty = check.is_empty;
    return status;
}

PHEMA_FALLIBLE directory_check_entries(bool *is_empty, int descriptor, unsigned traits,
                                       const char *path, struct phema_error *err)
{
    DIR *stream = directory_list(descriptor, ".");
    if (!stream)
        return writer_fail_errno(err, path, "cannot be listed", errno);
    enum phema_status status = directory_check_listed(is_empty, stream, traits, path, err);
    (void)closedir(stream);
    return status;
}

/* ---- Removal ---- */

static bool remove_file(int descriptor, const char *name)
{
    struct stat st;
    return directory_has_file(&st, descriptor, name) && unlinkat(descriptor, name, 0) == 0;
}

static bool remove_folder(int descriptor, const char *name, int depth);

/* Lists again until nothing was removed: readdir may skip names while others are removed.
 *   kept  a file that stays; or NULL */
static void remove_listed(DIR *stream, const char *kept, int depth)
{
    int descriptor = dirfd(stream);
    for (bool has_removed = true; has_removed;) {
        has_removed = false;
        rewinddir(stream);
        for (const char *name = NULL; (name = directory_next_name(stream));) {
            if (kept && strcmp(name, kept) == 0)
                continue;
            if (remove_file(descriptor, name) ||
                (depth > 0 && remove_folder(descriptor, name, depth)))
                has_removed = true;
        }
    }
}

static bool remove_folder(int descriptor, const char *name, int depth)
{
    DIR *stream = directory_list(descriptor, name);
    if (!stream)
        return false;
    remove_listed(stream, NULL, depth - 1);
    (void)closedir(stream);
    return unlinkat(descriptor, name, AT_REMOVEDIR) == 0;
}

void directory_remove_listed(DIR *stream, unsigned traits)
{
    remove_listed(stream, PHEMA_PROVENANCE_FILE, allowed_depth(dirfd(stream), traits));
    (void)remove_file(dirfd(stream), PHEMA_PROVENANCE_FILE);
}

/* Lists again, likewise. Ends early without memory: a file that stays is published beside the others.
 *   folder  its name below the directory and a slash; "" for the directory itself */
static void remove_unwanted(DIR *stream, const char *folder, int depth, is_wanted_file *is_wanted,
                            const void *context)
{
    char *full = NULL;
    for (bool has_removed = true; has_removed;) {
        has_removed = false;
        rewinddir(stream);
        for (const char *name = NULL; (name = directory_next_name(stream));) {
            if (asprintf(&full, "%s%s", folder, name) < 0)
                return;
            bool stays = is_wanted && is_wanted(context, full);
            free(full);
            bool is_removed = !stays && remove_file(dirfd(stream), name);
            has_removed = has_removed || is_removed;
            DIR *inner = stays || is_removed || !depth ? NULL : directory_list(dirfd(stream), name);
            if (inner && asprintf(&full, "%s%s/", folder, name) >= 0) {
                remove_unwanted(inner, full, depth - 1, is_wanted, context);
                free(full);
            }
            if (inner)
                (void)closedir(inner);
        }
    }
}

void directory_remove_unwanted(int descriptor, unsigned traits, is_wanted_file *is_wanted,
                               const void *context)
{
    DIR *stream = directory_list(descriptor, ".");
    if (!stream)
        return;
    remove_unwanted(stream, "", allowed_depth(descriptor, traits), is_wanted, context);
    (void)closedir(stream);
}
