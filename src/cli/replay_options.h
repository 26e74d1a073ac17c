/* replay_options.h - the command that a provenance records, parsed into values of synth; and
 * --skip-existing: outputs that exist and need not be made again. */
#ifndef CLI_REPLAY_OPTIONS_H
#define CLI_REPLAY_OPTIONS_H

#include "run_options.h"

/* synth: the verb. command: words as a shell writes them, quoted with ' or \; nothing is expanded.
 * out: OUT, which such a command leaves out.
 * PHEMA_ERR_FILE  it is no command of synth */
PHEMA_FALLIBLE cli_replay_read(struct cli_synth_values **values, const struct cli_verb *synth,
                               const char *command, const char *out, struct phema_error *err);
void cli_replay_free(struct cli_synth_values *values); /* takes NULL */

/* Whether an output that exists is up to date: its provenance records the same snapshots, weights and
 * options. A failure says why it is not. */
PHEMA_FALLIBLE cli_compare_existing(const struct cli_prepared *prepared, size_t output,
                                    const struct cli_run_values *values,
                                    const struct cli_verb *synth, struct phema_error *err);

/* Removes outputs from the plan whose provenance records the same snapshots, weights and options,
 * and reports each of them unless is_quiet. synth: the verb, whose options a provenance records.
 * PHEMA_ERR_OUTPUT  an output exists, differs and may not be replaced; the message says how */
PHEMA_FALLIBLE cli_skip_existing(struct cli_prepared *prepared, const struct cli_run_values *values,
                                 const struct cli_verb *synth, bool is_quiet,
                                 struct phema_error *err);

#endif
