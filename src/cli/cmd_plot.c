// SPDX-License-Identifier: Apache-2.0
/* cmd_plot.c - draws a series and its averages, the memory of a run, the scores of a sweep, or a
 * design. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "phema/json.h"
#include "phema/plot.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "phema/writer.h"
#include "remedy/remedy.h"
#include "shared_options.h"

struct plot_values {
    struct cli_common common;
    const char *kind, *output, *csv;
    struct cli_plan_values plan;
    uint64_t max_ram;
    bool maximizes, is_forced;
};

#define KINDS "profiles|weights|error|memory|sweep|design"
enum kind { PROFILES, WEIGHTS, ERROR, MEMORY, SWEEP, DESIGN };

/* ---- Options of each kind ---- */

static bool is_known_to(enum kind kind, const struct cli_opt *option)
{
    if (option->kind == CLI_OPERAND || option->group == OUTPUT || option->group == MESSAGES)
        return true;
    if (strcmp(option->name, "max-ram") == 0)
        return kind == MEMORY;
    if (strcmp(option->name, "maximize") == 0)
        return kind == SWEEP;
    if (strcmp(option->name, "profile") == 0 || strcmp(option->name, "weights") == 0)
        return kind == PROFILES || kind == WEIGHTS;
    return kind == PROFILES || kind == WEIGHTS || kind == ERROR;
}

