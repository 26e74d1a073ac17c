// SPDX-License-Identifier: Apache-2.0
/* Every index runs once for any number of threads, and no thread remains. */
#include "phema/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "forbid_threads.h"
#include "phema/cpu.h"
#include "support.h"

#define N 10000

static void count_up(void *context, size_t index)
{
    unsigned *counts = context; /* [N], each written by a single index */
    counts[index]++;
}

static void every_index_is_done_once(void **state)
{
    (void)state;
    static const unsigned threads[] = {1, 2, 7, PHEMA_PARALLEL_MOST, 1000};
    static unsigned first[2];
    phema_parallel(2, 2, count_up, first); /* the thread sanitizer keeps a thread of its own */
    assert_int_equal(usleep(100000), 0);   /* and our thread is gone */
    size_t threads_before = support_count_threads();
    for (size_t t = 0; t < ARRAY_LEN(threads); t++) {
        for (size_t n = 0; n <= N; n = n * 10 + 1) {
            unsigned *counts = calloc(N, sizeof(*counts));
            assert_non_null(counts);
            phema_parallel(n, threads[t], count_up, counts);
            for (size_t i = 0; i < N; i++)
                assert_int_equal(counts[i], i < n);
            free(counts);
        }
    }
    support_assert_threads_become(threads_before);
}

struct line {
    size_t n;
    size_t order[N];
    pthread_t by;
};

static void append(void *context, size_t index)
{
    struct line *line = context;
    assert_true(pthread_equal(pthread_self(), line->by));
    line->order[line->n++] = index;
}

static void assert_done_in_order(struct line *line)
{
    assert_int_equal(line->n, N);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(line->order[i], i);
}

static void one_thread_works_in_order(void **state)
{
    (void)state;
    static struct line line;
    line = (struct line){.by = pthread_self()};
    phema_parallel(N, 1, append, &line);
    assert_done_in_order(&line);
}

/* This test runs last, because no thread can start afterwards. */
static void without_threads_the_caller_does_all(void **state)
{
    (void)state;
    if (!forbid_threads())
        skip();
    static struct line line;
    line = (struct line){.by = pthread_self()};
    phema_parallel(N, 4, append, &line);
    assert_done_in_order(&line);
}

#define N_TASKS ((size_t)3 * PHEMA_PARALLEL_MOST)

static enum phema_status fail_in_some(void *first_bad, size_t index, struct phema_error *err)
{
    size_t first = *(size_t *)first_bad;
    if (index < first)
        return PHEMA_OK;
    return phema_fail(err, index == first ? PHEMA_ERR_FILE : PHEMA_ERR_INPUTS, "task %zu", index);
}

static void the_first_failed_task_is_reported(void **state)
{
    (void)state;
    for (unsigned n_threads = 1; n_threads <= 4; n_threads++) {
        for (size_t first = 0; first <= N_TASKS; first++) {
            struct phema_error err = {.message = "untouched"};
            char said[32] = "untouched";
            enum phema_status status =
                phema_parallel_try(N_TASKS, n_threads, fail_in_some, &first, &err);
            if (first < N_TASKS)
                (void)snprintf(said, sizeof(said), "task %zu", first);
            assert_int_equal(status, first < N_TASKS ? PHEMA_ERR_FILE : PHEMA_OK);
            assert_string_equal(err.message, said);
        }
    }
}

static void threads_are_those_that_may_run(void **state)
{
    (void)state;
    unsigned threads = phema_parallel_threads();
    assert_true(threads >= 1 && threads <= PHEMA_PARALLEL_MOST);
    assert_true(threads <= phema_cpu_threads());
}

static void *measure_stack(void *bytes)
{
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) ||
        pthread_attr_getstacksize(&attributes, bytes))
        *(size_t *)bytes = 0;
    (void)pthread_attr_destroy(&attributes);
    return NULL;
}

/* The usual stacks of 64 threads reserve 512 MiB of address space. */
static void stacks_are_small(void **state)
{
    (void)state;
    size_t bytes = 0;
    pthread_t thread;
    assert_int_equal(phema_thread_start(&thread, measure_stack, &bytes), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(bytes > 0 && bytes <= PHEMA_THREAD_STACK_BYTES);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_index_is_done_once),
    cmocka_unit_test(one_thread_works_in_order),
    cmocka_unit_test(the_first_failed_task_is_reported),
    cmocka_unit_test(threads_are_those_that_may_run),
    cmocka_unit_test(stacks_are_small),
    cmocka_unit_test(without_threads_the_caller_does_all),
};
TEST_GROUP(tests)
