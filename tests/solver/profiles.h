/* profiles.h - calls of the solver for targets of one profile each. */
#ifndef TESTS_SOLVER_PROFILES_H
#define TESTS_SOLVER_PROFILES_H

#include <stdlib.h>

#include "gram.h"
#include "gram_closed_form.h"
#include "support.h"

static inline struct phema_mix *mixes_of(const struct phema_profile *targets, size_t m)
{
    struct phema_mix *mixes = calloc(m + 1, sizeof(*mixes));
    assert_non_null(mixes);
    for (size_t k = 0; k < m; k++)
        mixes[k] = (struct phema_mix){.parts = &targets[k], .n_parts = 1};
    return mixes;
}

static inline enum phema_status
solve_profiles(struct phema_solution *solutions, const struct phema_profile *snapshots,
               const double *rounding, size_t n, const struct phema_profile *targets, size_t m,
               double run_end, const struct phema_solve_options *options, struct phema_error *err)
{
    struct phema_mix *mixes = mixes_of(targets, m);
    const struct phema_problem problem = {.snapshots = snapshots,
                                          .rounding = rounding,
                                          .n = n,
                                          .targets = mixes,
                                          .m = m,
                                          .run_end = run_end};
    /* without options, the weights in solutions are evaluated */
    enum phema_status status = options ? phema_weights_solve(solutions, &problem, options, err)
                                       : phema_weights_evaluate(solutions, &problem, err);
    free(mixes);
    return status;
}

static inline enum phema_status rate_profiles(struct phema_solution *solutions,
                                              const struct phema_profile *snapshots,
                                              const double *rounding, size_t n,
                                              const struct phema_profile *targets, size_t m,
                                              double run_end, struct phema_error *err)
{
    return solve_profiles(solutions, snapshots, rounding, n, targets, m, run_end, NULL, err);
}

static inline enum phema_status build_grams(struct phema_grams *grams,
                                            const struct phema_profile *snapshots, size_t n,
                                            const struct phema_profile *targets, size_t m,
                                            struct phema_error *err)
{
    struct phema_mix *mixes = mixes_of(targets, m);
    const struct phema_problem problem = {.snapshots = snapshots, .n = n, .targets = mixes, .m = m};
    enum phema_status status = phema_grams_build(grams, &problem, true, err);
    free(mixes);
    return status;
}

#endif
