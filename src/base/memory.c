// SPDX-License-Identifier: Apache-2.0
/* memory.c - /proc/self/statm: size, resident and shared pages. */
#include "phema/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct phema_memory phema_memory_now(void)
{
    struct phema_memory memory = {0, 0};
    char line[256];
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return memory;
    if (fgets(line, sizeof(line), file)) {
        char *at = line;
        (void)strtoull(at, &at, 10);
        uint64_t resident = strtoull(at, &at, 10);
        uint64_t shared = strtoull(at, &at, 10);
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        memory.file_bytes = shared * page;
        memory.anonymous_bytes = resident > shared ? (resident - shared) * page : 0;
    }
    (void)fclose(file);
    return memory;
}
