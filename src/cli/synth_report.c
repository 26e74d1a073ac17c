// SPDX-License-Identifier: Apache-2.0
/* synth_report.c - what a run has done, on stderr; and the memory of its stages, as JSON lines and
 * as a table. */
#include "synth_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"
#include "phema/json.h"
#include "phema/writer.h"

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
        cli_say("when all %llu parts are written: posthoc-ema join%s", (unsigned long long)n_parts,
                text.data);
    free(directory);
    phema_strbuf_clear(&text);
}

static void report_io(const struct phema_synth_result *result)
{
    const char *between = "snapshots: ";
    if (result->n_mapped)
        (void)fprintf(stderr, "%s%zu file%s mapped", between, result->n_mapped,
                      result->n_mapped == 1 ? "" : "s");
    between = result->n_mapped ? ", " : between;
    if (result->n_read)
        (void)fprintf(stderr, "%s%zu file%s read", between, result->n_read,
                      result->n_read == 1 ? "" : "s");
    if (result->n_read && result->filesystem)
        (void)fprintf(stderr, " (on %s)", result->filesystem);
    between = result->n_read ? ", " : between;
    if (result->n_direct)
        (void)fprintf(stderr, "%s%zu file%s read past the page cache", between, result->n_direct,
                      result->n_direct == 1 ? "" : "s");
    (void)fprintf(stderr, "\n");
}

static void report_resumed(const struct phema_synth_result *result)
{
    struct phema_name_buffer read;
    if (result->n_resumed)
        (void)fprintf(stderr,
                      "went on with %zu output%s of an ended run: %s need not be read again\n",
                      result->n_resumed, result->n_resumed == 1 ? "" : "s",
                      phema_size_format(&read, result->resumed_bytes));
    if (result->n_stale_journals)
        (void)fprintf(stderr,
                      "%zu output%s begun by a run with other snapshots, weights or options, and "
                      "%s made anew\n",
                      result->n_stale_journals, result->n_stale_journals == 1 ? " was" : "s were",
                      result->n_stale_journals == 1 ? "is" : "are");
    if (result->n_not_resumable)
        (void)fprintf(stderr,
                      "%zu output%s of a form that is always made in one go: a copy whose tensors "
                      "are strided or overlap\n",
                      result->n_not_resumable, result->n_not_resumable == 1 ? " is" : "s are");
}

void report_synth(const struct cli_common *common, const struct phema_plan *plan,
                  const struct phema_outputs *outputs, const struct phema_synth_result *result)
{
    if (common->is_quiet)
        return;
    struct phema_name_buffer written, read, rate, memory, name;
    const struct phema_series *series = plan->series;
    if (result->n_nan + result->n_inf)
        cli_say("warning: %llu NaN and %llu infinite elements, the first in tensor '%s'",
                (unsigned long long)result->n_nan, (unsigned long long)result->n_inf,
                phema_name_escape(&name, series->tensors[result->nan_tensor].tensor.name,
                                  series->tensors[result->nan_tensor].tensor.name_size));
    if (result->n_overflow)
        (void)fprintf(stderr, "warning: %llu averages were too large for the dtype\n",
                      (unsigned long long)result->n_overflow);
    if (result->n_stale_partials)
        (void)fprintf(stderr, "%zu output%s begun by a run that was killed, and %s made anew\n",
                      result->n_stale_partials, result->n_stale_partials == 1 ? " was" : "s were",
                      result->n_stale_partials == 1 ? "is" : "are");
    report_resumed(result);
    double worst = 0;
    for (size_t j = 0; j < plan->m; j++)
        worst = fmax(worst, plan->targets[j].solution.profile_error);
    if (result->n_parts)
        (void)fprintf(stderr, "part %llu of %llu of ", (unsigned long long)result->part,
                      (unsigned long long)result->n_parts);
    (void)fprintf(stderr, "%zu output%s, %s, in %.2f s: read %s (%s/s), peak anonymous memory %s",
                  outputs->m, outputs->m == 1 ? "" : "s",
                  phema_size_format(&written, result->written_bytes), result->elapsed_s,
                  phema_size_format(&read, result->read_bytes),
                  phema_size_format(&rate, (uint64_t)((double)result->read_bytes /
                                                      fmax(result->elapsed_s, 1e-6))),
                  phema_size_format(&memory, result->peak_anonymous_bytes));
    if (!isnan(plan->targets[0].solution.profile_error))
        (void)fprintf(stderr, ", profile error %.2e%s", worst, plan->m > 1 ? " at most" : "");
    (void)fprintf(stderr, "\n");
    if (common->is_verbose)
        report_io(result);
    if (common->is_verbose)
        (void)fprintf(stderr,
                      "%zu tensors averaged, %zu copied, %zu equal in all snapshots and copied; "
                      "kernels %s, %u thread%s\n",
                      result->n_averaged, result->n_copied, result->n_constant, result->backend,
                      result->n_threads, result->n_threads == 1 ? "" : "s");
    if (result->n_parts)
        report_join(outputs, result->n_parts);
}

