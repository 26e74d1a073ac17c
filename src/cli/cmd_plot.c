// SPDX-License-Identifier: Apache-2.0
/* cmd_plot.c - draws a series and its averages, the memory of a run, scores, or a design. */
#include <string.h>

#include "cli.h"
#include "phema/json.h"
#include "phema/path.h"
#include "phema/plot.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "phema/writer.h"
#include "remedy/remedy.h"
#include "shared_options.h"

struct plot_values {
    struct cli_common common;
    const char *kind, *output, *csv, *title, *label;
    struct cli_plan_values plan;
    uint64_t max_ram;
    bool maximizes, is_forced;
};

#define KINDS "profiles|weights|error|memory|sweep|design"
enum kind { PROFILES, WEIGHTS, ERROR, MEMORY, SWEEP, DESIGN };

/* ---- Options of each kind ---- */

static bool is_known_to(enum kind kind, const struct cli_opt *option)
{
    if (strcmp(option->name, "label") == 0 || strcmp(option->name, "maximize") == 0)
        return kind == SWEEP;
    if (cli_is_operand(option) || option->group == OUTPUT || option->group == MESSAGES)
        return true;
    if (strcmp(option->name, "max-ram") == 0)
        return kind == MEMORY;
    if (strcmp(option->name, "profile") == 0 || strcmp(option->name, "weights") == 0)
        return kind == PROFILES || kind == WEIGHTS;
    return kind == PROFILES || kind == WEIGHTS || kind == ERROR;
}

static enum phema_status find_kind(enum kind *out, const struct plot_values *args,
                                   struct phema_error *err)
{
    size_t kind = cli_find_choice(KINDS, args->kind);
    if (kind == SIZE_MAX) {
        (void)phema_fail(err, PHEMA_ERR_USAGE,
                         "plot: unknown picture '%s'; expected profiles, weights, error, memory, "
                         "sweep or design, then the snapshots or the file",
                         args->kind);
        remedy_suggest_order(err, &args->common.line);
        if (!err->n_changes && phema_path_exists(args->kind))
            cli_suggest_operand_before(err, &args->common.line, args->kind, "error");
        else if (!err->n_changes)
            cli_suggest_choice(err, "KIND", KINDS, args->kind, true);
        return PHEMA_ERR_USAGE;
    }
    *out = (enum kind)kind;
    const struct cli_line *line = &args->common.line;
    for (size_t i = 0; i < line->options.n; i++)
        if (line->is_given[i] && !is_known_to(*out, &line->options.items[i]))
            return cli_fail_option(err, PHEMA_ERR_USAGE, line->options.items[i].name,
                                   "is nothing to plot %s", args->kind);
    if (*out == ERROR && args->plan.options.n_ats > 1)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "at", "plot error is of one time, found %zu",
                               args->plan.options.n_ats);
    return PHEMA_OK;
}

/* ---- Pictures ---- */

static enum phema_status draw_plan(struct phema_picture **out, struct phema_plan **made,
                                   struct plot_values *args, enum kind kind,
                                   const struct picture_files *files, struct phema_error *err)
{
    const struct render_style *style = &args->common.style;
    struct cli_plan_values values = args->plan;
    struct phema_plan_options options;
    enum phema_status status =
        kind == ERROR ? plot_error_widths(&values.options, &args->common.arena, err) : PHEMA_OK;
    if (!status)
        status = cli_plan_options(&options, &args->common, &values, err);
    if (status)
        return status;
    options.series.needs_no_tensors = true;
    status = watch_make_plan(made, style, &options, err);
    const struct phema_plan *plan = *made;
    if (!status)
        status = picture_files_claim(files, plan->series->claims, err);
    if (status)
        return status;
    report_series(style, plan->series, &plan->checks);
    if (kind == ERROR) {
        report_doubts(style, plan->series, &plan->checks);
        return plot_errors(out, plan, &args->plan.options, err);
    }
    report_plan(style, plan, PHEMA_F64, true, true);
    return plot_targets(out, plan, kind == PROFILES, err);
}

static enum phema_status draw_record(struct phema_picture **out, const struct plot_values *args,
                                     enum kind kind, const struct picture_files *files,
                                     struct phema_error *err)
{
    const char *path = args->plan.options.series.several[0];
    struct phema_sweep_facts facts;
    if (args->plan.options.series.n_several > 1)
        return phema_fail(err, PHEMA_ERR_USAGE, "plot %s: draws one file, not %zu", args->kind,
                          args->plan.options.series.n_several);
    enum phema_status status = picture_files_check(files, path, err);
    if (status)
        return status;
    if (kind == DESIGN)
        return plot_design(out, path, err);
    if (kind == MEMORY)
        return plot_memory(out, path, args->max_ram, err);
    return plot_scores(out, &facts, path, args->label, args->maximizes, args->common.style.is_quiet,
                       err);
}

/* ---- Files ---- */

