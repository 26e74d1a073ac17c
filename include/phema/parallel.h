/* parallel.h - the same work for many indices, by as many threads as may run at once; and how all
 * threads of the program are started. */
#ifndef PHEMA_PARALLEL_H
#define PHEMA_PARALLEL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

/* More than this gain nothing for what is computed here, which memory is too slow for. */
#define PHEMA_PARALLEL_MOST 16

/* Of a thread, what it touches of its stack and what malloc keeps for it. */
#define PHEMA_PARALLEL_BYTES ((uint64_t)256 << 10)

/* As pthread_create, with a stack of PHEMA_THREAD_STACK_BYTES: the usual 8 MiB for each of many
 * threads are more than a limited address space has. 0, or an errno: do without the thread. */
#define PHEMA_THREAD_STACK_BYTES ((size_t)2 << 20)
int phema_thread_start(pthread_t *thread, void *(*work)(void *), void *argument);

/* How many threads may run at once (phema_cpu_threads, asked once), at most PHEMA_PARALLEL_MOST. */
unsigned phema_parallel_threads(void);

typedef void phema_parallel_work(void *context, size_t index);

/* work(context, i) once for every i < n, by this thread and up to n_threads - 1 others, which are
 * gone when it returns; with n_threads 1, and where none can be started, by this one alone, in
 * order. Indices are taken as threads come: what is the same for any number of threads is work that
 * writes nothing that another index reads or writes. */
void phema_parallel(size_t n, unsigned n_threads, phema_parallel_work *work, void *context);

/* The same of work that may fail: n tasks, PHEMA_PARALLEL_MOST at most, all of which are begun.
 * What is returned is said by the first one of them, by index, that failed. */
typedef enum phema_status phema_parallel_task(void *context, size_t index, struct phema_error *err);
PHEMA_FALLIBLE phema_parallel_try(size_t n, unsigned n_threads, phema_parallel_task *task,
                                  void *context, struct phema_error *err);

#endif
