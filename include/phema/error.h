/* error.h - failures: a status, which is the exit status, and one sentence.
 * The caller owns the error. No allocation, no globals. */
#ifndef PHEMA_ERROR_H
#define PHEMA_ERROR_H

#include <stdarg.h>

enum phema_status {
    PHEMA_OK = 0,
    PHEMA_NO = 1,           /* the answer is no: a difference, a condition not met */
    PHEMA_ERR_USAGE = 2,    /* the command line */
    PHEMA_ERR_FILE = 3,     /* a file is unreadable, corrupt, or refused */
    PHEMA_ERR_INPUTS = 4,   /* the inputs do not agree, or lack information */
    PHEMA_ERR_TARGET = 5,   /* the target cannot be reached from these snapshots */
    PHEMA_ERR_OUTPUT = 6,   /* output exists, cannot be written, no space */
    PHEMA_ERR_RESOURCE = 7, /* memory, or the device */
    PHEMA_BUG = 70
};

struct phema_error {
    /* lower-case, without full stop; cut with "..." when too long. Behind its NUL the remedy, which
     * is empty until phema_error_set_remedy. */
    char message[8192];
};

/* Return type of functions that can fail: ignoring the status does not compile. */
#define PHEMA_FALLIBLE                   __attribute__((warn_unused_result)) enum phema_status
#define PHEMA_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))

/* Write the message and return the status, so that a failure is one statement. */
enum phema_status phema_fail(struct phema_error *err, enum phema_status status, const char *format,
                             ...) PHEMA_PRINTF(3, 4);

/* Sets the remedy, a command or an option that works when pasted. phema_fail removes it,
 * phema_fail_in keeps it. One that is too long is left out, because half a command is no remedy. */
void phema_error_set_remedy(struct phema_error *err, const char *format, ...) PHEMA_PRINTF(2, 3);
const char *phema_error_remedy(const struct phema_error *err); /* "" without one */

/* Adds a change of the command line to the remedy, quoted for a shell, and returns the status. name
 * is an option ("--force"), an operand ("OUT") or the beginning of a command ("posthoc-ema
 * inspect"). value: NULL for a flag; "" leaves an option out */
enum phema_status phema_suggest(struct phema_error *err, enum phema_status status, const char *name,
                                const char *value);

/* Put "place: " before the message, and return the status. */
enum phema_status phema_fail_in(struct phema_error *err, enum phema_status status,
                                const char *format, ...) PHEMA_PRINTF(3, 4);

/* PHEMA_ERR_RESOURCE, "out of memory". */
enum phema_status phema_fail_memory(struct phema_error *err);

/* "WHAT: strerror(number)". Without memory or descriptors the status is PHEMA_ERR_RESOURCE. */
enum phema_status phema_fail_errno(struct phema_error *err, enum phema_status status,
                                   const char *what, int number);

/* clang's static analyser does not read other files: these macros return the given status, so that
 * it never mistakes a failure for success. */
#ifdef __clang_analyzer__
#define phema_fail(err, status, ...)    ((void)(phema_fail)(err, status, __VA_ARGS__), (status))
#define phema_fail_in(err, status, ...) ((void)(phema_fail_in)(err, status, __VA_ARGS__), (status))
#define phema_fail_errno(err, status, ...)                                                         \
    ((void)(phema_fail_errno)(err, status, __VA_ARGS__), (status))
#define phema_suggest(err, status, name, value)                                                    \
    ((void)(phema_suggest)(err, status, name, value), (status))
#define phema_fail_memory(err) ((void)(phema_fail_memory)(err), PHEMA_ERR_RESOURCE)
#endif

#endif
