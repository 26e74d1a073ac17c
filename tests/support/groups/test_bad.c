// SPDX-License-Identifier: Apache-2.0
/* Has cases that fail, one of them with its whole process. */
#include <signal.h>

#include "support.h"

static void fails(void **state)
{
    (void)state;
    assert_true(false);
}

static void ends_its_process(void **state)
{
    (void)state;
    (void)raise(SIGKILL);
}

static void passes(void **state)
{
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fails),
    cmocka_unit_test(ends_its_process),
    cmocka_unit_test(passes),
};
TEST_GROUP(tests)
