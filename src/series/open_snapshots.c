// SPDX-License-Identifier: Apache-2.0
/* open_snapshots.c - opens the files one by one and keeps only tensor locations, so that memory
 * does not depend on the number of snapshots. Several snapshots of one file share its mapping. The
 * first file decides which sets of tensors are snapshots. */
#include "series_builder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/memory.h"
#include "phema/setting.h"

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

/* The first file decides for all. */
static enum phema_status choose_sets(struct series_builder *builder, struct phema_error *err)
{
    struct candidate_list *candidates = &builder->candidates;
    struct set_scheme *scheme = &builder->scheme;
    if (candidates->is_numbered) {
        const struct phema_checkpoint *first = builder->checkpoint;
        candidates->layout = subtree_exists(first, layout_ema_pytorch.subtree) ? &layout_ema_pytorch
                             : phema_checkpoint_find(first, "step", strlen("step"))
                                 ? &layout_posthoc_ema
                                 : &layout_custom; /* of neither library */
    }
    enum phema_status status =
        set_scheme_choose(scheme, candidates, builder->options, builder->checkpoint, err);
    if (status)
        return status;
    builder->series->key = series_keep_text(builder, scheme->subtree.key);
    builder->series->is_key_usual = scheme->subtree.is_usual;
    if (!builder->series->key)
        return phema_fail_memory(err);
    return scheme->trainer ? PHEMA_OK : input_profiles_check(builder, err);
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
    /* Files with the first one's header need not be listed again, if no snapshot keeps its time or
     * width in a tensor. */
    const struct set_scheme *scheme = &builder->scheme;
    if (scheme->subtree.key && !scheme->trainer && !scheme->subtree.is_bundle &&
        !builder->counter && !builder->candidates.layout->has_step_inside &&
        !subtree_is_average(scheme->subtree.key))
        options.alike = builder->tensor_table.checkpoint;
    enum phema_status status =
        candidate_open(&builder->checkpoint, &builder->candidates, candidate, &options, err);
    if (status)
        return status;
    status = phema_memory_check(builder->options->max_ram_bytes, 0,
                                "to list the tensors of the snapshots", err);
    if (status)
        return status;
    const struct phema_strbuf *said =
        &builder->candidates.warnings; /* of the first of many files */
    for (size_t i = 0; i < phema_checkpoint_n_warnings(builder->checkpoint); i++) {
        const char *warning = phema_checkpoint_warning(builder->checkpoint, i);
        if (!said->size || !memmem(said->data, said->size, warning, strlen(warning)))
            candidates_warn(&builder->candidates, "%s: %s", candidate->label, warning);
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
        status =
            snapshot_metadata_check_counter(&builder->names_behind, candidate, candidates->layout,
                                            builder->series->time_offset, builder->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", candidate->path);
    const char *run = run_id_of(builder->checkpoint);
    candidate->run = run ? phema_arena_copy(&builder->scratch, run, strlen(run)) : NULL;
    if (run && !candidate->run)
        return phema_fail_memory(err);
    bool is_layout_given = builder->options->layout && candidates->layout->clock;
    if (unit && is_layout_given && !*is_output && !builder->options->unit &&
        strcmp(unit, candidates->layout->unit) != 0)
        return phema_suggest(
            err,
            phema_fail(err, PHEMA_ERR_INPUTS,
                       "%s: %s%s counts kimg, but the file says that its time is in %s",
                       candidate->path, phema_setting_equals(PHEMA_SET_LAYOUT),
                       candidates->layout->name, unit),
            PHEMA_SET_LAYOUT, "auto");
    if (unit && !*is_output && !candidates->unit)
        candidates->unit = series_keep_text(builder, unit);
    return PHEMA_OK;
}

/* Snapshots whose frozen tensors differ are of trainings that began from different models. */
static enum phema_status check_frozen(struct series_builder *builder, struct phema_error *err)
{
    if (snapshot_metadata_is_frozen(builder->checkpoint) && !builder->options->is_conversion)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "holds the frozen tensors of snapshots, and is no snapshot itself");
    const char *digest = phema_checkpoint_metadatum(builder->checkpoint, PHEMA_FROZEN_DIGEST);
    if (!digest)
        digest = "";
    if (!builder->frozen)
        builder->frozen = phema_arena_copy(&builder->scratch, digest, strlen(digest));
    if (!builder->frozen)
        return phema_fail_memory(err);
    return strcmp(builder->frozen, digest) == 0
               ? PHEMA_OK
               : phema_fail(err, PHEMA_ERR_INPUTS,
                            "its frozen tensors (" PHEMA_FROZEN_DIGEST ") are not those of the "
                            "snapshots before it; name the snapshots of one training");
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
    status = check_frozen(builder, err);
    if (status)
        return phema_fail_in(err, status, "%s", candidate->path);
    if (!builder->scheme.subtree.key)
        status = choose_sets(builder, err);
    if (status)
        return status;
    phema_arena_clear(&builder->sets_memory);
    status = tensor_sets_make(&builder->sets, &builder->scheme, &builder->sets_memory, candidate,
                              builder->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", candidate->path);
    return file_snapshots_add(builder, candidate, err);
}

/* Unknown widths come first, so raw parameters stand before averages. */
static int compare_widths(const struct candidate *left, const struct candidate *right)
{
    double widths[2];
    const struct candidate *const both[] = {left, right};
    for (size_t i = 0; i < 2; i++) /* NaN: the profile is unknown, or no power function */
        widths[i] = isnan(both[i]->sigma_rel) && both[i]->gamma > -0.5
                        ? phema_sigma_rel_from_gamma(both[i]->gamma)
                        : both[i]->sigma_rel;
    if (isnan(widths[0]) || isnan(widths[1]))
        return !isnan(widths[0]) - !isnan(widths[1]);
    return (widths[0] > widths[1]) - (widths[0] < widths[1]);
}

static int compare_snapshots(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    if (left->named_time != right->named_time)
        return left->named_time < right->named_time ? -1 : 1;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    int order = compare_widths(left, right);
    const char *spec = left->spec ? left->spec->canonical : "";
    return order ? order : strcmp(spec, right->spec ? right->spec->canonical : "");
}

/* Suggests to leave out the end without which there are snapshots. */
static enum phema_status fail_between(const struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    const struct candidate_list *candidates = &builder->candidates;
    bool has_from = options->from > -HUGE_VAL, has_to = options->to < HUGE_VAL, is_later = false;
    struct phema_name_buffer from, to;
    for (size_t i = 0; i < candidates->n; i++)
        is_later |= candidates->items[i].named_time >= options->from;
    (void)phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots%s%s%s%s%s%s", options->snapshots,
                     has_from ? " with " : "", has_from ? phema_setting_equals(PHEMA_SET_FROM) : "",
                     has_from ? phema_number_format(&from, options->from) : "",
                     has_to ? (has_from ? " and " : " with ") : "",
                     has_to ? phema_setting_equals(PHEMA_SET_TO) : "",
                     has_to ? phema_number_format(&to, options->to) : "");
    bool is_to = has_to && (is_later || !has_from);
    return phema_suggest(err, PHEMA_ERR_INPUTS, is_to ? PHEMA_SET_TO : PHEMA_SET_FROM, "");
}

static enum phema_status fail_none(const struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    if (builder->candidates.fault)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots found; left out: '%s', %s",
                          options->snapshots, builder->candidates.unreadable,
                          builder->candidates.fault);
    return fail_no_snapshots(options, &builder->candidates, err);
}

