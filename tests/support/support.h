/* support.h - what every unit test needs: cmocka, assertions that show the error's sentence, files.
 */
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
/* the status, and a message that holds part */
#define assert_fails(status, wanted, err, part)                                                    \
    support_assert_fails(status, wanted, err, part, __FILE__, __LINE__)
#define assert_near(got, wanted, tolerance)                                                        \
    support_assert_near(got, wanted, tolerance, __FILE__, __LINE__)

void support_assert_ok(enum phema_status status, const struct phema_error *err, const char *file,
                       int line);
void support_assert_fails(enum phema_status status, enum phema_status wanted,
                          const struct phema_error *err, const char *part, const char *file,
                          int line);
void support_assert_near(double got, double wanted, double tolerance, const char *file, int line);

/* The next number of a sequence that its first state decides (splitmix64). */
uint64_t support_random(uint64_t *state);
/* n elements from that sequence: any bits, so NaN, infinities and subnormals among them, or
 * ordinary numbers, so that their sums are more than NaN. */
void support_fill_numbers(void *out, enum phema_dtype dtype, size_t n, bool is_any_bits,
                          uint64_t *state);

/* An empty directory of this process, the same at each call; removed with all in it at exit. */
const char *support_tmp(void);
/* "TMP/name"; the caller's (free) */
char *support_tmp_path(const char *name);
/* "FIXTURES/name"; the caller's (free) */
char *support_fixture(const char *name);
void support_write(const char *path, const void *data, size_t size);
/* whole file; the caller's (free); fails the test when it cannot be read */
uint8_t *support_read(const char *path, size_t *size);

/* size bytes that end exactly at an inaccessible page, so that reading one too many is a fault; not
 * freed before exit */
uint8_t *support_guarded(const void *data, size_t size);

/* Threads of this process; and that they become so many: one that was joined may be in the list for
 * another moment. */
size_t support_count_threads(void);
void support_assert_threads_become(size_t n);

/* The address space that is in use and so many bytes more are the limit (`ulimit -v`), until the
 * limit before is restored. In between the test may have no memory to fail in. */
struct rlimit support_limit_address_space(size_t more_bytes);
void support_restore_address_space(const struct rlimit *before);

#endif
