// SPDX-License-Identifier: Apache-2.0
/* library.c - shared libraries loaded on first use (the only user of dlopen). */
#include "phema/library.h"

#include <dlfcn.h>
#include <string.h>

bool phema_library_is_loaded(const char *file)
{
    void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (library)
        (void)dlclose(library);
    return library != NULL;
}

PHEMA_FALLIBLE phema_library_load(void **library, const char *file, struct phema_error *err)
{
    /* RTLD_NOW: a missing symbol is an error here, and does not end the program later.
     * RTLD_NODELETE: threads of a library may outlive its use */
    *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (*library)
        return PHEMA_OK;
    const char *why = dlerror(); /* usually begins with the file */
    size_t size = strlen(file);
    if (why && strncmp(why, file, size) == 0 && strncmp(why + size, ": ", 2) == 0)
        why += size + 2;
    return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: cannot be loaded: %s", file,
                      why ? why : "no reason was given");
}

void *phema_library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

PHEMA_FALLIBLE phema_library_load_functions(const char *file,
                                            const struct phema_library_function *functions,
                                            size_t n, struct phema_error *err)
{
    void *library = NULL;
    enum phema_status status = phema_library_load(&library, file, err);
    if (status)
        return status;
    for (size_t i = 0; i < n; i++) {
        void *found = phema_library_symbol(library, functions[i].name);
        if (!found && !functions[i].is_optional)
            return phema_fail(err, PHEMA_ERR_RESOURCE, "%s: has no function %s", file,
                              functions[i].name);
        /* ISO C has no conversion from an object pointer to a function's */
        memcpy(functions[i].pointer, &found, sizeof(found));
    }
    return PHEMA_OK;
}
