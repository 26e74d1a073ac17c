// SPDX-License-Identifier: Apache-2.0
/* sink_open.c - files of an output as they begin: new ones are laid out, of a compressed one the
 * plain file is what is filled, a copy is there before it is changed, and of several processes each
 * opens its part of all files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/writer.h"
#include "sink_internal.h"

/* ---- New files ---- */

static struct phema_writer_options writing(const struct sink *sink)
{
    return (struct phema_writer_options){.replaces = sink->options.replaces,
                                         .syncs = sink->options.syncs,
                                         .drops_cache = sink->options.drops_cache,
                                         .resumes = sink->found == PHEMA_WRITER_JOURNAL_OURS};
}

static enum phema_status open_beside(struct phema_writer **out, const struct sink *sink,
                                     const char *end, uint64_t size_bytes, bool replaces,
                                     bool holds_tensors, struct phema_error *err)
{
    struct phema_writer_options options = writing(sink);
    options.replaces = replaces;
    options.resumes = options.resumes && holds_tensors;
    char *path = NULL;
    if (asprintf(&path, "%s%s", sink->output->path, end) < 0)
        return phema_fail_memory(err);
    enum phema_status status = phema_writer_open(out, path, size_bytes, &options, err);
    free(path);
    return status;
}

static enum phema_status open_new(struct sink *sink, struct phema_error *err)
{
    bool is_compressed = sink->outputs->form == PHEMA_FORM_COMPRESSED;
    const struct phema_output_file *file = &sink->output->files[0];
    enum phema_status status = PHEMA_OK;
    if (is_compressed)
        status = open_beside(&sink->compressed, sink, "", 0, sink->options.replaces, false, err);
    if (!status) /* the plain file of a compressed one never gets a name of its own */
        status = open_beside(&sink->writers[0], sink, is_compressed ? ".plain" : "",
                             file->size_bytes, is_compressed || sink->options.replaces, true, err);
    if (!status)
        status = phema_writer_put(sink->writers[0], 0, file->header, file->header_size, err);
    return status;
}

static enum phema_status add_side_file(struct sink *sink, const struct phema_side_file *file,
                                       struct phema_error *err)
{
    if (file->source)
        return phema_writer_directory_copy_file(sink->directory, file->name, file->source, err);
    struct phema_writer *writer = NULL;
    size_t size = strlen(file->text);
    enum phema_status status =
        phema_writer_directory_add(&writer, sink->directory, file->name, size, err);
    if (status)
        return status;
    status = phema_writer_put(writer, 0, file->text, size, err);
    if (!status)
        return phema_writer_commit(writer, err);
    phema_writer_abandon(writer);
    return status;
}

static enum phema_status open_shards(struct sink *sink, struct phema_error *err)
{
    struct phema_writer_options options = writing(sink);
    enum phema_status status =
        phema_writer_directory_open(&sink->directory, sink->output->path, &options, err);
    for (size_t f = 0; f < sink->output->n_files && !status; f++) {
        const struct phema_output_file *file = &sink->output->files[f];
        status = phema_writer_directory_add(&sink->writers[f], sink->directory, file->name,
                                            file->size_bytes, err);
        if (!status)
            status = phema_writer_put(sink->writers[f], 0, file->header, file->header_size, err);
    }
    for (size_t f = 0; f < sink->outputs->n_side_files && !status; f++)
        status = add_side_file(sink, &sink->outputs->side_files[f], err);
    if (!status && options.resumes)
        phema_writer_directory_remove_others(sink->directory);
    return status;
}

/* ---- One of several processes ---- */

/* All that the output will hold: files of tensors, then side files. */
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
            file->name, file->source ? (uint64_t)st.st_size : strlen(file->text)};
    }
    sink->part_options = (struct phema_writer_part_options){
        .part = sink->options.part,
        .n_parts = sink->options.n_parts,
        .digest = sink->digest,
        .is_directory = sink->outputs->form == PHEMA_FORM_SHARDED,
        .files = sink->part_files,
        .n_files = n_files + n_side_files,
        .syncs = sink->options.syncs,
    };
    return PHEMA_OK;
}

