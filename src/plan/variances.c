// SPDX-License-Identifier: Apache-2.0
/* variances.c - tensors that must not become negative. A narrow average has negative weights, and a
 * variance that falls fast may come out below zero: the model would take its root. Such tensors
 * follow a rule of their own, whose weights are those of the target without the negative ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/array.h"
#include "phema/dtype.h"
#include "solver_input.h"
#include "targets.h"

/* Sums that are held at one time, for all targets: 2 MiB. */
#define MOST_SUMS ((size_t)1 << 17)
/* Sums in float32 may differ from the exact ones by so much of the sum of the terms' sizes. */
#define ROUNDING 0x1p-20

/* ---- Which tensors ---- */

static bool is_variance(const struct phema_series_tensor *entry)
{
    static const char *const names[] = {"running_var", "running_variance", "running_std",
                                        "moving_var",  "moving_variance",  "exp_avg_sq"};
    const struct phema_tensor *tensor = &entry->tensor;
    return phema_tensor_is_called(tensor, names, ARRAY_LEN(names)) &&
           entry->rule == PHEMA_RULE_AVERAGE && phema_dtype_is_float(tensor->dtype) &&
           phema_dtype_bits(tensor->dtype) >= 8;
}

/* Differences of averages are negative by right. */
static bool may_be_negative(const struct phema_target *target, size_t n)
{
    for (size_t k = 0; k < n && target->solution.sum > 0.5; k++)
        if (target->solution.weights[k] < 0)
            return true;
    return false;
}

/* ---- Their sums ---- */

/* Elements [first, first + n) of a variance; their sums are [m x n], then those of the sizes. */
struct piece {
    size_t variance;
    uint64_t first, n;
    double *sums;
    bool is_input_negative; /* no weights help, or NaN */
};

struct variances {
    size_t *tensors;   /* [n] of the series */
    bool *is_negative; /* [n x m] in a target */
    size_t n;
    struct piece *pieces;
    size_t n_pieces, capacity;
    double *sums;   /* [2 x MOST_SUMS] */
    size_t n_sums;  /* in use */
    double *values; /* of one snapshot */
};

/* The weight that a tensor has: that of its rule, or of the target. */
static double weight_of(const struct phema_plan *plan, size_t j, size_t tensor, size_t k)
{
    const struct phema_target *target = &plan->targets[j];
    size_t rule = plan->rule_of[tensor];
    return rule ? target->ruled[rule - 1].weights[k] : target->solution.weights[k];
}

static enum phema_status add_piece(struct variances *all, const struct phema_plan *plan,
                                   struct piece *piece, struct phema_reader *reader, size_t k,
                                   struct phema_error *err)
{
    size_t n = (size_t)piece->n, m = plan->m, at = all->tensors[piece->variance];
    const struct phema_tensor tensor = phema_series_tensor_in(plan->series, k, at);
    const uint8_t *data = NULL;
    enum phema_status status =
        phema_reader_read(&data, reader, &tensor, piece->first, piece->n, all->values + n, err);
    if (status)
        return status;
    phema_elements_widen(all->values, tensor.dtype, data, n);
    for (size_t i = 0; i < n; i++)
        piece->is_input_negative = piece->is_input_negative || !(all->values[i] >= 0);
    for (size_t j = 0; j < m; j++) {
        double weight = weight_of(plan, j, at, k);
        for (size_t i = 0; i < n && weight != 0; i++) {
            piece->sums[j * n + i] += weight * all->values[i];
            piece->sums[(m + j) * n + i] += fabs(weight * all->values[i]);
        }
    }
    return PHEMA_OK;
}

static bool is_used(const struct phema_plan *plan, const struct variances *all, size_t k)
{
    for (size_t p = 0; p < all->n_pieces; p++)
        for (size_t j = 0; j < plan->m; j++)
            if (weight_of(plan, j, all->tensors[all->pieces[p].variance], k) != 0)
                return true;
    return false;
}

static enum phema_status read_snapshot(struct variances *all, const struct phema_plan *plan,
                                       size_t k, struct phema_error *err)
{
    struct phema_reader *reader = NULL;
    enum phema_status status =
        phema_reader_open(&reader, plan->series->snapshots[k].checkpoint, err);
    for (size_t p = 0; p < all->n_pieces && !status; p++)
        status = add_piece(all, plan, &all->pieces[p], reader, k, err);
    phema_reader_close(reader);
    return status;
}

