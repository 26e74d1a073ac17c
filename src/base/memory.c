// SPDX-License-Identifier: Apache-2.0
/* memory.c - RSS, heap and control-group limits of this process: /proc/self/statm (size, resident
 * and shared pages), mallinfo2, and the files of control groups, for cpu.c too (cgroup.h). */
#include "phema/memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cgroup.h"
#include "phema/library.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

uint64_t phema_memory_allocated(void)
{
    /* glibc has it since 2.33, and the program of a wheel runs on older ones, too */
    void *symbol = phema_library_symbol(NULL, "mallinfo2");
    struct mallinfo2 (*query)(void) = NULL;
    memcpy(&query, &symbol, sizeof(query));
    if (!query)
        return 0;
    struct mallinfo2 info = query(); /* of all arenas; zeros when malloc was replaced */
    return info.uordblks + info.hblkhd;
}

struct phema_memory phema_memory_now(void)
{
    struct phema_memory memory = {.allocated_bytes = phema_memory_allocated()};
    char line[256], *at = line;
    cgroup_read_line(line, sizeof(line), "/proc/self/statm");
    (void)strtoull(at, &at, 10);
    uint64_t resident = strtoull(at, &at, 10), shared = strtoull(at, &at, 10);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    memory.file_bytes = shared * page;
    memory.anonymous_bytes = resident > shared ? (resident - shared) * page : 0;
    return memory;
}

uint64_t phema_memory_peak_resident(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss << 10 : 0;
}

/* Later stages need more than the one that failed: tiles, buffers, threads. The suggestion is a
 * multiple of it. */
#define ROOM_MIB 64

PHEMA_FALLIBLE phema_memory_check(uint64_t limit, uint64_t else_bytes, const char *needed_for,
                                  struct phema_error *err)
{
    uint64_t needed = limit ? phema_memory_now().anonymous_bytes + else_bytes : 0;
    if (needed <= limit)
        return PHEMA_OK;
    struct phema_name_buffer given, wanted;
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_RESOURCE, "%s%s: at least %s are needed %s",
                   phema_setting_equals(PHEMA_SET_MAX_RAM), phema_size_format(&given, limit),
                   phema_size_enough(&wanted, needed + PHEMA_MEMORY_VARIES), needed_for);
    char enough[32];
    (void)snprintf(enough, sizeof(enough), "%lluMiB",
                   (unsigned long long)((needed >> 20) / ROOM_MIB + 2) * ROOM_MIB);
    return phema_suggest(err, status, PHEMA_SET_MAX_RAM, enough);
}

/* ---- Control groups ---- */

#define MAX_PATH_BYTES 1024

void cgroup_read_line(char *line, size_t size, const char *path)
{
    line[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (!fgets(line, (int)size, file))
        line[0] = '\0';
    (void)fclose(file);
}

/* The least limit of group "/a/b" and of the levels above it, /a and /. */
static uint64_t limit_of_levels(char *group, const char *mount, const char *name,
                                cgroup_parser *parse)
{
    uint64_t limit = 0;
    for (;;) {
        char path[MAX_PATH_BYTES], text[64];
        int size = snprintf(path, sizeof(path), "%s%s/%s", mount, group, name);
        if (size > 0 && (size_t)size < sizeof(path)) {
            cgroup_read_line(text, sizeof(text), path);
            limit = cgroup_tighter(parse(text), limit);
        }
        char *slash = strrchr(group, '/');
        if (!slash)
            return limit;
        *slash = '\0';
    }
}

/* The group of a line "NUMBER:CONTROLLER,...:GROUP" with this controller, or NULL. */
static char *group_of(char *line, const char *controller)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return NULL;
    *group++ = '\0';
    size_t size = strlen(controller);
    for (char *at = controllers + 1;; at++) {
        size_t length = strcspn(at, ",");
        if (length == size && memcmp(at, controller, size) == 0)
            return group;
        at += length;
        if (!*at)
            return NULL;
    }
}

uint64_t cgroup_limit(const char *groups, const char *mount, const char *controller,
                      const char *name, cgroup_parser *parse)
{
    char line[MAX_PATH_BYTES / 2];
    uint64_t limit = 0;
    FILE *file = fopen(groups, "re");
    while (file && fgets(line, sizeof(line), file)) {
        char *group = group_of(line, controller);
        if (!group || *group != '/')
            continue;
        size_t end = strlen(group);
        if (group[end - 1] == '/')
            group[end - 1] = '\0';
        limit = cgroup_tighter(limit_of_levels(group, mount, name, parse), limit);
    }
    if (file)
        (void)fclose(file);
    return limit;
}

/* "max", or bytes. Version 1 writes a number that no machine has for "no limit". */
static uint64_t limit_of(const char *text)
{
    uint64_t limit = strtoull(text, NULL, 10);
    return limit < (uint64_t)1 << 60 ? limit : 0;
}

uint64_t phema_memory_limit(void)
{
    uint64_t limit = cgroup_limit(CGROUP_GROUPS, CGROUP_MOUNT, "", "memory.max", limit_of);
    uint64_t old = cgroup_limit(CGROUP_GROUPS, CGROUP_MOUNT "/memory", "memory",
                                "memory.limit_in_bytes", limit_of);
    return cgroup_tighter(old, limit);
}

/* ---- malloc and the kernel ---- */

bool phema_memory_has_room(uint64_t bytes)
{
    /* writable and private, so that every limit counts it; its pages are never used */
    void *memory =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    (void)munmap(memory, (size_t)bytes);
    return true;
}

/* Below, what lies in whole huge pages is too little. */
#define LEAST_HUGE_BYTES ((uint64_t)4 << 20)

void phema_memory_will_fill(void *block, uint64_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)block + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)block + (uintptr_t)bytes) / page * page;
    if (block && bytes >= LEAST_HUGE_BYTES)
        (void)madvise((char *)block + (first - (uintptr_t)block), end - first, MADV_HUGEPAGE);
}

/* glibc raises its threshold with every large block that is freed, and then keeps blocks below
 * it. */
#define LARGE_BLOCK_BYTES (128 << 10)

void phema_memory_return_freed(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
}

/* malloc reserves 64 MiB of address space for each thread: perhaps all that a process may have
 * under `ulimit -v`. */
void phema_memory_save_address_space(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        (void)mallopt(M_ARENA_MAX, 1);
}

/* cachestat(2) is in Linux since 6.5; common headers lack it. */
#define CACHESTAT_CALL 451

bool phema_page_cache_pages(uint64_t *n, int descriptor, uint64_t offset, uint64_t size)
{
    const struct {
        uint64_t offset, size;
    } range = {offset, size};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } pages;
    if (syscall(CACHESTAT_CALL, descriptor, &range, &pages, 0))
        return false;
    *n = pages.cached;
    return true;
}

bool phema_page_cache_bytes(uint64_t *bytes, const char *path)
{
    uint64_t n_pages;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return false;
    bool is_known = phema_page_cache_pages(&n_pages, descriptor, 0, 0);
    (void)close(descriptor);
    if (is_known)
        *bytes = n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return is_known;
}
