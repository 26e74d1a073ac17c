/* up_to_date.h - outputs that are there already and are what would be made. */
#ifndef CLI_UP_TO_DATE_H
#define CLI_UP_TO_DATE_H

#include "run_options.h"

/* Takes those out of plan and outputs that say of themselves that they are made of the same
 * snapshots with the same weights and options; each is said. One that is there and differs stays
 * where it may be replaced, else PHEMA_ERR_OUTPUT says what differs. */
PHEMA_FALLIBLE cli_skip_existing(struct cli_prepared *prepared,
                                 const struct cli_synth_values *values, struct phema_error *err);

#endif
