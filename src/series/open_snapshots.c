// SPDX-License-Identifier: Apache-2.0
/* open_snapshots.c - files become snapshots. They are opened one after another and only their
 * places are kept, so that memory does not depend on the number of snapshots; several snapshots of
 * one file share its mapping. */
#include "open_snapshots.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/memory.h"
#include "snapshot_metadata.h"

/* ---- Files ---- */

void opening_release(struct opening *opening)
{
    if (opening->checkpoint && opening->is_owned)
        phema_checkpoint_forget_listing(opening->checkpoint);
    else
        phema_checkpoint_close(opening->checkpoint);
    opening->checkpoint = NULL;
    opening->path = NULL;
    opening->is_owned = false;
}

/* Of the first file: what all are read by. */
static enum phema_status choose_subtree(struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    struct discovery *scan = &opening->scan;
    opening->is_subtree_chosen = true;
    if (scan->is_numbered) {
        bool is_ema_pytorch =
            snapshot_metadata_has_subtree(opening->checkpoint, layout_ema_pytorch.subtree);
        scan->layout = is_ema_pytorch ? &layout_ema_pytorch : &layout_posthoc_ema;
    }
    const char *key = options->key;
    if (key && options->may_lack_key && !snapshot_metadata_has_subtree(opening->checkpoint, key))
        key = strcmp(key, ".") == 0 ? key : NULL;
    enum phema_status status =
        subtree_choose(&opening->subtree, scan, key, opening->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", opening->path);
    opening->selection.key = opening->subtree.key;
    opening->selection.key_size = strlen(opening->subtree.key);
    opening->selection.leaves_out_optimizer = opening->subtree.leaves_out_optimizer;
    opening->selection.names = opening->subtree.names;
    opening->selection.n_names = opening->subtree.n_names;
    opening->series->key = strdup(opening->subtree.key);
    if (!opening->series->key)
        return phema_fail_memory(err);
    if (scan->layout->is_labelled_only && !options->needs_no_profiles && !profile_is_said(opening))
        return widths_fail_unsaid(opening, err);
    return PHEMA_OK;
}

/* A file that says the same as the first one need not be listed, unless what it says is looked for
 * in tensors. */
static const struct phema_checkpoint *find_alike(const struct opening *opening)
{
    if (!opening->is_subtree_chosen || opening->subtree.is_bundle ||
        opening->scan.layout->has_step_inside || subtree_is_average(opening->subtree.key))
        return NULL;
    return opening->tensor_table.checkpoint;
}

/* A manifest may name one file several times, one after another. */
static enum phema_status open_file(struct opening *opening, const struct candidate *candidate,
                                   struct phema_error *err)
{
    if (opening->checkpoint && strcmp(opening->path, candidate->path) == 0)
        return PHEMA_OK;
    opening_release(opening);
    struct phema_checkpoint_options options = opening->options->checkpoint;
    options.alike = find_alike(opening);
    enum phema_status status =
        phema_checkpoint_open(&opening->checkpoint, candidate->path, &options, err);
    if (status)
        return status;
    opening->path = candidate->path;
    status = phema_memory_check(opening->options->max_ram_bytes, 0,
                                "to list the tensors of the snapshots", err);
    if (status)
        return status;
    for (size_t i = 0; i < phema_checkpoint_n_warnings(opening->checkpoint); i++)
        discover_note(&opening->scan, "%s: %s", candidate->label,
                      phema_checkpoint_warning(opening->checkpoint, i));
    return PHEMA_OK;
}

/* pytorch-posthoc-ema counts in 'step', which runs behind the STEP of the names by a constant. */
static enum phema_status read_clock(struct opening *opening, struct phema_snapshot *snapshot,
                                    bool is_first, struct phema_error *err)
{
    double step = snapshot_metadata_scalar(snapshot->checkpoint, "step");
    double ahead = snapshot->named_time - step;
    if (!(step >= 1) || !(ahead >= 0)) {
        if (opening->options->needs_no_profiles)
            return PHEMA_OK;
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "its tensor 'step', the clock of the average, is missing or no count");
    }
    if (is_first)
        opening->series->named_ahead = ahead;
    else if (ahead != opening->series->named_ahead)
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "its name is %g steps ahead of the 'step' inside, elsewhere %g; these are "
            "files of two runs",
            ahead, opening->series->named_ahead);
    snapshot->time = step;
    return PHEMA_OK;
}

