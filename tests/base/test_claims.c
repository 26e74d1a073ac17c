// SPDX-License-Identifier: Apache-2.0
/* Claims on files that a run reads and writes: by name, through links, and before the files
 * exist. */
#include "phema/claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

struct files {
    char *input, *link, *hard, *directory, *inside, *absent;
    struct phema_claims *claims;
};

static void make(struct files *files)
{
    struct phema_error err = {0};
    *files = (struct files){
        .input = support_tmp_path("input"),
        .link = support_tmp_path("link"),
        .hard = support_tmp_path("hard"),
        .directory = support_tmp_path("directory"),
        .inside = support_tmp_path("directory/input"),
        .absent = support_tmp_path("absent"),
    };
    support_write(files->input, "1", 1);
    assert_int_equal(symlink(files->input, files->link), 0);
    assert_int_equal(link(files->input, files->hard), 0);
    assert_int_equal(mkdir(files->directory, 0777), 0);
    support_write(files->inside, "2", 1);
    assert_ok(phema_claims_new(&files->claims, &err), &err);
}

static void clear(struct files *files)
{
    char *const paths[] = {files->input,     files->link,   files->hard,
                           files->directory, files->inside, files->absent};
    phema_claims_free(files->claims);
    (void)unlink(files->inside);
    (void)rmdir(files->directory);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        (void)unlink(paths[i]);
        free(paths[i]);
    }
}

static void inputs_are_found_by_any_name(void **state)
{
    (void)state;
    struct files files;
    struct phema_error err = {0};
    make(&files);
    const char *names[] = {files.input, files.link, files.hard};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_ok(phema_claims_check(files.claims, names[i], &err), &err);
    assert_ok(phema_claims_add_input(files.claims, files.input, "one of them", &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_fails(phema_claims_check(files.claims, names[i], &err), PHEMA_ERR_OUTPUT, &err,
                     "is one of them; choose another name");
        assert_fails(phema_claims_check_inputs(files.claims, names[i], &err), PHEMA_ERR_OUTPUT,
                     &err, "is one of them; choose another name");
    }
    assert_ok(phema_claims_check(files.claims, files.absent, &err), &err);
    assert_ok(phema_claims_check(files.claims, files.inside, &err), &err);
    assert_ok(phema_claims_check(NULL, files.input, &err), &err);
    clear(&files);
}

/* path is written at path.partial. */
static void partial_names_are_claimed_too(void **state)
{
    (void)state;
    struct files files;
    struct phema_error err = {0};
    make(&files);
    char *path = support_tmp_path("out"), *partial = support_tmp_path("out.partial");
    assert_int_equal(rename(files.hard, partial), 0);
    assert_ok(phema_claims_add_input(files.claims, files.input, "one of them", &err), &err);
    assert_fails(phema_claims_check(files.claims, path, &err), PHEMA_ERR_OUTPUT, &err,
                 "out.partial: is one of them");
    assert_int_equal(unlink(partial), 0);
    assert_ok(phema_claims_check(files.claims, path, &err), &err);
    assert_ok(phema_claims_add_output(files.claims, path, &err), &err);
    assert_fails(phema_claims_check(files.claims, partial, &err), PHEMA_ERR_OUTPUT, &err,
                 "out.partial: is another file that this run writes");
    free(path);
    free(partial);
    clear(&files);
}

static void a_directory_that_holds_an_input_is_refused(void **state)
{
    (void)state;
    struct files files;
    struct phema_error err = {0};
    make(&files);
    char *slashes = support_tmp_path("directory//");
    assert_ok(phema_claims_check(files.claims, files.directory, &err), &err);
    assert_ok(phema_claims_add_input(files.claims, files.inside, "one of them", &err), &err);
    assert_fails(phema_claims_check_inputs(files.claims, files.directory, &err), PHEMA_ERR_OUTPUT,
                 &err, "directory: holds one of them");
    assert_fails(phema_claims_check_inputs(files.claims, slashes, &err), PHEMA_ERR_OUTPUT, &err,
                 "directory: holds one of them");
    free(slashes);
    clear(&files);
}

static void outputs_are_found_before_they_exist(void **state)
{
    (void)state;
    struct files files;
    struct phema_error err = {0};
    make(&files);
    char *roundabout = support_tmp_path("directory/../absent");
    char *nowhere = support_tmp_path("nowhere/absent");
    assert_ok(phema_claims_add_output(files.claims, files.absent, &err), &err);
    assert_ok(phema_claims_add_output(files.claims, nowhere, &err), &err);
    const char *names[] = {files.absent, roundabout, nowhere};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_fails(phema_claims_check(files.claims, names[i], &err), PHEMA_ERR_OUTPUT, &err,
                     "is another file that this run writes");
        assert_ok(phema_claims_check_inputs(files.claims, names[i], &err), &err);
    }
    assert_ok(phema_claims_check(files.claims, files.input, &err), &err);
    free(roundabout);
    free(nowhere);
    clear(&files);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(inputs_are_found_by_any_name),
    cmocka_unit_test(partial_names_are_claimed_too),
    cmocka_unit_test(a_directory_that_holds_an_input_is_refused),
    cmocka_unit_test(outputs_are_found_before_they_exist),
};
TEST_GROUP(tests)
