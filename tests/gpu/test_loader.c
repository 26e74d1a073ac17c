// SPDX-License-Identifier: Apache-2.0
/* Where the module is looked for, and what is said of one that is not ours. */
#include "loader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

static void modules_are_looked_for_beside_the_program_and_where_it_is_installed(void **state)
{
    (void)state;
    struct phema_error err = {""};
    struct module_paths places;
    char program[4096] = "";
    assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    *(strrchr(program, '/') + 1) = '\0';
    assert_int_equal(setenv("LD_LIBRARY_PATH", "/nowhere", 1), 0);
    assert_ok(module_paths_find(&places, &err), &err);
    assert_int_equal(places.n, 2);
    for (size_t i = 0; i < places.n; i++) {
        assert_memory_equal(places.paths[i], program, strlen(program));
        assert_non_null(strstr(places.paths[i], "posthoc-ema-cuda.so"));
    }
    assert_null(strchr(places.paths[0] + strlen(program), '/'));
    assert_non_null(strstr(places.paths[1], "/posthoc-ema/posthoc-ema-cuda.so"));
    module_paths_clear(&places);
}

static void ours_is_loaded_and_stays(void **state)
{
    (void)state;
    struct phema_error err = {""};
    const struct phema_cuda_module *module = NULL, *again = NULL;
    assert_ok(module_load_file(&module, SIM_MODULE, &err), &err);
    assert_int_equal(module->version, PHEMA_CUDA_VERSION);
    assert_string_equal(module->toolkit, "no CUDA"); /* the library is closed, and still there */
    assert_ok(module_load_file(&again, SIM_MODULE, &err), &err);
    assert_ptr_equal(module, again);
}

static void what_is_not_there_is_no_error_of_its_own(void **state)
{
    (void)state;
    struct phema_error err = {""};
    const struct phema_cuda_module *module = NULL;
    assert_int_equal(module_load_file(&module, "/nowhere/posthoc-ema-cuda.so", &err), PHEMA_NO);
    assert_int_equal(module_load_file(&module, "/", &err), PHEMA_NO); /* no file */
    assert_null(module);
}

static void a_file_that_is_no_library_is_named(void **state)
{
    (void)state;
    struct phema_error err = {""};
    const struct phema_cuda_module *module = NULL;
    char *path = support_tmp_path("posthoc-ema-cuda.so");
    static const char garbage[] = "this is no library, and long enough to have a header of one: "
                                  "0123456789012345678901234567890123456789";
    support_write(path, garbage, sizeof(garbage));
    assert_fails(module_load_file(&module, path, &err), PHEMA_ERR_RESOURCE, &err,
                 "cannot be loaded");
    assert_non_null(strstr(err.message, path));
    assert_null(strstr(strstr(err.message, path) + 1, path)); /* once */
    support_write(path, "", 0);
    assert_fails(module_load_file(&module, path, &err), PHEMA_ERR_RESOURCE, &err,
                 "cannot be loaded");
    assert_null(module);
    free(path);
}

static void other_libraries_and_versions_are_refused(void **state)
{
    (void)state;
    struct phema_error err = {""};
    const struct phema_cuda_module *module = NULL;
    assert_fails(module_load_file(&module, NO_MODULE, &err), PHEMA_ERR_RESOURCE, &err,
                 "is no CUDA module of posthoc-ema");
    assert_fails(module_load_file(&module, OTHER_MODULE, &err), PHEMA_ERR_RESOURCE, &err,
                 "expected version 1 of the CUDA module, found 2");
    assert_fails(module_load_file(&module, OTHER_STRUCTS, &err), PHEMA_ERR_RESOURCE, &err,
                 "expected structs of");
    assert_null(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_are_looked_for_beside_the_program_and_where_it_is_installed),
        cmocka_unit_test(ours_is_loaded_and_stays),
        cmocka_unit_test(what_is_not_there_is_no_error_of_its_own),
        cmocka_unit_test(a_file_that_is_no_library_is_named),
        cmocka_unit_test(other_libraries_and_versions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
