// SPDX-License-Identifier: Apache-2.0
/* test_device_option.c - parsing of --device, and the choice of auto. */
#include "phema/gpu.h"

#include <string.h>

#include "support.h"

static void every_form_of_device_is_parsed(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_gpu_options options = {.memory_bytes = 7};
    assert_ok(phema_gpu_options_parse(&options, NULL, &err), &err);
    assert_int_equal(options.kind, PHEMA_DEVICE_AUTO);
    assert_ok(phema_gpu_options_parse(&options, "auto", &err), &err);
    assert_int_equal(options.kind, PHEMA_DEVICE_AUTO);
    assert_ok(phema_gpu_options_parse(&options, "cpu", &err), &err);
    assert_int_equal(options.kind, PHEMA_DEVICE_CPU);
    assert_ok(phema_gpu_options_parse(&options, "cuda", &err), &err);
    assert_int_equal(options.kind, PHEMA_DEVICE_CUDA);
    assert_int_equal(options.n, 1);
    assert_int_equal(options.indices[0], 0);
    assert_ok(phema_gpu_options_parse(&options, "cuda:3,0,12", &err), &err);
    assert_int_equal(options.n, 3);
    assert_int_equal(options.indices[0], 3);
    assert_int_equal(options.indices[1], 0);
    assert_int_equal(options.indices[2], 12);
    assert_false(options.uses_all);
    assert_ok(phema_gpu_options_parse(&options, "cuda:all", &err), &err);
    assert_true(options.uses_all);
    assert_int_equal(options.memory_bytes, 7); /* unchanged */
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
        struct phema_error err = {0};
        struct phema_gpu_options options = {.kind = PHEMA_DEVICE_CUDA, .n = 1, .indices = {5}};
        assert_fails(phema_gpu_options_parse(&options, wrong[i], &err), PHEMA_ERR_USAGE, &err,
                     "cuda:0,1");
        assert_int_equal(options.kind, PHEMA_DEVICE_CUDA);
        assert_int_equal(options.n, 1);
        assert_int_equal(options.indices[0], 5);
    }
}

static bool wins(double processor, double reading, double device, unsigned n, char *why)
{
    struct phema_gpu_rates rates = {processor, reading, device, n};
    return phema_gpu_wins(why, 512, &rates);
}

static void a_device_wins_where_the_cpu_is_slower_than_reading(void **state)
{
    (void)state;
    char why[512];
    assert_false(wins(20e9, 20e9, 50e9, 1, why)); /* one target: reading takes all the time */
    assert_true(wins(2e9, 20e9, 50e9, 1, why));   /* many: the processor is slower than reading */
    assert_false(wins(2e9, 20e9, 2.2e9, 1, why)); /* the device is slow as well */
    assert_true(wins(2e9, 20e9, 2.2e9, 2, why));  /* two devices are fast enough */
    assert_false(wins(18e9, 20e9, 50e9, 8, why)); /* more devices do not help */
    assert_non_null(strstr(why, "18.6 GiB/s of snapshots on the device, 16.8 GiB/s"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_form_of_device_is_parsed),
    cmocka_unit_test(invalid_devices_are_refused_and_change_nothing),
    cmocka_unit_test(a_device_wins_where_the_cpu_is_slower_than_reading),
};
TEST_GROUP(tests)
