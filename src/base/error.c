// SPDX-License-Identifier: Apache-2.0
/* error.c - status plus one message; prefixes added by callers. */
#include "phema/error.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "phema/setting.h"

/* How the program names settings. The library has a value of its own, which the linker prefers. Not
 * in setting.c: compilers read constants of the same file. */
__attribute__((weak)) const bool phema_settings_are_options = true;

/* Marks a message that was cut. */
static void mark_cut(struct phema_error *err, int length)
{
    if (length >= (int)sizeof(err->message) - 1)
        memcpy(err->message + sizeof(err->message) - 5, "...", 4);
}

enum phema_status(phema_fail)(struct phema_error *err, enum phema_status status, const char *format,
                              ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->message, sizeof(err->message) - 1, format, args);
    va_end(args);
    mark_cut(err, length);
    err->about[0] = '\0';
    phema_error_clear_changes(err);
    return status;
}

void phema_error_clear_changes(struct phema_error *err)
{
    err->n_changes = err->words_size = 0;
}

void phema_error_copy_changes(struct phema_error *err, const struct phema_error *from)
{
    err->n_changes = from->n_changes;
    err->words_size = from->words_size;
    memcpy(err->changes, from->changes, sizeof(err->changes));
    memcpy(err->words, from->words, from->words_size);
}

enum phema_status(phema_error_set_about)(struct phema_error *err, enum phema_status status,
                                         const char *name)
{
    (void)snprintf(err->about, sizeof(err->about), "%s", name);
    return status;
}

enum phema_status phema_fail_about(struct phema_error *err, enum phema_status status,
                                   const char *place, const char *name, const char *format,
                                   va_list args)
{
    char sentence[sizeof(err->message)];
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    (void)phema_fail(err, status, "%s: %s", place, sentence);
    return phema_error_set_about(err, status, name);
}

static size_t add_word(struct phema_error *err, const char *word)
{
    size_t at = err->words_size, size = strlen(word) + 1;
    if (size > sizeof(err->words) - at)
        return SIZE_MAX;
    memcpy(err->words + at, word, size);
    err->words_size += size;
    return at;
}

enum phema_status(phema_error_change)(struct phema_error *err, enum phema_status status,
                                      const char *name, const char *value)
{
    struct phema_change change = {add_word(err, name), value ? add_word(err, value) : SIZE_MAX};
    bool fits = change.name_at != SIZE_MAX && (!value || change.value_at != SIZE_MAX);
    if (fits && err->n_changes < PHEMA_MOST_CHANGES)
        err->changes[err->n_changes++] = change;
    else
        phema_error_clear_changes(err);
    return status;
}

const char *phema_change_name(const struct phema_error *err, size_t i)
{
    return err->words + err->changes[i].name_at;
}

const char *phema_change_value(const struct phema_error *err, size_t i)
{
    return err->changes[i].value_at == SIZE_MAX ? NULL : err->words + err->changes[i].value_at;
}

enum phema_status(phema_fail_in)(struct phema_error *err, enum phema_status status,
                                 const char *format, ...)
{
    char inner[sizeof(err->message)];
    memcpy(inner, err->message, strlen(err->message) + 1);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->message, sizeof(err->message) - 1, format, args);
    va_end(args);
    if (length >= 0 && length < (int)sizeof(err->message) - 1)
        length += snprintf(err->message + length, sizeof(err->message) - 1 - (size_t)length, ": %s",
                           inner);
    mark_cut(err, length);
    err->about[0] = '\0';
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
