// SPDX-License-Identifier: Apache-2.0
/* Passes. */
#include "support.h"

static void passes(void **state)
{
    (void)state;
}

static void slow_passes(void **state)
{
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(passes),
    cmocka_unit_test(slow_passes),
};
TEST_GROUP(tests)
