// SPDX-License-Identifier: Apache-2.0
/* memory_report.c - see memory_report.h. */
#include "memory_report.h"

#include <stdio.h>

#include "phema/json.h"
#include "phema/strbuf.h"
#include "phema/writer.h"

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
        status = phema_writer_put(writer, 0, text.data, text.size, err);
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

/* A file that does not exist is no input. */
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
