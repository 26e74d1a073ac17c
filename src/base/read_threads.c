// SPDX-License-Identifier: Apache-2.0
/* read_threads.c - reads of a queue by threads, which are started as reads wait for one. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "phema/parallel.h"
#include "read_engine.h"

struct read_threads {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t has_work, has_ended;
    struct phema_read *waiting, **end_waiting;
    struct phema_read *ended;
    unsigned n_idle, n_waiting;
    bool is_closed;
    unsigned n_threads, max_threads; /* the caller's alone */
    pthread_t threads[];
};

void read_once(struct phema_read *read)
{
    read->result = pread(read->descriptor, (char *)read->buffer + read->n_read, read_left(read),
                         (off_t)(read->offset + read->n_read));
    if (read->result < 0)
        read->result = -errno;
}

static void *open_threads(unsigned depth)
{
    unsigned n = depth < PHEMA_READ_QUEUE_MAX_THREADS ? depth : PHEMA_READ_QUEUE_MAX_THREADS;
    struct read_threads *threads = calloc(1, sizeof(*threads) + n * sizeof(threads->threads[0]));
    if (!threads)
        return NULL;
    threads->max_threads = n;
    threads->end_waiting = &threads->waiting;
    (void)pthread_mutex_init(&threads->lock, NULL);
    (void)pthread_cond_init(&threads->has_work, NULL);
    (void)pthread_cond_init(&threads->has_ended, NULL);
    return threads;
}

static void close_threads(void *state)
{
    struct read_threads *threads = state;
    (void)pthread_mutex_lock(&threads->lock);
    threads->is_closed = true;
    (void)pthread_cond_broadcast(&threads->has_work);
    (void)pthread_mutex_unlock(&threads->lock);
    for (unsigned i = 0; i < threads->n_threads; i++)
        (void)pthread_join(threads->threads[i], NULL);
    (void)pthread_mutex_destroy(&threads->lock);
    (void)pthread_cond_destroy(&threads->has_work);
    (void)pthread_cond_destroy(&threads->has_ended);
    free(threads);
}

static struct phema_read *pop_waiting(struct read_threads *threads)
{
    struct phema_read *read = threads->waiting;
    threads->waiting = read->next;
    if (!threads->waiting)
        threads->end_waiting = &threads->waiting;
    threads->n_waiting--;
    return read;
}

static void *work(void *argument)
{
    struct read_threads *threads = argument;
    (void)pthread_mutex_lock(&threads->lock);
    for (;;) {
        threads->n_idle++;
        while (!threads->waiting && !threads->is_closed)
            (void)pthread_cond_wait(&threads->has_work, &threads->lock);
        threads->n_idle--;
        if (!threads->waiting)
            break;
        struct phema_read *read = pop_waiting(threads);
        (void)pthread_mutex_unlock(&threads->lock);
        read_once(read);
        (void)pthread_mutex_lock(&threads->lock);
        read->next = threads->ended;
        threads->ended = read;
        (void)pthread_cond_signal(&threads->has_ended);
    }
    (void)pthread_mutex_unlock(&threads->lock);
    return NULL;
}

static bool start_read(void *state, struct phema_read *read)
{
    struct read_threads *threads = state;
    (void)pthread_mutex_lock(&threads->lock);
    bool is_short = threads->n_waiting >= threads->n_idle;
    (void)pthread_mutex_unlock(&threads->lock);
    if (is_short && threads->n_threads < threads->max_threads &&
        phema_thread_start(&threads->threads[threads->n_threads], work, threads) == 0)
        threads->n_threads++;
    if (threads->n_threads == 0)
        return false;
    (void)pthread_mutex_lock(&threads->lock);
    read->next = NULL;
    *threads->end_waiting = read;
    threads->end_waiting = &read->next;
    threads->n_waiting++;
    (void)pthread_cond_signal(&threads->has_work);
    (void)pthread_mutex_unlock(&threads->lock);
    return true;
}

static struct phema_read *next_read(void *state, bool waits)
{
    struct read_threads *threads = state;
    (void)pthread_mutex_lock(&threads->lock);
    while (!threads->ended && waits)
        (void)pthread_cond_wait(&threads->has_ended, &threads->lock);
    struct phema_read *read = threads->ended;
    if (read)
        threads->ended = read->next;
    (void)pthread_mutex_unlock(&threads->lock);
    return read;
}

const struct read_engine read_engine_threads = {
    "threads", open_threads, close_threads, start_read, next_read,
};
