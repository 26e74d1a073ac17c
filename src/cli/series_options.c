// SPDX-License-Identifier: Apache-2.0
/* series_options.c - option rows that verbs share, and the plan options made of their values. */
#include "shared_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "phema/file_reader.h"
#include "phema/gpu.h"
#include "phema/number.h"
#include "remedy/remedy.h"

/* ---- Rows ---- */

#define FIELD(member) offsetof(struct cli_common, member)

const struct cli_opt cli_progress_rows[] = {
    {"progress", MESSAGES, CLI_CHOICE, FIELD(style.progress), "auto|bar|plain|json|none",
     .help = "how progress is shown"},
    {0},
};

const struct cli_opt cli_common_rows[] = {
    {"json", MESSAGES, CLI_FLAG, FIELD(style.is_json),
     .help = "print the result as one JSON object", .flags = CLI_EVERYDAY},
    {"quiet", MESSAGES, CLI_FLAG, FIELD(style.is_quiet), .help = "print warnings and errors only",
     .flags = CLI_EVERYDAY, .letter = 'q'},
    {"verbose", MESSAGES, CLI_FLAG, FIELD(style.is_verbose), .help = "print more",
     .flags = CLI_EVERYDAY, .letter = 'v'},
    {"color", MESSAGES, CLI_CHOICE, FIELD(color), "auto|always|never",
     .help = "colours (auto: on a terminal, unless NO_COLOR is\nset or TERM is dumb)"},
    {"no-color", MESSAGES, CLI_FLAG, FIELD(has_no_color), .help = "--color never",
     .flags = CLI_DEPRECATED},
    {"help", MESSAGES, CLI_FLAG, FIELD(is_help),
     .help = "print this help; -h: the options of every day", .flags = CLI_EVERYDAY, .letter = 'h'},
    {0},
};

