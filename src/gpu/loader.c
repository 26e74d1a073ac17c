// SPDX-License-Identifier: Apache-2.0
/* loader.c - finds and loads the CUDA plug-in, and checks its version. The plug-in is never
 * unloaded: CUDA does not support that well. */
#include "loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/library.h"
#include "phema/span.h"

#define FILE_NAME "posthoc-ema-cuda.so"
#define MAX_PATH  4096

PHEMA_FALLIBLE plugin_paths_find(struct plugin_paths *out, struct phema_error *err)
{
    char program[MAX_PATH];
    ssize_t size = readlink("/proc/self/exe", program, sizeof(program));
    if (size <= 0 || (size_t)size == sizeof(program))
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "the CUDA module is looked for beside the program, and /proc/self/exe "
                          "does not say where that is: %s",
                          strerror(size < 0 ? errno : ENAMETOOLONG));
    while (size && program[size - 1] != '/')
        size--;
    struct plugin_paths paths = {.n = 0};
    static const char *const directories[] = {"", PHEMA_MODULE_DIRECTORY "/"};
    for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
        if (asprintf(&paths.items[paths.n], "%.*s%s" FILE_NAME, (int)size, program,
                     directories[i]) < 0) {
            plugin_paths_clear(&paths);
            return phema_fail_memory(err);
        }
        paths.n++;
    }
    *out = paths;
    return PHEMA_OK;
}

void plugin_paths_clear(struct plugin_paths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        free(paths->items[i]);
    paths->n = 0;
}

static enum phema_status check(const struct phema_cuda_plugin *plugin, const char *path,
                               struct phema_error *err)
{
    if (!plugin)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: is no CUDA module of posthoc-ema", path);
    if (plugin->version != PHEMA_CUDA_VERSION)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "%s: expected version %u of the CUDA module, found %u; install the one "
                          "that came with this program",
                          path, PHEMA_CUDA_VERSION, plugin->version);
    if (plugin->table_bytes != sizeof(*plugin) ||
        plugin->layout_bytes != sizeof(struct phema_cuda_layout) ||
        plugin->job_bytes != sizeof(struct phema_cuda_job))
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "%s: expected structs of %zu, %zu and %zu bytes, found %u, %u and %u; "
                          "install the CUDA module that came with this program",
                          path, sizeof(*plugin), sizeof(struct phema_cuda_layout),
                          sizeof(struct phema_cuda_job), plugin->table_bytes, plugin->layout_bytes,
                          plugin->job_bytes);
    return PHEMA_OK;
}

PHEMA_FALLIBLE plugin_load_file(const struct phema_cuda_plugin **out, const char *path,
                                struct phema_error *err)
{
    struct stat status;
    if (stat(path, &status) || !S_ISREG(status.st_mode))
        return PHEMA_NO;
    void *library = NULL;
    enum phema_status result = phema_library_load(&library, path, err);
    if (result)
        return result;
    const struct phema_cuda_plugin *plugin = phema_library_symbol(library, PHEMA_CUDA_SYMBOL);
    result = check(plugin, path, err);
    if (!result)
        *out = plugin;
    return result;
}

PHEMA_FALLIBLE plugin_load(const struct phema_cuda_plugin **out, struct phema_error *err)
{
    struct plugin_paths paths;
    enum phema_status status = plugin_paths_find(&paths, err);
    if (status)
        return status;
    status = PHEMA_NO;
    for (size_t i = 0; i < paths.n && status == PHEMA_NO; i++)
        status = plugin_load_file(out, paths.items[i], err);
    if (status == PHEMA_NO)
        status = phema_fail(err, PHEMA_ERR_RESOURCE,
                            "the CUDA module is not installed: neither %s nor %s is there",
                            paths.items[0], paths.items[1]);
    plugin_paths_clear(&paths);
    return status;
}
