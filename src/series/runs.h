/* runs.h - the run ids that a recorder writes into its snapshots, and --run. Snapshots of two
 * trainings are no series. */
#ifndef SERIES_RUNS_H
#define SERIES_RUNS_H

#include "candidates.h"

/* The id in the metadata of a checkpoint; NULL: none. */
const char *run_id_of(const struct phema_checkpoint *checkpoint);

/* Applies --run: opens the candidates that are not left out, and leaves out those of other runs.
 * PHEMA_ERR_INPUTS    no run or several begin so; the remedy names the newest run
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE runs_select(struct candidate_list *candidates,
                           const struct phema_series_options *options, struct phema_error *err);

/* Replaces the message of a failure, PHEMA_ERR_INPUTS, where the candidates are of several runs:
 * snapshots of two trainings disagree in other ways, too. */
void runs_explain(struct candidate_list *candidates, const struct phema_series_options *options,
                  struct phema_error *err);

/* Fills in series->runs. A note says that some snapshots name no run, where others do.
 * PHEMA_ERR_INPUTS    the snapshots are of several runs; the remedy names the newest run
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE runs_find(struct phema_series *series, struct candidate_list *candidates,
                         struct phema_error *err);

#endif
