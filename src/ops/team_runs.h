/* team_runs.h - the processes of an MPI program (phema/team.h) share synth and verify. Outputs are
 * divided into runs, which are parts as those of --part auto; their number depends on the size of the
 * outputs alone, so that a team of another size can finish what one has begun. Outputs of forms
 * without parts are made whole by one process each. */
#ifndef OPS_TEAM_RUNS_H
#define OPS_TEAM_RUNS_H

#include "phema/ops.h"

/* ---- team_exchange.c: the plan, and one bar that rank 0 shows ---- */

/* Called by all processes. Rank 0 passes its plan, or its failure, which all return; the others
 * receive the plan and what a run needs of the outputs. */
PHEMA_FALLIBLE team_share_plan(struct phema_prepared *prepared, const struct phema_team *team,
                               enum phema_status status, struct phema_error *err);

/* Called by all processes: the others receive the text of rank 0, which may be empty. All clear it,
 * also after a failure, which is that of all. */
PHEMA_FALLIBLE team_send_text(struct phema_strbuf *text, const struct phema_team *team,
                              struct phema_error *err);

struct team_progress {
    const struct phema_team *team;
    const struct phema_listener *listener;
    double start_s;
    uint64_t n_runs;            /* of all processes */
    uint64_t n_done, n_skipped; /* runs of this process that have ended; were done before */
    uint64_t read_bytes;        /* for these */
    uint64_t run_bytes, run_total_bytes; /* of the run that it makes: read, and to be read */
};
void team_progress_init(struct team_progress *progress, const struct phema_listener *listener,
                        const struct phema_team *team, uint64_t n_runs, enum phema_kept kept);
/* context: a struct team_progress; for synth.h. Nobody waits for it while there is work. */
void team_progress_report(void *context, const struct phema_progress *state);
/* A run of this process has ended. is_skipped: it was done before. */
void team_progress_end_run(struct team_progress *progress, bool is_skipped);
/* Returns when all processes have called it, and ends the bar. */
void team_progress_finish(struct team_progress *progress);

/* ---- team_synth.c ---- */

/* The number of runs. It depends on neither the team nor the targets, some of which may exist. */
uint64_t team_count_runs(const struct phema_plan *plan, const struct phema_outputs *outputs);
/* Decides whether the run is that of a team: several processes, or one that finds what several have
 * begun. Then it keeps the paths of all outputs. */
PHEMA_FALLIBLE team_is_wanted(struct phema_synthesis *synthesis, struct phema_error *err);
/* Makes runs until none is left, and rank 0 joins them. A failure of one is that of all.
 * The result is that of all processes. */
PHEMA_FALLIBLE team_synth(struct phema_synthesis *synthesis, const struct phema_listener *listener,
                          struct phema_error *err);

/* ---- team_verify.c: each compares runs of the output ---- */

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
