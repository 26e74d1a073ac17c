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

/* ---- help.c ---- */

extern const struct cli_verb *const cli_verbs[];        /* ends with NULL */
const struct cli_verb *cli_find_verb(const char *name); /* NULL: none */

void cli_write_overview(struct phema_strbuf *out);
/* -h: examples and the options of every day; --help: all but rare ones; help --all VERB */
enum cli_extent { CLI_HELP_SHORT, CLI_HELP_USUAL, CLI_HELP_ALL };
void cli_write_help(struct phema_strbuf *out, const struct cli_verb *verb, enum cli_extent extent);

/* The words that may stand in the place of the last one, one per line, each with a TAB and a
 * description where there is one; the line FILE stands for names of files. argv[1] is the verb. */
void cli_write_candidates(struct phema_strbuf *out, int argc, char **argv);
/* Names of shells, and their scripts, which ask for candidates; ends with NULL. CMakeLists.txt
 * writes the table from completions/. */
extern const char *const cli_completion_scripts[][2];
/* shell: "bash", "zsh" or "fish"; NULL: missing.
 * PHEMA_ERR_USAGE  for any other */
PHEMA_FALLIBLE cli_write_completions(struct phema_strbuf *out, const char *shell,
                                     struct phema_error *err);

#endif
