/* cgroup.h - private to base/: limits of control groups on this process, read in memory.c. The
 * tightest limit of its group and of all groups above it counts. */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include "phema/span.h"

/* Parses a limit from the text of a file; 0: no limit. */
typedef uint64_t cgroup_parser(const char *text);

/* The smaller one of two limits. */
static inline uint64_t cgroup_tighter(uint64_t a, uint64_t b)
{
    return a && (!b || a < b) ? a : b;
}

/* The least limit that parse finds in the files called name of all levels; 0: no limit.
 *   groups      the list of this process's groups: "/proc/self/cgroup"
 *   mount       where the hierarchy is mounted: "/sys/fs/cgroup", below it "/memory" in version 1
 *   controller  of version 1; "" for version 2 */
uint64_t cgroup_limit(const char *groups, const char *mount, const char *controller,
                      const char *name, cgroup_parser *parse);

#define CGROUP_GROUPS "/proc/self/cgroup"
#define CGROUP_MOUNT  "/sys/fs/cgroup"

/* Reads the first line of a small file of the kernel; an empty string where the file is absent. */
void cgroup_read_line(char *line, size_t size, const char *path);

#endif
