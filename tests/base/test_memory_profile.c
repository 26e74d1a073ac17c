// SPDX-License-Identifier: Apache-2.0
/* Stages, their memory, and leaks, with real allocations. */
#include "phema/memory.h"
#include "phema/memory_profile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "forbid_threads.h"
#include "support.h"

#define MIB   ((size_t)1 << 20)
#define SLACK (2 * MIB)

static struct phema_memory_profile *open_profile(void)
{
    struct phema_memory_profile *profile = NULL;
    struct phema_error err = {0};
    assert_ok(phema_memory_profile_open(&profile, true, &err), &err);
    return profile;
}

/* Under sanitizers, malloc is not that of libc. */
static bool knows_allocated(void)
{
    void *block = malloc(MIB);
    bool knows = phema_memory_allocated() >= MIB;
    free(block);
    return knows;
}

static void stages_have_their_baselines_and_peaks(void **state)
{
    (void)state;
    if (phema_memory_now().anonymous_bytes == 0)
        skip();
    struct phema_memory_profile *profile = open_profile();
    phema_memory_profile_begin_stage(profile, PHEMA_STAGE_OPEN);
    uint8_t *kept = malloc(16 * MIB);
    assert_non_null(kept);
    memset(kept, 1, 16 * MIB);
    phema_memory_profile_begin_stage(profile, PHEMA_STAGE_ACCUMULATE);
    uint8_t *passing = malloc(32 * MIB);
    assert_non_null(passing);
    memset(passing, 1, 32 * MIB);
    phema_memory_profile_begin_stage(
        profile, PHEMA_STAGE_PUBLISH); /* its end is recorded even if it is short */
    free(passing);
    free(kept);
    phema_memory_profile_end(profile);
    struct phema_stage_record open = phema_memory_profile_stage(profile, PHEMA_STAGE_OPEN);
    struct phema_stage_record add = phema_memory_profile_stage(profile, PHEMA_STAGE_ACCUMULATE);
    assert_true(open.is_entered && add.is_entered);
    assert_false(phema_memory_profile_stage(profile, PHEMA_STAGE_SOLVE).is_entered);
    assert_near((double)open.anonymous.peak - (double)open.anonymous.baseline, 16.0 * MIB, SLACK);
    assert_near((double)add.anonymous.baseline - (double)open.anonymous.now, 0, SLACK);
    assert_near((double)add.anonymous.peak - (double)add.anonymous.baseline, 32.0 * MIB, SLACK);
    if (knows_allocated())
        assert_near((double)add.allocated.peak - (double)add.allocated.baseline, 32.0 * MIB, SLACK);
    phema_memory_profile_close(profile);
}

/* A loop of 640 steps. Each step allocates a block, which is freed 10 steps later, and leaks
 * leaked_bytes. */
static struct phema_stage_record loop(size_t leaked_bytes)
{
    enum { N_STEPS = 640, N_HELD = 10 };
    static void *leaks[N_STEPS];
    void *held[N_HELD] = {NULL};
    struct phema_memory_profile *profile = open_profile();
    phema_memory_profile_begin_stage(profile, PHEMA_STAGE_ACCUMULATE);
    for (size_t i = 0; i < N_STEPS; i++) {
        free(held[i % N_HELD]);
        held[i % N_HELD] = malloc(100000);
        assert_non_null(held[i % N_HELD]);
        leaks[i] = leaked_bytes ? malloc(leaked_bytes) : NULL;
        phema_memory_profile_mark(profile, i + 1, N_STEPS);
    }
    phema_memory_profile_end(profile);
    struct phema_stage_record record = phema_memory_profile_stage(profile, PHEMA_STAGE_ACCUMULATE);
    phema_memory_profile_close(profile);
    for (size_t i = 0; i < N_HELD; i++)
        free(held[i]);
    for (size_t i = 0; i < N_STEPS; i++)
        free(leaks[i]);
    return record;
}

static void a_planted_leak_is_reported(void **state)
{
    (void)state;
    if (!knows_allocated())
        skip();
    struct phema_stage_record record = loop(0);
    assert_false(record.is_leaking);
    assert_int_equal(record.leaked_bytes, 0);
    record = loop(1000);
    assert_true(record.is_leaking);
    /* from the end of the second quarter to the start of the last: 160 of 640 steps */
    assert_near((double)record.leaked_bytes, 160 * 1000.0, 20 * 1000.0);
}

static void a_null_profile_does_nothing(void **state)
{
    (void)state;
    struct phema_error err = {0};
    phema_memory_profile_begin_stage(NULL, PHEMA_STAGE_OPEN);
    phema_memory_profile_mark(NULL, 1, 2);
    assert_ok(phema_memory_profile_watch_file(NULL, "nothing", &err), &err);
    phema_memory_profile_end(NULL);
    phema_memory_profile_close(NULL);
}

static void watched_files_are_found_in_the_page_cache(void **state)
{
    (void)state;
    char *path = support_tmp_path("cached.bin");
    uint8_t *data = calloc(4, MIB);
    assert_non_null(data);
    support_write(path, data, 4 * MIB);
    free(data);
    struct phema_memory_profile *profile = open_profile();
    struct phema_error err = {0};
    phema_memory_profile_begin_stage(profile, PHEMA_STAGE_WRITE);
    assert_ok(phema_memory_profile_watch_file(profile, path, &err), &err);
    assert_ok(phema_memory_profile_watch_file(profile, "/no/such/file", &err), &err);
    phema_memory_profile_end(profile);
    struct phema_stage_record record = phema_memory_profile_stage(profile, PHEMA_STAGE_WRITE);
    phema_memory_profile_close(profile);
    free(path);
    if (!record.knows_cached)
        skip(); /* kernels before 6.5 */
    assert_int_equal(record.cached_bytes, 4 * MIB);
}

/* This test runs last, because no thread can start afterwards. */
static void a_profile_without_a_thread_samples_at_marks(void **state)
{
    (void)state;
    if (phema_memory_now().anonymous_bytes == 0 || !forbid_threads())
        skip();
    struct phema_memory_profile *profile = open_profile();
    phema_memory_profile_begin_stage(profile, PHEMA_STAGE_ACCUMULATE);
    /* mapped: of malloc's bytes the address sanitizer keeps shadows */
    uint8_t *passing =
        mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(passing != MAP_FAILED);
    memset(passing, 1, 32 * MIB);
    phema_memory_profile_mark(profile, 1, 2);
    assert_int_equal(munmap(passing, 32 * MIB), 0);
    phema_memory_profile_end(profile);
    struct phema_stage_record add = phema_memory_profile_stage(profile, PHEMA_STAGE_ACCUMULATE);
    assert_near((double)add.anonymous.peak - (double)add.anonymous.baseline, 32.0 * MIB, SLACK);
    phema_memory_profile_close(profile);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stages_have_their_baselines_and_peaks),
    cmocka_unit_test(a_planted_leak_is_reported),
    cmocka_unit_test(a_null_profile_does_nothing),
    cmocka_unit_test(watched_files_are_found_in_the_page_cache),
    cmocka_unit_test(a_profile_without_a_thread_samples_at_marks),
};
TEST_GROUP(tests)
