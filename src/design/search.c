// SPDX-License-Identifier: Apache-2.0
/* search.c - the best design within a disk: all widths of a grid with a few spreads of the times,
 * then smaller steps from the best of them, then single times. */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GRID  9 /* widths */
#define LEAST_GRID 4
#define WIDEST     0.285 /* of a power function with an exponent above 0 */
#define NARROWEST  0.002
#define N_SPREADS  3
#define FIRST_STEP 0.25
#define LAST_STEP  0.03

/* Work of one search, as filter_result has it: about a second of one core in all. Most questions
 * take a tenth of that; those of many ends and averages are searched less finely. */
#define GRID_WORK     1.5e7
#define REFINE_WORK   3e7
#define EXCHANGE_WORK 1.5e7

/* Spreads as logarithms step by step from here. */
#define LEAST_SHARE 0.02

/* ---- Candidates ---- */

/* As phema_gamma_from_sigma_rel, in double. */
static double gamma_of(double sigma_rel)
{
    double square = 1 / (sigma_rel * sigma_rel), gamma = 1 / sigma_rel;
    for (int i = 0; i < 50; i++) {
        double value = ((gamma + 7) * gamma + 16 - square) * gamma + 12 - square;
        double step = value / ((3 * gamma + 14) * gamma + 16 - square);
        gamma -= step;
        if (fabs(step) < 1e-14 * fabs(gamma))
            break;
    }
    return gamma;
}

static struct phema_design_width make_width(double sigma_rel, enum phema_dtype dtype,
                                            const struct phema_design_question *question)
{
    struct phema_design_width width = {.sigma_rel = sigma_rel, .dtype = dtype};
    if (question->shape == PHEMA_SHAPE_EMA)
        width.profile = (struct phema_profile){.shape = PHEMA_SHAPE_EMA,
                                               .half_life = M_LN2 * sigma_rel * question->until};
    else
        width.profile = (struct phema_profile){.gamma = gamma_of(sigma_rel)};
    return width;
}

/* Sets the widths of a design, and raw parameters behind them; returns their number. */
static size_t list_widths(struct phema_design_width *widths, const struct candidate *candidate,
                          const struct phema_design_question *question)
{
    size_t n = candidate->n_widths;
    for (size_t k = 0; k < n; k++)
        widths[k] = make_width(candidate->sigma_rels[k], candidate->dtype, question);
    if (question->has_raw)
        widths[n++] = (struct phema_design_width){.profile.shape = PHEMA_SHAPE_RAW,
                                                  .sigma_rel = PHEMA_UNKNOWN,
                                                  .dtype = candidate->dtype};
    return n;
}

uint64_t phema_design_bytes(const struct phema_design_width *widths, size_t n_widths,
                            const struct phema_design_question *question)
{
    uint64_t bytes = question->other_bytes;
    for (size_t k = 0; k < n_widths; k++)
        bytes += phema_dtype_bytes(widths[k].dtype, question->model_elems);
    return bytes;
}

static size_t candidate_count_times(const struct candidate *candidate,
                                    const struct phema_design_question *question)
{
    struct phema_design_width widths[PHEMA_DESIGN_MAX_WIDTHS + 1];
    size_t n_widths = list_widths(widths, candidate, question);
    uint64_t bytes = phema_design_bytes(widths, n_widths, question);
    if (n_widths == 0 || bytes == 0)
        return 0;
    uint64_t n = times_within(question, bytes), most = PHEMA_DESIGN_MAX_SNAPSHOTS / n_widths;
    double left = question->until - floor(question->begun);
    n = n < most ? n : most;
    return (double)n < left ? (size_t)n : (size_t)left;
}

/* times [PHEMA_DESIGN_MAX_SNAPSHOTS]; false: the disk is too small */
static bool candidate_times(double *times, size_t *n, const struct candidate *candidate,
                            const struct phema_design_question *question)
{
    *n = candidate_count_times(candidate, question);
    if (*n == 0 || *n < times_count_needed(question))
        return false;
    if (question->spacing == PHEMA_SPACING_EVEN) {
        *n = times_even(times, *n, question);
        return *n > 0;
    }
    times_spread(times, *n, &candidate->spread, question);
    return true;
}

