// SPDX-License-Identifier: Apache-2.0
/* leak.c - for LD_PRELOAD: every pwrite leaks a block of memory. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>

ssize_t pwrite64(int descriptor, const void *data, size_t size, off_t offset);

ssize_t pwrite64(int descriptor, const void *data, size_t size, off_t offset)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
    void *volatile lost = malloc(8192);
    (void)lost;
    return real(descriptor, data, size, offset);
}
