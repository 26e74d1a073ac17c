// SPDX-License-Identifier: Apache-2.0
/* made_directories.c - directories that are made for outputs, and removed again after a failure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/path.h"
#include "phema/writer.h"

/* Makes the directory that the path names now, unless it is there. */
static enum phema_status make_one(struct phema_made_directories *made, bool are_kept,
                                  struct phema_error *err)
{
    const char *path = made->path;
    if (phema_path_is_directory(path))
        return PHEMA_OK;
    if (made->n == PHEMA_MOST_MADE)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: more than %d directories above it are missing", path,
                          PHEMA_MOST_MADE);
    if (mkdir(path, 0777)) {
        int number = errno;
        if (phema_path_is_directory(path)) /* by another process */
            return PHEMA_OK;
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: %s%s", path,
                          number == EEXIST ? "is not a directory" : "cannot be made: ",
                          number == EEXIST ? "" : strerror(number));
    }
    made->sizes[made->n] = strlen(path);
    made->entries[made->n++] = NULL;
    return are_kept ? PHEMA_OK
                    : phema_cleanup_add_partial(&made->entries[made->n - 1], path, true, err);
}

PHEMA_FALLIBLE phema_writer_make_directories(struct phema_made_directories *out, const char *path,
                                             bool are_kept, struct phema_error *err)
{
    struct phema_made_directories *made = out;
    *made = (struct phema_made_directories){.path = strdup(path)};
    if (!made->path)
        return phema_fail_memory(err);
    size_t size = phema_path_trimmed_size(path);
    enum phema_status status = PHEMA_OK;
    phema_cleanup_hold();
    for (size_t i = 1; i <= size && !status; i++) {
        if (path[i] != '/' && i < size)
            continue;
        made->path[i] = '\0';
        status = make_one(made, are_kept, err);
        made->path[i] = path[i];
    }
    phema_cleanup_resume();
    if (status)
        phema_writer_leave_directories(made, are_kept);
    return status;
}

PHEMA_FALLIBLE phema_writer_sync_directories(const struct phema_made_directories *made,
                                             struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < made->n && !status; i++) {
        char *path = strndup(made->path, made->sizes[i]);
        status = path ? phema_writer_sync_entry(path, err) : phema_fail_memory(err);
        free(path);
    }
    return status;
}

void phema_writer_leave_directories(struct phema_made_directories *made, bool are_kept)
{
    while (made->n) {
        made->path[made->sizes[--made->n]] = '\0';
        phema_cleanup_remove(made->entries[made->n]);
        if (!are_kept)
            (void)rmdir(made->path);
    }
    free(made->path);
    *made = (struct phema_made_directories){.n = 0};
}
