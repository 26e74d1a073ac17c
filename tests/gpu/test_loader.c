// SPDX-License-Identifier: Apache-2.0
/* Where the plug-in is searched for, and which files are refused. */
#include "loader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

static void the_plugin_is_searched_for_beside_the_program_and_where_it_is_installed(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct plugin_paths paths;
    char program[4096] = "";
    assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    *(strrchr(program, '/') + 1) = '\0';
    assert_int_equal(setenv("LD_LIBRARY_PATH", "/nowhere", 1), 0);
    assert_ok(plugin_paths_find(&paths, &err), &err);
    assert_int_equal(paths.n, 2);
    for (size_t i = 0; i < paths.n; i++) {
        assert_memory_equal(paths.items[i], program, strlen(program));
        assert_non_null(strstr(paths.items[i], "posthoc-ema-cuda.so"));
    }
    assert_null(strchr(paths.items[0] + strlen(program), '/'));
    assert_non_null(strstr(paths.items[1], "/posthoc-ema/posthoc-ema-cuda.so"));
    plugin_paths_clear(&paths);
}

static void the_plugin_is_loaded_and_stays(void **state)
{
    (void)state;
    struct phema_error err = {0};
    const struct phema_cuda_plugin *plugin = NULL, *again = NULL;
    assert_ok(plugin_load_file(&plugin, SIM_MODULE, &err), &err);
    assert_int_equal(plugin->version, PHEMA_CUDA_VERSION);
    assert_string_equal(plugin->toolkit, "no CUDA"); /* the library stays loaded */
    assert_ok(plugin_load_file(&again, SIM_MODULE, &err), &err);
    assert_ptr_equal(plugin, again);
}

static void a_missing_file_is_no_error(void **state)
{
    (void)state;
    struct phema_error err = {0};
    const struct phema_cuda_plugin *plugin = NULL;
    assert_int_equal(plugin_load_file(&plugin, "/nowhere/posthoc-ema-cuda.so", &err), PHEMA_NO);
    assert_int_equal(plugin_load_file(&plugin, "/", &err), PHEMA_NO); /* a directory */
    assert_null(plugin);
}

static void a_file_that_is_not_a_library_is_named(void **state)
{
    (void)state;
    struct phema_error err = {0};
    const struct phema_cuda_plugin *plugin = NULL;
    char *path = support_tmp_path("posthoc-ema-cuda.so");
    static const char garbage[] = "this is no library, and long enough to have a header of one: "
                                  "0123456789012345678901234567890123456789";
    support_write(path, garbage, sizeof(garbage));
    assert_fails(plugin_load_file(&plugin, path, &err), PHEMA_ERR_RESOURCE, &err,
                 "cannot be loaded");
    assert_non_null(strstr(err.message, path));
    assert_null(strstr(strstr(err.message, path) + 1, path)); /* once */
    support_write(path, "", 0);
    assert_fails(plugin_load_file(&plugin, path, &err), PHEMA_ERR_RESOURCE, &err,
                 "cannot be loaded");
    assert_null(plugin);
    free(path);
}

static void other_libraries_and_versions_are_refused(void **state)
{
    (void)state;
    struct phema_error err = {0};
    const struct phema_cuda_plugin *plugin = NULL;
    assert_fails(plugin_load_file(&plugin, NO_MODULE, &err), PHEMA_ERR_RESOURCE, &err,
                 "is no CUDA module of posthoc-ema");
    assert_fails(plugin_load_file(&plugin, OTHER_MODULE, &err), PHEMA_ERR_RESOURCE, &err,
                 "expected version 1 of the CUDA module, found 2");
    assert_fails(plugin_load_file(&plugin, OTHER_STRUCTS, &err), PHEMA_ERR_RESOURCE, &err,
                 "expected structs of");
    assert_null(plugin);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_plugin_is_searched_for_beside_the_program_and_where_it_is_installed),
    cmocka_unit_test(the_plugin_is_loaded_and_stays),
    cmocka_unit_test(a_missing_file_is_no_error),
    cmocka_unit_test(a_file_that_is_not_a_library_is_named),
    cmocka_unit_test(other_libraries_and_versions_are_refused),
};
TEST_GROUP(tests)
