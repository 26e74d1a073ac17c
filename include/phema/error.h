/* error.h - failures: a status, which is the exit status, and one sentence.
 * The caller owns the error. No allocation, no globals. */
#ifndef PHEMA_ERROR_H
#define PHEMA_ERROR_H

#include <stdarg.h>
#include <stddef.h>

enum phema_status {
    PHEMA_OK = 0,
    PHEMA_NO = 1,           /* the answer is no: a difference, a condition not met */
    PHEMA_ERR_USAGE = 2,    /* the command line */
    PHEMA_ERR_FILE = 3,     /* a file is unreadable, corrupt, or refused */
    PHEMA_ERR_INPUTS = 4,   /* the inputs do not agree, or lack information */
    PHEMA_ERR_TARGET = 5,   /* the target cannot be reached from these snapshots */
    PHEMA_ERR_OUTPUT = 6,   /* output exists, cannot be written, no space */
    PHEMA_ERR_RESOURCE = 7, /* memory, or the device */
    PHEMA_ERR_COMMAND = 8,  /* a command of the user, which scores, fails */
    PHEMA_BUG = 70
};

/* What would help: another value of an option or operand. */
struct phema_change {
    size_t name_at;  /* in `words`: "dtype", "OUT" */
    size_t value_at; /* SIZE_MAX: none, of a flag. "" leaves it out */
};

enum { PHEMA_MOST_CHANGES = 8 };

struct phema_error {
    char message[6144]; /* lower-case, without full stop; cut with "..." when too long */
    char about[32];     /* the setting that the message begins with, "dtype"; "": none */
    size_t n_changes;   /* phema_fail removes them, phema_fail_in keeps them */
    struct phema_change changes[PHEMA_MOST_CHANGES];
    size_t words_size;
    char words[4096];
};

/* Return type of functions that can fail: ignoring the status does not compile. */
#define PHEMA_FALLIBLE                   __attribute__((warn_unused_result)) enum phema_status
#define PHEMA_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))

/* Write the message and return the status, so that a failure is one statement. */
enum phema_status phema_fail(struct phema_error *err, enum phema_status status, const char *format,
                             ...) PHEMA_PRINTF(3, 4);

/* Says what the message begins with, and returns the status. */
enum phema_status phema_error_set_about(struct phema_error *err, enum phema_status status,
                                        const char *name);
/* phema_fail with "PLACE: " before the sentence, which is about the name. */
enum phema_status phema_fail_about(struct phema_error *err, enum phema_status status,
                                   const char *place, const char *name, const char *format,
                                   va_list args) PHEMA_PRINTF(5, 0);
/* Adds a change, a copy of both words, and returns the status. Only the command line uses names of
 * its own, others phema_suggest of setting.h. A change that does not fit removes all: half a remedy
 * is none. */
enum phema_status phema_error_change(struct phema_error *err, enum phema_status status,
                                     const char *name, const char *value);
const char *phema_change_name(const struct phema_error *err, size_t i);
const char *phema_change_value(const struct phema_error *err, size_t i); /* NULL of a flag */
void phema_error_clear_changes(struct phema_error *err);
void phema_error_copy_changes(struct phema_error *err, const struct phema_error *from);

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
#define phema_error_set_about(err, status, name)                                                   \
    ((void)(phema_error_set_about)(err, status, name), (status))
#define phema_error_change(err, status, name, value)                                               \
    ((void)(phema_error_change)(err, status, name, value), (status))
#define phema_fail_memory(err) ((void)(phema_fail_memory)(err), PHEMA_ERR_RESOURCE)
#endif

#endif
