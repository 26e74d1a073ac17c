/* spec.h - a parsed SPEC: kinds, their keys and values, and the steps from text to profile. */
#ifndef PROFILE_SPEC_H
#define PROFILE_SPEC_H

#include <string.h>

#include "phema/profile.h"
#include "phema/span.h"

#define SPEC_MAX_KEYS 15

enum spec_build {
    BUILD_POWER,
    /* EMAs defined step by step */
    BUILD_EMA,
    BUILD_RAMPED,
    BUILD_CLASS, /* the class of a library: ema_classes.c */
    BUILD_COSMOS,
    /* other averages */
    BUILD_WINDOW,
    BUILD_COSINE,
    BUILD_MINUS_SQRT,
    BUILD_RAW,
    BUILD_TABLE,
    /* an average and the parameters at two times */
    BUILD_BEMA,
    /* A + lambda (B - A) of the averages whose terms follow */
    BUILD_LINE,
    /* merges of snapshots */
    BUILD_UNIFORM,
    BUILD_ASCENDING,
    BUILD_RECURSIVE,
    BUILD_WSM_LINEAR,
    BUILD_WSM_COSINE,
    BUILD_WSM_MINUS_SQRT,
    BUILD_EXTRAPOLATE
};

/* SPEC_WARMUP: a form and up to SPEC_FORM_NUMBERS numbers, which are values of the nameless keys
 * after it. */
enum spec_type { SPEC_NUMBER, SPEC_TIME, SPEC_COUNT, SPEC_YES_NO, SPEC_CHOICE, SPEC_WARMUP };
#define SPEC_FORM_NUMBERS 2

/* Ranges of keys */
#define A_SHARE     SPEC_NUMBER, 0, 1, "a number from 0 to 1"
#define A_PERIOD    SPEC_COUNT, 1, 1e9, "a count from 1 to 1e9"
#define A_START     SPEC_COUNT, 0, 1e9, "a count up to 1e9"
#define A_SCALE     SPEC_NUMBER, 1e-6, 1e9, "a number from 1e-6 to 1e9"
#define AN_EXPONENT SPEC_NUMBER, 0, 1e3, "a number from 0 to 1000"
#define A_LENGTH    SPEC_NUMBER, 1e-6, 1e15, "a number from 1e-6 to 1e15"
#define A_RAMP      SPEC_NUMBER, 1e-6, 1e6, "a number from 1e-6 to 1e6"

struct spec_key {
    const char *name;
    enum spec_type type;
    double lowest, highest; /* both allowed */
    const char *expected;   /* for messages; of a choice its words, "one|another", by index */
    double otherwise;       /* the default; NaN: none */
    bool is_needed;
};

/* ---- ema_rule.c: one family of recurrences, docs/numerics.md ---- */

/* The form of a warm-up, by index of its row there. */
enum spec_form {
    FORM_NONE,
    FORM_RATIO,
    FORM_POWER,
    FORM_EXP,
    FORM_LINEAR,
    FORM_COSINE,
    FORM_RAMP,
    FORM_KARRAS
};

/* What steps up to the start do. COPIES: the updates of these steps copy the parameters; FOLLOWS:
 * all of them do. */
enum spec_before { BEFORE_HOLDS, BEFORE_COPIES, BEFORE_FOLLOWS };
#define SPEC_BEFORE "hold|copy|follow"

/* Steps k, from 1 on, that are phase modulo every and later than start are updates,
 * e = beta e + (1 - beta) theta with beta = f(n) of the form, at least `least` and at most `most`;
 * n = k - start + offset, or the number of the update + offset. */
struct spec_rule {
    enum spec_form form;
    double numbers[SPEC_FORM_NUMBERS];
    double most, least;
    double every, phase, start, offset;
    double lowest_n; /* n is at least this */
    enum spec_before before;
    bool copies_first; /* the first update has beta 0 */
    bool counts_updates;
    bool begins_with_0; /* from zeros, divided by the sum of its weights */
    bool is_scaled;     /* files are not divided by it */
    bool is_mul_f32;    /* beta and 1 - beta are rounded to float32, and their sum is not 1 */
};

