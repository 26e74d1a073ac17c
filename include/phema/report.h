/* report.h - what verbs report of series, plans and weights, as text and as JSON. */
#ifndef PHEMA_REPORT_H
#define PHEMA_REPORT_H

#include "phema/output.h"
#include "phema/render.h"
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
/* To stderr: warnings of elements that are NaN, infinite or too large. */
void report_elements(const struct render_style *style, const struct phema_series *series,
                     const struct phema_synth_result *result);
/* "checks": {...} and "warnings": [...], members of the JSON of a result. */
void report_checks_json(struct phema_json_out *out, const struct render_style *style,
                        const struct phema_plan *plan);
/* To stderr: the checkpoint that --convert writes in another format. */
void report_conversion(const struct render_style *style, const struct phema_series *series);

/* ---- report_plan.c ---- */

/* Larger predictions are marked with "!". */
#define REPORT_FLAGGED_ERROR 1e-3

/* To stderr: the metric where it is not the default, the errors to expect (has_errors), remarks and
 * warnings. */
void report_plan(const struct render_style *style, const struct phema_plan *plan,
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
void report_scaled(const struct render_style *style, const struct phema_series *series,
                   const struct phema_outputs *outputs);
/* To stderr: the subtree of --into that the average replaces. */
void report_into(const struct render_style *style, const char *into,
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

#endif
