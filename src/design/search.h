/* search.h - candidates for a design, the times that they store, and steps from good ones to better
 * ones. */
#ifndef DESIGN_SEARCH_H
#define DESIGN_SEARCH_H

#include "filter.h"
#include "phema/parallel.h"

/* ---- times.c: the times at which snapshots are stored ---- */

/* How times are spread: a constant density, one that falls as 1/t, and one that rises towards each
 * wanted end. */
struct spread {
    double early, late; /* shares beside the constant one, whose share is 1 */
    double core;        /* the rise ends so near to an end, relative to the training */
};

/* Times of a spread, ascending whole steps, all wanted ends among them,
 * the first one early enough for averages at any time.
 *   times  out: [n]; n at most the steps that are left and PHEMA_DESIGN_MAX_SNAPSHOTS, at least
 *          times_count_needed */
void times_spread(double *times, size_t n, const struct spread *spread,
                  const struct phema_design_question *question);
/* Its cost, in the unit of filter_result.work. */
double times_spread_work(const struct phema_design_question *question);

/* Multiples of one interval, the wanted ends among them: at most n. Returns their number, 0 where
 * no interval divides all ends, is long enough, and short enough for averages at any time.
 * times: out: [n], or NULL */
size_t times_even(double *times, size_t n, const struct phema_design_question *question);

/* How many times the disk holds, of so many bytes each. */
uint64_t times_within(const struct phema_design_question *question, uint64_t bytes);

/* Wanted ends that are still to come, and the snapshot that averages at any time need before. */
size_t times_count_needed(const struct phema_design_question *question);

/* Moves single times, as long as that makes *smooth smaller: rate returns it. */
typedef double times_rate(void *context, const double *times, size_t n);
void times_exchange(double *times, size_t n, const struct phema_design_question *question,
                    times_rate *rate, void *context);

/* ---- search.c ---- */

/* A design as few numbers. */
struct candidate {
    double sigma_rels[PHEMA_DESIGN_MAX_WIDTHS]; /* [n_widths] rising */
    size_t n_widths;
    enum phema_dtype dtype;
    struct spread spread;
    double smooth, worst; /* errors; infinite: the disk is too small */
    double work;          /* that the last rating took */
};

/* The design with rounded widths, and with single times moved. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE candidate_finish(struct phema_design *out, const struct candidate *candidate,
                                const struct filter *filter, double work, struct phema_error *err);

/* All widths and dtypes of a grid, with one spread: items [grid_most]; returns their number. work:
 * the share of the usual work that the search may take, here and below; it makes the grid
 * coarser. */
size_t grid_most(const struct phema_design_question *question);
size_t grid_list(struct candidate *items, const struct filter *filter, double work);
/* Appends candidates with other spreads of the times to the n that are rated; returns their
 * number. */
size_t grid_spread(struct candidate *items, size_t n, const struct phema_design_question *question);
void grid_rate(struct candidate *items, size_t n, const struct filter *filter);
/* Puts at most so many first that are worth smaller steps; returns their number. */
size_t grid_choose(struct candidate *items, size_t n, size_t most);
void grid_refine(struct candidate *items, size_t n, const struct filter *filter, double work);

#endif
