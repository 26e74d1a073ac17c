// SPDX-License-Identifier: Apache-2.0
/* writer.c - a new file: opened under its partial path and preallocated, synced, closed and
 * published, or abandoned. A second descriptor holds the lock while the first is closed: on network
 * filesystems close may be the call that reports a failed write. Steps that can fail for lack of
 * space, memory or descriptors come before the rename. Also a copy at PATH and its provenance
 * PATH.json, which are published as one. */
#include "phema/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "part.h"
#include "phema/cleanup.h"
#include "phema/file_reader.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "writer_internal.h"

/* ---- Checks before any work is done ---- */

PHEMA_FALLIBLE phema_writer_reserve_descriptors(size_t n_files, struct phema_error *err)
{
    uint64_t needed = 2 * (uint64_t)n_files + PHEMA_OTHER_DESCRIPTORS; /* the file and its lock */
    uint64_t limit;
    if (phema_raise_fd_limit(needed, &limit))
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_RESOURCE,
                      "%zu files are written at once, which needs %llu descriptors, and this "
                      "process may have %llu; %sraise ulimit -n",
                      n_files, (unsigned long long)needed, (unsigned long long)limit,
                      n_files > 2 ? "ask for fewer or " : ""); /* an average and its JSON */
}

enum phema_status writer_fail_exists(struct phema_error *err, const char *path, const char *what)
{
    (void)phema_fail(err, PHEMA_ERR_OUTPUT, "%s: exists already; %s replaces %s", path,
                     phema_setting_name(PHEMA_SET_FORCE), what);
    return phema_suggest(err, PHEMA_ERR_OUTPUT, PHEMA_SET_FORCE, NULL);
}

/* /dev/stdout leads to a file of any kind, and stays itself. */
static bool leads_to_descriptor(const char *path)
{
    char target[sizeof("/proc/") - 1];
    return readlink(path, target, sizeof(target)) == (ssize_t)sizeof(target) &&
           !memcmp(target, "/proc/", sizeof(target));
}

PHEMA_FALLIBLE phema_writer_check_place(const char *path, bool replaces, struct phema_error *err)
{
    struct stat st, target;
    if (lstat(path, &st))
        return errno == ENOENT ? PHEMA_OK
                               : writer_fail_errno(err, path, "cannot be examined", errno);
    if (S_ISLNK(st.st_mode) && stat(path, &target) == 0)
        st = target;
    if (S_ISDIR(st.st_mode))
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: is a directory, expected a file", path);
    if ((!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) || leads_to_descriptor(path))
        return phema_fail(
            err, PHEMA_ERR_OUTPUT,
            "%s: is a device or a pipe, which no output replaces; choose another name", path);
    return replaces ? PHEMA_OK : writer_fail_exists(err, path, "it");
}

PHEMA_FALLIBLE phema_writer_check_writable(const char *path, struct phema_error *err)
{
    char *place = strdup(path);
    bool is_there = false;
    while (place && !is_there) {
        char *above = phema_path_directory(place);
        is_there = !above || phema_path_exists(above) || strcmp(above, place) == 0;
        free(place);
        place = above;
    }
    if (!place)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    if (faccessat(AT_FDCWD, place, W_OK | X_OK, AT_EACCESS))
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: nothing can be written to '%s': %s", path,
                            place, strerror(errno));
    free(place);
    return status;
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

/* ---- Opening ---- */

/* true when an ended run has left a file of this size, and the options ask to resume. */
static bool resumes(struct phema_writer *writer, uint64_t size_bytes)
{
    struct stat st;
    struct pending *out = &writer->out;
    writer->is_resumed = writer->options.resumes && out->took_over &&
                         fstat(writer->descriptor, &st) == 0 && (uint64_t)st.st_size == size_bytes;
    if (writer->is_resumed)
        writer->size_bytes = size_bytes;
    struct phema_error ignored; /* without memory a signal leaves the file */
    bool is_off_list = out->is_kept && !writer->is_inside;
    if (is_off_list && !writer->is_resumed && pending_guard(out, &ignored))
        out->entry = NULL;
    out->is_kept = writer->is_resumed;
    return writer->is_resumed;
}

