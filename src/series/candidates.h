/* candidates.h - the list of candidates: files and manifest entries that may become snapshots, with
 * the facts their names give before any file is opened. */
#ifndef SERIES_CANDIDATES_H
#define SERIES_CANDIDATES_H

#include "layouts.h"
#include "phema/arena.h"
#include "phema/profile.h"
#include "phema/series.h"
#include "phema/strbuf.h"

struct candidate {
    const char *path;                    /* NULL in a manifest without files */
    const char *label;                   /* relative to SNAPSHOTS */
    const char *base;                    /* last component of the path: patterns match it */
    double named_time, sigma_rel, gamma; /* NaN: unknown */
    double sigma_slack;                  /* half a unit of the last digit in the name */
    uint64_t index;                      /* of the width, UINT64_MAX: unknown */
    uint64_t update_every;               /* 0: unknown */
    struct phema_spec *spec;             /* of another shape than power; NULL: unknown */
    bool is_raw_inside;                  /* the metadata declare raw parameters, as spec does */
    struct phema_span prefix;            /* of the name: distinguishes series */
    bool is_by_gamma;                    /* the exponent was given, the width follows */
    bool is_left_out;
};

/* Grows while the series is read; everything lives in the arena. */
struct candidate_list {
    struct phema_arena *arena;
    struct phema_specs specs; /* in memory that the series keeps: profiles borrow from them */
    struct candidate *items;
    size_t n, capacity;
    const struct layout *layout;
    const char *unit;           /* from a manifest, or NULL */
    bool asks_for_raw;          /* --input-profile raw */
    bool is_numbered;           /* INDEX.STEP.pt: the files tell which of two libraries wrote it */
    struct phema_strbuf *notes; /* sentences, each ended by a NUL */
};

/* An empty candidate at the end; NULL when there is no memory. */
struct candidate *candidates_add(struct candidate_list *candidates);

/* Adds a sentence for the user, such as a reason why a file is left out. */
void candidates_note(struct candidate_list *candidates, const char *format, ...) PHEMA_PRINTF(2, 3);

#endif
