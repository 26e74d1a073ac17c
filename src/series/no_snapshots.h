/* no_snapshots.h - the message for a directory that holds no snapshots. */
#ifndef SERIES_NO_SNAPSHOTS_H
#define SERIES_NO_SNAPSHOTS_H

#include "candidates.h"

/* Always fails: PHEMA_ERR_INPUTS, with what the directory holds and what to name instead. Lists the
 * directory again, its folders and the folder above; opens no file.
 * candidates: all of them were left out */
PHEMA_FALLIBLE fail_no_snapshots(const struct phema_series_options *options,
                                 const struct candidate_list *candidates, struct phema_error *err);

#endif
