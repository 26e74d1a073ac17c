// SPDX-License-Identifier: Apache-2.0
/* memory_report.c - the memory of each stage of a run, as JSON lines in a file. */
#include <string.h>

#include "phema/json.h"
#include "phema/memory_profile.h"
#include "phema/ops.h"
#include "phema/setting.h"

PHEMA_FALLIBLE phema_memory_report_begin(struct phema_memory_report *out, const char *path,
                                         bool replaces, bool is_detailed, struct phema_error *err)
{
    *out = (struct phema_memory_report){.path = path, .replaces = replaces};
    enum phema_status status = path ? phema_writer_check_place(path, replaces, err) : PHEMA_OK;
    return status ? status : phema_memory_profile_open(&out->profile, path || is_detailed, err);
}

/* Whether the run makes the directory of the path. */
static bool makes_directory(const struct phema_outputs *outputs, const char *path)
{
    const char *slash = strrchr(path, '/'), *made = outputs->made_directory;
    size_t size = slash ? (size_t)(slash - path) : 0;
    bool is_made = made && phema_bytes_are(path, size, made);
    for (size_t j = 0; j < outputs->m; j++) {
        is_made |= phema_bytes_are(path, size, outputs->items[j].path);
    }
    return is_made;
}

PHEMA_FALLIBLE phema_memory_report_claim(struct phema_memory_report *report,
                                         const struct phema_claims *claims,
                                         const struct phema_outputs *outputs,
                                         struct phema_error *err)
{
    enum phema_status status =
        report->path ? phema_claims_check(claims, report->path, err) : PHEMA_OK;
    if (!status && report->path && !makes_directory(outputs, report->path))
        status = phema_writer_check_parent(report->path, err);
    report->is_free = !status;
    if (!status)
        return PHEMA_OK;
    report->path = NULL; /* another file of the run, or nowhere */
    phema_error_clear_changes(err);
    return phema_suggest(err, status, PHEMA_SET_PROFILE_MEMORY, "memory.jsonl");
}

static void write_level(struct phema_json_out *out, const char *name,
                        const struct phema_level *level)
{
    phema_json_out_open(out, name, '{');
    phema_json_out_u64(out, "baseline", level->baseline);
    phema_json_out_u64(out, "now", level->now);
    phema_json_out_u64(out, "peak", level->peak);
    phema_json_out_number(out, "delta", (double)level->now - (double)level->baseline);
    phema_json_out_u64(out, "peak_delta",
                       level->peak > level->baseline ? level->peak - level->baseline : 0);
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

static enum phema_status write_stages(const struct phema_memory_report *report,
                                      struct phema_error *err)
{
    struct phema_strbuf text = {0};
    for (int i = 0; i < PHEMA_N_STAGES; i++) {
        struct phema_stage_record record =
            phema_memory_profile_stage(report->profile, (enum phema_stage)i);
        if (record.is_entered)
            write_stage(&text, phema_stage_names[i], &record);
    }
    const struct phema_writer_options options = {.replaces = report->replaces};
    return phema_writer_store(report->path, &text, &options, err);
}

/* Without claims, only a file that does not exist may be written: it cannot be an input. */
static bool may_write(const struct phema_memory_report *report)
{
    struct phema_error ignored;
    struct phema_strbuf partial = {0};
    if (report->is_free)
        return true;
    phema_strbuf_printf(&partial, "%s.partial", report->path);
    bool is_absent = !partial.is_failed &&
                     !phema_writer_check_place(report->path, false, &ignored) &&
                     !phema_writer_check_place(partial.data, false, &ignored);
    phema_strbuf_clear(&partial);
    return is_absent;
}

enum phema_status phema_memory_report_end(struct phema_memory_report *report,
                                          enum phema_status status, struct phema_error *err)
{
    struct phema_error own = {0};
    if (report->path && may_write(report) && write_stages(report, &own) && !status) {
        status = PHEMA_ERR_OUTPUT;
        *err = own;
    }
    phema_memory_profile_close(report->profile);
    report->profile = NULL;
    return status;
}
