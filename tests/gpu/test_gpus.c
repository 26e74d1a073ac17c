// SPDX-License-Identifier: Apache-2.0
/* Which GPUs a process opens, and how much of their memory, on a simulated machine. */
#include "phema/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

/* Opens them, and compares the first words of their description and the limit. */
static void opens(const struct phema_gpu_options *options, const char *wanted, uint64_t limit)
{
    struct phema_error err = {0};
    struct phema_gpus *gpus = NULL;
    assert_ok(phema_gpus_open(&gpus, options, &err), &err);
    const char *found = phema_gpus_format(gpus);
    assert_memory_equal(found, wanted, strlen(wanted));
    assert_int_equal(found[strlen(wanted)], ' ');
    assert_int_equal(phema_gpus_limit(gpus), limit);
    phema_gpus_close(gpus);
}

/* Three GPUs with 1000 bytes each; four processes, of which the first and the last share one. */
static void gpus_are_dealt_to_the_processes_of_a_machine(void **state)
{
    (void)state;
    assert_int_equal(setenv("SIM_DEVICES", "3", 1), 0);
    assert_int_equal(setenv("SIM_BYTES", "1000", 1), 0);
    struct phema_gpu_options options = {.kind = PHEMA_DEVICE_CUDA, .uses_all = true};
    options.memory_fraction = 0.5;
    opens(&options, "cuda:0,1,2", 500);
    options.local_size = 4;
    static const struct {
        const char *name;
        uint64_t limit;
    } wanted[] = {{"cuda:0", 250}, {"cuda:1", 500}, {"cuda:2", 500}, {"cuda:0", 250}};
    for (unsigned rank = 0; rank < 4; rank++) {
        options.local_rank = rank;
        opens(&options, wanted[rank].name, wanted[rank].limit);
    }
    options.local_size = 7; /* 0, 3 and 6 share one */
    options.local_rank = 6;
    options.memory_fraction = 0.9;
    opens(&options, "cuda:0", 300);
}

/* Of the numbers that the user has given. */
static void chosen_gpus_are_dealt(void **state)
{
    (void)state;
    assert_int_equal(setenv("SIM_DEVICES", "3", 1), 0);
    assert_int_equal(setenv("SIM_BYTES", "1000", 1), 0);
    struct phema_gpu_options options = {
        .kind = PHEMA_DEVICE_CUDA, .n = 2, .indices = {2, 0}, .memory_bytes = 77, .local_size = 2};
    opens(&options, "cuda:2", 77);
    options.local_rank = 1;
    opens(&options, "cuda:0", 77);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gpus_are_dealt_to_the_processes_of_a_machine),
    cmocka_unit_test(chosen_gpus_are_dealt),
};
TEST_GROUP(tests)
