// SPDX-License-Identifier: Apache-2.0
/* inspect_design.c - a series beside the design that its training follows: what was missed so far, and when
 * the next snapshots are due. */
#include "phema/inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/design_question.h"
#include "phema/setting.h"

/* Labels of trainers: three decimals, or a fraction of five digits. */
#define SAME_WIDTH 1e-3

/* Time as designs count it. EDM2 names images by thousands. */
static double find_time(const struct phema_series *series, size_t k)
{
    const struct phema_snapshot *snapshot = &series->snapshots[k];
    return strcmp(series->unit, "images") == 0 ? snapshot->time : snapshot->named_time;
}

/* torchtitan keeps power functions by the fraction f of a half-life, with the exponent ln 2/f -
 * 1. */
#define TITAN_FRACTION 0.05 /* its default */

static double find_width(const struct phema_snapshot *snapshot)
{
    const char *spec = snapshot->spec;
    if (!spec || strncmp(spec, "titan", 5) != 0 || strstr(spec, "decay="))
        return snapshot->sigma_rel;
    const char *given = strstr(spec, "fraction=");
    double fraction = given ? strtod(given + strlen("fraction="), NULL) : TITAN_FRACTION;
    return phema_sigma_rel_from_gamma(M_LN2 / fraction - 1);
}

static bool is_of_kind(const struct phema_snapshot *snapshot, const struct design_read *design,
                       size_t kind)
{
    if (kind < design->n)
        return fabs(find_width(snapshot) / design->sigma_rels[kind] - 1) < SAME_WIDTH;
    return snapshot->kind &&
           (design->ema && kind == design->n ? snapshot->profile.shape == PHEMA_SHAPE_EMA
                                             : snapshot->profile.shape == PHEMA_SHAPE_RAW);
}

/* At the time, or where steps may pass it, before the next one. */
static bool is_stored(const struct phema_series *series, const struct design_read *design, size_t i,
                      size_t kind)
{
    double time = (double)design->times[i];
    double next = i + 1 < design->n_times ? (double)design->times[i + 1] : HUGE_VAL;
    for (size_t k = 0; k < series->n; k++) {
        double found = find_time(series, k);
        if ((design->counts_steps ? found == time : found >= time && found < next) &&
            is_of_kind(&series->snapshots[k], design, kind))
            return true;
    }
    return false;
}

PHEMA_FALLIBLE inspect_design_find(struct inspect_design *out, const struct phema_series *series,
                                   const char *path, struct phema_error *err)
{
    struct design_read design;
    *out = (struct inspect_design){.next = PHEMA_UNKNOWN};
    enum phema_status status = design_read_file(&design, &out->arena, path, err);
    size_t n_kinds = design.n + (design.ema != NULL) + design.has_raw, n_found = 0;
    double newest = series->n ? find_time(series, series->n - 1) : 0;
    if (!status) {
        out->missed =
            phema_arena_array(&out->arena, design.n_times * n_kinds + 1, sizeof(*out->missed));
        status = out->missed ? PHEMA_OK : phema_fail_memory(err);
    }
    if (status) {
        inspect_design_clear(out);
        return phema_fail_in_setting(err, status, PHEMA_SET_DESIGN);
    }
    out->n_planned = design.n_times * n_kinds;
    for (size_t i = 0; i < design.n_times; i++) {
        bool is_due = (double)design.times[i] <= newest;
        if (!is_due && isnan(out->next))
            out->next = (double)design.times[i];
        for (size_t kind = 0; is_due && kind < n_kinds; kind++) {
            if (is_stored(series, &design, i, kind))
                n_found++;
            else
                out->missed[out->n_missed++] = (struct inspect_missed){
                    (double)design.times[i],
                    kind < design.n ? design.sigma_rels[kind] : PHEMA_UNKNOWN};
        }
    }
    out->n_stored = n_found;
    out->n_others = series->n - n_found;
    return PHEMA_OK;
}

void inspect_design_clear(struct inspect_design *design)
{
    phema_arena_clear(&design->arena);
}
