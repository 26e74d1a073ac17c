// SPDX-License-Identifier: Apache-2.0
/* open_snapshots.c - opens the files one by one and keeps only tensor locations, so that memory
 * does not depend on the number of snapshots. Several snapshots of one file share its mapping. */
#include "series_builder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "no_snapshots.h"
#include "phema/memory.h"
#include "phema/setting.h"
#include "runs.h"
#include "snapshot_metadata.h"

/* ---- Files ---- */

/* Releases the current file. A snapshot may own it by now, or the caller, who needs its listing. */
static void release_checkpoint(struct series_builder *builder)
{
    if (!builder->is_owned)
        phema_checkpoint_close(builder->checkpoint);
    else if (builder->checkpoint != builder->options->opened)
        phema_checkpoint_forget_listing(builder->checkpoint);
    builder->checkpoint = NULL;
    builder->is_owned = false;
}

/* --key names one of the snapshots of a container, as listings do. */
static void choose_set(struct series_builder *builder, const char *key)
{
    const struct container_kind *kind = container_recognise(builder->checkpoint);
    if (!kind || !container_has_set(kind, builder->checkpoint, key))
        return;
    builder->kind = kind;
    builder->set_key = key;
}

/* The first file decides for all. */
static enum phema_status choose_subtree(struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    struct candidate_list *candidates = &builder->candidates;
    if (candidates->is_numbered) {
        bool is_ema_pytorch = subtree_exists(builder->checkpoint, layout_ema_pytorch.subtree);
        candidates->layout = is_ema_pytorch ? &layout_ema_pytorch : &layout_posthoc_ema;
    }
    const char *key = options->key;
    if ((!key || options->may_lack_key) && !options->is_conversion)
        builder->kind = container_recognise(builder->checkpoint);
    if (key && !builder->kind)
        choose_set(builder, key);
    if (builder->kind && builder->kind->layout && candidates->layout == &layout_steps)
        candidates->layout = builder->kind->layout;
    if (builder->kind)
        return containers_use(builder, err);
    if (options->use == PHEMA_USE_RAW)
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "%s: %sraw: holds no raw parameters beside averages, or %s chooses among its tensors",
            phema_checkpoint_path(builder->checkpoint), phema_setting_equals(PHEMA_SET_USE),
            phema_setting_name(PHEMA_SET_KEY));
    if (key && options->may_lack_key && !subtree_exists(builder->checkpoint, key))
        key = strcmp(key, ".") == 0 ? key : NULL;
    enum phema_status status =
        subtree_choose(&builder->subtree, candidates, key, builder->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", phema_checkpoint_path(builder->checkpoint));
    builder->filter.key = builder->subtree.key;
    builder->series->key = builder_keep_text(builder, builder->subtree.key);
    return builder->series->key ? input_profiles_check(builder, err) : phema_fail_memory(err);
}

/* The first checkpoint, where files with the same header need not be listed again: no snapshot
 * keeps its time or width in a tensor. */
static const struct phema_checkpoint *find_alike(const struct series_builder *builder)
{
    if (!builder->subtree.key || builder->kind || builder->subtree.is_bundle ||
        builder->candidates.layout->has_step_inside || subtree_is_average(builder->subtree.key))
        return NULL;
    return builder->tensor_table.checkpoint;
}

/* A warning that holds for many files is said of the first one. */
static void note_warning(struct series_builder *builder, const struct candidate *candidate,
                         const char *warning)
{
    const struct phema_strbuf *said = &builder->warnings;
    if (!said->size || !memmem(said->data, said->size, warning, strlen(warning)))
        candidates_warn(&builder->candidates, "%s: %s", candidate->label, warning);
}

