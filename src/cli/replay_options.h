/* replay_options.h - the command that a provenance records, parsed again. */
#ifndef CLI_REPLAY_OPTIONS_H
#define CLI_REPLAY_OPTIONS_H

#include "run_options.h"

/* Commands of the verb synth, which are compared with values. Borrows both.
 * values: NULL where nothing is compared */
struct cli_commands {
    struct phema_commands commands; /* the context is this struct */
    const struct cli_verb *synth;
    const struct cli_run_values *values;
};
void cli_commands_init(struct cli_commands *out, const struct cli_verb *synth,
                       const struct cli_run_values *values);

#endif
