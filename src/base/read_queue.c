// SPDX-License-Identifier: Apache-2.0
/* read_queue.c - the reads that wait, their order, and how a short or interrupted read goes on. */
#include "phema/read_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "read_engine.h"

struct list {
    struct phema_read *first, *last;
};

struct phema_read_queue {
    const struct read_engine *engine;
    void *state;
    unsigned depth, limit; /* as opened, and now */
    unsigned n_in_flight;
    struct list waiting; /* not started */
    struct list ended;   /* read by this thread, where the engine could not */
};

static void push(struct list *list, struct phema_read *read)
{
    read->next = NULL;
    if (list->first)
        list->last->next = read;
    else
        list->first = read;
    list->last = read;
}

static struct phema_read *pop(struct list *list)
{
    struct phema_read *read = list->first;
    if (read)
        list->first = read->next;
    return read;
}

static bool use_engine(struct phema_read_queue *queue, const struct read_engine *engine)
{
    void *state = engine->open(queue->depth);
    if (!state)
        return false;
    queue->engine = engine;
    queue->state = state;
    return true;
}

PHEMA_FALLIBLE phema_read_queue_open(struct phema_read_queue **out, unsigned depth,
                                     enum phema_read_engine engine, struct phema_error *err)
{
    struct phema_read_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return phema_fail_memory(err);
    queue->depth = depth < PHEMA_READ_QUEUE_MAX_DEPTH ? depth : PHEMA_READ_QUEUE_MAX_DEPTH;
    queue->depth += queue->depth == 0;
    queue->limit = queue->depth;
    if ((engine == PHEMA_READ_BY_ANY && use_engine(queue, &read_engine_uring)) ||
        use_engine(queue, &read_engine_threads)) {
        *out = queue;
        return PHEMA_OK;
    }
    free(queue);
    return phema_fail_memory(err);
}

void phema_read_queue_close(struct phema_read_queue *queue)
{
    if (!queue)
        return;
    while (queue->n_in_flight) {
        (void)queue->engine->next(queue->state, true);
        queue->n_in_flight--;
    }
    queue->engine->close(queue->state);
    free(queue);
}

const char *phema_read_queue_engine(const struct phema_read_queue *queue)
{
    return queue->engine->name;
}

void phema_read_queue_limit(struct phema_read_queue *queue, unsigned depth)
{
    depth = depth < queue->depth ? depth : queue->depth;
    queue->limit = depth ? depth : 1;
}

/* ---- Progress of a read ---- */

/* Takes note of a result. false: the read has to go on. */
static bool has_ended(struct phema_read *read)
{
    if (read->result == -EINTR)
        return false;
    if (read->result == -EINVAL && read->n_read % read->block) /* inside a block: where it ended */
        return true;
    if (read->result < 0) {
        read->error = (int)-read->result;
        return true;
    }
    size_t reached = read->n_read + (size_t)read->result;
    /* a read that ended inside a block continues at the start of that block, or in it if that was
     * where it began */
    size_t next = reached / read->block * read->block;
    bool has_ended = reached >= read->needed || read->result == 0;
    read->n_read = has_ended || next <= read->n_read ? reached : next;
    return has_ended;
}

static void read_to_end(struct phema_read *read)
{
    do
        read_once(read);
    while (!has_ended(read));
}

void phema_read_now(struct phema_read *read)
{
    read->n_read = 0;
    read->error = 0;
    read_to_end(read);
}

/* Threads read from now on, once what is in flight has ended. Without memory for threads, the ring
 * stays for the reads that allow it. */
static void leave_uring(struct phema_read_queue *queue)
{
    const struct read_engine *uring = queue->engine;
    void *ring = queue->state;
    if (!use_engine(queue, &read_engine_threads))
        return;
    for (; queue->n_in_flight; queue->n_in_flight--) {
        struct phema_read *read = uring->next(ring, true);
        if (read->result == -EAGAIN || !has_ended(read))
            read_to_end(read);
        push(&queue->ended, read);
    }
    uring->close(ring);
}

static bool start_by_engine(struct phema_read_queue *queue, struct phema_read *read)
{
    if (queue->engine == &read_engine_uring && !read->allows_uring)
        leave_uring(queue);
    return (queue->engine != &read_engine_uring || read->allows_uring) &&
           queue->engine->start(queue->state, read);
}

static void start(struct phema_read_queue *queue, struct phema_read *read)
{
    if (start_by_engine(queue, read)) {
        queue->n_in_flight++;
        return;
    }
    read_to_end(read);
    push(&queue->ended, read);
}

static void start_waiting(struct phema_read_queue *queue)
{
    while (queue->waiting.first && queue->n_in_flight < queue->limit)
        start(queue, pop(&queue->waiting));
}

void phema_read_queue_submit(struct phema_read_queue *queue, struct phema_read *read)
{
    read->n_read = 0;
    read->error = 0;
    push(&queue->waiting, read);
    start_waiting(queue);
}

static struct phema_read *next_ended(struct phema_read_queue *queue, bool waits)
{
    for (;;) {
        struct phema_read *read = pop(&queue->ended);
        if (read || queue->n_in_flight == 0)
            return read;
        read = queue->engine->next(queue->state, waits);
        if (!read)
            return NULL;
        queue->n_in_flight--;
        if (read->result == -EAGAIN) { /* the kernel cannot wait for this file in the background */
            read_to_end(read);
            push(&queue->ended, read);
        } else if (has_ended(read)) {
            push(&queue->ended, read);
        } else {
            start(queue, read); /* before those that wait */
        }
        start_waiting(queue);
    }
}

struct phema_read *phema_read_queue_wait(struct phema_read_queue *queue)
{
    return next_ended(queue, true);
}

struct phema_read *phema_read_queue_poll(struct phema_read_queue *queue)
{
    return next_ended(queue, false);
}

PHEMA_FALLIBLE phema_read_check(const struct phema_read *read, struct phema_error *err)
{
    if (!read->error && read->n_read >= read->needed)
        return PHEMA_OK;
    unsigned long long offset = read->offset + read->first;
    enum phema_status status = PHEMA_ERR_FILE;
    if (read->error) {
        char what[64];
        (void)snprintf(what, sizeof(what), "cannot be read at offset %llu", offset);
        status = phema_fail_errno(err, PHEMA_ERR_FILE, what, read->error);
    } else {
        status = phema_fail(err, PHEMA_ERR_FILE,
                            "expected %zu bytes at offset %llu, found %zu; the file was cut short "
                            "while it was being read",
                            read->needed - read->first, offset,
                            read->n_read > read->first ? read->n_read - read->first : 0);
    }
    return read->path ? phema_fail_in(err, status, "%s", read->path) : status;
}
