// SPDX-License-Identifier: Apache-2.0
/* header_prefetch.c - Requests the headers of files before they are read, and those of many files at
 * once: a disk or a server answers many requests in the time of one. */
#include "format.h"

#include <stdlib.h>

#include "phema/file_reader.h"
#include "phema/parallel.h"

/* Most headers, the directory of a zip file and a seek table of zstd lie within so many bytes of an
 * end. */
#define EDGE_BYTES ((uint64_t)64 << 10)

/* Most threads only wait. */
#define N_THREADS 64

void header_prefetch(const struct phema_file *file)
{
    struct phema_span content = phema_file_span(file);
    uint64_t edge = content.size < EDGE_BYTES ? content.size : EDGE_BYTES;
    phema_file_expect_sparse(file, true);
    phema_file_prefetch(file, 0, edge);
    uint64_t end = safetensors_header_end(content); /* waits for the first page */
    if (end > edge)
        phema_file_prefetch(file, edge, end - edge);
    else if (end == 0)
        phema_file_prefetch(file, content.size - edge, edge);
}

/* A file that cannot be opened has no pages to wait for; opening it again reports the reason. */
static bool is_cached(const char *path)
{
    struct phema_error ignored;
    struct phema_file *file = NULL;
    bool is_cached =
        phema_file_open(&file, path, &ignored) != PHEMA_OK || phema_file_is_cached_at(file, 0);
    phema_file_close(file);
    return is_cached;
}

struct headers {
    const char *const *paths;
};

static void prefetch_one(void *context, size_t index)
{
    const struct headers *headers = context;
    struct phema_error ignored;
    struct phema_file *file = NULL;
    if (phema_file_open(&file, headers->paths[index], &ignored) == PHEMA_OK)
        header_prefetch(file);
    phema_file_close(file);
}

void phema_headers_prefetch(const char *const *paths, size_t n)
{
    if (n < 2 || (is_cached(paths[0]) && is_cached(paths[n / 2]) && is_cached(paths[n - 1])))
        return;
    struct headers headers = {paths};
    phema_parallel(n, N_THREADS, prefetch_one, &headers);
}
