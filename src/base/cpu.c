// SPDX-License-Identifier: Apache-2.0
/* cpu.c - instruction sets and processor count that this process may use; PHEMA_CPU.
 * CPUID is asked directly where clang 14's __builtin_cpu_supports does not know the name (f16c). */
#include "phema/cpu.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "phema/span.h"

static const char *const level_names[] = {"ref", "neon", "avx2", "avx512"};

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static enum phema_cpu_level best_level(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c)
        return PHEMA_CPU_REF;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return PHEMA_CPU_AVX512;
    return PHEMA_CPU_AVX2;
#elif defined(__aarch64__)
    return PHEMA_CPU_NEON; /* part of the base architecture */
#else
    return PHEMA_CPU_REF;
#endif
}

enum phema_cpu_level phema_cpu_level(void)
{
    /* CPUID traps in virtual machines, and the answer never changes; every thread stores the same
     * one */
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

/* Processors that a cgroup's "quota period" allows, rounded up; 0 when there is no limit. */
static uint64_t quota_of(const char *text)
{
    char *end = NULL;
    long long quota = strtoll(text, &end, 10);
    if (end == text || quota <= 0)
        return 0;
    long long period = strtoll(end, NULL, 10);
    if (period <= 0)
        return 0;
    return (uint64_t)((quota + period - 1) / period);
}

/* cgroup v2 has its limit in cpu.max of each level, v1 in two files. */
static uint64_t quota_of_groups(void)
{
    uint64_t limit = cgroup_limit(CGROUP_GROUPS, CGROUP_MOUNT, "", "cpu.max", quota_of);
    char quota[64], period[64], both[2 * 64];
    cgroup_read_line(quota, sizeof(quota), "/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    cgroup_read_line(period, sizeof(period), "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    (void)snprintf(both, sizeof(both), "%s %s", quota, period);
    return cgroup_tighter(quota_of(both), limit);
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
    uint64_t limit = quota_of_groups();
    return limit && limit < threads ? (unsigned)limit : threads;
}
