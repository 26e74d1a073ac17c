/* write_error.h - private to writer/: failures of writing, as status and message. */
#ifndef WRITER_WRITE_ERROR_H
#define WRITER_WRITE_ERROR_H

#include "phema/error.h"
#include "phema/span.h"

/* "PATH: WHAT: strerror(number)". PHEMA_ERR_RESOURCE without memory or descriptors, else
 * PHEMA_ERR_OUTPUT. */
enum phema_status writer_fail_errno(struct phema_error *err, const char *path, const char *what,
                                    int number);

/* "PATH: out of memory" */
enum phema_status writer_fail_memory(struct phema_error *err, const char *path);

/* No space, or a limit on file sizes: the message tells how much is needed. */
enum phema_status writer_fail_size(struct phema_error *err, const char *path, uint64_t size_bytes,
                                   int number);

/* Another run holds the lock. */
enum phema_status writer_fail_locked(struct phema_error *err, const char *path);

/* The rename to PATH failed. */
enum phema_status writer_fail_publish(struct phema_error *err, const char *path, int number);

/* clang's static analyser does not look into another file: these never return success (error.h). */
#ifdef __clang_analyzer__
#define writer_fail_errno(...)   ((void)(writer_fail_errno)(__VA_ARGS__), PHEMA_ERR_OUTPUT)
#define writer_fail_memory(...)  ((void)(writer_fail_memory)(__VA_ARGS__), PHEMA_ERR_RESOURCE)
#define writer_fail_size(...)    ((void)(writer_fail_size)(__VA_ARGS__), PHEMA_ERR_OUTPUT)
#define writer_fail_locked(...)  ((void)(writer_fail_locked)(__VA_ARGS__), PHEMA_ERR_OUTPUT)
#define writer_fail_publish(...) ((void)(writer_fail_publish)(__VA_ARGS__), PHEMA_ERR_OUTPUT)
#endif

#endif
