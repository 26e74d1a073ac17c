/* diff_tensors.h - compares two checkpoints tensor by tensor. Floats of any dtype are compared as
 * numbers, also F16 with F32, and fp8 times its scale; other dtypes are compared as bytes. */
#ifndef CLI_DIFF_TENSORS_H
#define CLI_DIFF_TENSORS_H

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/formats.h"

struct watch;

struct phema_difference {
    const struct phema_tensor *a, *b; /* b NULL: only in a; a NULL: only in b; else in both */
    bool is_comparable;               /* in both, same shape, and both floating or same dtype */
    bool is_equal;                    /* every element: equal numbers; NaN equals NaN */
    uint64_t n_unequal;               /* elements */
    double max_abs;                   /* largest |a - b|; NaN or infinite where one side is */
    double rel_l2;                    /* |a - b| / |b|; 0 when equal, infinite when only b is 0 */
    long double sum_diff2, sum_b2;    /* the sums behind rel_l2: squares of doubles overflow one */
};

struct phema_comparison {
    struct phema_difference *tensors; /* [n], in the order of a, then those only in b */
    size_t n;
    bool is_equal;          /* same names, comparable, all equal */
    double max_abs, rel_l2; /* over all comparable floating tensors */
    const char *prefix;     /* that only the names of one side have, and are paired without; NULL */
    bool is_prefix_of_a;
    struct phema_arena memory; /* of tensors that are compared as numbers */
};

/* The tensors point into a and b, which must outlive the comparison. Memory does not depend on the
 * size of the tensors.
 *   watch  shows how far it is; NULL: nothing is shown
 * PHEMA_ERR_FILE when data cannot be decompressed. */
PHEMA_FALLIBLE phema_compare(struct phema_comparison *out, const struct phema_checkpoint *a,
                             const struct phema_checkpoint *b, struct watch *watch,
                             struct phema_error *err);
void phema_comparison_clear(struct phema_comparison *comparison);

#endif
