// SPDX-License-Identifier: Apache-2.0
/* read_uring.c - reads of a queue by io_uring; the only user of liburing, which is optional. */
#include "read_engine.h"

#ifdef PHEMA_HAVE_URING

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <time.h>

#include "phema/clock.h"

/* A read that takes the kernel so long to begin has waited for its data. */
#define LONGEST_START_S 1e-3

struct uring {
    struct io_uring ring;
    bool leaves_to_threads; /* of the kernel, since reads begin in them and not in this thread */
};

/* Threads of the kernel: unless asked, it starts four for each processor. Kernels before 5.15 start
 * no more. */
static void allow_threads(struct io_uring *ring, unsigned depth)
{
    unsigned n_threads[] = {depth, 0}; /* for files; 0: as it is */
    (void)io_uring_register_iowq_max_workers(ring, n_threads);
}

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
        allow_threads(&uring->ring, depth);
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
static bool start_read(void *state, struct phema_read *read)
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
    (void)io_uring_submit(&uring->ring); /* a failure is temporary: next_read submits it again */
    uring->leaves_to_threads =
        uring->leaves_to_threads || phema_clock_s() - start_s > LONGEST_START_S;
    return true;
}

static struct phema_read *next_read(void *state, bool waits)
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

const struct read_engine read_engine_uring = {
    "io_uring", open_ring, close_ring, start_read, next_read,
};

#else

static void *open_ring(unsigned depth)
{
    (void)depth;
    return NULL;
}

const struct read_engine read_engine_uring = {.name = "io_uring", .open = open_ring};

#endif
