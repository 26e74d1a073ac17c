// SPDX-License-Identifier: Apache-2.0
/* error.c - status plus one message; prefixes added by callers. */
#include "phema/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Marks a message that was cut. */
static void mark_cut(struct phema_error *err, int length)
{
    if (length >= (int)sizeof(err->message))
        memcpy(err->message + sizeof(err->message) - 4, "...", 4);
}

enum phema_status(phema_fail)(struct phema_error *err, enum phema_status status, const char *format,
                              ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    mark_cut(err, length);
    return status;
}

enum phema_status(phema_fail_in)(struct phema_error *err, enum phema_status status,
                                 const char *format, ...)
{
    char inner[sizeof(err->message)];
    memcpy(inner, err->message, sizeof(inner));

    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    if (length < 0 || length >= (int)sizeof(err->message)) {
        mark_cut(err, length);
        return status;
    }
    size_t left = sizeof(err->message) - (size_t)length;
    mark_cut(err, length + snprintf(err->message + length, left, ": %s", inner));
    return status;
}

enum phema_status(phema_fail_memory)(struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory");
}

enum phema_status(phema_fail_errno)(struct phema_error *err, enum phema_status status,
                                    const char *what, int number)
{
    bool is_resource = number == ENOMEM || number == EMFILE || number == ENFILE;
    return phema_fail(err, is_resource ? PHEMA_ERR_RESOURCE : status, "%s: %s", what,
                      strerror(number));
}
