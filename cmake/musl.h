/* musl.h - what musl lacks of glibc; included before all else where libc is not glibc (libraries.cmake). */
#ifndef PHEMA_MUSL_H
#define PHEMA_MUSL_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define TEMP_FAILURE_RETRY(call)                                                                   \
    (__extension__({                                                                               \
        long retried;                                                                              \
        do                                                                                         \
            retried = (long)(call);                                                                \
        while (retried == -1 && errno == EINTR);                                                   \
        retried;                                                                                   \
    }))

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE  2
static inline int renameat2(int from, const char *path, int to, const char *new_path,
                            unsigned flags)
{
    return (int)syscall(SYS_renameat2, from, path, to, new_path, flags);
}
#endif

/* musl has it since 1.2.5, which a wheel cannot ask for */
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#define preadv2(descriptor, into, n, offset, flags)                                                \
    syscall(SYS_preadv2, descriptor, into, n, (long)(offset), (long)((uint64_t)(offset) >> 32),    \
            flags)

/* Its malloc has no options and tells nothing: these are not called, or do nothing. */
#define M_MMAP_THRESHOLD       0
#define M_ARENA_MAX            0
#define mallopt(option, value) 0
struct mallinfo2 {
    size_t uordblks, hblkhd;
};

#endif
