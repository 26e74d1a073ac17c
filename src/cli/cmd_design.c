// SPDX-License-Identifier: Apache-2.0
/* cmd_design.c - what a training that has not begun should store. */
#include <string.h>

#include "cli.h"
#include "phema/path.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "phema/writer.h"
#include "remedy/remedy.h"
#include "shared_options.h"

#define AUTO_DTYPE PHEMA_BOOL /* which no average has */

struct design_values {
    struct cli_common common;
    struct design_wishes wishes;
    const char *sigma_rel;
    unsigned trainer; /* CLI_CHOICE */
    enum phema_design_moving motion;
    enum phema_dtype dtype; /* or AUTO_DTYPE */
    bool is_forced;
};

static enum phema_status read_wishes(struct design_values *values, struct phema_error *err)
{
    struct design_wishes *wishes = &values->wishes;
    struct cli_reals list = {0};
    double range[2] = {0, 0};
    wishes->trainer = values->trainer;
    wishes->dtype = values->dtype != AUTO_DTYPE ? &values->dtype : NULL;
    wishes->motion = cli_is_given(&values->common, "motion") ? &values->motion : NULL;
    wishes->range_text = values->sigma_rel;
    if (!values->sigma_rel)
        return PHEMA_OK;
    enum phema_status status =
        cli_parse_range(range, &list, &values->common.arena, "sigma-rel", values->sigma_rel, err);
    wishes->sigma_rels = list.items;
    wishes->n_sigma_rels = list.n;
    wishes->from = range[0];
    wishes->to = range[1];
    return status;
}

static enum phema_status write_file(const struct design_answer *answer,
                                    const struct design_values *values, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    const struct phema_writer_options options = {.replaces = values->is_forced, .syncs = true};
    design_write_file(&text, answer);
    return phema_writer_store(values->wishes.output, &text, &options, err);
}

static enum phema_status print(const struct design_answer *answer, const struct render_style *style,
                               struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (style->is_json)
        design_write_json(&text, style, answer);
    else
        design_write_text(&text, answer);
    return cli_print(&text, style, err);
}

/* status: of the answer */
static enum phema_status write_answer(const struct design_answer *answer,
                                      const struct design_values *values, enum phema_status status,
                                      struct phema_error *err)
{
    enum phema_status written = PHEMA_OK;
    if (values->wishes.output && !status)
        written = write_file(answer, values, err);
    if (!written)
        written = print(answer, &values->common.style, err);
    return written ? written : status;
}

static enum phema_status run(void *given, struct phema_error *err)
{
    struct design_values *values = given;
    const struct design_wishes *wishes = &values->wishes;
    struct design_asked asked;
    struct design_answer answer = {.asked = &asked};
    struct render_listener listener;
    enum phema_status status = PHEMA_OK;
    if (wishes->output && phema_writer_check_parent(wishes->output, err))
        return cli_suggest(err, PHEMA_ERR_OUTPUT, "output", phema_path_last_name(wishes->output));
    if (wishes->output)
        status = phema_writer_check_place(wishes->output, values->is_forced, err);
    if (!status)
        status = read_wishes(values, err);
    if (status)
        return status;
    render_listen(&listener, &values->common.style);
    status = design_ask(&asked, wishes, &listener.heard, err);
    if (!status)
        status = design_answer_find(&answer, &asked, &listener.heard, err);
    if (!status || status == PHEMA_NO) {
        status = write_answer(&answer, values, status, err);
        design_answer_clear(&answer);
    }
    design_asked_clear(&asked);
    return status;
}

#define FIELD(member) offsetof(struct design_values, member)

