// SPDX-License-Identifier: Apache-2.0
/* cmd_report.c - writes a series and its averages as one self-contained HTML page. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "html/html_page.h"
#include "phema/plot.h"
#include "phema/writer.h"
#include "plot_data.h"
#include "print_summary.h"
#include "series_options.h"

struct report_values {
    struct cli_common common;
    const char *output, *title, *scores, *memory;
    struct cli_plan_values plan;
    bool maximizes, is_forced;
};

/* The contents of the page, and the objects that own them. */
struct page {
    struct html_report report;
    struct phema_plan *plan, *errors_plan;
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
    phema_plan_free(page->plan);
    phema_plan_free(page->errors_plan);
    phema_arena_clear(&page->arena);
}

/* ---- Plans ---- */

static bool has_targets(const struct phema_plan_options *options)
{
    return options->n_sigma_rels || options->n_gammas || options->n_profiles ||
           options->weights_file;
}

static enum phema_status make_plan(struct phema_plan **out, const struct report_values *given,
                                   const struct cli_plan_values *values, struct phema_error *err)
{
    struct phema_plan_options options;
    enum phema_status status = cli_plan_options(&options, &given->common, values, err);
    options.series.needs_no_tensors = true; /* a manifest may have no files */
    return status ? status : phema_plan_make(out, &options, err);
}

/* Averages of all widths at the first of the times. */
static enum phema_status plan_errors(struct page *page, const struct report_values *given,
                                     struct phema_error *err)
{
    struct cli_plan_values values = given->plan;
    struct phema_plan_options *options = &values.options;
    options->weights_file = NULL;
    options->n_profiles = options->n_rules = 0;
    options->n_ats = options->n_ats ? 1 : 0;
    enum phema_status status = plot_error_widths(options, &page->arena, err);
    return status ? status : make_plan(&page->errors_plan, given, &values, err);
}

static enum phema_status make_plans(struct page *page, const struct report_values *given,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (has_targets(&given->plan.options))
        status = make_plan(&page->plan, given, &given->plan, err);
    bool is_known = !page->plan || page->plan->series->has_profiles;
    if (!status && is_known)
        status = plan_errors(page, given, err);
    return status;
}

/* The page must not replace any of its inputs. */
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

static enum phema_status write_picture(struct phema_strbuf *out, struct phema_picture *picture,
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
        status = write_picture(&report->profiles, picture, status, err);
    }
    if (status)
        return status;
    picture = NULL;
    status = plot_targets(&picture, &first, false, err);
    return write_picture(&report->weights, picture, status, err);
}

static enum phema_status draw(struct page *page, const struct report_values *given,
                              struct phema_error *err)
{
    struct phema_picture *picture = NULL;
    enum phema_status status = PHEMA_OK;
    if (page->plan)
        status = draw_targets(page, err);
    if (!status && page->errors_plan) {
        status = plot_errors(&picture, page->errors_plan, &given->plan.options, err);
        status = write_picture(&page->report.errors, picture, status, err);
        picture = NULL;
    }
    if (!status && given->scores) {
        status =
            plot_scores(&picture, given->scores, given->maximizes, given->common.is_quiet, err);
        status = write_picture(&page->report.scores, picture, status, err);
        picture = NULL;
    }
    if (!status && given->memory) {
        status = plot_memory(&picture, given->memory, 0, err);
        status = write_picture(&page->report.memory, picture, status, err);
    }
    return status;
}

/* ---- The page ---- */

static enum phema_status inspect_series(struct page *page, const struct report_values *given,
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
    if (status || !series->n_tensors)
        return status;
    status = inspect_summarise_series(&page->summary, series, err);
    if (!status)
        page->report.summary = &page->summary;
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
        status = phema_writer_write(writer, 0, html.data, html.size, err);
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
        cli_write_path(&text, given->output);
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
        status = inspect_series(&page, given, err);
    if (!status)
        status = draw(&page, given, err);
    if (!status)
        status = write_page(&page, given, err);
    if (!status)
        status = print_path(given, err);
    clear(&page);
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
         "draw these scores of averages: the scores.csv of\nsearch, or lines of sigma_rel,score"},
    {"memory", INPUT, CLI_TEXT, FIELD(memory), "FILE",
     .help = "draw what synth --profile-memory FILE wrote"},
    {"maximize", NUMBERS, CLI_FLAG, FIELD(maximizes),
     .help = "the highest of the scores is the best (default: the\nlowest)"},
    {"output", OUTPUT, CLI_TEXT, FIELD(output), "FILE", .help = "the page: .html", .letter = 'o'},
    {"title", OUTPUT, CLI_TEXT, FIELD(title), "TEXT",
     .help = "what stands above it (default: SNAPSHOTS)"},
    {"force", OUTPUT, CLI_FLAG, FIELD(is_forced), .help = "replace an existing page",
     .letter = 'f'},
    CLI_INCLUDE(cli_common_rows, 0),
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
