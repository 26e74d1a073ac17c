// SPDX-License-Identifier: Apache-2.0
/* cmd_report.c - a series and its averages as one page that needs nothing beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "html/html_page.h"
#include "phema/plot.h"
#include "phema/writer.h"
#include "plot_data.h"
#include "print_summary.h"

struct report_values {
    struct cli_common common;
    const char *output, *title, *scores, *memory;
    struct cli_series_values series;
    struct cli_target_values target;
    bool maximizes, is_forced;
};

/* What the page is made of, and what that is part of. */
struct page {
    struct html_report report;
    struct phema_plan *plan, *errors_plan;
    struct phema_tensor *tensors;
    struct inspect_summary summary;
    struct inspect_times times;
    struct phema_arena arena;
};

static void clear(struct page *page)
{
    html_report_clear(&page->report);
    if (page->report.summary)
        inspect_summary_clear(&page->summary);
    inspect_times_clear(&page->times);
    free(page->tensors);
    phema_plan_free(page->plan);
    phema_plan_free(page->errors_plan);
    phema_arena_clear(&page->arena);
}

/* ---- Plans ---- */

static bool has_targets(const struct cli_target_values *target)
{
    return target->sigma_rel.n || target->gamma.n || target->profile.n || target->weights;
}

static enum phema_status make_plan(struct phema_plan **out, const struct report_values *given,
                                   const struct cli_target_values *target, struct phema_error *err)
{
    struct phema_plan_options options;
    enum phema_status status =
        cli_plan_options(&options, &given->common, &given->series, target, err);
    options.series.needs_no_tensors = true; /* a manifest may have no files */
    return status ? status : phema_plan_make(out, &options, err);
}

/* Averages of all widths at the first of the times. */
static enum phema_status plan_errors(struct page *page, const struct report_values *given,
                                     struct phema_error *err)
{
    struct cli_target_values asked = given->target, target;
    asked.weights = NULL;
    asked.profile = asked.rule = (struct cli_texts){0};
    asked.at.n = asked.at.n ? 1 : 0;
    enum phema_status status = plot_error_widths(&target, &asked, &page->arena, err);
    return status ? status : make_plan(&page->errors_plan, given, &target, err);
}

static enum phema_status make_plans(struct page *page, const struct report_values *given,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (has_targets(&given->target))
        status = make_plan(&page->plan, given, &given->target, err);
    bool is_known = !page->plan || page->plan->series->has_profiles;
    if (!status && is_known)
        status = plan_errors(page, given, err);
    return status;
}

/* The page must not replace what it is made of. */
static enum phema_status claim_page(const struct page *page, const struct report_values *given,
                                    struct phema_error *err)
{
    struct phema_claims *claims = (page->plan ? page->plan : page->errors_plan)->series->claims;
    enum phema_status status = PHEMA_OK;
    if (given->scores)
        status = phema_claims_add_input(claims, given->scores, "the file of --scores", err);
    if (!status && given->memory)
        status = phema_claims_add_input(claims, given->memory, "the file of --memory", err);
    return status ? status : phema_claims_check(claims, given->output, err);
}

/* ---- Pictures ---- */

static enum phema_status take_picture(struct phema_strbuf *out, struct phema_picture *picture,
                                      enum phema_status status, struct phema_error *err)
{
    if (!status)
        status = phema_picture_write(out, picture, PHEMA_PICTURE_SVG, err);
    phema_picture_free(picture);
    return status;
}

static bool can_draw_profiles(const struct phema_plan *plan)
{
    bool is_known = plan->series->has_profiles;
    for (size_t j = 0; j < plan->m && is_known; j++)
        is_known = plan->targets[j].mix.n_parts > 0;
    return is_known;
}

static enum phema_status draw_targets(struct page *page, struct phema_error *err)
{
    struct html_report *report = &page->report;
    struct phema_plan first = *page->plan; /* the first targets: borrowed */
    struct phema_picture *picture = NULL;
    enum phema_status status = PHEMA_OK;
    report->is_cut = first.m > PHEMA_PLOT_MAX_TARGETS;
    first.m = report->is_cut ? PHEMA_PLOT_MAX_TARGETS : first.m;
    if (can_draw_profiles(&first)) {
        status = plot_targets(&picture, &first, true, err);
        status = take_picture(&report->profiles, picture, status, err);
    }
    if (status)
        return status;
    picture = NULL;
    status = plot_targets(&picture, &first, false, err);
    return take_picture(&report->weights, picture, status, err);
}

static enum phema_status draw(struct page *page, const struct report_values *given,
                              struct phema_error *err)
{
    struct phema_picture *picture = NULL;
    enum phema_status status = PHEMA_OK;
    if (page->plan)
        status = draw_targets(page, err);
    if (!status && page->errors_plan) {
        status = plot_errors(&picture, page->errors_plan, &given->target, err);
        status = take_picture(&page->report.errors, picture, status, err);
        picture = NULL;
    }
    if (!status && given->scores) {
        status =
            plot_scores(&picture, given->scores, given->maximizes, given->common.is_quiet, err);
        status = take_picture(&page->report.scores, picture, status, err);
        picture = NULL;
    }
    if (!status && given->memory) {
        status = plot_memory(&picture, given->memory, 0, err);
        status = take_picture(&page->report.memory, picture, status, err);
    }
    return status;
}

/* ---- The page ---- */