void report_device(const struct cli_common *common, const struct phema_device_choice *choice,
                   bool is_asked)
{
    struct phema_name_buffer size;
    if (common->is_quiet)
        return;
    if (choice->is_gpu)
        cli_say("added up on %s, with %s of %s memory%s%s", choice->name,
                phema_size_format(&size, choice->gpu_bytes), choice->n_gpus > 1 ? "their" : "its",
                choice->why[0] ? ": " : "", choice->why);
    else if (choice->why[0] && (is_asked || common->is_verbose))
        cli_say("added up on the CPU: %s", choice->why);
    if (choice->note[0])
        cli_say("%s", choice->note);
}

/* ---- Memory ---- */

PHEMA_FALLIBLE memory_report_begin(struct memory_report *out, const struct cli_common *common,
                                   const char *path, bool replaces, struct phema_error *err)
{
    *out = (struct memory_report){.path = path, .replaces = replaces};
    enum phema_status status = PHEMA_OK;
    if (path && !replaces)
        status = phema_writer_check_absent(path, err);
    return status ? status
                  : phema_memory_profile_open(&out->ledger, path || common->is_verbose, err);
}

PHEMA_FALLIBLE memory_report_claim(struct memory_report *report, const struct phema_claims *claims,
                                   struct phema_error *err)
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

static void write_line(struct phema_strbuf *text, const char *name,
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

static enum phema_status write_lines(const struct memory_report *report, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record =
            phema_memory_profile_stage(report->ledger, (enum phema_stage)i);
        if (record.is_entered)
            write_line(&text, phema_stage_names[i], &record);
    }
    enum phema_status status = phema_strbuf_check(&text, err);
    struct phema_writer_options options = {.replaces = report->replaces};
    struct phema_writer *writer = NULL;
    if (!status)
        status = phema_writer_open(&writer, report->path, text.size, &options, err);
    if (!status && text.size)
        status = phema_writer_write(writer, 0, text.data, text.size, err);
    if (!status)
        status = phema_writer_commit(writer, err);
    else
        phema_writer_abandon(writer);
    phema_strbuf_clear(&text);
    return status;
}

static void print_table(struct phema_memory_profile *ledger)
{
    (void)fprintf(stderr, "%-10s %9s  %10s %10s %10s  %10s  %10s\n", "memory", "seconds", "before",
                  "after", "peak", "mapped", "page cache");
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record = phema_memory_profile_stage(ledger, (enum phema_stage)i);
        struct phema_name_buffer before, after, peak, mapped, cached;
        if (!record.is_entered)
            continue;
        (void)fprintf(stderr, "%-10s %9.3f  %10s %10s %10s  %10s  %10s\n", phema_stage_names[i],
                      record.elapsed_s, phema_size_format(&before, record.anonymous.baseline),
                      phema_size_format(&after, record.anonymous.now),
                      phema_size_format(&peak, record.anonymous.peak),
                      phema_size_format(&mapped, record.file.peak),
                      record.knows_cached ? phema_size_format(&cached, record.cached_bytes) : "?");
        if (record.has_device)
            (void)fprintf(stderr, "%-10s %9s  %10s %10s %10s\n", "  of GPUs", "",
                          phema_size_format(&before, record.device_allocated.baseline),
                          phema_size_format(&after, record.device_allocated.now),
                          phema_size_format(&peak, record.device_allocated.peak));
    }
}

static void warn_of_leaks(struct phema_memory_profile *ledger)
{
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record = phema_memory_profile_stage(ledger, (enum phema_stage)i);
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

enum phema_status memory_report_end(struct memory_report *report, const struct cli_common *common,
                                    enum phema_status status, struct phema_error *err)
{
    phema_memory_profile_end(report->ledger);
    if (common->is_verbose && !common->is_quiet)
        print_table(report->ledger);
    if (!common->is_quiet)
        warn_of_leaks(report->ledger);
    struct phema_error own = {""};
    if (report->path && may_write(report) && write_lines(report, &own) && !status) {
        status = PHEMA_ERR_OUTPUT;
        *err = own;
    }
    phema_memory_profile_close(report->ledger);
    report->ledger = NULL;
    return status;
}
