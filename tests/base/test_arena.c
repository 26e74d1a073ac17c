// SPDX-License-Identifier: Apache-2.0
/* Arena allocations are aligned, zeroed and disjoint; sizes that overflow are refused. */
#include "phema/arena.h"

#include <string.h>

#include "support.h"

static void allocations_are_zeroed_aligned_and_disjoint(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    uint8_t *pieces[3000];
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        size_t size = i % 301;
        pieces[i] = phema_arena_alloc(&arena, size);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        for (size_t b = 0; b < size; b++)
            assert_int_equal(pieces[i][b], 0);
        memset(pieces[i], (int)(i % 255 + 1), size);
    }
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
        for (size_t b = 0; b < i % 301; b++)
            assert_int_equal(pieces[i][b], i % 255 + 1);
    phema_arena_clear(&arena);
}

static void an_allocation_may_be_larger_than_a_block(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    static const size_t sizes[] = {1, 65520, 65536, 65537, 1 << 20, 1, 5 << 20};
    uint8_t *pieces[ARRAY_LEN(sizes)];
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        pieces[i] = phema_arena_alloc(&arena, sizes[i]);
        assert_non_null(pieces[i]);
        assert_int_equal(pieces[i][sizes[i] - 1], 0);
        memset(pieces[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_int_equal(pieces[i][0], i + 1);
        assert_int_equal(pieces[i][sizes[i] - 1], i + 1);
    }
    size_t wanted = 0;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        wanted += sizes[i];
    assert_true(arena.total_bytes >= wanted);
    phema_arena_clear(&arena);
    assert_int_equal(arena.total_bytes, 0);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    assert_null(phema_arena_alloc(&arena, SIZE_MAX));
    assert_null(phema_arena_alloc(&arena, SIZE_MAX - 14));
    assert_null(phema_arena_alloc(&arena, SIZE_MAX / 2 + 1));
    assert_null(phema_arena_array(&arena, SIZE_MAX / 8 + 1, 8));    /* wraps to 0 */
    assert_null(phema_arena_array(&arena, (SIZE_MAX >> 3) + 3, 8)); /* wraps to 16 */
    assert_null(phema_arena_array(&arena, SIZE_MAX, SIZE_MAX));
    assert_int_equal(arena.total_bytes, 0);
    assert_non_null(phema_arena_array(&arena, 3, 8)); /* and works afterwards */
    phema_arena_clear(&arena);
}

static void copies_end_with_nul_and_are_copies(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    const uint8_t *source = support_guarded("a\0b", 3);
    char *copy = phema_arena_copy(&arena, source, 3);
    assert_non_null(copy);
    assert_memory_equal(copy, "a\0b", 4);
    copy[0] = 'z';
    assert_int_equal(source[0], 'a');
    /* 16 bytes fill a unit; the NUL must not be the first byte of the next piece */
    char *full = phema_arena_copy(&arena, "0123456789abcdef", 16);
    assert_non_null(full);
    memset(phema_arena_alloc(&arena, 16), 'x', 16);
    assert_string_equal(full, "0123456789abcdef");
    char *empty = phema_arena_copy(&arena, NULL, 0);
    assert_non_null(empty);
    assert_string_equal(empty, "");
    phema_arena_clear(&arena);
}

static void printed_text_is_of_any_length(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    assert_string_equal(phema_arena_printf(&arena, "%s-%d", "a", 7), "a-7");
    assert_string_equal(phema_arena_printf(&arena, "%s", ""), "");
    const char *padded = phema_arena_printf(&arena, "%100000d", 1);
    assert_int_equal(strlen(padded), 100000);
    assert_string_equal(padded + 99998, " 1");
    phema_arena_clear(&arena);
}

static void a_grown_array_keeps_its_items(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    uint64_t *items = NULL;
    for (size_t n = 0; n < 1000; n++) {
        items = phema_arena_grow(&arena, items, n, sizeof(*items));
        assert_non_null(items);
        items[n] = n;
        memset(phema_arena_alloc(&arena, 8), 0xFF, 8); /* a neighbour, which does not reach in */
    }
    for (size_t n = 0; n < 1000; n++)
        assert_int_equal(items[n], n);
    phema_arena_clear(&arena);
}

static void a_cleared_arena_is_like_new(void **state)
{
    (void)state;
    struct phema_arena arena = {0};
    phema_arena_clear(&arena);
    for (int round = 0; round < 3; round++) {
        uint8_t *piece = phema_arena_alloc(&arena, 40);
        assert_non_null(piece);
        for (size_t b = 0; b < 40; b++)
            assert_int_equal(piece[b], 0);
        memset(piece, 0xFF, 40);
        phema_arena_clear(&arena);
        assert_null(arena.newest);
        assert_int_equal(arena.used, 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(allocations_are_zeroed_aligned_and_disjoint),
    cmocka_unit_test(an_allocation_may_be_larger_than_a_block),
    cmocka_unit_test(sizes_that_overflow_are_refused),
    cmocka_unit_test(copies_end_with_nul_and_are_copies),
    cmocka_unit_test(printed_text_is_of_any_length),
    cmocka_unit_test(a_grown_array_keeps_its_items),
    cmocka_unit_test(a_cleared_arena_is_like_new),
};
TEST_GROUP(tests)
