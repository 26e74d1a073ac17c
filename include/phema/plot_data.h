/* plot_data.h - pictures of plans and of files that other verbs have written. */
#ifndef PHEMA_PLOT_DATA_H
#define PHEMA_PLOT_DATA_H

#include "phema/plan.h"
#include "phema/plot.h"

/* Weights of the targets, as stems; or their profiles. */
PHEMA_FALLIBLE plot_targets(struct phema_picture **out, const struct phema_plan *plan,
                            bool of_profiles, struct phema_error *err);

/* Replaces the widths and exponents that are asked for with these and the widths from 0.005 to
 * 0.2875, ascending. The list lies in the arena. */
PHEMA_FALLIBLE plot_error_widths(struct phema_plan_options *options, struct phema_arena *arena,
                                 struct phema_error *err);
/* plan: of the widths of plot_error_widths; asked: the options before that */
PHEMA_FALLIBLE plot_errors(struct phema_picture **out, const struct phema_plan *plan,
                           const struct phema_plan_options *asked, struct phema_error *err);

/* Pictures of files that other verbs have written. is_quiet: skipped lines are not reported. */
PHEMA_FALLIBLE plot_memory(struct phema_picture **out, const char *path, uint64_t max_ram,
                           struct phema_error *err);
PHEMA_FALLIBLE plot_design(struct phema_picture **out, const char *path, struct phema_error *err);
PHEMA_FALLIBLE plot_scores(struct phema_picture **out, struct phema_sweep_facts *facts,
                           const char *path, bool maximizes, bool is_quiet,
                           struct phema_error *err);

#endif
