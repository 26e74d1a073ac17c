// SPDX-License-Identifier: Apache-2.0
/* open_snapshot.c - one snapshot of the current file: its clock, the locations of its tensors, its
 * profile. Notes about the tensors of the first one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/array.h"
#include "phema/number.h"
#include "phema/setting.h"
#include "series_builder.h"
#include "snapshot_metadata.h"

/* Notes name so many tensors and count the others. */
#define MOST_NAMED ((size_t)4)

char *builder_keep_text(struct series_builder *builder, const char *text)
{
    return text ? phema_arena_copy(&builder->series->memory, text, strlen(text)) : NULL;
}

/* pytorch-posthoc-ema counts in the tensor 'step', a constant below the STEP of the names. */
static enum phema_status read_clock(struct series_builder *builder, struct phema_snapshot *snapshot,
                                    bool is_first, struct phema_error *err)
{
    double step = snapshot_metadata_scalar(snapshot->checkpoint, "step");
    double ahead = snapshot->named_time - step;
    if (!(step >= 1) || !(ahead >= 0)) {
        if (builder->options->needs_no_profiles)
            return PHEMA_OK;
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "its tensor 'step', the clock of the average, is missing or no count");
    }
    if (is_first)
        builder->series->named_ahead = ahead;
    else if (ahead != builder->series->named_ahead)
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "its name is %g steps ahead of the 'step' inside, elsewhere %g; these are "
            "files of two runs",
            ahead, builder->series->named_ahead);
    snapshot->time = step;
    return PHEMA_OK;
}

/* Noted for the first file only: all files of a series have the same attributes. */
static void note_attributes(struct series_builder *builder,
                            const struct phema_checkpoint *checkpoint)
{
    size_t n = builder->series->attributes.n_tensors;
    const struct phema_tensor *first = phema_checkpoint_tensors(checkpoint);
    if (!n)
        return;
    while (first->kind != PHEMA_KIND_ATTRIBUTE)
        first++;
    struct phema_name_buffer shown;
    candidates_note(
        &builder->candidates,
        "%zu tensor%s in attributes of objects, such as '%s': no part of the model; a copy of "
        "the newest snapshot (.pt, .pkl) keeps %s as %s, other outputs are without",
        n, n == 1 ? "" : "s", phema_name_escape(&shown, first->name, first->name_size),
        n == 1 ? "it" : "them", n == 1 ? "it is" : "they are");
}

/* Larger tensors come first: they are more likely parameters. */
static int compare_sizes(const void *a, const void *b)
{
    const struct phema_series_tensor *left = *(const struct phema_series_tensor *const *)a;
    const struct phema_series_tensor *right = *(const struct phema_series_tensor *const *)b;
    if (left->tensor.n_elems != right->tensor.n_elems)
        return left->tensor.n_elems > right->tensor.n_elems ? -1 : 1;
    return (left > right) - (left < right);
}

/* "'a', 'b' and 3 more"; of tied ones "'a' as 'b'".  entries: [n], are sorted */
static void append_tensors(struct phema_strbuf *out, const struct phema_series_tensor **entries,
                           size_t n)
{
    struct phema_name_buffer shown;
    if (n)
        qsort(entries, n, sizeof(struct phema_series_tensor *), compare_sizes);
    for (size_t i = 0; i < n && i < MOST_NAMED; i++) {
        const struct phema_tensor *tensor = &entries[i]->tensor;
        phema_strbuf_printf(out, "%s'%s'", i ? ", " : "",
                            phema_name_escape(&shown, tensor->name, tensor->name_size));
        const char *average = entries[i]->tied_to;
        if (average)
            phema_strbuf_printf(out, " as '%s'",
                                phema_name_escape(&shown, average, strlen(average)));
    }
    if (n > MOST_NAMED)
        phema_strbuf_printf(out, " and %zu more", n - MOST_NAMED);
}

/* Tensors that the files have no average of: tied ones have that of another name. */
static enum phema_status note_without_average(struct series_builder *builder,
                                              struct phema_error *err)
{
    const struct phema_series *series = builder->series;
    const struct phema_series_tensor **tied = phema_arena_array(
        &builder->scratch, series->n_tensors + 1, sizeof(struct phema_series_tensor *));
    const struct phema_series_tensor **copied = phema_arena_array(
        &builder->scratch, series->n_tensors + 1, sizeof(struct phema_series_tensor *));
    size_t n_tied = 0, n_copied = 0;
    if (!tied || !copied)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        if (entry->rule == PHEMA_RULE_AVERAGE && entry->tied_to)
            tied[n_tied++] = entry;
        else if (entry->rule == PHEMA_RULE_COPY && strcmp(entry->reason, "no average") == 0)
            copied[n_copied++] = entry;
    }
    struct phema_strbuf names = {0};
    append_tensors(&names, tied, n_tied);
    if (n_tied && !names.is_failed)
        candidates_note(&builder->candidates,
                        "tied, since the raw parameters are equal in every file, and averaged: %s",
                        names.data);
    names.size = 0;
    append_tensors(&names, copied, n_copied);
    if (n_copied && !names.is_failed)
        candidates_note(&builder->candidates,
                        "not averaged, since the files have no average of %s, but taken from the "
                        "newest raw parameters: %s",
                        n_copied == 1 ? "it" : "them", names.data);
    enum phema_status status = phema_strbuf_check(&names, err);
    phema_strbuf_clear(&names);
    return status;
}

