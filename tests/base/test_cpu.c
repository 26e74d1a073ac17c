// SPDX-License-Identifier: Apache-2.0
/* Instruction sets, compared with the kernel's list. PHEMA_CPU may only lower the level. */
#include "phema/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

/* The level without PHEMA_CPU. */
static enum phema_cpu_level best_level(void)
{
    assert_int_equal(unsetenv("PHEMA_CPU"), 0);
    return phema_cpu_level();
}

static enum phema_cpu_level level_when_wished(const char *wish)
{
    assert_int_equal(setenv("PHEMA_CPU", wish, 1), 0);
    enum phema_cpu_level level = phema_cpu_level();
    assert_int_equal(unsetenv("PHEMA_CPU"), 0);
    return level;
}

#if defined(__x86_64__)
static bool has_flags(const char *flags, const char *const *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char word[32];
        (void)snprintf(word, sizeof(word), " %s ", wanted[i]);
        if (!strstr(flags, word))
            return false;
    }
    return true;
}

static void the_level_agrees_with_the_kernel(void **state)
{
    (void)state;
    static const char *const avx2[] = {"avx2", "fma", "f16c"};
    static const char *const avx512[] = {"avx512f", "avx512bw", "avx512dq", "avx512vl"};
    static char line[16384];
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file)
        skip();
    bool is_found = false;
    while (!is_found && fgets(line, sizeof(line) - 1, file))
        is_found = strncmp(line, "flags", 5) == 0;
    (void)fclose(file);
    if (!is_found)
        skip();
    line[strcspn(line, "\n")] = ' '; /* a space also after the last flag */
    enum phema_cpu_level wanted = PHEMA_CPU_REF;
    if (has_flags(line, avx2, ARRAY_LEN(avx2)))
        wanted = has_flags(line, avx512, ARRAY_LEN(avx512)) ? PHEMA_CPU_AVX512 : PHEMA_CPU_AVX2;
    assert_int_equal(best_level(), wanted);
}
#else
static void the_level_agrees_with_the_kernel(void **state)
{
    (void)state;
    skip();
}
#endif

static void the_variable_lowers_the_level(void **state)
{
    (void)state;
    enum phema_cpu_level best = best_level();
    static const char *const names[] = {[PHEMA_CPU_REF] = "ref",
                                        [PHEMA_CPU_NEON] = "neon",
                                        [PHEMA_CPU_AVX2] = "avx2",
                                        [PHEMA_CPU_AVX512] = "avx512"};
    assert_int_equal(level_when_wished("ref"), PHEMA_CPU_REF);
    assert_int_equal(level_when_wished(names[best]), best);
    if (best == PHEMA_CPU_AVX512)
        assert_int_equal(level_when_wished("avx2"), PHEMA_CPU_AVX2);
}

static void the_variable_never_raises_the_level(void **state)
{
    (void)state;
    enum phema_cpu_level best = best_level();
    if (best != PHEMA_CPU_AVX512)
        assert_int_equal(level_when_wished("avx512"), best);
    if (best == PHEMA_CPU_NEON || best == PHEMA_CPU_REF)
        assert_int_equal(level_when_wished("avx2"), best);
    if (best != PHEMA_CPU_NEON) /* of another architecture */
        assert_int_equal(level_when_wished("neon"), best);
}

static void an_unknown_value_is_ignored(void **state)
{
    (void)state;
    enum phema_cpu_level best = best_level();
    static const char *const wishes[] = {"", "sse", "AVX2", "avx", "avx2 ", "ref,avx2"};
    for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
        assert_int_equal(level_when_wished(wishes[i]), best);
}

static void threads_are_those_of_the_affinity_mask(void **state)
{
    (void)state;
    cpu_set_t set;
    CPU_ZERO(&set);
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    assert_in_range(phema_cpu_threads(), 1, CPU_COUNT(&set));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        size_t first = 0;
        while (!CPU_ISSET(first, &set))
            first++;
        CPU_ZERO(&set);
        CPU_SET(first, &set);
        _exit(sched_setaffinity(0, sizeof(set), &set) ? 98 : (int)phema_cpu_threads());
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_level_agrees_with_the_kernel),
    cmocka_unit_test(the_variable_lowers_the_level),
    cmocka_unit_test(the_variable_never_raises_the_level),
    cmocka_unit_test(an_unknown_value_is_ignored),
    cmocka_unit_test(threads_are_those_of_the_affinity_mask),
};
TEST_GROUP(tests)
