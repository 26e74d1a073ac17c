/* solver.h - weights that combine the profiles of snapshots into target profiles.
 * No files, no tensors; safe from any thread. From 256 snapshots on, a call uses several threads.
 * Above 700 snapshots the solver loads OpenBLAS, if there is memory for it, and uses it in one
 * thread. Inner products and solve are in quad precision (113 bits). Eq. and Alg. are of
 * arXiv:2312.02696, (N1) ... of docs/numerics.md. */
#ifndef PHEMA_SOLVER_H
#define PHEMA_SOLVER_H

#include "phema/error.h"
#include "phema/profile.h"
#include "phema/schedule.h"

enum phema_metric {
    PHEMA_METRIC_WALK,    /* parameters wander: integral of (cumulative difference)^2, sum w = 1 */
    PHEMA_METRIC_PROFILE, /* the paper's and EDM2's: integral of (difference)^2, then w / sum w */
    PHEMA_METRIC_MOTION   /* both, weighted by the measured motion of the parameters, sum w = 1 */
};
enum phema_ridge {
    PHEMA_RIDGE_AUTO, /* walk, motion: from the rounding of the snapshots; profile: none */
    PHEMA_RIDGE_NONE,
    PHEMA_RIDGE_VALUE /* lambda of |w|^2, with (1/T) integral D^2 (walk), T integral d^2 (profile),
                       * or the squared error relative to |theta|^2 (motion) */
};
enum phema_solver {
    PHEMA_SOLVER_AUTO,   /* quad up to 700 unknowns, or where OpenBLAS cannot be loaded; LAPACK with
                          * quad refinement above */
    PHEMA_SOLVER_QUAD,   /* Cholesky in quad */
    PHEMA_SOLVER_LAPACK, /* float64, the reference; PHEMA_ERR_RESOURCE without OpenBLAS */
    PHEMA_SOLVER_DEVICE  /* float64 by the factorer, with quad refinement */
};

/* Another source of float64 factors: a GPU. */
struct phema_factorer {
    const char *name; /* of the solver, in solutions */
    /* L of L L^T = matrix [n x n], symmetric, row-major; below the diagonal and on it.
     * PHEMA_NO, without a message: a pivot is not positive. PHEMA_ERR_RESOURCE */
    enum phema_status (*factor)(double *matrix, size_t n, struct phema_error *err);
};

struct phema_solve_options {
    enum phema_metric metric;
    enum phema_ridge ridge;
    double ridge_value;
    enum phema_solver solver;
    const struct phema_factorer *factorer; /* of PHEMA_SOLVER_DEVICE */
    bool keeps_sum; /* profile metric: no division by the sum (eq. 151 without the last step) */
    bool finds_condition; /* of each solution; it takes as long as the weights */
};

/* How the parameters of one training move, in units of the mean square of a parameter: a random
 * walk of variance rate wander(t) with white jitter on top, whose variance times its correlation
 * time is jitter(t). Both are constant within an interval; interval k is (ends[k-1], ends[k]], the
 * first one from 0. Ends are times of snapshots, and eighths of what lies between them. With d the
 * difference of two profiles and D its tail integral, the squared distance of two averages is
 * integral wander D^2 + integral jitter d^2 (N8), and what a coherent drift adds: velocities that
 * keep their direction for as long as the training has lasted, with the covariance
 * speed(t) speed(t') min(t, t') / max(t, t') (N33). */
struct phema_motion {
    size_t n_intervals;
    double *ends, *wander, *jitter; /* [n_intervals] */
    double *speed;                  /* [n_intervals] of a coherent drift (N33); NULL: none */
    double misfit; /* mean |log(measured / modelled)| of the distances, powers of t alone (N21) */
    int wander_power; /* q of wander = b t^-q, before each interval is scaled on its own */
    int jitter_power;
};

/* The measured distance of two snapshots (N20). */
struct phema_distance {
    size_t i, j;
    double square; /* mean over elements of (x_i - x_j)^2, in mean squares of a parameter */
};

/* The pairs of snapshots to compare for a fit of motion: pairs at one time, and at neighbouring
 * times among at most 64 evenly chosen ones. If no two snapshots share a time, pairs two times
 * apart as well. pairs: allocated, [*n_pairs], square 0.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_pairs(struct phema_distance **pairs, size_t *n_pairs,
                                  const struct phema_profile *snapshots, size_t n,
                                  struct phema_error *err);

/* Elements of snapshots, borrowed. */
struct phema_sample_rows {
    const double *values; /* [n x n_elems] row-major */
    const size_t *order;  /* [n] the row of each snapshot; NULL: in order */
    size_t n_elems;
    double mean_square;    /* the unit of squared distances */
    const size_t *tensors; /* [n_elems] elements of a tensor are neighbours; NULL: unknown */
    const double
        *spacings; /* [n_elems] of the numbers in which tensors are stored; NULL likewise */
};

