// SPDX-License-Identifier: Apache-2.0
/* suggestion.c - failures of the command line name options; a change of one, or a whole command,
 * would help. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "remedy/remedy.h"

static const char *without_dashes(const char *name)
{
    return strncmp(name, "--", 2) == 0 ? name + 2 : name;
}

enum phema_status(cli_suggest)(struct phema_error *err, enum phema_status status, const char *name,
                               const char *value)
{
    return phema_error_change(err, status, without_dashes(name), value);
}

/* A change of no setting, whose value is the command. */
void cli_set_command(struct phema_error *err, const char *format, ...)
{
    char command[sizeof(err->words)];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    phema_error_clear_changes(err);
    if (size > 0 && (size_t)size < sizeof(command))
        (void)phema_error_change(err, PHEMA_OK, "", command);
}

const char *cli_command(const struct phema_error *err)
{
    return err->n_changes && !*phema_change_name(err, 0) ? phema_change_value(err, 0) : "";
}

enum phema_status(cli_fail_option)(struct phema_error *err, enum phema_status status,
                                   const char *option, const char *format, ...)
{
    char sentence[sizeof(err->message)];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    (void)phema_fail(err, status, "--%s: %s", without_dashes(option), sentence);
    return phema_error_set_about(err, status, without_dashes(option));
}

enum phema_status(cli_fail_in_option)(struct phema_error *err, enum phema_status status,
                                      const char *option)
{
    (void)phema_fail_in(err, status, "--%s", without_dashes(option));
    return phema_error_set_about(err, status, without_dashes(option));
}
