// SPDX-License-Identifier: Apache-2.0
/* cmd_verify.c - recomputes a checkpoint that synth has made from its provenance and compares
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "phema/cli.h"
#include "phema/json.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "processes/team_plan.h"
#include "processes/team_synth.h"
#include "processes/team_verify.h"
#include "replay_options.h"

/* The text names at most this many tensors and snapshots. */
#define MAX_NAMED 10

struct verify_values {
    struct cli_common common;
    struct phema_synth_options options; /* io, max_ram_bytes, sample */
    struct phema_checkpoint_options checkpoint;
    const char *out, *snapshots;
    uint64_t threads;
};

struct verifying {
    const struct verify_values *args;
    struct phema_provenance *recorded;
    struct cli_synth_values *replayed;
    struct cli_prepared prepared;
    char *moved; /* SNAPSHOTS next to OUT */
    bool are_weights_same;
    struct phema_verification found;
    size_t *changed; /* [n_changed] snapshots whose data differ from the data that OUT was made
                      * of */
    size_t n_changed;
};

/* Of a team the first process makes the plan, and speaks. */
static bool is_first(const struct verify_values *args)
{
    return !args->common.team || args->common.team->rank == 0;
}

/* ---- The run again ---- */

static bool exists(const char *snapshots)
{
    return access(snapshots + (*snapshots == '@'), F_OK) == 0;
}

/* Looks for SNAPSHOTS as in the command, then relative to the directory of the output. */
static enum phema_status find_snapshots(struct verifying *verifying, struct phema_error *err)
{
    const struct verify_values *args = verifying->args;
    const char **snapshots = &verifying->replayed->run.plan.options.series.snapshots;
    if (args->snapshots) {
        *snapshots = args->snapshots;
        return PHEMA_OK;
    }
    const char *name = *snapshots + (**snapshots == '@');
    if (exists(*snapshots))
        return PHEMA_OK;
    size_t size = strlen(args->out); /* "model/" as well */
    while (size > 1 && args->out[size - 1] == '/')
        size--;
    while (size && args->out[size - 1] != '/')
        size--;
    if (asprintf(&verifying->moved, "%s%.*s%s", **snapshots == '@' ? "@" : "", (int)size, args->out,
                 name) < 0) {
        verifying->moved = NULL;
        return phema_fail_memory(err);
    }
    if (*name == '/' || !exists(verifying->moved))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: was made of the snapshots in '%s', which are neither there nor "
                          "beside it; --snapshots names them",
                          args->out, *snapshots);
    *snapshots = verifying->moved;
    return PHEMA_OK;
}

static enum phema_status read_record(struct verifying *verifying, struct phema_error *err)
{
    const struct verify_values *args = verifying->args;
    enum phema_status status =
        phema_provenance_open(&verifying->recorded, args->out, &args->checkpoint, err);
    if (status)
        return status;
    status = cli_replay_read(&verifying->replayed, &cli_synth, verifying->recorded->command,
                             args->out, err);
    if (status)
        return phema_fail_in(err, status, "%s: provenance", args->out);
    struct cli_run_values *run = &verifying->replayed->run;
    verifying->replayed->common.style.is_quiet =
        !args->common.style.is_verbose || !args->snapshots; /* see hide_contents */
    verifying->replayed->common.style.is_mute = true;       /* synth has warned, as is recorded */
    run->plan.options.checks = PHEMA_CHECKS_WARN;
    run->threads = args->threads;
    run->synth.max_ram_bytes = args->options.max_ram_bytes;
    run->synth.io = args->options.io;
    run->synth.sample = args->options.sample;
    /* a few tiles do not cover all the data */
    run->outputs.hashes_inputs =
        verifying->recorded->inputs[0].has_data_sum && !args->options.sample;
    /* the bits are those of the processor, except for sums of cuBLAS, which only cuBLAS repeats */
    run->device = run->synth.gpu.uses_blas ? "cuda" : "cpu";
    run->accumulate = (unsigned)cli_find_choice(CLI_PRECISIONS, verifying->recorded->accumulator);
    run->plan.options.series.checkpoint = args->checkpoint;
    return is_first(args) ? find_snapshots(verifying, err) : PHEMA_OK;
}

