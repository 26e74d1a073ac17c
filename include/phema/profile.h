/* profile.h - averaging profiles over training time, as numbers, curves and texts.
 * No tensors. Eq. and Alg. are of arXiv:2312.02696, (N1) ... of docs/numerics.md. */
#ifndef PHEMA_PROFILE_H
#define PHEMA_PROFILE_H

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/strbuf.h"

/* The shapes of averaging profiles (N1), (N2). T is the end of the profile, F(t) the weight on the
 * parameters before t, F(0) what of it is on those before training. */
enum phema_shape {
    PHEMA_SHAPE_POWER,  /* gamma: F = (t/T)^(gamma+1) (eq. 123) */
    PHEMA_SHAPE_EMA,    /* half_life: F = 2^-((T-t)/half_life); beta = 2^(-1/half_life) a step */
    PHEMA_SHAPE_RAMPED, /* half_life, ramp: at t the half-life is min(half_life, ramp t), EDM2's
                         * ema_rampup_ratio: a power function of exponent ln 2/ramp, then an EMA */
    PHEMA_SHAPE_WINDOW, /* length: uniform over (T - length, T] */
    PHEMA_SHAPE_COSINE, /* length: 1 - F = (1 + cos(pi x))/2, x = (t - (T - length)) / length */
    PHEMA_SHAPE_MINUS_SQRT, /* length: 1 - F = 1 - sqrt(x) */
    PHEMA_SHAPE_RAW,        /* the parameters at T themselves */
    PHEMA_SHAPE_TABLE       /* betas: e = beta e + (1 - beta) theta at the steps that are listed */
};

/* A recurrence step by step (N19); steps ascending from 1 on, betas in [0, 1]. Nothing happens at
 * steps that are not listed; before the first, e is what the parameters were before training. */
struct phema_betas {
    const uint64_t *steps; /* [n] */
    const double *betas;   /* [n] */
    size_t n;
};

/* How a snapshot or a target weighs the past. A power-function EMA that is updated at every step:
 * p(tau) = (gamma+1) tau^gamma / t^(gamma+1) on [0, t] (eq. 123). With update_every U > 1: the
 * average is touched at steps 1, 1+U, 1+2U, ... only, with beta = (c/(c+1))^(gamma+1) at step c
 * (N18), and starts as a copy of the parameters of step 1 (ema-pytorch, pytorch-posthoc-ema). t
 * must then be a whole number of steps. As soon as one profile of a set has U > 1, or is a table,
 * the whole set is treated step by step; a power function with U = 1 by the exact beta(c) =
 * ((c-1)/c)^(gamma+1), the other shapes by beta(c) = F(c-1)/F(c). Where all that have U > 1 have
 * the same, densities are compared at a resolution of U steps: an average that is touched every U
 * steps is a comb, which no weights make smooth. A raw snapshot has no density; step by step, and
 * beside densities, it counts as one unit of time wide. */
struct phema_profile {
    double gamma;          /* power: exponent [1], > -1/2 */
    double t;              /* end of the profile [one unit per run], > 0, < 2^53 */
    uint64_t update_every; /* power: [steps], 0 means 1 */
    const char *label;     /* for messages: a file's name; borrowed */
    enum phema_shape shape;
    double half_life;                /* ema, ramped: [time] */
    double ramp;                     /* ramped: > 0 */
    double length;                   /* window, cosine, minus-sqrt: [time], at most t */
    const struct phema_betas *betas; /* table: borrowed */
};

/* What is wanted: a sum of profiles, each times its factor. Factors add up to 1, or to 0 for the
 * difference of two averages (a task vector): then so do the weights (N7). */
struct phema_mix {
    const struct phema_profile *parts; /* [n_parts] */
    const double *factors;             /* [n_parts]; NULL: one part, once */
    size_t n_parts;
};

#define PHEMA_SIGMA_REL_LIMIT    0.289    /* EDM2: 0 < sigma_rel < 0.289 */
#define PHEMA_SIGMA_REL_SUPREMUM 0.300283 /* no power function has more */

/* Largest real root of g^3 + 7 g^2 + (16 - s^-2) g + (12 - s^-2) = 0 (Alg. 2), by Newton from
 * above. PHEMA_ERR_TARGET when sigma_rel is not in (0, 0.289); the message teaches. */
PHEMA_FALLIBLE phema_gamma_from_sigma_rel(double *gamma, double sigma_rel, struct phema_error *err);
/* sqrt(gamma+1) / ((gamma+2) sqrt(gamma+3)) (eq. 126); gamma > -1 */
double phema_sigma_rel_from_gamma(double gamma);
/* (1 - 1/step)^(gamma+1) (eq. 127), correctly rounded on every machine (computed in quad). */
double phema_power_beta(double gamma, uint64_t step);
/* What the average of this shape keeps of itself at a step, e = beta e + (1 - beta) theta, steps
 * counted from 1; correctly rounded as above. Power: with the profile's update_every. EMA: at every
 * step, so that some of the parameters before training stays. Ramped: by the half-life
 * min(half_life, ramp step), as EDM2 has it. Window, cosine, minus-sqrt: F(step-1)/F(step) with the
 * end t of the profile, 0 up to their begin, 1 after their end. Table: what is listed, or 1. Raw:
 * 0. */