PHEMA_FALLIBLE writer_new(struct phema_writer **out, char *path, char *partial_path,
                          const struct phema_writer_options *options, const char *shown,
                          struct phema_error *err)
{
    struct phema_writer *writer = calloc(1, sizeof(*writer));
    if (!writer || !path || !partial_path) {
        free(writer);
        free(path);
        free(partial_path);
        return writer_fail_memory(err, shown);
    }
    writer->out = (struct pending){.path = path,
                                   .partial_path = partial_path,
                                   .lock = -1,
                                   .parent = -1,
                                   .replaces = options->replaces};
    writer->options = *options;
    writer->descriptor = -1;
    *out = writer;
    return PHEMA_OK;
}

PHEMA_FALLIBLE writer_share(struct phema_writer *writer, int lock, const char *what,
                            struct phema_error *err)
{
    writer->descriptor = fcntl(lock, F_DUPFD_CLOEXEC, 0);
    return writer->descriptor < 0 ? writer_fail_errno(err, writer->out.path, what, errno)
                                  : PHEMA_OK;
}

/* Opens and locks PATH.partial, of whatever size. */
static enum phema_status begin(struct phema_writer **out, const char *path,
                               const struct phema_writer_options *options, struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status = phema_writer_check_place(path, options->replaces, err);
    if (!status)
        status = writer_new(&writer, strdup(path), path_add(path, ".partial"), options, path, err);
    if (status)
        return status;
    struct pending *file = &writer->out;
    phema_cleanup_hold();
    status = pending_open(file, PENDING_EXCLUSIVE, err);
    if (!status && file->took_over)
        status = writer_check_no_parts(path, err);
    file->is_ours = !status;
    file->is_kept = options->resumes && file->took_over;
    if (!status && !file->is_kept && pending_guard(file, err))
        status = phema_fail_in(err, PHEMA_ERR_RESOURCE, "%s", path);
    phema_cleanup_resume();
    if (!status)
        status = writer_share(writer, file->lock, "cannot be written", err);
    if (!status)
        file->usual_write = permissions_usual_write(path);
    return writer_hand_over(out, writer, status);
}

PHEMA_FALLIBLE writer_adopt(struct phema_writer **out, const char *path, int descriptor,
                            const struct phema_writer_options *options, struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status =
        writer_new(&writer, strdup(path), path_add(path, ".partial"), options, path, err);
    if (status) {
        (void)close(descriptor);
        return status;
    }
    writer->out.lock = descriptor;
    status = writer_share(writer, descriptor, "cannot be published", err);
    if (!status)
        writer->out.usual_write = permissions_usual_write(path);
    return writer_hand_over(out, writer, status);
}

/* A file that an ended run has left in the directory is used, or anything but a plain file of one
 * name is removed. */
