// SPDX-License-Identifier: Apache-2.0
/* cmd_convert.c - writes a checkpoint in another format, or translates between the ways to specify
 * the length of an average. */
#include <math.h>

#include "cli.h"
#include "phema/json.h"
#include "phema/profile.h"
#include "remedy/remedy.h"
#include "shared_options.h"

/* ---- Units ---- */

/* As members of JSON and as columns of the table. */
static const struct {
    const char *name;
    int width, digits;            /* of the column; no digits: no column */
    const char *option, *example; /* that has an answer at most times; NULL: none gives this one */
} units[PHEMA_LENGTHS] = {
    [PHEMA_SIGMA_REL] = {"sigma_rel", 12, 8, "sigma-rel", "0.1"},
    [PHEMA_GAMMA] = {"gamma", 12, 8, "gamma", "6.94"},
    [PHEMA_HALF_LIFE_REL] = {"half_life_rel", 13, 8, "half-life-rel", "0.05"},
    [PHEMA_TIME] = {"time", 0, 0, NULL, NULL},
    [PHEMA_WIDTH] = {"width", 12, 8, NULL, NULL},
    [PHEMA_HALF_LIFE] = {"half_life", 12, 8, "half-life", "5"},
    [PHEMA_BETA] = {"beta", 12, 10, "beta", "0.9"},
    [PHEMA_DECAY] = {"decay", 12, 10, "decay", "0.9"},
    [PHEMA_EMA_HALF_LIFE] = {"ema_half_life", 13, 8, "ema-half-life", "5"},
};

struct convert_values {
    struct cli_synth_values file; /* as of synth --convert; begins with what all verbs have */
    struct cli_reals lengths[PHEMA_LENGTHS]; /* as they were given */
    double at;
};

static size_t count_units(const struct convert_values *args)
{
    return isnan(args->at) ? (size_t)PHEMA_TIME : PHEMA_LENGTHS;
}

/* ---- From one unit to the others ---- */

static enum phema_status translate(double *out, double at, enum phema_length unit, double value,
                                   struct phema_error *err)
{
    const char *option = units[unit].option;
    enum phema_status status = PHEMA_OK;
    if (unit > PHEMA_TIME && !(at > 0))
        status = cli_fail_option(err, PHEMA_ERR_USAGE, option,
                                 "is %s; --at says at which step of the training",
                                 unit == PHEMA_BETA    ? "that of one step"
                                 : unit == PHEMA_DECAY ? "a factor of each step"
                                                       : "a number of steps");
    else if (unit == PHEMA_BETA && value > 0 && value < 1 && !(at > 1))
        status = cli_fail_option(err, PHEMA_ERR_USAGE, "beta",
                                 "the first step takes the parameters as they are, whatever the "
                                 "width; --at must be above 1");
    if (status)
        return cli_suggest(err, status, "at", "100k");
    if ((unit == PHEMA_BETA || unit == PHEMA_DECAY) && !(value > 0 && value < 1))
        return cli_fail_option(err, PHEMA_ERR_USAGE, option, "%g is not between 0 and 1", value);
    status = phema_power_lengths(out, at, unit, value, err);
    if (!status || status == PHEMA_ERR_USAGE)
        return status;
    if (unit != PHEMA_DECAY && unit != PHEMA_EMA_HALF_LIFE && unit != PHEMA_BETA)
        return cli_fail_in_option(err, status, option);
    struct phema_name_buffer shown; /* the message shows another value */
    (void)phema_fail_in(err, status, "--%s %s", option, phema_number_format(&shown, value));
    return phema_error_set_about(err, status, option);
}

/* ---- Results ---- */

/* length: NULL for the titles */
static void write_row(struct phema_strbuf *out, const double *length, size_t n_units)
{
    for (size_t i = 0; i < n_units; i++) {
        int width = i + 1 < n_units ? units[i].width : 0;
        if (!units[i].digits)
            continue;
        phema_strbuf_puts(out, i ? " " : "");
        if (length)
            phema_strbuf_printf(out, "%-*.*g", width, units[i].digits, length[i]);
        else
            phema_strbuf_printf(out, "%-*s", width, units[i].name);
    }
    phema_strbuf_puts(out, "\n");
}

