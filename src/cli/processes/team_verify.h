/* team_verify.h - verify by the processes of a team: each compares runs of the output, as those of
 * team_synth.h. */
#ifndef CLI_TEAM_VERIFY_H
#define CLI_TEAM_VERIFY_H

#include "run_options.h"

/* false: rank 0 compares all. A sample is small, compressed outputs are read by one thread, new
 * scales are those of whole tensors, and sums of cuBLAS depend on the GPU. */
bool team_may_share_verify(const struct cli_prepared *prepared,
                           const struct phema_checkpoint *checkpoint);

/* Called by all processes, with the plan that rank 0 has shared.
 *   checkpoint  the output, which each process has opened
 *   out         of all runs, in all processes; the caller clears it */
PHEMA_FALLIBLE team_verify(struct phema_verification *out, const struct cli_common *common,
                           struct cli_prepared *prepared, const struct phema_checkpoint *checkpoint,
                           struct phema_error *err);

#endif
