// SPDX-License-Identifier: Apache-2.0
/* test_library.c - libc's mathematics as an example of a library loaded on demand: every machine
 * has it, and its values are known. */
#include "phema/library.h"

#include <math.h>

#include "support.h"

#define MATHEMATICS "libm.so.6"

static void functions_of_a_library_can_be_called(void **state)
{
    (void)state;
    double (*root)(double) = NULL;
    double (*power)(double, double) = NULL;
    const struct phema_library_function functions[] = {{"sqrt", (void *)&root, false},
                                                       {"pow", (void *)&power, false}};
    struct phema_error err = {0};
    assert_ok(phema_library_load_functions(MATHEMATICS, functions, 2, &err), &err);
    assert_true(root(9) == 3);
    assert_true(power(2, 10) == 1024);
    assert_true(phema_library_is_loaded(MATHEMATICS));
}

static void a_missing_library_is_named(void **state)
{
    (void)state;
    void *library = NULL;
    struct phema_error err = {0};
    assert_fails(phema_library_load(&library, "libnowhere.so.0", &err), PHEMA_ERR_RESOURCE, &err,
                 "libnowhere.so.0: cannot be loaded: cannot open shared object file");
    assert_null(library);
    assert_false(phema_library_is_loaded("libnowhere.so.0"));
}

static void a_missing_function_is_named(void **state)
{
    (void)state;
    double (*root)(double) = NULL;
    double (*other)(double) = NULL;
    const struct phema_library_function functions[] = {{"sqrt", (void *)&root, false},
                                                       {"no_such_root", (void *)&other, false}};
    struct phema_error err = {0};
    assert_fails(phema_library_load_functions(MATHEMATICS, functions, 2, &err), PHEMA_ERR_RESOURCE,
                 &err, "libm.so.6: has no function no_such_root");
    assert_null(other);
}

static void a_function_may_be_optional(void **state)
{
    (void)state;
    double (*root)(double) = NULL;
    double (*other)(double) = sqrt;
    const struct phema_library_function functions[] = {{"no_such_root", (void *)&other, true},
                                                       {"sqrt", (void *)&root, true}};
    struct phema_error err = {0};
    assert_ok(phema_library_load_functions(MATHEMATICS, functions, 2, &err), &err);
    assert_null(other);
    assert_true(root(9) == 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(functions_of_a_library_can_be_called),
    cmocka_unit_test(a_missing_library_is_named),
    cmocka_unit_test(a_missing_function_is_named),
    cmocka_unit_test(a_function_may_be_optional),
};
TEST_GROUP(tests)