/* True when a message begins with the path of SNAPSHOTS or of a file in it. */
static bool is_about(const char *message, const char *snapshots)
{
    const char *path = snapshots + (*snapshots == '@');
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    return strncmp(message, path, size) == 0 && (message[size] == ':' || message[size] == '/');
}

/* Finds the first path in a message; line numbers are skipped. */
static void find_place(struct phema_name_buffer *place, const char *message)
{
    for (int i = 0; i < 3; i++) { /* "--profile: 'table:FILE': FILE: ..." */
        const char *colon = strstr(message, ": ");
        char *path = colon ? strndup(message, (size_t)(colon - message)) : NULL;
        struct stat st;
        bool is_path = path && lstat(path, &st) == 0;
        if (is_path)
            (void)phema_name_escape(place, path, strlen(path));
        free(path);
        if (is_path || !colon)
            return;
        message = colon + 2;
    }
}

/* A provenance may come from anyone and may name any file: a list, a manifest, weights, a table.
 * Error messages quote such files where they are malformed. So only the path is shown when the
 * recorded command fails. Files that the user has named with --snapshots are quoted. */
static enum phema_status hide_contents(const struct verify_values *args, enum phema_status status,
                                       struct phema_error *err)
{
    static const char *const kinds[] = {
        [PHEMA_NO] = "the snapshots have other tensors",
        [PHEMA_ERR_USAGE] = "is not accepted by this version",
        [PHEMA_ERR_FILE] = "cannot be read, or is not of the kind that the command takes",
        [PHEMA_ERR_INPUTS] = "does not fit the command, or the other snapshots",
        [PHEMA_ERR_TARGET] = "the target cannot be reached from the snapshots",
    };
    bool is_of_user = strncmp(err->message, "--threads: ", 11) == 0 ||
                      (args->snapshots && is_about(err->message, args->snapshots));
    if (is_of_user || (size_t)status >= ARRAY_LEN(kinds) || !kinds[status])
        return status;
    struct phema_name_buffer place = {"what its command names"};
    find_place(&place, err->message);
    return phema_fail(err, status,
                      "%s: cannot be made again: %s: %s; the contents of files that a provenance "
                      "names are not shown, but with --snapshots those of SNAPSHOTS",
                      args->out, place.text, kinds[status]);
}

/* Weights that differ are only reported: the comparison continues with those that are recorded. */
static enum phema_status check_weights(struct verifying *verifying, size_t target,
                                       struct phema_error *err)
{
    struct phema_error why = {0};
    enum phema_status status =
        phema_provenance_check_weights(verifying->recorded, verifying->prepared.plan, target, &why);
    verifying->are_weights_same = !status;
    if (status)
        render_warn(&verifying->args->common.style,
                    "%s: %s from newly solved ones; using those in the provenance, of %s",
                    verifying->args->out, why.message, verifying->recorded->program);
    return phema_provenance_apply(verifying->recorded, verifying->prepared.plan, target, err);
}

static enum phema_status make_plan(struct verifying *verifying, struct phema_error *err)
{
    struct cli_synth_values *replayed = verifying->replayed;
    struct cli_prepared *prepared = &verifying->prepared;
    const struct phema_provenance *recorded = verifying->recorded;
    enum phema_status status =
        cli_prepare_plan(prepared, &replayed->common, &replayed->run, NULL, err);
    if (status)
        return hide_contents(verifying->args, status, err);
    size_t target = phema_provenance_find_target(recorded, prepared->plan);
    if (target == SIZE_MAX)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: its provenance has another target than its command",
                          verifying->args->out);
    if (recorded->inputs[0].digest)
        status = phema_series_identify(prepared->plan->series, err);
    if (status)
        return hide_contents(verifying->args, status, err);
    status = phema_provenance_check_inputs(recorded, prepared->plan, target, err);
    if (!status)
        status = phema_provenance_check_rows(recorded, prepared->plan, err);
    if (status)
        return phema_fail_in(err, status, "%s", verifying->args->out);
    if (!recorded->inputs[0].digest)
        render_warn(&verifying->args->common.style,
                    "%s: its provenance does not say what its inputs were like",
                    verifying->args->out);
    status = check_weights(verifying, target, err);
    if (status)
        return status;
    status = cli_prepare_outputs(prepared, &replayed->common, &replayed->run,
                                 replayed->run.outputs.out, err);
    return status ? hide_contents(verifying->args, status, err) : PHEMA_OK;
}

