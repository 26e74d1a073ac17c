/* solver_input.h - the subset of a series that the solver sees for the targets of one time. */
#ifndef PLAN_SOLVER_INPUT_H
#define PLAN_SOLVER_INPUT_H

#include "phema/arena.h"
#include "phema/plan.h"

/* Number of snapshots not later than a time; they are a prefix of the series. */
size_t solver_input_count_until(const struct phema_series *series, double time);

/* Number of snapshots used for a target at a time. Snapshots later than a target at the time of a
 * snapshot improve it by next to nothing and are left out, as EDM2 does. A target between two
 * snapshots uses all snapshots, which makes it several times better (docs/solver.md). */
size_t solver_input_count_used(const struct phema_series *series, double time);

extern const struct phema_prediction unknown_prediction;

struct solver_input {
    struct phema_problem problem;     /* its arrays are in memory, the motion is borrowed */
    size_t *index;                    /* [problem.n] index in the series */
    struct phema_profile *snapshots;  /* problem.snapshots */
    struct phema_profile *targets;    /* [problem.m] power functions of problem.targets */
    struct phema_solution *solutions; /* out of the solver: [problem.m] */
    size_t n_considered;              /* snapshots of the series, with those that repeat others */
    bool has_true_labels;             /* no snapshot has an update_every above 1 or was reset */
    struct phema_arena memory;
};

/* From the first n snapshots of the series, without those that repeat others if asked.
 *   motion  borrowed, NULL: unknown
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE solver_input_build(struct solver_input *input, const struct phema_series *series,
                                  const struct phema_motion *motion, size_t n, bool drops_repeats,
                                  const struct phema_target *targets, size_t m,
                                  struct phema_error *err);
void solver_input_clear(struct solver_input *input); /* takes the half-built */

/* Whether two averages are the same, whatever the parameters: no update is between them that one of
 * them has and the other has not. */
bool is_same_average(const struct phema_profile *a, const struct phema_profile *b);

#endif