static enum phema_status check_files(struct picture_files *files, const struct plot_values *args,
                                     struct phema_error *err)
{
    if (!args->output && !args->csv) {
        (void)phema_fail(err, PHEMA_ERR_USAGE,
                         "plot: no file to draw into; give -o FILE.svg, .png, .pdf or .csv");
        return cli_suggest(err, PHEMA_ERR_USAGE, "output", "plot.svg");
    }
    if (args->output && args->csv && strcmp(args->output, args->csv) == 0)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "csv", "is the file of --output");
    if (args->output) {
        enum phema_status status = phema_picture_format(&files->formats[0], args->output, err);
        if (status)
            return cli_suggest(err, cli_fail_in_option(err, status, "output"), "output",
                               "plot.svg");
        files->paths[files->n++] = args->output;
    }
    if (args->csv) {
        files->formats[files->n] = PHEMA_PICTURE_CSV;
        files->paths[files->n++] = args->csv;
    }
    for (size_t i = 0; i < files->n; i++) {
        const char *path = files->paths[i];
        if (phema_writer_check_parent(path, err))
            return cli_suggest(err, PHEMA_ERR_OUTPUT, path == args->output ? "output" : "csv",
                               strrchr(path, '/') + 1);
        if (phema_writer_check_place(path, args->is_forced, err))
            return PHEMA_ERR_OUTPUT;
    }
    return PHEMA_OK;
}

static enum phema_status print_files(const struct picture_files *files,
                                     const struct plot_values *args, const struct phema_plan *plan,
                                     struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (args->common.style.is_json) {
        struct phema_json_out out;
        render_json_begin(&out, &text, false);
        phema_json_out_string(&out, "kind", args->kind);
        phema_json_out_open(&out, "files", '[');
        for (size_t i = 0; i < files->n; i++)
            phema_json_out_string(&out, NULL, files->paths[i]);
        phema_json_out_close(&out, ']');
        if (plan)
            report_checks_json(&out, &args->common.style, plan);
        render_json_end(&out);
    }
    for (size_t i = 0; i < files->n && !args->common.style.is_json; i++) {
        render_write_path(&text, files->paths[i]);
        phema_strbuf_puts(&text, "\n");
    }
    return cli_print(&text, &args->common.style, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct plot_values *args = values;
    struct picture_files files = {0};
    struct phema_picture *picture = NULL;
    struct phema_plan *plan = NULL;
    enum kind kind = PROFILES;
    enum phema_status status = find_kind(&kind, args, err);
    if (!status)
        status = check_files(&files, args, err);
    if (!status && (kind == MEMORY || kind == SWEEP || kind == DESIGN))
        status = draw_record(&picture, args, kind, &files, err);
    else if (!status)
        status = draw_plan(&picture, &plan, args, kind, &files, err);
    if (!status)
        status = phema_picture_set_title(picture, args->title, err);
    if (!status)
        status = picture_files_write(&files, picture, args->is_forced, err);
    if (!status)
        status = print_files(&files, args, plan, err);
    phema_picture_free(picture);
    phema_plan_free(plan);
    return status;
}

#define FIELD(member) offsetof(struct plot_values, member)

static const struct cli_opt rows[] = {
    {"KIND", INPUT, CLI_OPERAND, FIELD(kind), KINDS,
     .help = "profiles, weights or error of SNAPSHOTS; memory,\nsweep or design of a file"},
    CLI_INCLUDE(cli_series_rows, FIELD(plan)),
    CLI_INCLUDE(cli_average_rows, FIELD(plan)),
    CLI_INCLUDE(cli_solve_rows, FIELD(plan)),
    {"maximize", NUMBERS, CLI_FLAG, FIELD(maximizes),
     .help = "sweep: the highest score is the best (default: the\nlowest)"},
    {"max-ram", RESOURCES, CLI_SIZE, FIELD(max_ram), "SIZE", .help = "memory: draw this limit",
     .flags = CLI_POSITIVE | CLI_NEEDED},
    {"output", OUTPUT, CLI_TEXT, FIELD(output), "FILE",
     .help = "the picture: .svg, .png or .pdf; .csv: its numbers", .flags = CLI_EVERYDAY,
     .letter = 'o'},
    {"csv", OUTPUT, CLI_TEXT, FIELD(csv), "FILE", .help = "write the numbers of the picture, too",
     .flags = CLI_EVERYDAY},
    {"title", OUTPUT, CLI_TEXT, FIELD(title), "TEXT",
     .help = "heading of the picture (default: the file, and what\nit holds)",
     .flags = CLI_EVERYDAY},
    {"label", OUTPUT, CLI_TEXT, FIELD(label), "TEXT",
     .help = "sweep: what a score is, at its axis (default score)"},
    {"force", OUTPUT, CLI_FLAG, FIELD(is_forced), .help = "replace existing outputs",
     .flags = CLI_EVERYDAY, .letter = 'f'},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_plot = {
    .name = "plot",
    .summary = "draw averages, their errors, memory, a sweep or a design",
    .options = rows,
    .examples = "  posthoc-ema plot profiles --sigma-rel 0.1 ckpts/ -o profiles.svg\n"
                "      what is wanted, what the weights make of the snapshots, what is missing\n"
                "  posthoc-ema plot weights --sigma-rel 0.05,0.15 ckpts/ -o weights.pdf\n"
                "      a stem for each weight, one panel for each target\n"
                "  posthoc-ema plot error ckpts/ -o error.png --csv error.csv\n"
                "      how good averages of any width would be, and the numbers\n"
                "  posthoc-ema plot memory --max-ram 1GiB memory.jsonl -o memory.svg\n"
                "      what synth --profile-memory memory.jsonl wrote\n"
                "  posthoc-ema plot sweep scores.csv -o sweep.svg\n"
                "      lines of sigma_rel,score, and the best of them\n"
                "  posthoc-ema plot design plan.json -o design.svg\n"
                "      what design --json wrote: errors by disk, times and widths\n",
    .values_size = sizeof(struct plot_values),
    .run = run,
};
