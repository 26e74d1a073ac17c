/* cli.h - the list of verbs. A verb is cmd_NAME.c, which defines cli_NAME, and a line here. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "options.h"

/* In the order of the help: by how often a task comes up. */
#define CLI_VERBS(VERB)                                                                            \
    VERB(synth)                                                                                    \
    VERB(search)                                                                                   \
    VERB(inspect)                                                                                  \
    VERB(weights)                                                                                  \
    VERB(plan)                                                                                     \
    VERB(design)                                                                                   \
    VERB(report)                                                                                   \
    VERB(plot)                                                                                     \
    VERB(verify)                                                                                   \
    VERB(diff)                                                                                     \
    VERB(join)                                                                                     \
    VERB(gen)                                                                                      \
    VERB(convert)

#define CLI_DECLARE_VERB(name) extern const struct cli_verb cli_##name;
CLI_VERBS(CLI_DECLARE_VERB)

/* completions.c: a script that completes verbs, options and values, written from the option tables.
 * verbs: ends with NULL. shell: "bash", "zsh" or "fish"; NULL: missing.
 * PHEMA_ERR_USAGE  for any other */
PHEMA_FALLIBLE cli_write_completions(struct phema_strbuf *out, const struct cli_verb *const *verbs,
                                     const char *shell, struct phema_error *err);

#endif