/* ---- Results ---- */

static bool is_equal(const struct phema_verification *found)
{
    return found->n == 0 && found->n_other_bytes == 0;
}

static void write_checks_json(struct phema_json_out *json, const struct phema_provenance *recorded)
{
    if (!recorded->verdict) {
        phema_json_out_null(json, "recorded_checks");
        return;
    }
    phema_json_out_open(json, "recorded_checks", '{');
    phema_json_out_string(json, "verdict", recorded->verdict);
    if (recorded->reason)
        phema_json_out_string(json, "reason", recorded->reason);
    else
        phema_json_out_null(json, "reason");
    phema_json_out_close(json, '}');
}

/* What synth said of the snapshots when it made the output. */
static void write_checks_line(struct phema_strbuf *text, const struct phema_provenance *recorded)
{
    bool is_wrong = recorded->verdict && strcmp(recorded->verdict, "wrong") == 0;
    bool is_doubtful = recorded->verdict && strcmp(recorded->verdict, "doubtful") == 0;
    if (!is_wrong && !is_doubtful)
        return;
    phema_strbuf_puts(text, is_wrong ? "  made of snapshots that do not fit their labels: "
                                     : "  made of snapshots in doubt: ");
    phema_strbuf_puts_escaped(text,
                              recorded->reason ? recorded->reason : "the reason is not recorded");
    phema_strbuf_puts(text, "\n");
}

static void write_json(struct phema_strbuf *text, const struct verifying *verifying)
{
    const struct phema_verification *found = &verifying->found;
    const struct phema_series *series = verifying->prepared.plan->series;
    struct phema_json_out json;
    render_json_begin(&json, text, true);
    phema_json_out_path(&json, "file", verifying->args->out);
    phema_json_out_bool(&json, "equal", is_equal(found));
    phema_json_out_bool(&json, "same_weights", verifying->are_weights_same);
    write_checks_json(&json, verifying->recorded);
    phema_json_out_u64(&json, "snapshots", verifying->recorded->n_inputs);
    phema_json_out_u64(&json, "elements", found->n_elems);
    phema_json_out_u64(&json, "tiles", found->n_tiles);
    phema_json_out_u64(&json, "tiles_compared", found->n_taken);
    phema_json_out_open(&json, "differences", '[');
    for (size_t x = 0; x < found->n; x++) {
        const struct phema_tensor *tensor = &series->tensors[found->differences[x].tensor].tensor;
        phema_json_out_open(&json, NULL, '{');
        phema_json_out_bytes(&json, "name", tensor->name, tensor->name_size);
        phema_json_out_u64(&json, "elements", found->differences[x].n_elems);
        phema_json_out_close(&json, '}');
    }
    phema_json_out_close(&json, ']');
    phema_json_out_u64(&json, "other_bytes", found->n_other_bytes);
    if (found->sums) {
        phema_json_out_open(&json, "changed_snapshots", '[');
        for (size_t x = 0; x < verifying->n_changed; x++)
            phema_json_out_string(&json, NULL,
                                  verifying->recorded->inputs[verifying->changed[x]].file);
        phema_json_out_close(&json, ']');
    }
    phema_json_out_u64(&json, "read_bytes", found->read_bytes);
    phema_json_out_number(&json, "seconds", found->elapsed_s);
    render_write_warnings(&json, &verifying->args->common.style);
    render_json_end(&json);
}

