// SPDX-License-Identifier: Apache-2.0
/* error.c - status plus one message; prefixes added by callers. */
#include "phema/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "phema/shell_word.h"

/* Marks a message that was cut. */
static void mark_cut(struct phema_error *err, int length)
{
    if (length >= (int)sizeof(err->message) - 1)
        memcpy(err->message + sizeof(err->message) - 5, "...", 4);
}

/* Place for the remedy: behind the NUL of the message. One byte stays for the NUL of an empty
 * one. */
static char *remedy_of(struct phema_error *err, size_t *size)
{
    size_t used = strnlen(err->message, sizeof(err->message) - 2) + 1;
    *size = sizeof(err->message) - used;
    return err->message + used;
}

/* length: of the whole message, as snprintf returns it */
static void end_message(struct phema_error *err, int length)
{
    size_t size = 0;
    mark_cut(err, length);
    *remedy_of(err, &size) = '\0';
}

enum phema_status(phema_fail)(struct phema_error *err, enum phema_status status, const char *format,
                              ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->message, sizeof(err->message) - 1, format, args);
    va_end(args);
    end_message(err, length);
    return status;
}

void phema_error_set_remedy(struct phema_error *err, const char *format, ...)
{
    size_t size = 0;
    char *remedy = remedy_of(err, &size);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(remedy, size, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= size)
        *remedy = '\0';
}

/* Appends n bytes where they fit, and a NUL. */
static size_t append(char *text, size_t size, size_t used, const char *bytes, size_t n)
{
    if (used + n >= size)
        return size; /* too long from here on */
    memcpy(text + used, bytes, n);
    text[used + n] = '\0';
    return used + n;
}

static size_t append_quoted(char *text, size_t size, size_t used, const char *value)
{
    size_t n_free = used < size ? size - used : 0;
    size_t n = phema_shell_word(text + used, n_free, value);
    return n < n_free ? used + n : size;
}

enum phema_status(phema_suggest)(struct phema_error *err, enum phema_status status,
                                 const char *name, const char *value)
{
    char text[sizeof(err->message)] = "";
    const char *before = phema_error_remedy(err);
    bool is_operand = name[0] >= 'A' && name[0] <= 'Z';
    size_t used = append(text, sizeof(text), 0, before, strlen(before));
    used = append(text, sizeof(text), used, " ", used > 0);
    used = append(text, sizeof(text), used, name, strlen(name));
    if (value) {
        used = append(text, sizeof(text), used, is_operand ? "=" : " ", 1);
        used = append_quoted(text, sizeof(text), used, value);
    }
    phema_error_set_remedy(err, "%s", used < sizeof(text) ? text : "");
    return status;
}

const char *phema_error_remedy(const struct phema_error *err)
{
    return err->message + strnlen(err->message, sizeof(err->message) - 2) + 1;
}

enum phema_status(phema_fail_in)(struct phema_error *err, enum phema_status status,
                                 const char *format, ...)
{
    const struct phema_error inner = *err;

    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->message, sizeof(err->message) - 1, format, args);
    va_end(args);
    if (length >= 0 && length < (int)sizeof(err->message) - 1)
        length += snprintf(err->message + length, sizeof(err->message) - 1 - (size_t)length, ": %s",
                           inner.message);
    end_message(err, length);
    if (*phema_error_remedy(&inner))
        phema_error_set_remedy(err, "%s", phema_error_remedy(&inner));
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
