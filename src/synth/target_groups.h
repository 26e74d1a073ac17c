/* target_groups.h - targets that draw on the same snapshots, and so share one matrix of weights:
 * once for the tensors that follow no rule, and once for those of each rule. */
#ifndef SYNTH_TARGET_GROUPS_H
#define SYNTH_TARGET_GROUPS_H

#include "phema/plan.h"
#include "phema/synth.h"

struct group {
    size_t *targets; /* [n_targets] indices into the plan */
    size_t n_targets;
    size_t *rows; /* [n_targets] of sums; a rule's is the same for all targets of one time */
    size_t n_rows;
    size_t *inputs; /* [n_inputs] snapshots with a weight, in series order */
    size_t n_inputs;
    double *weights;   /* [n_inputs x n_rows] row-major */
    size_t newest;     /* the last snapshot that is not later than the targets: what is copied */
    bool sums_to_one;  /* all of them: equal tensors may be copied */
    bool fits_float32; /* the sums of all of them, of tensors that do not need more */
};

/* Of the targets [first_target, first_target + n_targets), as far as there are, for the tensors
 * that follow rule - 1, or none: 0. A snapshot without a weight for a target takes no part in it,
 * be it read for another target or not: 0 times infinity must not reach a sum. */
PHEMA_FALLIBLE target_groups_make(struct group **out, size_t *n, const struct phema_plan *plan,
                                  enum phema_sums sums, size_t rule, size_t first_target,
                                  size_t n_targets, struct phema_error *err);

/* What one tile of all groups needs: together when inputs are added one after another, else for one
 * group after another, without copies of inputs. */
struct target_groups_needs {
    size_t n_rows;       /* of sums */
    size_t n_references; /* tiles to compare with */
    size_t sum_bytes;    /* of all rows, for one number */
};
struct target_groups_needs target_groups_count(const struct group *groups, size_t n,
                                               bool is_in_turn, bool needs_float64);
/* Snapshots that averages are made of, and those that copies come from. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE target_groups_count_inputs(size_t *n_used, size_t *n_newest,
                                          const struct group *groups, size_t n, size_t n_snapshots,
                                          struct phema_error *err);
/* The first of the groups that begin with the same input as group g. */
size_t target_groups_alike(const struct group *groups, size_t g);
/* What they hold. */
uint64_t target_groups_bytes(const struct group *groups, size_t n, size_t n_snapshots);
void target_groups_free(struct group *groups, size_t n);

#endif
