/* team_synth.h - synth by the processes of an MPI program (phema/team.h). The outputs are divided
 * into runs, which are parts as those of auto_part.h; their number depends on the size of the outputs
 * alone, so that a team of another size can finish what one has begun. Outputs of forms without
 * parts are made whole by one process each. */
#ifndef OPS_TEAM_SYNTH_H
#define OPS_TEAM_SYNTH_H

#include "auto_part.h"

/* Decides whether the run is that of a team: several processes, or one that finds what several have
 * begun. Then it keeps the paths of all outputs. */
PHEMA_FALLIBLE team_is_wanted(struct phema_synthesis *synthesis, struct phema_error *err);

/* ---- team_shares.c ---- */

/* The number of runs. It depends on neither the team nor the targets, some of which may exist. */
uint64_t team_count_runs(const struct phema_plan *plan, const struct phema_outputs *outputs);

/* Outputs of a form that one process writes as a whole: each is a run. */
bool team_has_whole_runs(const struct phema_plan *plan, const struct phema_outputs *outputs);

/* ---- team_synth.c ---- */

/* Makes runs until none is left, and rank 0 joins them. A failure of one is that of all.
 * The result is that of all processes. */
PHEMA_FALLIBLE team_synth(struct phema_synthesis *synthesis, const struct phema_listener *listener,
                          struct phema_error *err);

#endif
