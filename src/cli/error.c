// SPDX-License-Identifier: Apache-2.0
/* error.c - a failure as lines for people, and as JSON. */
#include <string.h>
#include <unistd.h>

#include "phema/render.h"
#include "remedy/remedy.h"
#include "shared_options.h"

/* A command with an escaped name would be another command. */
static bool is_printable(const char *command)
{
    struct phema_strbuf escaped = {0};
    phema_strbuf_puts_escaped(&escaped, command);
    bool is_same = *command && !escaped.is_failed && strcmp(escaped.data, command) == 0;
    phema_strbuf_clear(&escaped);
    return is_same;
}

/* Only a terminal gets the error broken into lines. */
void cli_say_error(const struct phema_error *err)
{
    if (isatty(STDERR_FILENO))
        render_say("posthoc-ema: %s", err->message);
    else
        render_say_whole("posthoc-ema: %s", err->message);
    const char *command = cli_command(err);
    if (is_printable(command))
        render_say_whole("  try: %s", command);
}

void cli_write_error(struct phema_json_out *out, const struct phema_error *err,
                     enum phema_status status)
{
    const char *command = cli_command(err);
    phema_json_out_open(out, "error", '{');
    phema_json_out_u64(out, "status", (uint64_t)status);
    phema_json_out_string(out, "message", err->message);
    phema_json_out_string(out, "try", is_printable(command) ? command : NULL);
    phema_json_out_close(out, '}');
}
