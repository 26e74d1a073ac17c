/* profile_set.h - the profiles of one problem, checked, with their distinct recurrences and times.
 * Many snapshots share few widths and times; what is costly is done once for each. */
#ifndef SOLVER_PROFILE_SET_H
#define SOLVER_PROFILE_SET_H

#include "phema/solver.h"

#include "phema/family.h"

#define PHEMA_MAX_SNAPSHOTS 8192 /* beyond, matrices fill 4 GiB each and a solve takes an hour */

struct phema_member {
    size_t kind;
    size_t time; /* index in times */
};

struct phema_trail { /* what an average has kept since before the first step */
    phema_quad log;  /* of the product of the betas that are not 0 */
    size_t n_zeros;  /* of the others */
};

struct phema_profile_set {
    size_t n;       /* snapshots: members 0 .. n-1 */
    size_t m;       /* targets */
    size_t n_parts; /* of all targets: members n .. n+n_parts-1, target by target */
    struct phema_member *members;
    phema_quad *factors; /* [n + n_parts] of a part in its target; 1 for snapshots */
    size_t *owners;      /* [n + n_parts] i for snapshot i, n + k for parts of target k */
    struct phema_family *families;
    size_t n_families;
    phema_quad *times; /* ascending: all ends, and where forms or motions change before the last */
    size_t n_times;
    bool is_stepwise; /* some profile can be followed step by step only */
    bool is_plain;    /* power functions from 0 on, one a target: products in closed form */
    /* [n_families x n_times] what is left at the last time, and its inverse: see
     * phema_profile_set_decay */
    phema_quad *kept, *inverse_kept;
    struct phema_trail
        *trails; /* [n_families x n_times] of kinds without a closed decay, or NULL */
};

/* PHEMA_ERR_INPUTS, PHEMA_ERR_TARGET, PHEMA_ERR_RESOURCE: as phema_weights_solve says */
PHEMA_FALLIBLE phema_profile_set_build(struct phema_profile_set *set,
                                       const struct phema_problem *problem,
                                       struct phema_error *err);
void phema_profile_set_clear(struct phema_profile_set *set);

/* set_check.c: refuses what is none; sets n_parts and is_stepwise. */
PHEMA_FALLIBLE phema_profile_set_check(struct phema_profile_set *set,
                                       const struct phema_problem *problem,
                                       struct phema_error *err);

/* What the weights of a target add up to: 1, or 0 for a difference. */
phema_quad phema_profile_set_sum(const struct phema_profile_set *set, size_t target);

/* What an average of this kind keeps at times[to] of its state at times[from], from <= to: the
 * product of its betas between, F(from; to). */
phema_quad phema_profile_set_decay(const struct phema_profile_set *set, size_t kind, size_t from,
                                   size_t to);
/* Whether it is kept[from] inverse_kept[to], for every to >= from. */
bool phema_profile_set_divides(const struct phema_profile_set *set, size_t kind, size_t from);

/* The label of a profile, or "#index", fit for a message. */
struct phema_name_buffer;
const char *phema_profile_format_label(struct phema_name_buffer *buffer,
                                       const struct phema_profile *profiles, size_t index);

#endif
