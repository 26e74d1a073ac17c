/* part_option.h - the option --part of synth. With auto, a launcher starts the same command many
 * times: each process makes its part, and the one that finds all parts done joins them. */
#ifndef CLI_PART_OPTION_H
#define CLI_PART_OPTION_H

#include "run_options.h"

/* Sets the part, the number of parts and joins. part: NULL for none. PHEMA_ERR_USAGE: not I/N with
 * I from 1 to N; no launcher, or several that disagree; several processes without --part. */
PHEMA_FALLIBLE part_option_read(struct phema_synthesis *synthesis, const char *part,
                                const struct cli_common *common, struct phema_error *err);

/* PHEMA_ERR_USAGE: an option that the processes of a team cannot have. */
PHEMA_FALLIBLE team_check_options(const struct cli_synth_values *args, struct phema_error *err);

#endif
