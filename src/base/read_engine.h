/* read_engine.h - what carries out the reads of a queue (phema/read_queue.h): io_uring or threads.
 */
#ifndef BASE_READ_ENGINE_H
#define BASE_READ_ENGINE_H

#include "phema/read_queue.h"

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

extern const struct read_engine read_engine_uring, read_engine_threads;

/* One system call in this thread, from offset + n_read on. Sets the result. */
void read_once(struct phema_read *read);

static inline size_t read_left(const struct phema_read *read)
{
    size_t left = read->size - read->n_read;
    return left < READ_MAX_BYTES ? left : READ_MAX_BYTES;
}

#endif
