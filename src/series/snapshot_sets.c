// SPDX-License-Identifier: Apache-2.0
/* snapshot_sets.c - the sets of a file with several, each of which may become a snapshot. */
#include "series_builder.h"

#include <math.h>
#include <string.h>

#include "phema/setting.h"

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

enum phema_status snapshot_add_sets(struct series_builder *builder, struct candidate *file,
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
