/* profile.h - averaging profiles over training time, as numbers, curves and texts.
 * No tensors. Eq. and Alg. are of arXiv:2312.02696, (N1) ... of docs/numerics.md. */
#ifndef PHEMA_PROFILE_H
#define PHEMA_PROFILE_H

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/setting.h"
#include "phema/strbuf.h"

/* The shapes of averaging profiles (N1), (N2). T is the end of the profile, F(t) the weight on the
 * parameters before t, F(0) the weight on the parameters before training. */
enum phema_shape {
    PHEMA_SHAPE_POWER,  /* gamma: F = (t/T)^(gamma+1) (eq. 123) */
    PHEMA_SHAPE_EMA,    /* half_life: F = 2^-((T-t)/half_life); beta = 2^(-1/half_life) a step */
    PHEMA_SHAPE_RAMPED, /* half_life, ramp: at t the half-life is min(half_life, ramp t), EDM2's
                         * ema_rampup_ratio: a power function of exponent ln 2/ramp, then an EMA */
    PHEMA_SHAPE_WINDOW, /* length: uniform over (T - length, T] */
    PHEMA_SHAPE_COSINE, /* length: 1 - F = (1 + cos(pi x))/2, x = (t - (T - length)) / length */
    PHEMA_SHAPE_MINUS_SQRT, /* length: 1 - F = 1 - sqrt(x) */
    PHEMA_SHAPE_RAW,        /* the parameters at T themselves */
    PHEMA_SHAPE_TABLE       /* betas: e = beta e + (1 - beta) theta at the listed steps */
};

/* A recurrence step by step (N19); steps ascending from 1 on, betas in [0, 1]. Steps that
 * are not listed change nothing; before the first, e is the parameters before training. */
struct phema_betas {
    const uint64_t *steps; /* [n] */
    const double *betas;   /* [n] */
    size_t n;
    /* Files hold the average times this, the sum of all weights so far: of float32 arithmetic, of
     * an average from zeros. [n]; NULL: 1 */
    const double *scales;
};

/* How many of the steps are not later than t. */
size_t phema_betas_count(const struct phema_betas *betas, double t);

struct phema_profile;
/* By what a file holds the average multiplied. */
double phema_profile_scale(const struct phema_profile *profile);

/* How a snapshot or a target weighs the past. A power-function EMA that is updated at every step:
 * p(tau) = (gamma+1) tau^gamma / t^(gamma+1) on [0, t] (eq. 123). With update_every U > 1: the
 * average is touched at steps 1, 1+U, 1+2U, ... only, with beta = (c/(c+1))^(gamma+1) at step c
 * (N18), and starts as a copy of the parameters of step 1 (ema-pytorch, pytorch-posthoc-ema). t
 * must then be a whole number of steps. As soon as one profile of a set has U > 1, or is a table,
 * the whole set is treated step by step; a power function with U = 1 by the exact beta(c) =
 * ((c-1)/c)^(gamma+1), the other shapes by beta(c) = F(c-1)/F(c). Where all that have U > 1 have
 * the same, densities are compared at a resolution of U steps: an average that is touched every U
 * steps is a comb, which no weights make smooth. A raw snapshot has no density; step by step, and
 * together with densities, it counts as one step wide (length). */
struct phema_profile {
    double gamma;          /* power: exponent [1], > -1/2 */
    double t;              /* end of the profile [one unit per run], > 0, < 2^53 */
    uint64_t update_every; /* power: [steps], 0 means 1 */
    const char *label;     /* for messages: a file's name; borrowed */
    enum phema_shape shape;
    double half_life; /* ema, ramped: [time] */
    double ramp;      /* ramped: > 0 */
    double length;    /* window, cosine, minus-sqrt: [time], at most t; raw: of a step, 0 is 1 */
    const struct phema_betas *betas; /* table: borrowed */
    /* power, EMA, ramped, table: at the time reset the average became a copy of the parameters
     * (0: never), so that F = 0 before; its steps count from origin, 0 or at most reset. A
     * power function updated at every step may have an origin below 0: its clock is ahead */
    double reset, origin; /* [time], before t; whole numbers where steps are followed */
};

/* A training that was resumed at a time without its averages: they became copies of the
 * parameters, and continued with the step count, or with a count that restarted. */
struct phema_reset {
    double at; /* [time] */
    bool restarts_count;
};

/* Reads "T" or "T,counter", for each of n texts; *out, of the arena, ascends.
 * PHEMA_ERR_USAGE  no such text, a time that is not above 0 and below 2^53, or a time twice */
PHEMA_FALLIBLE phema_resets_parse(struct phema_reset **out, struct phema_arena *arena,
                                  const char *const *texts, size_t n, struct phema_error *err);

