/* series_options.h - options that several verbs share: rows of their tables, and the plan options
 * made of their values. */
#ifndef CLI_SERIES_OPTIONS_H
#define CLI_SERIES_OPTIONS_H

#include "options.h"
#include "phema/plan.h"
#include "phema/render.h"

/* Options of a series and of its targets. The rows fill the options of plan.h where no conversion
 * is needed. */
struct cli_plan_values {
    struct phema_plan_options options;
    unsigned metric, checks; /* CLI_CHOICE of --metric, --checks */
    const char *ridge;
    double max_error; /* NaN: no limit */
};

/* Choices in the tables of several verbs. */
#define CLI_UNITS    "steps|images|kimg|tokens"
#define CLI_IO_MODES "auto|mmap|read|direct"

/* Rows of struct cli_common. */
extern const struct cli_opt cli_common_rows[], cli_progress_rows[];
/* Rows of struct phema_checkpoint_options. */
extern const struct cli_opt cli_pickle_rows[];
/* Rows of struct cli_plan_values: how to read snapshots; SNAPSHOTS and the same; the averages to make; the least squares alone, or
 * with --weights; all of a target, with --rule and --max-error. */
extern const struct cli_opt cli_input_rows[], cli_series_rows[], cli_average_rows[],
    cli_rule_rows[], cli_metric_rows[], cli_solve_rows[], cli_target_rows[];

/* values -> options of plan.h; borrowed from the values. */
PHEMA_FALLIBLE cli_series_options(struct phema_series_options *out,
                                  const struct cli_plan_values *values, struct phema_error *err);
PHEMA_FALLIBLE cli_plan_options(struct phema_plan_options *out, const struct cli_common *common,
                                const struct cli_plan_values *values, struct phema_error *err);

/* Widths of power functions; option: "sigma-rel". A width that does not exist gets a near one. */
PHEMA_FALLIBLE cli_check_widths(const double *widths, size_t n, const char *option,
                                struct phema_error *err);

#endif
