/* team_plan.h - the plan of a team's run is made by its rank 0 (phema/cli.h). */
#ifndef CLI_TEAM_PLAN_H
#define CLI_TEAM_PLAN_H

#include "run_options.h"

struct phema_team;

/* Called by all processes. Rank 0 passes its plan, or its failure, which all return; the others
 * receive the plan and what a run needs of the outputs. */
PHEMA_FALLIBLE team_share_plan(struct cli_prepared *prepared, const struct phema_team *team,
                               enum phema_status status, struct phema_error *err);

/* Called by all processes. Returns, in all of them, status and message of rank 0. */
enum phema_status team_share_status(const struct phema_team *team, enum phema_status status,
                                    struct phema_error *err);

#endif
