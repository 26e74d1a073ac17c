// SPDX-License-Identifier: Apache-2.0
/* target_groups.c - targets with the same inputs share a weight matrix; float32 or float64 sums. */
#include "target_groups.h"

#include <math.h>
#include <stdlib.h>

#include "run.h"

/* Weights made by the solver sum to 1 within rounding; libraries that do not normalise are off by
 * 1e-4 and more, and a sum that is off scales equal tensors, too. */
#define SUM_TOLERANCE 1e-9

/* ---- Precision of sums ----
 * A float32 sum of n products w x is off by at most u times the sum of (n - i + 2) |w_i x_i|, i
 * from 1, to first order in u = 2^-24: w_i is rounded once, and each addition from the i-th on
 * rounds the partial sum (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).
 * Snapshots of one training are nearly equal, and so are the x. */

/* Rounding to F16 is off by up to 2^-11 of a number; narrower types and BF16 are off by more. If
 * the error of the sums stays below 2^-18, which is 2^-24 times this, at most one in a hundred
 * roundings changes, in the last bit. Narrow targets have large weights and need more. */
#define MAX_ROUNDINGS 64.0

/* At most 16 bits, and numbers up to 65504: their sums stay well inside the range of float32. BF16
 * has the range of float32, so sums of large numbers could overflow though the average would not.
 */
static bool is_of_small_range(enum phema_dtype dtype)
{
    switch (dtype) {
    case PHEMA_F16:
    case PHEMA_F8_E4M3:
    case PHEMA_F8_E5M2:
    case PHEMA_F8_E4M3FNUZ:
    case PHEMA_F8_E5M2FNUZ:
    case PHEMA_F4:
        return true;
    default:
        return false;
    }
}

bool sums_need_float64(const struct run *run, size_t tensor)
{
    enum phema_dtype dtype = run->plan->series->tensors[tensor].tensor.dtype;
    switch (run->options.sums) {
    case PHEMA_SUMS_F32: /* float32 would overflow earlier and lose digits */
        return dtype == PHEMA_F64;
    case PHEMA_SUMS_AUTO:
        return !is_of_small_range(dtype) || phema_dtype_bits(run->outputs->dtypes[tensor]) > 16;
    case PHEMA_SUMS_F64:
        break;
    }
    return true;
}

bool sums_fit_float32(enum phema_sums sums, const double *weights, size_t n)
{
    if (sums != PHEMA_SUMS_AUTO)
        return sums == PHEMA_SUMS_F32;
    double roundings = 0, per_term = 2;
    for (size_t k = n; k-- > 0;) {
        if (weights[k] == 0) /* not added */
            continue;
        roundings += per_term * fabs(weights[k]);
        per_term++;
    }
    return roundings <= MAX_ROUNDINGS;
}

enum phema_accumulator sum_dtype_of(const struct run *run, const struct group *group, size_t tensor)
{
    return group->fits_float32 && !sums_need_float64(run, tensor) ? PHEMA_ACCUMULATE_F32
                                                                  : PHEMA_ACCUMULATE_F64;
}

/* ---- Groups ---- */

static const struct phema_solution *solution_of(const struct phema_plan *plan, size_t j,
                                                size_t rule)
{
    return rule ? &plan->targets[j].ruled[rule - 1] : &plan->targets[j].solution;
}

static bool sums_to_one(const struct phema_solution *solution)
{
    return fabs(solution->sum - 1) <= SUM_TOLERANCE;
}

static bool have_same_inputs(const struct phema_plan *plan, enum phema_sums sums, size_t rule,
                             size_t a, size_t b)
{
    const struct phema_solution *left = solution_of(plan, a, rule);
    const struct phema_solution *right = solution_of(plan, b, rule);
    if (plan->targets[a].newest != plan->targets[b].newest)
        return false;
    for (size_t k = 0; k < plan->series->n; k++)
        if ((left->weights[k] != 0) != (right->weights[k] != 0))
            return false;
    return sums_to_one(left) == sums_to_one(right) &&
           sums_fit_float32(sums, left->weights, plan->series->n) ==
               sums_fit_float32(sums, right->weights, plan->series->n);
}

/* A target shares the row of the one before it if their weights are the same object. */
static void add_target(struct group *group, const struct phema_plan *plan, size_t rule, size_t j)
{
    size_t x = group->n_targets;
    size_t row = group->n_rows;
    if (x && solution_of(plan, group->targets[x - 1], rule) == solution_of(plan, j, rule))
        row = group->rows[x - 1];
    else
        group->n_rows++;
    group->targets[x] = j;
    group->rows[x] = row;
    group->n_targets++;
}

