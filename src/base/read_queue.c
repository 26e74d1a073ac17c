// SPDX-License-Identifier: Apache-2.0
/* read_queue.c - the reads that wait, their order, and how a short or interrupted read goes on. Reads
 * are carried out by io_uring or by threads, which are started as reads wait for one. The only user of
 * liburing, which is optional. */
#include "phema/read_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "phema/clock.h"
#include "phema/parallel.h"

#ifdef PHEMA_HAVE_URING
#include <liburing.h>
#endif

/* ---- What carries out the reads ---- */

/* Bytes of one system call: io_uring counts in 32 bits. A multiple of every block. */
#define READ_MAX_BYTES ((size_t)1 << 30)

struct read_engine {
    const char *name;
    /* depth: at most so many reads are started and not returned. NULL: no memory, or the kernel
     * does not allow it. */
    void *(*open)(unsigned depth);
    void (*close)(void *state); /* no read is in flight */
    /* Begins to read from offset + n_read on. false: the caller reads itself. */
    bool (*start)(void *state, struct phema_read *read);
    /* A read whose result is set. NULL: none has ended, if waits is false. */
    struct phema_read *(*next)(void *state, bool waits);
};

static size_t read_left(const struct phema_read *read)
{
    size_t left = read->size - read->n_read;
    return left < READ_MAX_BYTES ? left : READ_MAX_BYTES;
}

/* One system call in this thread, from offset + n_read on. Sets the result. */
static void read_once(struct phema_read *read)
{
    read->result = pread(read->descriptor, (char *)read->buffer + read->n_read, read_left(read),
                         (off_t)(read->offset + read->n_read));
    if (read->result < 0)
        read->result = -errno;
}

