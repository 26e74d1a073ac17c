// SPDX-License-Identifier: Apache-2.0
/* merges.c - the factors of merges of snapshots, as training of language models has them: PMA
 * (arXiv:2505.12082: simple, weighted and exponential moving average) and WSM (arXiv:2507.17634).
 */
#include "spec_internal.h"

/* M_1 = W_1, M_i = alpha W_i + (1 - alpha) M_(i-1). */
static void fill_recursive(double *factors, size_t n, double alpha)
{
    double left = 1;
    for (size_t i = n; i-- > 1;) {
        factors[i] = alpha * left;
        left *= 1 - alpha;
    }
    factors[0] = left;
}

/* A sum over snapshots with the factors c_j is the first one plus each step between two of them
 * times w_i = sum of the c_j from i on: so c_j = w_j - w_(j+1) stands for a learning rate that
 * decays as w does. With n snapshots, w_i = decay(i/n), i = 1..n-1. */
void spec_merge_factors(double *factors, size_t n, const struct phema_spec_term *term)
{
    double sum = (double)n * ((double)n + 1) / 2;
    if (term->kind->build == BUILD_RECURSIVE) {
        fill_recursive(factors, n, spec_value(term, "alpha"));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        switch (term->kind->build) {
        case BUILD_ASCENDING:
            factors[i] = (double)(i + 1) / sum;
            break;
        case BUILD_WSM_COSINE:
            factors[i] = rounded_cosine_step(i, n);
            break;
        case BUILD_WSM_MINUS_SQRT:
            factors[i] = rounded_minus_sqrt_step(i, n);
            break;
        default: /* a linear decay of w is the uniform average */
            factors[i] = 1 / (double)n;
        }
    }
}
