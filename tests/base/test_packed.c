// SPDX-License-Identifier: Apache-2.0
/* Values that are sent to another process: they come back as they were, and what is cut short or
 * too large is refused at every length. */
#include "phema/packed.h"

#include <math.h>
#include <string.h>

#include "support.h"

struct values {
    uint64_t number;
    double real;
    const char *none, *empty, *bytes;
    size_t size;
    const uint64_t *numbers;
    bool truth;
};

static void pack_all(struct phema_packer *packer, struct values *values)
{
    phema_pack_u64(packer, &values->number);
    phema_pack_double(packer, &values->real);
    phema_pack_text(packer, &values->none);
    phema_pack_text(packer, &values->empty);
    phema_pack_bytes(packer, &values->bytes, &values->size);
    phema_pack_u64s(packer, &values->numbers, 2);
    phema_pack_bool(packer, &values->truth);
}

static struct phema_strbuf send_all(void)
{
    struct phema_strbuf text = {0};
    struct values values = {.number = UINT64_MAX - 1,
                            .real = -0.0,
                            .empty = "",
                            .bytes = "a\0b",
                            .size = 3,
                            .numbers = (const uint64_t[]){3, 5},
                            .truth = true};
    pack_all(&(struct phema_packer){.out = &text}, &values);
    assert_int_equal(values.size, 3);
    return text;
}

static void values_come_back(void **state)
{
    (void)state;
    struct phema_strbuf text = send_all();
    struct phema_arena arena = {0};
    struct phema_error err = {0};
    struct values values = {.none = "something"};
    struct phema_packer in = {.rest = {(const uint8_t *)text.data, text.size}, .arena = &arena};
    pack_all(&in, &values);
    assert_true(values.number == UINT64_MAX - 1);
    assert_true(signbit(values.real));
    assert_null(values.none);
    assert_string_equal(values.empty, "");
    assert_memory_equal(values.bytes, "a\0b", 4);
    assert_int_equal(values.size, 3);
    assert_true(values.numbers[0] == 3 && values.numbers[1] == 5);
    assert_true(values.truth);
    assert_ok(phema_pack_check(&in, &err), &err);
    assert_int_equal(in.rest.size, 0);
    phema_strbuf_clear(&text);
    phema_arena_clear(&arena);
}

/* Guard pages behind the bytes would end the test. */
static void every_length_is_refused(void **state)
{
    (void)state;
    struct phema_strbuf text = send_all();
    for (size_t n = 0; n < text.size; n++) {
        const uint8_t *data = support_guarded(text.data, n);
        struct phema_arena arena = {0};
        struct phema_error err = {0};
        struct values values = {0};
        struct phema_packer in = {.rest = {data, n}, .arena = &arena};
        pack_all(&in, &values);
        assert_int_equal(phema_pack_check(&in, &err), PHEMA_BUG);
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
    uint64_t seven = 7;
    phema_pack_u64(&(struct phema_packer){.out = &text}, &seven);
    struct phema_span all = {(const uint8_t *)text.data, text.size};
    struct phema_packer in = {.rest = all, .arena = &arena};
    size_t index = 1, n = 1;
    phema_pack_index(&in, &index, 7);
    assert_int_equal(index, 0);
    assert_int_equal(phema_pack_check(&in, &err), PHEMA_BUG);
    in = (struct phema_packer){.rest = all, .arena = &arena};
    assert_int_equal(phema_pack_choice(&in, 1, 7), 0);
    assert_int_equal(phema_pack_check(&in, &err), PHEMA_BUG);
    in = (struct phema_packer){.rest = all, .arena = &arena};
    phema_pack_count(&in, &n, 1);
    assert_int_equal(n, 0);
    assert_int_equal(phema_pack_check(&in, &err), PHEMA_BUG);
    in = (struct phema_packer){.rest = all, .arena = &arena};
    const uint64_t *numbers = &seven;
    phema_pack_u64s(&in, &numbers, SIZE_MAX / 8);
    assert_null(numbers);
    assert_int_equal(phema_pack_check(&in, &err), PHEMA_BUG);
    phema_strbuf_clear(&text);
    phema_arena_clear(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_come_back),
    cmocka_unit_test(every_length_is_refused),
    cmocka_unit_test(impossible_numbers_are_refused),
};
TEST_GROUP(tests)
