// SPDX-License-Identifier: Apache-2.0
/* join_lock.c - PATH.join, whose existence is the lock of a join. Linking and creating a file are
 * atomic on NFS and Lustre, where flock may be absent or may hold on one machine only. The file
 * names its process, and is linked into place when it does. Only a process of the same machine can
 * be known to be dead, and only its lock is taken over, or one that names nobody for a minute. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pending.h"
#include "phema/checksum.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "phema/strbuf.h"
#include "writer_internal.h"

/* Of a line that names a process. */
#define MAX_TEXT 320

/* A lock without text that is older belongs to nobody: its process was killed before it wrote the
 * text, or the disk has lost it. Locks get their text before their name where files can be linked. */
#define OLD_S 60

struct phema_writer_join_lock {
    struct pending file; /* its lock is -1 where it is not held */
};

/* A process: unique among all machines that share the directory. */
struct holder {
    char boot[64]; /* of the machine */
    uint64_t namespace;
    long long pid;
    char host[128];
};

static struct holder this_process(void)
{
    struct holder own = {.pid = getpid(), .boot = "-"};
    struct stat st;
    int descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t size = descriptor < 0 ? 0 : read(descriptor, own.boot, 36);
    if (descriptor >= 0)
        (void)close(descriptor);
    if (size == 36)
        own.boot[36] = '\0';
    else
        (void)snprintf(own.boot, sizeof(own.boot), "-");
    if (stat("/proc/self/ns/pid", &st) == 0)
        own.namespace = (uint64_t)st.st_ino;
    if (gethostname(own.host, sizeof(own.host) - 1) || !*own.host)
        (void)snprintf(own.host, sizeof(own.host), "-");
    return own;
}

/* The line of this process, in the file. Nothing is emptied: a kill must not leave an empty lock. */
static enum phema_status write_holder(int descriptor, const char *path, struct phema_error *err)
{
    struct holder own = this_process();
    char text[MAX_TEXT];
    int size = snprintf(text, sizeof(text), "%s %llu %lld %s\n", own.boot,
                        (unsigned long long)own.namespace, own.pid, own.host);
    if (file_write_fully(descriptor, text, (size_t)size, 0) ||
        file_truncate(descriptor, (uint64_t)size))
        return writer_fail_errno(err, path, "cannot be written", errno);
    return PHEMA_OK;
}

struct contents {
    struct holder holder;
    bool is_known; /* the holder */
    bool is_empty; /* or zeros, as after a power failure */
};

static struct contents read_contents(int descriptor)
{
    char text[MAX_TEXT + 1] = "", namespace[24], pid[24], end = '\0';
    ssize_t size = file_read_fully(descriptor, text, MAX_TEXT, 0);
    struct contents out = {.is_empty = size >= 0};
    struct holder *holder = &out.holder;
    for (ssize_t i = 0; i < size; i++)
        out.is_empty = out.is_empty && !text[i];
    out.is_known = sscanf(text, "%63[^ ] %23[^ ] %23[^ ] %127[^\n]%c", holder->boot, namespace, pid,
                          holder->host, &end) == 5 &&
                   end == '\n';
    if (!out.is_known)
        return out;
    holder->namespace = strtoull(namespace, NULL, 10);
    holder->pid = strtoll(pid, NULL, 10);
    return out;
}

/* Whether nobody holds a lock that was left: its process is dead, or it names none for a while.
 *   now_s  by the clock of its filesystem */
static bool is_left(struct contents *contents, int descriptor, int64_t now_s)
{
    struct stat st;
    *contents = read_contents(descriptor);
    if (!contents->is_known)
        return contents->is_empty && fstat(descriptor, &st) == 0 &&
               now_s - (int64_t)st.st_mtime > OLD_S;
    const struct holder own = this_process(), *holder = &contents->holder;
    return strcmp(own.boot, "-") != 0 && strcmp(own.boot, holder->boot) == 0 && own.namespace &&
           own.namespace == holder->namespace && holder->pid > 0 && holder->pid != own.pid &&
           kill((pid_t)holder->pid, 0) && errno == ESRCH;
}

/* ---- A lock that is written before it has its name ---- */

/* A file without a name, or where the filesystem has none, one with a name of its own. */
static int create_unnamed(char **name, const struct phema_writer_join_lock *lock)
{
    struct holder own = this_process();
    char *directory = phema_path_directory(lock->file.partial_path);
    int descriptor =
        directory ? open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, WRITER_PARTIAL_MODE) : -1;
    free(directory);
    *name = NULL;
    if (descriptor >= 0 || asprintf(name, "%s-%016llx", lock->file.partial_path,
                                    (unsigned long long)phema_hash_name(&own, sizeof(own))) < 0)
        return descriptor;
    (void)unlink(*name);
    return partial_create_file(AT_FDCWD, *name);
}

