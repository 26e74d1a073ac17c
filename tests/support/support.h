/* support.h - for unit tests: cmocka, assertions that show the error message, files, random
 * elements. */
#ifndef TESTS_SUPPORT_SUPPORT_H
#define TESTS_SUPPORT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/span.h"

#define assert_ok(status, err) support_assert_ok(status, err, __FILE__, __LINE__)
/* the status, and a message that contains part */
#define assert_fails(status, wanted, err, part)                                                    \
    support_assert_fails(status, wanted, err, part, __FILE__, __LINE__)
#define assert_near(got, wanted, tolerance)                                                        \
    support_assert_near(got, wanted, tolerance, __FILE__, __LINE__)

/* A file of tests is one group of its program: test_lapack.c is the group lapack. */
struct support_group {
    const char *file;
    const struct CMUnitTest *cases;
    size_t n_cases;
    CMFixtureFunction set_up, tear_down; /* before and after its cases, or NULL */
    struct support_group *next;
};

/* Stands at the end of a file, after the array of its cases. main is in main.c. */
#define TEST_GROUP(cases) TEST_GROUP_WITH(cases, NULL, NULL)
#define TEST_GROUP_WITH(cases, set_up, tear_down)                                                  \
    __attribute__((constructor)) static void add_group(void)                                       \
    {                                                                                              \
        static struct support_group group = {__FILE__, cases,     ARRAY_LEN(cases),                \
                                             set_up,   tear_down, NULL};                           \
        support_add_group(&group);                                                                 \
    }

void support_add_group(struct support_group *group);

void support_assert_ok(enum phema_status status, const struct phema_error *err, const char *file,
                       int line);
void support_assert_fails(enum phema_status status, enum phema_status wanted,
                          const struct phema_error *err, const char *part, const char *file,
                          int line);
void support_assert_near(double got, double wanted, double tolerance, const char *file, int line);

/* Of loops over many shapes: sanitizers make sums ten times slower, and see memory, not numbers. It shares
 * no factor with the periods of such loops. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SUPPORT_STRIDE ((size_t)7)
#else
#define SUPPORT_STRIDE ((size_t)1)
#endif

/* The next number of the sequence that the initial state determines (splitmix64). */
uint64_t support_random(uint64_t *state);
/* n elements from that sequence: random bits, which include NaN, infinities and subnormals; or
 * ordinary numbers, whose sums are not NaN. */
void support_fill_numbers(void *out, enum phema_dtype dtype, size_t n, bool is_any_bits,
                          uint64_t *state);

/* An empty directory of this process, the same at each call; removed with its contents at exit. */
const char *support_tmp(void);
/* "TMP/name"; the caller frees it */
char *support_tmp_path(const char *name);
/* "FIXTURES/name"; the caller frees it */
char *support_fixture(const char *name);
void support_write(const char *path, const void *data, size_t size);
/* The whole file; the caller frees it. Fails the test if the file cannot be read. */
uint8_t *support_read(const char *path, size_t *size);

/* size bytes that end exactly at an inaccessible page, so that reading one byte more faults; never
 * freed. */
uint8_t *support_guarded(const void *data, size_t size);

/* The number of threads of this process. The assertion waits until it is at most n: a joined thread
 * may stay in the list for a moment. */
size_t support_count_threads(void);
void support_assert_threads_become(size_t n);

/* Limits the address space (`ulimit -v`) to its current size plus more_bytes, until the returned
 * limit is restored. In between, a failing assertion may lack memory. */
struct rlimit support_limit_address_space(size_t more_bytes);
void support_restore_address_space(const struct rlimit *before);

#endif
