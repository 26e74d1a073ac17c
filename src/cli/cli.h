/* cli.h - the verbs. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "options.h"

extern const struct cli_verb cli_synth, cli_join, cli_plan, cli_weights, cli_inspect, cli_diff,
    cli_verify, cli_gen, cli_convert, cli_plot, cli_search, cli_report;

/* In the order of the help; ends with NULL. */
extern const struct cli_verb *const cli_verbs[];

#endif
