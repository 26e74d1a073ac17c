// SPDX-License-Identifier: Apache-2.0
/* cmd_inspect.c - shows the contents of a checkpoint or of a directory of snapshots. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "phema/formats.h"
#include "phema/path.h"
#include "phema/progress.h"
#include "phema/render.h"
#include "phema/report.h"
#include "remedy/remedy.h"
#include "shared_options.h"

struct inspect_values {
    struct cli_common common;
    struct cli_texts paths;
    struct cli_plan_values plan; /* of the series */
    const char *tensor, *design;
    bool is_raw;
};

/* ---- Checkpoint or series ---- */

static bool is_series(const char *path)
{
    bool is_manifest = phema_ends_with(path, ".json") && !phema_format_from_path(NULL, path, 0);
    return path[0] == '@' || is_manifest ||
           (phema_path_is_directory(path) && !phema_directory_has_model(path, false) &&
            !phema_directory_is_checkpoint(path, true));
}

static enum phema_status read_options(struct phema_series_options *out,
                                      const struct inspect_values *values, const char *path,
                                      struct phema_error *err)
{
    enum phema_status status = cli_series_options(out, &values->plan, err);
    out->snapshots = path;
    out->needs_no_profiles = true;
    out->skips_damaged = true;
    out->compares_samples = true;
    return status;
}

/* Writes the options with which the averages have a profile. */
static void write_profile(struct phema_strbuf *out, const struct phema_decay_set *set)
{
    struct phema_name_buffer from;
    phema_strbuf_puts(out, "--input-profile auto ");
    if (!isnan(set->fits_from))
        phema_strbuf_printf(out, "--from %s ", phema_number_format(&from, set->fits_from));
}

static enum phema_status print_series(struct phema_json_out *out,
                                      const struct inspect_values *values,
                                      struct phema_series *series,
                                      const struct phema_series_options *options,
                                      struct phema_error *err)
{
    const struct render_style *style = &values->common.style;
    struct inspect_findings found;
    struct render_listener listener;
    struct phema_strbuf next = {0};
    render_listen(&listener, style);
    enum phema_status status =
        inspect_series_find(&found, series, options, values->design, &listener.heard, err);
    if (status)
        return status;
    inspect_report_series(style, &found);
    size_t n = 0;
    const struct phema_decay_set *unclaimed =
        phema_decays_find_unclaimed(&n, &found.errors.checks.decays);
    struct phema_strbuf profile = {0};
    if (n == 1 && unclaimed->fits)
        write_profile(&profile, unclaimed);
    bool asks_whether_raw = series->may_be_raw && !n;
    if ((found.errors.is_known || profile.size || asks_whether_raw) && !series->damage)
        cli_write_next(&next, &values->common, series, &values->plan.options.series.checkpoint,
                       profile.data ? profile.data : "", asks_whether_raw);
    phema_strbuf_clear(&profile);
    if (style->is_json)
        inspect_write_series_json(out, style, &found, values->paths.n > 1);
    else
        inspect_write_series(out->text, &found, next.data, style->is_verbose);
    phema_strbuf_clear_part(&next, out->text);
    inspect_findings_clear(&found);
    return PHEMA_OK;
}

static enum phema_status inspect_series(struct phema_json_out *out,
                                        const struct inspect_values *values, const char *path,
                                        struct phema_error *damage, struct phema_error *err)
{
    struct phema_series_options options;
    struct phema_series *series = NULL;
    enum phema_status status = read_options(&options, values, path, err);
    if (status)
        return status;
    struct watch *watch = watch_start(&values->common.style, "opening the snapshots");
    status = phema_series_open_auto(&series, &options, err);
    watch_stop(watch);
    if (!status)
        status = print_series(out, values, series, &options, err);
    if (!status && series->damage && !*damage->message)
        *damage = *series->damage;
    phema_series_close(series);
    return status;
}

/* ---- Together ---- */

static enum phema_status print_checkpoint(struct phema_json_out *out,
                                          const struct inspect_values *values,
                                          struct phema_checkpoint *checkpoint,
                                          struct phema_error *err)
{
    const struct render_style *style = &values->common.style;
    const char *path = phema_checkpoint_path(checkpoint);
    struct phema_series_options options;
    enum phema_status status = read_options(&options, values, path, err);
    if (status)
        return status;
    struct inspect_summary summary;
    status = inspect_summarise_checkpoint(&summary, checkpoint, &options, err);
    if (status)
        return status;
    for (size_t i = 0; i < phema_checkpoint_n_warnings(checkpoint); i++)
        render_warn(style, "%s: %s", path, phema_checkpoint_warning(checkpoint, i));
    if (style->is_json)
        inspect_write_checkpoint_json(out, style, checkpoint, &summary, values->paths.n > 1);
    else
        inspect_write_checkpoint(out->text, checkpoint, &summary);
    inspect_summary_clear(&summary);
    return PHEMA_OK;
}

static enum phema_status print_tensor(const struct phema_checkpoint *checkpoint, const char *wanted,
                                      struct phema_error *err)
{
    const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, wanted, strlen(wanted));
    struct phema_name_buffer name;
    if (tensor)
        return render_print_elements(checkpoint, tensor, err);
    return phema_fail(err, PHEMA_NO, "%s: has no tensor '%s'; inspect -v lists them",
                      phema_checkpoint_path(checkpoint), phema_name_show(&name, wanted));
}

