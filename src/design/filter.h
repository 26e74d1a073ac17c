/* filter.h - predicted errors of stored snapshots in one pass over time. The parameters are a
 * random walk, every average follows them by a recurrence, and a snapshot is an average with
 * rounding. So the least squares of (N8) are a Kalman filter: its cost grows with the number of
 * snapshots, not with its cube. */
#ifndef DESIGN_FILTER_H
#define DESIGN_FILTER_H

#include "phema/arena.h"
#include "phema/design.h"
#include "phema/profile.h"

/* ---- kernel.c: profiles in double ---- */

struct kernel {
    enum phema_shape shape;
    double power, origin, end, rate, turn;
};

/* end: of windows and the like
 * PHEMA_ERR_INPUTS  a table, updates every U steps, a reset, a window longer than the time before
 *                   its end */
PHEMA_FALLIBLE kernel_make(struct kernel *kernel, const struct phema_profile *profile, double end,
                           struct phema_error *err);

/* F(from; to), from <= to; 0 before the origin. */
double kernel_decay(const struct kernel *kernel, double from, double to);
/* dF/dt at t, for that F. */
double kernel_density(const struct kernel *kernel, double t, double decay);
/* F changes within about this time before t. */
double kernel_scale(const struct kernel *kernel, double t);
bool kernel_equals(const struct kernel *a, const struct kernel *b);

/* ---- filter.c ---- */

/* Targets by shape and, where the profile depends on it, by end. */
#define FILTER_MAX_TARGETS 256

struct filter_target {
    struct kernel kernel;
    double end;   /* 0: any */
    size_t index; /* in the question */
};

struct filter_kept { /* a snapshot that exists */
    struct kernel kernel;
    double t, variance;
};

/* All that does not depend on the design. */
struct filter {
    const struct phema_design_question *question;
    struct phema_design_motion motion;
    struct filter_target *targets; /* [n_targets] */
    size_t n_targets;
    double *origins; /* [n_origins] ascending: beginnings of windows */
    size_t n_origins;
    struct filter_kept *kept; /* [question->n_kept] */
    struct phema_arena memory;
};

/* Failures as phema_design_rate. */
PHEMA_FALLIBLE filter_open(struct filter *filter, const struct phema_design_question *question,
                           struct phema_error *err);
void filter_close(struct filter *filter);

struct filter_result {
    double worst;  /* largest error */
    double smooth; /* mean of a high power of all errors, which a search makes smaller */
    double work;   /* updates of covariances: what the pass has cost, the same on every machine */
    size_t target; /* of the worst */
    double end;
};

/* A design without its owner. Profiles must have passed kernel_make. */
struct filter_snapshots {
    const struct phema_design_width *widths; /* [n_widths] */
    size_t n_widths;
    const double *times; /* [n_times] ascending */
    size_t n_times;
};

/* errors: [n_targets of the question x n_ends], or NULL */
void filter_run(struct filter_result *out, double *errors, const struct filter *filter,
                const struct filter_snapshots *snapshots);
/* The same of a design, whose worst error, target and end it sets. */
void filter_rate(struct phema_design *design, double *errors, const struct filter *filter);

#endif
