/* completions.h - what shells need to complete verbs, options and values: from the tables that help
 * is printed from. */
#ifndef CLI_COMPLETIONS_H
#define CLI_COMPLETIONS_H

#include "options.h"

/* shell: "bash", "zsh" or "fish"; NULL: nothing was given. PHEMA_ERR_USAGE for any other. */
PHEMA_FALLIBLE cli_write_completions(struct phema_strbuf *out, const char *shell,
                                     struct phema_error *err);

#endif
