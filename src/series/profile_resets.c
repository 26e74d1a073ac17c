// SPDX-License-Identifier: Apache-2.0
/* profile_resets.c - --reset-at: averages that were restarted while the training ran. */
#include "phema/setting.h"
#include "series_builder.h"

static enum phema_status read_resets(struct phema_reset **out, const struct series_builder *builder,
                                     struct phema_arena *arena, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    const struct phema_series *series = builder->series;
    struct phema_reset *resets = NULL;
    enum phema_status status =
        phema_resets_parse(&resets, arena, options->resets, options->n_resets, err);
    if (status)
        return status;
    const struct phema_reset *last = &resets[options->n_resets - 1];
    double newest = series->snapshots[series->n - 1].named_time;
    struct phema_name_buffer at, end;
    if (last->at >= newest)
        return phema_suggest(
            err,
            phema_fail(err, PHEMA_ERR_INPUTS, "no snapshot is later than %s; the newest is at %s",
                       phema_number_format(&at, last->at), phema_number_format(&end, newest)),
            PHEMA_SET_RESET_AT, "");
    for (size_t i = 0; i < options->n_resets; i++)
        resets[i].at = phema_series_clock(series, resets[i].at);
    if (!(resets[0].at > 0))
        return phema_fail(err, PHEMA_ERR_INPUTS, "the clock of the averages begins after %s",
                          options->resets[0]);
    *out = resets;
    return PHEMA_OK;
}

PHEMA_FALLIBLE profile_resets_apply(struct series_builder *builder, struct phema_error *err)
{
    const struct phema_series_options *options = builder->options;
    struct phema_series *series = builder->series;
    struct phema_reset *resets = NULL;
    if (!options->n_resets)
        return PHEMA_OK;
    enum phema_status status = read_resets(&resets, builder, &builder->scratch, err);
    for (size_t k = 0; k < series->n && !status; k++) {
        struct phema_snapshot *snapshot = &series->snapshots[k];
        if (snapshot->kind)
            status = phema_profile_reset(&snapshot->profile, resets, options->n_resets, err);
        if (status)
            status = phema_fail_in(err, status, "%s: %s: %s", options->snapshots, snapshot->label,
                                   snapshot->spec);
    }
    return status ? phema_fail_in_setting(err, status, PHEMA_SET_RESET_AT) : PHEMA_OK;
}
