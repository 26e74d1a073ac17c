// SPDX-License-Identifier: Apache-2.0
/* canvas.c - shared by all canvases: shapes of markers and widths of texts. */
#include "canvas.h"

#include <stdio.h>
#include <string.h>

size_t marker_corners(struct point corners[MARKER_MAX_CORNERS], enum marker marker, struct point at,
                      double radius)
{
    static const double shapes[N_MARKERS][MARKER_MAX_CORNERS][2] = {
        [MARKER_SQUARE] = {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
        [MARKER_DIAMOND] = {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
        [MARKER_TRIANGLE] = {{0, -1.3}, {1.15, 0.8}, {-1.15, 0.8}},
    };
    size_t n = marker == MARKER_CIRCLE ? 0 : marker == MARKER_TRIANGLE ? 3 : 4;
    for (size_t i = 0; i < n; i++)
        corners[i] = (struct point){at.x + radius * shapes[marker][i][0],
                                    at.y + radius * shapes[marker][i][1]};
    return n;
}

/* Widths in thousandths of an em of the characters from ' ' to '~' in DejaVu Sans 2.37. */
static const uint16_t widths[] = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838,
};
#define WIDTH_OF_OTHERS 700
#define BOLD            1.13

/* Continuation bytes of UTF-8 have no width. */
static double width_of(char c)
{
    unsigned char byte = (unsigned char)c;
    if (byte >= ' ' && byte <= '~')
        return widths[byte - ' '];
    return (byte & 0xC0) == 0x80 ? 0 : WIDTH_OF_OTHERS;
}

double text_width(const char *text, double size, bool is_bold)
{
    double sum = 0;
    for (; *text; text++)
        sum += width_of(*text);
    return sum / 1000 * size * (is_bold ? BOLD : 1);
}

const char *text_fit(char fitted[FITTED_SIZE], const char *text, double size, bool is_bold,
                     double width)
{
    size_t length = strlen(text);
    if (length < FITTED_SIZE && text_width(text, size, is_bold) <= width) {
        memcpy(fitted, text, length + 1);
        return fitted;
    }
    if (length > FITTED_SIZE - 4)
        length = FITTED_SIZE - 4;
    for (;; length--) {
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--;
        (void)snprintf(fitted, FITTED_SIZE, "%.*s...", (int)length, text);
        if (length == 0 || text_width(fitted, size, is_bold) <= width)
            return fitted;
    }
}