/* inspect lists these tensors, synth refuses to average them. */
static void note_quantised(struct series_builder *builder)
{
    const struct phema_quantised *first = builder->series->quantised;
    if (!first || builder->options->is_conversion)
        return;
    candidates_note(&builder->candidates,
                    "quantised tensors, such as '%s' with its scale '%s', are copied or left out, "
                    "never averaged (synth %s'RE=copy', %s'RE')",
                    first->codes, first->scale, phema_setting_equals(PHEMA_SET_RULE),
                    phema_setting_equals(PHEMA_SET_EXCLUDE));
}

static enum phema_status start_table(struct series_builder *builder,
                                     struct phema_snapshot *snapshot, struct phema_error *err)
{
    enum phema_status status = tensor_table_init(&builder->tensor_table, snapshot, err);
    if (status)
        return status;
    status = quantised_find(&builder->tensor_table, err);
    if (status)
        return status;
    note_attributes(builder, snapshot->checkpoint);
    note_quantised(builder);
    return note_without_average(builder, err);
}

/* Gives the snapshot the current file and the locations of its tensors. */
static enum phema_status locate_tensors(struct series_builder *builder,
                                        struct phema_snapshot *snapshot, struct phema_error *err)
{
    bool is_first = builder->series->n_tensors == 0;
    snapshot->checkpoint = builder->checkpoint;
    snapshot->is_checkpoint_shared = builder->is_owned;
    snapshot->is_compressed = phema_checkpoint_is_compressed(snapshot->checkpoint);
    builder->is_owned = true;
    if (builder->candidates.layout->has_step_inside) {
        enum phema_status status = read_clock(builder, snapshot, is_first, err);
        if (status)
            return phema_fail_in(err, status, "%s", snapshot->path);
    }
    return is_first ? start_table(builder, snapshot, err)
                    : tensor_table_match(&builder->tensor_table, snapshot, err);
}

bool snapshot_needs_file(const struct series_builder *builder, const struct candidate *candidate)
{
    if (!candidate->path)
        return false;
    const struct phema_format_info *format = phema_format_from_path(NULL, candidate->path, 0);
    return builder->opens_optional || !builder->options->needs_no_tensors ||
           builder->candidates.layout != &layout_edm2 || !format ||
           strcmp(format->name, "pickle") != 0;
}

/* From the named time to the clock of the averages. */
static enum phema_status shift_time(struct phema_snapshot *snapshot,
                                    const struct phema_series *series, struct phema_error *err)
{
    if (isnan(snapshot->named_time))
        return PHEMA_OK;
    snapshot->time = phema_series_clock(series, snapshot->named_time);
    struct phema_name_buffer named, offset;
    if (series->time_offset < 0 && !(snapshot->time > 0))
        return phema_blame(
            err,
            phema_fail(err, PHEMA_ERR_INPUTS,
                       "%s%s: '%s', named by %s, would end before the training begins",
                       phema_setting_equals(PHEMA_SET_TIME_OFFSET),
                       phema_number_format(&offset, series->time_offset), snapshot->label,
                       phema_number_format(&named, snapshot->named_time)),
            PHEMA_SET_TIME_OFFSET);
    return PHEMA_OK;
}

static enum phema_status fill_snapshot(struct series_builder *builder,
                                       struct phema_snapshot *snapshot, struct candidate *candidate,
                                       const char *key, struct phema_error *err)
{
    snapshot->named_time = snapshot->time = candidate->named_time;
    snapshot->label = builder_keep_text(builder, candidate->label);
    snapshot->path = builder_keep_text(builder, candidate->path);
    snapshot->key = builder_keep_text(builder, key);
    snapshot->run = builder_keep_text(builder, candidate->run);
    if (!snapshot->label || (candidate->path && !snapshot->path) || (key && !snapshot->key) ||
        (candidate->run && !snapshot->run))
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    if (snapshot_needs_file(builder, candidate))
        status = locate_tensors(builder, snapshot, err);
    else if (candidate->path)
        snapshot->rounding = phema_dtype_rounding(PHEMA_F16); /* EDM2 writes nothing else */
    if (status)
        return status;
    status = shift_time(snapshot, builder->series, err);
    if (status)
        return status;
    return snapshot_profile_set(builder, snapshot, candidate, err);
}

PHEMA_FALLIBLE snapshot_add(struct series_builder *builder, struct candidate *candidate,
                            const char *key, struct phema_error *err)
{
    struct phema_series *series = builder->series;
    if (!phema_array_grow(&series->snapshots, &builder->capacity, series->n,
                          sizeof(*series->snapshots)))
        return phema_fail_memory(err);
    struct phema_snapshot *snapshot = &series->snapshots[series->n++];
    *snapshot = (struct phema_snapshot){0}; /* series_clear_snapshots frees it from here on */
    return fill_snapshot(builder, snapshot, candidate, key, err);
}
