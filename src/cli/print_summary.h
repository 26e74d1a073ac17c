/* print_summary.h - what verbs report of series, plans and weights, as text and as JSON;
 * progress. */
#ifndef CLI_PRINT_SUMMARY_H
#define CLI_PRINT_SUMMARY_H

#include "options.h"
#include "phema/json.h"
#include "phema/output.h"
#include "phema/synth.h"
#include "table.h"

/* To stderr: the series that was recognised, and what was left out (unless quiet). Its warnings
 * come with those of the plan, or with report_doubts. */
void report_series(const struct cli_common *common, const struct phema_series *series,
                   const struct phema_series_checks *checks);
/* To stderr: notes on the series; with -v the tensors that are copied, and why. */
void report_notes(const struct cli_common *common, const struct phema_series *series,
                  const struct phema_series_checks *checks);
/* To stderr: warnings of a series, where no targets are reported. */
void report_doubts(const struct cli_common *common, const struct phema_series *series,
                   const struct phema_series_checks *checks);
/* To stderr: warnings of elements that are NaN, infinite or too large. */
void report_elements(const struct cli_common *common, const struct phema_series *series,
                     const struct phema_synth_result *result);
/* "checks": {...} and "warnings": [...], members of the JSON of a result. */
void report_checks_json(struct phema_json_out *out, const struct cli_common *common,
                        const struct phema_plan *plan);
/* To stderr: the checkpoint that --convert writes in another format. */
void report_conversion(const struct cli_common *common, const struct phema_series *series);

/* ---- plan_summary.c ---- */

/* Larger predictions are marked with "!". */
#define REPORT_FLAGGED_ERROR 1e-3

/* To stderr: the metric where it is not the default, the errors to expect (has_errors), remarks and
 * warnings. */
void report_plan(const struct cli_common *common, const struct phema_plan *plan,
                 enum phema_dtype output_dtype, bool has_dtype, bool has_errors);
/* A cell: the error to expect, "! " before a large one. */
void report_add_error(struct table *table, double error);
/* Digits after the point that show all values as %.6g does; -1: many, or some have an exponent or
 * are NaN.
 * stride: bytes from one value to the next */
int report_decimals(const double *values, size_t n, size_t stride);

/* The unit of named times: kimg for EDM2, whose clock counts images. */
const char *report_named_unit(const struct phema_series *series);
/* fp8 tensors with scales: what is written instead, and what follows for the user. */
void report_scaled(const struct cli_common *common, const struct phema_series *series,
                   const struct phema_outputs *outputs);
/* To stderr: the subtree of --into that the average replaces. */
void report_into(const struct cli_common *common, const char *into,
                 const struct phema_outputs *outputs);

/* Members "profile", the kind of average (null when unknown), and "spec", its text. */
void report_profile_json(struct phema_json_out *out, const char *kind, const char *spec);

/* "predicted_error": {...} */
void report_prediction_json(struct phema_json_out *out, const struct phema_prediction *predicted);

/* One snapshot of a series as a member of an array: file, time, widths. */
void report_snapshot_json(struct phema_json_out *out, const struct phema_snapshot *snapshot);

/* Lines: how many tensors follow each rule, and the error to expect of them. Nothing without rules.
 */
void report_rules(struct phema_strbuf *out, const struct phema_plan *plan);

/* A member of the object of a target: "rules", an object for each, with its weights or without. */
void report_rules_json(struct phema_json_out *out, const struct phema_plan *plan,
                       const struct phema_target *target, bool has_weights);

/* Weights that are smaller are printed as 0: four digits after the point. */
#define REPORT_LEAST_WEIGHT 5e-5

/* ---- progress.c ---- */

/* The first second says little about the rate of the others. */
#define PROGRESS_KNOWN_AFTER_S 1.0

struct progress {
    enum cli_progress style; /* not auto */
    const char *label;       /* before the stage: one of several runs; NULL: none */
    double last_s;
    bool is_utf8;
    size_t n_drawn; /* columns of the line on the terminal */
    /* What is left where a signal ends the program, and its text: the handler may still read one
     * while the other is written. */
    enum progress_kept {
        PROGRESS_KEEPS_NOTHING,
        PROGRESS_WRITES_NOTHING,
        PROGRESS_KEEPS_TILES,
        PROGRESS_KEEPS_PART
    } kept;
    char farewells[2][96];
    unsigned n_farewells;
};

/* auto: a bar on a terminal that can draw one, else a line every 10 s. */
void progress_init(struct progress *progress, const struct cli_common *common);
/* context: a struct progress; for synth.h */
void progress_report(void *context, const struct phema_progress *state);
/* Replaces the bar, if one is drawn, with a line; NULL: no line. */
void progress_line(struct progress *progress, const char *text);
/* What a signal leaves behind, for the line that tells so: "stopped; nothing was written". */
void progress_set_farewell(struct progress *progress, const char *text);
/* Erases the bar; another run may begin. */
void progress_finish(struct progress *progress);

/* ---- plan_watch.c ---- */

/* Shows a stage and its time on stderr when it takes longer than a second, from a thread of its
 * own. NULL without memory, which the others take. Nothing else may print until it is stopped. */
struct cli_watch *cli_watch_start(const struct cli_common *common, const char *stage);
void cli_watch_begin_stage(struct cli_watch *watch, const char *stage);
/* How far the stage is: a bar and the time left. */
void cli_watch_advance(struct cli_watch *watch, uint64_t done_bytes, uint64_t total_bytes);
void cli_watch_stop(struct cli_watch *watch);

/* phema_plan_make, which shows what it does when that takes longer than a second. */
PHEMA_FALLIBLE cli_make_plan(struct phema_plan **out, const struct cli_common *common,
                             const struct phema_plan_options *options, struct phema_error *err);

#endif