static enum phema_status summarise(struct page *page, const struct phema_series *series,
                                   struct phema_error *err)
{
    size_t n = series->n_tensors;
    page->tensors = calloc(n + 1, sizeof(*page->tensors));
    if (!page->tensors)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        page->tensors[i] = series->tensors[i].tensor;
    enum phema_status status = inspect_summarise(&page->summary, page->tensors, n, series, err);
    if (!status)
        page->report.summary = &page->summary;
    return status;
}

static enum phema_status look_at_series(struct page *page, const struct report_values *given,
                                        struct phema_error *err)
{
    struct phema_series *series = page->plan ? page->plan->series : page->errors_plan->series;
    enum phema_status status = PHEMA_OK;
    report_series(&given->common, series);
    if (page->plan)
        report_plan(&given->common, page->plan, PHEMA_F64, true);
    page->report.common = &given->common;
    page->report.plan = page->plan;
    page->report.series = series;
    page->report.times = &page->times;
    page->report.title = given->title ? given->title : series->root;
    if (series->n_tensors)
        status = phema_series_identify(series, err);
    if (!status)
        status = inspect_times_find(&page->times, series, err);
    if (!status && series->n_tensors)
        status = summarise(page, series, err);
    return status;
}

static enum phema_status write_page(const struct page *page, const struct report_values *given,
                                    struct phema_error *err)
{
    struct phema_strbuf html = {0};
    struct phema_writer *writer = NULL;
    const struct phema_writer_options options = {.replaces = given->is_forced, .syncs = true};
    html_report_write(&html, &page->report);
    enum phema_status status = phema_strbuf_check(&html, err);
    if (!status)
        status = phema_writer_open(&writer, given->output, html.size, &options, err);
    if (!status)
        status = phema_writer_put(writer, 0, html.data, html.size, err);
    if (!status)
        status = phema_writer_commit(writer, err);
    else
        phema_writer_abandon(writer);
    phema_strbuf_clear(&html);
    return status;
}

static enum phema_status print_path(const struct report_values *given, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    struct phema_json_out out = {.text = &text};
    if (given->common.is_json) {
        phema_json_out_open(&out, NULL, '{');
        phema_json_out_u64(&out, "version", 1);
        phema_json_out_path(&out, "file", given->output);
        phema_json_out_close(&out, '}');
    } else {
        cli_put_path(&text, given->output);
    }
    phema_strbuf_puts(&text, "\n");
    enum phema_status status =
        given->common.is_json ? cli_print(&text, err) : cli_print_as_is(&text, err);
    phema_strbuf_clear(&text);
    return status;
}

static enum phema_status check_output(const struct report_values *given, struct phema_error *err)
{
    if (!given->output)
        return phema_fail(err, PHEMA_ERR_USAGE, "report: no file to write; give -o FILE.html");
    if (!phema_ends_with(given->output, ".html") && !phema_ends_with(given->output, ".htm"))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--output: '%s' does not end in .html, which is what is written",
                          given->output);
    if (given->maximizes && !given->scores)
        return phema_fail(err, PHEMA_ERR_USAGE, "--maximize: is about --scores");
    return given->is_forced ? PHEMA_OK : phema_writer_check_absent(given->output, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct report_values *given = values;
    struct page page = {0};
    enum phema_status status = check_output(given, err);
    if (!status)
        status = make_plans(&page, given, err);
    if (!status)
        status = claim_page(&page, given, err);
    if (!status)
        status = look_at_series(&page, given, err);
    if (!status)
        status = draw(&page, given, err);
    if (!status)
        status = write_page(&page, given, err);
    if (!status)
        status = print_path(given, err);
    clear(&page);
    return status;
}

static const struct cli_opt rows[] = {
    CLI_SERIES_ROWS(report_values, ),
    CLI_AVERAGE_ROWS(report_values, ),
    CLI_RULE_ROW(report_values, ),
    CLI_SOLVE_ROWS(report_values, ),
    {"scores", INPUT, CLI_TEXT, CLI_ROW(report_values, scores), "FILE",
     "draw these scores of averages: the scores.csv of\nsearch, or lines of sigma_rel,score", 0, 0},
    {"memory", INPUT, CLI_TEXT, CLI_ROW(report_values, memory), "FILE",
     "draw what synth --profile-memory FILE wrote", 0, 0},
    {"maximize", NUMBERS, CLI_FLAG, CLI_ROW(report_values, maximizes), NULL,
     "the highest of the scores is the best (default: the\nlowest)", 0, 0},
    {"output", OUTPUT, CLI_TEXT, CLI_ROW(report_values, output), "FILE", "the page: .html", 0, 'o'},
    {"title", OUTPUT, CLI_TEXT, CLI_ROW(report_values, title), "TEXT",
     "what stands above it (default: SNAPSHOTS)", 0, 0},
    {"force", OUTPUT, CLI_FLAG, CLI_ROW(report_values, is_forced), NULL, "replace an existing page",
     0, 'f'},
    CLI_COMMON_ROWS(report_values),
    {0},
};

const struct cli_verb cli_report = {
    .name = "report",
    .summary = "a series and its averages as one HTML page",
    .options = rows,
    .examples = "  posthoc-ema report --sigma-rel 0.05,0.1,0.15 ckpts/ -o report.html\n"
                "      the snapshots, three averages of them, and how good those are\n"
                "  posthoc-ema report ckpts/ -o report.html\n"
                "      the snapshots, and how good averages of any width would be\n"
                "  posthoc-ema report --sigma-rel 0.12 --scores search/scores.csv ckpts/ \\\n"
                "      --title 'Run 7, FID' -o run7.html\n"
                "      what a search has found\n",
    .values_size = sizeof(struct report_values),
    .run = run,
};
