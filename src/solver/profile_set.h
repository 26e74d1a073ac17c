/* profile_set.h - the distinct families and times of one problem, validated and indexed.
 * Many snapshots share few widths and times, so costly functions are computed once for each. */
#ifndef SOLVER_PROFILE_SET_H
#define SOLVER_PROFILE_SET_H

#include "phema/arena.h"
#include "phema/family.h"
#include "phema/solver.h"

#define PHEMA_MAX_SNAPSHOTS 8192 /* beyond, matrices fill 4 GiB each and a solve takes an hour */

struct phema_member {
    size_t family;
    size_t time; /* index in times */
};

struct phema_trail { /* F since before the first step */
    phema_quad log;  /* of the product of the betas that are not 0 */
    size_t n_zeros;  /* of the others */
};

struct phema_profile_set {
    size_t n;       /* snapshots: members 0 .. n-1 */
    size_t m;       /* targets */
    size_t n_parts; /* of all targets: members n .. n+n_parts-1, target by target */
    const struct phema_profile *snapshots; /* borrowed, for messages */
    struct phema_member *members;
    phema_quad *factors; /* [n + n_parts] of a part in its target; 1 for snapshots */
    size_t *owners;      /* [n + n_parts] i for snapshot i, n + k for parts of target k */
    size_t *by_time;     /* [n + n_parts] members by time, then by index */
    struct phema_family *families;
    size_t n_families;
    phema_quad
        *times; /* ascending: all ends; changes of a form or of the motion before the last end */
    size_t n_times;
    bool is_stepwise; /* some profile must be followed step by step */
    bool is_plain;    /* power functions from 0 on, one a target: products in closed form */
    /* [n_families x n_times] F(time; last time), and its inverse: see phema_profile_set_decay */
    phema_quad *kept, *inverse_kept;
    struct phema_trail
        *trails; /* [n_families x n_times] of families without a closed decay; stepwise only */
    struct phema_arena memory; /* of all arrays */
};

/* PHEMA_ERR_INPUTS, PHEMA_ERR_TARGET, PHEMA_ERR_RESOURCE: as phema_weights_solve */
PHEMA_FALLIBLE phema_profile_set_build(struct phema_profile_set *set,
                                       const struct phema_problem *problem,
                                       struct phema_error *err);
void phema_profile_set_clear(struct phema_profile_set *set);

/* The sum of the weights of a target: 1, or 0 for a difference. */
phema_quad phema_profile_set_sum(const struct phema_profile_set *set, size_t target);

/* F(from; to), the product of the family's betas from times[from] to times[to], from <= to. */
phema_quad phema_profile_set_decay(const struct phema_profile_set *set, size_t family, size_t from,
                                   size_t to);
/* True if the decay is kept[from] inverse_kept[to] for every to >= from. */
bool phema_profile_set_divides(const struct phema_profile_set *set, size_t family, size_t from);

/* The label of a profile, or "#index", fit for a message. */
struct phema_name_buffer;
const char *phema_profile_format_label(struct phema_name_buffer *buffer,
                                       const struct phema_profile *profiles, size_t index);

#endif
