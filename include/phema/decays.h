/* decays.h - how the averages of a series were really kept, where the raw parameters are beside
 * them (decay_fit.h), and whether that contradicts their profiles. Only a sample is read. */
#ifndef PHEMA_DECAYS_H
#define PHEMA_DECAYS_H

#include "phema/arena.h"
#include "phema/decay_fit.h"
#include "phema/error.h"
#include "phema/record.h"
#include "phema/series.h"

enum phema_decay_kind {
    PHEMA_DECAYS_UNCLEAR,
    PHEMA_DECAYS_STEADY,  /* one half-life */
    PHEMA_DECAYS_POWER,   /* those of a power function; gamma 0: equal weights since the start */
    PHEMA_DECAYS_SHORT,   /* all of it is newer than the checkpoint before */
    PHEMA_DECAYS_FROZEN,  /* it never moves */
    PHEMA_DECAYS_RAW,     /* it is the raw parameters */
    PHEMA_DECAYS_CLAIMED, /* as its profile says, in most of the time at least */
    PHEMA_DECAYS_VARY,
    PHEMA_DECAYS_EXCHANGED /* the raw parameters look back at it */
};

/* Between two times of an average. */
struct phema_decay_step {
    double from, to, length; /* as named; on the clock of the average */
    struct phema_decay_interval fit;
    double claimed;   /* kept, by the profile; NaN: it says nothing */
    double half_life; /* that keeps so much; NaN: none does, or unclear */
    bool is_refuted;
    bool is_replaced; /* the parameters were, by the average at the begin: nothing is known of it */
};

struct phema_decay_set {
    const char *name;    /* "ema", or its profile */
    const char *claimed; /* SPEC; NULL: unknown */
    const char *fits;    /* of a set without: the SPEC that the decays fit; NULL: none is found */
    double fits_from;    /* named time: not before, where it was a copy, say; NaN: always */
    const char *doubted; /* another SPEC, as far away as the true one may be; NULL: none */
    struct phema_decay_step *steps; /* [n] */
    size_t n, n_fitted;
    enum phema_decay_kind kind;
    double half_life, half_life_spread; /* NaN: of another kind; short: the largest possible */
    double gamma, gamma_spread;         /* NaN likewise */
    struct phema_estimate margin;       /* phema_decay_fit */
    char *events;    /* what happened: "restarted from a copy between 400 and 500"; NULL: nothing */
    bool is_other;   /* one rule fits all decays, and it is far from the profile */
    bool is_refuted; /* the profile is wrong, by far more than chance and the method explain */
};

struct phema_decays {
    struct phema_decay_set *sets; /* [n] */
    size_t n;
    /* of the first set that is refuted: a sentence and what would be right, or PHEMA_SET_NONE */
    char *reason;
    enum phema_setting setting;
    const char *value;
    double from; /* named time: earlier averages are to be left out as well; NaN: none */
    struct phema_arena memory;
};

/* Finds averages with raw parameters of the same times in the series. Where the options leave these
 * out, reads them from the files.
 *   options  of the series; NULL: only what is in the series counts
 *   sample   of the series; NULL: read where there is a need
 * The caller clears the decays, which are empty where no average has raw parameters beside it.
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_decays_find(struct phema_decays *out, const struct phema_series *series,
                                 const struct phema_series_options *options,
                                 const struct phema_sample *sample, struct phema_error *err);
/* The last average without a claimed profile, of so many; NULL: all have one. */
const struct phema_decay_set *phema_decays_find_unclaimed(size_t *n,
                                                          const struct phema_decays *decays);
void phema_decays_clear(struct phema_decays *decays);

/* "half-life 34.3 +- 0.4 steps (decay 0.98)" and what happened. */
void phema_decay_set_describe(struct phema_strbuf *out, const struct phema_decay_set *set,
                              const char *unit);

/* The same with the name, and how many intervals told it: "'ema': half-life ... (from 7 of 7
 * intervals)". */
void phema_decay_set_write(struct phema_strbuf *out, const struct phema_decay_set *set,
                           const char *unit);

/* ---- What is told of them (record.h) ---- */

extern const struct phema_field phema_decay_set_fields[], phema_decay_step_fields[];

#endif
