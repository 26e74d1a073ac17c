// SPDX-License-Identifier: Apache-2.0
/* path.c - parts of paths. */
#include "phema/path.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static size_t trimmed_size(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    return size;
}

char *phema_path_trim(const char *path)
{
    return strndup(path, trimmed_size(path));
}

char *phema_path_directory(const char *path)
{
    const char *slash = memrchr(path, '/', trimmed_size(path));
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

const char *phema_path_reason(const char *path, int number)
{
    size_t size = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    bool is_url = size > 0 && strncmp(path + size, "://", 3) == 0;
    return is_url && number == ENOENT ? "only local paths are read and written, no URLs"
                                      : strerror(number);
}

const char *phema_path_last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
