// SPDX-License-Identifier: Apache-2.0
/* cores.c - for LD_PRELOAD: libraries see a machine of CORES processors, by default 64. A thread
 * that binds itself gets the requested processors. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <dlfcn.h>

static _Thread_local struct {
    bool is_bound;
    cpu_set_t set;
} bound;

static int n_cores(void)
{
    const char *text = getenv("CORES");
    int n = text ? (int)strtol(text, NULL, 10) : 0;
    return n > 0 && n <= CPU_SETSIZE ? n : 64;
}

/* Like the kernel's call: fills the set and clears the rest. */
static int answer(size_t size, cpu_set_t *set)
{
    if (size < sizeof(bound.set))
        return EINVAL;
    memset(set, 0, size);
    if (bound.is_bound) {
        *set = bound.set;
        return 0;
    }
    for (int i = 0; i < n_cores(); i++)
        CPU_SET((size_t)i, set);
    return 0;
}

int sched_getaffinity(pid_t thread, size_t size, cpu_set_t *set)
{
    (void)thread;
    errno = answer(size, set);
    return errno ? -1 : 0;
}

int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
    (void)thread;
    return answer(size, set);
}

int sched_setaffinity(pid_t thread, size_t size, const cpu_set_t *set)
{
    (void)thread;
    CPU_ZERO(&bound.set);
    memcpy(&bound.set, set, size < sizeof(bound.set) ? size : sizeof(bound.set));
    bound.is_bound = true;
    return 0;
}

int get_nprocs(void)
{
    return n_cores();
}

int get_nprocs_conf(void)
{
    return n_cores();
}

long sysconf(int name)
{
    static long (*_Atomic next)(int);
    if (name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN)
        return n_cores();
    if (!next) {
        void *found = dlsym(RTLD_NEXT, "sysconf");
        long (*function)(int) = NULL;
        memcpy(&function, &found, sizeof(found));
        next = function;
    }
    return next(name);
}