static enum phema_status inspect_checkpoint(struct phema_json_out *out,
                                            const struct inspect_values *values, const char *path,
                                            struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = NULL;
    if (values->design)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "%s: --design compares all snapshots of a directory; give that", path);
    enum phema_status status =
        phema_checkpoint_open(&checkpoint, path, &values->plan.options.series.checkpoint, err);
    if (!status && !phema_checkpoint_n_tensors(checkpoint) && phema_path_is_directory(path))
        status = phema_fail(err, PHEMA_ERR_FILE, "%s: holds no tensors", path);
    else if (!status)
        status = values->is_raw ? print_tensor(checkpoint, values->tensor, err)
                                : print_checkpoint(out, values, checkpoint, err);
    phema_checkpoint_close(checkpoint);
    return status;
}

static enum phema_status fail_list(const char *path, struct phema_error *err)
{
    struct phema_strbuf list = {0};
    (void)phema_fail(err, PHEMA_ERR_FILE,
                     "%s: is a list of paths; write @ before its name to open these", path);
    phema_strbuf_printf(&list, "@%s", path);
    (void)cli_suggest(err, PHEMA_ERR_FILE, "FILE|DIR", list.is_failed ? NULL : list.data);
    phema_strbuf_clear(&list);
    return PHEMA_ERR_FILE;
}

/* damage: receives the first failure of a file beside others that are shown */
static enum phema_status inspect(struct phema_json_out *out, const struct inspect_values *values,
                                 const char *path, struct phema_error *damage,
                                 struct phema_error *err)
{
    phema_strbuf_clear(values->common.style.warnings); /* those of the operand before */
    enum phema_status status;
    if (!is_series(path) || values->is_raw) {
        status = inspect_checkpoint(out, values, path, err);
        return status == PHEMA_ERR_FILE && phema_file_lists_paths(path) ? fail_list(path, err)
                                                                        : status;
    }
    status = inspect_series(out, values, path, damage, err);
    struct phema_error unused;
    /* a directory without snapshots may be a checkpoint by itself */
    if (status == PHEMA_ERR_INPUTS && phema_path_is_directory(path) &&
        inspect_checkpoint(out, values, path, &unused) == PHEMA_OK)
        return PHEMA_OK;
    return status;
}

static enum phema_status run(void *data, struct phema_error *err)
{
    const struct inspect_values *values = data;
    bool is_json = values->common.style.is_json, is_wrapped = is_json && values->paths.n > 1;
    if (values->is_raw ? !values->tensor || is_json || values->paths.n > 1
                       : values->tensor != NULL) {
        (void)phema_fail(err, PHEMA_ERR_USAGE,
                         "inspect: --tensor NAME and --raw go together, with one file, not --json");
        return cli_suggest_command(err, PHEMA_ERR_USAGE, "posthoc-ema inspect", "-h");
    }
    struct phema_strbuf text = {0};
    struct phema_json_out json = {.text = &text, .is_pretty = true};
    if (is_wrapped) {
        render_json_begin(&json, &text, true);
        phema_json_out_open(&json, "files", '[');
    }
    enum phema_status status = PHEMA_OK;
    struct phema_error damage = {0};
    for (size_t i = 0; !status && i < values->paths.n; i++)
        status = inspect(&json, values, values->paths.items[i], &damage, err);
    if (is_wrapped) {
        phema_json_out_close(&json, ']');
        render_json_end(&json);
    } else if (is_json) {
        phema_strbuf_puts(&text, "\n");
    }
    if (!status && !values->is_raw)
        status = cli_print(&text, &values->common.style, err);
    phema_strbuf_clear(&text);
    if (status || !*damage.message)
        return status;
    *err = damage;
    return PHEMA_ERR_FILE;
}

#define FIELD(member) offsetof(struct inspect_values, member)

static const struct cli_opt rows[] = {
    {"FILE|DIR", INPUT, CLI_OPERANDS, FIELD(paths),
     .help = "checkpoints, or directories of snapshots"},
    CLI_INCLUDE(cli_input_rows, FIELD(plan)),
    {"design", INPUT, CLI_TEXT, FIELD(design), "FILE",
     .help = "compare the snapshots of a directory with this\ndesign, which design -o has written",
     .flags = CLI_NEEDED},
    {"tensor", OUTPUT, CLI_TEXT, FIELD(tensor), "NAME", .help = "this tensor alone, with --raw"},
    {"raw", OUTPUT, CLI_FLAG, FIELD(is_raw),
     .help = "write the tensor's bytes: C order, little-endian"},
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_inspect = {
    .name = "inspect",
    .summary = "show what a checkpoint or a series of snapshots holds",
    .options = rows,
    .examples = "  posthoc-ema inspect ckpts/\n"
                "      the snapshots of a directory: times and widths\n"
                "  posthoc-ema inspect --json model.safetensors\n"
                "      every tensor: dtype, shape, place, what synth does with it\n"
                "  posthoc-ema inspect --tensor conv_in.weight --raw model.pt > conv_in.bin\n"
                "      the bytes of one tensor\n",
    .values_size = sizeof(struct inspect_values),
    .run = run,
};
