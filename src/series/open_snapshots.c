// SPDX-License-Identifier: Apache-2.0
/* open_snapshots.c - opens the files one by one and keeps only tensor locations, so that memory
 * does not depend on the number of snapshots. Several snapshots of one file share its mapping. */
#include "series_builder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "no_snapshots.h"
#include "phema/array.h"
#include "phema/memory.h"
#include "snapshot_metadata.h"

/* ---- Files ---- */

/* Releases the current file, which a snapshot may own by now. */
static void release_checkpoint(struct series_builder *builder)
{
    if (builder->checkpoint && builder->is_owned)
        phema_checkpoint_forget_listing(builder->checkpoint);
    else
        phema_checkpoint_close(builder->checkpoint);
    builder->checkpoint = NULL;
    builder->is_owned = false;
}

/* A copy in memory that the series keeps; NULL of NULL, or where there is no memory. */
static char *keep_text(struct series_builder *builder, const char *text)
{
    return text ? phema_arena_copy(&builder->series->memory, text, strlen(text)) : NULL;
}

/* All tensors of containers are named from their roots. */
static enum phema_status use_containers(struct series_builder *builder, struct phema_error *err)
{
    builder->subtree = (struct subtree){.key = ""};
    builder->filter.key = builder->subtree.key;
    builder->filter.container = &builder->container;
    builder->series->key = keep_text(builder, "");
    return builder->series->key ? PHEMA_OK : phema_fail_memory(err);
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
    if (!key && !options->is_conversion)
        builder->kind = container_recognise(builder->checkpoint);
    if (builder->kind)
        return use_containers(builder, err);
    if (options->use == PHEMA_USE_RAW)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: --use raw: holds no raw parameters beside averages, or --key "
                          "chooses among its tensors",
                          phema_checkpoint_path(builder->checkpoint));
    if (key && options->may_lack_key && !subtree_exists(builder->checkpoint, key))
        key = strcmp(key, ".") == 0 ? key : NULL;
    enum phema_status status =
        subtree_choose(&builder->subtree, candidates, key, builder->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", phema_checkpoint_path(builder->checkpoint));
    builder->filter.key = builder->subtree.key;
    builder->series->key = keep_text(builder, builder->subtree.key);
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

/* A warning that holds for many files is noted for the first one. */
static void note_warning(struct series_builder *builder, const struct candidate *candidate,
                         const char *warning)
{
    const struct phema_strbuf *notes = &builder->notes;
    if (!notes->size || !memmem(notes->data, notes->size, warning, strlen(warning)))
        candidates_note(&builder->candidates, "%s: %s", candidate->label, warning);
}

/* A manifest may name one file several times in a row. */
static enum phema_status open_file(struct series_builder *builder,
                                   const struct candidate *candidate, struct phema_error *err)
{
    if (builder->checkpoint &&
        strcmp(phema_checkpoint_path(builder->checkpoint), candidate->path) == 0)
        return PHEMA_OK;
    release_checkpoint(builder);
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

/* Among them are names of tied parameters, which the trainer averages under one name. */
static void note_without_average(struct series_builder *builder)
{
    const struct phema_series *series = builder->series;
    const struct phema_tensor *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_series_tensor *entry = &series->tensors[i];
        if (entry->rule != PHEMA_RULE_COPY || strcmp(entry->reason, "no average") != 0)
            continue;
        first = first ? first : &entry->tensor;
        n++;
    }
    struct phema_name_buffer shown;
    if (n)
        candidates_note(&builder->candidates,
                        "%zu tensor%s without an average, such as '%s', %s copied from the newest "
                        "raw parameters",
                        n, n == 1 ? "" : "s",
                        phema_name_escape(&shown, first->name, first->name_size),
                        n == 1 ? "is" : "are");
}

/* inspect lists these tensors, synth refuses to average them. */
static void note_quantised(struct series_builder *builder)
{
    const struct phema_quantised *first = builder->series->quantised;
    if (!first || builder->options->is_conversion)
        return;
    candidates_note(
        &builder->candidates,
        "quantised tensors, such as '%s' with its scale '%s', are copied or left out, never "
        "averaged (--rule 'RE=copy', --exclude 'RE')",
        first->codes, first->scale);
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
    note_without_average(builder);
    return PHEMA_OK;
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

/* EDM2's pickles add nothing to their names. All other files have headers that are read quickly and
 * that the weights depend on: dtypes, update_every. */
static bool needs_file(const struct series_builder *builder, const struct candidate *candidate)
{
    if (!candidate->path)
        return false;
    const struct phema_format_info *format = phema_format_from_path(NULL, candidate->path, 0);
    return builder->opens_optional || !builder->options->needs_no_tensors ||
           builder->candidates.layout != &layout_edm2 || !format ||
           strcmp(format->name, "pickle") != 0;
}

static enum phema_status fill_snapshot(struct series_builder *builder,
                                       struct phema_snapshot *snapshot, struct candidate *candidate,
                                       const char *key, struct phema_error *err)
{
    const struct layout *layout = builder->candidates.layout;
    snapshot->named_time = snapshot->time = candidate->named_time;
    snapshot->label = keep_text(builder, candidate->label);
    snapshot->path = keep_text(builder, candidate->path);
    snapshot->key = keep_text(builder, key);
    if (!snapshot->label || (candidate->path && !snapshot->path) || (key && !snapshot->key))
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    if (needs_file(builder, candidate))
        status = locate_tensors(builder, snapshot, err);
    else if (candidate->path)
        snapshot->rounding = phema_dtype_rounding(PHEMA_F16); /* EDM2 writes nothing else */
    if (status)
        return status;
    if (layout->clock)
        snapshot->time = layout->clock(candidate->named_time);
    return snapshot_profile_set(builder, snapshot, candidate, err);
}

/* key: the candidate's own subtree of the file; NULL: the series' subtree. */
static enum phema_status add_snapshot(struct series_builder *builder, struct candidate *candidate,
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
    return add_snapshot(builder, &candidate, key, err);
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

/* ---- Containers ---- */

static bool is_wanted(const struct series_builder *builder, const struct tensor_set *set)
{
    int use = builder->options->use;
    return use == PHEMA_USE_ALL || set->is_raw == (use == PHEMA_USE_RAW);
}

/* A manifest says which of the snapshots is meant by its profile. */
static bool is_meant(const struct candidate *file, const struct tensor_set *set)
{
    if (file->spec)
        return (strcmp(file->spec->kind, "raw") == 0) == set->is_raw;
    bool has_width = !isnan(file->sigma_rel) || !isnan(file->gamma);
    if (!has_width)
        return true;
    return !set->is_raw && (isnan(set->sigma_rel) || candidate_allows_width(file, set->sigma_rel));
}

static enum phema_status add_member(struct series_builder *builder, const struct candidate *file,
                                    const struct tensor_set *set, struct phema_error *err)
{
    struct candidate candidate = *file;
    candidate.label = phema_arena_printf(&builder->scratch, "%s:%s", file->label, set->name);
    if (!candidate.label)
        return phema_fail_memory(err);
    if (!isnan(file->named_time))
        candidate.named_time = set->time;
    size_t n = builder->series->n;
    if (n && candidate.named_time < builder->series->snapshots[n - 1].named_time)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: its average '%s' ends before the previous snapshot", file->path,
                          set->name);
    enum phema_status status = PHEMA_OK;
    if (!candidate.spec && isnan(candidate.sigma_rel) && isnan(candidate.gamma))
        status = set_profile_find(builder, &candidate, set, err);
    if (status)
        return phema_fail_in(err, status, "%s", candidate.label);
    builder->filter.set = set;
    return add_snapshot(builder, &candidate, set->name, err);
}

/* The last checkpoint of a training may have raw parameters alone. */
static enum phema_status add_container(struct series_builder *builder, struct candidate *file,
                                       struct phema_error *err)
{
    enum phema_status status = container_list(&builder->container, builder->kind, &builder->scratch,
                                              file, builder->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", file->path);
    size_t n = builder->series->n;
    for (size_t s = 0; s < builder->container.n && !status; s++) {
        const struct tensor_set *set = &builder->container.sets[s];
        if (is_wanted(builder, set) && is_meant(file, set))
            status = add_member(builder, file, set, err);
    }
    if (!status && builder->series->n == n)
        candidates_leave_out(&builder->candidates, file, "which has no snapshot of this kind");
    return status;
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
    bool is_layout_given = builder->options->layout && candidates->layout == &layout_edm2;
    if (unit && is_layout_given && !*is_output && !builder->options->unit &&
        strcmp(unit, candidates->layout->unit) != 0)
        return phema_suggest(err,
                             phema_fail(err, PHEMA_ERR_INPUTS,
                                        "%s: --layout edm2 counts kimg, but the file says that its "
                                        "time is in %s",
                                        candidate->path, unit),
                             "--layout", "auto");
    if (unit && !*is_output && !candidates->unit)
        candidates->unit = keep_text(builder, unit);
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
        return add_container(builder, candidate, err);
    if (builder->subtree.is_bundle)
        return add_bundle(builder, candidate, err);
    double width = subtree_width_of(builder->subtree.key, builder->checkpoint);
    if (!isnan(width) && !candidate_allows_width(candidate, width))
        return candidate_fail_width(candidate, builder->subtree.key, err);
    if (!isnan(width))
        candidate_set_width(candidate, width);
    return add_snapshot(builder, candidate, NULL, err);
}

static enum phema_status add_candidate(struct series_builder *builder, struct candidate *candidate,
                                       struct phema_error *err)
{
    if (needs_file(builder, candidate))
        return add_file(builder, candidate, err);
    if (!candidate->path && !builder->options->needs_no_tensors)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: %s: has no 'file'",
                          builder->options->snapshots, candidate->label);
    return add_snapshot(builder, candidate, NULL, err);
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
        (void)phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots between --from and --to",
                         options->snapshots);
        (void)phema_suggest(err, PHEMA_ERR_INPUTS, "--from", "");
        return phema_suggest(err, PHEMA_ERR_INPUTS, "--to", "");
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
        if (needs_file(builder, &candidates->items[i]))
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
    builder->filter.container = NULL;
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
    size_t notes_size = builder->notes.size;
    builder->opens_optional = true;
    enum phema_status status = add_candidates(builder, err);
    builder->opens_optional = false;
    if (!status || status == PHEMA_ERR_RESOURCE)
        return status;
    reset_snapshots(builder);
    candidates->items = by_name;
    builder->notes.size = notes_size;
    builder->series->unsampled = keep_text(builder, err->message);
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
    if (status)
        return status;
    if (builder->series->n == 0 && options->is_alone)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: made by posthoc-ema; averages are no snapshots", options->snapshots);
    return builder->series->n ? PHEMA_OK : fail_none(builder, err);
}

void series_clear_snapshots(struct phema_series *series)
{
    for (size_t k = 0; k < series->n; k++)
        if (!series->snapshots[k].is_checkpoint_shared)
            phema_checkpoint_close(series->snapshots[k].checkpoint);
    series->n = 0;
}
