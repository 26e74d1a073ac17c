// SPDX-License-Identifier: Apache-2.0
/* path_names.c - parts of paths, and the path of a partial output. */
#include "path_names.h"

#include <stdio.h>
#include <string.h>

static size_t trimmed_size(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    return size;
}

char *path_trim(const char *path)
{
    return strndup(path, trimmed_size(path));
}

char *path_directory(const char *path)
{
    const char *slash = memrchr(path, '/', trimmed_size(path));
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

const char *path_last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *path_partial(const char *path)
{
    char *partial_path = NULL;
    return asprintf(&partial_path, "%s.partial", path) < 0 ? NULL : partial_path;
}