/* A manifest may name one file several times in a row. */
static enum phema_status open_file(struct series_builder *builder,
                                   const struct candidate *candidate, struct phema_error *err)
{
    if (builder->checkpoint &&
        strcmp(phema_checkpoint_path(builder->checkpoint), candidate->path) == 0)
        return PHEMA_OK;
    release_checkpoint(builder);
    if (builder->options->opened) {
        builder->checkpoint = builder->options->opened;
        builder->is_owned = true;
        return PHEMA_OK;
    }
    struct phema_checkpoint_options options = builder->options->checkpoint;
    options.alike = find_alike(builder);
    enum phema_status status =
        phema_checkpoint_open(&builder->checkpoint, candidate->path, &options, err);
    if (status)
        return status;
    status = phema_memory_check(builder->options->max_ram_bytes, 0,
                                "to list the tensors of the snapshots", err);
    if (status)
        return status;
    for (size_t i = 0; i < phema_checkpoint_n_warnings(builder->checkpoint); i++)
        note_warning(builder, candidate, phema_checkpoint_warning(builder->checkpoint, i));
    return PHEMA_OK;
}

/* ---- Several snapshots in one file ---- */

struct width_at {
    double width;
    size_t index;
};

static int compare_widths(const void *a, const void *b)
{
    const struct width_at *left = a, *right = b;
    if (left->width != right->width)
        return left->width < right->width ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static enum phema_status add_average(struct series_builder *builder, const struct candidate *file,
                                     const struct width_at *average, struct phema_error *err)
{
    struct phema_arena *arena = &builder->scratch;
    struct candidate candidate = *file;
    candidate_set_width(&candidate, average->width);
    const char *key = subtree_key_of(arena, builder->subtree.key, average->index);
    candidate.label = phema_arena_printf(arena, "%s:%s", file->label, key ? key : "");
    if (!key || !candidate.label)
        return phema_fail_memory(err);
    builder->filter.key = key;
    return snapshot_add(builder, &candidate, key, err);
}

/* Narrow averages come first, as in sorted candidates. */
static enum phema_status add_bundle(struct series_builder *builder, const struct candidate *file,
                                    struct phema_error *err)
{
    const double *widths = NULL;
    size_t n = 0, n_allowed = 0;
    const char *key = builder->subtree.key;
    enum phema_status status =
        subtree_widths(&widths, &n, &builder->scratch, key, builder->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", file->path);
    struct width_at *averages = phema_arena_array(&builder->scratch, n + 1, sizeof(*averages));
    if (!averages)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (candidate_allows_width(file, widths[i]))
            averages[n_allowed++] = (struct width_at){widths[i], i};
    if (!n_allowed)
        return candidate_fail_width(file, key, err);
    qsort(averages, n_allowed, sizeof(*averages), compare_widths);
    for (size_t i = 0; i < n_allowed; i++) {
        status = add_average(builder, file, &averages[i], err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* ---- Candidates ---- */

/* A conversion uses none of the metadata. */
static enum phema_status read_metadata(struct series_builder *builder, struct candidate *candidate,
                                       bool *is_output, struct phema_error *err)
{
    *is_output = false;
    if (builder->options->is_conversion)
        return PHEMA_OK;
    struct candidate_list *candidates = &builder->candidates;
    const char *unit = NULL;
    enum phema_status status = snapshot_metadata_read(candidate, is_output, &unit,
                                                      &candidates->specs, builder->checkpoint, err);
    if (!status)
        status = snapshot_metadata_check_counter(candidate, candidates->layout, builder->checkpoint,
                                                 err);
    if (status)
        return phema_fail_in(err, status, "%s", candidate->path);
    const char *run = run_id_of(builder->checkpoint);
    candidate->run = run ? phema_arena_copy(&builder->scratch, run, strlen(run)) : NULL;
    if (run && !candidate->run)
        return phema_fail_memory(err);
    bool is_layout_given = builder->options->layout && candidates->layout == &layout_edm2;
    if (unit && is_layout_given && !*is_output && !builder->options->unit &&
        strcmp(unit, candidates->layout->unit) != 0)
        return phema_suggest(
            err,
            phema_fail(err, PHEMA_ERR_INPUTS,
                       "%s: %sedm2 counts kimg, but the file says that its time is in %s",
                       candidate->path, phema_setting_equals(PHEMA_SET_LAYOUT), unit),
            PHEMA_SET_LAYOUT, "auto");
    if (unit && !*is_output && !candidates->unit)
        candidates->unit = builder_keep_text(builder, unit);
    return PHEMA_OK;
}

static enum phema_status add_file(struct series_builder *builder, struct candidate *candidate,
                                  struct phema_error *err)
{
    enum phema_status status = open_file(builder, candidate, err);
    if (status)
        return status;
    bool is_output = false;
    status = read_metadata(builder, candidate, &is_output, err);
    if (status)
        return status;
    if (is_output) {
        candidates_leave_out(&builder->candidates, candidate, CANDIDATE_IS_OUTPUT);
        return PHEMA_OK;
    }
    if (!builder->subtree.key)
        status = choose_subtree(builder, err);
    if (status)
        return status;
    if (builder->kind)
        return container_add(builder, candidate, err);
    if (builder->subtree.is_bundle)
        return add_bundle(builder, candidate, err);
    double width = subtree_width_of(builder->subtree.key, builder->checkpoint);
    if (!isnan(width) && !candidate_allows_width(candidate, width))
        return candidate_fail_width(candidate, builder->subtree.key, err);
    if (!isnan(width))
        candidate_set_width(candidate, width);
    return snapshot_add(builder, candidate, NULL, err);
}

static enum phema_status add_candidate(struct series_builder *builder, struct candidate *candidate,
                                       struct phema_error *err)
{
    if (snapshot_needs_file(builder, candidate))
        return add_file(builder, candidate, err);
    if (!candidate->path && !builder->options->needs_no_tensors)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: %s: has no 'file'",
                          builder->options->snapshots, candidate->label);
    return snapshot_add(builder, candidate, NULL, err);
}

/* NaN where the profile is unknown, or no power function. */
static double width_of(const struct candidate *candidate)
{
    bool is_by_gamma = isnan(candidate->sigma_rel) && candidate->gamma > -0.5;
    return is_by_gamma ? phema_sigma_rel_from_gamma(candidate->gamma) : candidate->sigma_rel;
}

/* Unknown widths come first, so raw parameters stand before averages. */
static int compare_numbers(double left, double right)
{
    if (isnan(left) || isnan(right))
        return !isnan(left) - !isnan(right);
    return (left > right) - (left < right);
}

static int compare_snapshots(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    if (left->named_time != right->named_time)
        return left->named_time < right->named_time ? -1 : 1;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    int order = compare_numbers(width_of(left), width_of(right));
    const char *spec = left->spec ? left->spec->canonical : "";
    return order ? order : strcmp(spec, right->spec ? right->spec->canonical : "");
}

static enum phema_status fail_none(const struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    if (options->from > -HUGE_VAL || options->to < HUGE_VAL) {
        (void)phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots between %s and %s",
                         options->snapshots, phema_setting_name(PHEMA_SET_FROM),
                         phema_setting_name(PHEMA_SET_TO));
        (void)phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_FROM, "");
        return phema_suggest(err, PHEMA_ERR_INPUTS, PHEMA_SET_TO, "");
    }
    if (builder->candidates.fault)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots found; left out: '%s', %s",
                          options->snapshots, builder->candidates.unreadable,
                          builder->candidates.fault);
    return fail_no_snapshots(options, &builder->candidates, err);
}

/* Headers of so many files are in the page cache before they are read. */
#define PREFETCHED_FILES 1024

static enum phema_status prefetch_headers(struct series_builder *builder, size_t first,
                                          struct phema_error *err)
{
    const struct candidate_list *candidates = &builder->candidates;
    const char **paths = phema_arena_array(&builder->scratch, PREFETCHED_FILES, sizeof(*paths));
    if (!paths)
        return phema_fail_memory(err);
    size_t n = 0;
    for (size_t i = first; i < candidates->n && i < first + PREFETCHED_FILES; i++)
        if (snapshot_needs_file(builder, &candidates->items[i]))
            paths[n++] = candidates->items[i].path;
    phema_headers_prefetch(paths, n);
    return PHEMA_OK;
}

static enum phema_status add_candidates(struct series_builder *builder, struct phema_error *err)
{
    for (size_t i = 0; i < builder->candidates.n; i++) {
        if (i % PREFETCHED_FILES == 0) {
            enum phema_status status = prefetch_headers(builder, i, err);
            if (status)
                return status;
        }
        enum phema_status status = add_candidate(builder, &builder->candidates.items[i], err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

/* As if no file had been opened; only memory of the arenas stays. */
static void reset_snapshots(struct series_builder *builder)
{
    struct phema_series *series = builder->series;
    release_checkpoint(builder);
    series_clear_snapshots(series);
    series->tensors = NULL;
    series->n_tensors = 0;
    series->attributes = series->left_out = (struct phema_tensor_total){0};
    series->quantised = NULL;
    series->key = NULL;
    builder->subtree = (struct subtree){0};
    builder->kind = NULL;
    builder->set_key = NULL;
    builder->filter.container = NULL;
    builder->filter.ties = NULL;
    builder->filter.n_ties = 0;
    builder->tensor_table.checkpoint = NULL;
}

/* Opens files that are useful but not needed. Where that fails, the series keeps the reason and
 * names alone are used. */
static enum phema_status add_with_optional_files(struct series_builder *builder,
                                                 struct phema_error *err)
{
    struct candidate_list *candidates = &builder->candidates;
    struct candidate *by_name = /* files change the candidates */
        phema_arena_array(&builder->scratch, candidates->n, sizeof(*by_name));
    if (!by_name)
        return phema_fail_memory(err);
    memcpy(by_name, candidates->items, candidates->n * sizeof(*by_name));
    size_t notes_size = builder->notes.size, warnings_size = builder->warnings.size;
    builder->opens_optional = true;
    enum phema_status status = add_candidates(builder, err);
    builder->opens_optional = false;
    if (!status || status == PHEMA_ERR_RESOURCE)
        return status;
    reset_snapshots(builder);
    candidates->items = by_name;
    builder->notes.size = notes_size;
    builder->warnings.size = warnings_size;
    builder->series->unsampled = builder_keep_text(builder, err->message);
    return builder->series->unsampled ? add_candidates(builder, err) : phema_fail_memory(err);
}

static void drop_left_out(struct candidate_list *candidates)
{
    size_t n = 0;
    for (size_t i = 0; i < candidates->n; i++)
        if (!candidates->items[i].is_left_out)
            candidates->items[n++] = candidates->items[i];
    candidates->n = n;
}

PHEMA_FALLIBLE open_snapshots(struct series_builder *builder, struct phema_error *err)
{
    struct candidate_list *candidates = &builder->candidates;
    const struct phema_series_options *options = builder->options;
    drop_left_out(candidates);
    if (candidates->n == 0)
        return fail_none(builder, err);
    qsort(candidates->items, candidates->n, sizeof(*candidates->items), compare_snapshots);
    bool has_optional_files =
        options->may_be_sampled && options->needs_no_tensors && candidates->layout == &layout_edm2;
    enum phema_status status =
        has_optional_files ? add_with_optional_files(builder, err) : add_candidates(builder, err);
    release_checkpoint(builder);
    if (status == PHEMA_ERR_INPUTS)
        runs_explain(candidates, options, err);
    if (status)
        return status;
    if (builder->series->n == 0 && options->is_alone)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: made by posthoc-ema; averages are no snapshots", options->snapshots);
    return builder->series->n ? runs_find(builder->series, candidates, err)
                              : fail_none(builder, err);
}

void series_clear_snapshots(struct phema_series *series)
{
    for (size_t k = 0; k < series->n; k++)
        if (!series->snapshots[k].is_checkpoint_shared)
            phema_checkpoint_close(series->snapshots[k].checkpoint);
    series->n = 0;
}
