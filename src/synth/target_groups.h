/* target_groups.h - targets with the same inputs share a weight matrix: one set of groups for the
 * tensors without a rule, and one for those of each rule. Also the precision of sums, which depends
 * on the tensor's dtypes and on one target's weights alone. So an output's bytes do not depend on
 * the other targets of the run. */
#ifndef SYNTH_TARGET_GROUPS_H
#define SYNTH_TARGET_GROUPS_H

#include "phema/plan.h"
#include "phema/synth.h"

struct run;

struct group {
    size_t *targets; /* [n_targets] indices into the plan */
    size_t n_targets;
    size_t *rows; /* [n_targets] of sums; targets of one time share a rule's row */
    size_t n_rows;
    size_t *inputs; /* [n_inputs] snapshots with a weight, in series order */
    size_t n_inputs;
    double *weights;   /* [n_inputs x n_rows] row-major */
    size_t reference;  /* index of the tile that copied inputs are compared with */
    size_t newest;     /* the last snapshot that is not later than the targets: source of copies */
    bool sums_to_one;  /* the weights of every target: equal tensors may be copied */
    bool fits_float32; /* float32 is precise enough for tensors that do not need float64 */
};

static inline size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Whether sums of the tensor need float64 whatever the weights are. */
bool sums_need_float64(const struct run *run, size_t tensor);

/* Whether float32 sums are precise enough for a target, for tensors that do not need float64.
 *   weights  [n] one for each snapshot */
bool sums_fit_float32(enum phema_sums sums, const double *weights, size_t n);

enum phema_accumulator sum_dtype_of(const struct run *run, const struct group *group,
                                    size_t tensor);

/* Groups of the targets [first_target, first_target + n_targets), clipped to the plan, for the
 * tensors of rule - 1; 0: no rule. A snapshot without a weight for a target is not an input of it,
 * even if it is read for another target: 0 times infinity must not reach a sum. */
PHEMA_FALLIBLE target_groups_make(struct group **out, size_t *n, const struct phema_plan *plan,
                                  enum phema_sums sums, size_t rule, size_t first_target,
                                  size_t n_targets, struct phema_error *err);

/* Needs of one tile. With copied inputs all groups are summed at once (is_in_turn); with views one
 * group after another. */
struct target_groups_needs {
    size_t n_rows;       /* of sums */
    size_t n_references; /* tiles to compare with */
    size_t sum_bytes;    /* of all rows, for one number */
};
struct target_groups_needs target_groups_count(const struct group *groups, size_t n,
                                               bool is_in_turn, bool needs_float64);
/* Counts the snapshots that averages are made of, and those that copies come from. */
void target_groups_count_inputs(size_t *n_used, size_t *n_newest, const struct group *groups,
                                size_t n, size_t n_snapshots);
/* Whether snapshot k is an input of the group. */
bool group_has_input(const struct group *group, size_t k);
/* Memory of the groups. */
uint64_t target_groups_bytes(const struct group *groups, size_t n, size_t n_snapshots);
void target_groups_free(struct group *groups, size_t n);

#endif
