// SPDX-License-Identifier: Apache-2.0
/* suggestion.c - failures of the command line name options; a change of one, or a whole command,
 * would help. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "remedy/remedy.h"

enum phema_status(cli_suggest)(struct phema_error *err, enum phema_status status, const char *name,
                               const char *value)
{
    return phema_error_change(err, status, name, value);
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

enum phema_status(cli_suggest_command)(struct phema_error *err, enum phema_status status,
                                       const char *command, const char *word)
{
    struct phema_strbuf whole = {0};
    phema_strbuf_printf(&whole, "%s ", command);
    cli_shell_quote(&whole, word);
    cli_set_command(err, "%s", whole.is_failed ? "" : whole.data);
    phema_strbuf_clear(&whole);
    return status;
}

const char *cli_command(const struct phema_error *err)
{
    return err->n_changes && !*phema_change_name(err, 0) ? phema_change_value(err, 0) : "";
}

enum phema_status(cli_fail_option)(struct phema_error *err, enum phema_status status,
                                   const char *option, const char *format, ...)
{
    char place[sizeof(err->about) + 2];
    va_list args;
    (void)snprintf(place, sizeof(place), "--%s", option);
    va_start(args, format);
    (void)phema_fail_about(err, status, place, option, format, args);
    va_end(args);
    return status;
}

enum phema_status(cli_fail_in_option)(struct phema_error *err, enum phema_status status,
                                      const char *option)
{
    (void)phema_fail_in(err, status, "--%s", option);
    return phema_error_set_about(err, status, option);
}
