// SPDX-License-Identifier: Apache-2.0
/* cmd_synth.c - makes averaged checkpoints. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "phema/claims.h"
#include "phema/cli.h"
#include "phema/memory_profile.h"
#include "phema/progress.h"
#include "phema/report.h"
#include "phema/sink.h"
#include "phema/writer.h"
#include "processes/auto_part.h"
#include "processes/published_parts.h"
#include "processes/team_plan.h"
#include "processes/team_synth.h"
#include "replay_options.h"

/* ---- Outputs, on stdout ---- */

static void write_result(struct phema_strbuf *out, const struct cli_common *common,
                         const struct phema_plan *plan, const struct phema_outputs *outputs,
                         const struct phema_synth_result *result)
{
    if (!common->style.is_json) {
        for (size_t j = 0; j < outputs->m && !result->n_parts; j++) { /* a part publishes nothing */
            render_write_path(out, outputs->items[j].path);
            phema_strbuf_puts(out, "\n");
        }
        return;
    }
    struct phema_json_out json;
    render_json_begin(&json, out, true);
    phema_json_out_open(&json, "outputs", '[');
    for (size_t j = 0; j < outputs->m; j++) {
        const struct phema_target *target = &plan->targets[j];
        phema_json_out_open(&json, NULL, '{');
        phema_json_out_path(&json, "file", outputs->items[j].path);
        phema_json_out_u64(&json, "bytes", outputs->items[j].size_bytes);
        phema_json_out_number(&json, "sigma_rel", target->sigma_rel);
        phema_json_out_number(&json, "gamma", target->gamma);
        report_profile_json(&json, target->kind, target->spec);
        phema_json_out_number(&json, "time", target->time);
        phema_json_out_string(&json, "metric", plan->metric);
        phema_json_out_number(&json, "profile_error", target->solution.profile_error);
        phema_json_out_number(&json, "norm1", target->solution.norm1);
        phema_json_out_number(&json, "norm2", target->solution.norm2);
        report_prediction_json(&json, &target->solution.predicted);
        report_rules_json(&json, plan, target, false);
        phema_json_out_close(&json, '}');
    }
    phema_json_out_close(&json, ']');
    if (result->n_parts) {
        phema_json_out_u64(&json, "part", result->part);
        phema_json_out_u64(&json, "parts", result->n_parts);
    }
    phema_json_out_u64(&json, "read_bytes", result->read_bytes);
    phema_json_out_u64(&json, "written_bytes", result->written_bytes);
    phema_json_out_number(&json, "seconds", result->elapsed_s);
    phema_json_out_u64(&json, "peak_anonymous_bytes", result->peak_anonymous_bytes);
    phema_json_out_u64(&json, "peak_resident_bytes", result->peak_resident_bytes);
    phema_json_out_string(&json, "device", result->device.name);
    if (result->device.is_gpu)
        phema_json_out_u64(&json, "gpu_bytes", result->device.gpu_bytes);
    phema_json_out_u64(&json, "nan", result->n_nan);
    phema_json_out_u64(&json, "inf", result->n_inf);
    report_checks_json(&json, &common->style, plan);
    render_json_end(&json);
}

/* ---- What the run has done, on stderr ---- */

static size_t directory_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Prints the join command. Outputs in one directory are joined by naming the directory. */
static void report_join(const struct phema_outputs *outputs, uint64_t n_parts)
{
    const char *first = outputs->items[0].path;
    size_t size = directory_size(first);
    bool is_beside = outputs->m > 1;
    for (size_t j = 1; j < outputs->m; j++)
        is_beside = is_beside && directory_size(outputs->items[j].path) == size &&
                    memcmp(outputs->items[j].path, first, size) == 0;
    struct phema_strbuf text = {0};
    char *directory = size ? strndup(first, size) : strdup("./");
    for (size_t j = 0; j < outputs->m && !is_beside; j++) {
        phema_strbuf_puts(&text, " ");
        cli_quote_operand(&text, outputs->items[j].path);
    }
    if (is_beside && directory) {
        phema_strbuf_puts(&text, " ");
        cli_quote_operand(&text, directory);
    }
    if (text.data && !text.is_failed)
        render_say_whole("when all %llu parts are written: posthoc-ema join%s",
                         (unsigned long long)n_parts, text.data);
    free(directory);
    phema_strbuf_clear(&text);
}