static void write_json(struct phema_json_out *out, const double *length, size_t n_units)
{
    phema_json_out_open(out, NULL, '{');
    for (size_t i = 0; i < n_units; i++)
        phema_json_out_number(out, units[i].name, length[i]);
    phema_json_out_close(out, '}');
}

static enum phema_status write_length(struct phema_strbuf *text, struct phema_json_out *json,
                                      const struct convert_values *args, enum phema_length unit,
                                      double value, struct phema_error *err)
{
    double length[PHEMA_LENGTHS];
    enum phema_status status = translate(length, args->at, unit, value, err);
    if (status && !err->n_changes)
        return cli_suggest(err, status, units[unit].option, units[unit].example);
    if (status)
        return status;
    if (args->file.common.style.is_json)
        write_json(json, length, count_units(args));
    else
        write_row(text, length, count_units(args));
    return PHEMA_OK;
}

static enum phema_status write_lengths(struct phema_strbuf *text, struct phema_json_out *json,
                                       const struct convert_values *args, struct phema_error *err)
{
    static const enum phema_length order[] = {PHEMA_SIGMA_REL,     PHEMA_GAMMA, PHEMA_HALF_LIFE,
                                              PHEMA_HALF_LIFE_REL, PHEMA_BETA,  PHEMA_DECAY,
                                              PHEMA_EMA_HALF_LIFE};
    const struct cli_reals *lengths = args->lengths;
    size_t n = 0;
    enum phema_status status = cli_check_widths(lengths[PHEMA_SIGMA_REL].items,
                                                lengths[PHEMA_SIGMA_REL].n, "sigma-rel", err);
    for (size_t s = 0; s < ARRAY_LEN(order); s++)
        for (size_t i = 0; i < lengths[order[s]].n && !status; i++, n++)
            status = write_length(text, json, args, order[s], lengths[order[s]].items[i], err);
    if (status || n)
        return status;
    status = phema_fail(err, PHEMA_ERR_USAGE,
                        "convert: nothing to convert; give a checkpoint and OUT, or --sigma-rel, "
                        "--gamma, --half-life, --half-life-rel, --beta, --decay or "
                        "--ema-half-life");
    return cli_suggest(err, status, "sigma-rel", "0.1");
}

static enum phema_status print_lengths(const struct convert_values *args, struct phema_error *err)
{
    if (!isnan(args->at) && !(args->at > 0 && args->at < 9007199254740992.0))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "at", "expected a time above 0, found %g",
                               args->at);
    struct phema_strbuf text = {0};
    struct phema_json_out json = {0};
    if (args->file.common.style.is_json) {
        render_json_begin(&json, &text, true);
        phema_json_out_open(&json, "lengths", '[');
    } else {
        write_row(&text, NULL, count_units(args));
    }
    enum phema_status status = write_lengths(&text, &json, args, err);
    if (status) {
        phema_strbuf_clear(&text);
        return status;
    }
    if (args->file.common.style.is_json) {
        phema_json_out_close(&json, ']');
        render_json_end(&json);
    }
    return render_print(&text, err);
}

/* ---- The verb ---- */

