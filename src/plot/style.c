// SPDX-License-Identifier: Apache-2.0
/* style.c - shared by all pictures: colours on white that remain distinct in colour blindness, the
 * kinds of snapshot in a series, and units. */
#include <string.h>

#include "figure.h"

static uint32_t between(uint32_t a, uint32_t b, double share)
{
    uint32_t color = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        double from = (double)(a >> shift & 0xFF);
        double to = (double)(b >> shift & 0xFF);
        color |= (uint32_t)(from + (to - from) * share + 0.5) << shift;
    }
    return color;
}

uint32_t palette_color(size_t i, size_t n)
{
    static const uint32_t hues[] = {COLOR_BLUE, COLOR_GREEN, COLOR_PURPLE, COLOR_SKY, COLOR_ORANGE};
    /* cividis without its light end, which is too light for lines on white */
    static const uint32_t ramp[] = {0x00224E, 0x35456C, 0x666970, 0x948E77, 0xC8B866, 0xE3CE53};
    if (n <= ARRAY_LEN(hues))
        return hues[i % ARRAY_LEN(hues)];
    size_t last = ARRAY_LEN(ramp) - 1;
    double at = (double)i / (double)(n - 1) * (double)last;
    size_t below = (size_t)at;
    if (below >= last)
        return ramp[last];
    return between(ramp[below], ramp[below + 1], at - (double)below);
}

/* ---- Kinds of snapshot, and units ---- */

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