static void report_io(const struct phema_synth_result *result)
{
    const struct {
        size_t n;
        const char *how, *filesystem;
    } kinds[] = {{result->n_mapped, "mapped", NULL},
                 {result->n_read, "read", result->filesystem},
                 {result->n_direct, "read past the page cache", NULL}};
    const char *between = "snapshots: ";
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!kinds[i].n)
            continue;
        (void)fprintf(stderr, "%s%zu file%s %s", between, kinds[i].n, kinds[i].n == 1 ? "" : "s",
                      kinds[i].how);
        if (kinds[i].filesystem)
            (void)fprintf(stderr, " (on %s)", kinds[i].filesystem);
        between = ", ";
    }
    (void)fprintf(stderr, "\n");
}

static void report_restarted(size_t n, const char *by)
{
    if (n)
        render_say("%zu output%s of %s: made anew", n, n == 1 ? "" : "s", by);
}

static void report_resumed(const struct phema_synth_result *result)
{
    struct phema_name_buffer read;
    if (result->n_resumed)
        render_say("resumed %zu output%s, %s already read", result->n_resumed,
                   result->n_resumed == 1 ? "" : "s",
                   phema_size_format(&read, result->resumed_bytes));
    report_restarted(result->n_stale_journals, "a run with other snapshots, weights or options");
    if (result->n_not_resumable)
        render_say(
            "%zu output%s cannot be resumed: a copy whose tensors are strided or overlap is made "
            "in one go",
            result->n_not_resumable, result->n_not_resumable == 1 ? "" : "s");
}

/* "wrote 10 averages, 382 MiB, in 3.3 s (read 1.19 GiB, 376 MiB/s, 8.5 MiB memory)" */
static void report_bytes(const struct phema_outputs *outputs,
                         const struct phema_synth_result *result)
{
    struct phema_name_buffer shown;
    struct phema_strbuf text = {0};
    double seconds = result->elapsed_s;
    phema_strbuf_puts(&text, "wrote ");
    if (result->n_parts)
        phema_strbuf_printf(&text, "part %llu of %llu%s", (unsigned long long)result->part,
                            (unsigned long long)result->n_parts, outputs->m > 1 ? " of " : "");
    if (outputs->m > 1)
        phema_strbuf_printf(&text, "%zu averages", outputs->m);
    bool has_more = result->n_parts || outputs->m > 1;
    phema_strbuf_printf(&text, "%s%s%s in %.*f s", has_more ? ", " : "",
                        phema_size_format(&shown, result->written_bytes), has_more ? "," : "",
                        seconds < 1    ? 2
                        : seconds < 10 ? 1
                                       : 0,
                        seconds);
    phema_strbuf_printf(&text, " (read %s", phema_size_format(&shown, result->read_bytes));
    if (seconds >= PROGRESS_KNOWN_AFTER_S)
        phema_strbuf_printf(
            &text, ", %s/s",
            phema_size_format(&shown, (uint64_t)((double)result->read_bytes / seconds)));
    phema_strbuf_printf(&text, ", %s memory)",
                        phema_size_format(&shown, result->peak_anonymous_bytes));
    if (text.data && !text.is_failed)
        render_say("%s", text.data);
    phema_strbuf_clear(&text);
}

/* To stderr: outputs, bytes, seconds, memory; and how to join parts. */
static void report_run(const struct cli_common *common, const struct phema_plan *plan,
                       const struct phema_outputs *outputs, const struct phema_synth_result *result,
                       bool joins)
{
    report_elements(&common->style, plan->series, result);
    if (common->style.is_quiet)
        return;
    report_restarted(result->n_stale_partials, "a killed run");
    report_resumed(result);
    report_bytes(outputs, result);
    if (common->style.is_verbose) {
        report_io(result);
        render_say(
            "%zu tensors averaged, %zu copied, %zu equal in all snapshots and copied; kernels "
            "%s, %u thread%s",
            result->n_averaged, result->n_copied, result->n_constant, result->backend,
            result->n_threads, result->n_threads == 1 ? "" : "s");
    }
    if (result->n_parts && !joins)
        report_join(outputs, result->n_parts);
}