static enum phema_status convert_file(struct convert_values *args, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (!args->file.run.outputs.out) {
        status = phema_fail(err, PHEMA_ERR_USAGE, "convert: OUT is missing");
        return cli_suggest(err, status, "OUT", "out.safetensors");
    }
    for (size_t i = 0; i < PHEMA_LENGTHS; i++)
        if (args->lengths[i].n) {
            status = cli_fail_option(err, PHEMA_ERR_USAGE, units[i].option,
                                     "lengths are translated alone, without a checkpoint");
            return cli_suggest(err, status, units[i].option, "");
        }
    if (!isnan(args->at))
        return cli_fail_option(err, PHEMA_ERR_USAGE, "at", "a checkpoint is converted as it is");
    cli_set_others(&args->file, &args->file.common.line, &cli_synth);
    args->file.common.team = NULL; /* one process is enough */
    args->file.run.plan.options.is_conversion = true;
    return cli_synth.run(&args->file, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct convert_values *args = values;
    return args->file.run.plan.options.series.snapshots ? convert_file(args, err)
                                                        : print_lengths(args, err);
}

#define FIELD(member) offsetof(struct convert_values, member)

static const struct cli_opt rows[] = {
    {"CHECKPOINT", INPUT, CLI_OPERAND, FIELD(file.run.plan.options.series.snapshots),
     .help = "to be written as OUT; without it, widths are\ntranslated", .flags = CLI_OPTIONAL},
    CLI_INCLUDE(cli_tensor_rows, FIELD(file.run.plan)),
    {"OUT", OUTPUT, CLI_OPERAND, FIELD(file.run.outputs.out),
     .help = "a file (.safetensors, .pt, ...) or a directory", .flags = CLI_OPTIONAL},
    CLI_INCLUDE(cli_file_rows, FIELD(file.run)),
    {"verify", OUTPUT, CLI_FLAG, FIELD(file.run.synth.verifies),
     .help = "read CHECKPOINT again, and OUT back, before OUT\ngets its name"},
    {"sigma-rel", TARGET, CLI_REALS, FIELD(lengths[PHEMA_SIGMA_REL]), "LIST",
     .help = "relative widths: standard deviation in time over\ntraining time",
     .flags = CLI_NEEDED | CLI_EVERYDAY},
    {"gamma", TARGET, CLI_REALS, FIELD(lengths[PHEMA_GAMMA]), "LIST",
     .help = "exponents of power functions", .flags = CLI_NEEDED | CLI_EVERYDAY},
    {"half-life", TARGET, CLI_REALS, FIELD(lengths[PHEMA_HALF_LIFE]), "LIST",
     .help = "steps in which half the weight lies (needs --at)",
     .flags = CLI_NEEDED | CLI_EVERYDAY},
    {"half-life-rel", TARGET, CLI_REALS, FIELD(lengths[PHEMA_HALF_LIFE_REL]), "LIST",
     .help = "the same as shares of the training time", .flags = CLI_NEEDED | CLI_EVERYDAY},
    {"beta", TARGET, CLI_REALS, FIELD(lengths[PHEMA_BETA]), "LIST",
     .help = "what a power-function EMA keeps of itself at that\nstep (needs --at)",
     .flags = CLI_NEEDED | CLI_EVERYDAY},
    {"decay", TARGET, CLI_REALS, FIELD(lengths[PHEMA_DECAY]), "LIST",
     .help =
         "decay of an exponential EMA with the same width\nin steps, such as 0.9999 (needs --at)",
     .flags = CLI_NEEDED | CLI_EVERYDAY},
    {"ema-half-life", TARGET, CLI_REALS, FIELD(lengths[PHEMA_EMA_HALF_LIFE]), "LIST",
     .help = "half-life of that exponential EMA (needs --at)", .flags = CLI_NEEDED | CLI_EVERYDAY},
    {"at", TARGET, CLI_REAL, FIELD(at), "TIME",
     .help = "the training time, in steps or whatever it counts", .flags = CLI_EVERYDAY},
    CLI_INCLUDE(cli_progress_rows, 0),
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_convert = {
    .name = "convert",
    .summary = "change a checkpoint's format; translate lengths of averages",
    .options = rows,
    .examples = "  posthoc-ema convert model.pt model.safetensors\n"
                "      one checkpoint in another format\n"
                "  posthoc-ema convert --sigma-rel 0.05,0.1\n"
                "      their exponents and half-lives, as shares of the training\n"
                "  posthoc-ema convert --decay 0.9999 --at 200k\n"
                "      the sigma_rel that fits an exponential EMA at step 200000, and its own\n"
                "      half-life\n",
    .values_size = sizeof(struct convert_values),
    .run = run,
};
