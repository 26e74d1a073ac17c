// SPDX-License-Identifier: Apache-2.0
/* sink_open.c - Open one output: its names, preconditions, the journal of an interrupted run, and
 * the files by form. New files start with their headers, a copy starts as the template, and a
 * compressed output is filled as a plain file first. A process that writes a part opens its part
 * of every file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sink_internal.h"

/* ---- Names ---- */

/* ".part-2-of-8" where the output is not written whole, and another suffix */
static void format_part(char suffix[72], uint64_t part, uint64_t n_parts, const char *end)
{
    (void)snprintf(suffix, 72, "%s", end);
    if (n_parts)
        (void)snprintf(suffix, 72, ".part-%llu-of-%llu%s", (unsigned long long)part,
                       (unsigned long long)n_parts, end);
}

/* The output's path and the names next to it that a run may write; returns how many. */
static size_t list_suffixes(const char *suffixes[4], const struct phema_outputs *outputs,
                            const struct phema_output *output)
{
    const char *plain = phema_output_traits(outputs)->plain_suffix;
    size_t n = 0;
    suffixes[n++] = "";
    if (output->sidecar)
        suffixes[n++] = ".json";
    if (*plain)
        suffixes[n++] = plain;
    suffixes[n++] = ".journal";
    return n;
}

static enum phema_status claim_name(struct phema_claims *claims, const char *path,
                                    const char *suffix, const char *name, struct phema_error *err)
{
    char *full = sink_path(path, suffix, "", name);
    enum phema_status status =
        full ? phema_claims_add_output(claims, full, err) : phema_fail_memory(err);
    free(full);
    return status;
}

