/* team_synth.h - synth by the processes of an MPI program (phema/cli.h). The outputs are divided
 * into runs, which are parts as those of --part; their number depends on the size of the outputs
 * alone, so that a team of another size can finish what one has begun. Outputs of forms without
 * parts are made whole by one process each. */
#ifndef CLI_TEAM_SYNTH_H
#define CLI_TEAM_SYNTH_H

#include "processes/auto_part.h"

/* The team of this process; NULL: it is alone. */
const struct phema_team *team_of(const struct cli_common *common);

/* Decides whether the run is that of a team: several processes, or one that finds what several have
 * begun. Then it keeps the paths of all outputs. */
PHEMA_FALLIBLE team_is_wanted(struct auto_part *part, const struct cli_common *common,
                              const struct phema_outputs *outputs, struct phema_error *err);

/* PHEMA_ERR_USAGE: an option that a team does not have. */
PHEMA_FALLIBLE team_check_options(const struct cli_synth_values *args, struct phema_error *err);

/* The number of runs. It depends on neither the team nor the targets, which --skip-existing may
 * leave out. */
uint64_t team_count_runs(const struct phema_plan *plan, const struct phema_outputs *outputs);

/* What processes can share: runs, or whole outputs of a form that one process writes. */
uint64_t team_count_shares(const struct phema_plan *plan, const struct phema_outputs *outputs);

/* Makes runs until none is left, and rank 0 joins them. A failure of one is that of all.
 *   result  added up over all processes */
PHEMA_FALLIBLE team_synth(struct phema_synth_result *result, const struct cli_synth_values *args,
                          const struct auto_part *part, struct cli_prepared *prepared,
                          struct phema_error *err);

#endif
