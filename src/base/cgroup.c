// SPDX-License-Identifier: Apache-2.0
/* cgroup.c - limits of control groups on this process, for memory.c and cpu.c. */
#include "cgroup.h"

#include <stdio.h>
#include <string.h>

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