static void candidate_rate(struct candidate *candidate, const struct filter *filter)
{
    double times[PHEMA_DESIGN_MAX_SNAPSHOTS];
    struct phema_design_width widths[PHEMA_DESIGN_MAX_WIDTHS + 1];
    struct filter_snapshots snapshots = {.widths = widths, .times = times};
    candidate->smooth = HUGE_VAL;
    candidate->work = 0;
    if (!candidate_times(times, &snapshots.n_times, candidate, filter->question))
        return;
    snapshots.n_widths = list_widths(widths, candidate, filter->question);
    struct filter_result result;
    filter_run(&result, NULL, filter, &snapshots);
    candidate->smooth = result.smooth;
    candidate->worst = result.worst;
    candidate->work = result.work + times_spread_work(filter->question);
}

/* ---- The grid ---- */

struct grid {
    const struct filter *filter;
    struct candidate *items;
    double work; /* for smaller steps from each item */
};

static void rate_item(void *context, size_t index)
{
    struct grid *grid = context;
    candidate_rate(&grid->items[index], grid->filter);
}

static const struct spread spreads[N_SPREADS] = {
    {.early = LEAST_SHARE, .late = LEAST_SHARE, .core = 0.05},
    {.early = LEAST_SHARE, .late = 1, .core = 0.05},
    {.early = 0.5, .late = 0.5, .core = 0.1},
};

static double narrowest_target(const struct phema_design_question *question)
{
    double narrowest = WIDEST;
    for (size_t i = 0; i < question->n_targets; i++) {
        const struct phema_profile *target = &question->targets[i];
        double width = WIDEST;
        if (target->shape == PHEMA_SHAPE_POWER)
            width = phema_sigma_rel_from_gamma(target->gamma);
        else if (target->half_life > 0)
            width = target->half_life / M_LN2 / question->until;
        else if (target->length > 0)
            width = target->length / question->until / 3.5; /* sqrt 12 of a window */
        narrowest = fmin(narrowest, width);
    }
    return fmax(narrowest, NARROWEST);
}

/* All rising tuples of n_widths of the grid, in one dtype with one spread. */
static size_t add_tuples(struct candidate *items, size_t n, const struct candidate *base,
                         const double *sigma_rels, size_t n_grid)
{
    size_t at[PHEMA_DESIGN_MAX_WIDTHS];
    for (size_t k = 0; k < base->n_widths; k++)
        at[k] = k;
    for (;;) {
        struct candidate *item = &items[n++];
        *item = *base;
        for (size_t k = 0; k < base->n_widths; k++)
            item->sigma_rels[k] = sigma_rels[at[k]];
        size_t k = base->n_widths;
        while (k > 0 && at[k - 1] == n_grid - (base->n_widths - k) - 1)
            k--;
        if (k == 0)
            return n;
        for (at[k - 1]++; k < base->n_widths; k++)
            at[k] = at[k - 1] + 1;
    }
}

/* Few targets may be stored as they are: each replaces the nearest width of the grid. */
static void meet_targets(double *sigma_rels, size_t n_grid,
                         const struct phema_design_question *question)
{
    for (size_t i = 0; question->n_targets <= PHEMA_DESIGN_MAX_WIDTHS && i < question->n_targets;
         i++) {
        double target = phema_sigma_rel_from_gamma(question->targets[i].gamma);
        size_t nearest = 0;
        for (size_t k = 1; k < n_grid; k++)
            if (fabs(log(sigma_rels[k] / target)) < fabs(log(sigma_rels[nearest] / target)))
                nearest = k;
        if (question->targets[i].shape == PHEMA_SHAPE_POWER && target < WIDEST)
            sigma_rels[nearest] = target;
    }
}

static struct candidate fix_widths(const struct candidate *base,
                                   const struct phema_design_question *question)
{
    struct candidate fixed = *base;
    for (size_t k = 0; k < fixed.n_widths; k++)
        fixed.sigma_rels[k] = question->fixed[k];
    return fixed;
}

static size_t least_widths(const struct phema_design_question *question)
{
    return question->n_fixed ? question->n_fixed : question->least_widths;
}

static size_t most_widths(const struct phema_design_question *question)
{
    return question->n_fixed ? question->n_fixed : question->most_widths;
}

/* Candidates with one spread for a grid of so many widths. */
static size_t count_tuples(size_t n_grid, const struct phema_design_question *question)
{
    size_t n = 0;
    for (size_t n_widths = least_widths(question); n_widths <= most_widths(question); n_widths++) {
        size_t n_tuples = 1; /* of the grid: a binomial coefficient */
        for (size_t k = 0; k < n_widths && !question->n_fixed; k++)
            n_tuples = n_tuples * (n_grid - k) / (k + 1);
        n += n_tuples * question->n_dtypes;
    }
    return n;
}