static void write_lines(struct phema_strbuf *text, const struct verifying *verifying)
{
    const struct phema_verification *found = &verifying->found;
    const struct phema_series *series = verifying->prepared.plan->series;
    const char *out = verifying->args->out;
    phema_strbuf_puts_escaped(text, out);
    phema_strbuf_puts(text, is_equal(found) ? ": equal" : ": differs");
    phema_strbuf_printf(text, ": %llu elements compared, recomputed from %zu snapshots",
                        (unsigned long long)found->n_elems, verifying->recorded->n_inputs);
    if (found->n_taken < found->n_tiles)
        phema_strbuf_printf(text, " (%llu of %llu tiles)", (unsigned long long)found->n_taken,
                            (unsigned long long)found->n_tiles);
    phema_strbuf_puts(text, "\n");
    for (size_t x = 0; x < found->n && x < MAX_NAMED; x++) {
        const struct phema_tensor *tensor = &series->tensors[found->differences[x].tensor].tensor;
        struct phema_name_buffer shown;
        phema_strbuf_printf(text, "  tensor '%s': %llu of %llu elements differ\n",
                            phema_name_escape(&shown, tensor->name, tensor->name_size),
                            (unsigned long long)found->differences[x].n_elems,
                            (unsigned long long)tensor->n_elems);
    }
    if (found->n > MAX_NAMED)
        phema_strbuf_printf(text, "  and %zu more tensors\n", found->n - MAX_NAMED);
    if (found->n_other_bytes)
        phema_strbuf_printf(text, "  %llu bytes differ that are no replaced tensor's\n",
                            (unsigned long long)found->n_other_bytes);
    for (size_t x = 0; x < verifying->n_changed && x < MAX_NAMED; x++) {
        const char *file = verifying->recorded->inputs[verifying->changed[x]].file;
        struct phema_name_buffer shown;
        phema_strbuf_printf(
            text,
            "  snapshot '%s': its tensor data are not those that the output was made "
            "of\n",
            phema_name_escape(&shown, file, strlen(file)));
    }
    if (verifying->n_changed > MAX_NAMED)
        phema_strbuf_printf(text, "  and %zu more snapshots\n", verifying->n_changed - MAX_NAMED);
    write_checks_line(text, verifying->recorded);
}

/* ---- The verb ---- */

static enum phema_status find_changed(struct verifying *verifying, struct phema_error *err)
{
    const struct phema_verification *found = &verifying->found;
    const struct phema_provenance *recorded = verifying->recorded;
    if (!found->sums || found->n_sums != recorded->n_inputs)
        return PHEMA_OK;
    verifying->changed = calloc(recorded->n_inputs, sizeof(*verifying->changed));
    if (!verifying->changed)
        return phema_fail_memory(err);
    verifying->n_changed = phema_provenance_find_changed(verifying->changed, recorded, found->sums);
    return PHEMA_OK;
}

/* The same message as when a snapshot is found changed on opening. */
static enum phema_status fail_changed(const struct verifying *verifying, struct phema_error *err)
{
    const char *first = verifying->recorded->inputs[verifying->changed[0]].file;
    if (verifying->n_changed == 1)
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "%s: snapshot '%s' has changed since this output was made: other tensor data",
            verifying->args->out, first);
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: %zu snapshots have changed since this output was made, '%s' is the first: "
        "other tensor data",
        verifying->args->out, verifying->n_changed, first);
}

/* One process compares all. */
static enum phema_status compare(struct verifying *verifying, struct phema_error *err)
{
    struct cli_prepared *prepared = &verifying->prepared;
    struct progress progress;
    progress_init(&progress, &verifying->args->common.style);
    progress.kept = PROGRESS_WRITES_NOTHING;
    prepared->options.report = progress_report;
    prepared->options.context = &progress;
    enum phema_status status =
        phema_synth_verify(&verifying->found, prepared->plan, &prepared->outputs,
                           &prepared->options, verifying->recorded->checkpoint, err);
    progress_finish(&progress);
    prepared->options.context = NULL;
    return status;
}

static enum phema_status report(struct verifying *verifying, enum phema_status status,
                                struct phema_error *err)
{
    if (status && !verifying->recorded->inputs[0].digest && !verifying->args->snapshots)
        return hide_contents(verifying->args, status, err); /* their contents must not be shown */
    if (status)
        return status == PHEMA_NO ? phema_fail_in(err, status, "%s", verifying->args->out) : status;
    status = find_changed(verifying, err);
    if (status)
        return status;
    struct phema_strbuf text = {0};
    if (verifying->args->common.style.is_json)
        write_json(&text, verifying);
    else
        write_lines(&text, verifying);
    status = render_print(&text, err);
    if (!status && verifying->n_changed)
        return fail_changed(verifying, err);
    return status || is_equal(&verifying->found) ? status : PHEMA_NO;
}

