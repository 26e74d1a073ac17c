/* cli.h - the list of verbs. A verb is cmd_NAME.c, which defines cli_NAME, and a line here. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "options.h"

/* In the order of the help. */
#define CLI_VERBS(VERB)                                                                            \
    VERB(synth)                                                                                    \
    VERB(join)                                                                                     \
    VERB(plan)                                                                                     \
    VERB(weights)                                                                                  \
    VERB(inspect)                                                                                  \
    VERB(diff)                                                                                     \
    VERB(verify)                                                                                   \
    VERB(gen)                                                                                      \
    VERB(convert)                                                                                  \
    VERB(plot)                                                                                     \
    VERB(search)                                                                                   \
    VERB(report)

#define CLI_DECLARE_VERB(name) extern const struct cli_verb cli_##name;
CLI_VERBS(CLI_DECLARE_VERB)

#endif
