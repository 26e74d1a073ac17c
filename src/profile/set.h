/* set.h - the profiles of one problem, checked, with their distinct recurrences and times.
 * Many snapshots share few widths and times; what is costly is done once for each. */
#ifndef PHEMA_PROFILE_SET_H
#define PHEMA_PROFILE_SET_H

#include "phema/profile.h"

#include "quad.h"

#define PHEMA_MAX_SNAPSHOTS 8192 /* beyond, matrices fill 4 GiB each and a solve takes an hour */

struct phema_kind {    /* one recurrence: all averages of the same gamma and update_every */
    phema_quad power;  /* gamma + 1 */
    uint64_t every;    /* update_every, at least 1 */
    bool is_snapshots; /* some snapshot is of this kind */
};

struct phema_member {
    size_t kind;
    size_t time; /* index in times */
};

struct phema_set {
    size_t n; /* snapshots: members 0 .. n-1 */
    size_t m; /* targets: members n .. n+m-1 */
    struct phema_member *members;
    struct phema_kind *kinds;
    size_t n_kinds;
    phema_quad *times; /* ascending */
    size_t n_times;
    bool is_stepwise; /* some update_every > 1 */
    phema_quad *kept; /* [n_kinds x n_times], see phema_set_decay */
};

/* PHEMA_ERR_INPUTS, PHEMA_ERR_TARGET, PHEMA_ERR_RESOURCE: as phema_weights_solve says */
PHEMA_FALLIBLE phema_set_build(struct phema_set *set, const struct phema_profile *snapshots,
                               size_t n, const struct phema_profile *targets, size_t m,
                               struct phema_error *err);
void phema_set_clear(struct phema_set *set);

/* What an average of this kind keeps at times[to] of its state at times[from], from <= to: the
 * product of its betas between, (from/to)^(gamma+1) when it is updated at every step. */
phema_quad phema_set_decay(const struct phema_set *set, size_t kind, size_t from, size_t to);

/* The label of a profile, or "#index", fit for a message. */
struct phema_name_buffer;
const char *phema_profile_shown(struct phema_name_buffer *buffer,
                                const struct phema_profile *profiles, size_t index);

#endif
