// SPDX-License-Identifier: Apache-2.0
/* series.c - the snapshots of a training, opened to be looked at. */
#include "series.h"

#include <stdlib.h>

enum posthoc_ema_status posthoc_ema_series_open(struct posthoc_ema_series **out,
                                                const char *snapshots,
                                                const struct posthoc_ema_series_options *options,
                                                struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct phema_error err = {""};
    struct posthoc_ema_series *series = calloc(1, sizeof(*series));
    enum phema_status status = series ? PHEMA_OK : phema_fail_memory(&err);
    if (!status)
        status = api_options_keep(&series->wishes, snapshots, options, &err);
    if (!status)
        status = phema_series_open(&series->series, &series->wishes.options, &err);
    for (size_t i = 0; !status && i < series->series->n_tensors; i++)
        series->n_averaged += series->series->tensors[i].rule == PHEMA_RULE_AVERAGE;
    if (status)
        posthoc_ema_series_close(series);
    else
        *out = series;
    return call_end(&call, status, &err, error);
}

void posthoc_ema_series_close(struct posthoc_ema_series *series)
{
    if (!series)
        return;
    phema_series_close(series->series);
    api_options_clear(&series->wishes);
    free(series);
}

enum posthoc_ema_status posthoc_ema_series_info(const struct posthoc_ema_series *series,
                                                struct posthoc_ema_series_info *info,
                                                struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct phema_error err = {""};
    const struct phema_series *s = series->series;
    struct posthoc_ema_series_info known = {
        .layout = s->layout,
        .unit = s->unit,
        .n_snapshots = s->n,
        .n_tensors = s->n_tensors,
        .n_averaged = series->n_averaged,
        .n_notes = s->n_notes,
        .notes = (const char *const *)s->notes,
    };
    enum phema_status status =
        call_give(info, &known, sizeof(known), "posthoc_ema_series_info", &err);
    return call_end(&call, status, &err, error);
}

PHEMA_FALLIBLE series_give_snapshot(struct posthoc_ema_snapshot *out,
                                    const struct phema_series *series, size_t k,
                                    struct phema_error *err)
{
    if (k >= series->n)
        return phema_fail(err, PHEMA_ERR_USAGE, "snapshot %zu: there are %zu, from 0", k,
                          series->n);
    const struct phema_snapshot *s = &series->snapshots[k];
    struct posthoc_ema_snapshot known = {
        .file = s->label,
        .named_time = s->named_time,
        .time = s->time,
        .sigma_rel = s->sigma_rel,
        .gamma = s->gamma,
        .profile = s->spec,
        .bytes = phema_snapshot_bytes(s),
    };
    return call_give(out, &known, sizeof(known), "posthoc_ema_snapshot", err);
}

enum posthoc_ema_status posthoc_ema_series_snapshot(const struct posthoc_ema_series *series,
                                                    size_t k, struct posthoc_ema_snapshot *snapshot,
                                                    struct posthoc_ema_error *error)
{
    struct call call = call_begin();
    struct phema_error err = {""};
    enum phema_status status = series_give_snapshot(snapshot, series->series, k, &err);
    return call_end(&call, status, &err, error);
}
