/* spec.h - the texts that say how an average is taken, and the profiles they stand for. A term is
 * KIND, KIND:VALUE or KIND:KEY=VALUE,... ("power:sigma=0.1", "ema:2000", "window:20k", "raw",
 * "table:FILE"); a difference is two of them with " - " between. Times are on the clock of the
 * averages, in its unit. Not for several threads at once: a spec keeps the betas it has made. */
#ifndef PHEMA_SPEC_H
#define PHEMA_SPEC_H

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/profile.h"
#include "phema/text.h"

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
void phema_spec_put_power(struct phema_text *text, double sigma_rel, double gamma,
                          uint64_t update_every);

#endif