static bool fill_group(struct group *group, const struct phema_plan *plan, enum phema_sums sums,
                       size_t rule, size_t first, size_t end, bool *is_grouped)
{
    const struct phema_series *series = plan->series;
    const struct phema_solution *solution = solution_of(plan, first, rule);
    group->targets = calloc(end - first + 1, sizeof(*group->targets));
    group->rows = calloc(end - first + 1, sizeof(*group->rows));
    group->inputs = calloc(series->n, sizeof(*group->inputs));
    if (!group->targets || !group->rows || !group->inputs)
        return false;
    for (size_t j = first; j < end; j++) {
        if (is_grouped[j] || !have_same_inputs(plan, sums, rule, first, j))
            continue;
        is_grouped[j] = true;
        add_target(group, plan, rule, j);
    }
    for (size_t k = 0; k < series->n; k++)
        if (solution->weights[k] != 0)
            group->inputs[group->n_inputs++] = k;
    group->newest = plan->targets[first].newest;
    group->sums_to_one = sums_to_one(solution);
    group->fits_float32 = sums_fit_float32(sums, solution->weights, plan->series->n);
    group->weights = calloc(group->n_inputs * group->n_rows + 1, sizeof(*group->weights));
    if (!group->weights)
        return false;
    for (size_t i = 0; i < group->n_inputs; i++)
        for (size_t x = 0; x < group->n_targets; x++)
            group->weights[i * group->n_rows + group->rows[x]] =
                solution_of(plan, group->targets[x], rule)->weights[group->inputs[i]];
    return true;
}

/* Copied inputs of a group are compared with its first one, which is kept. Groups that begin with
 * the same input share its tile. */
static void number_references(struct group *groups, size_t n)
{
    size_t n_references = 0;
    for (size_t g = 0; g < n; g++) {
        size_t same = 0; /* the first group that begins with the same input */
        while (same < g && (groups[same].n_inputs == 0 || groups[g].n_inputs == 0 ||
                            groups[same].inputs[0] != groups[g].inputs[0]))
            same++;
        groups[g].reference = same < g ? groups[same].reference : n_references++;
    }
}

PHEMA_FALLIBLE target_groups_make(struct group **out, size_t *n, const struct phema_plan *plan,
                                  enum phema_sums sums, size_t rule, size_t first_target,
                                  size_t n_targets, struct phema_error *err)
{
    size_t end = n_targets < plan->m - first_target ? first_target + n_targets : plan->m;
    struct group *groups = calloc(n_targets ? n_targets : 1, sizeof(*groups));
    bool *is_grouped = calloc(end ? end : 1, sizeof(*is_grouped));
    bool is_done = groups && is_grouped;
    size_t n_groups = 0;
    for (size_t j = first_target; is_done && j < end; j++)
        if (!is_grouped[j])
            is_done = fill_group(&groups[n_groups++], plan, sums, rule, j, end, is_grouped);
    free(is_grouped);
    if (!is_done) {
        target_groups_free(groups, n_groups);
        return phema_fail_memory(err);
    }
    number_references(groups, n_groups);
    *out = groups;
    *n = n_groups;
    return PHEMA_OK;
}

struct target_groups_needs target_groups_count(const struct group *groups, size_t n,
                                               bool is_in_turn, bool needs_float64)
{
    struct target_groups_needs needs = {0, 0, 0};
    for (size_t g = 0; g < n; g++) {
        size_t n_rows = groups[g].n_rows;
        bool is_float32 = groups[g].fits_float32 && !needs_float64;
        size_t bytes = n_rows * (is_float32 ? sizeof(float) : sizeof(double));
        needs.n_rows = is_in_turn ? needs.n_rows + n_rows : larger(n_rows, needs.n_rows);
        needs.sum_bytes = is_in_turn ? needs.sum_bytes + bytes : larger(bytes, needs.sum_bytes);
        if (is_in_turn)
            needs.n_references = larger(groups[g].reference + 1, needs.n_references);
    }
    return needs;
}

bool group_has_input(const struct group *group, size_t k)
{
    size_t low = 0, high = group->n_inputs; /* the first that is not below k */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (group->inputs[middle] < k)
            low = middle + 1;
        else
            high = middle;
    }
    return low < group->n_inputs && group->inputs[low] == k;
}

void target_groups_count_inputs(size_t *n_used, size_t *n_newest, const struct group *groups,
                                size_t n, size_t n_snapshots)
{
    *n_used = *n_newest = 0;
    for (size_t k = 0; k < n_snapshots; k++) {
        bool is_used = false, is_newest = false;
        for (size_t g = 0; g < n; g++) {
            is_used = is_used || group_has_input(&groups[g], k);
            is_newest = is_newest || groups[g].newest == k;
        }
        *n_used += is_used;
        *n_newest += is_newest;
    }
}

uint64_t target_groups_bytes(const struct group *groups, size_t n, size_t n_snapshots)
{
    uint64_t bytes = 0;
    for (size_t g = 0; g < n; g++)
        bytes += sizeof(*groups) + n_snapshots * sizeof(*groups[g].inputs) +
                 groups[g].n_targets * (sizeof(*groups[g].targets) + sizeof(*groups[g].rows)) +
                 groups[g].n_inputs * groups[g].n_rows * sizeof(*groups[g].weights);
    return bytes;
}

void target_groups_free(struct group *groups, size_t n)
{
    for (size_t g = 0; groups && g < n; g++) {
        free(groups[g].targets);
        free(groups[g].rows);
        free(groups[g].inputs);
        free(groups[g].weights);
    }
    free(groups);
}
