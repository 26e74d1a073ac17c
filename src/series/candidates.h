/* candidates.h - known layouts, the list of files and manifest entries that may become snapshots,
 * and the steps from SNAPSHOTS to the candidates that are wanted. No tensor is read. */
#ifndef SERIES_CANDIDATES_H
#define SERIES_CANDIDATES_H

#include "phema/arena.h"
#include "phema/profile.h"
#include "phema/series.h"
#include "phema/strbuf.h"

/* ---- layouts.c: known trainers ---- */

struct layout {
    const char *name;    /* of --layout and listings */
    const char *library; /* its writer, where a message needs it */
    const char *pattern; /* of names, groups time, sigma or index, prefix; NULL: none */
    const char *unit;
    double (*clock)(double named_time); /* time of a named time; NULL: equal */
    const char *subtree;                /* averaged unless --key says otherwise; NULL: all */
    /* the counter inside the file: time on the clock, or counts_per_time times the named time */
    const char *counter;    /* NULL: none */
    double counts_per_time; /* the division rounds down */
    bool is_labelled_only;  /* files lack sigma: --input-sigma and --update-every are needed */
    bool has_step_inside;   /* the tensor 'step', not the name, is the clock of the average */
    double usual_ahead;     /* of the names, of that clock */
    uint64_t default_update_every; /* documented by the library */
    const char *default_sigmas;
    bool is_tried; /* on names of which nobody says whose they are */
    bool is_plain; /* names that many trainers use, so that what lies inside or beside decides */
    bool names_folders; /* of which others may lie beside the model */
    bool may_be_raw;    /* nothing in the files says that they are averages */
    bool names_say_all; /* what files add is not needed for weights */
    const char
        *state; /* beginning of names of files that hold the same averages again; NULL: none */
    const char *mark[2]; /* of these files in a folder one tells it from others of the same names */
    const char *last;    /* file that is written last into a folder; NULL: none */
};

/* All that have a name for --layout, then NULL. */
extern const struct layout *const layouts[];

/* The layout of that name, or NULL. */
const struct layout *layout_find(const char *name);

extern const struct layout layout_own, layout_edm2, layout_ema_pytorch, layout_posthoc_ema,
    layout_lightning, layout_hf, layout_torchtitan, layout_cosmos, layout_flux_action,
    layout_megatron, layout_edm2_pt, layout_mirai, layout_steps, layout_manifest, layout_custom;

/* Whether a name is that of a layout's state. EDM2's training states hold in float32 what its pickles
 * hold in float16. */
bool layout_names_state(const struct layout *layout, const char *base);

/* ---- candidates.c: the list ---- */

/* With the facts that its name gives before any file is opened. */
struct candidate {
    const char *path;                    /* NULL in a manifest without files */
    const char *label;                   /* relative to SNAPSHOTS */
    const char *base;                    /* last component of the path: patterns match it */
    double named_time, sigma_rel, gamma; /* NaN: unknown */
    double sigma_slack;                  /* half a unit of the last digit in the name */
    uint64_t index;                      /* of the width, UINT64_MAX: unknown */
    uint64_t update_every;               /* 0: unknown */
    struct phema_spec *spec;             /* of another shape than power; NULL: unknown */
    bool is_assumed;                     /* the profile is a trainer's default */
    bool is_raw_inside;                  /* the metadata declare raw parameters, as spec does */
    struct phema_span prefix;            /* of the name: distinguishes series */
    struct phema_span time_text;         /* of the base: its number; or empty */
    bool is_by_gamma;                    /* the exponent was given, the width follows */
    const char *run;                     /* id of its training; NULL: unknown */
    bool is_excluded;                    /* with --exclude-file */
    bool is_left_out;
    const char *reason;  /* why, for the user; NULL: it is no checkpoint, or not asked for */
    bool is_undescribed; /* the listing shows that no provenance lies beside or in it */
};