PHEMA_FALLIBLE writer_begin_inside(struct phema_writer *writer, struct phema_error *err)
{
    struct stat st;
    struct pending *out = &writer->out;
    const char *path = out->partial_path;
    enum phema_status status = PHEMA_OK;
    writer->is_inside = true;
    if (writer->options.resumes && lstat(path, &st) == 0 &&
        (!S_ISREG(st.st_mode) || st.st_nlink != 1))
        (void)unlink(path);
    else if (writer->options.resumes)
        status = leftover_open(&writer->descriptor, AT_FDCWD, path, path, O_RDWR, S_IFREG, err);
    out->took_over = out->is_kept = writer->descriptor >= 0;
    if (!status && writer->descriptor < 0)
        writer->descriptor = partial_create_file(AT_FDCWD, path);
    out->is_ours = writer->descriptor >= 0;
    if (status || out->is_ours)
        return status;
    return writer_fail_errno(err, out->path, "cannot be written", errno);
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

PHEMA_FALLIBLE writer_fill(struct phema_writer *writer, const char *source, uint64_t size_bytes,
                           struct phema_error *err)
{
    int descriptor = -1;
    uint64_t source_bytes = 0;
    enum phema_status status =
        source ? writer_open_source(&descriptor, &source_bytes, source, err) : PHEMA_OK;
    if (!status && source && source_bytes < size_bytes)
        status = writer_fail_cut(err, source);
    if (!status && !resumes(writer, size_bytes))
        status = source ? writer_copy(writer, descriptor, source, size_bytes, err)
                        : writer_allocate(writer, size_bytes, err);
    writer->is_fresh = !status && !source && size_bytes > 0;
    if (descriptor >= 0)
        (void)close(descriptor);
    return status;
}

PHEMA_FALLIBLE phema_writer_open_copy(struct phema_writer **out, const char *path,
                                      const char *source, uint64_t size_bytes,
                                      const struct phema_writer_options *options,
                                      struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status = begin(&writer, path, options, err);
    if (status)
        return status;
    return writer_hand_over(out, writer, writer_fill(writer, source, size_bytes, err));
}

PHEMA_FALLIBLE phema_writer_open(struct phema_writer **out, const char *path, uint64_t size_bytes,
                                 const struct phema_writer_options *options,
                                 struct phema_error *err)
{
    return phema_writer_open_copy(out, path, NULL, size_bytes, options, err);
}

bool phema_writer_took_over(const struct phema_writer *writer)
{
    return writer->out.took_over;
}

bool phema_writer_is_resumed(const struct phema_writer *writer)
{
    return writer->is_resumed;
}

void phema_writer_keep(struct phema_writer *writer, bool keeps)
{
    pending_keep(&writer->out, keeps);
}

/* ---- Publishing ---- */

static void unmap(struct phema_writer *writer)
{
    phema_cleanup_remove(writer->map_entry);
    writer->map_entry = NULL;
    if (writer->map)
        (void)munmap(writer->map, writer->size_bytes);
    writer->map = NULL;
}

/* The kernel reports a failed write to one fsync only: its error is kept. */
void phema_writer_sync(struct phema_writer *writer)
{
    if (!writer->options.syncs || writer->is_synced || writer->descriptor < 0)
        return;
    writeback_cancel(&writer->writeback);
    writer->sync_error = file_sync(writer->descriptor) ? errno : 0;
    writer->is_synced = true;
}

void phema_writer_leave_entry(struct phema_writer *writer)
{
    writer->leaves_entry = true;
}

PHEMA_FALLIBLE phema_writer_finish(struct phema_writer *writer, struct phema_error *err)
{
    struct pending *out = &writer->out;
    if (writer->descriptor < 0)
        return PHEMA_OK;
    unmap(writer);
    writeback_cancel(&writer->writeback);
    phema_writer_sync(writer);
    if (writer->sync_error)
        return writer_fail_errno(err, out->path, "cannot be synced", writer->sync_error);
    if (writer->options.drops_cache)
        writer_drop_cache(writer);
    int lost = atomic_load(&writer->lost);
    if (lost)
        return writer_fail_errno(err, out->path, "cannot be written", lost);
    if (writer->options.syncs && !writer->is_inside && !writer->leaves_entry) {
        enum phema_status status = writer_open_parent(&out->parent, out->path, err);
        if (status)
            return status;
    }
    int closed = close(writer->descriptor);
    writer->descriptor = -1;
    if (closed && errno != EINTR)
        return writer_fail_errno(err, out->path, "cannot be written", errno);
    return PHEMA_OK;
}

static enum phema_status publish(struct phema_writer *writer, bool keeps_old,
                                 struct phema_error *err)
{
    struct pending *out = &writer->out;
    enum phema_status status = phema_writer_finish(writer, err);
    if (!status && !writer->is_inside && out->state == PENDING_HIDDEN)
        status = pending_publish(out, keeps_old, err);
    if (status)
        return status;
    if (!keeps_old && out->state == PENDING_EXCHANGED)
        (void)unlink(out->partial_path);
    if (!keeps_old)
        out->state = PENDING_FINAL;
    if (!keeps_old && writer->options.is_published)
        *writer->options.is_published = true;
    return writer_sync_parent(out->parent, out->path, err);
}

PHEMA_FALLIBLE phema_writer_publish(struct phema_writer *writer, struct phema_error *err)
{
    return publish(writer, true, err);
}

PHEMA_FALLIBLE phema_writer_commit(struct phema_writer *writer, struct phema_error *err)
{
    enum phema_status status = publish(writer, false, err);
    phema_writer_abandon(writer);
    return status;
}

void phema_writer_abandon(struct phema_writer *writer)
{
    if (!writer)
        return;
    unmap(writer);
    pending_clear(&writer->out);
    writeback_cancel(&writer->writeback);
    if (writer->descriptor >= 0)
        (void)close(writer->descriptor);
    free(writer);
}

PHEMA_FALLIBLE writer_commit_copy(struct phema_writer *writer, int source_descriptor,
                                  const char *source, uint64_t size_bytes, struct phema_error *err)
{
    enum phema_status status = writer_copy(writer, source_descriptor, source, size_bytes, err);
    if (!status)
        return phema_writer_commit(writer, err);
    phema_writer_abandon(writer);
    return status;
}

PHEMA_FALLIBLE phema_writer_store(const char *path, struct phema_strbuf *text,
                                  const struct phema_writer_options *options,
                                  struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    enum phema_status status = phema_strbuf_check(text, err);
    if (!status)
        status = phema_writer_open(&writer, path, text->size, options, err);
    if (!status && text->size)
        status = phema_writer_write(writer, 0, text->data, text->size, err);
    phema_strbuf_clear(text);
    if (!status)
        return phema_writer_commit(writer, err);
    phema_writer_abandon(writer);
    return status;
}

/* ---- A copy and its provenance ---- */

/* PATH.json and PATH.partial exist, and PATH does not: a run was killed after it had published the
 * sidecar, which the next run may replace, if it is a provenance of this program and this user's. */
static bool is_left(const char *path, const char *sidecar_path)
{
    struct stat st;
    char begin[32] = "", *partial_path = path_add(path, ".partial");
    bool is_between = partial_path && lstat(partial_path, &st) == 0 && lstat(path, &st) != 0;
    free(partial_path);
    if (!is_between || lstat(sidecar_path, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return false;
    int descriptor = open(sidecar_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return false;
    bool is_ours = fstat(descriptor, &st) == 0 && st.st_uid == geteuid() &&
                   pread(descriptor, begin, sizeof(begin) - 1, 0) > 0 &&
                   strstr(begin, "\"posthoc_ema.") != NULL;
    (void)close(descriptor);
    return is_ours;
}

PHEMA_FALLIBLE phema_writer_check_sidecar_absent(const char *path, struct phema_error *err)
{
    char *sidecar_path = path_add(path, ".json");
    if (!sidecar_path)
        return phema_fail_memory(err);
    enum phema_status status =
        is_left(path, sidecar_path) ? PHEMA_OK : phema_writer_check_place(sidecar_path, false, err);
    free(sidecar_path);
    return status;
}

PHEMA_FALLIBLE phema_writer_open_sidecar(struct phema_writer **out, const char *path,
                                         struct phema_span text,
                                         const struct phema_writer_options *options,
                                         struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    struct phema_writer_options own = {.replaces = options->replaces,
                                       .syncs = options->syncs,
                                       .drops_cache = options->drops_cache};
    char *sidecar_path = path_add(path, ".json");
    if (!sidecar_path)
        return phema_fail_memory(err);
    own.replaces = own.replaces || is_left(path, sidecar_path);
    enum phema_status status = phema_writer_open(&writer, sidecar_path, text.size, &own, err);
    free(sidecar_path);
    if (!status)
        status = phema_writer_write(writer, 0, text.data, text.size, err);
    return writer_hand_over(out, writer, status);
}

/* The sidecar appears first: without its provenance the copy would pass for a snapshot. */
PHEMA_FALLIBLE phema_writer_commit_both(struct phema_writer *sidecar, struct phema_writer *writer,
                                        struct phema_error *err)
{
    bool is_published = false;
    struct phema_error later; /* a failure to sync the directory of the copy comes first */
    writer->options.is_published = &is_published;
    enum phema_status status = phema_writer_finish(sidecar, err);
    if (!status)
        status = phema_writer_finish(writer, err);
    phema_cleanup_hold();
    if (!status)
        status = phema_writer_publish(sidecar, err);
    if (!status)
        status = phema_writer_commit(writer, err);
    else
        phema_writer_abandon(writer);
    if (is_published) {
        enum phema_status kept = phema_writer_commit(sidecar, status ? &later : err);
        status = status ? status : kept;
    } else {
        phema_writer_abandon(sidecar); /* the one before it comes back */
    }
    phema_cleanup_resume();
    return status;
}
