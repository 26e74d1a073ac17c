// SPDX-License-Identifier: Apache-2.0
/* cmd_report.c - writes a series and its averages as one self-contained HTML page. */
#include "cli.h"
#include "phema/plot.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "phema/writer.h"
#include "remedy/remedy.h"
#include "shared_options.h"

struct report_values {
    struct cli_common common;
    const char *output, *title, *scores, *memory;
    struct cli_plan_values plan;
    bool maximizes, is_forced;
};

/* The contents of the page, and the objects that own them. */
struct page {
    const struct report_values *values;
    struct html_report report;
    struct phema_plan *errors_plan;
    struct phema_sweep_facts scores;
    struct phema_arena arena;
};

static const struct phema_plan *plan_of(const struct page *page)
{
    return page->report.plan ? page->report.plan : page->errors_plan;
}

static struct phema_series *series_of(const struct page *page)
{
    return plan_of(page)->series;
}

/* ---- Plans ---- */

static enum phema_status make_plan(struct phema_plan **out, const struct page *page,
                                   const struct cli_plan_values *plan, struct phema_error *err)
{
    struct phema_plan_options options;
    enum phema_status status = cli_plan_options(&options, &page->values->common, plan, err);
    options.series.needs_no_tensors = true; /* a manifest may have no files */
    return status ? status : watch_make_plan(out, &page->values->common.style, &options, err);
}

/* Averages of all widths at the first of the times. */
static enum phema_status plan_errors(struct page *page, struct phema_error *err)
{
    struct cli_plan_values plan = page->values->plan;
    struct phema_plan_options *options = &plan.options;
    options->weights_file = NULL;
    options->n_profiles = options->n_rules = 0;
    options->n_ats = options->n_ats ? 1 : 0;
    enum phema_status status = plot_error_widths(options, &page->arena, err);
    return status ? status : make_plan(&page->errors_plan, page, &plan, err);
}

static enum phema_status make_plans(struct page *page, struct phema_error *err)
{
    const struct cli_plan_values *plan = &page->values->plan;
    enum phema_status status = PHEMA_OK;
    if (cli_has_targets(&plan->options))
        status = make_plan(&page->report.plan, page, plan, err);
    bool is_known = !page->report.plan || page->report.plan->series->has_profiles;
    return status || !is_known ? status : plan_errors(page, err);
}

/* The page must not replace any of its inputs. */
static enum phema_status claim_page(struct page *page, struct phema_error *err)
{
    const struct report_values *values = page->values;
    struct phema_claims *claims = series_of(page)->claims;
    enum phema_status status = PHEMA_OK;
    if (values->scores)
        status = phema_claims_add_input(claims, values->scores, "the file of --scores", err);
    if (!status && values->memory)
        status = phema_claims_add_input(claims, values->memory, "the file of --memory", err);
    return status ? status : phema_claims_check(claims, values->output, err);
}

/* ---- Pictures ---- */

static enum phema_status draw(struct page *page, struct phema_error *err)
{
    const struct report_values *values = page->values;
    struct html_report *report = &page->report;
    struct phema_picture *picture = NULL;
    enum phema_status status = report->plan ? html_report_draw_targets(report, err) : PHEMA_OK;
    if (!status && page->errors_plan) {
        status = plot_errors(&picture, page->errors_plan, &values->plan.options, err);
        status = html_picture_embed(&report->errors, &picture, status, err);
    }
    if (!status && values->scores) {
        status = plot_scores(&picture, &page->scores, values->scores, NULL, values->maximizes,
                             values->common.style.is_quiet, err);
        report->scores_facts = &page->scores;
        status = html_picture_embed(&report->scores, &picture, status, err);
    }
    if (!status && values->memory)
        status = html_picture_embed(&report->memory, &picture,
                                    plot_memory(&picture, values->memory, 0, err), err);
    return status;
}

/* ---- The page ---- */

