/* ticks.h - round numbers along an axis, and their labels. */
#ifndef PLOT_TICKS_H
#define PLOT_TICKS_H

#include "phema/span.h"

#define TICKS_MAX 24

struct ticks {
    double values[TICKS_MAX]; /* ascending */
    size_t n;
    double step; /* of linear ones: 1, 2 or 5 times a power of ten; 0: logarithmic */
};

/* Multiples of the smallest round step that gives at most `most` ticks within [min, max];
 * 2 <= most < TICKS_MAX, min < max, both finite. */
struct ticks ticks_linear(double min, double max, size_t most);
/* Powers of ten, or every second, third ... one; for less than two decades also 2 and 5 times
 * powers of ten. 0 < min < max. */
struct ticks ticks_log(double min, double max, size_t most);

/* Moves the ends outwards to multiples of the step that ticks_linear would use. */
void ticks_widen(double *min, double *max, size_t most);
/* Moves the ends outwards to powers of ten. */
void ticks_widen_log(double *min, double *max);

#define TICKS_LABEL_SIZE 32

/* "0.05", "-2", "1e-5"; "20k" with has_suffixes when the largest tick needs a suffix. All labels of
 * an axis are of one kind. */
void ticks_label(char label[TICKS_LABEL_SIZE], const struct ticks *ticks, size_t i,
                 bool has_suffixes);

#endif
