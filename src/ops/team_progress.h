/* team_progress.h - one bar for the processes of a team (phema/team.h), which rank 0 shows. Nobody
 * waits for it while there is work. */
#ifndef OPS_TEAM_PROGRESS_H
#define OPS_TEAM_PROGRESS_H

#include "phema/ops.h"

struct team_progress {
    const struct phema_team *team;
    const struct phema_listener *listener;
    double start_s;
    uint64_t n_runs; /* of all processes */
    uint64_t n_done,
        n_skipped;       /* runs of this process that have ended; those that were done before */
    uint64_t read_bytes; /* for these */
    uint64_t run_bytes, run_total_bytes; /* of the run that it makes: read, and to be read */
};

void team_progress_init(struct team_progress *progress, const struct phema_listener *listener,
                        const struct phema_team *team, uint64_t n_runs, enum phema_kept kept);

/* context: a struct team_progress; for synth.h */
void team_progress_report(void *context, const struct phema_progress *state);

/* A run of this process has ended. is_skipped: it was done before. */
void team_progress_end_run(struct team_progress *progress, bool is_skipped);

/* Returns when all processes have called it, and ends the bar. */
void team_progress_finish(struct team_progress *progress);

#endif
