/* spec.h - a parsed SPEC: kinds, their keys and values, and the steps from text to profile. */
#ifndef PROFILE_SPEC_H
#define PROFILE_SPEC_H

#include "phema/profile.h"
#include "phema/span.h"

#define SPEC_MAX_KEYS 7

enum spec_build {
    BUILD_POWER,
    /* EMAs defined step by step */
    BUILD_EMA,
    BUILD_RAMPED,
    BUILD_DIFFUSERS,
    BUILD_TITAN,
    BUILD_LIGHTNING,
    BUILD_COSMOS,
    /* other averages */
    BUILD_WINDOW,
    BUILD_COSINE,
    BUILD_MINUS_SQRT,
    BUILD_RAW,
    BUILD_TABLE,
    /* an average and the parameters at two times */
    BUILD_BEMA,
    /* merges of snapshots */
    BUILD_UNIFORM,
    BUILD_ASCENDING,
    BUILD_RECURSIVE,
    BUILD_WSM_LINEAR,
    BUILD_WSM_COSINE,
    BUILD_WSM_MINUS_SQRT
};

enum spec_type { SPEC_NUMBER, SPEC_TIME, SPEC_COUNT, SPEC_YES_NO, SPEC_CHOICE };

struct spec_key {
    const char *name;
    enum spec_type type;
    double lowest, highest; /* both allowed */
    const char *expected;   /* for messages; of a choice its words, "one|another", by index */
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
    /* profiles that are tables: all steps computed so far, the same for every end */
    struct phema_betas known;
    uint64_t n_followed; /* steps of a trainer up to here are known */
    uint64_t *steps;
    double *betas;
    size_t capacity;
};

/* ---- spec_kinds.c ---- */

/* NULL: unknown name. */
const struct spec_kind *spec_kind_find(const char *name, size_t size);
size_t spec_n_keys(const struct spec_kind *kind);
/* Fails: no kind, or no key of a kind that is given, has this name. The message lists those there
 * are. */
PHEMA_FALLIBLE spec_fail_unknown(const struct spec_kind *kind, const char *name, size_t size,
                                 struct phema_error *err);

/* The value of a key by its name; NaN also where the kind does not have the key. */
double spec_value(const struct phema_spec_term *term, const char *key);

/* The index of a word of a choice; NaN: it has none such. And the word of an index. */
double spec_choice_find(const struct spec_key *key, const char *word);
struct phema_span spec_choice_word(const struct spec_key *key, double index);

/* ---- spec_resolve.c: both numbers of a power function. ---- */

/* PHEMA_ERR_TARGET  no such function exists */
PHEMA_FALLIBLE spec_resolve_power(double *sigma_rel, double *gamma,
                                  const struct phema_spec_term *term, struct phema_error *err);

/* ---- betas.c ---- */

/* How titan:counting counts its updates, by index of the word. */
enum titan_counting { TITAN_COUNT, TITAN_COUNTER, TITAN_FLOOR, TITAN_STEPS };
#define TITAN_COUNTINGS "count|counter|floor|steps"

/* TRL's BEMACallback: its last update until t, or 0; and the factor of the bias there. */
double spec_bema_update(const struct phema_spec_term *term, double t);
double spec_bema_factor(const struct phema_spec_term *term, double update);

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

#endif
