// SPDX-License-Identifier: Apache-2.0
/* writer.c - a new file: opened under its partial path and preallocated.
 * A second descriptor holds the lock while the first is closed: on network filesystems close may be
 * the call that reports a failed write. */
#include "phema/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "part.h"
#include "partial.h"
#include "phema/cleanup.h"
#include "phema/file_reader.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "write_error.h"
#include "writer_internal.h"

PHEMA_FALLIBLE phema_writer_reserve_descriptors(size_t n_files, struct phema_error *err)
{
    uint64_t needed = 2 * (uint64_t)n_files + PHEMA_OTHER_DESCRIPTORS; /* the file and its lock */
    uint64_t limit;
    if (phema_raise_fd_limit(needed, &limit))
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_RESOURCE,
                      "%zu files are written at once, which needs %llu descriptors, and this "
                      "process may have %llu; ask for fewer or raise ulimit -n",
                      n_files, (unsigned long long)needed, (unsigned long long)limit);
}

PHEMA_FALLIBLE phema_writer_check_absent(const char *path, struct phema_error *err)
{
    struct stat st;
    if (lstat(path, &st) == 0)
        return phema_suggest(err,
                             phema_fail(err, PHEMA_ERR_OUTPUT, "%s: exists already; %s replaces it",
                                        path, phema_setting_name(PHEMA_SET_FORCE)),
                             PHEMA_SET_FORCE, NULL);
    if (errno != ENOENT)
        return writer_fail_errno(err, path, "cannot be examined", errno);
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_writer_check_parent(const char *path, struct phema_error *err)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash && slash > path ? strndup(path, (size_t)(slash - path)) : strdup(".");
    if (!parent)
        return phema_fail_memory(err);
    struct stat st;
    enum phema_status status = PHEMA_OK;
    if (stat(parent, &st))
        status =
            errno != ENOENT ? PHEMA_OK
            : phema_path_is_url(path)
                ? phema_fail(err, PHEMA_ERR_OUTPUT, "%s: is a URL, expected a local path", path)
                : phema_fail(err, PHEMA_ERR_OUTPUT, "%s: its directory does not exist", path);
    else if (S_ISREG(st.st_mode))
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: '%s' is a file, expected a directory", path,
                            parent);
    free(parent);
    return status;
}

bool writer_resumes(struct phema_writer *writer, uint64_t size_bytes)
{
    struct stat st;
    writer->is_resumed = writer->options.resumes && writer->took_over &&
                         fstat(writer->descriptor, &st) == 0 && (uint64_t)st.st_size == size_bytes;
    if (writer->is_resumed)
        writer->size_bytes = size_bytes;
    struct phema_error ignored; /* without memory a signal leaves the file */
    bool is_off_list = writer->is_kept && !writer->is_inside;
    if (is_off_list && !writer->is_resumed &&
        phema_cleanup_add_partial(&writer->entry, writer->partial_path, false, &ignored))
        writer->entry = NULL;
    writer->is_kept = writer->is_resumed;
    return writer->is_resumed;
}

PHEMA_FALLIBLE writer_allocate(struct phema_writer *writer, uint64_t size_bytes,
                               struct phema_error *err)
{
    writer->size_bytes = size_bytes;
    if (size_bytes > INT64_MAX)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: larger than any file can be", writer->path);
    if (file_truncate(writer->descriptor, 0))
        return writer_fail_errno(err, writer->path, "cannot be emptied", errno);
    return file_reserve(writer->descriptor, size_bytes)
               ? writer_fail_size(err, writer->path, size_bytes, errno)
               : PHEMA_OK;
}

PHEMA_FALLIBLE writer_make_fresh(struct phema_writer *writer, uint64_t size_bytes,
                                 struct phema_error *err)
{
    enum phema_status status =
        writer_resumes(writer, size_bytes) ? PHEMA_OK : writer_allocate(writer, size_bytes, err);
    writer->is_fresh = !status && size_bytes > 0;
    return status;
}

struct phema_writer *writer_new(const char *path, const struct phema_writer_options *options)
{
    struct phema_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return NULL;
    writer->descriptor = -1;
    writer->lock = -1;
    writer->parent = -1;
    writer->options = *options;
    writer->path = strdup(path);
    if (!writer->path) {
        free(writer);
        return NULL;
    }
    return writer;
}

/* Opens PATH.partial and puts it on the list of files to remove when a signal ends the program.
 * Ending signals are held. */
static enum phema_status open_partial(struct phema_writer *writer, struct phema_error *err)
{
    const struct partial_request request = {
        .path = writer->path, .partial_path = writer->partial_path, .use = PARTIAL_EXCLUSIVE};
    bool is_new = false;
    enum phema_status status = partial_open(&writer->descriptor, &is_new, &request, err);
    if (status == PHEMA_NO)
        status = writer_fail_locked(err, writer->path);
    writer->took_over = !status && !is_new;
    if (writer->took_over)
        status = writer_check_no_parts(writer->path, err);
    if (status) {
        /* not ours: it must not be removed */
        free(writer->partial_path);
        writer->partial_path = NULL;
        return status;
    }
    writer->is_kept = writer->options.resumes && writer->took_over;
    if (writer->is_kept)
        return PHEMA_OK;
    status = phema_cleanup_add_partial(&writer->entry, writer->partial_path, false, err);
    return status ? phema_fail_in(err, status, "%s", writer->path) : PHEMA_OK;
}

