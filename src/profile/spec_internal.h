/* spec_internal.h - the parts of a parsed SPEC: kinds, their keys and values. */
#ifndef PROFILE_SPEC_INTERNAL_H
#define PROFILE_SPEC_INTERNAL_H

#include "phema/profile.h"

#define SPEC_MAX_KEYS 6

enum spec_build {
    BUILD_POWER,
    BUILD_EMA,
    BUILD_RAMPED,
    BUILD_DIFFUSERS,
    BUILD_WINDOW,
    BUILD_COSINE,
    BUILD_MINUS_SQRT,
    BUILD_RAW,
    BUILD_TABLE,
    /* merges of snapshots */
    BUILD_UNIFORM,
    BUILD_ASCENDING,
    BUILD_RECURSIVE,
    BUILD_WSM_LINEAR,
    BUILD_WSM_COSINE,
    BUILD_WSM_MINUS_SQRT
};

enum spec_type { SPEC_NUMBER, SPEC_COUNT, SPEC_YES_NO };

struct spec_key {
    const char *name;
    enum spec_type type;
    double lowest, highest; /* both allowed */
    const char *expected;   /* for messages */
    double otherwise;       /* the default; NaN: none */
    bool is_needed;
};

struct spec_kind {
    const char *name;
    enum spec_build build;
    struct spec_key keys[SPEC_MAX_KEYS]; /* a value without a name belongs to the first */
    bool is_bare;                        /* its one key needs no name */
    bool takes_path;
};

struct phema_spec_term {
    const struct spec_kind *kind;
    double values[SPEC_MAX_KEYS]; /* NaN: neither given nor a default */
    const char *path;             /* table */
    /* table, diffusers: all steps computed so far, the same for every end */
    struct phema_betas known;
    uint64_t *steps;
    double *betas;
    size_t capacity;
};

static inline bool spec_is_merge(const struct spec_kind *kind)
{
    return kind->build >= BUILD_UNIFORM;
}

/* The value of a key by its name. */
double spec_value(const struct phema_spec_term *term, const char *key);

/* ---- beta_table.c ---- */

/* Most steps of one table: enough for a long training, and bounded memory. */
#define SPEC_MAX_STEPS ((size_t)1 << 24)
/* Of all texts of a series or a plan together: a manifest may hold any number of them. */
#define SPEC_MAX_BYTES ((size_t)2 << 30)

/* PHEMA_ERR_FILE  the file cannot be read, or is not a table of steps and betas */
PHEMA_FALLIBLE spec_read_table(struct phema_spec_term *term, struct phema_arena *arena,
                               struct phema_error *err);
/* The recurrence until t or later, shared by all profiles of the term. */
PHEMA_FALLIBLE spec_betas(const struct phema_betas **out, struct phema_spec_term *term, double t,
                          struct phema_arena *arena, struct phema_error *err);

/* ---- quad_math.c: the nearest doubles, so that every machine has the same ---- */

double rounded_half_life(double decay);                       /* ln 0.5 / ln decay */
double rounded_one_minus_power(double base, double exponent); /* 1 - base^-exponent */
/* decay(i/n) - decay((i+1)/n), 1 - decay(1/n) for i = 0, decay(i/n) for the last; of cosine, minus
 * sqrt */
double rounded_cosine_step(size_t i, size_t n);
double rounded_minus_sqrt_step(size_t i, size_t n);

#endif
