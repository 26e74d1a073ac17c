// SPDX-License-Identifier: Apache-2.0
/* error.c - status plus one message; prefixes added by callers. */
#include "phema/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "phema/strbuf.h"

/* Marks a message that was cut. */
static void mark_cut(struct phema_error *err, int length)
{
    if (length >= (int)sizeof(err->message) - 1)
        memcpy(err->message + sizeof(err->message) - 5, "...", 4);
}

/* Place for the remedy: behind the NUL of the message. One byte stays for the NUL of an empty one. */
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

/* Appends the value in quotes; with a quote in it, that becomes '\''. */
static void append_quoted(struct phema_strbuf *out, const char *value)
{
    phema_strbuf_puts(out, "'");
    for (; *value; value++) {
        if (*value == '\'')
            phema_strbuf_puts(out, "'\\''");
        else
            phema_strbuf_append(out, value, 1);
    }
    phema_strbuf_puts(out, "'");
}

enum phema_status(phema_suggest)(struct phema_error *err, enum phema_status status,
                                 const char *name, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./_-";
    struct phema_strbuf text = {0};
    bool is_operand = name[0] >= 'A' && name[0] <= 'Z';
    phema_strbuf_puts(&text, phema_error_remedy(err));
    phema_strbuf_printf(&text, "%s%s", text.size ? " " : "", name);
    if (value)
        phema_strbuf_puts(&text, is_operand ? "=" : " ");
    if (value && *value && strspn(value, plain) == strlen(value))
        phema_strbuf_puts(&text, value);
    else if (value)
        append_quoted(&text, value);
    if (text.data && !text.is_failed)
        phema_error_set_remedy(err, "%s", text.data);
    phema_strbuf_clear(&text);
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
