// SPDX-License-Identifier: Apache-2.0
/* Values that are sent to another process: they come back as they were, and what is cut short or
 * too large is refused at every length. */
#include "phema/packed.h"

#include <math.h>
#include <string.h>

#include "support.h"

static void pack_all(struct phema_strbuf *text)
{
    phema_pack_u64(text, UINT64_MAX - 1);
    phema_pack_double(text, -0.0);
    phema_pack_text(text, NULL);
    phema_pack_text(text, "");
    phema_pack_bytes(text, "a\0b", 3);
    phema_pack_u64s(text, (const uint64_t[]){3, 5}, 2);
    phema_pack_u64(text, 1);
}

static void values_come_back(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    size_t size = 0;
    pack_all(&text);
    struct phema_unpacker in = {.rest = {(const uint8_t *)text.data, text.size}, .arena = &arena};
    assert_true(phema_unpack_u64(&in) == UINT64_MAX - 1);
    assert_true(signbit(phema_unpack_double(&in)));
    assert_null(phema_unpack_text(&in, NULL));
    assert_string_equal(phema_unpack_text(&in, NULL), "");
    assert_memory_equal(phema_unpack_text(&in, &size), "a\0b", 4);
    assert_int_equal(size, 3);
    const uint64_t *numbers = phema_unpack_u64s(&in, 2);
    assert_true(numbers[0] == 3 && numbers[1] == 5);
    assert_true(phema_unpack_bool(&in));
    assert_ok(phema_unpack_check(&in, &err), &err);
    assert_int_equal(in.rest.size, 0);
    phema_strbuf_clear(&text);
    phema_arena_clear(&arena);
}

/* Guard pages behind the bytes would end the test. */
static void every_length_is_refused(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    pack_all(&text);
    for (size_t n = 0; n < text.size; n++) {
        const uint8_t *data = support_guarded(text.data, n);
        struct phema_arena arena = {0};
        struct phema_error err = {0};
        struct phema_unpacker in = {.rest = {data, n}, .arena = &arena};
        (void)phema_unpack_u64(&in);
        (void)phema_unpack_double(&in);
        (void)phema_unpack_text(&in, NULL);
        (void)phema_unpack_text(&in, NULL);
        (void)phema_unpack_text(&in, NULL);
        (void)phema_unpack_u64s(&in, 2);
        (void)phema_unpack_bool(&in);
        assert_int_equal(phema_unpack_check(&in, &err), PHEMA_BUG);
        phema_arena_clear(&arena);
    }
    phema_strbuf_clear(&text);
}

static void impossible_numbers_are_refused(void **state)
{
    (void)state;
    struct phema_strbuf text = {0};
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    phema_pack_u64(&text, 7);
    struct phema_span all = {(const uint8_t *)text.data, text.size};
    struct phema_unpacker in = {.rest = all, .arena = &arena};
    assert_int_equal(phema_unpack_index(&in, 7), 0);
    assert_int_equal(phema_unpack_check(&in, &err), PHEMA_BUG);
    in = (struct phema_unpacker){.rest = all, .arena = &arena};
    assert_int_equal(phema_unpack_count(&in, 1), 0);
    assert_int_equal(phema_unpack_check(&in, &err), PHEMA_BUG);
    in = (struct phema_unpacker){.rest = all, .arena = &arena};
    assert_null(phema_unpack_u64s(&in, SIZE_MAX / 8));
    assert_int_equal(phema_unpack_check(&in, &err), PHEMA_BUG);
    phema_strbuf_clear(&text);
    phema_arena_clear(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_come_back),
    cmocka_unit_test(every_length_is_refused),
    cmocka_unit_test(impossible_numbers_are_refused),
};
TEST_GROUP(tests)
