/* forbid_threads.h - no thread can be started any more, as where `ulimit -u` or pids.max leave
 * none; root is no exception. Processes can. */
#ifndef TESTS_SUPPORT_FORBID_THREADS_H
#define TESTS_SUPPORT_FORBID_THREADS_H

#include <stdbool.h>

/* For this thread and the processes that come of it, for good. false: the kernel does not do it. */
bool forbid_threads(void);

#endif
