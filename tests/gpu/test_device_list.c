// SPDX-License-Identifier: Apache-2.0
/* test_device_list.c - parsing of --device. */
#include "phema/gpu.h"

#include "support.h"

static void every_form_of_device_is_parsed(void **state)
{
    (void)state;
    struct phema_error err = {""};
    struct phema_device_request request = {.memory_bytes = 7};
    assert_ok(phema_device_list_parse(&request, NULL, &err), &err);
    assert_int_equal(request.kind, PHEMA_DEVICE_AUTO);
    assert_ok(phema_device_list_parse(&request, "auto", &err), &err);
    assert_int_equal(request.kind, PHEMA_DEVICE_AUTO);
    assert_ok(phema_device_list_parse(&request, "cpu", &err), &err);
    assert_int_equal(request.kind, PHEMA_DEVICE_CPU);
    assert_ok(phema_device_list_parse(&request, "cuda", &err), &err);
    assert_int_equal(request.kind, PHEMA_DEVICE_CUDA);
    assert_int_equal(request.n, 1);
    assert_int_equal(request.indices[0], 0);
    assert_ok(phema_device_list_parse(&request, "cuda:3,0,12", &err), &err);
    assert_int_equal(request.n, 3);
    assert_int_equal(request.indices[0], 3);
    assert_int_equal(request.indices[1], 0);
    assert_int_equal(request.indices[2], 12);
    assert_false(request.takes_all);
    assert_ok(phema_device_list_parse(&request, "cuda:all", &err), &err);
    assert_true(request.takes_all);
    assert_int_equal(request.memory_bytes, 7); /* unchanged */
}

static void invalid_devices_are_refused_and_change_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "gpu",
                                        "CUDA",
                                        "cuda:",
                                        "cuda:,",
                                        "cuda:0,",
                                        "cuda:,0",
                                        "cuda:0,,1",
                                        "cuda:0,0",
                                        "cuda:-1",
                                        "cuda:a",
                                        "cuda:0 1",
                                        "cuda:1024",
                                        "cuda:all,",
                                        "cuda0",
                                        "cpu ",
                                        "cuda:all1",
                                        "cuda:99999999999999999999",
                                        "cuda:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct phema_error err = {""};
        struct phema_device_request request = {.kind = PHEMA_DEVICE_CUDA, .n = 1, .indices = {5}};
        assert_fails(phema_device_list_parse(&request, wrong[i], &err), PHEMA_ERR_USAGE, &err,
                     "cuda:0,1");
        assert_int_equal(request.kind, PHEMA_DEVICE_CUDA);
        assert_int_equal(request.n, 1);
        assert_int_equal(request.indices[0], 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_device_is_parsed),
        cmocka_unit_test(invalid_devices_are_refused_and_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
