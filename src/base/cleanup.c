// SPDX-License-Identifier: Apache-2.0
/* cleanup.c - signal handlers: remove partial outputs, explain SIGBUS on mapped files.
 * It has globals, since a handler can reach nothing else. Entries are added and removed
 * under a mutex. A handler walks the list without the mutex: a removed entry therefore stays
 * allocated, is marked dead, and is reused by the next entry added. */
#include "phema/cleanup.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum entry_kind { DEAD, PARTIAL_FILE, PARTIAL_DIRECTORY, MAP, OUTPUT_MAP, GROUP };

struct contents {
    char *owned_path; /* of partial outputs; kept until the entry is reused */
    const char *path;
    struct phema_span span;
    pid_t group;
};

struct phema_cleanup_entry {
    struct phema_cleanup_entry *next;
    _Atomic int kind;
    struct contents contents;
};

static struct phema_cleanup_entry *_Atomic entries;
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;

/* Folders may lie in one another, and the list has no order. */
#define MAX_DEPTH 10

static void clean_up(void)
{
    for (struct phema_cleanup_entry *e = atomic_load(&entries); e; e = e->next)
        if (atomic_load(&e->kind) == GROUP)
            (void)kill(-e->contents.group, SIGTERM);
    for (struct phema_cleanup_entry *e = atomic_load(&entries); e; e = e->next)
        if (atomic_load(&e->kind) == PARTIAL_FILE)
            (void)unlink(e->contents.path);
    for (int depth = 0; depth < MAX_DEPTH; depth++)
        for (struct phema_cleanup_entry *e = atomic_load(&entries); e; e = e->next)
            if (atomic_load(&e->kind) == PARTIAL_DIRECTORY)
                (void)rmdir(e->contents.path);
}

static void write_text(const char *string)
{
    ssize_t written = write(STDERR_FILENO, string, strlen(string));
    (void)written; /* a failure cannot be reported */
}

static const char *_Atomic farewell;

void phema_cleanup_set_farewell(const char *text)
{
    atomic_store(&farewell, text);
}

static void end_by_signal(int signal_number)
{
    clean_up();
    const char *text = atomic_load(&farewell);
    if (text && (signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP))
        write_text(text);
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

static atomic_flag is_explained = ATOMIC_FLAG_INIT;

/* A mapped file was cut short: the page no longer exists. Or the disk has no space for a page of an
 * output. Several threads meet it at once: the first speaks and ends the process. */
static void end_by_bus_error(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    uintptr_t address = (uintptr_t)info->si_addr;
    for (struct phema_cleanup_entry *e = atomic_load(&entries); e; e = e->next) {
        int kind = atomic_load(&e->kind);
        if (kind != MAP && kind != OUTPUT_MAP)
            continue;
        uintptr_t start = (uintptr_t)e->contents.span.data;
        if (address < start || address - start >= e->contents.span.size)
            continue;
        while (atomic_flag_test_and_set(&is_explained))
            (void)pause();
        clean_up();
        write_text("posthoc-ema: ");
        write_text(e->contents.path);
        if (kind == OUTPUT_MAP) {
            write_text(
                ": no space is left on its disk, the disk failed, or the file was cut short, while "
                "it was being written; nothing was written\n");
            _exit(PHEMA_ERR_OUTPUT);
        }
        write_text(
            ": the file was cut short, or its disk failed, while it was being read; nothing was "
            "written\n");
        _exit(PHEMA_ERR_FILE);
    }
    end_by_signal(signal_number);
}

/* A signal mask would affect only this thread, while libraries have threads of their own. Either
 * the handler sees n_held and leaves the end to the last resume, or the first hold sees the pending
 * signal. */
static _Atomic int n_held;
static _Atomic int pending_signal;

static void handle_end(int signal_number)
{
    atomic_store(&pending_signal, signal_number);
    if (atomic_load(&n_held) == 0)
        end_by_signal(signal_number);
}

void phema_cleanup_hold(void)
{
    if (atomic_fetch_add(&n_held, 1) == 0 && atomic_load(&pending_signal))
        end_by_signal(atomic_load(&pending_signal));
}

void phema_cleanup_resume(void)
{
    if (atomic_fetch_sub(&n_held, 1) == 1 && atomic_load(&pending_signal))
        end_by_signal(atomic_load(&pending_signal));
}

void phema_cleanup_install_handlers(void)
{
    static const int ends[] = {SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGQUIT,
                               SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2};
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    (void)sigfillset(&action.sa_mask);
    action.sa_handler = handle_end;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct sigaction old;
        /* nohup and the like: signals that the parent ignores stay ignored */
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(ends[i], &action, NULL);
    }
    /* a write beyond the limit on file sizes fails with an error */
    (void)signal(SIGXFSZ, SIG_IGN);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = end_by_bus_error;
    (void)sigaction(SIGBUS, &action, NULL);
}

void phema_cleanup_touch(const void *data, size_t size)
{
    const volatile uint8_t *bytes = data;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < size; at += page)
        (void)bytes[at];
    if (size)
        (void)bytes[size - 1];
}

/* Fills a dead entry, or a new one at the head of the list. The caller holds the lock. */
static enum phema_status claim_entry(struct phema_cleanup_entry **out, enum entry_kind kind,
                                     const struct contents *contents, struct phema_error *err)
{
    struct phema_cleanup_entry *entry = atomic_load(&entries);
    while (entry && atomic_load(&entry->kind) != DEAD)
        entry = entry->next;
    if (!entry) {
        entry = calloc(1, sizeof(*entry));
        if (!entry)
            return phema_fail_memory(err);
        entry->next = atomic_load(&entries);
        atomic_store(&entries, entry);
    }
    free(entry->contents.owned_path);
    entry->contents = *contents;
    atomic_store(&entry->kind, kind);
    *out = entry;
    return PHEMA_OK;
}

static enum phema_status add(struct phema_cleanup_entry **out, enum entry_kind kind,
                             const struct contents *contents, struct phema_error *err)
{
    (void)pthread_mutex_lock(&entries_lock);
    enum phema_status status = claim_entry(out, kind, contents, err);
    (void)pthread_mutex_unlock(&entries_lock);
    return status;
}

PHEMA_FALLIBLE phema_cleanup_add_partial(struct phema_cleanup_entry **out, const char *path,
                                         bool is_directory, struct phema_error *err)
{
    char *copy = strdup(path);
    if (!copy)
        return phema_fail_memory(err);
    const struct contents contents = {.owned_path = copy, .path = copy};
    enum phema_status status =
        add(out, is_directory ? PARTIAL_DIRECTORY : PARTIAL_FILE, &contents, err);
    if (status)
        free(copy);
    return status;
}

PHEMA_FALLIBLE phema_cleanup_add_map(struct phema_cleanup_entry **out, struct phema_span span,
                                     const char *path, bool is_output, struct phema_error *err)
{
    return add(out, is_output ? OUTPUT_MAP : MAP, &(struct contents){.path = path, .span = span},
               err);
}

PHEMA_FALLIBLE phema_cleanup_add_group(struct phema_cleanup_entry **out, pid_t group,
                                       struct phema_error *err)
{
    return add(out, GROUP, &(struct contents){.group = group}, err);
}

void phema_cleanup_remove(struct phema_cleanup_entry *entry)
{
    if (entry)
        atomic_store(&entry->kind, DEAD);
}
