// SPDX-License-Identifier: Apache-2.0
/* kinds.c - what pictures of a series have in common: its kinds of snapshot, and units. */
#include <string.h>

#include "figure.h"

bool kinds_find(struct kinds *out, struct phema_arena *arena,
                const struct phema_plot_series *series)
{
    out->n = 0;
    out->names = phema_arena_array(arena, series->n + 1, sizeof(*out->names));
    out->of = phema_arena_array(arena, series->n + 1, sizeof(*out->of));
    if (!out->names || !out->of)
        return false;
    for (size_t k = 0; k < series->n; k++) {
        size_t i = 0;
        while (i < out->n && strcmp(out->names[i], series->kinds[k]) != 0)
            i++;
        if (i == out->n) {
            out->names[out->n] =
                phema_arena_copy(arena, series->kinds[k], strlen(series->kinds[k]));
            if (!out->names[out->n++])
                return false;
        }
        out->of[k] = i;
    }
    return true;
}

const char *unit_of_one(struct phema_picture *picture, const char *unit)
{
    static const char *const plural[] = {"steps", "images", "tokens"};
    for (size_t i = 0; i < ARRAY_LEN(plural); i++)
        if (strcmp(unit, plural[i]) == 0)
            return picture_text(picture, "%.*s", (int)strlen(unit) - 1, unit);
    return picture_text(picture, "%s", unit);
}

const char *unit_label(struct phema_picture *picture, const char *unit)
{
    return picture_text(picture, "training time [%s]", unit);
}

PHEMA_FALLIBLE plot_check_targets(const char *kind, size_t m, struct phema_error *err)
{
    if (m <= PHEMA_PLOT_MAX_TARGETS)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "plot %s: draws at most %d targets below each other, found %zu", kind,
                      PHEMA_PLOT_MAX_TARGETS, m);
}