static enum phema_status put_side_file(struct sink *sink, size_t f, struct phema_error *err)
{
    const struct phema_side_file *file = &sink->outputs->side_files[f];
    if (file->source)
        return phema_writer_part_copy_file(sink->part, sink->output->n_files + f, file->source,
                                           err);
    struct phema_writer *writer = NULL;
    enum phema_status status =
        phema_writer_part_file(&writer, sink->part, sink->output->n_files + f, err);
    if (status)
        return status;
    status = phema_writer_put(writer, 0, file->text, strlen(file->text), err);
    if (!status)
        return phema_writer_commit(writer, err);
    phema_writer_abandon(writer);
    return status;
}

/* The first part writes what belongs to none: headers and side files. */
static enum phema_status open_part(struct sink *sink, struct phema_error *err)
{
    bool is_first = sink->options.part == 1;
    enum phema_status status = list_files(sink, err);
    if (!status)
        status = phema_writer_part_open(&sink->part, sink->output->path, &sink->part_options, err);
    for (size_t f = 0; f < sink->output->n_files && !status; f++) {
        const struct phema_output_file *file = &sink->output->files[f];
        status = phema_writer_part_file(&sink->writers[f], sink->part, f, err);
        if (!status && is_first)
            status = phema_writer_put(sink->writers[f], 0, file->header, file->header_size, err);
    }
    for (size_t f = 0; f < sink->outputs->n_side_files && is_first && !status; f++)
        status = put_side_file(sink, f, err);
    return status;
}

/* ---- Copies ---- */

static enum phema_status open_copy(struct sink *sink, struct phema_error *err)
{
    bool is_strided = sink_is_any_strided(sink->plan, sink->outputs, sink->output);
    struct phema_writer_options options = writing(sink);
    enum phema_status status = PHEMA_OK;
    if (sink->output->sidecar)
        status = open_beside(&sink->sidecar, sink, ".json", strlen(sink->output->sidecar),
                             sink->options.replaces || sink_is_sidecar_left(sink->output->path),
                             false, err);
    if (!status && sink->output->sidecar)
        status = phema_writer_put(sink->sidecar, 0, sink->output->sidecar,
                                  strlen(sink->output->sidecar), err);
    options.owns_blocks = is_strided; /* scattered through a mapping */
    options.is_published = &sink->is_published;
    if (!status)
        status = phema_writer_open_copy(
            &sink->writers[0], sink->output->path,
            phema_file_path(phema_checkpoint_file(sink->output->template, 0)),
            sink->output->files[0].size_bytes, &options, err);
    if (!status && is_strided)
        status = phema_writer_map(&sink->map, sink->writers[0], err);
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
                          .options = *options,
                          .size_bytes = outputs->items[output].size_bytes};
    (void)snprintf(sink->digest, sizeof(sink->digest), "%s", options->digest);
    sink->writers = calloc(sink->output->n_files + 1, sizeof(struct phema_writer *));
    if (options->verifies)
        sink->sums = calloc(plan->series->n_tensors + 1, sizeof(*sink->sums));
    bool has_memory = sink->writers && (sink->sums || !options->verifies);
    enum phema_status status = has_memory ? PHEMA_OK : phema_fail_memory(err);
    sink->options.resumes = options->resumes && sink_can_resume(plan, outputs, output);
    if (!status)
        status = sink_look_for_journal(sink, err);
    if (!status && options->n_parts)
        status = open_part(sink, err);
    else if (!status && outputs->form == PHEMA_FORM_SHARDED)
        status = open_shards(sink, err);
    else if (!status && outputs->form == PHEMA_FORM_TEMPLATE)
        status = open_copy(sink, err);
    else if (!status)
        status = open_new(sink, err);
    if (!status)
        status = sink_begin_journal(sink, err);
    if (status) {
        sink_abandon(sink);
        return status;
    }
    *out = sink;
    return PHEMA_OK;
}
