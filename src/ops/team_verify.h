/* team_verify.h - verify by the processes of a team: each compares runs of the output, as those of
 * team_synth.h. */
#ifndef OPS_TEAM_VERIFY_H
#define OPS_TEAM_VERIFY_H

#include "phema/ops.h"

/* false: rank 0 compares all. A sample is small, compressed outputs are read by one thread, new
 * scales are those of whole tensors, and sums of cuBLAS depend on the GPU. */
bool team_may_share_verify(const struct phema_prepared *prepared,
                           const struct phema_checkpoint *checkpoint);

/* Called by all processes, with the plan that rank 0 has shared.
 *   checkpoint  the output, which each process has opened
 *   out         of all runs, in all processes; the caller clears it */
PHEMA_FALLIBLE team_verify(struct phema_verification *out, const struct phema_team *team,
                           const struct phema_listener *listener, struct phema_prepared *prepared,
                           const struct phema_checkpoint *checkpoint, struct phema_error *err);

#endif