/* To stderr: the device that computed the sums, and why it was chosen. */
static void report_device(const struct cli_common *common, const struct phema_device_choice *choice,
                          bool is_asked)
{
    struct phema_name_buffer size;
    if (common->style.is_quiet)
        return;
    if (choice->is_gpu)
        render_say("summed on %s, with %s of %s memory%s%s", choice->name,
                   phema_size_format(&size, choice->gpu_bytes),
                   choice->n_gpus > 1 ? "their" : "its", choice->why[0] ? ": " : "", choice->why);
    else if (choice->why[0] && is_asked)
        render_say("summed on the CPU: %s", choice->why);
    if (choice->note[0])
        render_say("%s", choice->note);
}

/* ---- Memory of the stages ---- */

/* The memory of each stage, as JSON lines (--profile-memory) and as a table (--verbose). */
struct memory_report {
    struct phema_memory_profile *profile;
    const char *path; /* of the lines, NULL for none; borrowed */
    bool replaces;
    bool is_free; /* path is no other file of the run (claim_memory) */
};

static enum phema_status begin_memory(struct memory_report *out, const struct cli_common *common,
                                      const char *path, bool replaces, struct phema_error *err)
{
    *out = (struct memory_report){.path = path, .replaces = replaces};
    enum phema_status status = path && !replaces ? phema_writer_check_absent(path, err) : PHEMA_OK;
    return status ? status
                  : phema_memory_profile_open(&out->profile, path || common->style.is_verbose, err);
}

/* When all files of the run are known: PHEMA_ERR_OUTPUT where the path is one of them. */
static enum phema_status claim_memory(struct memory_report *report,
                                      const struct phema_claims *claims, struct phema_error *err)
{
    enum phema_status status =
        report->path ? phema_claims_check(claims, report->path, err) : PHEMA_OK;
    report->is_free = !status;
    if (status) /* the path is another file of the run */
        report->path = NULL;
    return status;
}

static uint64_t above(uint64_t value, uint64_t baseline)
{
    return value > baseline ? value - baseline : 0;
}

static void write_level(struct phema_json_out *out, const char *name,
                        const struct phema_level *level)
{
    phema_json_out_open(out, name, '{');
    phema_json_out_u64(out, "baseline", level->baseline);
    phema_json_out_u64(out, "now", level->now);
    phema_json_out_u64(out, "peak", level->peak);
    phema_json_out_number(out, "delta", (double)level->now - (double)level->baseline);
    phema_json_out_u64(out, "peak_delta", above(level->peak, level->baseline));
    phema_json_out_close(out, '}');
}

static void write_stage(struct phema_strbuf *text, const char *name,
                        const struct phema_stage_record *record)
{
    struct phema_json_out out = {.text = text};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_string(&out, "stage", name);
    phema_json_out_number(&out, "elapsed_seconds", record->elapsed_s);
    write_level(&out, "rss_anon", &record->anonymous);
    write_level(&out, "rss_file", &record->file);
    write_level(&out, "allocated", &record->allocated);
    if (record->has_device) {
        write_level(&out, "gpu_allocated", &record->device_allocated);
        write_level(&out, "gpu_reserved", &record->device_reserved);
    }
    if (record->knows_cached)
        phema_json_out_u64(&out, "page_cache", record->cached_bytes);
    phema_json_out_u64(&out, "leaked", record->leaked_bytes);
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(text, "\n");
}

static enum phema_status write_stages(const struct memory_report *report, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record =
            phema_memory_profile_stage(report->profile, (enum phema_stage)i);
        if (record.is_entered)
            write_stage(&text, phema_stage_names[i], &record);
    }
    enum phema_status status = phema_strbuf_check(&text, err);
    struct phema_writer_options options = {.replaces = report->replaces};
    struct phema_writer *writer = NULL;
    if (!status)
        status = phema_writer_open(&writer, report->path, text.size, &options, err);
    if (!status && text.size)
        status = phema_writer_write(writer, 0, text.data, text.size, err);
    phema_strbuf_clear(&text);
    if (!status)
        return phema_writer_commit(writer, err);
    phema_writer_abandon(writer);
    return status;
}

