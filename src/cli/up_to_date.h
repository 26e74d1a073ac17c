/* up_to_date.h - --skip-existing: outputs that exist and need not be made again. */
#ifndef CLI_UP_TO_DATE_H
#define CLI_UP_TO_DATE_H

#include "run_options.h"

/* Removes outputs from the plan whose provenance records the same snapshots, weights and options,
 * and reports each of them unless is_quiet. synth: the verb, whose options a provenance records.
 * PHEMA_ERR_OUTPUT  an output exists, differs and may not be replaced; the message says how */
PHEMA_FALLIBLE cli_skip_existing(struct cli_prepared *prepared, const struct cli_run_values *values,
                                 const struct cli_verb *synth, bool is_quiet,
                                 struct phema_error *err);

#endif