size_t grid_most(const struct phema_design_question *question)
{
    return count_tuples(MOST_GRID, question) * N_SPREADS;
}

/* The better part of the candidates is tried with the other spreads as well. */
#define TRIED_FURTHER 4

/* The finest grid within the work: one candidate shows what each of them costs. */
static size_t choose_grid(const struct filter *filter, double work)
{
    const struct phema_design_question *question = filter->question;
    struct candidate probe = {.spread = spreads[0], .dtype = question->dtypes[0]};
    probe.n_widths = least_widths(question);
    for (size_t k = 0; k < probe.n_widths; k++)
        probe.sigma_rels[k] = question->n_fixed ? question->fixed[k] : 0.05 * (double)(k + 1);
    candidate_rate(&probe, filter);
    double part =
        question->spacing == PHEMA_SPACING_EVEN ? 1 : 1 + (N_SPREADS - 1.0) / TRIED_FURTHER;
    size_t n_grid = MOST_GRID;
    while (n_grid > LEAST_GRID &&
           (double)count_tuples(n_grid, question) * part * probe.work > work * GRID_WORK)
        n_grid--;
    return n_grid;
}

size_t grid_list(struct candidate *items, const struct filter *filter, double work)
{
    const struct phema_design_question *question = filter->question;
    double sigma_rels[MOST_GRID] = {0}, first = 0.7 * narrowest_target(question);
    size_t n = 0, n_grid = choose_grid(filter, work);
    for (size_t i = 0; i < n_grid; i++)
        sigma_rels[i] = first * pow(WIDEST / first, (double)i / (double)(n_grid - 1));
    meet_targets(sigma_rels, n_grid, question);
    for (size_t n_widths = least_widths(question); n_widths <= most_widths(question); n_widths++)
        for (size_t d = 0; d < question->n_dtypes; d++) {
            struct candidate base = {
                .n_widths = n_widths, .spread = spreads[0], .dtype = question->dtypes[d]};
            if (question->n_fixed)
                items[n++] = fix_widths(&base, question);
            else
                n = add_tuples(items, n, &base, sigma_rels, n_grid);
        }
    return n;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *first = a, *second = b;
    return (first->smooth > second->smooth) - (first->smooth < second->smooth);
}

size_t grid_spread(struct candidate *items, size_t n, const struct phema_design_question *question)
{
    qsort(items, n, sizeof(*items), compare_candidates);
    size_t n_tried = question->spacing == PHEMA_SPACING_EVEN ? 0 : n / TRIED_FURTHER + 1, n_all = n;
    for (size_t i = 0; i < n_tried && i < n && isfinite(items[i].smooth); i++)
        for (size_t spread = 1; spread < N_SPREADS; spread++) {
            items[n_all] = items[i];
            items[n_all++].spread = spreads[spread];
        }
    return n_all;
}

void grid_rate(struct candidate *items, size_t n, const struct filter *filter)
{
    struct grid grid = {.filter = filter, .items = items};
    phema_parallel(n, phema_parallel_threads(), rate_item, &grid);
}

/* Smaller steps do not make good for more than this. */
#define HOPELESS 5

/* The best of each number of widths and each dtype come first, the best of all others behind. */
size_t grid_choose(struct candidate *items, size_t n, size_t most)
{
    qsort(items, n, sizeof(*items), compare_candidates);
    double best = n ? items[0].smooth : 0; /* of those that are sorted */
    size_t n_chosen = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = n_chosen; i < n && n_chosen < most; i++) {
            bool is_new = isfinite(items[i].smooth) && items[i].smooth <= HOPELESS * best;
            for (size_t j = 0; j < n_chosen && is_new; j++)
                is_new = pass == 1 || items[j].n_widths != items[i].n_widths ||
                         items[j].dtype != items[i].dtype;
            if (!is_new)
                continue;
            struct candidate found = items[i];
            memmove(&items[n_chosen + 1], &items[n_chosen], (i - n_chosen) * sizeof(*items));
            items[n_chosen++] = found;
        }
    return n_chosen;
}

/* ---- Smaller steps ---- */