PHEMA_FALLIBLE sink_claim_names(const struct phema_plan *plan, const struct phema_outputs *outputs,
                                uint64_t part, uint64_t n_parts, struct phema_error *err)
{
    struct phema_claims *claims = plan->series->claims;
    bool is_compressed = phema_output_traits(outputs)->is_compressed;
    char marker[72], journal[72], frames[72];
    format_part(marker, part, n_parts, "");
    format_part(journal, part, n_parts, ".journal");
    format_part(frames, part, n_parts, ".frames");
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < outputs->m; j++) {
        const struct phema_output *output = &outputs->items[j];
        const char *suffixes[4 + 3];
        size_t n = list_suffixes(suffixes, outputs, output);
        if (n_parts) {
            suffixes[n++] = marker;
            suffixes[n++] = journal;
            if (is_compressed)
                suffixes[n++] = frames;
        }
        for (size_t x = 0; x < n && !status; x++)
            status = claim_name(claims, output->path, suffixes[x], NULL, err);
        bool is_directory = phema_output_traits(outputs)->is_directory;
        for (size_t f = 0; f < output->n_files && is_directory && !status; f++)
            status = claim_name(claims, output->path, "", output->files[f].name, err);
        for (size_t f = 0; f < outputs->n_side_files && is_directory && !status; f++)
            status = claim_name(claims, output->path, "", outputs->side_files[f].name, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

size_t sink_n_files(const struct phema_outputs *outputs, bool resumes)
{
    /* one more for a sidecar, a directory or a compressed file, and one for a journal */
    return outputs->m ? outputs->items[0].n_files + 1 + resumes : 0;
}

PHEMA_FALLIBLE sink_watch_files(const struct phema_outputs *outputs, size_t output,
                                struct phema_memory_profile *profile, struct phema_error *err)
{
    const struct phema_output *item = &outputs->items[output];
    const char *plain = phema_output_traits(outputs)->plain_suffix;
    const char *const suffixes[][2] = {{"", ""}, {"", ".partial"}, {plain, ".partial"}};
    size_t n_suffixes = *plain ? 3 : 2;
    for (size_t x = 0; x < item->n_files * n_suffixes; x++) {
        const char *const *suffix = suffixes[x % n_suffixes];
        char *path = sink_path(item->path, suffix[0], suffix[1], item->files[x / n_suffixes].name);
        enum phema_status status =
            path ? phema_memory_profile_watch_file(profile, path, err) : phema_fail_memory(err);
        free(path);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Preconditions ---- */

/* An average never replaces one of its snapshots, nor the directory of one. */
static enum phema_status check_names(const struct phema_plan *plan,
                                     const struct phema_outputs *outputs,
                                     const struct phema_output *output, struct phema_error *err)
{
    const char *suffixes[4];
    size_t n = list_suffixes(suffixes, outputs, output);
    enum phema_status status = PHEMA_OK;
    for (size_t x = 0; x < n && !status; x++) {
        char *path = sink_path(output->path, suffixes[x], "", NULL);
        status = path ? phema_claims_check_inputs(plan->series->claims, path, err)
                      : phema_fail_memory(err);
        free(path);
    }
    return status;
}

static bool has_folders(const struct phema_outputs *outputs, const struct phema_output *output)
{
    bool has_any = false;
    for (size_t f = 0; f < output->n_files && !has_any; f++)
        has_any = output->files[f].name && strchr(output->files[f].name, '/');
    for (size_t f = 0; f < outputs->n_side_files && !has_any; f++)
        has_any = strchr(outputs->side_files[f].name, '/');
    return has_any;
}

/* A directory whose files are all replaced. */
static enum phema_status check_replaced(const char *path, struct phema_error *err)
{
    bool is_replaceable = !phema_path_is_directory(path);
    enum phema_status status =
        is_replaceable ? PHEMA_OK : phema_directory_holds_checkpoint(&is_replaceable, path, err);
    if (status || is_replaceable)
        return status;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: holds files, but no checkpoint that an output may replace; choose "
                      "another name",
                      path);
}

PHEMA_FALLIBLE sink_check(const struct phema_plan *plan, const struct phema_outputs *outputs,
                          size_t output, const struct sink_options *options,
                          struct phema_error *err)
{
    const struct phema_output *item = &outputs->items[output];
    enum phema_status status = check_names(plan, outputs, item, err);
    if (status)
        return status;
    if (phema_output_traits(outputs)->is_directory) {
        bool is_nested = has_folders(outputs, item);
        status = phema_writer_directory_check(item->path, true, is_nested, err);
        if (!status && !is_nested)
            status = check_replaced(item->path, err);
        return status || options->replaces
                   ? status
                   : phema_writer_directory_check(item->path, false, is_nested, err);
    }
    status = phema_writer_check_place(item->path, options->replaces, err);
    if (status || options->replaces || !item->sidecar)
        return status;
    return phema_writer_check_sidecar_absent(item->path, err);
}

/* Whether a replaced tensor is scattered over the copy. */
static bool is_any_strided(const struct phema_plan *plan, const struct phema_outputs *outputs,
                           const struct phema_output *output)
{
    for (size_t i = 0; i < plan->series->n_tensors; i++)
        if (outputs->is_replaced[i] && output->locations[i].stride)
            return true;
    return false;
}

bool sink_can_resume(const struct phema_plan *plan, const struct phema_outputs *outputs,
                     size_t output)
{
    return !phema_output_traits(outputs)->is_copy ||
           (!outputs->is_in_order && !is_any_strided(plan, outputs, &outputs->items[output]));
}

PHEMA_FALLIBLE phema_outputs_check_parts(const struct phema_plan *plan,
                                         const struct phema_outputs *outputs,
                                         struct phema_error *err)
{
    const char *path = outputs->m ? outputs->items[0].path : "";
    if (outputs->has_new_scales)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_PART,
                                  "%s is fp8 with new scales, which one process finds; leave out "
                                  "%s, or %ssame",
                                  path, phema_setting_name(PHEMA_SET_PART),
                                  phema_setting_equals(PHEMA_SET_DTYPE));
    for (size_t j = 0; j < outputs->m; j++) {
        if (!sink_can_resume(plan, outputs, j))
            return phema_fail_setting(
                err, PHEMA_ERR_USAGE, PHEMA_SET_PART,
                "%s is a copy of a checkpoint whose tensors are strided or overlap, which one "
                "process writes in order; write .safetensors in parts, join them, and put that "
                "into a copy with synth %s %s",
                path, phema_setting_name(PHEMA_SET_CONVERT), phema_setting_name(PHEMA_SET_INTO));
        if (outputs->items[j].template && has_folders(outputs, &outputs->items[j]))
            return phema_fail_setting(
                err, PHEMA_ERR_USAGE, PHEMA_SET_PART,
                "%s is a copy of a directory with folders, which one process makes; write with %s "
                "in parts, join them, and put that into a copy with synth %s %s",
                path, phema_setting_name(PHEMA_SET_RANKS), phema_setting_name(PHEMA_SET_CONVERT),
                phema_setting_name(PHEMA_SET_INTO));
    }
    return PHEMA_OK;
}

/* ---- New files ---- */

static struct phema_writer_options writer_options(const struct sink *sink)
{
    return (struct phema_writer_options){.replaces = sink->options.replaces,
                                         .syncs = sink->options.syncs,
                                         .drops_cache = sink->options.drops_cache,
                                         .resumes =
                                             sink->found_journal == PHEMA_WRITER_JOURNAL_OURS};
}

/* Opens PATH with this suffix. */
static enum phema_status open_file(struct phema_writer **out, const struct sink *sink,
                                   const char *suffix, uint64_t size_bytes, bool replaces,
                                   bool holds_tensors, struct phema_error *err)
{
    struct phema_writer_options options = writer_options(sink);
    options.replaces = replaces;
    options.resumes = options.resumes && holds_tensors;
    char *path = sink_path(sink->output->path, suffix, "", NULL);
    enum phema_status status =
        path ? phema_writer_open(out, path, size_bytes, &options, err) : phema_fail_memory(err);
    free(path);
    return status;
}

static enum phema_status write_header(struct sink *sink, size_t f, struct phema_error *err)
{
    const struct phema_output_file *file = &sink->output->files[f];
    if (!file->header_size)
        return PHEMA_OK;
    return phema_writer_write(sink->writers[f], 0, file->header, file->header_size, err);
}

static enum phema_status open_new(struct sink *sink, struct phema_error *err)
{
    bool replaces = sink->options.replaces;
    if (sink->form->is_compressed) {
        enum phema_status status = open_file(&sink->compressed, sink, "", 0, replaces, false, err);
        if (status)
            return status;
        replaces = true; /* its plain file stays PATH.plain.partial */
    }
    enum phema_status status = open_file(&sink->writers[0], sink, sink->form->plain_suffix,
                                         sink->output->files[0].size_bytes, replaces, true, err);
    return status ? status : write_header(sink, 0, err);
}

/* The provenance comes first: beside it, the folders of a killed run may be removed. */
static enum phema_status open_directory(struct sink *sink, struct phema_error *err)
{
    struct phema_writer_options options = writer_options(sink);
    options.has_folders = has_folders(sink->outputs, sink->output);
    enum phema_status status =
        phema_writer_directory_open(&sink->directory, sink->output->path, &options, err);
    if (status)
        return status;
    for (int pass = 0; pass < 2; pass++)
        for (size_t f = 0; f < sink->output->n_files && !status; f++) {
            const struct phema_output_file *file = &sink->output->files[f];
            bool is_provenance =
                sink->form->has_provenance_file && strcmp(file->name, PHEMA_PROVENANCE_FILE) == 0;
            if (is_provenance != (pass == 0))
                continue;
            status = phema_writer_directory_add(&sink->writers[f], sink->directory, file->name,
                                                file->source, file->size_bytes, err);
            if (!status)
                status = write_header(sink, f, err);
        }
    if (status)
        return status;
    status = sink_add_side_files(sink, false, err);
    if (!status && options.resumes)
        phema_writer_directory_remove_others(sink->directory);
    return status;
}

/* ---- A part ---- */

/* All files of the output: tensor files, then side files. */
static enum phema_status list_files(struct sink *sink, struct phema_error *err)
{
    size_t n_files = sink->output->n_files, n_side_files = sink->outputs->n_side_files;
    sink->part_files = calloc(n_files + n_side_files + 1, sizeof(*sink->part_files));
    if (!sink->part_files)
        return phema_fail_memory(err);
    for (size_t f = 0; f < n_files; f++)
        sink->part_files[f] = (struct phema_writer_part_file){sink->output->files[f].name,
                                                              sink->output->files[f].size_bytes};
    for (size_t f = 0; f < n_side_files; f++) {
        const struct phema_side_file *file = &sink->outputs->side_files[f];
        struct stat st;
        if (file->source && stat(file->source, &st))
            return phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be examined: %s", file->source,
                              strerror(errno));
        sink->part_files[n_files + f] = (struct phema_writer_part_file){
            file->name, file->source ? (uint64_t)st.st_size : file->size};
    }
    sink->part_options = (struct phema_writer_part_options){
        .part = sink->options.part,
        .sidecar = sink->output->sidecar,
        .n_parts = sink->options.n_parts,
        .digest = sink->digest,
        .is_directory = sink->form->is_directory,
        .files = sink->part_files,
        .n_files = n_files + n_side_files,
        .sums_file = sink->output->provenance_file,
        .frames = sink->form->is_compressed ? &sink->frames : NULL,
        .verifies = sink->options.verifies,
        .syncs = sink->options.syncs,
        .has_made_part = sink->options.has_made_part,
    };
    return PHEMA_OK;
}

/* The first part also writes the headers and side files, and each part its share of a template. */
static enum phema_status open_part(struct sink *sink, struct phema_error *err)
{
    bool is_first = sink->options.part == 1;
    enum phema_status status = list_files(sink, err);
    if (status)
        return status;
    status = phema_writer_part_open(&sink->part, sink->output->path, &sink->part_options, err);
    if (status)
        return status;
    for (size_t f = 0; f < sink->output->n_files; f++) {
        status = phema_writer_part_file(&sink->writers[f], sink->part, f, err);
        if (!status && is_first)
            status = write_header(sink, f, err);
        if (status)
            return status;
    }
    status = sink_add_side_files(sink, false, err);
    return status || !sink->form->is_copy ? status : sink_restore_template(sink, err);
}

/* ---- Copies ---- */

static enum phema_status open_copy(struct sink *sink, struct phema_error *err)
{
    bool is_strided = is_any_strided(sink->plan, sink->outputs, sink->output);
    struct phema_writer_options options = writer_options(sink);
    options.owns_blocks = is_strided; /* elements are scattered through a mapping */
    const char *text = sink->output->sidecar;
    const struct phema_span sidecar = {(const uint8_t *)text, text ? strlen(text) : 0};
    enum phema_status status =
        text ? phema_writer_open_sidecar(&sink->sidecar, sink->output->path, sidecar, &options, err)
             : PHEMA_OK;
    if (status)
        return status;
    status =
        phema_writer_open_copy(&sink->writers[0], sink->output->path,
                               phema_file_path(phema_checkpoint_file(sink->output->template, 0)),
                               sink->output->files[0].size_bytes, &options, err);
    return status || !is_strided ? status : phema_writer_map(&sink->map, sink->writers[0], err);
}

/* ---- Resuming ---- */

static enum phema_status begin_journal(struct sink *sink, const char *path, struct phema_error *err)
{
    if (!sink->options.resumes) {
        phema_writer_journal_remove(path);
        return PHEMA_OK;
    }
    bool is_resumed = sink->found_journal == PHEMA_WRITER_JOURNAL_OURS;
    for (size_t f = 0; f < sink->output->n_files && is_resumed && !sink->part; f++)
        is_resumed = phema_writer_is_resumed(sink->writers[f]);
    sink->start_state = is_resumed                                          ? SINK_RESUMED
                        : sink->found_journal == PHEMA_WRITER_JOURNAL_OTHER ? SINK_STALE
                                                                            : SINK_NEW;
    enum phema_status status =
        phema_writer_journal_open(&sink->journal, path, sink->digest, is_resumed, err);
    if (status)
        return status;
    if (sink->found_journal == PHEMA_WRITER_JOURNAL_OURS)
        sink_keep(sink, is_resumed);
    bool is_stale =
        is_resumed && sink->form->is_copy && !sink->part; /* a part has restored its own */
    return is_stale ? sink_restore_template(sink, err) : PHEMA_OK;
}

/* ---- Opening ---- */

static enum phema_status open_files(struct sink *sink, struct phema_error *err)
{
    if (sink->options.n_parts)
        return open_part(sink, err);
    if (sink->form->is_directory)
        return open_directory(sink, err);
    return sink->form->is_copy ? open_copy(sink, err) : open_new(sink, err);
}

/* With the journal: "out.safetensors.journal", "out.safetensors.part-2-of-8.journal". */
static enum phema_status open_with_journal(struct sink *sink, struct phema_error *err)
{
    char journal[72];
    format_part(journal, sink->options.part, sink->options.n_parts, ".journal");
    char *path = sink_path(sink->output->path, journal, "", NULL);
    enum phema_status status = path ? PHEMA_OK : phema_fail_memory(err);
    if (!status && sink->options.resumes)
        status = phema_writer_journal_look(&sink->found_journal, path, sink->digest, err);
    if (!status)
        status = open_files(sink, err);
    if (!status)
        status = begin_journal(sink, path, err);
    free(path);
    return status;
}

PHEMA_FALLIBLE sink_open(struct sink **out, const struct phema_plan *plan,
                         const struct phema_outputs *outputs, size_t output,
                         const struct sink_options *options, struct phema_error *err)
{
    struct sink *sink = calloc(1, sizeof(*sink));
    if (!sink)
        return phema_fail_memory(err);
    *sink = (struct sink){.plan = plan,
                          .outputs = outputs,
                          .output = &outputs->items[output],
                          .form = phema_output_traits(outputs),
                          .options = *options,
                          .size_bytes = outputs->items[output].size_bytes};
    sink->options.resumes = options->resumes && sink_can_resume(plan, outputs, output);
    (void)snprintf(sink->digest, sizeof(sink->digest), "%s", options->digest);
    sink->writers = calloc(sink->output->n_files + 1, sizeof(struct phema_writer *));
    if (options->verifies)
        sink->sums = calloc(plan->series->n_tensors + 1, sizeof(*sink->sums));
    bool has_memory = sink->writers && (sink->sums || !options->verifies);
    enum phema_status status = has_memory ? sink_open_pieces(sink, err) : phema_fail_memory(err);
    if (!status && sink->form->is_compressed)
        status = sink_open_frames(sink, err);
    if (!status)
        status = open_with_journal(sink, err);
    if (status) {
        sink_abandon(sink);
        return status;
    }
    *out = sink;
    return PHEMA_OK;
}
