/* loader.h - finds and loads the CUDA plug-in, and checks its version. */
#ifndef GPU_LOADER_H
#define GPU_LOADER_H

#include "phema/cuda_plugin.h"
#include "phema/error.h"

/* Where the plug-in may be: next to the program, and where an installation puts it. Both paths are
 * absolute. The environment and the current directory have no influence. */
#define PLUGIN_MAX_PATHS 2
struct plugin_paths {
    char *items[PLUGIN_MAX_PATHS]; /* allocated */
    size_t n;
};
PHEMA_FALLIBLE plugin_paths_find(struct plugin_paths *out, struct phema_error *err);
void plugin_paths_clear(struct plugin_paths *paths);

/* Loads the first one that exists; it stays loaded. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE plugin_load(const struct phema_cuda_plugin **out, struct phema_error *err);

/* Loads one file. PHEMA_NO, without a message: the file does not exist. */
PHEMA_FALLIBLE plugin_load_file(const struct phema_cuda_plugin **out, const char *path,
                                struct phema_error *err);

#endif
