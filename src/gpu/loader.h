/* module.h - the shared library that knows CUDA: where it may be, and whether it is ours. */
#ifndef PHEMA_DEVICE_MODULE_H
#define PHEMA_DEVICE_MODULE_H

#include "phema/cuda_plugin.h"
#include "phema/error.h"

/* Where modules are looked for: beside the program, and where an installation has them. Nothing
 * else, such as the environment or the current directory, has a say. Both are absolute. */
#define MODULE_MAX_PLACES 2
struct module_places {
    char *paths[MODULE_MAX_PLACES]; /* allocated */
    size_t n;
};
PHEMA_FALLIBLE module_places_find(struct module_places *out, struct phema_error *err);
void module_places_clear(struct module_places *places);

/* The first that is there, loaded; it stays loaded. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE module_load(const struct phema_cuda_module **out, struct phema_error *err);

/* One file. PHEMA_NO, without a message, when it is not there */
PHEMA_FALLIBLE module_load_file(const struct phema_cuda_module **out, const char *path,
                                struct phema_error *err);

#endif