struct list {
    struct phema_read *first, *last;
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

/* ---- Threads ---- */

struct read_threads {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t has_work, has_ended;
    struct list waiting, ended;
    unsigned n_idle, n_waiting;
    bool is_closed;
    unsigned n_threads, max_threads; /* the caller's alone */
    pthread_t threads[];
};

static void *open_threads(unsigned depth)
{
    unsigned n = depth < PHEMA_READ_QUEUE_MAX_THREADS ? depth : PHEMA_READ_QUEUE_MAX_THREADS;
    struct read_threads *threads = calloc(1, sizeof(*threads) + n * sizeof(threads->threads[0]));
    if (!threads)
        return NULL;
    threads->max_threads = n;
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

static void *work(void *argument)
{
    struct read_threads *threads = argument;
    (void)pthread_mutex_lock(&threads->lock);
    for (;;) {
        threads->n_idle++;
        while (!threads->waiting.first && !threads->is_closed)
            (void)pthread_cond_wait(&threads->has_work, &threads->lock);
        threads->n_idle--;
        struct phema_read *read = pop(&threads->waiting);
        if (!read)
            break;
        threads->n_waiting--;
        (void)pthread_mutex_unlock(&threads->lock);
        read_once(read);
        (void)pthread_mutex_lock(&threads->lock);
        push(&threads->ended, read);
        (void)pthread_cond_signal(&threads->has_ended);
    }
    (void)pthread_mutex_unlock(&threads->lock);
    return NULL;
}

static bool start_in_thread(void *state, struct phema_read *read)
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
    push(&threads->waiting, read);
    threads->n_waiting++;
    (void)pthread_cond_signal(&threads->has_work);
    (void)pthread_mutex_unlock(&threads->lock);
    return true;
}

static struct phema_read *next_of_threads(void *state, bool waits)
{
    struct read_threads *threads = state;
    (void)pthread_mutex_lock(&threads->lock);
    while (!threads->ended.first && waits)
        (void)pthread_cond_wait(&threads->has_ended, &threads->lock);
    struct phema_read *read = pop(&threads->ended);
    (void)pthread_mutex_unlock(&threads->lock);
    return read;
}

static const struct read_engine threads_engine = {
    "threads", open_threads, close_threads, start_in_thread, next_of_threads,
};

/* ---- io_uring ---- */

#ifdef PHEMA_HAVE_URING

/* A read that takes the kernel so long to begin has waited for its data. */
#define LONGEST_START_S 1e-3

struct uring {
    struct io_uring ring;
    bool leaves_to_threads; /* of the kernel, since reads begin in them and not in this thread */
};

/* Containers and administrators forbid io_uring (EPERM, ENOSYS), old kernels limit its memory
 * (ENOMEM): threads read then. Reads as used here came with Linux 5.6, as did this feature. */
static void *open_ring(unsigned depth)
{
    struct uring *uring = calloc(1, sizeof(*uring));
    struct io_uring_params params = {0};
    if (!uring || io_uring_queue_init_params(depth, &uring->ring, &params) < 0) {
        free(uring);
        return NULL;
    }
    if (params.features & IORING_FEAT_RW_CUR_POS) {
        /* threads of the kernel: unless asked, it starts four for each processor; before 5.15 it
         * starts no more */
        unsigned n_threads[] = {depth, 0}; /* for files; 0: as it is */
        (void)io_uring_register_iowq_max_workers(&uring->ring, n_threads);
        return uring;
    }
    io_uring_queue_exit(&uring->ring);
    free(uring);
    return NULL;
}

static void close_ring(void *state)
{
    struct uring *uring = state;
    io_uring_queue_exit(&uring->ring);
    free(uring);
}

/* Some filesystems answer a read before they return to the caller: one at a time. Once that was
 * seen, threads of the kernel wait for them. */
static bool start_in_ring(void *state, struct phema_read *read)
{
    struct uring *uring = state;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
    if (!sqe)
        return false;
    io_uring_prep_read(sqe, read->descriptor, (char *)read->buffer + read->n_read,
                       (unsigned)read_left(read), read->offset + read->n_read);
    io_uring_sqe_set_data(sqe, read);
    if (uring->leaves_to_threads)
        io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
    double start_s = phema_clock_s();
    (void)io_uring_submit(&uring->ring); /* a failure is temporary: next_of_ring submits it again */
    uring->leaves_to_threads =
        uring->leaves_to_threads || phema_clock_s() - start_s > LONGEST_START_S;
    return true;
}

static struct phema_read *next_of_ring(void *state, bool waits)
{
    struct uring *uring = state;
    struct io_uring_cqe *cqe = NULL;
    while (io_uring_peek_cqe(&uring->ring, &cqe)) {
        int submitted = io_uring_submit_and_wait(&uring->ring, waits);
        if (!waits)
            return NULL;
        if (submitted == -EAGAIN || submitted == -EBUSY || submitted == -ENOMEM)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    struct phema_read *read = io_uring_cqe_get_data(cqe);
    read->result = cqe->res;
    io_uring_cqe_seen(&uring->ring, cqe);
    return read;
}

static const struct read_engine uring_engine = {
    "io_uring", open_ring, close_ring, start_in_ring, next_of_ring,
};

#else

static void *open_ring(unsigned depth)
{
    (void)depth;
    return NULL;
}

static const struct read_engine uring_engine = {.name = "io_uring", .open = open_ring};

#endif

/* ---- The queue ---- */

struct phema_read_queue {
    const struct read_engine *engine;
    void *state;
    unsigned depth, limit; /* as opened, and now */
    unsigned n_in_flight;
    struct list waiting; /* not started */
    struct list ended;   /* read by this thread, where the engine could not */
};

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
    if ((engine == PHEMA_READ_BY_ANY && use_engine(queue, &uring_engine)) ||
        use_engine(queue, &threads_engine)) {
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
    if (!use_engine(queue, &threads_engine))
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
    if (queue->engine == &uring_engine && !read->allows_uring)
        leave_uring(queue);
    return (queue->engine != &uring_engine || read->allows_uring) &&
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
