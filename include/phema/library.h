/* library.h - shared libraries that are loaded on first use: most runs need none of them, and
 * loading takes time, memory and sometimes threads. A loaded library stays. Safe from any
 * thread. */
#ifndef PHEMA_LIBRARY_H
#define PHEMA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "phema/error.h"

/* true when the process has loaded this library. file: a name that the loader looks for, or a
 * path */
bool phema_library_is_loaded(const char *file);

/* PHEMA_ERR_RESOURCE: "FILE: cannot be loaded: ..." */
PHEMA_FALLIBLE phema_library_load(void **library, const char *file, struct phema_error *err);

/* NULL where the library has no such symbol. library: NULL for all that the process has loaded. */
void *phema_library_symbol(void *library, const char *name);

/* A function to find in a library, and the address of the pointer to set. */
struct phema_library_function {
    const char *name;
    void *pointer;
    bool is_optional; /* the pointer becomes NULL where the library and its dependencies lack it */
};

/* Loads the library and sets the pointers to its functions. PHEMA_ERR_RESOURCE, also where the
 * library lacks one of them; the pointers may then be set or not. */
PHEMA_FALLIBLE phema_library_load_functions(const char *file,
                                            const struct phema_library_function *functions,
                                            size_t n, struct phema_error *err);

#endif
