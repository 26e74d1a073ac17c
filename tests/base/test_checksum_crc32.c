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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_check_value_of_the_standard),
        cmocka_unit_test(streams_give_the_crc_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
