// SPDX-License-Identifier: Apache-2.0
/* search.c - messages of a search while it runs, and its result. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"
#include "phema/progress.h"
#include "phema/terminal.h"

/* Shorter commands are not worth a word. */
#define TOLD_AFTER_S 10

/* Lines shown of a command that failed. */
#define LINES_SHOWN 10

static const char *score_format(struct phema_name_buffer *buffer, double score)
{
    (void)snprintf(buffer->text, sizeof(buffer->text), "%.6g", score);
    return buffer->text;
}

static size_t count(const struct searching *searching)
{
    return phema_journal_count(searching->journal, &searching->search);
}

static bool find_best(struct phema_search_best *best, const struct searching *searching)
{
    return phema_journal_find_best(best, searching->journal, &searching->search);
}

static const char *place_name(const struct searching *searching)
{
    return searching->options->line ? "lambda" : "sigma_rel";
}

/* "0.1", or "newest": the newest snapshot as it is */
static const char *candidate_format(struct phema_name_buffer *buffer,
                                    const struct phema_search_point *at)
{
    if (!phema_search_is_newest(*at))
        return phema_number_format(buffer, at->sigma_rel);
    (void)snprintf(buffer->text, sizeof(buffer->text), PHEMA_TARGET_NEWEST);
    return buffer->text;
}

/* "sigma_rel 0.1", with the time if there are several. */
static void write_point(struct phema_strbuf *out, const struct searching *searching,
                        const struct phema_search_point *at)
{
    struct phema_name_buffer width, time;
    bool is_newest = phema_search_is_newest(*at);
    phema_strbuf_printf(out, "%s%s%s", is_newest ? "" : place_name(searching), is_newest ? "" : " ",
                        candidate_format(&width, at));
    if (searching->search.n_times > 1)
        phema_strbuf_printf(out, " at %s", phema_number_format(&time, at->time));
}

/* What a signal leaves: the scores in the journal. */
static void tell_farewell(struct search_shown *shown, const struct searching *searching)
{
    size_t n = count(searching);
    (void)snprintf(shown->farewell, sizeof(shown->farewell),
                   "%zu score%s kept; run the same command to continue", n, n == 1 ? "" : "s");
    shown->shown.farewell = shown->shown.progress.farewell = shown->farewell;
    progress_set_farewell(&shown->shown.progress, "");
}

static void start(void *context, const struct searching *searching, bool was_cut)
{
    struct search_shown *shown = context;
    tell_farewell(shown, searching);
    if (shown->shown.style.is_quiet)
        return;
    if (was_cut)
        render_say("%s: its last line was cut short, and is left out; its average is scored again",
                   searching->options->scores_path);
    size_t n = count(searching);
    if (n)
        render_say("%s: continuing after %zu score%s", searching->options->scores_path, n,
                   n == 1 ? "" : "s");
    const double *widths = searching->search.widths;
    render_say("%s %g to %g, at most %llu scores", searching->options->line ? "lambda" : "widths",
               widths[0], widths[searching->search.n_widths - 1],
               (unsigned long long)searching->options->most);
}

/* Rows come one by one, so that their columns have fixed widths. time, note: NULL for none */
static void say_row(const char *number, const char *width, const char *time, const char *score,
                    const char *note)
{
    struct phema_strbuf text = {0};
    phema_strbuf_printf(&text, "%3s  %9s", number, width);
    if (time)
        phema_strbuf_printf(&text, "  %9s", time);
    phema_strbuf_printf(&text, "  %11s", score);
    if (note)
        phema_strbuf_printf(&text, "  %s", note);
    render_say_text(&text);
}

/* "best", "took 2 min 05 s", and the reasons to doubt a score. */
static void write_note(struct phema_strbuf *out, const struct searching *searching,
                       const struct phema_search_score *score)
{
    struct phema_name_buffer took;
    struct phema_search_best best;
    if (find_best(&best, searching) && phema_search_point_equals(best.score->at, score->at))
        phema_strbuf_puts(out, "best");
    if (score->seconds >= TOLD_AFTER_S)
        phema_strbuf_printf(out, "%stook %s", out->size ? ", " : "",
                            terminal_duration(&took, score->seconds));
    if (!isfinite(score->score))
        phema_strbuf_printf(out, "%scounts as the worst", out->size ? ", " : "");
    if (score->predicted_error > 1e-2)
        phema_strbuf_printf(out, "%s! error expected %.0e", out->size ? ", " : "",
                            score->predicted_error);
}

