/* samples.h - simulated elements, and what a motion is fitted to. */
#ifndef TESTS_SOLVER_SAMPLES_H
#define TESTS_SOLVER_SAMPLES_H

#include "phema/solver.h"
#include "support.h"

/* 1 or -1 */
static inline double coin(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 63 ? 1 : -1;
}

/* Compares the snapshots as the program does. rows [n x n_elems]; mean square 1. The caller frees
 * the pairs. */
static inline struct phema_distance *compare_rows(size_t *n_pairs,
                                                  const struct phema_profile *snapshots, size_t n,
                                                  const struct phema_sample_rows *rows)
{
    struct phema_distance *pairs = NULL;
    struct phema_error err = {0};
    assert_ok(phema_motion_pairs(&pairs, n_pairs, snapshots, n, &err), &err);
    for (size_t p = 0; p < *n_pairs; p++) {
        const double *a = rows->values + pairs[p].i * rows->n_elems;
        const double *b = rows->values + pairs[p].j * rows->n_elems;
        for (size_t e = 0; e < rows->n_elems; e++)
            pairs[p].square += (a[e] - b[e]) * (a[e] - b[e]) / (double)rows->n_elems;
    }
    return pairs;
}

#endif
