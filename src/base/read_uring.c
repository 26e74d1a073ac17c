// SPDX-License-Identifier: Apache-2.0
/* read_uring.c - reads of a queue by io_uring; the only user of liburing, which is optional. */
#include "read_engine.h"

#ifdef PHEMA_HAVE_URING

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <time.h>

struct read_uring {
    struct io_uring ring;
};

/* Containers and administrators forbid io_uring (EPERM, ENOSYS), old kernels limit its memory
 * (ENOMEM): threads read then. Reads as used here came with Linux 5.6, as did this feature. */
static void *open_ring(unsigned depth)
{
    struct read_uring *uring = calloc(1, sizeof(*uring));
    struct io_uring_params params = {0};
    if (!uring || io_uring_queue_init_params(depth, &uring->ring, &params) < 0) {
        free(uring);
        return NULL;
    }
    if (params.features & IORING_FEAT_RW_CUR_POS)
        return uring;
    io_uring_queue_exit(&uring->ring);
    free(uring);
    return NULL;
}

static void close_ring(void *state)
{
    struct read_uring *uring = state;
    io_uring_queue_exit(&uring->ring);
    free(uring);
}

static bool start_read(void *state, struct phema_read *read)
{
    struct read_uring *uring = state;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
    if (!sqe)
        return false;
    io_uring_prep_read(sqe, read->descriptor, (char *)read->buffer + read->n_read,
                       (unsigned)read_left(read), read->offset + read->n_read);
    io_uring_sqe_set_data(sqe, read);
    (void)io_uring_submit(&uring->ring); /* a failure is temporary: next_read submits it again */
    return true;
}

static struct phema_read *next_read(void *state, bool waits)
{
    struct read_uring *uring = state;
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
