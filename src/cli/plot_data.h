/* plot_data.h - from a plan to the pictures of it. */
#ifndef CLI_PLOT_DATA_H
#define CLI_PLOT_DATA_H

#include "phema/plot.h"
#include "series_options.h"

/* Weights of the targets, as stems; or their profiles. */
PHEMA_FALLIBLE plot_targets(struct phema_picture **out, const struct phema_plan *plan,
                            bool of_profiles, struct phema_error *err);

/* The widths from 0.005 to 0.2875 and those that are asked for, ascending, in place of them. */
PHEMA_FALLIBLE plot_error_widths(struct cli_target_values *out,
                                 const struct cli_target_values *given, struct phema_arena *arena,
                                 struct phema_error *err);
/* plan: of those widths; given: what was asked for */
PHEMA_FALLIBLE plot_errors(struct phema_picture **out, const struct phema_plan *plan,
                           const struct cli_target_values *given, struct phema_error *err);

/* Records that other verbs have written. is_quiet: of what is left out nothing is said. */
PHEMA_FALLIBLE plot_memory(struct phema_picture **out, const char *path, uint64_t max_ram,
                           struct phema_error *err);
PHEMA_FALLIBLE plot_scores(struct phema_picture **out, const char *path, bool maximizes,
                           bool is_quiet, struct phema_error *err);

#endif
