// SPDX-License-Identifier: Apache-2.0
/* reading_shim.c - for LD_PRELOAD: reads that are short, interrupted or fail, and a filesystem that
 * reports another type. Variables of the environment; preads are counted from 1:
 *   SHIM_COUNT       a file to which the number of preads is written at the end
 *   SHIM_SHORT       most bytes per pread; every second pread is interrupted first
 *   SHIM_FAIL_AT     the pread of this number fails (EIO)
 *   SHIM_END_AT      from the pread of this number on, the file has ended
 *   SHIM_GROW_AT     before the pread of this number, a byte is appended to the file SHIM_GROW
 *   SHIM_REFUSE      "open" or "read": the filesystem cannot read past the page cache (EINVAL)
 *   SHIM_WRONG_AT    the pread of this number returns a wrong first byte
 *   SHIM_FILESYSTEM  f_type in the result of statfs, hexadecimal
 *   SHIM_CGROUPS     a directory in place of / for /proc/self/cgroup and /sys/fs/cgroup
 *   SHIM_STRIPES     a file with the attribute lustre.lov of every other file */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* With 64-bit offsets, the names pread and statfs mean the library's pread64 and statfs64, here and
 * in the program. */
static _Atomic long n_reads;

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 0) : 0;
}

/* ISO C has no conversion from an object pointer to a function's. */
static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof(found));
}

static void grow(const char *path)
{
    int descriptor = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (descriptor < 0 || write(descriptor, "x", 1) != 1 || close(descriptor))
        abort();
}

/* Whether these reads go past the page cache, which the filesystem refuses. */
static bool is_refused(int descriptor)
{
    const char *what = getenv("SHIM_REFUSE");
    return what && strcmp(what, "read") == 0 && (fcntl(descriptor, F_GETFL) & O_DIRECT);
}

int open(const char *path, int flags, ...)
{
    int (*next)(const char *, int, ...) = NULL;
    find(&next, "open64");
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    const char *what = getenv("SHIM_REFUSE");
    if (what && strcmp(what, "open") == 0 && (flags & O_DIRECT)) {
        errno = EINVAL;
        return -1;
    }
    return next(path, flags, mode);
}

ssize_t pread(int descriptor, void *data, size_t size, off_t offset)
{
    ssize_t (*next)(int, void *, size_t, off_t) = NULL;
    find(&next, "pread64");
    long n = ++n_reads, most = number("SHIM_SHORT");
    if (is_refused(descriptor)) {
        errno = EINVAL;
        return -1;
    }
    if (n == number("SHIM_FAIL_AT")) {
        errno = EIO;
        return -1;
    }
    if (n == number("SHIM_GROW_AT"))
        grow(getenv("SHIM_GROW"));
    if (number("SHIM_END_AT") && n >= number("SHIM_END_AT"))
        return 0;
    if (most && n % 2) {
        errno = EINTR;
        return -1;
    }
    ssize_t got = next(descriptor, data, most && size > (size_t)most ? (size_t)most : size, offset);
    if (got > 0 && n == number("SHIM_WRONG_AT"))
        *(unsigned char *)data ^= 1;
    return got;
}

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*next)(const char *, const char *) = NULL;
    find(&next, "fopen64");
    const char *root = getenv("SHIM_CGROUPS");
    bool is_other = root && (strcmp(path, "/proc/self/cgroup") == 0 ||
                             strncmp(path, "/sys/fs/cgroup/", 15) == 0);
    char other[4096];
    int size = is_other ? snprintf(other, sizeof(other), "%s%s", root, path) : 0;
    return next(size > 0 && (size_t)size < sizeof(other) ? other : path, mode);
}

int statfs(const char *path, struct statfs *out)
{
    int (*next)(const char *, struct statfs *) = NULL;
    find(&next, "statfs64");
    int result = next(path, out);
    if (number("SHIM_FILESYSTEM"))
        out->f_type = number("SHIM_FILESYSTEM");
    return result;
}

ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    ssize_t (*next)(const char *, const char *, void *, size_t) = NULL;
    find(&next, "getxattr");
    const char *stripes = getenv("SHIM_STRIPES");
    FILE *file = stripes && strcmp(name, "lustre.lov") == 0 ? fopen(stripes, "re") : NULL;
    if (!file)
        return next(path, name, value, size);
    size_t got = fread(value, 1, size, file);
    (void)fclose(file);
    return (ssize_t)got;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("SHIM_COUNT");
    FILE *file = path ? fopen(path, "we") : NULL;
    if (!file)
        return;
    (void)fprintf(file, "%ld\n", atomic_load(&n_reads));
    (void)fclose(file);
}
