// SPDX-License-Identifier: Apache-2.0
/* leftover.c - a file or directory that stands under a name which the program uses before it
 * publishes. Only a leftover of the effective user that nobody else may write is used: whoever else
 * wrote it would be published under this user's name. Partial files are therefore made without
 * write permission for others, and get the usual permissions when they are published. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "part.h"
#include "partial.h"

#define WRITE_OF_OTHERS ((mode_t)(S_IWGRP | S_IWOTH))
#define READ_OF_OTHERS  ((mode_t)(S_IRGRP | S_IROTH))

/* ---- Whose it is ---- */

PHEMA_FALLIBLE writer_check_left(const struct stat *st, mode_t kind, const char *path,
                                 struct phema_error *err)
{
    if ((st->st_mode & S_IFMT) != kind)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: is not a %s; remove it", path,
                          kind == S_IFDIR ? "directory" : "regular file");
    if (st->st_uid != geteuid())
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: belongs to user %u, and only leftovers of user %u, who runs this, "
                          "are used; remove it or choose another name",
                          path, (unsigned)st->st_uid, (unsigned)geteuid());
    if (st->st_mode & WRITE_OF_OTHERS)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: other users may write it (mode %04o), and only leftovers that they "
                          "may not write are used; remove it or choose another name",
                          path, (unsigned)st->st_mode & 07777);
    return PHEMA_OK;
}

PHEMA_FALLIBLE writer_check_one_name(const struct stat *st, const char *path,
                                     struct phema_error *err)
{
    if (st->st_nlink == 1)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: has %llu names (hard links), so that another file would be written; "
                      "remove it",
                      path, (unsigned long long)st->st_nlink);
}

/* Examines the name first, since opening a device may have effects, and then the descriptor. */
PHEMA_FALLIBLE writer_open_left(int *out, int directory, const char *name, const char *path,
                                int flags, mode_t kind, struct phema_error *err)
{
    struct stat st;
    *out = -1;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? PHEMA_OK
                               : writer_fail_errno(err, path, "cannot be examined", errno);
    enum phema_status status = writer_check_left(&st, kind, path, err);
    if (status)
        return status;
    int descriptor = openat(directory, name,
                            flags | (kind == S_IFDIR ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY) |
                                O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return errno == ENOENT ? PHEMA_OK : writer_fail_errno(err, path, "cannot be opened", errno);
    if (fstat(descriptor, &st))
        status = writer_fail_errno(err, path, "cannot be examined", errno);
    else
        status = writer_check_left(&st, kind, path, err);
    if (status)
        (void)close(descriptor);
    else
        *out = descriptor;
    return status;
}

/* A new one is not examined: filesystems with users and modes of their own take new files as well.
 */
PHEMA_FALLIBLE writer_make_directory(int *out, bool *is_new, const char *path, const char *partial,
                                     struct phema_error *err)
{
    *is_new = mkdir(partial, WRITER_PARTIAL_DIRECTORY_MODE) == 0;
    if (!*is_new && errno == EEXIST)
        return writer_open_left(out, AT_FDCWD, partial, partial, O_RDONLY, S_IFDIR, err);
    if (!*is_new)
        return writer_fail_errno(err, path, "cannot be made", errno);
    *out = open(partial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*out >= 0 || errno == ENOENT)
        return PHEMA_OK;
    int number = errno;
    (void)rmdir(partial);
    return writer_fail_errno(err, path, "cannot be written", number);
}

/* ---- Permissions ---- */

/* Setting the umask and setting it back would show in other threads. */
static mode_t find_umask(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    unsigned long mask = WRITE_OF_OTHERS;
    for (char line[256]; file && fgets(line, sizeof(line), file);)
        if (strncmp(line, "Umask:", 6) == 0)
            mask = strtoul(line + 6, NULL, 8);
    if (file)
        (void)fclose(file);
    return (mode_t)mask;
}

/* A nameless file shows the effect of the directory's default ACL. */
mode_t writer_usual_write(const char *path)
{
    struct stat st;
    char *directory = part_marker_directory_of(path);
    int probe = directory ? open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    mode_t mode = probe >= 0 && fstat(probe, &st) == 0 ? st.st_mode : 0666 & ~find_umask();
    if (probe >= 0)
        (void)close(probe);
    free(directory);
    return mode & WRITE_OF_OTHERS;
}

/* Write permission goes only to those who may read. */
static mode_t opened_mode(mode_t mode, mode_t usual_write)
{
    return (mode | (usual_write & (mode & READ_OF_OTHERS) >> 1)) & 07777;
}

void writer_open_to_others(int descriptor, mode_t usual_write)
{
    struct stat st;
    if (!usual_write || fstat(descriptor, &st))
        return;
    if (opened_mode(st.st_mode, usual_write) != (st.st_mode & 07777))
        (void)fchmod(descriptor, opened_mode(st.st_mode, usual_write));
}

static void change_files(DIR *stream, mode_t usual_write, bool opens)
{
    rewinddir(stream);
    for (const struct dirent *entry = NULL; (entry = readdir(stream));) {
        struct stat st;
        if (fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
            continue;
        mode_t mode =
            opens ? opened_mode(st.st_mode, usual_write) : st.st_mode & 07777 & ~WRITE_OF_OTHERS;
        if (mode != (st.st_mode & 07777))
            (void)fchmodat(dirfd(stream), entry->d_name, mode, 0);
    }
}

/* The directory comes last: until then nobody else can exchange its files. */
void writer_open_directory_to_others(int descriptor, mode_t usual_write)
{
    if (!usual_write)
        return;
    int opened = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = opened < 0 ? NULL : fdopendir(opened);
    if (stream)
        change_files(stream, usual_write, true);
    if (stream)
        (void)closedir(stream);
    else if (opened >= 0)
        (void)close(opened);
    writer_open_to_others(descriptor, usual_write);
}

void writer_close_directory_to_others(DIR *stream)
{
    struct stat st;
    if (fstat(dirfd(stream), &st) == 0 && (st.st_mode & WRITE_OF_OTHERS))
        (void)fchmod(dirfd(stream), st.st_mode & 07777 & ~WRITE_OF_OTHERS);
    change_files(stream, 0, false);
}
