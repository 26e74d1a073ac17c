// SPDX-License-Identifier: Apache-2.0
/* writeback.c - a thread that hands written pages to the disk. The call waits while the disk is
 * busy, and two such calls for one file slow each other down: workers that made it themselves would
 * sum nothing meanwhile. */
#include "writeback.h"

#include <fcntl.h>
#include <pthread.h>

#include "phema/parallel.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct writeback *first, *last; /* that wait; linked by next */
    struct writeback *current;      /* whose pages are handed over */
    pthread_t thread;
    bool is_running; /* the thread looks at the list again before it ends */
    bool has_thread; /* to be joined, running or not */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void hand_over(int descriptor)
{
    (void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); /* only a hint */
}

static void *work(void *unused)
{
    (void)unused;
    (void)pthread_mutex_lock(&shared.lock);
    while (shared.first) {
        struct writeback *writeback = shared.first;
        shared.first = writeback->next;
        writeback->is_waiting = false;
        shared.current = writeback;
        int descriptor = writeback->descriptor;
        (void)pthread_mutex_unlock(&shared.lock);
        hand_over(descriptor);
        (void)pthread_mutex_lock(&shared.lock);
        shared.current = NULL;
        (void)pthread_cond_broadcast(&shared.changed);
    }
    shared.is_running = false;
    (void)pthread_mutex_unlock(&shared.lock);
    return NULL;
}

/* Holds the lock. */
static void join_ended(void)
{
    if (shared.has_thread && !shared.is_running) {
        (void)pthread_join(shared.thread, NULL); /* it needs the lock no more */
        shared.has_thread = false;
    }
}

void writeback_request(struct writeback *writeback, int descriptor)
{
    bool is_left = false; /* to this thread */
    (void)pthread_mutex_lock(&shared.lock);
    if (!writeback->is_waiting) {
        join_ended();
        if (!shared.is_running)
            shared.has_thread = shared.is_running =
                phema_thread_start(&shared.thread, work, NULL) == 0;
        if (shared.is_running) {
            *writeback = (struct writeback){.descriptor = descriptor, .is_waiting = true};
            if (shared.first)
                shared.last->next = writeback;
            else
                shared.first = writeback;
            shared.last = writeback;
        } else {
            is_left = true;
        }
    }
    (void)pthread_mutex_unlock(&shared.lock);
    if (is_left)
        hand_over(descriptor);
}

void writeback_cancel(struct writeback *writeback)
{
    (void)pthread_mutex_lock(&shared.lock);
    if (writeback->is_waiting) { /* leaves the list */
        struct writeback *before = NULL;
        for (struct writeback *at = shared.first; at != writeback; at = at->next)
            before = at;
        *(before ? &before->next : &shared.first) = writeback->next;
        if (shared.last == writeback)
            shared.last = before;
        writeback->is_waiting = false;
    }
    while (shared.current == writeback)
        (void)pthread_cond_wait(&shared.changed, &shared.lock);
    join_ended();
    (void)pthread_mutex_unlock(&shared.lock);
}
