// SPDX-License-Identifier: Apache-2.0
/* times.c - the times at which snapshots are stored: quantiles of a density, or multiples of an
 * interval. */
#include "search.h"

#include <math.h>
#include <stdlib.h>

#include "phema/sort.h"

/* The density is tabulated; quantiles between two entries are linear. */
#define N_ENTRIES 120

/* The density 1/t is cut off here, relative to the training. */
#define EARLIEST 0.01

uint64_t times_within(const struct phema_design_question *question, uint64_t bytes)
{
    uint64_t n = question->disk_bytes / bytes;
    return n > question->n_useless ? n - question->n_useless : 0;
}

/* Averages at any time from a first one on need a snapshot by then, and no wanted end is one. */
static bool wants_early_one(const struct phema_design_question *question)
{
    size_t e = 0;
    while (e < question->n_ends && question->ends[e] <= question->begun)
        e++;
    return question->after > 0 && e < question->n_ends && question->ends[e] > question->after &&
           (question->n_kept == 0 || question->kept[0].t > question->after);
}

size_t times_count_needed(const struct phema_design_question *question)
{
    size_t n = wants_early_one(question);
    for (size_t e = 0; e < question->n_ends; e++)
        n += question->ends[e] > question->begun;
    return n;
}

/* Share of the times up to x, relative to the training; not normalised. */
static double share_until(double x, const struct spread *spread,
                          const struct phema_design_question *question)
{
    double share = x, core = spread->core;
    if (spread->early > 0)
        share += spread->early * log1p(x / EARLIEST) / log1p(1 / EARLIEST);
    for (size_t e = 0; spread->late > 0 && e < question->n_ends; e++) {
        double end = question->ends[e] / question->until, left = end - fmin(x, end);
        share += spread->late / (double)question->n_ends * log((core + end) / (core + left)) /
                 log1p(end / core);
    }
    return share;
}

static bool is_wanted(const struct phema_design_question *question, double t)
{
    for (size_t e = 0; e < question->n_ends; e++)
        if (question->ends[e] == t)
            return true;
    return false;
}

/* Puts each end in the place of the nearest time that is not an end itself. */
static void snap(double *times, size_t n, const struct phema_design_question *question)
{
    bool is_end[PHEMA_DESIGN_MAX_SNAPSHOTS];
    for (size_t i = 0; i < n; i++)
        is_end[i] = is_wanted(question, times[i]);
    for (size_t e = question->n_ends; e-- > 0;) {
        double end = question->ends[e];
        size_t nearest = n;
        for (size_t i = 0; i < n; i++)
            if (times[i] == end ||
                (!is_end[i] && (nearest == n || fabs(times[i] - end) < fabs(times[nearest] - end))))
                nearest = i;
        if (nearest < n && end > question->begun) {
            times[nearest] = end;
            is_end[nearest] = true;
        }
    }
}

/* Ascending, distinct, behind the begin: the latest times move towards the begin first. */
static void separate(double *times, size_t n, double begun, double until)
{
    for (size_t i = n; i-- > 0;)
        times[i] = fmin(times[i], i + 1 < n ? times[i + 1] - 1 : until);
    for (size_t i = 0; i < n; i++)
        times[i] = fmax(times[i], i ? times[i - 1] + 1 : floor(begun) + 1);
}

double times_spread_work(const struct phema_design_question *question)
{
    return (double)(N_ENTRIES * question->n_ends);
}

void times_spread(double *times, size_t n, const struct spread *spread,
                  const struct phema_design_question *question)
{
    double shares[N_ENTRIES + 1], begun = question->begun / question->until;
    for (size_t i = 0; i <= N_ENTRIES; i++) {
        /* entries are dense at the end as well: the rise is steep there */
        double x = (double)i / N_ENTRIES, at = x * (2 - x);
        shares[i] = share_until(begun + (1 - begun) * at, spread, question);
    }
    size_t entry = 0;
    for (size_t i = 0; i < n; i++) {
        double wanted = shares[0] + (shares[N_ENTRIES] - shares[0]) * (double)(i + 1) / (double)n;
        while (entry + 1 < N_ENTRIES && shares[entry + 1] < wanted)
            entry++;
        double part = (wanted - shares[entry]) / (shares[entry + 1] - shares[entry]);
        double x = ((double)entry + fmin(part, 1)) / N_ENTRIES, at = x * (2 - x);
        times[i] = round((begun + (1 - begun) * at) * question->until);
    }
    times[n - 1] = question->until;
    snap(times, n, question);
    qsort(times, n, sizeof(*times), phema_compare_doubles);
    if (wants_early_one(question)) /* n is large enough, and the first one is no end */
        times[0] = fmin(times[0], floor(question->after));
    separate(times, n, question->begun, question->until);
}

size_t times_even(double *times, size_t n, const struct phema_design_question *question)
{
    for (size_t count = n; count > 0; count--) {
        double every = question->until / (double)count;
        bool fits = every == floor(every) && every >= 1;
        if (question->grain > 0)
            fits = fits && fmod(every, question->grain) == 0;
        if (wants_early_one(question))
            fits = fits && every <= question->after;
        for (size_t e = 0; fits && e < question->n_ends; e++)
            fits = fmod(question->ends[e], every) == 0;
        if (!fits)
            continue;
        size_t n_left = 0;
        for (size_t i = 0; i < count; i++)
            if (every * (double)(i + 1) > question->begun) {
                if (times)
                    times[n_left] = every * (double)(i + 1);
                n_left++;
            }
        return n_left;
    }
    return 0;
}

void times_exchange(double *times, size_t n, const struct phema_design_question *question,
                    times_rate *rate, void *context)
{
    double best = rate(context, times, n);
    static const double parts[] = {0.5, 0.25, 0.125};
    for (size_t p = 0; p < ARRAY_LEN(parts); p++)
        for (size_t i = 0; i + 1 < n; i++)
            for (int side = 0; side < 2; side++) {
                double before = times[i], low = i ? times[i - 1] : question->begun;
                double gap = side ? times[i + 1] - before : low - before;
                double moved = round(before + parts[p] * gap);
                if (is_wanted(question, before) || moved <= low || moved >= times[i + 1])
                    continue;
                times[i] = moved;
                double now = rate(context, times, n);
                if (now < best)
                    best = now;
                else
                    times[i] = before;
            }
}
