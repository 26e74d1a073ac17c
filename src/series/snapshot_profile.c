// SPDX-License-Identifier: Apache-2.0
/* snapshot_profile.c - the average that a snapshot is: a power function by its width, or another
 * shape by the SPEC of its manifest, its metadata or --input-profile. */
#include <math.h>
#include <string.h>

#include "open_snapshots.h"

PHEMA_FALLIBLE profiles_read(struct opening *opening, struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    size_t n = options->n_input_profiles;
    if (n && options->n_input_sigmas)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--input-profile: says what --input-sigma says; give one of them");
    opening->input_profiles =
        phema_arena_array(&opening->scratch, n + 1, sizeof(struct phema_spec *));
    if (!opening->input_profiles)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        struct phema_spec **spec = &opening->input_profiles[i];
        enum phema_status status =
            phema_specs_find(spec, &opening->scan.specs, options->input_profiles[i], err);
        if (!status && !(*spec)->is_average)
            status = phema_fail(err, PHEMA_ERR_USAGE,
                                "'%s': is made of several snapshots; a snapshot is one average",
                                (*spec)->shown);
        if (status) /* no target is meant: what does not exist is what the files are said to be */
            return phema_fail_in(err, status == PHEMA_ERR_TARGET ? PHEMA_ERR_INPUTS : status,
                                 "--input-profile");
        opening->scan.asks_for_raw =
            opening->scan.asks_for_raw || strcmp((*spec)->kind, "raw") == 0;
    }
    return PHEMA_OK;
}

/* A power function is said by numbers, wherever it was read. */
static enum phema_status take(struct candidate *candidate, struct phema_spec *spec,
                              struct phema_error *err)
{
    if (strcmp(spec->kind, "power") != 0) {
        candidate->spec = spec;
        return PHEMA_OK;
    }
    if (spec->is_by_gamma)
        candidate->gamma = spec->gamma;
    else
        candidate->sigma_rel = spec->sigma_rel;
    if (!spec->update_every)
        return PHEMA_OK;
    if (candidate->update_every && candidate->update_every != spec->update_every)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "says that it was updated every %llu steps, --input-profile %llu",
                          (unsigned long long)candidate->update_every,
                          (unsigned long long)spec->update_every);
    candidate->update_every = spec->update_every;
    return PHEMA_OK;
}

PHEMA_FALLIBLE profile_find(const struct opening *opening, struct candidate *candidate,
                            struct phema_error *err)
{
    const struct phema_series_options *options = opening->options;
    size_t n = options->n_input_profiles;
    if (!isnan(candidate->sigma_rel) || !isnan(candidate->gamma) || candidate->spec || n == 0)
        return PHEMA_OK;
    uint64_t index = n == 1 ? 0 : candidate->index;
    if (index == UINT64_MAX)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "its name has no index to choose among the %zu of --input-profile", n);
    if (index >= n)
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "has index %llu, but --input-profile is given %zu times, from 0",
                          (unsigned long long)index, n);
    return take(candidate, opening->input_profiles[index], err);
}

bool profile_is_said(const struct opening *opening)
{
    const struct phema_series_options *options = opening->options;
    for (size_t i = 0; i < options->n_input_profiles; i++)
        if (strcmp(opening->input_profiles[i]->kind, "power") == 0 &&
            !opening->input_profiles[i]->update_every && !options->update_every)
            return false;
    return options->n_input_profiles || (options->n_input_sigmas && options->update_every);
}

/* Of EMAs that are said step by step it would make others. */
static enum phema_status check_update_every(const struct opening *opening,
                                            const struct candidate *candidate,
                                            struct phema_error *err)
{
    const char *kind = candidate->spec->kind;
    bool is_stepwise =
        strcmp(kind, "ema") == 0 || strcmp(kind, "edm-ema") == 0 || strcmp(kind, "diffusers") == 0;
    if (!is_stepwise || !(opening->options->update_every || candidate->update_every))
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_INPUTS,
                      "is %s, which is updated at every step; update_every is for power functions, "
                      "and a table:FILE says any other rule",
                      candidate->spec->shown);
}

static enum phema_status set_shape(struct opening *opening, struct phema_snapshot *snapshot,
                                   const struct candidate *candidate, struct phema_error *err)
{
    enum phema_status status = check_update_every(opening, candidate, err);
    if (!status)
        status = phema_spec_profile(&snapshot->profile, candidate->spec, snapshot->time, err);
    if (status)
        return phema_fail_in(err, status, "%s: %s", opening->options->snapshots, candidate->label);
    snapshot->kind = candidate->spec->kind;
    snapshot->spec = candidate->spec->shown;
    return PHEMA_OK;
}

PHEMA_FALLIBLE profile_set(struct opening *opening, struct phema_snapshot *snapshot,
                           const struct candidate *candidate, struct phema_error *err)
{
    snapshot->sigma_rel = snapshot->gamma = PHEMA_UNKNOWN;
    enum phema_status status = PHEMA_OK;
    if (candidate->spec) {
        status = set_shape(opening, snapshot, candidate, err);
    } else {
        snapshot->sigma_rel = candidate->sigma_rel;
        snapshot->gamma = candidate->gamma;
        snapshot->profile = (struct phema_profile){
            .gamma = candidate->gamma,
            .t = snapshot->time,
            .update_every = candidate->update_every ? candidate->update_every : 1,
        };
    }
    snapshot->profile.label = snapshot->label;
    if (status || isnan(snapshot->gamma))
        return status;
    struct phema_strbuf text = {0};
    phema_spec_put_power(&text, candidate->is_by_gamma ? PHEMA_UNKNOWN : snapshot->sigma_rel,
                         snapshot->gamma, snapshot->profile.update_every);
    status = phema_strbuf_check(&text, err);
    snapshot->kind = "power";
    snapshot->spec =
        status ? NULL : phema_arena_copy(&opening->series->memory, text.data, text.size);
    phema_strbuf_clear(&text);
    return status || snapshot->spec ? status : phema_fail_memory(err);
}
