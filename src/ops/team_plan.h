/* team_plan.h - the plan of a team's run is made by its rank 0 (phema/team.h). */
#ifndef OPS_TEAM_PLAN_H
#define OPS_TEAM_PLAN_H

#include "phema/ops.h"

/* Called by all processes. Rank 0 passes its plan, or its failure, which all return; the others
 * receive the plan and what a run needs of the outputs. */
PHEMA_FALLIBLE team_share_plan(struct phema_prepared *prepared, const struct phema_team *team,
                               enum phema_status status, struct phema_error *err);

#endif
