/* ticks.h - round numbers along an axis, and how they are written. */
#ifndef PLOT_TICKS_H
#define PLOT_TICKS_H

#include "phema/span.h"

#define TICKS_MOST 24

struct ticks {
    double values[TICKS_MOST]; /* ascending */
    size_t n;
    double step; /* of linear ones: 1, 2 or 5 times a power of ten; 0: logarithmic */
};

/* Multiples of the least round step that gives at most `most` of them within [min, max];
 * 2 <= most < TICKS_MOST, min < max, both finite. */
struct ticks ticks_linear(double min, double max, size_t most);
/* Powers of ten, or every second, third ... of them; of less than two decades, the 2s and 5s as
 * well. 0 < min < max. */
struct ticks ticks_log(double min, double max, size_t most);

/* Moves the ends out to multiples of the step that ticks_linear would take. */
void ticks_widen(double *min, double *max, size_t most);
/* Likewise, to powers of ten. */
void ticks_widen_log(double *min, double *max);

#define TICKS_LABEL_SIZE 32

/* "0.05", "-2", "20k" where suffixes are wanted and the largest needs one; "1e-5", "0.01". */
void ticks_label(char label[TICKS_LABEL_SIZE], const struct ticks *ticks, size_t i,
                 bool has_suffixes);

#endif
