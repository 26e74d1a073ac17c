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

#include "partial.h"
#include "phema/checksum.h"
#include "phema/cleanup.h"
#include "phema/path.h"
#include "phema/strbuf.h"
#include "write_error.h"
#include "writer_internal.h"

/* Of a line that names a process. */
#define MAX_TEXT 320

/* A lock without text that is older belongs to nobody: its process was killed before it wrote the
 * text, or the disk has lost it. Locks get their text before their name where files can be linked. */
#define OLD_S 60

struct phema_writer_join_lock {
    char *path, *lock_path;
    int descriptor; /* -1: not held */
    struct phema_cleanup_entry *entry;
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

/* Copies the word at *at, which moves behind the character after it. false: no such word, or too
 * long */
static bool take_word(char *out, size_t capacity, const char **at, char end)
{
    const char *after = strchr(*at, end);
    size_t size = after ? (size_t)(after - *at) : 0;
    if (size == 0 || size >= capacity)
        return false;
    memcpy(out, *at, size);
    out[size] = '\0';
    *at = after + 1;
    return true;
}

struct contents {
    struct holder holder;
    bool is_known; /* the holder */
    bool is_empty; /* or zeros, as after a power failure */
};

static struct contents read_contents(int descriptor)
{
    char text[MAX_TEXT + 1] = "", namespace[24], pid[24];
    const char *at = text;
    ssize_t size = file_read_fully(descriptor, text, MAX_TEXT, 0);
    struct contents out = {.is_empty = size >= 0};
    for (ssize_t i = 0; i < size; i++)
        out.is_empty = out.is_empty && !text[i];
    struct holder *holder = &out.holder;
    out.is_known = size > 0 && take_word(holder->boot, sizeof(holder->boot), &at, ' ') &&
                   take_word(namespace, sizeof(namespace), &at, ' ') &&
                   take_word(pid, sizeof(pid), &at, ' ') &&
                   take_word(holder->host, sizeof(holder->host), &at, '\n');
    if (out.is_known) {
        holder->namespace = strtoull(namespace, NULL, 10);
        holder->pid = strtoll(pid, NULL, 10);
    }
    return out;
}

static bool is_dead(const struct holder *holder)
{
    struct holder own = this_process();
    return strcmp(own.boot, "-") != 0 && strcmp(own.boot, holder->boot) == 0 && own.namespace &&
           own.namespace == holder->namespace && holder->pid > 0 && holder->pid != own.pid &&
           kill((pid_t)holder->pid, 0) && errno == ESRCH;
}

/* Whether nobody holds a lock that was left.  now_s: by the clock of its filesystem */
static bool is_left(struct contents *contents, int descriptor, int64_t now_s)
{
    struct stat st;
    *contents = read_contents(descriptor);
    if (contents->is_known)
        return is_dead(&contents->holder);
    return contents->is_empty && fstat(descriptor, &st) == 0 &&
           now_s - (int64_t)st.st_mtime > OLD_S;
}

/* ---- A lock that is written before it has its name ---- */

/* A file without a name, or where the filesystem has none, one with a name of its own. */
static int create_unnamed(char **name, const struct phema_writer_join_lock *lock)
{
    struct holder own = this_process();
    char *directory = phema_path_directory(lock->lock_path);
    int descriptor =
        directory ? open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, WRITER_PARTIAL_MODE) : -1;
    free(directory);
    *name = NULL;
    if (descriptor >= 0 || asprintf(name, "%s-%016llx", lock->lock_path,
                                    (unsigned long long)phema_hash_name(&own, sizeof(own))) < 0)
        return descriptor;
    (void)unlink(*name);
    return partial_create_file(AT_FDCWD, *name);
}

/* 0; EEXIST: another process has the lock; another errno: the filesystem cannot do this. */
static int link_written(int descriptor, const char *name, const struct phema_writer_join_lock *lock)
{
    char own[64];
    struct phema_error ignored;
    (void)snprintf(own, sizeof(own), "/proc/self/fd/%d", descriptor);
    if (write_holder(descriptor, lock->lock_path, &ignored))
        return EIO;
    (void)flock(descriptor, LOCK_EX | LOCK_NB); /* against those who take over what is left */
    int result = name ? link(name, lock->lock_path)
                      : linkat(AT_FDCWD, own, AT_FDCWD, lock->lock_path, AT_SYMLINK_FOLLOW);
    return result ? errno : 0;
}

