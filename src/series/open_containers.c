// SPDX-License-Identifier: Apache-2.0
/* open_containers.c - the snapshots of a container, as far as --use and a manifest ask for them. */
#include <math.h>
#include <string.h>

#include "series_builder.h"
#include "tied_tensors.h"

/* Tensors of containers are named from their roots. */
PHEMA_FALLIBLE containers_use(struct series_builder *builder, struct phema_error *err)
{
    builder->subtree = (struct subtree){.key = ""};
    builder->filter.key = builder->subtree.key;
    builder->filter.container = &builder->container;
    builder->series->key = builder_keep_text(builder, "");
    return builder->series->key ? PHEMA_OK : phema_fail_memory(err);
}

static bool is_wanted(const struct series_builder *builder, const struct tensor_set *set)
{
    int use = builder->options->use;
    if (builder->set_key)
        return strcmp(set->name, builder->set_key) == 0;
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
    if (builder->options->is_conversion) /* one set as it is, without what it lacks */
        builder->container.has_raw = set->is_raw;
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
    if (!builder->options->is_conversion && !candidate.spec && isnan(candidate.sigma_rel) &&
        isnan(candidate.gamma))
        status = set_profile_find(builder, &candidate, set, err);
    if (status)
        return phema_fail_in(err, status, "%s", candidate.label);
    builder->filter.set = set;
    return snapshot_add(builder, &candidate, set->name, err);
}

/* Raw parameters beside averages of them, in the first file. */
static bool may_have_ties(const struct series_builder *builder)
{
    const struct container *container = &builder->container;
    return !builder->filter.ties && builder->series->n_tensors == 0 && container->has_raw &&
           container->reference && builder->options->use != PHEMA_USE_RAW &&
           !builder->options->is_conversion;
}

PHEMA_FALLIBLE container_add(struct series_builder *builder, struct candidate *file,
                             struct phema_error *err)
{
    enum phema_status status = container_list(&builder->container, builder->kind, &builder->scratch,
                                              file, builder->checkpoint, err);
    if (status)
        return phema_fail_in(err, status, "%s", file->path);
    if (may_have_ties(builder))
        status = tied_tensors_find(builder, err);
    if (status)
        return status;
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