/* Said of the first file: a series has the same in each. */
static void note_attributes(struct opening *opening, const struct phema_checkpoint *checkpoint)
{
    size_t n = opening->series->attributes.n_tensors;
    const struct phema_tensor *first = phema_checkpoint_tensors(checkpoint);
    if (!n)
        return;
    while (first->kind != PHEMA_KIND_ATTRIBUTE)
        first++;
    struct phema_name_buffer shown;
    discover_note(
        &opening->scan,
        "%zu tensor%s in attributes of objects, such as '%s': no part of the model; a copy of "
        "the newest snapshot (.pt, .pkl) keeps %s as %s, other outputs are without",
        n, n == 1 ? "" : "s", phema_name_escape(&shown, first->name, first->name_size),
        n == 1 ? "it" : "them", n == 1 ? "it is" : "they are");
}

/* inspect says what would be averaged; synth refuses these. */
static void note_scales(struct opening *opening)
{
    const struct phema_quantised *first = opening->series->scaled;
    if (!first || opening->options->is_conversion)
        return;
    discover_note(
        &opening->scan,
        "quantised tensors, such as '%s' with its scale '%s', are copied or left out, never "
        "averaged (--rule 'RE=copy', --exclude 'RE')",
        first->codes, first->scale);
}

/* The tensors of the file at hand. */
static enum phema_status take_tensors(struct opening *opening, struct phema_snapshot *snapshot,
                                      struct phema_error *err)
{
    bool is_first = opening->series->n_tensors == 0;
    snapshot->checkpoint = opening->checkpoint;
    snapshot->is_checkpoint_shared = opening->is_owned;
    opening->is_owned = true;
    enum phema_status status = PHEMA_OK;
    if (opening->scan.layout->has_step_inside) {
        status = read_clock(opening, snapshot, is_first, err);
        if (status)
            return phema_fail_in(err, status, "%s", snapshot->path);
    }
    status = is_first ? tensor_table_init(&opening->tensor_table, snapshot, err)
                      : tensor_table_match(&opening->tensor_table, snapshot, err);
    if (!status && is_first) {
        note_attributes(opening, snapshot->checkpoint);
        note_scales(opening);
    }
    snapshot->is_compressed = phema_checkpoint_is_decoded(snapshot->checkpoint);
    return status;
}

/* EDM2's pickles hold no more than their names say; all others have headers that are quickly read,
 * and say what the weights depend on: dtypes, update_every. */
static bool needs_file(const struct opening *opening, const struct candidate *candidate)
{
    if (!candidate->path)
        return false;
    return opening->looks_inside || !opening->options->needs_no_tensors ||
           opening->scan.layout != &layout_edm2 || !phema_ends_with(candidate->path, ".pkl");
}

static struct phema_snapshot *grow_snapshots(struct opening *opening)
{
    struct phema_series *series = opening->series;
    if (series->n == opening->capacity) {
        size_t capacity = opening->capacity ? 2 * opening->capacity : 16;
        struct phema_snapshot *larger =
            reallocarray(series->snapshots, capacity, sizeof(*series->snapshots));
        if (!larger)
            return NULL;
        series->snapshots = larger;
        opening->capacity = capacity;
    }
    return &series->snapshots[series->n];
}

