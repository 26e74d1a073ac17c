// SPDX-License-Identifier: Apache-2.0
/* Paths with and without slashes at their ends, bare names, and roots. */
#include "phema/path.h"

#include <errno.h>

#include <stdlib.h>

#include "support.h"

static void slashes_at_the_end_do_not_count(void **state)
{
    (void)state;
    static const struct {
        const char *path, *trimmed, *directory, *name;
    } cases[] = {
        {"a", "a", ".", "a"},     {"a/", "a", ".", "a"},
        {"a/b", "a/b", "a", "b"}, {"a/b//", "a/b", "a", "b"},
        {"/a", "/a", "/", "a"},   {"/a/", "/a", "/", "a"},
        {"/", "/", "/", ""},      {"//", "/", "/", ""},
        {"", "", ".", ""},        {"./a.b/c", "./a.b/c", "./a.b", "c"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *trimmed = phema_path_trim(cases[i].path);
        char *directory = phema_path_directory(cases[i].path);
        assert_string_equal(trimmed, cases[i].trimmed);
        assert_string_equal(directory, cases[i].directory);
        assert_string_equal(phema_path_last_name(trimmed), cases[i].name);
        free(trimmed);
        free(directory);
    }
}

static void no_url_is_a_path(void **state)
{
    (void)state;
    static const char *const urls[][2] = {
        {"s3://bucket/run", "'aws s3 cp'"},
        {"gs://bucket/run", "'gcloud storage cp'"},
        {"http://host/a.safetensors", "'curl -LO'"},
        {"https://host/a.safetensors", "'curl -LO'"},
        {"https://huggingface.co/org/model", "'hf download'"},
        {"hf://org/model", "'hf download'"},
        {"abfs://container/run", "URLs are not read; download it first"},
        {"file:///a", "without file://"}};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        assert_true(phema_path_is_url(urls[i][0]));
        assert_non_null(strstr(phema_path_reason(urls[i][0], ENOENT), urls[i][1]));
        assert_string_equal(phema_path_reason(urls[i][0], EACCES), strerror(EACCES));
    }
    static const char *const paths[] = {"://a", "C:", "a/b:c", "a b://c", "dir/s3://c"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        assert_false(phema_path_is_url(paths[i]));
        assert_string_equal(phema_path_reason(paths[i], ENOENT), strerror(ENOENT));
    }
}

/* scp's "host:path", and what a shell would have expanded */
static void other_places_are_explained(void **state)
{
    (void)state;
    static const char *const hosts[] = {"host:run", "me@host.org:/scratch/run", "s3:/bucket"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        assert_non_null(strstr(phema_path_reason(hosts[i], ENOENT), "mount them"));
        assert_string_equal(phema_path_reason(hosts[i], EACCES), strerror(EACCES));
    }
    assert_non_null(strstr(phema_path_reason("~/run", ENOENT), "outside of quotes"));
    assert_string_equal(phema_path_reason("~run", ENOENT), strerror(ENOENT));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(slashes_at_the_end_do_not_count),
    cmocka_unit_test(no_url_is_a_path),
    cmocka_unit_test(other_places_are_explained),
};
TEST_GROUP(tests)
