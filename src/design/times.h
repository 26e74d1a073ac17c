/* times.h - the times at which snapshots are stored. */
#ifndef DESIGN_TIMES_H
#define DESIGN_TIMES_H

#include "phema/design.h"

/* How times are spread: a constant density, one that falls as 1/t, and one that rises towards each
 * wanted end. */
struct spread {
    double early, late; /* shares beside the constant one, whose share is 1 */
    double core;        /* the rise ends so near to an end, relative to the training */
};

/* Times of a spread, ascending whole steps, all wanted ends among them.
 *   times  out: [n]; n at most the steps that are left and PHEMA_DESIGN_MAX_SNAPSHOTS, at least the
 *          ends that are left */
void times_spread(double *times, size_t n, const struct spread *spread,
                  const struct phema_design_question *question);
/* Its cost, in the unit of filter_result.work. */
double times_spread_work(const struct phema_design_question *question);

/* Multiples of one interval, the wanted ends among them: at most n. Returns their number, 0 where
 * no interval divides all ends and is long enough. times: out: [n], or NULL */
size_t times_even(double *times, size_t n, const struct phema_design_question *question);

/* How many times the disk holds, of so many bytes each. */
uint64_t times_within(const struct phema_design_question *question, uint64_t bytes);

/* Wanted ends that are still to come. */
size_t times_count_ends(const struct phema_design_question *question);

/* Moves single times, as long as that makes *smooth smaller: rate returns it. */
typedef double times_rate(void *context, const double *times, size_t n);
void times_exchange(double *times, size_t n, const struct phema_design_question *question,
                    times_rate *rate, void *context);

#endif
