// SPDX-License-Identifier: Apache-2.0
/* The check value of the standard, and pieces compared with the whole. */
#include "phema/checksum.h"

#include "support.h"

static void the_check_value_of_the_standard(void **state)
{
    (void)state;
    assert_int_equal(phema_crc32(0, "123456789", 9), 0xCBF43926u);
    assert_int_equal(phema_crc32(0, "", 0), 0);
    assert_int_equal(phema_crc32(0, NULL, 0), 0);
}

static void streams_give_the_crc_of_the_whole(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= 9; cut++) {
        uint32_t crc = phema_crc32(0, "123456789", cut);
        crc = phema_crc32(crc, NULL, 0);
        assert_int_equal(phema_crc32(crc, &"123456789"[cut], 9 - cut), 0xCBF43926u);
    }
}

/* Bit by bit, by the definition. */
static uint32_t slow_crc32(uint32_t crc, const uint8_t *data, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

/* Kernels take long data in steps of 64 and 16 bytes, from any address on. */
static void every_length_and_address_gives_the_definition(void **state)
{
    (void)state;
    enum { MOST = 520 };
    uint8_t data[MOST + 16];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof(data); i++) {
        random = random * 1664525u + 1013904223u;
        data[i] = (uint8_t)(random >> 24);
    }
    for (size_t size = 0; size <= MOST; size++) {
        const uint8_t *at = data + size % 16;
        uint32_t before = (uint32_t)(size * 2654435761u);
        assert_int_equal(phema_crc32(0, at, size), slow_crc32(0, at, size));
        assert_int_equal(phema_crc32(before, at, size), slow_crc32(before, at, size));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_check_value_of_the_standard),
    cmocka_unit_test(streams_give_the_crc_of_the_whole),
    cmocka_unit_test(every_length_and_address_gives_the_definition),
};
TEST_GROUP(tests)
