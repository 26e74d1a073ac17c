// SPDX-License-Identifier: Apache-2.0
/* parallel.c - parallel for, with and without failures. Threads are started for each call and
 * joined at its end: some 50 us, little compared with work that is worth threads. */
#include "phema/parallel.h"

#include <stdatomic.h>

#include "phema/cpu.h"

int phema_thread_start(pthread_t *thread, void *(*work)(void *), void *argument)
{
    pthread_attr_t attributes;
    int failed = pthread_attr_init(&attributes);
    if (failed)
        return failed;
    failed = pthread_attr_setstacksize(&attributes, PHEMA_THREAD_STACK_BYTES);
    if (!failed)
        failed = pthread_create(thread, &attributes, work, argument);
    (void)pthread_attr_destroy(&attributes);
    return failed;
}

struct loop {
    phema_parallel_work *work;
    void *context;
    size_t n;
    _Atomic size_t next;
};

unsigned phema_parallel_threads(void)
{
    /* control groups are files; every thread stores the same number */
    static _Atomic unsigned known = 0;
    unsigned threads = atomic_load_explicit(&known, memory_order_relaxed);
    if (threads == 0) {
        threads = phema_cpu_threads();
        threads = threads < PHEMA_PARALLEL_MOST ? threads : PHEMA_PARALLEL_MOST;
        atomic_store_explicit(&known, threads, memory_order_relaxed);
    }
    return threads;
}

static void *run_indices(void *argument)
{
    struct loop *loop = argument;
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed);
        if (index >= loop->n)
            return NULL;
        loop->work(loop->context, index);
    }
}

void phema_parallel(size_t n, unsigned n_threads, phema_parallel_work *work, void *context)
{
    struct loop loop = {.work = work, .context = context, .n = n};
    pthread_t others[PHEMA_PARALLEL_MAX_THREADS];
    unsigned n_others = 0;
    while (n_others + 1 < n_threads && n_others + 1 < n && n_others < PHEMA_PARALLEL_MAX_THREADS &&
           phema_thread_start(&others[n_others], run_indices, &loop) == 0)
        n_others++;
    (void)run_indices(&loop);
    for (unsigned i = 0; i < n_others; i++)
        (void)pthread_join(others[i], NULL);
}

struct tasks {
    phema_parallel_task *task;
    void *context;
    pthread_mutex_t lock; /* of all below: the failure with the lowest index so far */
    size_t failed;
    enum phema_status status;
    struct phema_error *err;
};

static void try_one(void *context, size_t index)
{
    struct tasks *tasks = context;
    struct phema_error err = {0};
    enum phema_status status = tasks->task(tasks->context, index, &err);
    if (!status)
        return;
    (void)pthread_mutex_lock(&tasks->lock);
    if (!tasks->status || index < tasks->failed) {
        tasks->failed = index;
        tasks->status = status;
        *tasks->err = err;
    }
    (void)pthread_mutex_unlock(&tasks->lock);
}

PHEMA_FALLIBLE phema_parallel_try(size_t n, unsigned n_threads, phema_parallel_task *task,
                                  void *context, struct phema_error *err)
{
    struct tasks tasks = {
        .task = task, .context = context, .lock = PTHREAD_MUTEX_INITIALIZER, .err = err};
    phema_parallel(n, n_threads, try_one, &tasks);
    return tasks.status;
}