#undef FIELD
#define FIELD(member)   offsetof(struct cli_plan_values, member)
#define PLAN_LIST(list) CLI_LIST(struct cli_plan_values, options.list, options.n_##list)
#define SERIES_LIST(list)                                                                          \
    CLI_LIST(struct cli_plan_values, options.series.list, options.series.n_##list)

const struct cli_opt cli_pickle_rows[] = {
    {"allow-global", INPUT, CLI_TEXTS,
     CLI_LIST(struct phema_checkpoint_options, allow_globals, n_allow_globals), "NAME",
     .help = "allow this class in pickles (never run;\nrepeatable)"},
    {0},
};

const struct cli_opt cli_tensor_rows[] = {
    {"include", INPUT, CLI_TEXTS, SERIES_LIST(includes), "RE",
     .help = "only tensors whose names match (repeatable)", .flags = CLI_SHAPES_BYTES},
    {"exclude", INPUT, CLI_TEXTS, SERIES_LIST(excludes), "RE",
     .help = "leave out tensors whose names match (repeatable)", .flags = CLI_SHAPES_BYTES},
    {"key", INPUT, CLI_TEXT, FIELD(options.series.key), "PATH",
     .help = "subtree of nested checkpoints, or one of several\nsnapshots in each (ema_0p10); . "
             "for all (default:\nby layout or names)",
     .flags = CLI_SHAPES_BYTES},
    CLI_INCLUDE(cli_pickle_rows, FIELD(options.series.checkpoint)),
    {0},
};

const struct cli_opt cli_input_rows[] = {
    {"layout", INPUT, CLI_WORD, FIELD(options.series.layout), phema_series_layouts,
     .help = "trainer that wrote the snapshots (auto: by names)",
     .flags = CLI_SHAPES_WEIGHTS | CLI_NEEDED},
    {"name-regex", INPUT, CLI_TEXT, FIELD(options.series.name_regex), "RE",
     .help = "pattern of the names, with groups (?<time>..),\n(?<sigma>..) or (?<index>..)",
     .flags = CLI_SHAPES_WEIGHTS | CLI_EVERYDAY | CLI_NEEDED},
    {"input-sigma", INPUT, CLI_REALS, SERIES_LIST(input_sigmas), "LIST",
     .help = "sigma_rel of the snapshots by index, where names\nand metadata lack it",
     .flags = CLI_SHAPES_WEIGHTS | CLI_NEEDED},
    {"input-profile", INPUT, CLI_TEXTS, SERIES_LIST(input_profiles), "SPEC",
     .help = "how snapshots were averaged, if no file says it:\nraw, ema:decay=0.9999 "
             "(repeatable), or auto",
     .flags = CLI_SHAPES_WEIGHTS | CLI_EVERYDAY | CLI_NEEDED},
    {"update-every", INPUT, CLI_COUNT, FIELD(options.series.update_every), "U",
     .help = "the averages were updated every U steps only\n(ema-pytorch: 100, "
             "pytorch-posthoc-ema: 10 unless\nset otherwise)",
     .flags = CLI_SHAPES_WEIGHTS | CLI_POSITIVE | CLI_NEEDED},
    {"reset-at", INPUT, CLI_TEXTS, SERIES_LIST(resets), "T[,counter]",
     .help = "at time T the training was resumed and its\naverages restarted as copies of the "
             "weights;\ncounter: their step count too (repeatable)",
     .flags = CLI_SHAPES_WEIGHTS | CLI_NEEDED},
    {"time-offset", INPUT, CLI_REAL, FIELD(options.series.time_offset), "N",
     .help = "the averages end N later than the names say, as\nwhere a resumed run counts from 0 "
             "(-N: earlier)",
     .flags = CLI_SHAPES_WEIGHTS | CLI_NEEDED | CLI_RARE},
    {"unit", INPUT, CLI_WORD, FIELD(options.series.unit), CLI_UNITS,
     .help = "unit of times (a label: only ratios matter)", .flags = CLI_SHAPES_WEIGHTS},
    {"from", INPUT, CLI_REAL, FIELD(options.series.from), "T",
     .help = "use snapshots from time T on", .flags = CLI_SHAPES_WEIGHTS},
    {"to", INPUT, CLI_REAL, FIELD(options.series.to), "T", .help = "use snapshots up to time T",
     .flags = CLI_SHAPES_WEIGHTS},
    {"every", INPUT, CLI_COUNT, FIELD(options.series.every), "N",
     .help = "use every Nth time, counted from the newest",
     .flags = CLI_SHAPES_WEIGHTS | CLI_POSITIVE},
    {"last", INPUT, CLI_COUNT, FIELD(options.series.last), "N", .help = "use the N newest times",
     .flags = CLI_SHAPES_WEIGHTS | CLI_POSITIVE},
    {"exclude-file", INPUT, CLI_TEXTS, SERIES_LIST(excluded_files), "FILE",
     .help = "leave out this snapshot: its name in messages, or\nits path (repeatable)",
     .flags = CLI_SHAPES_WEIGHTS},
    {"run", INPUT, CLI_TEXT, FIELD(options.series.run), "ID",
     .help = "snapshots of this run alone: an id that the\nrecorder wrote, or its beginning",
     .flags = CLI_SHAPES_WEIGHTS | CLI_NEEDED},
    {"use", INPUT, CLI_CHOICE, FIELD(options.series.use), "all|averages|raw",
     .help = "which of the snapshots in a checkpoint that holds\nraw parameters beside averages "
             "(default all)",
     .flags = CLI_SHAPES_WEIGHTS},
    CLI_INCLUDE(cli_tensor_rows, 0),
    {0},
};

const struct cli_opt cli_series_rows[] = {
    {"SNAPSHOTS", INPUT, CLI_OPERANDS, SERIES_LIST(several),
     .help = "directory, manifest (*.json) or @list.txt; or\nseveral files, directories and lists",
     .flags = CLI_SHAPES_WEIGHTS},
    CLI_INCLUDE(cli_input_rows, 0),
    {0},
};

const struct cli_opt cli_average_rows[] = {
    {"sigma-rel", TARGET, CLI_REALS, PLAN_LIST(sigma_rels), "LIST",
     .help = "widths of the averages: 0.1 or 0.05,0.1 or\n0.01:0.25:0.005 (ends included)",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"gamma", TARGET, CLI_REALS, PLAN_LIST(gammas), "LIST",
     .help = "the same widths as exponents of power functions", .flags = CLI_NEEDED | CLI_RARE},
    {"profile", TARGET, CLI_TEXTS, PLAN_LIST(profiles), "SPEC",
     .help =
         "other averages: sma:10, ema:half-life=2000,\nwindow:20k, ...; see posthoc-ema-spec(7)",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"at", TARGET, CLI_REALS, PLAN_LIST(ats), "TIME",
     .help = "times of the averages, as names write them\n(default: the newest snapshot)",
     .flags = CLI_EVERYDAY},
    {0},
};

const struct cli_opt cli_rule_rows[] = {
    {"rule", TARGET, CLI_TEXTS, PLAN_LIST(rules), "RE=SIGMA",
     .help = "another width for tensors whose names match, or\nRE=copy: from the newest snapshot "
             "(repeatable, the\nfirst match counts)",
     .flags = CLI_SHAPES_WEIGHTS},
    {0},
};

const struct cli_opt cli_metric_rows[] = {
    {"checks", INPUT, CLI_CHOICE, FIELD(options.checks), "warn|error|off",
     .help =
         "where the snapshots do not fit their labels: warn,\nand predict no error; error: end "
         "with status 4\n(default: error in search and where a profile was\nassumed, else warn)",
     .initial = PHEMA_CHECKS_DEFAULT,
     .meanings = CLI_MEANINGS(PHEMA_CHECKS_WARN, PHEMA_CHECKS_ERROR, PHEMA_CHECKS_OFF)},
    {"metric", NUMBERS, CLI_CHOICE, FIELD(options.solve.metric), "motion|walk|profile",
     .help = "error to minimise: motion (default, measured on\nthe snapshots), walk, profile (the "
             "paper's)",
     .flags = CLI_SHAPES_WEIGHTS,
     .initial = PHEMA_METRIC_MOTION, /* walk where motion is impossible, which is reported */
     .meanings = CLI_MEANINGS(PHEMA_METRIC_MOTION, PHEMA_METRIC_WALK, PHEMA_METRIC_PROFILE)},
    {"schedule", NUMBERS, CLI_TEXT, FIELD(options.schedule), "SPEC|FILE",
     .help = "learning rate of the training: cosine, linear,\nwsd:decay=10%,end=0.1, ..., or a log "
             "with step and\nlr (CSV or JSON lines)",
     .flags = CLI_SHAPES_WEIGHTS},
    {"ridge", NUMBERS, CLI_TEXT, FIELD(ridge), "auto|none|VALUE",
     .help = "penalty on large weights (default auto: from the\nfiles' rounding)",
     .flags = CLI_SHAPES_WEIGHTS | CLI_RARE},
    {"solver", NUMBERS, CLI_CHOICE, FIELD(options.solve.solver), "auto|quad|lapack|cusolver",
     .help = "quad precision, LAPACK in float64, or a GPU factor\nrefined in quad",
     .flags = CLI_SHAPES_WEIGHTS | CLI_RARE},
    {0},
};

const struct cli_opt cli_solve_rows[] = {
    {"weights", TARGET, CLI_TEXT, FIELD(options.weights_file), "FILE",
     .help = "use these weights as given: the JSON of weights\n--json, or lines 'file weight'",
     .flags = CLI_SHAPES_WEIGHTS | CLI_NEEDED},
    CLI_INCLUDE(cli_metric_rows, 0),
    {0},
};

const struct cli_opt cli_target_rows[] = {
    CLI_INCLUDE(cli_average_rows, 0),
    CLI_INCLUDE(cli_rule_rows, 0),
    CLI_INCLUDE(cli_solve_rows, 0),
    {"max-error", NUMBERS, CLI_REAL, FIELD(max_error), "E",
     .help = "end with status 1, and write nothing, when the\npredicted error is above E",
     .flags = CLI_NEEDED},
    {0},
};

/* ---- Values ---- */

PHEMA_FALLIBLE cli_check_widths(const double *widths, size_t n, const char *option,
                                struct phema_error *err)
{
    bool is_decimal_comma = n == 2 && widths[0] == 0 && widths[1] >= 1;
    char near[32];
    if (is_decimal_comma) {
        (void)snprintf(near, sizeof(near), "0.%.0f", widths[1]);
        (void)cli_fail_option(
            err, PHEMA_ERR_TARGET, option,
            "0 is no width; write a point for a decimal comma, lists are 0.05,0.1");
        return cli_suggest(err, PHEMA_ERR_TARGET, option, near);
    }
    for (size_t i = 0; i < n; i++) {
        double gamma = 0;
        if (!(widths[i] > 0)) {
            (void)cli_fail_option(err, PHEMA_ERR_TARGET, option,
                                  "%g is no width; expected one above 0, such as 0.1", widths[i]);
            return cli_suggest(err, PHEMA_ERR_TARGET, option, "0.1");
        }
        enum phema_status status = phema_gamma_from_sigma_rel(&gamma, widths[i], err);
        if (status && n == 1 && widths[i] > 1 && widths[i] <= 28) { /* in percent */
            (void)snprintf(near, sizeof(near), "%.6g", widths[i] / 100);
            return cli_suggest(err, cli_fail_in_option(err, status, option), option, near);
        }
        if (status)
            return cli_suggest(err, cli_fail_in_option(err, status, option), option,
                               widths[i] < 0.1 ? "0.1" : "0.25");
    }
    return PHEMA_OK;
}

bool cli_has_targets(const struct phema_plan_options *options)
{
    return options->n_sigma_rels || options->n_gammas || options->n_profiles ||
           options->weights_file;
}

PHEMA_FALLIBLE cli_parse_range(double range[2], struct cli_reals *list, struct phema_arena *arena,
                               const char *option, const char *text, struct phema_error *err)
{
    const char *colon = strchr(text, ':');
    enum phema_status status = PHEMA_OK;
    if (colon && !strchr(colon + 1, ':') && !strchr(text, ',')) {
        const char *first = phema_arena_copy(arena, text, (size_t)(colon - text));
        status = first ? phema_number_parse(&range[0], first, err) : phema_fail_memory(err);
        if (!status)
            status = phema_number_parse(&range[1], colon + 1, err);
    } else {
        status = cli_parse_reals(list, arena, text, err);
    }
    return status ? cli_fail_in_option(err, status, option) : PHEMA_OK;
}

PHEMA_FALLIBLE cli_print(struct phema_strbuf *text, const struct render_style *style,
                         struct phema_error *err)
{
    return style->is_json ? render_print(text, err) : render_print_as_is(text, err);
}

/* Where a process may have so many descriptors, those of snapshots stay open: three of four remain
 * for all else. */
#define LEAST_LIMIT (4 * (uint64_t)PHEMA_MOST_KEPT_DESCRIPTORS)

PHEMA_FALLIBLE cli_series_options(struct phema_series_options *out,
                                  const struct cli_plan_values *values, struct phema_error *err)
{
    uint64_t limit = 0;
    *out = values->options.series;
    if (out->n_several)
        out->snapshots = out->several[0];
    if (out->n_several == 1)
        out->n_several = 0;
    out->checkpoint.keeps_descriptors = phema_raise_fd_limit(LEAST_LIMIT, &limit);
    if (cli_check_widths(out->input_sigmas, out->n_input_sigmas, "input-sigma", err))
        return PHEMA_ERR_INPUTS;
    return PHEMA_OK;
}

static enum phema_status read_ridge(struct phema_solve_options *out, const char *text,
                                    struct phema_error *err)
{
    if (!text || strcmp(text, "auto") == 0)
        return PHEMA_OK;
    if (strcmp(text, "none") == 0) {
        out->ridge = PHEMA_RIDGE_NONE;
        return PHEMA_OK;
    }
    out->ridge = PHEMA_RIDGE_VALUE;
    enum phema_status status = phema_number_parse(&out->ridge_value, text, err);
    if (status || !(out->ridge_value >= 0) || !isfinite(out->ridge_value))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "ridge",
                               "'%s' is not auto, none or a number from 0 on", text);
    return PHEMA_OK;
}

PHEMA_FALLIBLE cli_plan_options(struct phema_plan_options *out, const struct cli_common *common,
                                const struct cli_plan_values *values, struct phema_error *err)
{
    *out = values->options;
    if (out->weights_file && (cli_is_given(common, "metric") || cli_is_given(common, "ridge") ||
                              cli_is_given(common, "solver") || out->schedule))
        return cli_fail_option(
            err, PHEMA_ERR_USAGE, "weights",
            "weights are used as given; --metric, --schedule, --ridge and --solver are "
            "about solving for them");
    out->solve.factorer = phema_gpu_factorer();
    out->solve.finds_condition = common->style.is_json && out->n_rules; /* their JSON has it */
    enum phema_status status = read_ridge(&out->solve, values->ridge, err);
    if (status)
        return status;
    status = cli_check_widths(out->sigma_rels, out->n_sigma_rels, "sigma-rel", err);
    if (status)
        return status;
    status = cli_series_options(&out->series, values, err);
    out->series.needs_no_profiles = out->weights_file != NULL;
    out->series.may_be_sampled = true;
    return status;
}