static enum phema_status begin(struct phema_writer *writer, struct phema_error *err)
{
    writer->partial_path = path_partial(writer->path);
    if (!writer->partial_path)
        return writer_fail_memory(err, writer->path);
    phema_cleanup_hold();
    enum phema_status status = open_partial(writer, err);
    phema_cleanup_resume();
    if (status)
        return status;
    writer->lock = fcntl(writer->descriptor, F_DUPFD_CLOEXEC, 0);
    if (writer->lock < 0)
        return writer_fail_errno(err, writer->path, "cannot be written", errno);
    writer->usual_write = permissions_usual_write(writer->path);
    return PHEMA_OK;
}

PHEMA_FALLIBLE writer_begin(struct phema_writer **out, const char *path,
                            const struct phema_writer_options *options, struct phema_error *err)
{
    if (!options->replaces) {
        enum phema_status status = phema_writer_check_absent(path, err);
        if (status)
            return status;
    }
    struct phema_writer *writer = writer_new(path, options);
    if (!writer)
        return writer_fail_memory(err, path);
    return writer_hand_over(out, writer, begin(writer, err));
}

static enum phema_status adopt(struct phema_writer *writer, struct phema_error *err)
{
    writer->partial_path = path_partial(writer->path);
    if (!writer->partial_path)
        return writer_fail_memory(err, writer->path);
    writer->lock = fcntl(writer->descriptor, F_DUPFD_CLOEXEC, 0);
    if (writer->lock < 0)
        return writer_fail_errno(err, writer->path, "cannot be published", errno);
    writer->usual_write = permissions_usual_write(writer->path);
    return PHEMA_OK;
}

PHEMA_FALLIBLE writer_adopt(struct phema_writer **out, const char *path, int descriptor,
                            const struct phema_writer_options *options, struct phema_error *err)
{
    struct phema_writer *writer = writer_new(path, options);
    if (!writer) {
        (void)close(descriptor);
        return writer_fail_memory(err, path);
    }
    writer->descriptor = descriptor;
    writer->is_kept = true;
    return writer_hand_over(out, writer, adopt(writer, err));
}

/* Opens the file that an ended run has left in the directory; descriptor -1 where the run left
 * none. Removes anything but a plain file of one name. */
static enum phema_status open_left_inside(struct phema_writer *writer, struct phema_error *err)
{
    struct stat st;
    const char *path = writer->partial_path;
    bool is_there = lstat(path, &st) == 0;
    if (is_there && (!S_ISREG(st.st_mode) || st.st_nlink != 1)) {
        (void)unlink(path);
        return PHEMA_OK;
    }
    enum phema_status status =
        leftover_open(&writer->descriptor, AT_FDCWD, path, path, O_RDWR, S_IFREG, err);
    writer->took_over = writer->is_kept = writer->descriptor >= 0;
    return status;
}

static enum phema_status begin_inside(struct phema_writer *writer, const char *partial_path,
                                      struct phema_error *err)
{
    writer->is_inside = true;
    writer->partial_path = strdup(partial_path);
    if (!writer->partial_path)
        return writer_fail_memory(err, writer->path);
    enum phema_status status = writer->options.resumes ? open_left_inside(writer, err) : PHEMA_OK;
    if (status || writer->descriptor >= 0)
        return status;
    writer->descriptor = partial_create_file(AT_FDCWD, partial_path);
    return writer->descriptor < 0 ? writer_fail_errno(err, writer->path, "cannot be written", errno)
                                  : PHEMA_OK;
}

PHEMA_FALLIBLE writer_begin_inside(struct phema_writer **out, const char *path,
                                   const char *partial_path,
                                   const struct phema_writer_options *options,
                                   struct phema_error *err)
{
    struct phema_writer *writer = writer_new(path, options);
    if (!writer)
        return writer_fail_memory(err, path);
    return writer_hand_over(out, writer, begin_inside(writer, partial_path, err));
}

enum phema_status writer_hand_over(struct phema_writer **out, struct phema_writer *writer,
                                   enum phema_status status)
{
    if (status)
        phema_writer_abandon(writer);
    else
        *out = writer;
    return status;
}

PHEMA_FALLIBLE phema_writer_open(struct phema_writer **out, const char *path, uint64_t size_bytes,
                                 const struct phema_writer_options *options,
                                 struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status = writer_begin(&writer, path, options, err);
    if (status)
        return status;
    return writer_hand_over(out, writer, writer_make_fresh(writer, size_bytes, err));
}

bool phema_writer_took_over(const struct phema_writer *writer)
{
    return writer->took_over;
}

bool phema_writer_is_resumed(const struct phema_writer *writer)
{
    return writer->is_resumed;
}

void phema_writer_keep(struct phema_writer *writer, bool keeps)
{
    writer->is_kept = keeps;
    if (!keeps)
        return;
    phema_cleanup_remove(writer->entry);
    writer->entry = NULL;
}

const char *phema_writer_path(const struct phema_writer *writer)
{
    return writer->path;
}