static void show_score(void *context, const struct searching *searching,
                       const struct phema_search_score *score)
{
    struct search_shown *shown = context;
    struct phema_name_buffer value, width, time;
    char number[24];
    tell_farewell(shown, searching);
    if (shown->shown.style.is_quiet)
        return;
    bool has_times = searching->search.n_times > 1;
    if (!shown->has_heading)
        say_row("#", place_name(searching), has_times ? "time" : NULL, "score", NULL);
    shown->has_heading = true;
    struct phema_strbuf note = {0};
    write_note(&note, searching, score);
    (void)snprintf(number, sizeof(number), "%zu", count(searching));
    say_row(number, candidate_format(&width, &score->at),
            has_times ? phema_number_format(&time, score->at.time) : NULL,
            score_format(&value, score->score), note.data);
    phema_strbuf_clear(&note);
}

/* Of the newest snapshot, which is no average, sigma_rel or lambda is null. */
static void write_point_json(struct phema_json_out *out, const struct searching *searching,
                             const struct phema_search_point *at)
{
    bool is_newest = phema_search_is_newest(*at);
    phema_json_out_number(out, place_name(searching), is_newest ? PHEMA_UNKNOWN : at->sigma_rel);
    phema_json_out_bool(out, "is_newest", is_newest);
    phema_json_out_number(out, "time", at->time);
}

static void report_wait_json(const struct searching *searching, double elapsed_s)
{
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_u64(&out, "evaluation", count(searching) + 1);
    phema_json_out_u64(&out, "evaluations", searching->options->most);
    write_point_json(&out, searching, &searching->scored_at);
    phema_json_out_number(&out, "elapsed_seconds", elapsed_s);
    phema_json_out_close(&out, '}');
    render_say_text(&text);
}

/* "pass 3, scores 9 to 12 of 23": passes are counted only, because scores decide how many
 * follow. */
static void name_pass(void *context, const struct searching *searching, size_t n, bool is_again)
{
    struct search_shown *shown = context;
    char *label = shown->pass_label, last[32] = "";
    size_t first = count(searching) + 1;
    if (n > 1)
        (void)snprintf(last, sizeof(last), " to %zu", first + n - 1);
    if (is_again)
        (void)snprintf(label, sizeof(shown->pass_label), "the best average");
    else
        (void)snprintf(label, sizeof(shown->pass_label), "pass %zu, score%s %zu%s of %llu",
                       searching->n_passes + 1, n > 1 ? "s" : "", first, last,
                       (unsigned long long)searching->options->most);
    shown->shown.label = label;
}

static void check(void *context, const struct phema_plan *plan)
{
    const struct search_shown *shown = context;
    report_series(&shown->shown.style, plan->series, &plan->checks);
    if (plan->checks.verdict != PHEMA_SERIES_WRONG || shown->accepts_wrong)
        report_doubts(&shown->shown.style, plan->series, &plan->checks);
}

static void warn_of_elements(void *context, const struct phema_series *series,
                             const struct phema_synth_result *result)
{
    const struct search_shown *shown = context;
    report_elements(&shown->shown.style, series, result);
}

/* A JSON line every second, or a replacement for the bar. */
static void wait(void *context, const struct searching *searching, double elapsed_s)
{
    struct search_shown *shown = context;
    struct progress *progress = &shown->shown.progress;
    if (progress->style == PROGRESS_JSON && elapsed_s - progress->last_s >= 1) {
        progress->last_s = elapsed_s;
        report_wait_json(searching, elapsed_s);
    }
    if (progress->style != PROGRESS_BAR)
        return;
    struct phema_name_buffer took, value, width;
    struct phema_search_best best;
    struct phema_strbuf text = {0};
    if (searching->n_passes)
        phema_strbuf_printf(&text, "pass %zu, ", searching->n_passes);
    phema_strbuf_printf(&text, "score %zu of %llu, ", count(searching) + 1,
                        (unsigned long long)searching->options->most);
    write_point(&text, searching, &searching->scored_at);
    phema_strbuf_printf(&text, ": the command runs, %s", terminal_duration(&took, elapsed_s));
    if (find_best(&best, searching))
        phema_strbuf_printf(&text, "; best %s at %s", score_format(&value, best.score->score),
                            candidate_format(&width, &best.score->at));
    if (!text.is_failed)
        progress_line(progress, text.data);
    progress_set_farewell(progress, ""); /* on a line of its own */
    phema_strbuf_clear(&text);
}