/* Values that were not measured are left out. */
static void print_table(struct phema_memory_profile *profile)
{
    static const char *const heads[] = {"memory", "seconds", "before",    "after",
                                        "peak",   "mapped",  "page cache"};
    struct table table = {.n_columns = ARRAY_LEN(heads), .n_keys = 1};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        table_add(&table, i ? 0 : TABLE_LEFT, "%s", heads[i]);
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record = phema_memory_profile_stage(profile, (enum phema_stage)i);
        struct phema_name_buffer shown;
        if (!record.is_entered)
            continue;
        table_add(&table, 0, "%s", phema_stage_names[i]);
        table_add(&table, 0, "%.3f", record.elapsed_s);
        table_add(&table, 0, "%s", phema_size_format(&shown, record.anonymous.baseline));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.anonymous.now));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.anonymous.peak));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.file.peak));
        table_add(&table, 0, "%s",
                  record.knows_cached ? phema_size_format(&shown, record.cached_bytes) : "");
        if (!record.has_device)
            continue;
        table_add(&table, 0, "of GPUs");
        table_add(&table, 0, "%s", "");
        table_add(&table, 0, "%s", phema_size_format(&shown, record.device_allocated.baseline));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.device_allocated.now));
        table_add(&table, 0, "%s", phema_size_format(&shown, record.device_allocated.peak));
        table_add(&table, 0, "%s", "");
        table_add(&table, 0, "%s", "");
    }
    render_say_table(&table);
}

static void warn_of_leaks(struct phema_memory_profile *profile)
{
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record = phema_memory_profile_stage(profile, (enum phema_stage)i);
        struct phema_name_buffer shown;
        if (record.is_leaking)
            (void)fprintf(stderr,
                          "warning: memory grew all through '%s', by %s in its second half: a "
                          "leak\n",
                          phema_stage_names[i], phema_size_format(&shown, record.leaked_bytes));
    }
}

/* Without claims, only a file that does not exist may be written: it cannot be an input. */
static bool may_write(const struct memory_report *report)
{
    struct phema_error ignored;
    struct phema_strbuf partial = {0};
    if (report->is_free)
        return true;
    phema_strbuf_printf(&partial, "%s.partial", report->path);
    bool is_absent = !partial.is_failed && !phema_writer_check_absent(report->path, &ignored) &&
                     !phema_writer_check_absent(partial.data, &ignored);
    phema_strbuf_clear(&partial);
    return is_absent;
}

/* Writes both, also of a run that failed with status, which comes back unless writing fails. A run
 * that failed before its files were known replaces nothing. */
static enum phema_status end_memory(struct memory_report *report, const struct cli_common *common,
                                    enum phema_status status, struct phema_error *err)
{
    phema_memory_profile_end(report->profile);
    if (common->style.is_verbose && !common->style.is_quiet)
        print_table(report->profile);
    if (!common->style.is_quiet)
        warn_of_leaks(report->profile);
    struct phema_error own = {0};
    if (report->path && may_write(report) && write_stages(report, &own) && !status) {
        status = PHEMA_ERR_OUTPUT;
        *err = own;
    }
    phema_memory_profile_close(report->profile);
    return status;
}

/* ---- The verb ---- */

static enum phema_status execute(const struct cli_synth_values *args, struct cli_prepared *prepared,
                                 const struct auto_part *auto_part, struct phema_error *err)
{
    struct phema_synth_result result = {.part = args->run.synth.part,
                                        .n_parts = args->run.synth.n_parts};
    if (auto_part->is_team) {
        enum phema_status status = team_synth(&result, args, auto_part, prepared, err);
        if (status)
            return status;
        if (prepared->outputs.m > 0)
            report_run(&args->common, prepared->plan, &prepared->outputs, &result, false);
        if (args->common.team->rank > 0)
            return PHEMA_OK;
    } else if (prepared->outputs.m > 0) { /* otherwise every output is up to date */
        struct progress progress;
        progress_init(&progress, &args->common.style);
        progress.kept = args->run.synth.n_parts   ? PROGRESS_KEEPS_PART
                        : args->run.synth.resumes ? PROGRESS_KEEPS_TILES
                                                  : PROGRESS_KEEPS_NOTHING;
        progress_set_farewell(&progress, progress.kept == PROGRESS_KEEPS_NOTHING
                                             ? "nothing was written"
                                             : "run the same command to continue");
        prepared->options.report = progress_report;
        prepared->options.context = &progress;
        enum phema_status status =
            phema_synth_run(&result, prepared->plan, &prepared->outputs, &prepared->options, err);
        progress_finish(&progress);
        prepared->options.context = NULL;
        bool is_excused =
            status && args->joins && !published_parts_excuse(auto_part, args, status, err);
        if (status && !is_excused)
            return status;
        while (is_excused && prepared->outputs.m)
            phema_outputs_remove(&prepared->outputs, prepared->plan, prepared->outputs.m - 1);
        if (!is_excused) {
            report_run(&args->common, prepared->plan, &prepared->outputs, &result, args->joins);
            report_device(&args->common, &result.device, args->run.device != NULL);
        }
    }
    struct phema_strbuf text = {0};
    write_result(&text, &args->common, prepared->plan, &prepared->outputs, &result);
    if (args->joins) {
        enum phema_status status = auto_part_join(auto_part, args, &text, err);
        if (status) {
            phema_strbuf_clear(&text);
            return status;
        }
    }
    return args->common.style.is_json ? render_print(&text, err) : render_print_as_is(&text, err);
}

