/* search.h - candidates for a design, and steps from good ones to better ones. */
#ifndef DESIGN_SEARCH_H
#define DESIGN_SEARCH_H

#include "filter.h"
#include "phema/parallel.h"
#include "times.h"

/* A design as few numbers. */
struct candidate {
    double sigma_rels[PHEMA_DESIGN_MAX_WIDTHS]; /* [n_widths] rising */
    size_t n_widths;
    enum phema_dtype dtype;
    struct spread spread;
    double smooth, worst; /* errors; infinite: the disk is too small */
    double work;          /* that the last rating took */
};

size_t candidate_count_times(const struct candidate *candidate,
                             const struct phema_design_question *question);
bool candidate_times(double *times, size_t *n, const struct candidate *candidate,
                     const struct phema_design_question *question);
void candidate_rate(struct candidate *candidate, const struct filter *filter);
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
