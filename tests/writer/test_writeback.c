// SPDX-License-Identifier: Apache-2.0
/* Requests for many files, with and without a thread, and their withdrawal. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "forbid_threads.h"
#include "phema/parallel.h"
#include "support.h"
#include "writer_internal.h"

enum { N_FILES = 40, N_ROUNDS = 50, SIZE = 64 << 10 };

/* Writes, requests and withdraws again and again. A request that outlives its descriptor would be
 * seen by the thread sanitizer, and by an address sanitizer when the file is freed. */
static void use_file(void *context, size_t index)
{
    (void)context;
    static const char data[SIZE] = {1};
    for (int round = 0; round < N_ROUNDS; round++) {
        char path[256];
        (void)snprintf(path, sizeof(path), "%s/writeback-%zu", PHEMA_TEST_TMP, index);
        int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        struct writeback *writeback = calloc(1, sizeof(*writeback));
        assert_true(descriptor >= 0 && writeback);
        assert_int_equal(pwrite(descriptor, data, SIZE, 0), SIZE);
        writeback_request(writeback, descriptor);
        writeback_request(writeback, descriptor);
        writeback_cancel(writeback);
        assert_false(writeback->is_waiting);
        free(writeback);
        assert_int_equal(close(descriptor), 0);
        assert_int_equal(unlink(path), 0);
    }
}

static void requests_come_from_many_threads(void **state)
{
    (void)state;
    phema_parallel(N_FILES, 8, use_file, NULL);
}

static void a_request_in_the_middle_is_withdrawn(void **state)
{
    (void)state;
    struct writeback files[N_FILES] = {0};
    for (size_t i = 0; i < N_FILES; i++)
        writeback_request(&files[i], STDERR_FILENO); /* fails, which is ignored */
    for (size_t i = 0; i < N_FILES; i++)
        writeback_cancel(&files[(i + N_FILES / 2) % N_FILES]);
    for (size_t i = 0; i < N_FILES; i++)
        assert_false(files[i].is_waiting);
}

/* The last test: threads stay forbidden. */
static void no_thread_is_needed(void **state)
{
    (void)state;
    if (!forbid_threads())
        skip();
    use_file(NULL, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(requests_come_from_many_threads),
    cmocka_unit_test(a_request_in_the_middle_is_withdrawn),
    cmocka_unit_test(no_thread_is_needed),
};
TEST_GROUP(tests)