double phema_profile_beta(const struct phema_profile *profile, uint64_t step);
/* Time back from t in which half of the weight lies: t (1 - 2^(-1/(gamma+1))); and its inverse. */
double phema_half_life_from_gamma(double gamma, double t);
PHEMA_FALLIBLE phema_gamma_from_half_life(double *gamma, double half_life, double t,
                                          struct phema_error *err);

/* ---- Profiles as curves ---- */

/* The weight F of a profile on the parameters before each of n times, ascending; of one that a
 * problem was solved or rated with. 1 from the end on; before 0, what lies before training. The
 * mean density between two times is their difference over the time between them, which even a raw
 * snapshot has. Where an average is followed step by step, F is linear between the steps at which
 * it changes: a comb becomes the even weight that densities are compared by. */
void phema_profile_cumulative(double *out, const struct phema_profile *profile, const double *times,
                              size_t n);

/* ---- SPEC: the text that says how an average is taken ----
 * A term is KIND, KIND:VALUE or KIND:KEY=VALUE,... ("power:sigma=0.1", "ema:2000", "window:20k",
 * "raw", "table:FILE"); a difference is two of them with " - " between. Times are on the clock of
 * the averages, in its unit. Not for several threads at once: a spec keeps the betas it has made.
 */

struct phema_spec_term; /* of a difference; of all others there is one */

struct phema_spec {
    const char *kind;      /* "power", "ema", "wsm-cosine", ...; "difference" */
    const char *shown;     /* canonical: reads back as the same average */
    const char *file_part; /* the same as a part of a file's name: "ema2000", "window20000" */
    bool is_average;       /* an average itself, not a merge of snapshots or a difference */
    /* power: of the profile; both NaN for all others */
    double sigma_rel, gamma;
    bool is_by_gamma;      /* the exponent was given, the width follows */
    uint64_t update_every; /* 0: not said */
    struct phema_spec_term *terms;
    size_t n_terms;
    struct phema_arena *arena;
    const char *text;        /* as it was given to phema_specs_find */
    struct phema_spec *next; /* of a list */
};

/* Those that were read: the same text is the same spec, whose betas are made once for all ends. */
struct phema_specs {
    struct phema_arena *arena;
    struct phema_spec *first;
    size_t n;
};

/* As many as there can be snapshots in a solve. */
#define PHEMA_MAX_SPECS ((size_t)8192)

/* What a text may hold of a path and numbers; longer ones are refused. */
#define PHEMA_SPEC_MAX_SIZE ((size_t)8192)

/* Everything lives in arena, what later calls make as well; it must outlive their results. A file
 * that is named is read.
 * PHEMA_ERR_USAGE   what is wrong, and what is known
 * PHEMA_ERR_TARGET  a power function that does not exist
 * PHEMA_ERR_FILE    a table that cannot be read, or is none */
PHEMA_FALLIBLE phema_spec_parse(struct phema_spec **out, struct phema_arena *arena,
                                const char *text, struct phema_error *err);

/* Notes the files that it was read from as inputs. */
struct phema_claims;
PHEMA_FALLIBLE phema_spec_claim(const struct phema_spec *spec, struct phema_claims *claims,
                                struct phema_error *err);

/* The spec of that text: one that is there, or a new one. Failures as above, and
 * PHEMA_ERR_RESOURCE when there are too many. */
PHEMA_FALLIBLE phema_specs_find(struct phema_spec **out, struct phema_specs *specs,
                                const char *text, struct phema_error *err);

/* The average that ends at t. Betas may go on behind it, and are the same for all ends.
 * PHEMA_ERR_INPUTS    it is a merge or a difference; it begins before the training does; a table
 *                     without a step until t
 * PHEMA_ERR_RESOURCE  too many steps to list */
PHEMA_FALLIBLE phema_spec_profile(struct phema_profile *out, struct phema_spec *spec, double t,
                                  struct phema_error *err);

/* What is wanted at t. Merges take the last of times [n_times], ascending and distinct, that are
 * not later than t. Failures as above, but PHEMA_ERR_TARGET for PHEMA_ERR_INPUTS. */
PHEMA_FALLIBLE phema_spec_mix(struct phema_mix *out, struct phema_spec *spec, double t,
                              const double *times, size_t n_times, struct phema_error *err);

/* The canonical text of a power function, whose width is given unless it is NaN. */
void phema_spec_put_power(struct phema_strbuf *text, double sigma_rel, double gamma,
                          uint64_t update_every);

#endif
