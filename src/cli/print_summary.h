/* print_summary.h - what people read: summaries, progress, tables. All wording of results lives
 * here. */
#ifndef CLI_PRINT_SUMMARY_H
#define CLI_PRINT_SUMMARY_H

#include "options.h"
#include "phema/json.h"
#include "phema/output.h"
#include "phema/synth.h"

/* To stderr: what was recognised and left out (unless quiet). */
void report_series(const struct cli_common *common, const struct phema_series *series);
/* To stderr: metric, and what to expect of each target. */
void report_conversion(const struct cli_common *common, const struct phema_series *series);
void report_plan(const struct cli_common *common, const struct phema_plan *plan,
                 enum phema_dtype output_dtype, bool has_dtype);
/* What named times count: kimg for EDM2, whose clock counts images. */
const char *report_named_unit(const struct phema_series *series);
/* "sigma_rel 0.1 at 4096" */
void report_target_name(struct phema_strbuf *out, const struct phema_target *target);
/* What is wrong with the weights of a target, and what would help; false: nothing is. */
bool report_write_warning(struct phema_strbuf *out, const struct phema_plan *plan,
                          const struct phema_target *target);
/* Where in the file of --into the average goes. */
void report_into(const struct cli_common *common, const char *into,
                 const struct phema_outputs *outputs);

/* ---- synth_report.c ---- */

/* To stderr: what a run has done. */
void report_synth(const struct cli_common *common, const struct phema_plan *plan,
                  const struct phema_outputs *outputs, const struct phema_synth_result *result);

/* ---- weights_report.c ---- */

/* Members "profile": what kind of average, null when nobody says it, and "spec": its text. */
void report_profile_json(struct phema_json_out *out, const char *kind, const char *spec);

/* "predicted_error": {...} */
void report_prediction_json(struct phema_json_out *out, const struct phema_prediction *predicted);

/* One snapshot of a series as a member of an array: file, time, widths. */
void report_snapshot_json(struct phema_json_out *out, const struct phema_snapshot *snapshot);

/* The JSON of weights --json, and its table. */
/* advice may be NULL */
void report_weights_json(struct phema_strbuf *out, const struct phema_plan *plan,
                         const struct phema_plan_advice *advice, double max_error);
void report_weights_table(struct phema_strbuf *out, const struct phema_plan *plan);

/* ---- progress.c ---- */

struct progress {
    enum { PROGRESS_NONE, PROGRESS_BAR, PROGRESS_PLAIN, PROGRESS_JSON } style;
    double last_s;
    bool is_utf8;
    size_t n_drawn; /* columns of the line that stands there */
};

/* auto: a bar on a terminal that can draw one, else a line every 10 s. */
void progress_init(struct progress *progress, const struct cli_common *common);
/* context: a struct progress; for synth.h */
void progress_report(void *context, const struct phema_progress *state);
/* A line in place of the bar, where there is one; NULL: none */
void progress_line(struct progress *progress, const char *text);
/* What is drawn goes; another run may begin. */
void progress_finish(struct progress *progress);

#endif