/* The profile of the same average after the resets [n], ascending, that are earlier than its end.
 * An average that ends with a reset was kept before.
 * PHEMA_ERR_INPUTS  a window or the like that reaches back beyond a reset: it is no recurrence */
PHEMA_FALLIBLE phema_profile_reset(struct phema_profile *profile, const struct phema_reset *resets,
                                   size_t n, struct phema_error *err);

/* Parts of a sum that are a least-squares line through parameters at several times. */
struct phema_fit {
    size_t first, n; /* parts */
};

/* A target: a sum of profiles, each times its factor. Factors add up to 1, or to 0 for the
 * difference of two averages (a task vector); the weights add up to the same (N7). */
struct phema_mix {
    const struct phema_profile *parts; /* [n_parts] */
    const double *factors;             /* [n_parts]; NULL: one part of factor 1 */
    size_t n_parts;
    const struct phema_fit *fits; /* [n_fits] */
    size_t n_fits;
};

#define PHEMA_SIGMA_REL_LIMIT    0.289    /* EDM2: 0 < sigma_rel < 0.289 */
#define PHEMA_SIGMA_REL_SUPREMUM 0.300283 /* no power function has more */

/* Largest real root of g^3 + 7 g^2 + (16 - s^-2) g + (12 - s^-2) = 0 (Alg. 2), by Newton from
 * above.
 * PHEMA_ERR_TARGET  sigma_rel is not in (0, 0.289); the message explains the limit */
PHEMA_FALLIBLE phema_gamma_from_sigma_rel(double *gamma, double sigma_rel, struct phema_error *err);
/* sqrt(gamma+1) / ((gamma+2) sqrt(gamma+3)) (eq. 126); gamma > -1 */
double phema_sigma_rel_from_gamma(double gamma);
/* (1 - 1/step)^(gamma+1) (eq. 127), correctly rounded on every machine (computed in quad). */
double phema_power_beta(double gamma, uint64_t step);
/* beta of this shape at a step, e = beta e + (1 - beta) theta, steps counted from 1; correctly
 * rounded as above.
 *   power    with the profile's update_every
 *   EMA      the same at every step, so that some of the parameters before training stays
 *   ramped   by the half-life min(half_life, ramp step), as in EDM2
 *   window, cosine, minus-sqrt
 *            F(step-1)/F(step) with the end t of the profile, 0 up to its begin, 1 after its end
 *   table    the listed beta, or 1
 *   raw      0
 * Where the average was reset: 0 at that step; from there on, as above, of steps counted from the
 * origin. Steps before the reset have no influence on it. */
double phema_profile_beta(const struct phema_profile *profile, uint64_t step);

/* Zero weight before a beginning, `length` before the end: no recurrence makes it. */
static inline bool phema_shape_has_begin(enum phema_shape shape)
{
    return shape == PHEMA_SHAPE_WINDOW || shape == PHEMA_SHAPE_COSINE ||
           shape == PHEMA_SHAPE_MINUS_SQRT;
}
/* Time back from t in which half of the weight lies: t (1 - 2^(-1/(gamma+1))); and its inverse. */
double phema_half_life_from_gamma(double gamma, double t);
PHEMA_FALLIBLE phema_gamma_from_half_life(double *gamma, double half_life, double t,
                                          struct phema_error *err);

/* The length of a power-function average in every unit. */
enum phema_length {
    PHEMA_SIGMA_REL,
    PHEMA_GAMMA,
    PHEMA_HALF_LIFE_REL, /* as a share of the training time */
    PHEMA_TIME,          /* t of the average; it and those below need that */
    PHEMA_WIDTH,         /* sigma_rel t */
    PHEMA_HALF_LIFE,     /* t half_life_rel */
    PHEMA_BETA,          /* at step t */
    PHEMA_DECAY,         /* of the exponential EMA with the same standard deviation in time */
    PHEMA_EMA_HALF_LIFE, /* its half-life */
    PHEMA_LENGTHS
};

/* All lengths from the value of one; not TIME or WIDTH. t: NaN where no unit needs it. DECAY and
 * BETA in (0, 1); BETA at t > 1.
 * PHEMA_ERR_TARGET  no square-integrable power function has this length, or none up to 0.289 */
PHEMA_FALLIBLE phema_power_lengths(double out[PHEMA_LENGTHS], double t, enum phema_length unit,
                                   double value, struct phema_error *err);

/* ---- Profiles as curves ---- */

/* The weight F of a valid profile on the parameters before each of n times, ascending. 1 from the
 * end on; before 0, the weight on the parameters before training. The
 * mean density between two times is their difference over the time between them, which even a raw
 * snapshot has. Where an average is followed step by step, F is linear between the steps at which
 * it changes: a comb becomes the even weight that densities are compared by. */