/* Shows the last lines of the command's output, unless they were shown already. */
static void show_failure(void *context, const struct phema_command_result *result)
{
    const struct search_shown *shown = context;
    const struct phema_strbuf *said = result->errors.size ? &result->errors : &result->output;
    if (!said->size || shown->shown.style.is_verbose)
        return;
    size_t size = said->size, n = 0;
    while (size && strchr("\n\r\t ", said->data[size - 1]))
        size--;
    size_t first = size;
    while (first && (said->data[first - 1] != '\n' || ++n < LINES_SHOWN))
        first--;
    struct phema_span rest = {(const uint8_t *)said->data + first, size - first};
    while (rest.size) {
        struct phema_span line = phema_span_split(&rest, '\n');
        render_say("  | %.*s", (int)line.size, (const char *)line.data);
    }
}

/* Where the best width lies among the scored ones. */
static void write_between(struct phema_strbuf *out, const struct searching *searching,
                          const struct phema_search_best *best)
{
    struct phema_name_buffer below, above, from, to;
    const char *low = phema_number_format(&below, best->below);
    const char *high = phema_number_format(&above, best->above);
    bool has_noise = searching->search.noise > 0;
    if (best->is_flat)
        phema_strbuf_puts(out, " (all scores are equal)");
    else if (best->equal_from < best->equal_to)
        phema_strbuf_printf(
            out, " (%s to %s %s%s)", phema_number_format(&from, best->equal_from),
            phema_number_format(&to, best->equal_to),
            has_noise ? "are equally good within the noise" : "have equal scores",
            has_noise || best->is_settled ? "" : "; more --evaluations may find a better one");
    else if (isnan(best->below) || isnan(best->above))
        phema_strbuf_printf(out, " (the %s end of --%s; a better one may lie beyond)",
                            isnan(best->below) ? "lower" : "upper",
                            searching->options->line ? "lambda" : "sigma-rel");
    else if (best->is_settled)
        phema_strbuf_printf(out, " (%s and %s beside it are worse)", low, high);
    else
        phema_strbuf_printf(
            out, " (the optimum lies between %s and %s; more --evaluations find it)", low, high);
}

/* The best candidate, and the best width where that is another one. */
static void write_best(struct phema_strbuf *out, const struct searching *searching,
                       const struct phema_search_best *best)
{
    struct phema_name_buffer value;
    phema_strbuf_puts(out, "best ");
    write_point(out, searching, &best->score->at);
    if (best->score == best->newest)
        phema_strbuf_printf(out, ", the snapshot %s as it is", searching->newest);
    phema_strbuf_printf(out, ", score %s", score_format(&value, best->score->score));
    if (best->width && best->score != best->width) {
        phema_strbuf_puts(out, "; best average ");
        write_point(out, searching, &best->width->at);
        phema_strbuf_printf(out, ", score %s", score_format(&value, best->width->score));
    }
    if (best->width)
        write_between(out, searching, best);
    if (best->is_newest_equal && best->score == best->newest)
        phema_strbuf_puts(out, "; newest is as good within the noise");
    else if (best->is_newest_equal && !best->is_flat)
        phema_strbuf_printf(out, "; newest, the snapshot %s, %s", searching->newest,
                            searching->search.noise > 0 ? "is as good within the noise"
                                                        : "has the same score");
}

/* Scores of averages that differ by less than their error do not tell widths apart. */
static void warn_of_errors(const struct render_style *style, const struct searching *searching)
{
    const struct comparison *compared = &searching->compared;
    struct phema_name_buffer at, other;
    if (compared->warning.data && !compared->warning.is_failed)
        render_warn(style, "%s", compared->warning.data);
    if (!(compared->predicted_error > compared->distance))
        return;
    if (compared->distance == 0)
        render_warn(style, "%s and %s are the same average: the scores do not tell them apart",
                    candidate_format(&at, &compared->at),
                    candidate_format(&other, &compared->other));
    else
        render_warn(style,
                    "%s and %s differ by %.1e, less than the error expected of %.1e: the scores do "
                    "not tell them apart",
                    candidate_format(&at, &compared->at),
                    candidate_format(&other, &compared->other), compared->distance,
                    compared->predicted_error);
}

/* Warnings from before the scores may have left the screen. */
void search_report_end(const struct render_style *style, const struct searching *searching)
{
    struct phema_search_best best;
    if (!find_best(&best, searching))
        return;
    struct phema_strbuf text = {0};
    write_best(&text, searching, &best);
    phema_strbuf_printf(&text, "; %zu score%s in %zu pass%s", searching->n_evaluated,
                        searching->n_evaluated == 1 ? "" : "s", searching->n_passes,
                        searching->n_passes == 1 ? "" : "es");
    if (!style->is_quiet)
        render_say_text(&text);
    phema_strbuf_clear(&text);
    render_repeat_warnings(style);
    warn_of_errors(style, searching);
}

