// SPDX-License-Identifier: Apache-2.0
/* series.c - from SNAPSHOTS to a series: scan the names, choose, open, agree. */
#include "phema/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open_snapshots.h"

/* ---- Together ---- */

static enum phema_status compile_selection(struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    struct tensor_filter *selection = &opening->selection;
    selection->takes_attributes = options->is_conversion;
    selection->includes =
        phema_arena_array(&opening->scratch, options->n_includes + 1, sizeof(struct phema_regex *));
    selection->excludes =
        phema_arena_array(&opening->scratch, options->n_excludes + 1, sizeof(struct phema_regex *));
    if (!selection->includes || !selection->excludes)
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    for (; !status && selection->n_includes < options->n_includes;) {
        status = phema_regex_compile(&selection->includes[selection->n_includes],
                                     options->includes[selection->n_includes], err);
        if (status)
            return phema_fail_in(err, status, "--include");
        selection->n_includes += !status;
    }
    for (; !status && selection->n_excludes < options->n_excludes;) {
        status = phema_regex_compile(&selection->excludes[selection->n_excludes],
                                     options->excludes[selection->n_excludes], err);
        if (status)
            return phema_fail_in(err, status, "--exclude");
        selection->n_excludes += !status;
    }
    return status;
}

static enum phema_status finish(struct opening *opening, struct phema_error *err)
{
    struct phema_series *series = opening->series;
    const struct phema_series_options *options = opening->options;
    series->layout = opening->scan.layout->name;
    series->clock = opening->scan.layout->clock;
    const char *unit = options->unit        ? options->unit
                       : opening->scan.unit ? opening->scan.unit
                                            : opening->scan.layout->unit;
    series->unit = phema_arena_copy(&series->memory, unit, strlen(unit));
    series->has_profiles = true;
    double rounding = tensor_table_rounding(series);
    for (size_t k = 0; k < series->n; k++) {
        struct phema_snapshot *snapshot = &series->snapshots[k];
        if (snapshot->checkpoint)
            snapshot->rounding = rounding;
        series->has_profiles = series->has_profiles && snapshot->kind;
    }
    if (series->n_tensors) {
        enum phema_status status = tensor_table_find_tied(&opening->tensor_table, err);
        if (status)
            return status;
    }
    for (size_t at = 0; at < opening->notes.size; at += strlen(opening->notes.data + at) + 1)
        series->n_notes++;
    series->notes = phema_arena_array(&series->memory, series->n_notes + 1, sizeof(char *));
    char *notes = phema_arena_copy(&series->memory, opening->notes.data, opening->notes.size);
    if (!series->unit || !series->notes || !notes)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_notes; i++, notes += strlen(notes) + 1)
        series->notes[i] = notes;
    return phema_strbuf_check(&opening->notes, err);
}

/* ---- What is read ---- */

static enum phema_status claim_snapshot(struct phema_claims *claims,
                                        const struct phema_snapshot *snapshot,
                                        struct phema_error *err)
{
    static const char what[] = "one of the snapshots";
    const struct phema_checkpoint *checkpoint = snapshot->checkpoint;
    if (!checkpoint && snapshot->path) /* its name says all */
        return phema_claims_add_input(claims, snapshot->path, what, err);
    if (!checkpoint || snapshot->is_checkpoint_shared)
        return PHEMA_OK;
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < phema_checkpoint_n_files(checkpoint) && !status; f++)
        status = phema_claims_add_input(
            claims, phema_file_path(phema_checkpoint_file(checkpoint, f)), what, err);
    return status;
}