/* true where the lock is ours. *may_create: the filesystem cannot link a written file. */
static bool make_linked(struct phema_writer_join_lock *lock, bool *may_create, int64_t *now_s)
{
    char *name = NULL;
    struct stat st;
    int descriptor = create_unnamed(&name, lock);
    int number = descriptor < 0 ? errno : link_written(descriptor, name, lock);
    *may_create = number && number != EEXIST;
    *now_s =
        descriptor >= 0 && fstat(descriptor, &st) == 0 ? (int64_t)st.st_mtime : (int64_t)time(NULL);
    if (name && descriptor >= 0)
        (void)unlink(name);
    free(name);
    if (number && descriptor >= 0)
        (void)close(descriptor);
    else
        lock->descriptor = descriptor;
    return !number;
}

/* ---- Taking it ---- */

static enum phema_status say_held(const struct phema_writer_join_lock *lock,
                                  const struct contents *contents, struct phema_error *err)
{
    struct phema_name_buffer host;
    const struct holder *holder = &contents->holder;
    const char *name = phema_path_last_name(lock->lock_path);
    if (!contents->is_known)
        return phema_fail(err, PHEMA_NO, "%s: another process is joining the parts, as %s is there",
                          lock->path, name);
    return phema_fail(err, PHEMA_NO, "%s: process %lld of host %s is joining the parts, as %s says",
                      lock->path, holder->pid,
                      phema_name_escape(&host, holder->host, strlen(holder->host)), name);
}

/* Whether what another process has left may be taken over. PHEMA_NO: it may not, or has gone. */
static enum phema_status look(struct contents *contents, const struct phema_writer_join_lock *lock,
                              int64_t now_s, struct phema_error *err)
{
    int descriptor = -1;
    enum phema_status status = leftover_open(&descriptor, AT_FDCWD, lock->lock_path,
                                             lock->lock_path, O_RDONLY, S_IFREG, err);
    if (status || descriptor < 0)
        return status ? status : PHEMA_NO;
    bool is_free = is_left(contents, descriptor, now_s);
    (void)close(descriptor);
    return is_free ? PHEMA_OK : PHEMA_NO;
}

/* Creates the lock, or takes over one that was left, while no other process does. */
static enum phema_status take(struct phema_writer_join_lock *lock, struct contents *contents,
                              int64_t now_s, struct phema_error *err)
{
    const struct partial_request request = {
        .path = lock->path, .partial_path = lock->lock_path, .use = PARTIAL_MARKER};
    bool is_new = false;
    enum phema_status status = partial_open(&lock->descriptor, &is_new, &request, err);
    if (!status && !is_new && !is_left(contents, lock->descriptor, now_s)) {
        (void)close(lock->descriptor);
        lock->descriptor = -1;
        return PHEMA_NO;
    }
    return status ? status : write_holder(lock->descriptor, lock->lock_path, err);
}

/* Ending signals are held. */
static enum phema_status try_lock(struct phema_writer_join_lock *lock, struct phema_error *err)
{
    struct contents contents = {.is_known = false};
    bool may_create = false;
    int64_t now_s = 0;
    enum phema_status status = PHEMA_OK;
    if (!make_linked(lock, &may_create, &now_s)) {
        status = may_create ? PHEMA_OK : look(&contents, lock, now_s, err);
        if (!status)
            status = take(lock, &contents, now_s, err);
    }
    if (status == PHEMA_NO)
        return say_held(lock, &contents, err);
    return status ? status : phema_cleanup_add_partial(&lock->entry, lock->lock_path, false, err);
}

PHEMA_FALLIBLE phema_writer_join_lock_try(struct phema_writer_join_lock **out, const char *path,
                                          struct phema_error *err)
{
    struct phema_writer_join_lock *lock = calloc(1, sizeof(*lock));
    if (!lock)
        return phema_fail_memory(err);
    lock->descriptor = -1;
    lock->path = phema_path_trim(path);
    if (lock->path && asprintf(&lock->lock_path, "%s.join", lock->path) < 0)
        lock->lock_path = NULL;
    enum phema_status status = PHEMA_ERR_RESOURCE;
    if (lock->lock_path) {
        phema_cleanup_hold();
        status = try_lock(lock, err);
        phema_cleanup_resume();
    } else {
        status = phema_fail_memory(err);
    }
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
    if (lock->descriptor >= 0) {
        if (lock->lock_path && partial_is_named(lock->descriptor, lock->lock_path))
            (void)unlink(lock->lock_path);
        (void)close(lock->descriptor);
    }
    phema_cleanup_remove(lock->entry);
    free(lock->path);
    free(lock->lock_path);
    free(lock);
}
