// SPDX-License-Identifier: Apache-2.0
/* lapack.c - see lapack.h. The only file that knows LAPACKE, and how many threads its BLAS uses.
 * The _work functions look for no NaN first; row-major lower is column-major upper, and that needs
 * no transposed copy. */
#include "lapack.h"

#include <cblas.h>
#include <lapacke.h>
#include <pthread.h>

/* OpenBLAS' threads wait for more to do by asking for it all the time, for a thirtieth of a second:
 * below this, that costs more than they give. */
#define LEAST_THREADED_UNKNOWNS 2000

/* How many threads OpenBLAS uses is a number of the process, which it may share with others: it is
 * lowered as long as someone factorises, and is then what it was. */
static struct {
    pthread_mutex_t lock;
    int n_factorising, n_threads;
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lower_threads(void)
{
    (void)pthread_mutex_lock(&blas.lock);
    if (blas.n_factorising++ == 0) {
        blas.n_threads = openblas_get_num_threads();
        openblas_set_num_threads(1);
    }
    (void)pthread_mutex_unlock(&blas.lock);
}

static void raise_threads(void)
{
    (void)pthread_mutex_lock(&blas.lock);
    if (--blas.n_factorising == 0)
        openblas_set_num_threads(blas.n_threads);
    (void)pthread_mutex_unlock(&blas.lock);
}

bool phema_lapack_factor(double *lower, size_t n)
{
    lapack_int order = (lapack_int)n;
    if (n < LEAST_THREADED_UNKNOWNS)
        lower_threads();
    lapack_int failed = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', order, lower, order);
    if (n < LEAST_THREADED_UNKNOWNS)
        raise_threads();
    return failed == 0;
}

bool phema_lapack_solve(const double *lower, double *x, size_t n)
{
    lapack_int order = (lapack_int)n;
    return LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'U', order, 1, lower, order, x, order) == 0;
}