/* True when OUT is in another directory than the snapshots, so that it is not one of them. For a
 * snapshot the advice to use --force would be wrong. */
static bool is_outside(const char *out, const char *snapshots)
{
    struct stat place, directory;
    size_t size = directory_size(out);
    char *parent = size ? strndup(out, size) : strdup(".");
    bool is_other = parent && stat(parent, &place) == 0 && stat(snapshots, &directory) == 0 &&
                    S_ISDIR(directory.st_mode) &&
                    (place.st_ino != directory.st_ino || place.st_dev != directory.st_dev);
    free(parent);
    return is_other;
}

static enum phema_status prepare(struct cli_prepared *prepared, struct memory_report *memory,
                                 struct auto_part *auto_part, const struct cli_synth_values *args,
                                 struct phema_error *err)
{
    const struct cli_run_values *run = &args->run;
    bool is_conversion = run->plan.options.is_conversion;
    const struct phema_plan_options *wanted = &run->plan.options;
    size_t n_widths = wanted->n_sigma_rels + wanted->n_gammas + wanted->n_profiles;
    bool is_new = !run->synth.replaces && !run->synth.resumes && !args->skips_existing &&
                  !run->synth.n_parts && !args->common.team && /* these may have to finish a join */
                  is_outside(run->outputs.out, wanted->series.snapshots);
    *prepared = (struct cli_prepared){.plan = NULL};
    struct phema_plan_options checked;
    enum phema_status status = cli_plan_options(&checked, &args->common, &run->plan, err);
    if (status)
        return status;
    status = phema_outputs_check_out(&run->outputs, n_widths * (wanted->n_ats ? wanted->n_ats : 1),
                                     is_new, err);
    if (status)
        return status;
    status = cli_prepare_plan(prepared, &args->common, run, memory->profile, err);
    if (status)
        return status;
    status = cli_prepare_outputs(prepared, &args->common, run, run->outputs.out, err);
    if (!status && args->profile_memory)
        status = sink_claim_names(prepared->plan, &prepared->outputs, run->synth.part,
                                  run->synth.n_parts, err);
    if (status)
        return status;
    status = claim_memory(memory, prepared->plan->series->claims, err);
    if (!status && args->joins)
        status = auto_part_skip_done(auto_part, prepared, args, err);
    if (!status)
        status = team_is_wanted(auto_part, &args->common, &prepared->outputs, err);
    bool may_be_there = run->synth.resumes || args->joins || auto_part->is_team;
    if (!status && (args->skips_existing || (may_be_there && !is_conversion)))
        status =
            cli_skip_existing(prepared, run, args->common.verb, args->common.style.is_quiet, err);
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    struct cli_synth_values *args = values;
    struct phema_synth_options *options = &args->run.synth;
    struct memory_report memory;
    struct auto_part auto_part = {0};
    args->run.plan.options.identifies = true;
    enum phema_status status = PHEMA_OK;
    if (team_of(&args->common)) {
        args->common.style.is_mute = args->common.team->rank > 0;
        args->common.style.is_quiet = args->common.style.is_quiet || args->common.style.is_mute;
        status = team_check_options(args, err);
    }
    if (!status)
        status = part_option_read(args, err);
    if (status)
        return status;
    status = begin_memory(&memory, &args->common, args->profile_memory, options->replaces, err);
    if (status)
        return status;
    struct cli_prepared prepared = {.plan = NULL};
    const struct phema_team *team = team_of(&args->common);
    if (team && team->rank > 0) {
        auto_part.is_team = true;
        status = cli_prepare_run(&prepared, &args->run, NULL, err);
    } else {
        status = prepare(&prepared, &memory, &auto_part, args, err);
    }
    if (team)
        status = team_share_plan(&prepared, team, status, err);
    if (!team) /* each part has elements of its own */
        args->common.style.is_mute = false;
    if (!status)
        status = execute(args, &prepared, &auto_part, err);
    cli_prepared_clear(&prepared);
    auto_part_clear(&auto_part);
    if (status && args->joins)
        status = auto_part_name_process(args, status, err);
    return end_memory(&memory, &args->common, status, err);
}

