/* parallel.h - parallel for over indices, with and without failures; and the start of all threads
 * of the program. */
#ifndef PHEMA_PARALLEL_H
#define PHEMA_PARALLEL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

/* The most threads for computations: memory is too slow for more. */
#define PHEMA_PARALLEL_MOST 16

/* The most threads of one phema_parallel. */
#define PHEMA_PARALLEL_MAX_THREADS 1024

/* Memory of one thread: the stack that it uses, and its arena of malloc. */
#define PHEMA_PARALLEL_BYTES ((uint64_t)256 << 10)

/* As pthread_create, with a stack of PHEMA_THREAD_STACK_BYTES: a limited address space cannot hold
 * the usual 8 MiB of each of many threads. 0, or an errno: do without the thread. */
#define PHEMA_THREAD_STACK_BYTES ((size_t)2 << 20)
int phema_thread_start(pthread_t *thread, void *(*work)(void *), void *argument);

/* How many threads may run at once (phema_cpu_threads, asked once), at most PHEMA_PARALLEL_MOST. */
unsigned phema_parallel_threads(void);

typedef void phema_parallel_work(void *context, size_t index);

/* Calls work(context, i) once for every i < n, in this thread and up to n_threads - 1 others, which
 * have ended when it returns. With n_threads 1, and where no thread can be started, this thread
 * does all of it, in order. Threads claim indices as they become free. Results are the same for any
 * number of threads if no index writes what another one reads or writes. */
void phema_parallel(size_t n, unsigned n_threads, phema_parallel_work *work, void *context);

/* The same for tasks that may fail. All of them are called. Returns the failure with the lowest
 * index, and its message. */
typedef enum phema_status phema_parallel_task(void *context, size_t index, struct phema_error *err);
PHEMA_FALLIBLE phema_parallel_try(size_t n, unsigned n_threads, phema_parallel_task *task,
                                  void *context, struct phema_error *err);

#endif
