/* read_queue.h - many positional reads of files in flight at once, by io_uring where the kernel and
 * the filesystems allow it, else by threads. Interrupted and short reads are continued; failures are noted in the
 * read. One thread at a time uses a queue; memory does not depend on the number of reads. */
#ifndef PHEMA_READ_QUEUE_H
#define PHEMA_READ_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

#define PHEMA_READ_QUEUE_MAX_DEPTH 1024u

/* Threads that read where io_uring does not, at most. */
#define PHEMA_READ_QUEUE_MAX_THREADS 32u

/* One read. The caller fills in the first part and keeps the struct and the buffer until the queue
 * returns the read. */
struct phema_read {
    int descriptor;
    const char *path; /* for messages; NULL: the caller names the file */
    uint64_t offset;
    void *buffer;  /* [size] */
    size_t size;   /* bytes that are asked for */
    size_t needed; /* bytes that must arrive, at most size: others may lie after the file's end */
    size_t block;  /* reads continue at multiples of it: 1, or the alignment of O_DIRECT */
    bool allows_uring; /* phema_filesystem_is_local of the descriptor */
    size_t first;      /* of them, the first that the caller wants: for messages alone */
    void *user;        /* the caller's */

    /* The queue's. */
    size_t n_read; /* bytes that have arrived */
    int error;     /* an errno, or 0 */
    long result;   /* of the last system call: bytes, or a negative errno */
    struct phema_read *next;
};

struct phema_read_queue;

enum phema_read_engine {
    PHEMA_READ_BY_ANY, /* io_uring where it was built in and the kernel allows it, until a read is
                        * submitted that does not; else threads */
    PHEMA_READ_BY_THREADS /* started when they are needed */
};

/*   depth  reads in flight at once, from 1 to PHEMA_READ_QUEUE_MAX_DEPTH; others wait in the queue
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_read_queue_open(struct phema_read_queue **out, unsigned depth,
                                     enum phema_read_engine engine, struct phema_error *err);

/* Waits for the reads in flight; forgets those that wait. Takes NULL. */
void phema_read_queue_close(struct phema_read_queue *queue);

/* "io_uring" or "threads". */
const char *phema_read_queue_engine(const struct phema_read_queue *queue);

/* Fewer reads in flight than the depth it was opened with, or as many again. */
void phema_read_queue_limit(struct phema_read_queue *queue, unsigned depth);

/* Begins a read as soon as fewer than depth are in flight, in the order of the calls. */
void phema_read_queue_submit(struct phema_read_queue *queue, struct phema_read *read);

/* A read that has ended, in any order. wait: blocks until there is one; NULL: nothing was submitted
 * that has not been returned. poll: NULL if none has ended. */
struct phema_read *phema_read_queue_wait(struct phema_read_queue *queue);
struct phema_read *phema_read_queue_poll(struct phema_read_queue *queue);

/* The same read by the calling thread, which waits for it. The queue's fields are set. */
void phema_read_now(struct phema_read *read);

/* Of a read that was returned.
 * PHEMA_ERR_FILE  cannot be read, or the file was cut short; names the offset, and the path if the
 *                 read has one */
PHEMA_FALLIBLE phema_read_check(const struct phema_read *read, struct phema_error *err);

#endif