/* key: the candidate's own part of the file, NULL for what the series has of all. */
static enum phema_status add_snapshot(struct opening *opening, struct candidate *candidate,
                                      const char *key, struct phema_error *err)
{
    struct phema_series *series = opening->series;
    const struct layout *layout = opening->scan.layout;
    struct phema_snapshot *snapshot = grow_snapshots(opening);
    if (!snapshot)
        return phema_fail_memory(err);
    *snapshot =
        (struct phema_snapshot){.named_time = candidate->named_time, .time = candidate->named_time};
    enum phema_status status = PHEMA_OK;
    snapshot->label = strdup(candidate->label);
    snapshot->path = candidate->path ? strdup(candidate->path) : NULL;
    snapshot->key = key ? strdup(key) : NULL;
    snapshot->is_one_of_many = key != NULL;
    if (!snapshot->label || (candidate->path && !snapshot->path) || (key && !snapshot->key))
        status = phema_fail_memory(err);
    else if (needs_file(opening, candidate))
        status = take_tensors(opening, snapshot, err);
    else if (candidate->path)
        snapshot->rounding = phema_dtype_rounding(PHEMA_F16); /* EDM2 writes nothing else */
    if (layout->clock)
        snapshot->time = layout->clock(candidate->named_time);
    if (!status)
        status = widths_find(opening, candidate, err);
    if (!status)
        status = profile_set(opening, snapshot, candidate, err);
    series->n++; /* from here on close frees what it holds */
    return status;
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

static enum phema_status add_average(struct opening *opening, const struct candidate *file,
                                     const struct width_at *average, struct phema_error *err)
{
    struct phema_arena *arena = &opening->scratch;
    struct candidate candidate = *file;
    width_take(&candidate, average->width);
    const char *key = subtree_key_of(arena, opening->subtree.key, average->index);
    struct phema_strbuf label = {0};
    phema_strbuf_printf(&label, "%s:%s", file->label, key ? key : "");
    candidate.label = label.is_failed ? NULL : phema_arena_copy(arena, label.data, label.size);
    phema_strbuf_clear(&label);
    if (!key || !candidate.label)
        return phema_fail_memory(err);
    opening->selection.key = key;
    opening->selection.key_size = strlen(key);
    return add_snapshot(opening, &candidate, key, err);
}

/* Narrow averages first, as elsewhere. */
static enum phema_status add_bundle(struct opening *opening, const struct candidate *file,
                                    struct phema_error *err)
{
    const double *widths = NULL;
    size_t n = 0, n_meant = 0;
    const char *key = opening->subtree.key;
    enum phema_status status =
        subtree_widths(&widths, &n, &opening->scratch, key, opening->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", file->path);
    struct width_at *averages = phema_arena_array(&opening->scratch, n + 1, sizeof(*averages));
    if (!averages)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (width_is_meant(file, widths[i]))
            averages[n_meant++] = (struct width_at){widths[i], i};
    if (!n_meant)
        return width_fail(file, key, err);
    qsort(averages, n_meant, sizeof(*averages), compare_widths);
    for (size_t i = 0; !status && i < n_meant; i++)
        status = add_average(opening, file, &averages[i], err);
    return status;
}

/* ---- Candidates ---- */

static enum phema_status add_file(struct opening *opening, struct candidate *candidate,
                                  struct phema_error *err)
{
    enum phema_status status = open_file(opening, candidate, err);
    if (status)
        return status;
    const char *unit = NULL;
    bool is_output = false;
    bool is_read = !opening->options->is_conversion; /* what it says is not used there */
    if (is_read)
        status = snapshot_metadata_read(candidate, &is_output, &unit, &opening->scan.specs,
                                        opening->checkpoint, err);
    if (!status && is_read)
        status = snapshot_metadata_check_counter(candidate, opening->scan.layout,
                                                 opening->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", candidate->path);
    if (is_output) {
        discover_note(&opening->scan, "left out: '%s', made by posthoc-ema", candidate->label);
        return PHEMA_OK;
    }
    if (unit && !opening->scan.unit)
        opening->scan.unit = phema_arena_copy(&opening->series->memory, unit, strlen(unit));
    if (!opening->is_subtree_chosen)
        status = choose_subtree(opening, err);
    if (status)
        return status;
    if (opening->subtree.is_bundle)
        return add_bundle(opening, candidate, err);
    double width = subtree_width_of(opening->subtree.key, opening->checkpoint);
    if (!isnan(width) && !width_is_meant(candidate, width))
        return width_fail(candidate, opening->subtree.key, err);
    if (!isnan(width))
        width_take(candidate, width);
    return add_snapshot(opening, candidate, NULL, err);
}

static enum phema_status add_candidate(struct opening *opening, struct candidate *candidate,
                                       struct phema_error *err)
{
    if (needs_file(opening, candidate))
        return add_file(opening, candidate, err);
    if (!candidate->path && !opening->options->needs_no_tensors)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: %s: has no 'file'",
                          opening->options->snapshots, candidate->label);
    return add_snapshot(opening, candidate, NULL, err);
}

/* NaN for what is no power function, or not known. */
static double width_of(const struct candidate *candidate)
{
    bool is_by_gamma = isnan(candidate->sigma_rel) && candidate->gamma > -0.5;
    return is_by_gamma ? phema_sigma_rel_from_gamma(candidate->gamma) : candidate->sigma_rel;
}

/* Raw parameters come before averages, and what has no number before what has one. */
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
    const char *spec = left->spec ? left->spec->shown : "";
    return order ? order : strcmp(spec, right->spec ? right->spec->shown : "");
}

static enum phema_status fail_none(const struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    if (options->from > -HUGE_VAL || options->to < HUGE_VAL)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: no snapshots between --from and --to",
                          options->snapshots);
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "%s: no snapshots found; names like 'snapshot-0001000-0.050.safetensors', "
                      "'network-snapshot-0001000-0.050.pkl' or '0.1000.pt' are known, others need "
                      "--name-regex or a manifest",
                      options->snapshots);
}

