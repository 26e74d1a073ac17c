/* paths.h - helpers for paths in tests of files. */
#ifndef TESTS_SUPPORT_PATHS_H
#define TESTS_SUPPORT_PATHS_H

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "support.h"

static inline bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The path with an ending such as ".partial"; the caller frees it. */
static inline char *with_end(const char *path, const char *end)
{
    char *joined = NULL;
    assert_true(asprintf(&joined, "%s%s", path, end) > 0);
    return joined;
}

#endif
