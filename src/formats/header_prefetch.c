// SPDX-License-Identifier: Apache-2.0
/* header_prefetch.c - Requests the headers of all files of many checkpoints at once, before they
 * are opened: a disk or a server answers many requests in the time of one. */
#include "checkpoint_directory.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "phema/file_reader.h"
#include "phema/parallel.h"
#include "zstd/frame_header.h"

/* Most threads only wait. */
#define N_THREADS 64

/* Files that are listed before the first header is requested: a bound for the memory of the
 * list. */
#define MAX_FILES ((size_t)16 << 10)

/* A file that cannot be opened has no pages to wait for; opening it again reports the reason. */
static bool is_cached(const char *path)
{
    struct phema_error ignored;
    struct phema_file *file = NULL;
    bool is_cached =
        phema_file_open_once(&file, path, &ignored) != PHEMA_OK || phema_file_is_cached_at(file, 0);
    phema_file_close(file);
    return is_cached;
}

/* Files whose headers are requested. */
struct headers {
    const char *const *paths; /* of checkpoints */
    pthread_mutex_t lock;     /* of the files */
    char **files;
    size_t n, capacity;
};

static void prefetch_file(const char *path)
{
    struct phema_error ignored;
    struct phema_file *file = NULL;
    if (phema_file_open(&file, path, &ignored) == PHEMA_OK) {
        header_prefetch(file);
        zstd_frames_prefetch(file); /* headers of frames and blocks lie all over the file */
    }
    phema_file_close(file);
}

/* Frees the path, at the end or now. Where the list is full, this thread waits for the header. */
static void add_file(struct headers *headers, char *path)
{
    if (!path)
        return;
    (void)pthread_mutex_lock(&headers->lock);
    bool is_added = headers->n < MAX_FILES && phema_array_grow(&headers->files, &headers->capacity,
                                                               headers->n, sizeof(char *));
    if (is_added)
        headers->files[headers->n++] = path;
    (void)pthread_mutex_unlock(&headers->lock);
    if (is_added)
        return;
    prefetch_file(path);
    free(path);
}

/* The length of the directory's path, in which the files of an index lie; 0: of no index. */
static size_t directory_of_index(const char *path)
{
    const struct phema_format_info *format = phema_format_from_path(NULL, path, 0);
    const char *slash = strrchr(path, '/');
    return format && format->is_index && slash ? (size_t)(slash - path) : 0;
}

static void list_files(void *context, size_t i)
{
    struct headers *headers = context;
    const char *path = headers->paths[i];
    size_t size = directory_of_index(path);
    if (i > 0 && size > 0 && directory_of_index(headers->paths[i - 1]) == size &&
        memcmp(headers->paths[i - 1], path, size) == 0)
        return; /* indices of one directory share its listing: that of the first */
    char *name = size ? strndup(path, size) : NULL;
    DIR *directory = opendir(name ? name : path);
    if (directory) {
        int length = (int)(size ? size : strlen(path));
        for (const struct dirent *entry; (entry = readdir(directory));) {
            char *file = NULL;
            if (names_checkpoint_part(entry->d_name) &&
                asprintf(&file, "%.*s/%s", length, path, entry->d_name) >= 0)
                add_file(headers, file);
        }
        (void)closedir(directory);
    } else {
        add_file(headers, strdup(path));
    }
    free(name);
}

static void prefetch_one(void *context, size_t i)
{
    const struct headers *headers = context;
    prefetch_file(headers->files[i]);
}

void phema_headers_prefetch(const char *const *paths, size_t n)
{
    struct headers headers = {.paths = paths, .lock = PTHREAD_MUTEX_INITIALIZER};
    bool are_files = true;
    for (size_t i = 0; i < n && are_files; i++) {
        const struct phema_format_info *format = phema_format_from_path(NULL, paths[i], 0);
        are_files = format && !format->is_index;
    }
    if (!are_files) /* listing a directory may take as long as reading a header */
        phema_parallel(n, N_THREADS, list_files, &headers);
    for (size_t i = 0; i < n && are_files; i++)
        add_file(&headers, strdup(paths[i]));
    char *const *files = headers.files;
    size_t last = headers.n - 1;
    if (headers.n > 1 &&
        !(is_cached(files[0]) && is_cached(files[headers.n / 2]) && is_cached(files[last])))
        phema_parallel(headers.n, N_THREADS, prefetch_one, &headers);
    for (size_t i = 0; i < headers.n; i++)
        free(headers.files[i]);
    free(headers.files);
}
