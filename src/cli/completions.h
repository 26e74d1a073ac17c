/* completions.h - scripts for shells that complete verbs, options and values. They are written from
 * the option tables that help is printed from. */
#ifndef CLI_COMPLETIONS_H
#define CLI_COMPLETIONS_H

#include "options.h"

/* verbs: ends with NULL. shell: "bash", "zsh" or "fish"; NULL: none was given.
 * PHEMA_ERR_USAGE  for any other */
PHEMA_FALLIBLE cli_write_completions(struct phema_strbuf *out, const struct cli_verb *const *verbs,
                                     const char *shell, struct phema_error *err);

#endif
