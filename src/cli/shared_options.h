/* shared_options.h - options that several verbs share: rows of their tables, and what their values
 * ask for. */
#ifndef CLI_SHARED_OPTIONS_H
#define CLI_SHARED_OPTIONS_H

#include "options.h"
#include "phema/ops.h"
#include "phema/plan.h"

/* ---- series_options.c ---- */

/* Options of a series and of its targets. The rows fill the options of plan.h where no conversion
 * is needed. */
struct cli_plan_values {
    struct phema_plan_options options;
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
/* Rows of struct cli_plan_values: which tensors to read; how to read snapshots; SNAPSHOTS and the
 * same; the averages to make; rules; the least squares alone, or with --weights; all of a target,
 * with --max-error. */
extern const struct cli_opt cli_tensor_rows[], cli_input_rows[], cli_series_rows[],
    cli_average_rows[], cli_rule_rows[], cli_metric_rows[], cli_solve_rows[], cli_target_rows[];

/* values -> options of plan.h; borrowed from the values. */
PHEMA_FALLIBLE cli_series_options(struct phema_series_options *out,
                                  const struct cli_plan_values *values, struct phema_error *err);
PHEMA_FALLIBLE cli_plan_options(struct phema_plan_options *out, const struct cli_common *common,
                                const struct cli_plan_values *values, struct phema_error *err);

/* Whether averages were asked for. */
bool cli_has_targets(const struct phema_plan_options *options);

/* Widths of power functions; option: "sigma-rel". A width that does not exist gets a near one. */
PHEMA_FALLIBLE cli_check_widths(const double *widths, size_t n, const char *option,
                                struct phema_error *err);

/* The numbers of a range of widths, "0.02:0.25", or a list of widths, as option gives them.
 *   list  out: empty of a range */
PHEMA_FALLIBLE cli_parse_range(double range[2], struct cli_reals *list, struct phema_arena *arena,
                               const char *option, const char *text, struct phema_error *err);

/* Prints the result and clears the text: JSON, or lines in which paths have their own bytes. */
PHEMA_FALLIBLE cli_print(struct phema_strbuf *text, const struct render_style *style,
                         struct phema_error *err);

/* ---- error.c ---- */

/* The error on stderr, and its remedy on a line of its own. */
void cli_say_error(const struct phema_error *err);
/* The same as a member "error": {"status": 4, "message": "...", "try": "..." or null} */
void cli_write_error(struct phema_json_out *out, const struct phema_error *err,
                     enum phema_status status);

/* ---- run_options.c: the options that synth, plan and search share ---- */

#define CLI_DTYPE_SAME 1

/* The rows fill the options of output.h and synth.h where a value needs no conversion. */
struct cli_run_values {
    struct cli_plan_values plan;
    struct phema_outputs_options outputs;
    struct phema_synth_options synth;
    unsigned dtype;      /* CLI_CHOICE: auto, same (CLI_DTYPE_SAME), f32, f16, bf16 */
    unsigned accumulate; /* CLI_CHOICE of CLI_PRECISIONS */
    const char *device, *gpu_memory;
    uint64_t threads, level;
};

#define CLI_PRECISIONS "auto|f64|f32"

/* Rows of struct cli_run_values: snapshots, targets and --convert; OUT; how files are written, and
 * read for that; the same and how averages are made, whatever they are of. */
extern const struct cli_opt cli_run_rows[], cli_out_rows[], cli_file_rows[], cli_make_rows[];

struct cli_synth_values {
    struct cli_common common;
    struct cli_run_values run;
    const char *profile_memory, *part;
    bool skips_existing, updates, publishes;
};

/* values -> what ops are asked for; borrowed from the values. */
PHEMA_FALLIBLE cli_read_request(struct phema_request *out, const struct cli_common *common,
                                const struct cli_run_values *values, struct phema_error *err);

/* PHEMA_ERR_OUTPUT  there are several SNAPSHOTS, and OUT is another one: it was forgotten */
PHEMA_FALLIBLE cli_check_last(const struct cli_common *common, const struct phema_request *request,
                              struct phema_error *err);

/* Commands of the verb synth, which are compared with values. Borrows both.
 * values: NULL where nothing is compared */
struct cli_commands {
    struct phema_commands commands; /* the context is this struct */
    const struct cli_verb *synth;
    const struct cli_run_values *values;
};
void cli_commands_init(struct cli_commands *out, const struct cli_verb *synth,
                       const struct cli_run_values *values);

/* ---- part_option.c: --part of synth ---- */

/* With auto, a launcher starts the same command many times: each process makes its part, and the
 * one that finds all parts done joins them. */

/* Sets the part, the number of parts and joins. part: NULL for none. PHEMA_ERR_USAGE: not I/N with
 * I from 1 to N; no launcher, or several that disagree; several processes without --part. */
PHEMA_FALLIBLE cli_read_part(struct phema_synthesis *synthesis, const char *part,
                             const struct cli_common *common, struct phema_error *err);

/* PHEMA_ERR_USAGE: an option that the processes of a team cannot have. */
PHEMA_FALLIBLE cli_check_team(const struct cli_synth_values *args, struct phema_error *err);

#endif