/* Sums the pieces, and marks what is negative somewhere. */
static enum phema_status sum_pieces(struct variances *all, const struct phema_plan *plan,
                                    struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    memset(all->sums, 0, 2 * all->n_sums * sizeof(*all->sums));
    for (size_t k = 0; k < plan->series->n && !status; k++)
        if (is_used(plan, all, k))
            status = read_snapshot(all, plan, k, err);
    for (size_t p = 0; p < all->n_pieces && !status; p++) {
        const struct piece *piece = &all->pieces[p];
        size_t n = (size_t)piece->n, n_sums = piece->is_input_negative ? 0 : plan->m * n;
        bool *is_negative = &all->is_negative[piece->variance * plan->m];
        for (size_t x = 0; x < n_sums; x++)
            if (piece->sums[x] < ROUNDING * piece->sums[n_sums + x] &&
                may_be_negative(&plan->targets[x / n], plan->series->n))
                is_negative[x / n] = true;
    }
    all->n_pieces = all->n_sums = 0;
    return status;
}

static enum phema_status check_variances(struct variances *all, const struct phema_plan *plan,
                                         struct phema_error *err)
{
    const uint64_t most = MOST_SUMS / plan->m ? MOST_SUMS / plan->m : 1;
    enum phema_status status = PHEMA_OK;
    for (size_t v = 0; v < all->n; v++) {
        uint64_t n_elems = plan->series->tensors[all->tensors[v]].tensor.n_elems;
        for (uint64_t first = 0, n; first < n_elems; first += n) {
            n = n_elems - first < most ? n_elems - first : most;
            if (all->n_sums + n * plan->m > MOST_SUMS)
                status = sum_pieces(all, plan, err);
            if (!status && !phema_array_grow(&all->pieces, &all->capacity, all->n_pieces,
                                             sizeof(*all->pieces)))
                status = phema_fail_memory(err);
            if (status)
                return status;
            all->pieces[all->n_pieces++] = (struct piece){
                .variance = v, .first = first, .n = n, .sums = all->sums + 2 * all->n_sums};
            all->n_sums += (size_t)n * plan->m;
        }
    }
    return sum_pieces(all, plan, err);
}

/* ---- Their rules ---- */

/* The weights of a target without the negative ones, in sum 1. */
static enum phema_status clip(struct phema_solution *out, const struct phema_solution *from,
                              size_t n, struct phema_arena *memory, struct phema_error *err)
{
    double sum = 0, squares = 0;
    double *weights = phema_arena_array(memory, n, sizeof(*weights));
    if (!weights)
        return phema_fail_memory(err);
    for (size_t k = 0; k < n; k++)
        sum += fmax(from->weights[k], 0);
    *out = (struct phema_solution){.weights = weights,
                                   .solver = from->solver,
                                   .profile_error = PHEMA_UNKNOWN,
                                   .walk_error = PHEMA_UNKNOWN,
                                   .condition = PHEMA_UNKNOWN,
                                   .predicted = unknown_prediction};
    for (size_t k = 0; k < n; k++) {
        weights[k] = fmax(from->weights[k], 0) / sum;
        out->sum += weights[k];
        squares += weights[k] * weights[k];
    }
    out->norm1 = out->sum;
    out->norm2 = sqrt(squares);
    return PHEMA_OK;
}

/* Sets the rule of each variance that is negative in some target: those that are so in the same
 * targets have one. Returns how many rules there are.
 *   rule_of   out: [tensors] of the first tensor of a storage
 *   examples  out: [rules] a variance of each */
static size_t group_variances(size_t *rule_of, size_t *examples, const struct variances *all,
                              const struct phema_plan *plan)
{
    size_t m = plan->m, n = 0;
    for (size_t v = 0; v < all->n; v++) {
        const bool *is_negative = &all->is_negative[v * m];
        size_t r = 0;
        if (!memchr(is_negative, true, m))
            continue;
        while (r < n && memcmp(&all->is_negative[examples[r] * m], is_negative, m) != 0)
            r++;
        examples[r] = v;
        n += r == n;
        rule_of[plan->series->tensors[all->tensors[v]].same_as] = plan->n_rules + r + 1;
    }
    return n;
}