/* What a motion is fitted to. */
struct phema_motion_data {
    const struct phema_profile *snapshots; /* [n] by time */
    const double *rounding;                /* [n] relative rms of each; NULL: all 0 */
    size_t n;
    const struct phema_distance *distances; /* [n_distances] */
    size_t n_distances;
    const struct phema_sample_rows *sample; /* [n]; NULL: for even motion alone */
    /* of the learning rate: the walk's rate is its square times what changes smoothly. Used with a
     * sample only; NULL: unknown */
    const struct phema_schedule *schedule;
};

enum phema_motion_kind {
    PHEMA_MOTION_EVEN, /* v is constant within the intervals between snapshots, and there is jitter
                          * where the distances show it clearly */
    PHEMA_MOTION_SHAPED, /* v falls within the intervals, by shapes that the sample chooses among */
    PHEMA_MOTION_DRIFTING, /* the same; where the sample shows clearly that parameters keep their
                            * direction, they drift */
    /* v is the likeliest within the intervals for the sample. It would explain false labels as
     * well, so it is for labels that are known to be true. */
    PHEMA_MOTION_LIKELIEST
};

/* Fits the motion of the parameters to distances between snapshots. Distances that are mostly
 * rounding are not used.
 * PHEMA_NO            fewer than three distances are left; with a message
 * PHEMA_ERR_INPUTS    as phema_weights_solve
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_motion_fit(struct phema_motion *motion, const struct phema_motion_data *data,
                                enum phema_motion_kind kind, struct phema_error *err);
/* The same in parts: opened once, several kinds of motion cost less. Fails where the fit does; what
 * the data point to must live as long, but for the distances. */
struct phema_motion_fitting;
PHEMA_FALLIBLE phema_motion_fitting_open(struct phema_motion_fitting **out,
                                         const struct phema_motion_data *data,
                                         struct phema_error *err);
PHEMA_FALLIBLE phema_motion_fitting_find(struct phema_motion *motion,
                                         struct phema_motion_fitting *fitting,
                                         enum phema_motion_kind kind, struct phema_error *err);
void phema_motion_fitting_close(struct phema_motion_fitting *fitting); /* takes NULL */
void phema_motion_clear(struct phema_motion *motion);

/* Expected L2 error relative to |theta|: from the difference of the profiles, and from the rounding
 * of the stored snapshots. Without a known motion a data-free model is used: a random walk in which
 * EMA 0.05 and 0.10 differ by 3 % (N24). */
struct phema_prediction {
    double total, profile, rounding;
    double paper_weights; /* total with the weights of the profile metric */
    /* Weight on the parameters before training that the weights do not reproduce, if it is above
     * the total, else 0. No snapshot shows how far the parameters moved until the first one; where
     * they changed completely, the error is as large as this weight. */
    double initial;
    double scatter; /* of the snapshots around a line that is the target; a part of the total */
    double doubt;   /* the total of other profiles, as likely as those found; 0: it is smaller */
};

/* Variance rate of that random walk in a training of this length (N24). */
double phema_walk_rate(double run_end);

struct phema_solution {
    double *weights;      /* [n], in the order of the snapshots */
    double sum;           /* of the weights */
    double norm1, norm2;  /* of the weights */
    double profile_error; /* sqrt(int (p - target)^2 / int target^2); NaN if undefined */
    double walk_error;    /* the same of the cumulative profiles; NaN with a known motion, unless
                           * walk is the metric */
    double condition;     /* of the Gram matrix with its ridge, in the 2-norm; inf: singular; NaN:
                           * not found */
    double ridge;         /* lambda used, 0 for none */
    const char *solver;   /* "quad", "lapack" or the name of the factorer */
    struct phema_prediction predicted;
};

/* Everything that weights depend on. All pointers are borrowed. */
struct phema_problem {
    const struct phema_profile *snapshots; /* [n]; also those that are later than a target */
    const double
        *rounding; /* [n] relative rms rounding error (phema_dtype_rounding), NULL: all 0 */
    size_t n;
    const struct phema_mix *targets; /* [m] */
    size_t m;
    double run_end; /* the last time of the series, for the data-free prediction; 0: the last
                     * snapshot */
    const struct phema_motion *motion; /* NULL: not known */
};

/* Weights that combine n snapshots into each of m targets (eq. 151, Alg. 3; N10), all at once.
 *   solutions  out: [m]; weights are allocated: phema_solutions_clear
 * PHEMA_ERR_USAGE     the metric is motion, and the problem has no motion
 * PHEMA_ERR_INPUTS    n = 0; a time or shape out of range; two snapshots are the same average
 *                     (a pivot is 1e-30 or less); over 1e9 steps to follow one by one
 * PHEMA_ERR_TARGET    a target later than every snapshot, or before the first; t not > 0
 * PHEMA_ERR_RESOURCE  no memory: about phema_weights_bytes(n); n or m above 8192 */
PHEMA_FALLIBLE phema_weights_solve(struct phema_solution *solutions,
                                   const struct phema_problem *problem,
                                   const struct phema_solve_options *options,
                                   struct phema_error *err);

