// SPDX-License-Identifier: Apache-2.0
/* lapack.c - Cholesky in float64 by OpenBLAS, loaded when needed. The only file that uses OpenBLAS.
 *
 * OpenBLAS starts a thread for every processor when it is loaded. Where a thread or its buffer
 * cannot be had, OpenBLAS waits for ever or ends the process. So the program loads it for the first
 * large solve, and under three conditions:
 *   - There is address space for all that it reserves.
 *   - The thread that loads it is bound to one processor meanwhile: OpenBLAS counts the processors
 *     of that thread, and starts no other. An environment variable would do the same, but must not
 *     be set while other threads run, and would reach the commands of `search`.
 *   - OpenMP is told to use one thread: the build of OpenBLAS that uses it starts others in a call.
 * One thread is enough. The factor is a twentieth of a solve for 2000 snapshots, and a second
 * thread does not make it faster. */
#include "cholesky.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "phema/library.h"
#include "phema/memory.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

/* Address space that OpenBLAS 0.3.21 to 0.3.29 takes: 48 MiB of files and two buffers of 128 MiB,
 * and in the OpenMP build a buffer for each processor of the machine. */
#define ROOM_BYTES           ((uint64_t)384 << 20)
#define ROOM_PROCESSOR_BYTES ((uint64_t)128 << 20)

/* Fortran's interface; the last argument is the size of the first. */
#define DPOTRF_PARAMETERS                                                                          \
    (const char *triangle, const int *n, double *matrix, const int *row_elems, int *info,          \
     size_t triangle_size)

static struct {
    pthread_mutex_t lock;
    bool is_ready;
    void(*factor) DPOTRF_PARAMETERS;
    /* of OpenMP, for the calling thread alone; NULL where OpenBLAS is built without it */
    int (*get_threads)(void);
    void (*set_threads)(int n);
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};

#ifdef PHEMA_OPENBLAS_LINKED /* the serial archive: it has no threads, and may have no locks */

#define IS_REENTRANT false

extern void dpotrf_ DPOTRF_PARAMETERS;

static enum phema_status load(struct phema_error *err)
{
    (void)err;
    blas.factor = dpotrf_;
    return PHEMA_OK;
}

#else

#define IS_REENTRANT true
#define FILE_NAME    "libopenblas.so.0"

static enum phema_status load_functions(struct phema_error *err)
{
    const struct phema_library_function functions[] = {
        {"dpotrf_", (void *)&blas.factor, false},
        {"omp_get_max_threads", (void *)&blas.get_threads, true},
        {"omp_set_num_threads", (void *)&blas.set_threads, true},
    };
    return phema_library_load_functions(FILE_NAME, functions, ARRAY_LEN(functions), err);
}

/* This thread alone is bound, and free again when this returns. */
static enum phema_status load_on_one_processor(struct phema_error *err)
{
    cpu_set_t before[8], one[8]; /* 8192 processors, the most of any kernel */
    int processor = sched_getcpu();
    memset(one, 0, sizeof(one));
    if (processor >= 0)
        CPU_SET_S((size_t)processor, sizeof(one), one);
    if (sched_getaffinity(0, sizeof(before), before) || sched_setaffinity(0, sizeof(one), one))
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "OpenBLAS is loaded by a thread that is bound to one processor, and the "
                          "system does not allow that: %s",
                          strerror(errno));
    enum phema_status status = load_functions(err);
    (void)sched_setaffinity(0, sizeof(before), before);
    return status;
}

/* If the process has loaded OpenBLAS already, its threads exist. */
static enum phema_status load(struct phema_error *err)
{
    return phema_library_is_loaded(FILE_NAME) ? load_functions(err) : load_on_one_processor(err);
}

#endif

/* The buffers are reserved by the first call, and kept. */
static enum phema_status find_room(struct phema_error *err)
{
    long n_processors = sysconf(_SC_NPROCESSORS_CONF);
    uint64_t bytes =
        ROOM_BYTES + (uint64_t)(n_processors > 0 ? n_processors : 1) * ROOM_PROCESSOR_BYTES;
    if (phema_memory_has_room(bytes))
        return PHEMA_OK;
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_RESOURCE,
                      "expected %s of free address space for OpenBLAS, found less (ulimit -v); "
                      "raise the limit, or use %squad",
                      phema_size_format(&shown, bytes), phema_setting_equals(PHEMA_SET_SOLVER));
}

static enum phema_status load_once(struct phema_error *err)
{
    if (blas.is_ready)
        return PHEMA_OK;
    enum phema_status status = find_room(err);
    if (!status)
        status = load(err);
    blas.is_ready = !status;
    return status;
}

static enum phema_status factor(double *lower, size_t n)
{
    bool has_openmp = blas.get_threads && blas.set_threads;
    int order = (int)n, info = 0, n_threads = has_openmp ? blas.get_threads() : 1;
    if (has_openmp)
        blas.set_threads(1);
    /* row-major lower is column-major upper, which needs no transposed copy */
    blas.factor("U", &order, lower, &order, &info, 1);
    if (has_openmp)
        blas.set_threads(n_threads);
    return info ? PHEMA_NO : PHEMA_OK;
}

PHEMA_FALLIBLE phema_lapack_factor(double *lower, size_t n, struct phema_error *err)
{
    (void)pthread_mutex_lock(&blas.lock);
    enum phema_status status = load_once(err);
    if (!status && !IS_REENTRANT)
        status = factor(lower, n);
    (void)pthread_mutex_unlock(&blas.lock);
    return !status && IS_REENTRANT ? factor(lower, n) : status;
}
