/* report.h - what verbs report of series, plans and weights, as text, JSON, pictures and HTML. */
#ifndef PHEMA_REPORT_H
#define PHEMA_REPORT_H

#include "phema/design_question.h"
#include "phema/inspect.h"
#include "phema/output.h"
#include "phema/plot.h"
#include "phema/progress.h"
#include "phema/searching.h"
#include "phema/synth.h"

/* To stderr: the series that was recognised, and what was left out (unless quiet). Its warnings
 * come with those of the plan, or with report_doubts. */
void report_series(const struct render_style *style, const struct phema_series *series,
                   const struct phema_series_checks *checks);
/* To stderr: notes on the series; with -v the tensors that are copied, and why. */
void report_notes(const struct render_style *style, const struct phema_series *series,
                  const struct phema_series_checks *checks);
/* To stderr: warnings of a series, where no targets are reported. */
void report_doubts(const struct render_style *style, const struct phema_series *series,
                   const struct phema_series_checks *checks);
/* The same, "checks": {...} and "warnings": [...], members of the JSON of a result. */
void report_checks_json(struct phema_json_out *out, const struct render_style *style,
                        const struct phema_plan *plan);
/* To stderr: the checkpoint that --convert writes in another format. */
void report_conversion(const struct render_style *style, const struct phema_series *series);

/* ---- report_plan.c ---- */

/* Larger predictions are marked with "!"; smaller errors, relative to the norm of the parameters, are
 * good enough for most uses. */
#define REPORT_FLAGGED_ERROR 1e-3

/* To stderr: the metric where it is not the default, the errors to expect (has_errors), remarks and
 * warnings. */
void report_plan(const struct render_style *style, const struct phema_plan *plan,
                 enum phema_dtype output_dtype, bool has_dtype, bool has_errors);

/* fp8 tensors with scales: what is written instead, and what follows for the user. */
void report_scaled(const struct render_style *style, const struct phema_series *series,
                   const struct phema_outputs *outputs);
/* To stderr: the subtree of --into that the average replaces. */
void report_into(const struct render_style *style, const char *into,
                 const struct phema_outputs *outputs);

/* Weights that are smaller are printed as 0: four digits after the point. */
#define REPORT_LEAST_WEIGHT 5e-5

/* ---- inspect_series.c ---- */

/* To stderr: notes on the series, and its warnings. */
void inspect_report_series(const struct render_style *style, const struct inspect_findings *found);
/* is_verbose: every snapshot, and the sums over tensors. next: a command to go on with, or NULL. The
 * text is printed as it is. is_inner: of several operands. */
void inspect_write_series(struct phema_strbuf *out, const struct inspect_findings *found,
                          const char *next, bool is_verbose);
void inspect_write_series_json(struct phema_json_out *out, const struct render_style *style,
                               const struct inspect_findings *found, bool is_inner);

/* ---- inspect_tensors.c ---- */

/* The summary is of the checkpoint's tensors, or of the series'. */
void inspect_write_checkpoint(struct phema_strbuf *out, const struct phema_checkpoint *checkpoint,
                              const struct inspect_summary *summary);
void inspect_write_checkpoint_json(struct phema_json_out *out, const struct render_style *style,
                                   const struct phema_checkpoint *checkpoint,
                                   const struct inspect_summary *summary, bool is_inner);

/* ---- design_report.c ---- */

void design_write_text(struct phema_strbuf *out, const struct design_answer *answer);
void design_write_json(struct phema_strbuf *out, const struct render_style *style,
                       const struct design_answer *answer);
/* The chosen design alone, as -o writes it. */
void design_write_file(struct phema_strbuf *out, const struct design_answer *answer);

/* ---- search.c ---- */

/* Shows a search while it runs; the listener borrows it. */
struct search_shown {
    struct render_listener shown;
    char pass_label[64]; /* of the bar while candidates are made */
    char farewell[64];   /* also of the listener of passes */
    bool has_heading;    /* of the table of scores */
    bool accepts_wrong;
};
void search_show(struct search_shown *out, struct search_listener *listener,
                 const struct render_style *style, bool accepts_wrong);
/* From here on a signal leaves nothing to tell. */
void search_hide(struct search_shown *shown);
/* To stderr: the best candidate, and warnings so far. */
void search_report_end(const struct render_style *style, const struct searching *searching);
void search_write(struct phema_strbuf *out, const struct render_style *style,
                  const struct searching *searching);

/* ---- weights.c ---- */

/* To stderr: how many snapshots could be deleted, and how often to save. */
void report_advice(const struct render_style *style, const struct phema_plan *plan,
                   const struct phema_plan_advice *advice, double max_error);
/* The files to delete; those to keep with -v only. */
void weights_write_advice(struct phema_strbuf *out, const struct phema_plan *plan,
                          const struct phema_plan_advice *advice, bool is_verbose);
/* advice: NULL for none */
void weights_write_json(struct phema_strbuf *out, const struct render_style *style,
                        const struct phema_plan *plan, const struct phema_plan_advice *advice,
                        double max_error);
void weights_write_table(struct phema_strbuf *out, const struct phema_plan *plan, bool is_verbose);

/* ---- forecast.c ---- */

