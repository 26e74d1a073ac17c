// SPDX-License-Identifier: Apache-2.0
/* Settings have the names of options here, as in the program. tests/api has those of the library. */
#include "phema/setting.h"

#include <string.h>

#include "support.h"

static void every_setting_has_a_name(void **state)
{
    (void)state;
    assert_true(phema_settings_are_options);
    for (int i = PHEMA_SET_NONE + 1; i < PHEMA_N_SETTINGS; i++) {
        enum phema_setting setting = (enum phema_setting)i;
        const char *name = phema_setting_name(setting), *equals = phema_setting_equals(setting);
        assert_true(strlen(phema_setting_option(setting)) > 0);
        if (i >= PHEMA_SET_OUT)
            continue; /* operands */
        assert_memory_equal(name, "--", 2);
        assert_string_equal(name + 2, phema_setting_option(setting));
        assert_string_equal(name, phema_setting_dashed(setting));
        assert_memory_equal(equals, name, strlen(name));
        assert_string_equal(equals + strlen(name), " ");
        for (int j = PHEMA_SET_NONE + 1; j < i; j++)
            assert_string_not_equal(name, phema_setting_name((enum phema_setting)j));
    }
}

static void a_failure_says_which_setting_it_is_about(void **state)
{
    (void)state;
    struct phema_error err = {0};
    assert_int_equal(phema_fail_setting(&err, PHEMA_ERR_USAGE, PHEMA_SET_RULE, "%d are given", 9),
                     PHEMA_ERR_USAGE);
    assert_string_equal(err.message, "--rule: 9 are given");
    assert_string_equal(err.about, "rule");
    (void)phema_fail(&err, PHEMA_ERR_FILE, "x");
    assert_string_equal(err.about, "");
    (void)phema_fail_in_setting(&err, PHEMA_ERR_FILE, PHEMA_SET_NAME_REGEX);
    assert_string_equal(err.message, "--name-regex: x");
    assert_string_equal(err.about, "name-regex");
    (void)phema_suggest(&err, PHEMA_ERR_FILE, PHEMA_SET_NAME_REGEX, "(?<time>[0-9]+)");
    (void)phema_fail_in(&err, PHEMA_ERR_FILE, "a"); /* begins with a file now */
    assert_string_equal(err.about, "");
    assert_string_equal(phema_change_name(&err, 0), "name-regex");
    assert_string_equal(phema_change_value(&err, 0), "(?<time>[0-9]+)");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_setting_has_a_name),
    cmocka_unit_test(a_failure_says_which_setting_it_is_about),
};
TEST_GROUP(tests)
