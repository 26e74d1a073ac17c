// SPDX-License-Identifier: Apache-2.0
/* file_snapshots.c - the snapshots of a file: one, or one for each of its sets. Only locations of their
 * tensors are kept. */
#include "series_builder.h"

#include <math.h>
#include <string.h>

#include "phema/array.h"
#include "phema/setting.h"

/* ---- One snapshot ---- */

char *series_keep_text(struct series_builder *builder, const char *text)
{
    return text ? phema_arena_copy(&builder->series->memory, text, strlen(text)) : NULL;
}

/* pytorch-posthoc-ema counts in the tensor 'step', a constant below the STEP of the names. It casts
 * that to the dtype of its checkpoints. */
static enum phema_status read_clock(struct series_builder *builder, struct phema_snapshot *snapshot,
                                    bool is_first, struct phema_error *err)
{
    double within = 0, usual = builder->candidates.layout->usual_ahead;
    double step = snapshot_metadata_rounded(snapshot->checkpoint, "step", &within);
    double ahead = snapshot->named_time - step;
    if (!(step >= 1) || !(ahead + within >= 0)) {
        if (builder->options->needs_no_profiles)
            return PHEMA_OK;
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "its tensor 'step', the clock of the average, is missing or no count");
    }
    if (is_first)
        builder->series->named_ahead = fabs(ahead - usual) <= within ? usual : ahead;
    else if (!(fabs(ahead - builder->series->named_ahead) <= 2 * within)) /* the first is, too */
        return phema_fail(
            err, PHEMA_ERR_INPUTS,
            "its name is %g steps ahead of the 'step' inside, elsewhere %g; these are "
            "files of two runs",
            ahead, builder->series->named_ahead);
    snapshot->time = snapshot->named_time - builder->series->named_ahead;
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
    enum phema_status read =
        tensor_filter_check_read(&builder->filter, builder->options->is_conversion, err);
    if (read)
        return phema_fail_in(err, read, "%s", snapshot->path);
    if (builder->candidates.layout->has_step_inside) {
        enum phema_status status = read_clock(builder, snapshot, is_first, err);
        if (status)
            return phema_fail_in(err, status, "%s", snapshot->path);
    }
    if (!is_first)
        return tensor_table_match(&builder->tensor_table, snapshot, err);
    enum phema_status status = tensor_table_init(&builder->tensor_table, snapshot, err);
    if (!status)
        status = quantised_find(&builder->tensor_table, err);
    if (status)
        return status;
    return tensor_notes_add(builder, err);
}

bool snapshot_needs_file(const struct series_builder *builder, const struct candidate *candidate)
{
    if (!candidate->path)
        return false;
    const struct phema_format_info *format = phema_format_from_path(NULL, candidate->path, 0);
    return builder->opens_optional || !builder->options->needs_no_tensors ||
           !builder->candidates.layout->names_say_all || !format ||
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

enum phema_status snapshot_add(struct series_builder *builder, struct candidate *candidate,
                               const char *key, struct phema_error *err)
{
    struct phema_series *series = builder->series;
    if (!phema_array_grow(&series->snapshots, &builder->capacity, series->n,
                          sizeof(*series->snapshots)))
        return phema_fail_memory(err);
    struct phema_snapshot *snapshot = &series->snapshots[series->n++];
    *snapshot = (struct phema_snapshot){0}; /* series_clear_snapshots frees it from here on */
    snapshot->named_time = snapshot->time = candidate->named_time;
    snapshot->n_updates = PHEMA_UNKNOWN;
    snapshot->label = series_keep_text(builder, candidate->label);
    snapshot->path = series_keep_text(builder, candidate->path);
    snapshot->key = series_keep_text(builder, key);
    snapshot->run = series_keep_text(builder, candidate->run);
    if (!snapshot->label || (candidate->path && !snapshot->path) || (key && !snapshot->key) ||
        (candidate->run && !snapshot->run))
        return phema_fail_memory(err);
    enum phema_status status = PHEMA_OK;
    if (snapshot_needs_file(builder, candidate))
        status = update_count_read(builder, &snapshot->n_updates, err);
    if (!status && snapshot_needs_file(builder, candidate))
        status = locate_tensors(builder, snapshot, err);
    else if (candidate->path)
        snapshot->rounding = phema_dtype_rounding(PHEMA_F16); /* EDM2 writes nothing else */
    if (status)
        return status;
    status = shift_time(snapshot, series, err);
    return status ? status : snapshot_profile_set(builder, snapshot, candidate, err);
}

/* ---- The sets of a file ---- */

/* As far as --key and --use ask for a set, and a manifest or name means it by its profile. */
static bool is_meant(const struct series_builder *builder, const struct candidate *file,
                     const struct phema_tensor_set *set)
{
    const char *wanted = builder->scheme.wanted;
    int use = builder->options->use;
    if (wanted && strcmp(set->name, wanted) != 0)
        return false;
    if (!wanted && use != PHEMA_USE_ALL && set->is_raw != (use == PHEMA_USE_RAW))
        return false;
    if (set->trainer && file->spec)
        return (strcmp(file->spec->kind, "raw") == 0) == set->is_raw;
    if (set->trainer && isnan(file->sigma_rel) && isnan(file->gamma))
        return true;
    return !set->is_raw && (isnan(set->sigma_rel) || candidate_allows_width(file, set->sigma_rel));
}

/* Sets time and profile of a trainer's set. */
static enum phema_status describe_set(struct series_builder *builder, struct candidate *candidate,
                                      const struct phema_tensor_set *set, struct phema_error *err)
{
    size_t n = builder->series->n;
    if (!isnan(candidate->named_time))
        candidate->named_time = set->time;
    if (n && candidate->named_time < builder->series->snapshots[n - 1].named_time)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: its average '%s' ends before the previous snapshot", candidate->path,
                          set->name);
    if (builder->options->is_conversion) { /* one set as it is, without what it lacks */
        builder->sets.has_raw = set->is_raw;
        return PHEMA_OK;
    }
    if (candidate->spec || !isnan(candidate->sigma_rel) || !isnan(candidate->gamma))
        return PHEMA_OK;
    enum phema_status status = set_profile_find(builder, candidate, set, err);
    return status ? phema_fail_in(err, status, "%s", candidate->label) : PHEMA_OK;
}