/* Gives targets the weights of new rules [n]. */
static enum phema_status weigh(struct phema_plan *plan, const struct variances *all,
                               const size_t *examples, size_t n, struct phema_error *err)
{
    size_t given = plan->n_rules;
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < plan->m; j++) {
        struct phema_target *target = &plan->targets[j];
        struct phema_solution *ruled = phema_arena_array(&plan->memory, given + n, sizeof(*ruled));
        struct phema_solution clipped;
        if (!ruled)
            return phema_fail_memory(err);
        status = clip(&clipped, &target->solution, plan->series->n, &plan->memory, err);
        if (status)
            return status;
        if (given)
            memcpy(ruled, target->ruled, given * sizeof(*ruled));
        for (size_t r = 0; r < n; r++)
            ruled[given + r] =
                all->is_negative[examples[r] * plan->m + j] ? clipped : target->solution;
        target->ruled = ruled;
    }
    return PHEMA_OK;
}

/* Tensors of one storage stay together. */
static enum phema_status add_rules(struct phema_plan *plan, const struct variances *all,
                                   struct phema_error *err)
{
    static char name[] = "variances";
    const struct phema_series *series = plan->series;
    size_t *rule_of = phema_arena_array(&plan->memory, series->n_tensors, sizeof(*rule_of));
    size_t *examples = phema_arena_array(&plan->memory, all->n, sizeof(*examples));
    if (!rule_of || !examples)
        return phema_fail_memory(err);
    size_t given = plan->n_rules, n = group_variances(rule_of, examples, all, plan);
    struct phema_plan_rule *rules = phema_arena_array(&plan->memory, given + n, sizeof(*rules));
    if (!n || !rules)
        return n ? phema_fail_memory(err) : PHEMA_OK;
    if (given)
        memcpy(rules, plan->rules, given * sizeof(*rules));
    for (size_t r = given; r < given + n; r++)
        rules[r] = (struct phema_plan_rule){
            .expression = name, .sigma_rel = PHEMA_UNKNOWN, .gamma = PHEMA_UNKNOWN};
    for (size_t i = 0; i < series->n_tensors; i++) {
        size_t rule = rule_of[series->tensors[i].same_as];
        if (rule && plan->rule_of[i])
            rules[plan->rule_of[i] - 1].n_tensors--;
        if (rule)
            rules[rule - 1].n_tensors++;
        plan->rule_of[i] = rule ? rule : plan->rule_of[i];
    }
    enum phema_status status = weigh(plan, all, examples, n, err);
    plan->rules = rules;
    plan->n_rules = given + n;
    plan->n_variance_rules = n;
    return status;
}

/* Lists the variances; *longest: the most elements of one. */
static enum phema_status list_variances(struct variances *all, uint64_t *longest,
                                        const struct phema_series *series, struct phema_error *err)
{
    *longest = 0;
    all->tensors = calloc(series->n_tensors + 1, sizeof(*all->tensors));
    if (!all->tensors)
        return phema_fail_memory(err);
    for (size_t i = 0; i < series->n_tensors; i++) {
        uint64_t n_elems = series->tensors[i].tensor.n_elems;
        if (!is_variance(&series->tensors[i]))
            continue;
        all->tensors[all->n++] = i;
        *longest = n_elems > *longest ? n_elems : *longest;
    }
    return PHEMA_OK;
}

static bool are_open(const struct phema_series *series)
{
    size_t k = 0;
    while (k < series->n && series->snapshots[k].checkpoint)
        k++;
    return k == series->n;
}

PHEMA_FALLIBLE variances_keep_positive(struct phema_plan *plan, struct phema_error *err)
{
    struct variances all = {.n = 0};
    uint64_t longest = 0;
    size_t j = 0;
    while (j < plan->m && !may_be_negative(&plan->targets[j], plan->series->n))
        j++;
    if (j == plan->m || !are_open(plan->series))
        return PHEMA_OK;
    enum phema_status status = list_variances(&all, &longest, plan->series, err);
    if (!status && longest) {
        size_t n = (size_t)(longest < MOST_SUMS ? longest : MOST_SUMS);
        all.sums = calloc(2 * (MOST_SUMS + plan->m), sizeof(*all.sums));
        all.values = calloc(2 * n, sizeof(*all.values)); /* and as many bytes as they have */
        all.is_negative = calloc(all.n, plan->m);
        status = all.sums && all.values && all.is_negative ? check_variances(&all, plan, err)
                                                           : phema_fail_memory(err);
        if (!status)
            status = add_rules(plan, &all, err);
    }
    free(all.tensors);
    free(all.is_negative);
    free(all.pieces);
    free(all.sums);
    free(all.values);
    return status;
}
