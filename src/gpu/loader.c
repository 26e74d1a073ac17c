// SPDX-License-Identifier: Apache-2.0
/* loader.c - see loader.h. Loaded, it stays: CUDA does not like to go. */
#include "loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/library.h"

#define FILE_NAME "posthoc-ema-cuda.so"
#define MAX_PATH  4096

PHEMA_FALLIBLE module_paths_find(struct module_paths *out, struct phema_error *err)
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
    struct module_paths places = {.n = 0};
    static const char *const directories[] = {"", PHEMA_MODULE_DIRECTORY "/"};
    for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++) {
        if (asprintf(&places.paths[places.n], "%.*s%s" FILE_NAME, (int)size, program,
                     directories[i]) < 0) {
            module_paths_clear(&places);
            return phema_fail_memory(err);
        }
        places.n++;
    }
    *out = places;
    return PHEMA_OK;
}

void module_paths_clear(struct module_paths *places)
{
    for (size_t i = 0; i < places->n; i++)
        free(places->paths[i]);
    places->n = 0;
}

static enum phema_status check(const struct phema_cuda_module *module, const char *path,
                               struct phema_error *err)
{
    if (!module)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: is no CUDA module of posthoc-ema", path);
    if (module->version != PHEMA_CUDA_VERSION)
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "%s: expected version %u of the CUDA module, found %u; install the one "
                          "that came with this program",
                          path, PHEMA_CUDA_VERSION, module->version);
    if (module->table_bytes != sizeof(*module) ||
        module->layout_bytes != sizeof(struct phema_cuda_layout) ||
        module->job_bytes != sizeof(struct phema_cuda_job))
        return phema_fail(err, PHEMA_ERR_RESOURCE,
                          "%s: expected structs of %zu, %zu and %zu bytes, found %u, %u and %u; "
                          "install the CUDA module that came with this program",
                          path, sizeof(*module), sizeof(struct phema_cuda_layout),
                          sizeof(struct phema_cuda_job), module->table_bytes, module->layout_bytes,
                          module->job_bytes);
    return PHEMA_OK;
}

PHEMA_FALLIBLE module_load_file(const struct phema_cuda_module **out, const char *path,
                                struct phema_error *err)
{
    struct stat status;
    if (stat(path, &status) || !S_ISREG(status.st_mode))
        return PHEMA_NO;
    void *library = NULL;
    enum phema_status result = phema_library_load(&library, path, err);
    if (result)
        return result;
    const struct phema_cuda_module *module = phema_library_symbol(library, PHEMA_CUDA_SYMBOL);
    result = check(module, path, err);
    if (!result)
        *out = module;
    return result;
}

PHEMA_FALLIBLE module_load(const struct phema_cuda_module **out, struct phema_error *err)
{
    struct module_paths places;
    enum phema_status status = module_paths_find(&places, err);
    if (status)
        return status;
    status = PHEMA_NO;
    for (size_t i = 0; i < places.n && status == PHEMA_NO; i++)
        status = module_load_file(out, places.paths[i], err);
    if (status == PHEMA_NO)
        status = phema_fail(err, PHEMA_ERR_RESOURCE,
                            "the CUDA module is not installed: neither %s nor %s is there",
                            places.paths[0], places.paths[1]);
    module_paths_clear(&places);
    return status;
}
