/* open_snapshots.h - a series while its files are opened. */
#ifndef SERIES_OPEN_SNAPSHOTS_H
#define SERIES_OPEN_SNAPSHOTS_H

#include "discover.h"
#include "subtree.h"
#include "tensor_table.h"

/* What is needed while a series is opened, and freed after. */
struct opening {
    const struct phema_series_options *options;
    struct phema_series *series;
    struct phema_arena scratch;
    struct phema_strbuf notes;
    struct discovery scan;
    struct tensor_filter selection;
    struct tensor_table tensor_table;
    size_t capacity;   /* of the series' snapshots */
    bool looks_inside; /* files that say no more than their names are opened as well */
    struct phema_spec **input_profiles; /* [options->n_input_profiles] */
    bool is_subtree_chosen;
    struct subtree subtree;
    /* The file at hand, with its listing, and whether a snapshot owns it already. */
    struct phema_checkpoint *checkpoint;
    const char *path;
    bool is_owned;
};

/* Turns the candidates that are left into the snapshots of the series.
 * PHEMA_ERR_INPUTS when there are none, or they do not agree */
PHEMA_FALLIBLE opening_add_all(struct opening *opening, struct phema_error *err);

/* Lets go of the file at hand; to be called once more when all is done, or has failed. */
void opening_release(struct opening *opening);

/* ---- series.c ---- */

/* Closes the files of all snapshots; there are none afterwards. */
void series_clear_snapshots(struct phema_series *series);

/* ---- profiles.c ---- */

/* --input-profile, before names and files are read.
 * PHEMA_ERR_USAGE, PHEMA_ERR_INPUTS, PHEMA_ERR_FILE: none of spec.h, or no average */
PHEMA_FALLIBLE profiles_read(struct opening *opening, struct phema_error *err);

/* Whether the options say all that a library's files do not. */
bool profile_is_said(const struct opening *opening);

/* What --input-profile says of a candidate of which nothing else says it. */
PHEMA_FALLIBLE profile_find(const struct opening *opening, struct candidate *candidate,
                            struct phema_error *err);

/* How the snapshot was averaged, by what widths_find has found; its time is known. */
PHEMA_FALLIBLE profile_set(struct opening *opening, struct phema_snapshot *snapshot,
                           const struct candidate *candidate, struct phema_error *err);

/* ---- widths.c ---- */

/* A library that writes no widths: the command that would do with its defaults. */
PHEMA_FALLIBLE widths_fail_unsaid(const struct opening *opening, struct phema_error *err);

/* Fills in the candidate's width and exponent, and how often it was updated.
 * PHEMA_ERR_INPUTS when nothing says them, or they are impossible */
PHEMA_FALLIBLE widths_find(const struct opening *opening, struct candidate *candidate,
                           struct phema_error *err);

/* Whether a width from inside the file may be what the name or the manifest says; take it; or say
 * that none of those in KEY.stds is. */
bool width_is_meant(const struct candidate *candidate, double width);
void width_take(struct candidate *candidate, double width);
PHEMA_FALLIBLE width_fail(const struct candidate *candidate, const char *key,
                          struct phema_error *err);

#endif