static void write_score_json(struct phema_json_out *out, const struct searching *searching,
                             const char *key, const struct phema_search_score *score,
                             const char *file)
{
    phema_json_out_open(out, key, '{');
    write_point_json(out, searching, &score->at);
    phema_json_out_number(out, "score", score->score);
    phema_json_out_number(out, "seconds", score->seconds);
    phema_json_out_number(out, "predicted_error", score->predicted_error);
    if (key)
        phema_json_out_path(out, "file", file);
    phema_json_out_close(out, '}');
}

/* The best width, those that are as good, and how far apart averages are. */
static void write_precision_json(struct phema_json_out *out, const struct searching *searching,
                                 const struct phema_search_best *best)
{
    const struct comparison *compared = &searching->compared;
    if (best->width)
        write_score_json(out, searching, "best_width", best->width,
                         best->width == best->score ? searching->best_path : NULL);
    else
        phema_json_out_null(out, "best_width");
    phema_json_out_number(out, "equal_from", best->equal_from);
    phema_json_out_number(out, "equal_to", best->equal_to);
    phema_json_out_bool(out, "is_newest_equal", best->is_newest_equal);
    if (isnan(compared->distance)) {
        phema_json_out_null(out, "nearest");
        return;
    }
    phema_json_out_open(out, "nearest", '{');
    write_point_json(out, searching, &compared->other);
    phema_json_out_number(out, "distance", compared->distance);
    phema_json_out_number(out, "predicted_error", compared->predicted_error);
    phema_json_out_close(out, '}');
}

static void write_json(struct phema_strbuf *text, const struct render_style *style,
                       const struct searching *searching, const struct phema_search_best *best)
{
    struct phema_json_out out;
    size_t n = 0;
    const struct phema_search_score *scores = phema_journal_scores(searching->journal, &n);
    render_json_begin(&out, text, true);
    write_score_json(&out, searching, "best", best->score, searching->best_path);
    phema_json_out_bool(&out, "is_settled", best->is_settled);
    phema_json_out_number(&out, "below", best->below);
    phema_json_out_number(&out, "above", best->above);
    write_precision_json(&out, searching, best);
    phema_json_out_path(&out, "newest", searching->newest);
    phema_json_out_u64(&out, "evaluations", searching->n_evaluated);
    phema_json_out_u64(&out, "passes", searching->n_passes);
    phema_json_out_path(&out, "scores_file", searching->options->scores_path);
    phema_json_out_open(&out, "scores", '[');
    for (size_t i = 0; i < n; i++)
        write_score_json(&out, searching, NULL, &scores[i], NULL);
    phema_json_out_close(&out, ']');
    report_recognised_json(&out, &searching->labels);
    phema_series_checks_write(&out, &searching->checks, &searching->labels);
    render_write_warnings(&out, style);
    render_json_end(&out);
}

/* One line for `read -r sigma_rel time score path`. */
void search_write(struct phema_strbuf *out, const struct render_style *style,
                  const struct searching *searching)
{
    struct phema_search_best best;
    if (!find_best(&best, searching))
        return;
    if (style->is_json) {
        write_json(out, style, searching, &best);
        return;
    }
    const struct phema_search_score *score = best.score;
    struct phema_name_buffer width, time, value;
    phema_strbuf_printf(out, "%s %s %s", candidate_format(&width, &score->at),
                        phema_number_format(&time, score->at.time),
                        phema_number_format(&value, score->score));
    if (searching->best_path) {
        phema_strbuf_puts(out, " ");
        render_write_path(out, searching->best_path);
    }
    phema_strbuf_puts(out, "\n");
}

void search_show(struct search_shown *out, struct search_listener *listener,
                 const struct render_style *style, bool accepts_wrong)
{
    *out = (struct search_shown){.accepts_wrong = accepts_wrong};
    render_listen(&out->shown, style);
    *listener = (struct search_listener){.heard = out->shown.heard,
                                         .checked = check,
                                         .started = start,
                                         .passing = name_pass,
                                         .synthesised = warn_of_elements,
                                         .waiting = wait,
                                         .scored = show_score,
                                         .failed = show_failure};
}

void search_hide(struct search_shown *shown)
{
    shown->shown.progress.farewell = NULL;
    progress_finish(&shown->shown.progress);
}