/* One of the processes that share the run (posthoc-ema-mpi, --part auto). */
struct forecast_share {
    uint64_t n_processes, n_shares; /* runs of the outputs, or outputs */
    uint64_t read_bytes, write_bytes, n_opens;
    double seconds;
};

struct forecast_report {
    const struct render_style *style;
    const struct phema_plan *plan;
    const struct phema_outputs *outputs;
    const struct phema_forecast *forecast;
    const struct inspect_summary *summary;
    bool has_out;                /* OUT is on the command line */
    struct forecast_share share; /* of 0 processes: not asked for */
};
void forecast_write_text(struct phema_strbuf *out, const struct forecast_report *report,
                         bool is_verbose);
void forecast_write_json(struct phema_strbuf *out, const struct forecast_report *report);

/* ---- run.c ---- */

/* The outputs: paths, but of a part none; or JSON. */
void run_write(struct phema_strbuf *out, const struct render_style *style,
               const struct phema_synthesis *synthesis);
/* To stderr: outputs, bytes, seconds, memory; and how to join parts. */
void report_run(const struct render_style *style, const struct phema_synthesis *synthesis);
/* To stderr: the device that computed the sums, and why it was chosen. */
void report_device(const struct render_style *style, const struct phema_device_choice *choice,
                   bool is_asked);
/* To stderr: a table of the memory of each stage; stages whose memory grew all through. */
void report_memory(struct phema_memory_profile *profile);
void report_leaks(struct phema_memory_profile *profile);

/* ---- plot_data.c: pictures of plans and of files that other verbs have written ---- */

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
/* is_quiet: skipped lines are not reported. */
PHEMA_FALLIBLE plot_memory(struct phema_picture **out, const char *path, uint64_t max_ram,
                           struct phema_error *err);
PHEMA_FALLIBLE plot_design(struct phema_picture **out, const char *path, struct phema_error *err);
PHEMA_FALLIBLE plot_scores(struct phema_picture **out, struct phema_sweep_facts *facts,
                           const char *path, const char *label, bool maximizes, bool is_quiet,
                           struct phema_error *err);

/* ---- html_page.c: a series and its averages as one page ---- */

/* A picture as SVG, for a desk and for a phone. Empty texts: none. */
struct html_picture {
    struct phema_strbuf wide, narrow;
};

/* The contents of the page. */
struct html_report {
    const char *command, *command_tail;   /* of the page: the verb, and its words */
    struct phema_plan *plan;              /* of the targets; NULL: none */
    const struct phema_plan *errors_plan; /* of widths in ascending order; borrowed; NULL: none */
    const struct phema_sweep_facts *scores_facts; /* NULL: no scores */
    const struct phema_series *series;
    struct inspect_summary summary; /* of no tensor where no file is open */
    struct inspect_times times;
    const char *title;
    struct html_picture profiles, more_profiles; /* of the first target, and of the others */
    struct html_picture weights, errors, scores, memory;
    bool is_cut; /* pictures have the first targets only */
};

/* Writes the picture, unless drawing it has failed with this status; frees it. */
PHEMA_FALLIBLE html_picture_embed(struct html_picture *out, struct phema_picture **picture,
                                  enum phema_status status, struct phema_error *err);
/* Draws profiles and weights of the plan's first targets. */
PHEMA_FALLIBLE html_report_draw_targets(struct html_report *report, struct phema_error *err);
/* The same report gives the same bytes. */
void html_report_write(struct phema_strbuf *out, const struct html_report *report);
void html_report_clear(struct html_report *report);

/* ---- comparisons.c ---- */

void comparison_write_json(struct phema_strbuf *text, const struct phema_comparison *comparison,
                           bool is_equal);
/* A line for each tensor that differs, worst first; is_verbose: for every tensor. */
PHEMA_FALLIBLE comparison_write_table(struct phema_strbuf *out,
                                      const struct phema_comparison *comparison, bool is_verbose,
                                      struct phema_error *err);
void verification_write_json(struct phema_json_out *json, const struct render_style *style,
                             const struct phema_verifying *verifying);
void verification_write_text(struct phema_strbuf *text, const struct phema_verifying *verifying);

/* Prints the elements of a tensor: C order, little-endian.
 * PHEMA_ERR_OUTPUT  not all of them could be written */
PHEMA_FALLIBLE render_print_elements(const struct phema_checkpoint *checkpoint,
                                     const struct phema_tensor *tensor, struct phema_error *err);

/* ---- Files of pictures ---- */

struct picture_files {
    const char *paths[2];
    enum phema_picture_format formats[2];
    struct phema_writer *writers[2];
    size_t n;
};

/* PHEMA_ERR_OUTPUT  one of them is an input of the series, or the file that is drawn */
PHEMA_FALLIBLE picture_files_claim(const struct picture_files *files, struct phema_claims *claims,
                                   struct phema_error *err);
PHEMA_FALLIBLE picture_files_check(const struct picture_files *files, const char *path,
                                   struct phema_error *err);
/* All are complete before the first one is published. */
PHEMA_FALLIBLE picture_files_write(struct picture_files *files, const struct phema_picture *picture,
                                   bool replaces, struct phema_error *err);

#endif