/* Parameter p: logarithms of the widths and of the spread. */
static bool move(struct candidate *candidate, size_t p, double step)
{
    double *const spread[] = {&candidate->spread.early, &candidate->spread.late,
                              &candidate->spread.core};
    bool is_width = p < candidate->n_widths;
    double *value = is_width ? &candidate->sigma_rels[p] : spread[p - candidate->n_widths];
    *value *= exp(is_width ? step : 4 * step);
    double least = is_width ? NARROWEST : p == candidate->n_widths + 2 ? 1e-3 : LEAST_SHARE / 2;
    double most = is_width ? WIDEST : p == candidate->n_widths + 2 ? 1 : 20;
    return *value >= least && *value <= most;
}

static bool is_rising(const struct candidate *candidate)
{
    for (size_t k = 1; k < candidate->n_widths; k++)
        if (!(candidate->sigma_rels[k] > 1.05 * candidate->sigma_rels[k - 1]))
            return false;
    return true;
}

static void refine(struct candidate *best, const struct filter *filter, double work)
{
    bool is_even = filter->question->spacing == PHEMA_SPACING_EVEN;
    size_t n = best->n_widths + (is_even ? 0 : 3);
    double used = 0;
    for (double step = FIRST_STEP; step >= LAST_STEP && used < work;) {
        bool is_better = false;
        for (size_t p = filter->question->n_fixed; p < n; p++)
            for (int side = -1; side <= 1; side += 2) {
                struct candidate moved = *best;
                if (!move(&moved, p, side * step) || !is_rising(&moved))
                    continue;
                candidate_rate(&moved, filter);
                used += moved.work;
                if (moved.smooth < best->smooth * (1 - 1e-3)) {
                    *best = moved;
                    is_better = true;
                    break;
                }
            }
        if (!is_better)
            step /= 2;
    }
}

static void refine_item(void *context, size_t index)
{
    struct grid *grid = context;
    refine(&grid->items[index], grid->filter, grid->work);
}

void grid_refine(struct candidate *items, size_t n, const struct filter *filter, double work)
{
    struct grid grid = {filter, items, work * REFINE_WORK / (double)(n ? n : 1)};
    phema_parallel(n, phema_parallel_threads(), refine_item, &grid);
}

/* ---- Rounding, single times ---- */

struct exchange {
    const struct filter *filter;
    const struct phema_design *design;
    double work; /* that is left */
};

static double rate_times(void *context, const double *times, size_t n)
{
    struct exchange *exchange = context;
    if (exchange->work <= 0)
        return HUGE_VAL;
    struct filter_result result;
    const struct filter_snapshots snapshots = {exchange->design->widths, exchange->design->n_widths,
                                               times, n};
    filter_run(&result, NULL, exchange->filter, &snapshots);
    exchange->work -= result.work;
    return result.smooth;
}

PHEMA_FALLIBLE candidate_finish(struct phema_design *out, const struct candidate *candidate,
                                const struct filter *filter, double work, struct phema_error *err)
{
    struct candidate rounded = *candidate;
    struct phema_design design = {.times =
                                      calloc(PHEMA_DESIGN_MAX_SNAPSHOTS, sizeof(*design.times))};
    if (!design.times)
        return phema_fail_memory(err);
    for (size_t k = 0; k < rounded.n_widths && !filter->question->n_fixed; k++) {
        /* as people write widths: three decimals, four below 0.01 */
        double *width = &rounded.sigma_rels[k], unit = filter->question->width_unit;
        if (!(unit > 0))
            unit = *width < 0.01 ? 1e-4 : 1e-3;
        *width = round(*width / unit) / (1 / unit);
    }
    if (!candidate_times(design.times, &design.n_times, &rounded, filter->question)) {
        free(design.times);
        return phema_fail(err, PHEMA_BUG, "a design that was rated has no times");
    }
    design.n_widths = list_widths(design.widths, &rounded, filter->question);
    if (filter->question->spacing == PHEMA_SPACING_AUTO) {
        struct exchange exchange = {filter, &design, work * EXCHANGE_WORK};
        times_exchange(design.times, design.n_times, filter->question, rate_times, &exchange);
    }
    filter_rate(&design, NULL, filter);
    design.disk_bytes = phema_design_bytes(design.widths, design.n_widths, filter->question) *
                        (design.n_times + filter->question->n_useless);
    *out = design;
    return PHEMA_OK;
}
