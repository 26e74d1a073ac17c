/* replay_options.h - the command that a provenance records, parsed into values of synth. */
#ifndef CLI_REPLAY_OPTIONS_H
#define CLI_REPLAY_OPTIONS_H

#include "run_options.h"

/* synth: the verb. command: words as a shell writes them, quoted with ' or \; nothing is expanded.
 * out: OUT, which such a command leaves out.
 * PHEMA_ERR_FILE  it is no command of synth */
PHEMA_FALLIBLE cli_replay_read(struct cli_synth_values **values, const struct cli_verb *synth,
                               const char *command, const char *out, struct phema_error *err);
void cli_replay_free(struct cli_synth_values *values); /* takes NULL */

/* NULL where both write the same bytes, given the same weights of the same snapshots; else the name
 * of an option that differs, without dashes. */
const char *cli_replay_difference(const struct cli_run_values *a, const struct cli_run_values *b);

#endif