/* The snapshots first: one that is a list as well is called a snapshot. */
static enum phema_status claim_inputs(struct opening *opening, struct phema_error *err)
{
    struct phema_series *series = opening->series;
    const struct phema_series_options *options = opening->options;
    enum phema_status status = phema_claims_new(&series->claims, err);
    for (size_t k = 0; k < series->n && !status; k++)
        status = claim_snapshot(series->claims, &series->snapshots[k], err);
    for (const struct phema_spec *spec = opening->scan.specs.first; spec && !status;
         spec = spec->next)
        status = phema_spec_claim(spec, series->claims, err);
    if (status || options->is_alone)
        return status;
    if (options->snapshots[0] == '@')
        return phema_claims_add_input(series->claims, options->snapshots + 1,
                                      "the list of the snapshots", err);
    if (opening->scan.layout == &layout_manifest)
        return phema_claims_add_input(series->claims, options->snapshots, "the manifest", err);
    return PHEMA_OK;
}

static enum phema_status open_series(struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    enum phema_status status = compile_selection(opening, err);
    if (!status)
        status = profiles_read(opening, err);
    if (!status)
        status = options->is_alone ? discover_alone(&opening->scan, options, err)
                                   : discover_snapshots(&opening->scan, options, err);
    if (!status && !options->is_alone)
        status = choose_candidates(&opening->scan, options, err);
    if (!status)
        status = opening_add_all(opening, err);
    if (!status)
        status = claim_inputs(opening, err);
    return status ? status : finish(opening, err);
}

PHEMA_FALLIBLE phema_series_open(struct phema_series **out,
                                 const struct phema_series_options *options,
                                 struct phema_error *err)
{
    struct phema_series *series = calloc(1, sizeof(*series));
    if (!series || !(series->root = strdup(options->snapshots))) {
        phema_series_close(series);
        return phema_fail_memory(err);
    }
    struct opening opening = {.options = options, .series = series};
    opening.scan.arena = &opening.scratch;
    opening.scan.specs.arena = &series->memory;
    opening.scan.notes = &opening.notes;
    opening.tensor_table.arena = &series->memory;
    opening.tensor_table.selection = &opening.selection;
    opening.tensor_table.series = series;
    opening.tensor_table.averages_buffers = options->averages_buffers;
    opening.tensor_table.is_alone = options->is_alone;
    opening.tensor_table.may_be_empty = options->is_conversion;

    enum phema_status status = open_series(&opening, err);
    opening_release(&opening);

    for (size_t i = 0; i < opening.selection.n_includes; i++)
        phema_regex_free(opening.selection.includes[i]);
    for (size_t i = 0; i < opening.selection.n_excludes; i++)
        phema_regex_free(opening.selection.excludes[i]);
    phema_strbuf_clear(&opening.notes);
    phema_arena_clear(&opening.scratch);
    if (status) {
        phema_series_close(series);
        return status;
    }
    *out = series;
    return PHEMA_OK;
}

void series_clear_snapshots(struct phema_series *series)
{
    for (size_t k = 0; k < series->n; k++) {
        if (!series->snapshots[k].is_checkpoint_shared)
            phema_checkpoint_close(series->snapshots[k].checkpoint);
        free(series->snapshots[k].key);
        free(series->snapshots[k].label);
        free(series->snapshots[k].path);
    }
    series->n = 0;
}

void phema_series_close(struct phema_series *series)
{
    if (!series)
        return;
    series_clear_snapshots(series);
    free(series->snapshots);
    free(series->root);
    free(series->key);
    phema_arena_clear(&series->memory);
    phema_claims_free(series->claims);
    free(series);
}

double phema_series_clock(const struct phema_series *series, double named_time)
{
    return series->clock ? series->clock(named_time) : named_time - series->named_ahead;
}

struct phema_tensor phema_series_tensor_in(const struct phema_series *series, size_t k, size_t i)
{
    struct phema_tensor tensor = series->tensors[i].tensor;
    const struct phema_snapshot *snapshot = &series->snapshots[k];
    tensor.offset = snapshot->places[i].offset + snapshot->shift;
    tensor.stride = snapshot->places[i].stride;
    tensor.file = snapshot->places[i].file;
    tensor.parts = snapshot->places[i].parts;
    tensor.n_parts = snapshot->places[i].n_parts;
    tensor.is_compressed = snapshot->is_compressed;
    return tensor;
}
