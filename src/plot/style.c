// SPDX-License-Identifier: Apache-2.0
/* style.c - colours that all kinds of eyes tell apart, on white. */
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
    /* cividis, but for its end, which is too light for lines on white */
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