/* Headers of so many files are in the page cache before they are read. */
#define PREFETCHED_FILES 1024

static enum phema_status add_candidates(struct series_builder *builder, struct phema_error *err)
{
    struct candidate *items = builder->candidates.items;
    size_t n = builder->candidates.n;
    const char **paths = phema_arena_array(&builder->scratch, PREFETCHED_FILES, sizeof(*paths));
    enum phema_status status = paths ? PHEMA_OK : phema_fail_memory(err);
    for (size_t i = 0; i < n && !status; i++) {
        if (i % PREFETCHED_FILES == 0) {
            size_t n_paths = 0;
            for (size_t j = i; j < n && j < i + PREFETCHED_FILES; j++)
                if (snapshot_needs_file(builder, &items[j]))
                    paths[n_paths++] = items[j].path;
            phema_headers_prefetch(paths, n_paths);
        }
        if (snapshot_needs_file(builder, &items[i]))
            status = add_file(builder, &items[i], err);
        else if (!items[i].path && !builder->options->needs_no_tensors)
            status = phema_fail(err, PHEMA_ERR_INPUTS, "%s: %s: has no 'file'",
                                builder->options->snapshots, items[i].label);
        else
            status = snapshot_add(builder, &items[i], NULL, err);
    }
    return status;
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
    builder->scheme = (struct set_scheme){0};
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
    const struct phema_recognised recognised = candidates->recognised;
    size_t notes_size = candidates->notes.size, warnings_size = candidates->warnings.size;
    builder->opens_optional = true;
    enum phema_status status = add_candidates(builder, err);
    builder->opens_optional = false;
    if (!status || status == PHEMA_ERR_RESOURCE)
        return status;
    reset_snapshots(builder);
    candidates->items = by_name;
    candidates->recognised = recognised;
    candidates->notes.size = notes_size;
    candidates->warnings.size = warnings_size;
    builder->series->unsampled = series_keep_text(builder, err->message);
    return builder->series->unsampled ? add_candidates(builder, err) : phema_fail_memory(err);
}

PHEMA_FALLIBLE open_snapshots(struct series_builder *builder, struct phema_error *err)
{
    struct candidate_list *candidates = &builder->candidates;
    const struct phema_series_options *options = builder->options;
    size_t n = 0;
    enum phema_status status = recognised_collect(candidates, err);
    if (status)
        return status;
    for (size_t i = 0; i < candidates->n; i++)
        if (!candidates->items[i].is_left_out)
            candidates->items[n++] = candidates->items[i];
    if (n == 0 && (options->from > -HUGE_VAL || options->to < HUGE_VAL))
        return fail_between(builder, err);
    candidates->n = n;
    if (n == 0)
        return fail_none(builder, err);
    qsort(candidates->items, n, sizeof(*candidates->items), compare_snapshots);
    bool has_optional_files =
        options->may_be_sampled && options->needs_no_tensors && candidates->layout->names_say_all;
    status =
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
