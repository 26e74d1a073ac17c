/* loader.h - the shared library that knows CUDA: where it may be, and whether it is ours. */
#ifndef GPU_LOADER_H
#define GPU_LOADER_H

#include "phema/cuda_plugin.h"
#include "phema/error.h"

/* Where modules are looked for: beside the program, and where an installation has them. Nothing
 * else, such as the environment or the current directory, has a say. Both are absolute. */
#define MODULE_MAX_PLACES 2
struct module_paths {
    char *paths[MODULE_MAX_PLACES]; /* allocated */
    size_t n;
};
PHEMA_FALLIBLE module_paths_find(struct module_paths *out, struct phema_error *err);
void module_paths_clear(struct module_paths *places);

/* The first that is there, loaded; it stays loaded. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE module_load(const struct phema_cuda_module **out, struct phema_error *err);

/* One file. PHEMA_NO, without a message, when it is not there */
PHEMA_FALLIBLE module_load_file(const struct phema_cuda_module **out, const char *path,
                                struct phema_error *err);

#endif
