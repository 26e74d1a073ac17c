// SPDX-License-Identifier: Apache-2.0
/* directory_entries.c - checks of the entries of a directory before it may be replaced, and removal
 * of its files. */
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/strbuf.h"
#include "write_error.h"

DIR *directory_list(int descriptor)
{
    int opened = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = opened < 0 ? NULL : fdopendir(opened);
    if (!stream && opened >= 0)
        (void)close(opened);
    return stream;
}

const char *directory_next_name(DIR *stream)
{
    const struct dirent *found = NULL;
    do {
        errno = 0;
        found = readdir(stream);
    } while (found && (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0));
    return found ? found->d_name : NULL;
}

bool directory_has_file(struct stat *st, int descriptor, const char *name)
{
    return fstatat(descriptor, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode);
}

/* Modes of files do not matter in a directory that no other user may write: leftover_open checks
 * the mode of each file that is used. */
static enum phema_status check_entry(int descriptor, const char *name, bool is_leftover,
                                     const char *path, struct phema_error *err)
{
    struct stat st;
    struct phema_name_buffer shown;
    (void)phema_name_escape(&shown, name, strlen(name));
    if (!directory_has_file(&st, descriptor, name))
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: holds '%s', which is not a regular file; a directory is "
                          "replaced only where it holds nothing else",
                          path, shown.text);
    if (is_leftover && st.st_uid != geteuid())
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: holds '%s', which belongs to user %u, and only leftovers of user "
                          "%u, who runs this, are used; remove it or choose another name",
                          path, shown.text, (unsigned)st.st_uid, (unsigned)geteuid());
    return PHEMA_OK;
}

PHEMA_FALLIBLE directory_check_listed(bool *is_empty, DIR *stream, bool is_leftover,
                                      const char *path, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    const char *name = NULL;
    *is_empty = true;
    rewinddir(stream);
    while (!status && (name = directory_next_name(stream))) {
        *is_empty = false;
        status = check_entry(dirfd(stream), name, is_leftover, path, err);
    }
    if (!status && errno)
        status = writer_fail_errno(err, path, "cannot be listed", errno);
    return status;
}

PHEMA_FALLIBLE directory_check_entries(bool *is_empty, int descriptor, bool is_leftover,
                                       const char *path, struct phema_error *err)
{
    DIR *stream = directory_list(descriptor);
    if (!stream)
        return writer_fail_errno(err, path, "cannot be listed", errno);
    enum phema_status status = directory_check_listed(is_empty, stream, is_leftover, path, err);
    (void)closedir(stream);
    return status;
}

/* Lists again until nothing was removed: readdir may skip names while others are removed. */
void directory_remove_listed(DIR *stream)
{
    struct stat st;
    int descriptor = dirfd(stream);
    for (bool has_removed = true; has_removed;) {
        has_removed = false;
        rewinddir(stream);
        for (const char *name = NULL; (name = directory_next_name(stream));)
            if (directory_has_file(&st, descriptor, name) && unlinkat(descriptor, name, 0) == 0)
                has_removed = true;
    }
}

void directory_remove_unwanted(int descriptor,
                               bool (*is_wanted)(const void *context, const char *name),
                               const void *context)
{
    struct stat st;
    DIR *stream = directory_list(descriptor);
    for (const char *name = NULL; stream && (name = directory_next_name(stream));)
        if (!is_wanted(context, name) && directory_has_file(&st, descriptor, name))
            (void)unlinkat(descriptor, name, 0);
    if (stream)
        (void)closedir(stream);
}
