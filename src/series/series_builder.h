/* series_builder.h - a series while it is opened, and the steps that fill it. */
#ifndef SERIES_SERIES_BUILDER_H
#define SERIES_SERIES_BUILDER_H

#include "candidates.h"
#include "tensor_table.h"

/* Needed while a series is opened, freed afterwards. */
struct series_builder {
    const struct phema_series_options *options;
    struct phema_series *series;
    struct phema_arena scratch;
    struct candidate_list candidates;
    struct tensor_filter filter;
    struct tensor_table tensor_table;
    size_t capacity;     /* of the series' snapshots */
    bool opens_optional; /* files that add nothing to their names are opened as well */
    struct phema_spec **input_profiles;  /* [options->n_input_profiles] */
    struct set_scheme scheme;            /* of the first file; subtree.key NULL: not chosen yet */
    struct phema_checkpoint *checkpoint; /* the current file, with its listing */
    struct phema_tensor_sets sets;       /* of the current file */
    struct phema_arena sets_memory;      /* holds them */
    bool is_owned;                       /* a snapshot closes the checkpoint */
    bool has_described;                  /* a note says who described a profile */
    double names_behind; /* the trainer's counters inside, of the files so far; NaN: none yet */
    const char
        *frozen; /* digest of the first file's frozen tensors, "": it has none; NULL: no file yet */
    const char *counter; /* inside files: updates of their averages; NULL: none */
};

/* ---- tied_tensors.c: parameters of several names that their trainer averages under one ---- */

/* Fills in builder->filter.ties from all files of the series; the first one is open and listed. Two
 * raw parameters are tied if they have the same bytes, dtype and shape in every checkpoint, and
 * these bytes change between checkpoints or are not all alike: parameters that are ones or zeros
 * from the first step on are equal by chance.
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE tied_tensors_find(struct series_builder *builder, struct phema_error *err);

/* ---- copied_buffers.c ---- */

/* Copies what the averages hold as it was: tensors of at most 1 MiB that change, but have the same
 * bytes in all snapshots of each time, and are running statistics or have raw parameters beside them.
 * Notes say so. All snapshots are open.
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE copied_buffers_find(struct series_builder *builder, struct phema_error *err);

/* ---- tensor_notes.c ---- */

/* Notes on tensors that are not averaged as all others are. The table has those of the first file.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE tensor_notes_add(struct series_builder *builder, struct phema_error *err);

/* The same on tensors that copied_buffers_find copies, and on running statistics.
 *   is_told  two snapshots of one time tell whether their class averaged these
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE tensor_notes_add_buffers(struct series_builder *builder, bool is_told,
                                        struct phema_error *err);

/* ---- recognised.c ---- */

/* Adds a file, or a set of one, that is left out. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE recognised_leave_out(struct candidate_list *candidates, const char *label,
                                    const char *reason, struct phema_error *err);
/* Adds the candidates that are left out for a reason. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE recognised_collect(struct candidate_list *candidates, struct phema_error *err);
/* Gives the series what its candidates were taken to be. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE recognised_keep(struct series_builder *builder, struct phema_error *err);
/* The sentences that say so, each ended by a NUL, after all are collected. */
void recognised_tell(struct phema_strbuf *out, const struct candidate_list *candidates);

/* ---- update_counts.c ---- */

/* The updates that the average of the current set counts inside the file; NaN: none are counted.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE update_count_read(struct series_builder *builder, double *out,
                                 struct phema_error *err);

/* Compares the counts with the profiles, which are known. A contradiction is a warning where
 * profiles are not needed.
 * PHEMA_ERR_INPUTS    no average of such a profile counts so
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE update_counts_check(struct series_builder *builder, struct phema_error *err);

/* ---- open_snapshots.c ---- */

/* Turns the candidates that are not left out into the snapshots of the series.
 * PHEMA_ERR_FILE      a file cannot be read or is corrupt
 * PHEMA_ERR_INPUTS    no candidates, or their tensors or metadata disagree
 * PHEMA_ERR_RESOURCE  no memory, or more than max_ram_bytes would be needed */
PHEMA_FALLIBLE open_snapshots(struct series_builder *builder, struct phema_error *err);

/* Closes the files of all snapshots and removes the snapshots. */
void series_clear_snapshots(struct phema_series *series);

/* ---- file_snapshots.c ---- */

/* A copy in memory that the series keeps; NULL of NULL, or where there is no memory. */
char *series_keep_text(struct series_builder *builder, const char *text);

/* Pickles of some trainers add nothing to their names. All other files have headers that are read quickly and
 * that the weights depend on: dtypes, update_every. */
bool snapshot_needs_file(const struct series_builder *builder, const struct candidate *candidate);

/* Adds a snapshot of the current file, or of none, to the series.
 *   key  the candidate's own part of the file; NULL: the series' subtree
 * Failures as open_snapshots */
PHEMA_FALLIBLE snapshot_add(struct series_builder *builder, struct candidate *candidate,
                            const char *key, struct phema_error *err);

/* Adds those of the current file: of its sets those that the options ask for. A file without any is left
 * out: the last checkpoint of a training may have raw parameters alone.
 * Failures as open_snapshots */
PHEMA_FALLIBLE file_snapshots_add(struct series_builder *builder, struct candidate *file,
                                  struct phema_error *err);

/* ---- snapshot_profile.c ---- */

/* Parses --input-profile, before names and files are read.
 * PHEMA_ERR_USAGE     an invalid SPEC, one of several snapshots, or --input-sigma as well
 * PHEMA_ERR_INPUTS    an average that does not exist
 * PHEMA_ERR_FILE      a table cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE input_profiles_read(struct series_builder *builder, struct phema_error *err);

/* For a library that writes neither widths nor update_every into its files.
 * PHEMA_ERR_INPUTS  the options lack them; the remedy is the command with that library's
 *                   defaults */
PHEMA_FALLIBLE input_profiles_check(const struct series_builder *builder, struct phema_error *err);

/* Sets width or SPEC of a candidate that is one set of a trainer: from the file, by
 * --input-profile and --input-sigma, or as the trainer's default, which a note says.
 * PHEMA_ERR_INPUTS    the file's profile is impossible, or the options disagree with it
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE set_profile_find(struct series_builder *builder, struct candidate *candidate,
                                const struct phema_tensor_set *set, struct phema_error *err);

/* Sets the snapshot's profile, kind and spec from its candidate and the options. Its time is known.
 * PHEMA_ERR_INPUTS    the profile is unknown, impossible or given twice
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE snapshot_profile_set(struct series_builder *builder, struct phema_snapshot *snapshot,
                                    struct candidate *candidate, struct phema_error *err);

/* --reset-at: changes the profiles of the snapshots after a reset. All snapshots and the clock of
 * the series are known.
 * PHEMA_ERR_USAGE     an invalid time
 * PHEMA_ERR_INPUTS    no snapshot is later than a reset, or a profile cannot be reset
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE profile_resets_apply(struct series_builder *builder, struct phema_error *err);

#endif
