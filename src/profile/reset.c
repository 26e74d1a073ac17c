// SPDX-License-Identifier: Apache-2.0
/* reset.c - averages that became copies of the parameters when a training was resumed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/number.h"
#include "phema/profile.h"
#include "phema/setting.h"
#include "phema/sort.h"

static enum phema_status parse(struct phema_reset *out, struct phema_arena *arena, const char *text,
                               struct phema_error *err)
{
    const char *comma = strchr(text, ',');
    size_t size = comma ? (size_t)(comma - text) : strlen(text);
    const char *time = phema_arena_copy(arena, text, size);
    if (!time)
        return phema_fail_memory(err);
    if (comma && strcmp(comma, ",counter") != 0)
        return phema_suggest(
            err, phema_fail(err, PHEMA_ERR_USAGE, "'%s': expected T or T,counter", text),
            PHEMA_SET_RESET_AT, time);
    enum phema_status status = phema_number_parse(&out->at, time, err);
    if (status)
        return status;
    if (!(out->at > 0 && out->at < 0x1p53))
        return phema_fail(err, PHEMA_ERR_USAGE, "'%s': expected a time above 0 and below 2^53",
                          text);
    out->restarts_count = comma != NULL;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_resets_parse(struct phema_reset **out, struct phema_arena *arena,
                                  const char *const *texts, size_t n, struct phema_error *err)
{
    struct phema_reset *resets = phema_arena_array(arena, n + 1, sizeof(*resets));
    if (!resets)
        return phema_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        enum phema_status status = parse(&resets[i], arena, texts[i], err);
        if (status)
            return status;
    }
    qsort(resets, n, sizeof(*resets), phema_compare_doubles); /* by time, which is first */
    struct phema_name_buffer twice;
    for (size_t i = 1; i < n; i++)
        if (resets[i].at == resets[i - 1].at)
            return phema_fail(err, PHEMA_ERR_USAGE, "time %s is given twice",
                              phema_number_format(&twice, resets[i].at));
    *out = resets;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_profile_reset(struct phema_profile *profile, const struct phema_reset *resets,
                                   size_t n, struct phema_error *err)
{
    double shift = fmin(profile->origin, 0); /* of a clock that is ahead */
    for (size_t i = 0; i < n && resets[i].at < profile->t; i++) {
        if (profile->shape == PHEMA_SHAPE_RAW)
            return PHEMA_OK;
        if (phema_shape_has_begin(profile->shape) && profile->t - profile->length >= resets[i].at)
            continue;
        struct phema_name_buffer at;
        if (phema_shape_has_begin(profile->shape))
            return phema_fail(err, PHEMA_ERR_INPUTS,
                              "reaches back beyond the reset at %s; an average of this shape is "
                              "no recurrence, and cannot have gone on from there",
                              phema_number_format(&at, resets[i].at));
        profile->reset = resets[i].at;
        if (resets[i].restarts_count)
            profile->origin = resets[i].at + shift;
    }
    return PHEMA_OK;
}
