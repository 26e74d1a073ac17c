// SPDX-License-Identifier: Apache-2.0
/* series_assumption.c - what users of a trainer set instead of its default, which was assumed. */
#include "series_assumption.h"

#include <math.h>

#include "phema/arena.h"

/* The given labels of the newest snapshots, with another profile where it was assumed. */
static enum phema_status set_labels(struct search *search, struct phema_spec *spec,
                                    struct phema_error *err)
{
    struct labels *tried = &search->tried;
    search_reset(search, search_newest_begin(search), search->n_groups);
    for (size_t k = 0; k < tried->n; k++) {
        const struct phema_snapshot *snapshot = &search->series->snapshots[tried->rows[k]];
        if (!snapshot->is_assumed)
            continue;
        enum phema_status status =
            phema_spec_profile(&tried->profiles[k], spec, snapshot->profile.t, err);
        if (status)
            return status;
        tried->profiles[k].label = snapshot->label;
    }
    return PHEMA_OK;
}

/* The best setting so far. Several near ones may fit: the likeliest is meant. */
struct best {
    const char *text; /* NULL: none fits */
    double max_z, likelihood;
};

static enum phema_status try_spec(struct best *best, struct search *search,
                                  struct phema_specs *specs, const char *text,
                                  struct phema_error *err)
{
    struct phema_spec *spec = NULL;
    struct phema_error impossible = {0};
    enum phema_status status = phema_specs_find(&spec, specs, text, &impossible);
    if (!status)
        status = set_labels(search, spec, &impossible);
    if (status == PHEMA_ERR_RESOURCE)
        return phema_fail_memory(err);
    if (status) /* not at these times */
        return PHEMA_OK;
    double max_z = 0, likelihood = 0;
    status = search_rate(&max_z, &likelihood, search, err);
    if (status || !isfinite(max_z))
        return status;
    if (!best->text || likelihood > best->likelihood)
        *best = (struct best){text, max_z, likelihood};
    return PHEMA_OK;
}

enum phema_status search_assumption(struct search *search, struct phema_error *err)
{
    const char *const *usual = search->series->usual;
    struct phema_arena arena = {0};
    struct phema_specs specs = {.arena = &arena};
    struct best best = {.text = NULL};
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; usual && usual[i] && !status; i++)
        status = try_spec(&best, search, &specs, usual[i], err);
    if (!status && best.text) {
        search->best = best.max_z;
        phema_strbuf_printf(search_explain(search, SIZE_MAX), "of the usual settings %s fits best",
                            best.text);
        search_set_remedy(search, PHEMA_SET_INPUT_PROFILE, "%s", best.text);
    }
    phema_arena_clear(&arena);
    return status;
}
