/* solver_input.h - what of a series the solver works on for targets of one time. */
#ifndef PLAN_SOLVER_INPUT_H
#define PLAN_SOLVER_INPUT_H

#include "phema/plan.h"

/* Snapshots come by time, so those not later than a target are a prefix. */
size_t solver_input_count_until(const struct phema_series *series, double time);

/* Later snapshots add next to nothing to a target at the time of a snapshot, and are left out, as
 * EDM2 does; between two they make it several times better (docs/solver.md), and are kept. */
size_t solver_input_count_used(const struct phema_series *series, double time);

struct solver_input {
    size_t *index;                   /* [n] of each in the series */
    struct phema_profile *snapshots; /* [n] */
    double *rounding;                /* [n] */
    size_t n;
    struct phema_profile *targets; /* [m] */
    struct phema_mix *mixes;       /* [m] each of one target */
    struct phema_solution *solutions;
    size_t m;
    bool is_true; /* labels are true: no update_every above 1 */
};

/* The first n snapshots of the series, those that repeat others left out when asked. */
PHEMA_FALLIBLE solver_input_build(struct solver_input *problem, const struct phema_series *series,
                                  size_t n, bool drops_repeats, const struct phema_target *targets,
                                  size_t m, struct phema_error *err);
void solver_input_clear(struct solver_input *problem); /* takes the half-built */

/* The same as the solver takes it; borrowed. */
struct phema_problem solver_input_view(const struct solver_input *problem,
                                       const struct phema_series *series,
                                       const struct phema_motion *motion);

#endif