struct phema_spec_term;

struct spec_kind {
    const char *name;
    enum spec_build build;
    struct spec_key keys[SPEC_MAX_KEYS]; /* a value without a name belongs to the first */
    bool is_bare;                        /* its one key needs no name */
    bool takes_path;
    /* of classes: changes the rule that the keys decay, every, start and arithmetic have set */
    void (*set_rule)(struct spec_rule *rule, const struct phema_spec_term *term);
    const char *of_class;  /* and its version */
    bool has_alternatives; /* its first two keys exclude each other */
};

struct phema_spec_term {
    const struct spec_kind *kind;
    double values[SPEC_MAX_KEYS]; /* NaN: neither given nor a default */
    const char *path;             /* table */
    double factor;                /* in the sum */
    /* profiles that are tables: all steps computed so far, the same for every end */
    struct phema_betas known;
    uint64_t n_followed; /* steps of a trainer up to here are known */
    uint64_t *steps;
    double *betas, *scales;
    size_t capacity;
    struct spec_rule rule;
    bool is_stepped; /* the rule has no closed form */
    uint64_t n_updates;
    double sum; /* of the weights of a rule where it is not 1 */
};

static inline size_t spec_n_keys(const struct spec_kind *kind)
{
    size_t n = 0;
    while (n < SPEC_MAX_KEYS && kind->keys[n].name)
        n++;
    return n;
}

/* The value of a key, and after it those of the nameless keys that follow; NULL: no such key. */
static inline const double *spec_find_value(const struct phema_spec_term *term, const char *key)
{
    for (size_t i = 0; i < spec_n_keys(term->kind); i++)
        if (strcmp(term->kind->keys[i].name, key) == 0)
            return &term->values[i];
    return NULL;
}

/* The value of a key by its name; NaN also where the kind does not have the key. */
static inline double spec_value(const struct phema_spec_term *term, const char *key)
{
    const double *value = spec_find_value(term, key);
    return value ? *value : PHEMA_UNKNOWN;
}

/* ---- ema_classes.c ---- */

extern const struct spec_kind spec_classes[];
extern const size_t spec_n_classes;

/* ---- ema_rule.c ---- */

/* Ranges and defaults of the numbers of each form of warm-up, whose names are those of the key. */
extern const struct spec_warmup {
    struct spec_key numbers[SPEC_FORM_NUMBERS];
} spec_warmups[];
#define SPEC_WARMUPS "none|ratio|power|exp|linear|cosine|ramp|karras" /* by enum spec_form */

/* Sets the rule of a term whose values are known. */
void spec_set_rule(struct phema_spec_term *term);
void spec_set_ema(struct spec_rule *rule, const struct phema_spec_term *term);
void spec_set_form(struct spec_rule *rule, enum spec_form form, double a, double b);
double spec_decay_of_half_life(double half_life);
/* 1 - base^-exponent, correctly rounded */
double spec_one_minus_power(double base, double exponent);
/* The beta of a step, from 1 on, of all steps in order; false: the average does not change. */
bool spec_rule_beta(double *beta, struct phema_spec_term *term, uint64_t step);

/* ---- spec_kinds.c ---- */

/* NULL: unknown name. */
const struct spec_kind *spec_kind_find(const char *name, size_t size);
/* Fails: no kind, or no key of a kind that is given, has this name. The message lists those there
 * are. */
PHEMA_FALLIBLE spec_fail_unknown(const struct spec_kind *kind, const char *name, size_t size,
                                 struct phema_error *err);

/* The index of a word of a choice; NaN: it has none such. And the word of an index. */
double spec_choice_find(const struct spec_key *key, const char *word);
struct phema_span spec_choice_word(const struct spec_key *key, double index);

/* ---- spec_resolve.c: both numbers of a power function. ---- */

/* PHEMA_ERR_TARGET  no such function exists */
PHEMA_FALLIBLE spec_resolve_power(double *sigma_rel, double *gamma,
                                  const struct phema_spec_term *term, struct phema_error *err);

/* ---- betas.c ---- */

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
