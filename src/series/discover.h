/* discover.h - SNAPSHOTS becomes a list of candidates: what the names and the manifest say, before
 * any file is opened. */
#ifndef SERIES_DISCOVER_H
#define SERIES_DISCOVER_H

#include "layouts.h"
#include "phema/arena.h"
#include "phema/profile.h"
#include "phema/series.h"
#include "phema/strbuf.h"

struct candidate {
    const char *path;                    /* NULL in a manifest without files */
    const char *label;                   /* relative to SNAPSHOTS */
    const char *base;                    /* last component of the path: what patterns look at */
    double named_time, sigma_rel, gamma; /* NaN: not said */
    double sigma_slack;                  /* half a unit of the last digit a name shows */
    uint64_t index;                      /* of the width, UINT64_MAX: not said */
    uint64_t update_every;               /* 0: not said */
    struct phema_spec *spec;             /* of another shape than power; NULL: not said */
    bool is_raw_inside;                  /* spec is the raw parameters, and the file says so */
    struct phema_span prefix;            /* of the name, to tell series apart */
    bool is_by_gamma;                    /* the exponent was given, the width follows */
    bool is_left_out;
};

/* Grows while the series is read; everything lives in the arena. */
struct discovery {
    struct phema_arena *arena;
    struct phema_specs specs; /* in memory that the series keeps: profiles borrow from them */
    struct candidate *items;
    size_t n, capacity;
    const struct layout *layout;
    const char *unit;  /* from a manifest, or NULL */
    bool asks_for_raw; /* --input-profile raw */
    bool is_numbered;  /* INDEX.STEP.pt: which of the two libraries is for the files to say */
    struct phema_strbuf *notes; /* sentences, each ended by a NUL */
};

void discover_note(struct discovery *scan, const char *format, ...) PHEMA_PRINTF(2, 3);

/* An empty candidate at the end; NULL when there is no memory. */
struct candidate *discover_add(struct discovery *scan);

PHEMA_FALLIBLE discover_snapshots(struct discovery *scan,
                                  const struct phema_series_options *options,
                                  struct phema_error *err);

/* One checkpoint, whose name may say nothing. */
PHEMA_FALLIBLE discover_alone(struct discovery *scan, const struct phema_series_options *options,
                              struct phema_error *err);

/* manifest.c */
PHEMA_FALLIBLE discover_manifest(struct discovery *scan, const char *path, struct phema_error *err);

/* names.c: what each name says, by the layout asked for or the one that is recognised */
PHEMA_FALLIBLE discover_names(struct discovery *scan, const struct phema_series_options *options,
                              struct phema_error *err);

/* choose.c: marks what is left out: outputs of synth, names that say no time, times outside the
 * selection.
 * PHEMA_ERR_INPUTS when the directory holds two series */
PHEMA_FALLIBLE choose_candidates(struct discovery *scan, const struct phema_series_options *options,
                                 struct phema_error *err);

#endif
