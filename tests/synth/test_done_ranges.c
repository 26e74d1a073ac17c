// SPDX-License-Identifier: Apache-2.0
/* Finished ranges, compared with a plain list of their numbers. */
#include "resume/resume.h"

#include <string.h>

#include "support.h"

enum { N = 40, ROUNDS = 20000 };

static void assert_is(const struct done_ranges *done, const bool *wanted)
{
    bool found[N] = {false};
    for (size_t x = 0; x < done->n; x++) {
        assert_true(done->items[x].first < done->items[x].end && done->items[x].end <= N);
        assert_true(x == 0 || done->items[x - 1].end < done->items[x].first);
        memset(found + done->items[x].first, true, done->items[x].end - done->items[x].first);
    }
    assert_memory_equal(found, wanted, N);
}

static bool are_all(const bool *wanted, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        if (!wanted[i])
            return false;
    return true;
}

static void ranges_match_a_plain_list(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct done_ranges done = {0}, other = {0};
    bool wanted[N] = {false}, others[N] = {false};
    uint64_t seed = 5;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t first = support_random(&seed) % N;
        uint64_t end = first + support_random(&seed) % (N - first + 1);
        switch (support_random(&seed) % 12) {
        case 0: /* rarely, because few numbers remain */
            assert_ok(done_ranges_intersect(&done, &other, &err), &err);
            for (size_t i = 0; i < N; i++)
                wanted[i] = wanted[i] && others[i];
            break;
        case 1:
        case 2:
            assert_ok(done_ranges_add(&other, first, end, &err), &err);
            memset(others + first, true, end - first);
            break;
        case 3:
            assert_ok(done_ranges_remove(&other, first, end, &err), &err);
            memset(others + first, false, end - first);
            break;
        case 4:
        case 5:
        case 6:
            assert_ok(done_ranges_remove(&done, first, end, &err), &err);
            memset(wanted + first, false, end - first);
            break;
        default:
            assert_ok(done_ranges_add(&done, first, end, &err), &err);
            memset(wanted + first, true, end - first);
        }
        assert_is(&done, wanted);
        assert_is(&other, others);
        first = support_random(&seed) % N;
        end = first + 1 + support_random(&seed) % (N - first);
        assert_int_equal(done_ranges_has(&done, first, end), are_all(wanted, first, end));
    }
    done_ranges_clear(&done);
    done_ranges_clear(&other);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranges_match_a_plain_list),
};
TEST_GROUP(tests)