static enum phema_status inspect_series(struct page *page, struct phema_error *err)
{
    const struct report_values *values = page->values;
    struct phema_series *series = series_of(page);
    struct html_report *report = &page->report;
    enum phema_status status = PHEMA_OK;
    const struct phema_plan *plan = plan_of(page);
    report_series(&values->common.style, series, &plan->checks);
    if (report->plan)
        report_plan(&values->common.style, plan, PHEMA_F64, true, true);
    else
        report_doubts(&values->common.style, series, &plan->checks);
    report->command = values->common.command;
    report->command_tail = values->common.command_tail;
    report->series = series;
    report->errors_plan = page->errors_plan;
    report->title = values->title ? values->title : series->root;
    if (series->n_tensors)
        status = phema_series_identify(series, err);
    if (!status)
        status = inspect_times_find(&report->times, series, err);
    if (status || !series->n_tensors)
        return status;
    return inspect_summarise_series(&report->summary, series, err);
}

static enum phema_status write_page(struct page *page, struct phema_error *err)
{
    const struct phema_writer_options options = {.replaces = page->values->is_forced,
                                                 .syncs = true};
    struct phema_strbuf html = {0};
    html_report_write(&html, &page->report);
    return phema_writer_store(page->values->output, &html, &options, err);
}

static enum phema_status print_path(struct page *page, struct phema_error *err)
{
    const struct report_values *values = page->values;
    struct phema_strbuf text = {0};
    struct phema_json_out out;
    if (values->common.style.is_json) {
        render_json_begin(&out, &text, false);
        phema_json_out_path(&out, "file", values->output);
        report_checks_json(&out, &values->common.style, plan_of(page));
        render_json_end(&out);
    } else {
        render_write_path(&text, values->output);
        phema_strbuf_puts(&text, "\n");
    }
    return cli_print(&text, &values->common.style, err);
}

static enum phema_status check_output(struct page *page, struct phema_error *err)
{
    const struct report_values *values = page->values;
    if (!values->output)
        return cli_suggest(
            err, phema_fail(err, PHEMA_ERR_USAGE, "report: no file to write; give -o FILE.html"),
            "output", "report.html");
    if (!phema_ends_with(values->output, ".html") && !phema_ends_with(values->output, ".htm"))
        return cli_suggest(err,
                           cli_fail_option(err, PHEMA_ERR_USAGE, "output",
                                           "'%s' does not end in .html", values->output),
                           "output", "report.html");
    if (values->maximizes && !values->scores)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "maximize", "is about --scores");
    if (phema_writer_check_parent(values->output, err))
        return cli_suggest(err, PHEMA_ERR_OUTPUT, "output", "report.html");
    return phema_writer_check_place(values->output, values->is_forced, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    enum phema_status (*const steps[])(struct page *, struct phema_error *) = {
        check_output, make_plans, claim_page, inspect_series, draw, write_page, print_path};
    struct page page = {.values = values};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < ARRAY_LEN(steps) && !status; i++)
        status = steps[i](&page, err);
    html_report_clear(&page.report);
    phema_plan_free(page.errors_plan);
    phema_arena_clear(&page.arena);
    return status;
}

#define FIELD(member) offsetof(struct report_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_series_rows, FIELD(plan)),
    CLI_INCLUDE(cli_average_rows, FIELD(plan)),
    CLI_INCLUDE(cli_rule_rows, FIELD(plan)),
    CLI_INCLUDE(cli_solve_rows, FIELD(plan)),
    {"scores", INPUT, CLI_TEXT, FIELD(scores), "FILE",
     .help =
         "draw these scores of averages: the scores.csv of\nsearch, or lines of sigma_rel,score",
     .flags = CLI_EVERYDAY},
    {"memory", INPUT, CLI_TEXT, FIELD(memory), "FILE",
     .help = "draw what synth --profile-memory FILE wrote"},
    {"maximize", NUMBERS, CLI_FLAG, FIELD(maximizes),
     .help = "the highest score is the best (default: the lowest)"},
    {"output", OUTPUT, CLI_TEXT, FIELD(output), "FILE", .help = "the page: .html",
     .flags = CLI_EVERYDAY, .letter = 'o'},
    {"title", OUTPUT, CLI_TEXT, FIELD(title), "TEXT",
     .help = "heading of the page (default: SNAPSHOTS)", .flags = CLI_EVERYDAY},
    {"force", OUTPUT, CLI_FLAG, FIELD(is_forced), .help = "replace an existing page",
     .flags = CLI_EVERYDAY, .letter = 'f'},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_report = {
    .name = "report",
    .summary = "write a series and its averages as one HTML page",
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