/* Grows while the series is read; everything lives in the arena. */
struct candidate_list {
    struct phema_arena *arena;
    struct phema_specs specs; /* in memory that the series keeps: profiles borrow from them */
    struct candidate *items;
    size_t n;
    const struct layout *layout;
    const char *unit;        /* from a manifest, or NULL */
    bool has_counter;        /* times are those of a counter inside */
    const char *unit_inside; /* what a value inside says that names count; NULL: nothing does */
    bool asks_for_raw;       /* --input-profile raw */
    bool leaves_out_raw;     /* parameters, beside their averages */
    bool is_one_file;        /* SNAPSHOTS is one file, which is no manifest */
    bool has_several;        /* SNAPSHOTS are several, so that labels are whole paths */
    bool may_be_parts;       /* the files may be parts of one checkpoint: "model_0", "rng_0" */
    bool takes_merged;       /* names of merges count, since --name-regex chose them */
    bool has_families;    /* numbers in names other than the time tell files apart: "ema_0.99_50" */
    bool has_times;       /* they are known, and --from and --to have chosen among them */
    bool is_out_of_range; /* --from and --to leave none of the snapshots */
    bool by_content;      /* no name of a checkpoint has a time: their first bytes tell them */
    bool is_numbered;     /* INDEX.STEP.pt: the files tell which of two libraries wrote it */
    struct phema_recognised recognised;  /* times and sets as known so far */
    const char *times_note, *sets_note;  /* that say so; NULL: nothing surprising */
    struct phema_strbuf notes, warnings; /* sentences, each ended by a NUL; the owner clears them */
    size_t n_outputs;                    /* left out because posthoc-ema has made them */
    const char *output;                  /* the path of the first of them */
    const char *key_to_choose; /* of one of several averages, of which profiles need one; or NULL */
    const char *unreadable;    /* label of a directory that is left out since it is no complete
                                 * checkpoint, ... */
    const char *fault;         /* ... and why, as the end of a sentence; NULL: none */
    const struct candidate *damaged; /* cannot be opened, which ended the series; NULL: none */
};

/* Whether a file is a checkpoint, by its name or, as far as these decide, its first bytes. */
bool candidate_is_checkpoint(const struct candidate_list *candidates,
                             const struct candidate *candidate);

/* Opens its checkpoint; one that cannot be read is noted as damaged. Fails as
 * phema_checkpoint_open. */
PHEMA_FALLIBLE candidate_open(struct phema_checkpoint **out, struct candidate_list *candidates,
                              const struct candidate *candidate,
                              const struct phema_checkpoint_options *options,
                              struct phema_error *err);

/* An empty candidate at the end; NULL when there is no memory. */
struct candidate *candidates_add(struct candidate_list *candidates);

/* Adds a sentence for the user. */
void candidates_note(struct candidate_list *candidates, const char *format, ...) PHEMA_PRINTF(2, 3);

/* The same for a reason why averages may not be what was asked for. */
void candidates_warn(struct candidate_list *candidates, const char *format, ...) PHEMA_PRINTF(2, 3);

/* Before names are read once more: nothing is known of the candidates. */
void candidates_forget(struct candidate_list *candidates);

/* Says that the times are in the names, where an expression finds them. */
PHEMA_FALLIBLE candidates_tell_field(struct candidate_list *candidates, const char *expression,
                                     struct phema_error *err);

/* Adds to the sets that the series is said to hold (phema/series.h); false: no memory. */
bool candidates_add_set(struct candidate_list *candidates, const char *name, const char *role,
                        const char *by, double margin);

/* Leaves a candidate out. One note has all files of a reason: "left out: 'a' and 2 others, REASON".
 *   reason  lives as long as the candidates */
#define CANDIDATE_IS_OUTPUT "made by posthoc-ema"
void candidates_leave_out(struct candidate_list *candidates, struct candidate *candidate,
                          const char *reason);

/* Whether the user means this one: its name in messages, or its path. */
bool candidate_is_called(const struct candidate *candidate, const char *name);

/* A width from inside the file, and the candidate's name or manifest. */
bool candidate_allows_width(const struct candidate *candidate, double width);
void candidate_set_width(struct candidate *candidate, double width);
/* Sets the profile, of a power function (true) as a number, wherever it was read. */
bool candidate_use_spec(struct candidate *candidate, struct phema_spec *spec);
/* PHEMA_ERR_INPUTS: the candidate allows none of the widths in KEY.stds. */
PHEMA_FALLIBLE candidate_fail_width(const struct candidate *candidate, const char *key,
                                    struct phema_error *err);

/* ---- name_patterns.c ---- */

/* Reads the names by the pattern of --name-regex, of --layout, or of the layout that fits most; those that
 * it does not fit are left out. Again: as if they had not been read.
 * PHEMA_ERR_USAGE     --layout or --name-regex is invalid
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE names_read(struct candidate_list *candidates,
                          const struct phema_series_options *options, struct phema_error *err);
PHEMA_FALLIBLE names_read_again(struct candidate_list *candidates,
                                const struct phema_series_options *options,
                                struct phema_error *err);
/* Whether the pattern of a layout fits one of the names. */
PHEMA_FALLIBLE names_are_known(bool *out, struct candidate_list *candidates,
                               struct phema_error *err);

/* The number of a text like 1000, 0.5, 300k or 1.2M; false: there is none, and it is PHEMA_UNKNOWN. */
bool name_number_read(double *out, struct phema_span text);

/* ---- discover.c ---- */