/* Most memory of a solve: 96 n^2 for the matrices, and the threads from 256 snapshots on. */
uint64_t phema_weights_bytes(size_t n);

/* Evaluates weights from outside, unchanged: fills in all members of the solutions but weights and
 * solver. Failures as above, but snapshots may coincide. */
PHEMA_FALLIBLE phema_weights_evaluate(struct phema_solution *solutions,
                                      const struct phema_problem *problem, struct phema_error *err);

void phema_solutions_clear(struct phema_solution *solutions, size_t m);

/* ---- Snapshots against their labels ---- */

/* Averages that a training keeps in float32 have at least this relative rms error, whatever dtype
 * stores them (docs/numerics.md). */
#define PHEMA_FLOAT32_FLOOR 3e-7

/* The relative rms error that an average has because it was kept in float32: of all its updates, and
 * of those that were too small to change it. Times are in steps.
 *   motion  NULL: not known, and no update is too small */
double phema_kept_rounding(const struct phema_profile *average, const struct phema_motion *motion);

/* The residuals of damaged tensors are this many times as large as those of the same tensor in other
 * snapshots, at least (docs/numerics.md). */
#define PHEMA_TENSOR_OUTLIER 10

/* The tensor of one snapshot that is farthest from its prediction, compared with the same tensor in
 * the other snapshots. */
struct phema_tensor_outlier {
    size_t snapshot, tensor;
    double ratio; /* 0: no tensor is off by half of its size or more */
    size_t n_outliers,
        n_compared; /* tensors of this snapshot above PHEMA_TENSOR_OUTLIER, and all */
};

/* How far each snapshot is from what all others predict, in the distance that the motion expects
 * (N25). About 1 where the labels are true. */
struct phema_leave_one_out {
    double *z;               /* [n] out; NaN: snapshots depend on each other, or are fewer than 3;
                              * NULL: the likelihood alone is wanted, which takes a third of the
                              * time */
    double *largest_without; /* [n] out: the largest z nearby once this one is gone; NaN unless
                              * its z is above the limit. NULL: not wanted */
    double limit;            /* in */
    bool only_z;       /* in: the likelihood is not wanted, and NaN; long series take less time */
    double likelihood; /* out: restricted log likelihood of the labels and the motion, an
                              * element, but for a constant: of all windows, so that comparisons
                              * are of one n; NaN: as z */
    struct phema_tensor_outlier outlier; /* out, where tensors are known; the largest ratio */
};

/* problem: snapshots, rounding and motion; the arrays of out are the caller's.
 * PHEMA_ERR_INPUTS    as phema_weights_solve
 * PHEMA_ERR_RESOURCE  no memory: 200 KiB and 32 rows of the sample for each thread */
PHEMA_FALLIBLE phema_leave_one_out(struct phema_leave_one_out *out,
                                   const struct phema_problem *problem,
                                   const struct phema_sample_rows *sample, struct phema_error *err);

/* How far the labels of a series are from what any motion explains: mixtures of walks, jitter,
 * velocities and accelerations within halves of the intervals. */
struct phema_free_motion {
    double largest;  /* squared residual of a snapshot over its expected square; NaN: unknown */
    double deviance; /* of the best mixture, an element, >= 0 but for the rounding; NaN likewise */
};

/* By the products of the sample. Takes 0.1 s for 32 snapshots, and as n^3 times the intervals.
 *   problem  snapshots by time, and their rounding
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_free_motion_fit(struct phema_free_motion *out,
                                     const struct phema_problem *problem,
                                     const struct phema_sample_rows *rows, struct phema_error *err);

/* ---- Advice: which snapshots could be deleted, and how often to save ---- */

/* Errors are predicted: from the motion if it is known, else from the data-free model. */

#define PHEMA_ADVICE_MAX_SNAPSHOTS 512 /* an elimination of ten seconds */

struct phema_advice {
    size_t *removed; /* [n_removed] indices of deletable snapshots, the least useful first */
    size_t n_removed;
    double error_before, error_after; /* the worst of the targets, with all and with the rest */
};

/* Greedy backward elimination: each step removes the snapshot that costs the worst target least, as
 * long as the predicted error of every target stays at max_error or below. The rest is then solved
 * again. Nothing is removed if the error is larger from the start.
 * PHEMA_ERR_INPUTS  too many snapshots; and all failures of phema_weights_solve */
PHEMA_FALLIBLE phema_advice_find(struct phema_advice *out, const struct phema_problem *problem,
                                 double max_error, struct phema_error *err);
void phema_advice_clear(struct phema_advice *advice);

struct phema_saving {
    size_t n_times;    /* evenly spaced up to the last snapshot; 0: any number is too few */
    size_t n_per_time; /* profiles at each: those of the last time */
    double every;      /* time between them */
    double error;      /* the worst predicted one of the targets */
};

/* The fewest save times that give every target a predicted error of max_error or less. */
PHEMA_FALLIBLE phema_advice_saving(struct phema_saving *out, const struct phema_problem *problem,
                                   double max_error, struct phema_error *err);

#endif