void phema_profile_cumulative(double *out, const struct phema_profile *profile, const double *times,
                              size_t n);

/* ---- SPEC: the text that describes an average ----
 * A term is KIND, KIND:VALUE or KIND:KEY=VALUE,... ("power:sigma=0.1", "ema:2000", "window:20k",
 * "raw", "table:FILE"), or line:TERM,TERM,LAMBDA, A + LAMBDA (B - A); a difference is two of them
 * with " - " between. Times are on the clock of the averages, in its unit. Not for several threads at once: a spec caches its betas.
 */

struct phema_spec_term; /* a difference has two, a line those behind it, all others have one */

struct phema_spec {
    const char *kind;      /* "power", "ema", "wsm-cosine", ...; "difference" */
    const char *canonical; /* text: reads back as the same average */
    const char *file_part; /* the same as a part of a file's name: "ema2000", "window20000" */
    bool is_average;       /* one average, not a merge of snapshots or a difference */
    /* power: of the profile; both NaN for all others */
    double sigma_rel, gamma;
    bool is_by_gamma;      /* the text has the exponent, not the width */
    uint64_t update_every; /* 0: not in the text */
    struct phema_spec_term *terms;
    size_t n_terms;
    struct phema_arena *arena;
    const char *text;        /* as it was given to phema_specs_find */
    struct phema_spec *next; /* of a list */
};

/* All parsed specs: equal texts share one spec, whose betas are computed once for all ends. */
struct phema_specs {
    struct phema_arena *arena;
    struct phema_spec *first;
    size_t n;
};

/* As many as there can be snapshots in a solve. */
#define PHEMA_MAX_SPECS ((size_t)8192)

/* Longest text [bytes]; longer ones are refused. */
#define PHEMA_SPEC_MAX_SIZE ((size_t)8192)

/* Puts the option before the message of a text that is no SPEC, suggests one that is, and returns
 * the status. */
enum phema_status phema_spec_fail(struct phema_error *err, enum phema_status status,
                                  enum phema_setting setting, const char *text);

/* Parses a SPEC and reads the table that it names. All memory, also of later calls, is of the
 * arena, which must outlive their results.
 * PHEMA_ERR_USAGE   a syntax error, an unknown kind or key; the message lists the known ones
 * PHEMA_ERR_TARGET  a power function that does not exist
 * PHEMA_ERR_FILE    a table that cannot be read or parsed */
PHEMA_FALLIBLE phema_spec_parse(struct phema_spec **out, struct phema_arena *arena,
                                const char *text, struct phema_error *err);

/* Registers the files that the spec was read from as inputs. */
struct phema_claims;
PHEMA_FALLIBLE phema_spec_claim(const struct phema_spec *spec, struct phema_claims *claims,
                                struct phema_error *err);

/* The spec of a text: an existing one, or a new one. Failures as above, and
 * PHEMA_ERR_RESOURCE  more than PHEMA_MAX_SPECS */
PHEMA_FALLIBLE phema_specs_find(struct phema_spec **out, struct phema_specs *specs,
                                const char *text, struct phema_error *err);

/* True for an EMA that is defined step by step: it says itself when it is updated. */
bool phema_spec_is_stepwise(const struct phema_spec *spec);

/* The largest beta of an exponential average; NaN of other averages. */
double phema_spec_decay(const struct phema_spec *spec);

/* Some classes multiply by beta and add 1 - beta times the parameters, which rounds both where the
 * average is float32. True before the first profile of such a spec, unless its text says the
 * arithmetic; and what to call then for snapshots of float32. */
bool phema_spec_asks_dtype(const struct phema_spec *spec);
void phema_spec_set_float32(struct phema_spec *spec);

/* The profile of the average that ends at t. Its betas may continue after t, and are shared by all
 * ends.
 * PHEMA_ERR_INPUTS    a merge or a difference; an average that begins before training; a table
 *                     without a step until t
 * PHEMA_ERR_RESOURCE  too many steps to list */
PHEMA_FALLIBLE phema_spec_profile(struct phema_profile *out, struct phema_spec *spec, double t,
                                  struct phema_error *err);

/* The target of a spec at t. Merges use the last of times [n_times], ascending and distinct, that
 * are not later than t. Failures as above, but PHEMA_ERR_TARGET for PHEMA_ERR_INPUTS. */
PHEMA_FALLIBLE phema_spec_mix(struct phema_mix *out, struct phema_spec *spec, double t,
                              const double *times, size_t n_times, struct phema_error *err);

/* Appends the canonical text of a power function: by its width, or by gamma if the width is NaN. */
void phema_spec_append_power(struct phema_strbuf *text, double sigma_rel, double gamma,
                             uint64_t update_every);

#endif
