// SPDX-License-Identifier: Apache-2.0
/* read_uring.c - reads of a queue by io_uring; the only user of liburing, which is optional. */
#include "read_engine.h"

#ifdef PHEMA_HAVE_URING

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <time.h>

/* Containers and administrators forbid io_uring (EPERM, ENOSYS), old kernels limit its memory
 * (ENOMEM): threads read then. Reads as used here came with Linux 5.6, as did this feature. */
static void *open_ring(unsigned depth)
{
    struct io_uring *ring = calloc(1, sizeof(*ring));
    struct io_uring_params params = {0};
    if (!ring || io_uring_queue_init_params(depth, ring, &params) < 0) {
        free(ring);
        return NULL;
    }
    if (params.features & IORING_FEAT_RW_CUR_POS)
        return ring;
    io_uring_queue_exit(ring);
    free(ring);
    return NULL;
}

static void close_ring(void *state)
{
    struct io_uring *ring = state;
    io_uring_queue_exit(ring);
    free(ring);
}

static bool start_read(void *state, struct phema_read *read)
{
    struct io_uring *ring = state;
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    if (!sqe)
        return false;
    io_uring_prep_read(sqe, read->descriptor, (char *)read->buffer + read->n_read,
                       (unsigned)read_left(read), read->offset + read->n_read);
    io_uring_sqe_set_data(sqe, read);
    (void)io_uring_submit(ring); /* a failure is temporary: next_read submits it again */
    return true;
}

static struct phema_read *next_read(void *state, bool waits)
{
    struct io_uring *ring = state;
    struct io_uring_cqe *cqe = NULL;
    while (io_uring_peek_cqe(ring, &cqe)) {
        int submitted = io_uring_submit_and_wait(ring, waits);
        if (!waits)
            return NULL;
        if (submitted == -EAGAIN || submitted == -EBUSY || submitted == -ENOMEM)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    struct phema_read *read = io_uring_cqe_get_data(cqe);
    read->result = cqe->res;
    io_uring_cqe_seen(ring, cqe);
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