static enum phema_status add_candidates(struct opening *opening, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; !status && i < opening->scan.n; i++)
        status = add_candidate(opening, &opening->scan.items[i], err);
    return status;
}

/* As if no file had been opened; only memory of the arenas stays. */
static void take_back_snapshots(struct opening *opening)
{
    struct phema_series *series = opening->series;
    opening_release(opening);
    series_clear_snapshots(series);
    series->tensors = NULL;
    series->n_tensors = 0;
    series->attributes = series->left_out = (struct phema_tensor_total){0};
    series->scaled = NULL;
    free(series->key);
    series->key = NULL;
    opening->is_subtree_chosen = false;
    opening->subtree = (struct subtree){0};
    opening->tensor_table.checkpoint = NULL;
}

/* Files that are of use and not needed: where one cannot be opened, or they do not agree, it is
 * told why, and names have to do. */
static enum phema_status add_looking_inside(struct opening *opening, struct phema_error *err)
{
    struct discovery *scan = &opening->scan;
    struct candidate *said = /* what files say is filled in */
        phema_arena_array(&opening->scratch, scan->n, sizeof(*said));
    if (!said)
        return phema_fail_memory(err);
    memcpy(said, scan->items, scan->n * sizeof(*said));
    size_t notes = opening->notes.size;
    opening->looks_inside = true;
    enum phema_status status = add_candidates(opening, err);
    opening->looks_inside = false;
    if (!status || status == PHEMA_ERR_RESOURCE)
        return status;
    take_back_snapshots(opening);
    scan->items = said;
    opening->notes.size = notes;
    opening->series->unsampled =
        phema_arena_copy(&opening->series->memory, err->message, strlen(err->message));
    return opening->series->unsampled ? add_candidates(opening, err) : phema_fail_memory(err);
}

PHEMA_FALLIBLE opening_add_all(struct opening *opening, struct phema_error *err)
{
    struct discovery *scan = &opening->scan;
    size_t n = 0;
    for (size_t i = 0; i < scan->n; i++)
        if (!scan->items[i].is_left_out)
            scan->items[n++] = scan->items[i];
    scan->n = n;
    if (n == 0)
        return fail_none(opening, err);
    qsort(scan->items, n, sizeof(*scan->items), compare_snapshots);
    bool looks_inside = opening->options->may_be_sampled && opening->options->needs_no_tensors &&
                        scan->layout == &layout_edm2;
    enum phema_status status =
        looks_inside ? add_looking_inside(opening, err) : add_candidates(opening, err);
    if (status)
        return status;
    if (opening->series->n == 0)
        return phema_fail(err, PHEMA_ERR_INPUTS, "%s: %s", opening->options->snapshots,
                          opening->options->is_alone
                              ? "made by posthoc-ema; averages are no snapshots"
                              : "no snapshots found");
    return PHEMA_OK;
}
