// SPDX-License-Identifier: Apache-2.0
/* ticks.c - round numbers along an axis, and their labels. */
#include "ticks.h"

#include <stdio.h>

/* Powers of ten by multiplication and division, which are exact up to 10^22. Results of pow differ
 * in the last bit between libms, and pictures must not differ. */
static double power_of_ten(int exponent)
{
    double power = 1;
    for (int i = 0; i < exponent || i < -exponent; i++)
        power *= 10;
    return exponent < 0 ? 1 / power : power;
}

/* Powers of ten beyond these are not representable, or have lost digits. */
#define LEAST 1e-300
#define MOST  1e300

static int decade_below(double value)
{
    value = fmin(fmax(value, LEAST), MOST);
    int exponent = (int)floor(log10(value));
    while (power_of_ten(exponent) > value)
        exponent--;
    while (power_of_ten(exponent + 1) <= value)
        exponent++;
    return exponent;
}

/* A step as an integer times or divided by a power of ten, so that multiples are the nearest
 * doubles. */
struct step {
    int mantissa, exponent;
};

static double multiple(struct step step, double count)
{
    double power = power_of_ten(step.exponent < 0 ? -step.exponent : step.exponent);
    double whole = count * step.mantissa;
    return step.exponent < 0 ? whole / power : whole * power;
}

/* The tolerance keeps a tick at an end in spite of rounding. */
static double first_count(double min, struct step step)
{
    return ceil(min / multiple(step, 1) - 1e-9);
}

static double last_count(double max, struct step step)
{
    return floor(max / multiple(step, 1) + 1e-9);
}

static struct step find_step(double min, double max, size_t most)
{
    static const int mantissas[] = {1, 2, 5};
    struct step step = {1, decade_below((max - min) / (double)most)};
    for (size_t i = 0;; i++) {
        step.mantissa = mantissas[i % ARRAY_LEN(mantissas)];
        if (last_count(max, step) - first_count(min, step) + 1 <= (double)most)
            return step;
        step.exponent += (i + 1) % ARRAY_LEN(mantissas) == 0;
    }
}

struct ticks ticks_linear(double min, double max, size_t most)
{
    struct step step = find_step(min, max, most);
    struct ticks ticks = {.step = multiple(step, 1)};
    double first = first_count(min, step);
    double last = last_count(max, step);
    while (first + (double)ticks.n <= last && ticks.n < TICKS_MAX) {
        double count = first + (double)ticks.n;
        ticks.values[ticks.n++] = count == 0 ? 0 : multiple(step, count); /* no -0 */
    }
    return ticks;
}

/* A wider range may need a wider step, which widens the range again: two or three times. */
void ticks_widen(double *min, double *max, size_t most)
{
    struct step step = find_step(*min, *max, most);
    for (int i = 0; i < 8; i++) {
        *min = multiple(step, floor(*min / multiple(step, 1) + 1e-9));
        *max = multiple(step, ceil(*max / multiple(step, 1) - 1e-9));
        struct step next = find_step(*min, *max, most);
        if (next.mantissa == step.mantissa && next.exponent == step.exponent)
            return;
        step = next;
    }
}

static void add(struct ticks *ticks, double value, double min, double max)
{
    if (value >= min * (1 - 1e-9) && value <= max * (1 + 1e-9) && ticks->n < TICKS_MAX)
        ticks->values[ticks->n++] = value;
}

struct ticks ticks_log(double min, double max, size_t most)
{
    struct ticks ticks = {0};
    int first = decade_below(min);
    int last = decade_below(max);
    int every = 1;
    while ((last - first) / every >= (int)most)
        every++;
    for (int e = first; e <= last; e++) {
        if (every > 1 && (e - first) % every != 0)
            continue;
        struct step decade = {1, e};
        add(&ticks, power_of_ten(e), min, max);
        if (last - first < 2 && max / min < 100) {
            add(&ticks, multiple(decade, 2), min, max);
            add(&ticks, multiple(decade, 5), min, max);
        }
    }
    return ticks;
}

void ticks_widen_log(double *min, double *max)
{
    int last = decade_below(*max);
    *min = power_of_ten(decade_below(*min));
    *max = power_of_ten(power_of_ten(last) < *max ? last + 1 : last);
}

/* ---- Labels ---- */

void ticks_label(char label[TICKS_LABEL_SIZE], const struct ticks *ticks, size_t i,
                 bool has_suffixes)
{
    static const struct {
        double from, factor;
        const char *suffix;
    } known[] = {{1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}, {0, 1, ""}};
    double value = ticks->values[i];
    double most = fmax(fabs(ticks->values[0]), fabs(ticks->values[ticks->n - 1]));
    size_t k = has_suffixes ? 0 : ARRAY_LEN(known) - 1;
    while (most < known[k].from)
        k++;
    double step = ticks->step / known[k].factor;
    double shown = most / known[k].factor;
    bool is_plain = ticks->step > 0 ? shown < 1e7 && (shown >= 1e-3 || step >= 1e-5)
                                    : ticks->values[0] >= 1e-4 && most < 1e5; /* all, or none */
    if (value == 0)
        (void)snprintf(label, TICKS_LABEL_SIZE, "0");
    else if (!is_plain) {
        int decade = decade_below(fabs(value));
        (void)snprintf(label, TICKS_LABEL_SIZE, "%.3ge%d", value / power_of_ten(decade), decade);
    } else if (ticks->step > 0)
        (void)snprintf(label, TICKS_LABEL_SIZE, "%.*f%s", (int)fmax(0, -decade_below(step)),
                       value / known[k].factor, known[k].suffix);
    else
        (void)snprintf(label, TICKS_LABEL_SIZE, "%g", value);
}