static enum phema_status prepare(struct verifying *verifying, struct phema_error *err)
{
    enum phema_status status = read_record(verifying, err);
    if (status)
        return status;
    return is_first(verifying->args)
               ? make_plan(verifying, err)
               : cli_prepare_run(&verifying->prepared, &verifying->replayed->run, NULL, err);
}

static enum phema_status verify(struct verifying *verifying, struct phema_error *err)
{
    enum phema_status status = prepare(verifying, err);
    if (status)
        return status;
    status = compare(verifying, err);
    return report(verifying, status, err);
}

/* The others open the output as rank 0 does, and take its plan. */
static enum phema_status verify_in_team(struct verifying *verifying, const struct phema_team *team,
                                        struct phema_error *err)
{
    struct cli_prepared *prepared = &verifying->prepared;
    enum phema_status own = prepare(verifying, err);
    enum phema_status status = team_share_plan(prepared, team, own, err);
    if (status)
        return status;
    status = team->agree(team->context, own, err);
    if (status)
        return status;
    if (team_may_share_verify(prepared, verifying->recorded->checkpoint))
        status = team_verify(&verifying->found, &verifying->args->common, prepared,
                             verifying->recorded->checkpoint, err);
    else if (is_first(verifying->args))
        status = compare(verifying, err);
    if (is_first(verifying->args))
        status = report(verifying, status, err);
    return team_share_status(team, status, err);
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct verifying verifying = {.args = values};
    const struct phema_team *team = team_of(&verifying.args->common);
    enum phema_status status =
        team ? verify_in_team(&verifying, team, err) : verify(&verifying, err);
    phema_verification_clear(&verifying.found);
    free(verifying.changed);
    cli_prepared_clear(&verifying.prepared);
    cli_replay_free(verifying.replayed);
    phema_provenance_close(verifying.recorded);
    free(verifying.moved);
    return status;
}

#define FIELD(member) offsetof(struct verify_values, member)

static const struct cli_opt rows[] = {
    {"OUT", INPUT, CLI_OPERAND, FIELD(out),
     .help = "output of synth: a file, or a directory of shards"},
    {"snapshots", INPUT, CLI_TEXT, FIELD(snapshots), "FILE|DIR",
     .help = "the snapshots, where they have moved: directory,\nmanifest (*.json) or @list.txt"},
    CLI_INCLUDE(cli_pickle_rows, FIELD(checkpoint)),
    {"sample", NUMBERS, CLI_COUNT, FIELD(options.sample), "N",
     .help = "compare N tiles only, evenly over all of them", .flags = CLI_POSITIVE},
    {"threads", RESOURCES, CLI_COUNT, FIELD(threads), "N",
     .help = "default: the processors this process may use", .flags = CLI_POSITIVE, .letter = 'j'},
    {"io", RESOURCES, CLI_CHOICE, FIELD(options.io), "auto|mmap|read|direct",
     .help = "how snapshots are read, as in synth"},
    {"io-depth", RESOURCES, CLI_COUNT, FIELD(options.io_depth), "N",
     .help = "reads past the page cache in flight at once", .flags = CLI_POSITIVE},
    {"max-ram", RESOURCES, CLI_SIZE, FIELD(options.max_ram_bytes), "SIZE", .help = "memory limit",
     .flags = CLI_POSITIVE},
    CLI_INCLUDE(cli_progress_rows, 0),
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_verify = {
    .name = "verify",
    .summary = "recompute an output of synth and compare it byte by byte",
    .options = rows,
    .examples = "  posthoc-ema verify out.safetensors\n"
                "      status 1 names the tensors that are not what they should be, 4 the\n"
                "      snapshot that has changed since\n"
                "  posthoc-ema verify --snapshots /archive/ckpts --sample 100 out.safetensors\n"
                "      a quick look, with snapshots that have moved\n",
    .values_size = sizeof(struct verify_values),
    .run = run,
};