static bool has_target(const struct cli_common *common)
{
    static const char *const names[] = {"sigma-rel", "gamma", "profile", "weights"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (cli_is_given(common, names[i]))
            return true;
    return false;
}

static enum phema_status find_kind(enum kind *out, const struct plot_values *args,
                                   struct phema_error *err)
{
    size_t kind = cli_find_choice(KINDS, args->kind);
    if (kind == SIZE_MAX) {
        enum phema_status status =
            phema_fail(err, PHEMA_ERR_USAGE,
                       "plot: unknown picture '%s'; expected profiles, weights, error, memory, "
                       "sweep or design, then the snapshots or the file",
                       args->kind);
        cli_suggest_choice(err, "KIND", KINDS, args->kind);
        const char *nearest = phema_change_value(err, 0);
        bool needs_target = (strcmp(nearest, "profiles") == 0 || strcmp(nearest, "weights") == 0) &&
                            !has_target(&args->common);
        if (needs_target)
            (void)cli_suggest(err, status, "sigma-rel", "0.1");
        if (!args->output && !args->csv)
            (void)cli_suggest(err, status, "output", "plot.svg");
        return status;
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

/* ---- Files to write ---- */

/* -o and --csv: at most two. */
struct files {
    const char *paths[2];
    enum phema_picture_format formats[2];
    struct phema_writer *writers[2];
    size_t n;
};

static enum phema_status claim_files(const struct files *files, struct phema_claims *claims,
                                     struct phema_error *err)
{
    for (size_t i = 0; i < files->n; i++) {
        enum phema_status status = phema_claims_check(claims, files->paths[i], err);
        if (!status)
            status = phema_claims_add_output(claims, files->paths[i], err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Pictures ---- */

static enum phema_status make_plan(struct phema_plan **out, struct plot_values *args,
                                   enum kind kind, struct phema_error *err)
{
    struct cli_plan_values values = args->plan;
    struct phema_plan_options options;
    enum phema_status status = PHEMA_OK;
    if (kind == ERROR)
        status = plot_error_widths(&values.options, &args->common.arena, err);
    if (status)
        return status;
    status = cli_plan_options(&options, &args->common, &values, err);
    if (status)
        return status;
    options.series.needs_no_tensors = true;
    return watch_make_plan(out, &args->common.style, &options, err);
}

static enum phema_status draw_plan(struct phema_picture **out, const struct phema_plan *plan,
                                   const struct plot_values *args, enum kind kind,
                                   const struct files *files, struct phema_error *err)
{
    enum phema_status status = claim_files(files, plan->series->claims, err);
    if (status)
        return status;
    report_series(&args->common.style, plan->series, &plan->checks);
    if (kind == ERROR)
        report_doubts(&args->common.style, plan->series, &plan->checks);
    if (kind == ERROR)
        return plot_errors(out, plan, &args->plan.options, err);
    report_plan(&args->common.style, plan, PHEMA_F64, true, true);
    return plot_targets(out, plan, kind == PROFILES, err);
}

static enum phema_status draw_record(struct phema_picture **out, const struct plot_values *args,
                                     enum kind kind, const struct files *files,
                                     struct phema_error *err)
{
    const char *path = args->plan.options.series.snapshots;
    struct phema_claims *claims = NULL;
    enum phema_status status = phema_claims_new(&claims, err);
    if (status)
        return status;
    status = phema_claims_add_input(claims, path, "the file that is drawn", err);
    if (!status)
        status = claim_files(files, claims, err);
    phema_claims_free(claims);
    if (status)
        return status;
    struct phema_sweep_facts facts;
    if (kind == DESIGN)
        return plot_design(out, path, err);
    return kind == MEMORY
               ? plot_memory(out, path, args->max_ram, err)
               : plot_scores(out, &facts, path, args->maximizes, args->common.style.is_quiet, err);
}

/* plan: out, of a picture of snapshots; else NULL */
static enum phema_status draw(struct phema_picture **out, struct phema_plan **plan,
                              struct plot_values *args, enum kind kind, const struct files *files,
                              struct phema_error *err)
{
    if (kind == MEMORY || kind == SWEEP || kind == DESIGN)
        return draw_record(out, args, kind, files, err);
    enum phema_status status = make_plan(plan, args, kind, err);
    return status ? status : draw_plan(out, *plan, args, kind, files, err);
}

/* ---- Files ---- */

static enum phema_status check_files(struct files *files, const struct plot_values *args,
                                     struct phema_error *err)
{
    if (!args->output && !args->csv)
        return cli_suggest(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "plot: no file to draw into; give -o FILE.svg, .png, .pdf or .csv"),
            "output", "plot.svg");
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
        enum phema_status status =
            args->is_forced ? PHEMA_OK : phema_writer_check_absent(path, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static enum phema_status write_file(struct files *files, size_t i,
                                    const struct phema_picture *picture, bool replaces,
                                    struct phema_error *err)
{
    struct phema_strbuf bytes = {0};
    struct phema_writer_options options = {.replaces = replaces, .syncs = true};
    enum phema_status status = phema_picture_write(&bytes, picture, files->formats[i], err);
    if (status)
        status = phema_fail_in(err, status, "%s", files->paths[i]);
    else
        status = phema_writer_open(&files->writers[i], files->paths[i], bytes.size, &options, err);
    if (!status)
        status = phema_writer_write(files->writers[i], 0, bytes.data, bytes.size, err);
    phema_strbuf_clear(&bytes);
    return status;
}

/* Both files are complete before the first one is published. */
static enum phema_status write_files(struct files *files, const struct phema_picture *picture,
                                     bool replaces, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < files->n && !status; i++)
        status = write_file(files, i, picture, replaces, err);
    for (size_t i = 0; i < files->n; i++) {
        if (!status)
            status = phema_writer_commit(files->writers[i], err);
        else
            phema_writer_abandon(files->writers[i]);
    }
    return status;
}

static enum phema_status print_files(const struct files *files, const struct plot_values *args,
                                     const struct phema_plan *plan, struct phema_error *err)
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
    enum kind kind = PROFILES;
    enum phema_status status = find_kind(&kind, args, err);
    if (status)
        return status;
    struct files files = {0};
    status = check_files(&files, args, err);
    if (status)
        return status;
    struct phema_picture *picture = NULL;
    struct phema_plan *plan = NULL;
    status = draw(&picture, &plan, args, kind, &files, err);
    if (!status)
        status = write_files(&files, picture, args->is_forced, err);
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
