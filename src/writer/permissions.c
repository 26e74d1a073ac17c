// SPDX-License-Identifier: Apache-2.0
/* permissions.c - write permission for group and others, which partial files do not have: added
 * when a file is published, as the umask or the directory's default ACL say, and removed again
 * before an old output is deleted. */
#include "permissions.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "directory.h"
#include "path_names.h"

#define WRITE_OF_OTHERS ((mode_t)(S_IWGRP | S_IWOTH))
#define READ_OF_OTHERS  ((mode_t)(S_IRGRP | S_IROTH))

/* Read from /proc: umask(2) would change it for other threads for a moment. */
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
mode_t permissions_usual_write(const char *path)
{
    struct stat st;
    char *directory = path_directory(path);
    int probe = directory ? open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    mode_t mode = probe >= 0 && fstat(probe, &st) == 0 ? st.st_mode : 0666 & ~find_umask();
    if (probe >= 0)
        (void)close(probe);
    free(directory);
    return mode & WRITE_OF_OTHERS;
}

/* Only users who may read get write permission. */
static mode_t opened_mode(mode_t mode, mode_t usual_write)
{
    return (mode | (usual_write & (mode & READ_OF_OTHERS) >> 1)) & 07777;
}

void permissions_open_file(int descriptor, mode_t usual_write)
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

/* The directory comes last: until then no other user can exchange its files. */
void permissions_open_directory(int descriptor, mode_t usual_write)
{
    if (!usual_write)
        return;
    DIR *stream = directory_list(descriptor);
    if (stream) {
        change_files(stream, usual_write, true);
        (void)closedir(stream);
    }
    permissions_open_file(descriptor, usual_write);
}

void permissions_close_directory(DIR *stream)
{
    struct stat st;
    if (fstat(dirfd(stream), &st) == 0 && (st.st_mode & WRITE_OF_OTHERS))
        (void)fchmod(dirfd(stream), st.st_mode & 07777 & ~WRITE_OF_OTHERS);
    change_files(stream, 0, false);
}
