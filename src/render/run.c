// SPDX-License-Identifier: Apache-2.0
/* run.c - what a run of synth has made, as paths and as JSON; what it took; memory of its stages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "phema/memory_profile.h"
#include "phema/progress.h"

/* ---- Outputs, on stdout ---- */

/* Of those that are there after the run the output at a place, which has the same index as its
 * target: written now, or kept. at: its place among all; n_seen: kept ones before it */
static size_t find_output(const struct phema_outputs *outputs, size_t at, size_t *n_seen,
                          bool *is_kept)
{
    size_t kept = outputs->m + *n_seen;
    *is_kept = *n_seen < outputs->n_kept &&
               (outputs->items[kept].place <= at || at - *n_seen >= outputs->m);
    *n_seen += *is_kept;
    return *is_kept ? kept : at - *n_seen;
}

static void write_output_json(struct phema_json_out *json, const struct phema_plan *plan,
                              const struct phema_output *output, const struct phema_target *target,
                              bool is_kept)
{
    phema_json_out_open(json, NULL, '{');
    phema_json_out_path(json, "file", output->path);
    phema_json_out_string(json, "status", is_kept ? "kept" : "written");
    phema_json_out_u64(json, "bytes", output->size_bytes);
    phema_record_write(json, phema_target_fields, "sigma_rel gamma profile spec r_squared time",
                       target);
    phema_json_out_string(json, "metric", plan->metric);
    phema_record_write(json, phema_solution_fields, "profile_error norm1 norm2 predicted_error",
                       &target->solution);
    report_rules_json(json, plan, target, false);
    phema_json_out_close(json, '}');
}

void run_write(struct phema_strbuf *out, const struct render_style *style,
               const struct phema_synthesis *synthesis)
{
    const struct phema_plan *plan = synthesis->prepared.plan;
    const struct phema_outputs *outputs = &synthesis->prepared.outputs;
    const struct phema_synth_result *result = &synthesis->result;
    bool is_json = style->is_json, is_kept = false;
    struct phema_json_out json;
    if (is_json) {
        render_json_begin(&json, out, true);
        phema_json_out_open(&json, "outputs", '[');
    }
    for (size_t at = 0, n_seen = 0; at < outputs->m + outputs->n_kept; at++) {
        size_t j = find_output(outputs, at, &n_seen, &is_kept);
        if (is_json) {
            write_output_json(&json, plan, &outputs->items[j], &plan->targets[j], is_kept);
        } else if (!result->n_parts) { /* a part publishes nothing */
            render_write_path(out, outputs->items[j].path);
            phema_strbuf_puts(out, "\n");
        }
    }
    if (!is_json)
        return;
    phema_json_out_close(&json, ']');
    phema_record_write(&json, phema_synth_result_fields, NULL, result);
    report_checks_json(&json, style, plan);
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
        phema_strbuf_put_operand(&text, outputs->items[j].path);
    }
    if (is_beside && directory) {
        phema_strbuf_puts(&text, " ");
        phema_strbuf_put_operand(&text, directory);
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
    render_say_text(&text);
}

/* To stderr: outputs, bytes, seconds, memory; and how to join parts. */
void report_run(const struct render_style *style, const struct phema_synthesis *synthesis)
{
    const struct phema_synth_result *result = &synthesis->result;
    const struct phema_outputs *outputs = &synthesis->prepared.outputs;
    report_elements(style, synthesis->prepared.plan->series, result);
    if (style->is_quiet)
        return;
    report_restarted(result->n_stale_partials, "a killed run");
    report_resumed(result);
    report_bytes(outputs, result);
    if (style->is_verbose) {
        report_io(result);
        render_say(
            "%zu tensors averaged, %zu copied, %zu equal in all snapshots and copied; kernels "
            "%s, %u thread%s",
            result->n_averaged, result->n_copied, result->n_constant, result->backend,
            result->n_threads, result->n_threads == 1 ? "" : "s");
    }
    if (result->n_parts && !synthesis->joins)
        report_join(outputs, result->n_parts);
}

/* To stderr: the device that computed the sums, and why it was chosen. */
void report_device(const struct render_style *style, const struct phema_device_choice *choice,
                   bool is_asked)
{
    struct phema_name_buffer size;
    if (style->is_quiet)
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

static void add_level(struct table *table, const struct phema_level *level)
{
    const uint64_t sizes[] = {level->baseline, level->now, level->peak};
    struct phema_name_buffer shown;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        table_add(table, 0, "%s", phema_size_format(&shown, sizes[i]));
}

/* Values that were not measured are left out. */
void report_memory(struct phema_memory_profile *profile)
{
    struct table table = {.n_keys = 1};
    table_add_titles(&table, "<memory|seconds|before|after|peak|mapped|page cache");
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record = phema_memory_profile_stage(profile, (enum phema_stage)i);
        struct phema_name_buffer shown;
        if (!record.is_entered)
            continue;
        table_add(&table, 0, "%s", phema_stage_names[i]);
        table_add(&table, 0, "%.3f", record.elapsed_s);
        add_level(&table, &record.anonymous);
        table_add(&table, 0, "%s", phema_size_format(&shown, record.file.peak));
        table_add(&table, 0, "%s",
                  record.knows_cached ? phema_size_format(&shown, record.cached_bytes) : "");
        if (!record.has_device)
            continue;
        table_add(&table, 0, "of GPUs");
        table_add(&table, 0, "%s", "");
        add_level(&table, &record.device_allocated);
        table_add(&table, 0, "%s", "");
        table_add(&table, 0, "%s", "");
    }
    render_say_table(&table);
}

void report_leaks(struct phema_memory_profile *profile)
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
