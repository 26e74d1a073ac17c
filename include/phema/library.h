/* library.h - shared libraries that are loaded when something needs them, not when the program
 * starts: most runs need none of them, and their loading takes time, memory and sometimes threads.
 * A library that was loaded stays. Safe from any thread. */
#ifndef PHEMA_LIBRARY_H
#define PHEMA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "phema/error.h"

/* Whether the process has this library already. file: a name that the loader looks for, or a path
 */
bool phema_library_is_loaded(const char *file);

/* PHEMA_ERR_RESOURCE: "FILE: cannot be loaded: ..." */
PHEMA_FALLIBLE phema_library_load(void **library, const char *file, struct phema_error *err);

/* NULL where the library has no such symbol */
void *phema_library_symbol(void *library, const char *name);

/* A function that is wanted of a library, and the pointer to it that is set. */
struct phema_library_function {
    const char *name;
    void *pointer;
    bool is_optional; /* NULL is set where the library and those it needs lack it */
};

/* Loads the library and sets the pointers to its functions. PHEMA_ERR_RESOURCE, also where the
 * library lacks one of them; the pointers may then be set or not. */
PHEMA_FALLIBLE phema_library_load_functions(const char *file,
                                            const struct phema_library_function *functions,
                                            size_t n, struct phema_error *err);

#endif