/* Lists a directory, a @list or a manifest.
 * PHEMA_ERR_USAGE     --layout or --name-regex is invalid
 * PHEMA_ERR_FILE      SNAPSHOTS cannot be read
 * PHEMA_ERR_INPUTS    SNAPSHOTS is a single file, or the manifest is invalid
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE discover_snapshots(struct candidate_list *candidates,
                                  const struct phema_series_options *options,
                                  struct phema_error *err);

/* A single checkpoint, under any name. */
PHEMA_FALLIBLE discover_checkpoint(struct candidate_list *candidates,
                                   const struct phema_series_options *options,
                                   struct phema_error *err);

/* ---- find_snapshots.c ---- */

/* Fills the list with all that is needed to open the snapshots.
 * PHEMA_ERR_USAGE, PHEMA_ERR_FILE, PHEMA_ERR_INPUTS, PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE find_snapshots(struct candidate_list *candidates,
                              const struct phema_series_options *asked, struct phema_error *err);

/* ---- name_times.c ---- */

/* The expression for the time in the names of checkpoints that no layout knows, in the arena; NULL:
 * no field, or several that disagree, can be a time. Files of other names count where those of
 * checkpoints have none (by_content).
 *   counts_steps  out: a word beside the number says so */
PHEMA_FALLIBLE name_times_find(const char **pattern, bool *counts_steps,
                               struct candidate_list *candidates, struct phema_error *err);

enum vague_number {
    VAGUE_COUNT,
    VAGUE_DATE, /* a part of one, which says nothing of the order */
    VAGUE_PART, /* behind a word such as "run": a time only where the counter is equal in all files */
};

/* Where it finds none: the expression for the nth number of names that are alike but for their numbers,
 * which a counter inside may confirm; NULL: there is no such number. Where a number behind a word such
 * as "run" differs, no other number is a time. */
PHEMA_FALLIBLE name_times_find_vague(const char **pattern, enum vague_number *kind, unsigned nth,
                                     const struct candidate_list *candidates,
                                     struct phema_error *err);

/* The last name with a date, where most names have one; NULL: they have not. */
const char *name_times_find_date(const struct candidate_list *candidates);

/* Adds a text to a regular expression, which finds it as it is. */
void name_quote(struct phema_strbuf *out, const char *text, size_t size);

/* ---- name_decimals.c ---- */

/* Whether two names, # for the time, are the same but for a number with decimals, so that both are
 * averages. */
bool names_differ_in_decimals(const char *first, const char *second);

/* The expression for n such names, "^snapshot-(?<time>[0-9]+)-(?<sigma>[0-9.]+)\.pt$"; NULL: the
 * numbers are no widths, or no memory. The caller frees it. */
char *names_write_widths(const char *const *names, size_t n);

/* ---- name_fields.c ---- */

/* The size of a name without the extension of a checkpoint. */
size_t name_stem_size(const char *base);

/* By the word before a number at a place: 0 of steps, 1 of anything, 2 of epochs; -1: it is no time. */
int name_word_rank(const char *name, size_t at);

/* What a number at a place counts, by the word before or behind it, which is no step: "epochs"; NULL: no
 * word says it. */
const char *name_unit(const char *name, size_t at);

/* ---- name_families.c ---- */

#define NAME_MOST_FAMILIES 8

/* Where no number is the time of all names: the expression for names of several families, which are
 * alike but for one number each; NULL: they are not. */
PHEMA_FALLIBLE name_families_find(const char **pattern, const struct candidate_list *candidates,
                                  struct phema_error *err);

/* ---- name_dates.c ---- */

/* The size of a date, with a time of day perhaps, whose first digits are at a place before the end of a
 * name; 0: another number is there.
 *   n_letters    out: of a month before it
 *   takes_short  four or two digits behind it are a time, too */
size_t name_date_size(size_t *n_letters, const char *name, size_t at, size_t end, bool takes_short);

/* ---- counters.c ---- */

/* Takes the times of candidates with numbers in their names from a counter that all of them have
 * inside and that rises with the numbers; a file without a number takes part where it is newer.
 * Without a counter, numbers from 0 on become numbers from 1 on, unless they count steps.
 *   vague  out: no counter was found, so that the numbers are not known to be times, which may be
 *          equal; NULL: they are
 *   are_dates  the numbers are parts of dates, of which nothing is expected
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE counters_apply(struct candidate_list *candidates, bool counts_steps, bool *vague,
                              bool are_dates, const struct phema_checkpoint_options *options,
                              struct phema_error *err);

/* ---- manifest.c ---- */

PHEMA_FALLIBLE manifest_read(struct candidate_list *candidates, const char *path,
                             struct phema_error *err);