/* true where the lock is ours. *may_create: the filesystem cannot link a written file. */
static bool make_linked(struct phema_writer_join_lock *lock, bool *may_create, int64_t *now_s)
{
    char own[64], *name = NULL;
    const char *path = lock->file.partial_path;
    struct stat st;
    struct phema_error ignored;
    int descriptor = create_unnamed(&name, lock), number = descriptor < 0 ? errno : 0;
    if (!number && write_holder(descriptor, path, &ignored))
        number = EIO;
    if (!number) {
        (void)snprintf(own, sizeof(own), "/proc/self/fd/%d", descriptor);
        (void)flock(descriptor, LOCK_EX | LOCK_NB); /* against those who take over what is left */
        if (name ? link(name, path) : linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
            number = errno; /* EEXIST: another process has the lock */
    }
    *may_create = number && number != EEXIST;
    *now_s =
        descriptor >= 0 && fstat(descriptor, &st) == 0 ? (int64_t)st.st_mtime : (int64_t)time(NULL);
    if (name && descriptor >= 0)
        (void)unlink(name);
    free(name);
    if (number && descriptor >= 0)
        (void)close(descriptor);
    else
        lock->file.lock = descriptor;
    return !number;
}

/* ---- Taking it ---- */

static enum phema_status say_held(const struct phema_writer_join_lock *lock,
                                  const struct contents *contents, struct phema_error *err)
{
    struct phema_name_buffer host;
    const struct holder *holder = &contents->holder;
    const char *name = phema_path_last_name(lock->file.partial_path);
    if (!contents->is_known)
        return phema_fail(err, PHEMA_NO, "%s: another process is joining the parts, as %s is there",
                          lock->file.path, name);
    return phema_fail(err, PHEMA_NO, "%s: process %lld of host %s is joining the parts, as %s says",
                      lock->file.path, holder->pid, phema_name_show(&host, holder->host), name);
}

/* Creates the lock, or takes over one that was left, while no other process does. */
static enum phema_status take(struct pending *file, struct contents *contents, int64_t now_s,
                              struct phema_error *err)
{
    enum phema_status status = pending_open(file, PENDING_MARKER, err);
    if (!status && file->took_over && !is_left(contents, file->lock, now_s)) {
        (void)close(file->lock);
        file->lock = -1;
        return PHEMA_NO;
    }
    return status ? status : write_holder(file->lock, file->partial_path, err);
}

/* Ending signals are held. */
static enum phema_status try_lock(struct phema_writer_join_lock *lock, struct phema_error *err)
{
    struct contents contents = {.is_known = false};
    struct pending *file = &lock->file;
    const char *path = file->partial_path;
    bool may_create = false;
    int64_t now_s = 0;
    if (make_linked(lock, &may_create, &now_s))
        return pending_guard(file, err);
    enum phema_status status = PHEMA_OK;
    if (!may_create) { /* whether what another process has left may be taken over */
        int left = -1;
        status = leftover_open(&left, AT_FDCWD, path, path, O_RDONLY, S_IFREG, err);
        if (!status && (left < 0 || !is_left(&contents, left, now_s)))
            status = PHEMA_NO;
        if (left >= 0)
            (void)close(left);
    }
    if (!status)
        status = take(file, &contents, now_s, err);
    if (status == PHEMA_NO)
        return say_held(lock, &contents, err);
    return status ? status : pending_guard(file, err);
}

PHEMA_FALLIBLE phema_writer_join_lock_try(struct phema_writer_join_lock **out, const char *path,
                                          struct phema_error *err)
{
    struct phema_writer_join_lock *lock = calloc(1, sizeof(*lock));
    if (!lock)
        return phema_fail_memory(err);
    bool is_made = pending_init(&lock->file, path, ".join");
    phema_cleanup_hold();
    enum phema_status status = is_made ? try_lock(lock, err) : phema_fail_memory(err);
    phema_cleanup_resume();
    if (status)
        phema_writer_join_lock_close(lock);
    else
        *out = lock;
    return status;
}

void phema_writer_join_lock_close(struct phema_writer_join_lock *lock)
{
    if (!lock)
        return;
    struct pending *file = &lock->file;
    file->is_ours = file->lock >= 0 && partial_is_named(file->lock, file->partial_path);
    pending_clear(file);
    free(lock);
}
