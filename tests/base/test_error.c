// SPDX-License-Identifier: Apache-2.0
/* One sentence after its places, whole or visibly truncated. Statuses are the exit statuses that
 * scripts depend on. */
#include "phema/error.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

static void statuses_are_the_documented_exit_statuses(void **state)
{
    (void)state;
    assert_int_equal(PHEMA_OK, 0);
    assert_int_equal(PHEMA_NO, 1);
    assert_int_equal(PHEMA_ERR_USAGE, 2);
    assert_int_equal(PHEMA_ERR_FILE, 3);
    assert_int_equal(PHEMA_ERR_INPUTS, 4);
    assert_int_equal(PHEMA_ERR_TARGET, 5);
    assert_int_equal(PHEMA_ERR_OUTPUT, 6);
    assert_int_equal(PHEMA_ERR_RESOURCE, 7);
    assert_int_equal(PHEMA_BUG, 70);
}

static void places_are_put_before_the_sentence(void **state)
{
    (void)state;
    struct phema_error err = {0};
    assert_int_equal(phema_fail(&err, PHEMA_ERR_FILE, "expected %d bytes, found %s", 12, "7"),
                     PHEMA_ERR_FILE);
    assert_string_equal(err.message, "expected 12 bytes, found 7");
    assert_int_equal(phema_fail_in(&err, PHEMA_ERR_FILE, "tensor '%s'", "w"), PHEMA_ERR_FILE);
    assert_int_equal(phema_fail_in(&err, PHEMA_ERR_INPUTS, "a.safetensors"), PHEMA_ERR_INPUTS);
    assert_string_equal(err.message, "a.safetensors: tensor 'w': expected 12 bytes, found 7");
}

static void percent_signs_in_the_sentence_are_not_read_again(void **state)
{
    (void)state;
    struct phema_error err = {0};
    (void)phema_fail(&err, PHEMA_ERR_FILE, "%s", "100%s %n");
    (void)phema_fail_in(&err, PHEMA_ERR_FILE, "%s", "%d.bin");
    assert_string_equal(err.message, "%d.bin: 100%s %n");
}

static char *repeated(char letter, size_t size)
{
    char *string = malloc(size + 1);
    assert_non_null(string);
    memset(string, letter, size);
    string[size] = '\0';
    return string;
}

static void only_text_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    const size_t longest = sizeof(((struct phema_error *)NULL)->message) - 2;
    for (size_t size = longest - 2; size <= longest + 2; size++) {
        struct phema_error err = {0};
        char *long_sentence = repeated('m', size);
        (void)phema_fail(&err, PHEMA_ERR_FILE, "%s", long_sentence);
        bool is_cut = size > longest;
        assert_int_equal(strlen(err.message), is_cut ? longest : size);
        assert_int_equal(strcmp(err.message + strlen(err.message) - 3, "...") == 0, is_cut);
        free(long_sentence);
    }
}

static void a_place_before_a_long_sentence_cuts_its_end(void **state)
{
    (void)state;
    const size_t longest = sizeof(((struct phema_error *)NULL)->message) - 2;
    /* "p: " and a sentence that fills the rest, or has one character less or more */
    for (size_t size = longest - 4; size <= longest - 2; size++) {
        struct phema_error err = {0};
        char *sentence = repeated('m', size);
        (void)phema_fail(&err, PHEMA_ERR_FILE, "%s", sentence);
        (void)phema_fail_in(&err, PHEMA_ERR_FILE, "p");
        bool is_cut = size + 3 > longest;
        assert_memory_equal(err.message, "p: mmm", 6);
        assert_int_equal(strlen(err.message), is_cut ? longest : size + 3);
        assert_int_equal(strcmp(err.message + strlen(err.message) - 3, "...") == 0, is_cut);
        free(sentence);
    }
}

static void a_place_that_fills_everything_is_cut_itself(void **state)
{
    (void)state;
    const size_t longest = sizeof(((struct phema_error *)NULL)->message) - 2;
    for (size_t size = longest - 3; size <= longest + 1000; size += size < longest + 2 ? 1 : 333) {
        struct phema_error err = {0};
        char *place = repeated('p', size);
        (void)phema_fail(&err, PHEMA_ERR_FILE, "sentence");
        assert_int_equal(phema_fail_in(&err, PHEMA_ERR_USAGE, "%s", place), PHEMA_ERR_USAGE);
        assert_int_equal(strlen(err.message), longest);
        assert_string_equal(err.message + longest - 3, "...");
        free(place);
    }
}

static void changes_stay_with_their_message(void **state)
{
    (void)state;
    struct phema_error err = {0};
    assert_int_equal(err.n_changes, 0);
    (void)phema_fail(&err, PHEMA_ERR_FILE, "no time");
    assert_int_equal(phema_error_change(&err, PHEMA_ERR_FILE, "name-regex", "x y"), PHEMA_ERR_FILE);
    (void)phema_error_change(&err, PHEMA_ERR_FILE, "force", NULL);
    (void)phema_error_change(&err, PHEMA_ERR_FILE, "key", "");
    (void)phema_fail_in(&err, PHEMA_ERR_INPUTS, "a longer place than before");
    assert_string_equal(err.message, "a longer place than before: no time");
    assert_int_equal(err.n_changes, 3);
    assert_string_equal(phema_change_name(&err, 0), "name-regex");
    assert_string_equal(phema_change_value(&err, 0), "x y");
    assert_string_equal(phema_change_name(&err, 1), "force");
    assert_null(phema_change_value(&err, 1));
    assert_string_equal(phema_change_value(&err, 2), "");
    struct phema_error copy = {0};
    phema_error_copy_changes(&copy, &err);
    assert_string_equal(phema_change_value(&copy, 0), "x y");
    (void)phema_fail(&err, PHEMA_ERR_FILE, "x");
    assert_int_equal(err.n_changes, 0);
}

static void half_a_remedy_is_no_remedy(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *fits = repeated('v', sizeof(err.words) - sizeof("key") - 1);
    (void)phema_error_change(&err, PHEMA_ERR_FILE, "key", fits);
    assert_int_equal(err.n_changes, 1);
    (void)phema_error_change(&err, PHEMA_ERR_FILE, "force", NULL);
    assert_int_equal(err.n_changes, 0);
    free(fits);
    for (size_t i = 0; i < PHEMA_MOST_CHANGES; i++)
        (void)phema_error_change(&err, PHEMA_ERR_FILE, "key", "a");
    assert_int_equal(err.n_changes, PHEMA_MOST_CHANGES);
    (void)phema_error_change(&err, PHEMA_ERR_FILE, "key", "a");
    assert_int_equal(err.n_changes, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(changes_stay_with_their_message),
    cmocka_unit_test(half_a_remedy_is_no_remedy),
    cmocka_unit_test(statuses_are_the_documented_exit_statuses),
    cmocka_unit_test(places_are_put_before_the_sentence),
    cmocka_unit_test(percent_signs_in_the_sentence_are_not_read_again),
    cmocka_unit_test(only_text_that_does_not_fit_is_cut),
    cmocka_unit_test(a_place_before_a_long_sentence_cuts_its_end),
    cmocka_unit_test(a_place_that_fills_everything_is_cut_itself),
};
TEST_GROUP(tests)
