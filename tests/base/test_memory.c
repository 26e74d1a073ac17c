// SPDX-License-Identifier: Apache-2.0
/* Resident memory as the kernel counts it: touched anonymous pages, and separately touched pages of
 * a mapped file. */
#include "phema/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "phema/mapped_file.h"
#include "support.h"

#define MIB ((size_t)1 << 20)

/* The kernel counts in batches of at least 32 pages per thread. The test's own other allocations
 * are much smaller than this. */
#define SLACK (2 * MIB)

static void touched_anonymous_pages_are_counted(void **state)
{
    (void)state;
    struct phema_memory before = phema_memory_now();
    if (before.anonymous_bytes == 0)
        skip();
    uint8_t *pages =
        mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    memset(pages, 1, 32 * MIB);
    struct phema_memory after = phema_memory_now();
    assert_near((double)after.anonymous_bytes - (double)before.anonymous_bytes, 32.0 * MIB, SLACK);
    assert_near((double)after.file_bytes - (double)before.file_bytes, 0, SLACK);
    assert_int_equal(munmap(pages, 32 * MIB), 0);
}

static void pages_of_a_mapped_file_are_not_anonymous(void **state)
{
    (void)state;
    if (phema_memory_now().anonymous_bytes == 0)
        skip();
    char *path = support_tmp_path("large.bin");
    uint8_t *data = calloc(16, MIB);
    assert_non_null(data);
    support_write(path, data, 16 * MIB);
    free(data);
    struct phema_file *file = NULL;
    struct phema_error err = {0};
    assert_ok(phema_file_open(&file, path, &err), &err);
    struct phema_memory before = phema_memory_now();
    struct phema_span span = phema_file_span(file);
    uint64_t sum = 0;
    for (size_t i = 0; i < span.size; i += 512)
        sum += span.data[i];
    assert_int_equal(sum, 0);
    struct phema_memory during = phema_memory_now();
    assert_near((double)during.file_bytes - (double)before.file_bytes, 16.0 * MIB, SLACK);
    assert_near((double)during.anonymous_bytes - (double)before.anonymous_bytes, 0, SLACK);
    phema_file_evict(file, 0, span.size); /* eviction removes them */
    struct phema_memory after = phema_memory_now();
    assert_near((double)after.file_bytes - (double)before.file_bytes, 0, SLACK);
    phema_file_close(file);
    free(path);
}

/* Limits of the address space are respected. Without a limit, sizes beyond any machine are
 * refused. */
static void room_is_limited_by_the_address_space(void **state)
{
    (void)state;
    struct rlimit before = support_limit_address_space(64 * MIB);
    bool has_half = phema_memory_has_room(32 * MIB), has_twice = phema_memory_has_room(128 * MIB);
    support_restore_address_space(&before);
    assert_true(has_half);
    assert_false(has_twice);
    assert_false(phema_memory_has_room((uint64_t)1 << 60));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(touched_anonymous_pages_are_counted),
    cmocka_unit_test(pages_of_a_mapped_file_are_not_anonymous),
    cmocka_unit_test(room_is_limited_by_the_address_space),
};
TEST_GROUP(tests)
