/* forbid_threads.h - forbids new threads, as under `ulimit -u` or pids.max, also for root. New
 * processes remain possible. */
#ifndef TESTS_SUPPORT_FORBID_THREADS_H
#define TESTS_SUPPORT_FORBID_THREADS_H

#include <stdbool.h>

/* Applies to this thread and its child processes, permanently. false: the kernel cannot do it. */
bool forbid_threads(void);

#endif