static const struct cli_opt rows[] = {
    {"until", INPUT, CLI_REAL, FIELD(wishes.until), "T", .help = "steps of the training",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"params", INPUT, CLI_COUNT, FIELD(wishes.params), "N",
     .help = "parameters of the model: 400M, 2.6B", .flags = CLI_POSITIVE | CLI_EVERYDAY},
    {"model", INPUT, CLI_TEXT, FIELD(wishes.model), "FILE|SIZE",
     .help = "instead: a checkpoint of the model, or its size in\nbytes in 32 bits: 1.6GB",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"model-dtype", INPUT, CLI_CHOICE, FIELD(wishes.bytes_per_param), "f32|f16|bf16",
     .help = "dtype in which --model has this SIZE (default f32)", .initial = 4,
     .meanings = CLI_MEANINGS(4, 2, 2)},
    {"like", INPUT, CLI_TEXT, FIELD(wishes.like), "RUN",
     .help = "snapshots of another training: parameters will\nmove as they did there"},
    {"keep-existing", INPUT, CLI_TEXT, FIELD(wishes.keep_existing), "RUN",
     .help =
         "snapshots of this training, which has begun: plan\nits rest, and which of them to keep"},
    {"unit", INPUT, CLI_WORD, FIELD(wishes.unit), CLI_UNITS,
     .help = "unit of times (a label: only ratios matter)"},
    {"trainer", INPUT, CLI_CHOICE, FIELD(trainer), DESIGN_TRAINERS,
     .help = "keep to what this trainer can store, and print its\nlines (default any: a loop in "
             "PyTorch)",
     .flags = CLI_EVERYDAY},
    {"max-widths", INPUT, CLI_COUNT, FIELD(wishes.max_widths), "N",
     .help = "at most so many averages, each a copy of the model\nin the trainer's memory (1 to 4, "
             "default 3)",
     .flags = CLI_POSITIVE | CLI_EVERYDAY},
    {"input-sigma", INPUT, CLI_REALS,
     CLI_LIST(struct design_values, wishes.input_sigmas, wishes.n_input_sigmas), "LIST",
     .help = "the widths that the trainer keeps, where they\ncannot be chosen",
     .flags = CLI_NEEDED},
    {"raw-every", INPUT, CLI_REAL, FIELD(wishes.raw_every), "N",
     .help =
         "raw checkpoints that are kept every N steps anyway\nhelp, and take nothing of --disk"},
    {"even", INPUT, CLI_FLAG, FIELD(wishes.is_even),
     .help = "save at multiples of one interval only"},
    {"motion", NUMBERS, CLI_CHOICE, FIELD(motion), "walk|white|drift|fall",
     .help = "how parameters move: a random walk (default), white\nnoise, a walk that slows down "
             "as 1/t, or with a\nlearning rate that falls to 0"},
    {"sigma-rel", TARGET, CLI_TEXT, FIELD(sigma_rel), "FIRST:LAST|LIST",
     .help = "widths of the averages that will be wanted", .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"profile", TARGET, CLI_TEXTS,
     CLI_LIST(struct design_values, wishes.profiles, wishes.n_profiles), "SPEC",
     .help = "averages of other shapes: ema:half-life=2000,\nwindow:20k; see "
             "posthoc-ema-spec(7)\n(repeatable)",
     .flags = CLI_NEEDED},
    {"at", TARGET, CLI_REALS, CLI_LIST(struct design_values, wishes.ats, wishes.n_ats), "LIST",
     .help = "times of these averages; the end is always among\nthem", .flags = CLI_EVERYDAY},
    {"after", TARGET, CLI_REAL, FIELD(wishes.after), "T1",
     .help = "averages at any time from T1 on, too"},
    {"max-error", TARGET, CLI_REAL, FIELD(wishes.max_error), "E",
     .help = "the least disk with this worst error; status 1\nwhere none is enough",
     .flags = CLI_EVERYDAY | CLI_NEEDED},
    {"output", OUTPUT, CLI_TEXT, FIELD(wishes.output), "FILE",
     .help = "write the chosen design as JSON", .flags = CLI_EVERYDAY, .letter = 'o'},
    {"force", OUTPUT, CLI_FLAG, FIELD(is_forced), .help = "replace an existing FILE",
     .letter = 'f'},
    {"dtype", OUTPUT, CLI_CHOICE, FIELD(dtype), "auto|f32|f16|bf16",
     .help = "of the snapshots (default auto: f32 or f16)", .initial = AUTO_DTYPE,
     .meanings = CLI_MEANINGS(AUTO_DTYPE, PHEMA_F32, PHEMA_F16, PHEMA_BF16)},
    {"disk", RESOURCES, CLI_SIZE, FIELD(wishes.disk_bytes), "SIZE",
     .help = "space for all snapshots", .flags = CLI_POSITIVE | CLI_EVERYDAY | CLI_NEEDED},
    CLI_INCLUDE(cli_progress_rows, 0),
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_design = {
    .name = "design",
    .summary = "plan what a training should store",
    .options = rows,
    .examples =
        "  posthoc-ema design --until 1M --params 650M --disk 500G --sigma-rel 0.02:0.25\n"
        "      widths, times and dtype of snapshots, and how good averages will be\n"
        "  posthoc-ema design --until 200k --model last.pt --max-error 1e-3 --sigma-rel 0.1\n"
        "      the least disk that is enough\n"
        "  posthoc-ema design --trainer ema-pytorch --until 200k --params 100M --disk 20G \\\n"
        "      --sigma-rel 0.05:0.2 --at 100k\n"
        "      within what a trainer can do, with its settings\n",
    .values_size = sizeof(struct design_values),
    .run = run,
};
