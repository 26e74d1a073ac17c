// SPDX-License-Identifier: Apache-2.0
/* join_lock.c - PATH.join, whose existence is the lock of a join. Creating a file is atomic on NFS
 * and Lustre, where flock may be absent or may hold on one machine only. The file names its
 * process. Only a process of the same machine can be known to be dead, and only its lock is taken
 * over. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "partial.h"
#include "phema/cleanup.h"
#include "phema/clock.h"
#include "phema/path.h"
#include "phema/strbuf.h"
#include "write_error.h"
#include "writer_internal.h"

#define PAUSE_NS 20000000

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

static enum phema_status write_holder(const struct phema_writer_join_lock *lock,
                                      struct phema_error *err)
{
    struct holder own = this_process();
    char text[320];
    int size = snprintf(text, sizeof(text), "%s %llu %lld %s\n", own.boot,
                        (unsigned long long)own.namespace, own.pid, own.host);
    if (file_truncate(lock->descriptor, 0) ||
        file_write_fully(lock->descriptor, text, (size_t)size, 0))
        return writer_fail_errno(err, lock->lock_path, "cannot be written", errno);
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

/* false: its process has not written it yet */
static bool read_holder(struct holder *out, int descriptor)
{
    char text[320] = "", namespace[24], pid[24];
    const char *at = text;
    *out = (struct holder){.host = "?"};
    if (file_read_fully(descriptor, text, sizeof(text) - 1, 0) <= 0 ||
        !take_word(out->boot, sizeof(out->boot), &at, ' ') ||
        !take_word(namespace, sizeof(namespace), &at, ' ') ||
        !take_word(pid, sizeof(pid), &at, ' ') ||
        !take_word(out->host, sizeof(out->host), &at, '\n'))
        return false;
    out->namespace = strtoull(namespace, NULL, 10);
    out->pid = strtoll(pid, NULL, 10);
    return true;
}

static bool is_dead(const struct holder *holder)
{
    struct holder own = this_process();
    return strcmp(own.boot, "-") != 0 && strcmp(own.boot, holder->boot) == 0 && own.namespace &&
           own.namespace == holder->namespace && holder->pid > 0 && holder->pid != own.pid &&
           kill((pid_t)holder->pid, 0) && errno == ESRCH;
}

/* *holder: who holds it. PHEMA_NO: another process does. Ending signals are held. */
static enum phema_status try_once(struct phema_writer_join_lock *lock, struct holder *holder,
                                  struct phema_error *err)
{
    const struct partial_request request = {
        .path = lock->path, .partial_path = lock->lock_path, .use = PARTIAL_MARKER};
    bool is_new = false;
    enum phema_status status = partial_open(&lock->descriptor, &is_new, &request, err);
    if (!status && !is_new && (!read_holder(holder, lock->descriptor) || !is_dead(holder))) {
        (void)close(lock->descriptor);
        lock->descriptor = -1;
        return PHEMA_NO;
    }
    if (!status)
        status = phema_cleanup_add_partial(&lock->entry, lock->lock_path, false, err);
    return status ? status : write_holder(lock, err);
}

static enum phema_status fail_held(const struct phema_writer_join_lock *lock,
                                   const struct holder *holder, struct phema_error *err)
{
    struct phema_name_buffer host;
    const char *name = phema_path_last_name(lock->lock_path);
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: process %lld of host %s is joining the parts, as %s says; if it has "
                      "ended, remove that file and run the same command again",
                      lock->path, holder->pid,
                      phema_name_escape(&host, holder->host, strlen(holder->host)), name);
}

static enum phema_status wait_for(struct phema_writer_join_lock *lock, double most_s,
                                  struct phema_error *err)
{
    double begin_s = phema_clock_s();
    struct holder holder = {.host = "?"};
    for (;;) {
        phema_cleanup_hold();
        enum phema_status status = try_once(lock, &holder, err);
        phema_cleanup_resume();
        if (status != PHEMA_NO)
            return status;
        if (phema_clock_s() - begin_s >= most_s)
            return fail_held(lock, &holder, err);
        struct timespec pause = {.tv_nsec = PAUSE_NS};
        (void)nanosleep(&pause, NULL);
    }
}

PHEMA_FALLIBLE phema_writer_join_lock_open(struct phema_writer_join_lock **out, const char *path,
                                           double most_s, struct phema_error *err)
{
    struct phema_writer_join_lock *lock = calloc(1, sizeof(*lock));
    if (!lock)
        return phema_fail_memory(err);
    lock->descriptor = -1;
    lock->path = phema_path_trim(path);
    if (lock->path && asprintf(&lock->lock_path, "%s.join", lock->path) < 0)
        lock->lock_path = NULL;
    enum phema_status status =
        lock->lock_path ? wait_for(lock, most_s, err) : phema_fail_memory(err);
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