/* ---- snapshot_metadata.c: time and width from metadata and bookkeeping tensors ---- */

/* Compares our own metadata (posthoc_ema.*) with the facts from the name, and fills in missing
 * facts. Messages do not name the file.
 *   specs      keeps profiles of other shapes than power
 *   is_output  out: the file was made by synth, and is no snapshot
 *   unit       out: of the metadata, or NULL; unchanged if is_output
 * PHEMA_ERR_INPUTS    name and metadata disagree, or the metadata are invalid
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE snapshot_metadata_read(struct candidate *candidate, bool *is_output,
                                      const char **unit, struct phema_specs *specs,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err);

/* The number in a tensor of one element; NaN where there is no such tensor or number, or its dtype
 * is too narrow for counters. */
double snapshot_metadata_scalar(const struct phema_checkpoint *checkpoint, const char *name);
/* The same of dtypes of 16 bits, too.
 *   within  out: how far their rounding is off at most; infinite beyond their range, 0 of others */
double snapshot_metadata_rounded(const struct phema_checkpoint *checkpoint, const char *name,
                                 double *within);

/* A number stored outside of the tensors; NaN where the name is absent or has several values. */
double snapshot_metadata_value(const struct phema_checkpoint *checkpoint, const char *name);

/* The number LIST.INDEX, or that element of the tensor LIST, which is PREFIX (prefix_size bytes),
 * END; NaN where there is none. */
double snapshot_metadata_item(const struct phema_checkpoint *checkpoint, const char *prefix,
                              size_t prefix_size, const char *end, size_t index);

/* Compares the trainer's counter inside the file with the time in the file's name, or with that and
 * the offset: all names of a series are as far behind.
 *   behind  those before; NaN: none
 * PHEMA_ERR_INPUTS  they disagree */
PHEMA_FALLIBLE snapshot_metadata_check_counter(double *behind, const struct candidate *candidate,
                                               const struct layout *layout, double time_offset,
                                               const struct phema_checkpoint *checkpoint,
                                               struct phema_error *err);

/* True of the file of frozen tensors that snapshots name. */
bool snapshot_metadata_is_frozen(const struct phema_checkpoint *checkpoint);

/* True when "FILE.json" holds a provenance: the file is an output in a format without metadata. */
bool snapshot_metadata_is_described_output(const char *path);

/* ---- select_snapshots.c ---- */

/* Leaves out files that are excluded or damaged, before others are opened. */
/* PHEMA_ERR_USAGE  --exclude-file names what is no file of the series */
PHEMA_FALLIBLE check_excluded(const struct candidate_list *candidates,
                              const struct phema_series_options *options, struct phema_error *err);
void leave_out_unopened(struct candidate_list *candidates,
                        const struct phema_series_options *options);

/* Leaves out outputs of synth, files without a time, and times outside the selection.
 * PHEMA_ERR_INPUTS    the directory holds two series, or a name disagrees with its metadata
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE select_snapshots(struct candidate_list *candidates,
                                const struct phema_series_options *options,
                                struct phema_error *err);

/* ---- no_snapshots.c ---- */

/* SNAPSHOTS is one file: suggests the folder above it that is a series, or to look at the file. */
void suggest_series_of_file(const char *path, struct phema_error *err);
/* Always fails: PHEMA_ERR_INPUTS, with what the directory holds and what to name instead. Lists the
 * directory again, its folders and the folder above; opens no checkpoint.
 * candidates: all of them were left out */
PHEMA_FALLIBLE fail_no_snapshots(const struct phema_series_options *options,
                                 const struct candidate_list *candidates, struct phema_error *err);

/* ---- runs.c: run ids of recorders, and --run; snapshots of two trainings are no series ---- */

/* The id in the metadata of a checkpoint; NULL: none. */
const char *run_id_of(const struct phema_checkpoint *checkpoint);

/* Applies --run: opens the candidates that are not left out, and leaves out those of other runs.
 * PHEMA_ERR_INPUTS    no run or several begin so; the remedy names the newest run
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE runs_select(struct candidate_list *candidates,
                           const struct phema_series_options *options, struct phema_error *err);

/* Replaces the message of a failure, PHEMA_ERR_INPUTS, where the candidates are of several runs:
 * snapshots of two trainings disagree in other ways, too. */
void runs_explain(struct candidate_list *candidates, const struct phema_series_options *options,
                  struct phema_error *err);

/* Fills in series->runs. A note says that some snapshots name no run, where others do.
 * PHEMA_ERR_INPUTS    the snapshots are of several runs; the remedy names the newest run
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE runs_find(struct phema_series *series, struct candidate_list *candidates,
                         struct phema_error *err);

#endif