static enum phema_status add_set(struct series_builder *builder, const struct candidate *file,
                                 const struct phema_tensor_set *set, struct phema_error *err)
{
    struct candidate candidate = *file;
    candidate.label = phema_arena_printf(&builder->scratch, "%s:%s", file->label, set->name);
    if (!candidate.label)
        return phema_fail_memory(err);
    if (!set->trainer)
        candidate_set_width(&candidate, set->sigma_rel);
    enum phema_status status =
        set->trainer ? describe_set(builder, &candidate, set, err) : PHEMA_OK;
    builder->filter.set = set;
    return status ? status : snapshot_add(builder, &candidate, set->name, err);
}

/* Before its first update an average is the untrained model, whatever the raw parameters are. */
static bool is_unmade(const struct series_builder *builder, const struct phema_tensor_set *set)
{
    const char *counter = set->trainer ? set->trainer->n_updates : NULL;
    return counter && !set->is_raw && !builder->options->is_conversion &&
           snapshot_metadata_scalar(builder->checkpoint, counter) == 0;
}

static enum phema_status leave_out_set(struct series_builder *builder, const struct candidate *file,
                                       const struct phema_tensor_set *set, struct phema_error *err)
{
    struct candidate_list *candidates = &builder->candidates;
    const char *label = phema_arena_printf(candidates->arena, "%s:%s", file->label, set->name);
    return label ? recognised_leave_out(candidates, label, "before its first update", err)
                 : phema_fail_memory(err);
}

/* Adds the raw parameters beside the newest average, if the file has some: they tell what is copied.
 * Those that do not fit are of no use. */
static enum phema_status add_compared(struct series_builder *builder, const struct candidate *file,
                                      struct phema_error *err)
{
    const struct phema_tensor_sets *sets = &builder->sets;
    struct phema_series *series = builder->series;
    struct phema_error ignored;
    for (size_t s = 0; s < sets->n; s++) {
        size_t n = series->n;
        if (!sets->items[s]->is_raw || sets->items[s]->time != series->snapshots[n - 1].named_time)
            continue;
        enum phema_status status = add_set(builder, file, sets->items[s], &ignored);
        if (status == PHEMA_ERR_RESOURCE)
            return phema_fail(err, status, "%s", ignored.message);
        series->n = status ? n : series->n;
        if (!status)
            series->snapshots[n].is_only_compared = true;
    }
    return PHEMA_OK;
}

static enum phema_status add_sets(struct series_builder *builder, struct candidate *file,
                                  struct phema_error *err)
{
    const struct phema_tensor_sets *sets = &builder->sets;
    size_t n = builder->series->n;
    bool may_have_ties = !builder->filter.ties && builder->series->n_tensors == 0 &&
                         sets->has_raw && sets->reference &&
                         builder->options->use != PHEMA_USE_RAW && !builder->options->is_conversion;
    enum phema_status status = may_have_ties ? tied_tensors_find(builder, err) : PHEMA_OK;
    for (size_t s = 0; s < sets->n && !status; s++) {
        const struct phema_tensor_set *set = sets->items[s];
        if (is_meant(builder, file, set) && is_unmade(builder, set))
            status = leave_out_set(builder, file, set, err);
        else if (is_meant(builder, file, set))
            status = add_set(builder, file, set, err);
    }
    bool has_raw = false;
    for (size_t k = n; k < builder->series->n; k++)
        has_raw = has_raw || builder->series->snapshots[k].profile.shape == PHEMA_SHAPE_RAW;
    if (!status && builder->series->n > n && sets->trainer && sets->has_raw && !has_raw &&
        !builder->options->is_conversion)
        return add_compared(builder, file, err);
    if (status || builder->series->n > n)
        return status;
    if (!sets->trainer)
        return candidate_fail_width(file, builder->scheme.subtree.key, err);
    candidates_leave_out(&builder->candidates, file, "without a snapshot of this kind");
    return PHEMA_OK;
}

/* ---- Together ---- */

/* A subtree that is the file's one snapshot. */
static enum phema_status add_subtree(struct series_builder *builder, struct candidate *file,
                                     struct phema_error *err)
{
    const struct phema_tensor_set *set = builder->sets.items[0];
    if (!isnan(set->sigma_rel) && !candidate_allows_width(file, set->sigma_rel))
        return candidate_fail_width(file, set->name, err);
    if (!isnan(set->sigma_rel))
        candidate_set_width(file, set->sigma_rel);
    builder->filter.set = set;
    return snapshot_add(builder, file, NULL, err);
}

enum phema_status file_snapshots_add(struct series_builder *builder, struct candidate *file,
                                     struct phema_error *err)
{
    bool has_several = builder->scheme.trainer || builder->scheme.subtree.is_bundle;
    return (has_several ? add_sets : add_subtree)(builder, file, err);
}