#define FIELD(member) offsetof(struct cli_synth_values, member)

static const struct cli_opt rows[] = {
    CLI_INCLUDE(cli_run_rows, FIELD(run)),
    CLI_INCLUDE(cli_out_rows, FIELD(run)),
    CLI_INCLUDE(cli_make_rows, FIELD(run)),
    {"part", OUTPUT, CLI_TEXT, FIELD(part), "I/N|auto",
     .help =
         "write part I of N only; join publishes OUT when\nall N parts are written. auto: as the\n"
         "launcher says (srun, mpirun); the last one joins"},
    {"skip-existing", OUTPUT, CLI_FLAG, FIELD(skips_existing),
     .help = "keep outputs that are up to date: same snapshots,\nweights and options",
     .flags = CLI_EVERYDAY},
    {"resume", OUTPUT, CLI_FLAG, FIELD(run.synth.resumes),
     .help = "resume an interrupted run; keep partial outputs if\nthis one stops",
     .flags = CLI_EVERYDAY},
    {"nan", OUTPUT, CLI_EITHER, FIELD(run.synth.refuses_nan), "error|keep",
     .help = "NaN or infinity in the averages: keep and warn\n(default), or fail",
     .flags = CLI_NEGATED},
    {"verify", OUTPUT, CLI_FLAG, FIELD(run.synth.verifies),
     .help = "read snapshots again, and outputs back, before\noutputs get their names"},
    {"profile-memory", RESOURCES, CLI_TEXT, FIELD(profile_memory), "FILE",
     .help = "write the memory of each stage as JSON lines (-v\nprints it as a table)"},
    CLI_INCLUDE(cli_progress_rows, 0),
    CLI_INCLUDE(cli_common_rows, 0),
    {0},
};

const struct cli_verb cli_synth = {
    .name = "synth",
    .summary = "make averaged checkpoints",
    .options = rows,
    .examples = "  posthoc-ema synth --sigma-rel 0.1 ckpts/ out.safetensors\n"
                "      the average of relative width 0.1 at the newest snapshot\n"
                "  posthoc-ema synth --sigma-rel 0.05:0.25:0.05 ckpts/ sweep/\n"
                "      five widths in one pass over the snapshots\n"
                "  posthoc-ema synth --sigma-rel 0.1 --metric profile edm2/ out.pkl\n"
                "      a copy of the newest pickle that holds the average, with the weights of\n"
                "      the paper and of EDM2\n"
                "  posthoc-ema synth --sigma-rel 0.1 --shard-size 5GB ckpts/ model/\n"
                "      a directory of safetensors files and their index\n"
                "  posthoc-ema synth --sigma-rel 0.1 --ranks 8 ckpts/ step-1000/\n"
                "      a distributed checkpoint of eight files for torch\n"
                "  posthoc-ema synth --input-sigma 0.05,0.28 --update-every 10 --sigma-rel 0.1 \\\n"
                "      posthoc-ema/ out.safetensors\n"
                "      files of pytorch-posthoc-ema, whose settings are not in them\n"
                "  posthoc-ema synth --convert model.pt model.safetensors\n"
                "      one checkpoint in another format\n"
                "  posthoc-ema synth --part 2/8 --sigma-rel 0.1 ckpts/ out.safetensors\n"
                "      the second of eight processes; posthoc-ema join out.safetensors ends it\n"
                "  srun posthoc-ema synth --part auto --sigma-rel 0.1 ckpts/ out.safetensors\n"
                "      all processes of the step share the work; the last one publishes\n",
    .values_size = sizeof(struct cli_synth_values),
    .run = run,
};
