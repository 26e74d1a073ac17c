// SPDX-License-Identifier: Apache-2.0
/* cpu.c - instruction sets and processors that this process may use.
 * CPUID is asked directly where clang 14's __builtin_cpu_supports does not know the name (f16c). */
#include "phema/cpu.h"

#include <ctype.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/span.h"

static const char *const level_names[] = {"ref", "neon", "avx2", "avx512"};

const char *phema_cpu_level_name(enum phema_cpu_level level)
{
    return level_names[level];
}

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static enum phema_cpu_level best_level(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
        return PHEMA_CPU_REF;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return PHEMA_CPU_AVX512;
    return PHEMA_CPU_AVX2;
}
#elif defined(__aarch64__)
static enum phema_cpu_level best_level(void)
{
    return PHEMA_CPU_NEON; /* part of the base architecture */
}
#else
static enum phema_cpu_level best_level(void)
{
    return PHEMA_CPU_REF;
}
#endif

enum phema_cpu_level phema_cpu_level(void)
{
    /* CPUID traps in virtual machines, and the answer never changes; every thread would store the
     * same */
    static _Atomic int known = -1;
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer < 0) {
        answer = (int)best_level();
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    enum phema_cpu_level best = (enum phema_cpu_level)answer;
    const char *wanted = getenv("PHEMA_CPU");
    if (!wanted)
        return best;
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
        bool is_lower = i == PHEMA_CPU_REF ||
                        ((i == PHEMA_CPU_NEON) == (best == PHEMA_CPU_NEON) && i <= (size_t)best);
        if (strcmp(wanted, level_names[i]) == 0)
            return is_lower ? (enum phema_cpu_level)i : best;
    }
    return best;
}

/* The first line of a small file of the kernel's, or an empty string. */
static void read_line(char *line, size_t size, const char *path)
{
    line[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (!fgets(line, (int)size, file))
        line[0] = '\0';
    (void)fclose(file);
}

/* Processors that a cgroup's "quota period" allows, rounded up; 0 when there is no limit. */
static unsigned quota_of(const char *quota_text, const char *period_text)
{
    char *end = NULL;
    long long quota = strtoll(quota_text, &end, 10);
    if (end == quota_text || quota <= 0)
        return 0;
    long long period = strtoll(period_text ? period_text : end, NULL, 10);
    if (period <= 0)
        return 0;
    return (unsigned)((quota + period - 1) / period);
}

/* cgroup v2 tells its limit in cpu.max of each level above; v1 in two files. */
static unsigned cgroup_limit(void)
{
    char line[512];
    char path[640];
    unsigned limit = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::", 3) != 0)
            continue;
        for (char *group = line + 3;;) {
            char text[64];
            (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group);
            read_line(text, sizeof(text), path);
            unsigned here = quota_of(text, NULL);
            if (here && (!limit || here < limit))
                limit = here;
            char *slash = strrchr(group, '/');
            if (!slash || slash == group)
                break;
            *slash = '\0';
        }
    }
    if (file)
        (void)fclose(file);

    char quota[64], period[64];
    read_line(quota, sizeof(quota), "/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    read_line(period, sizeof(period), "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    unsigned old = quota_of(quota, period);
    return old && (!limit || old < limit) ? old : limit;
}

unsigned phema_cpu_threads(void)
{
    unsigned threads = 1;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        threads = (unsigned)CPU_COUNT(&set);
    else if (sysconf(_SC_NPROCESSORS_ONLN) > 0)
        threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    unsigned limit = cgroup_limit();
    return limit && limit < threads ? limit : threads;
}
