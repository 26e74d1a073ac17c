/* twins.h - two sets of the same parameters that no known trainer has named. */
#ifndef SERIES_TWINS_H
#define SERIES_TWINS_H

#include "candidates.h"
#include "phema/setting.h"
#include "sets.h"

/* A tensor NAME of the model is average + NAME and raw + NAME. */
struct twins {
    struct trainer trainer; /* as which a series takes them */
    struct phema_span average, raw;
};

/* Two prefixes of the same names. */
struct twin_pair {
    struct phema_span first, second; /* first < second */
    size_t n_shared;                 /* names */
    bool has_half, has_most;         /* of all parameters */
};

/* ---- twin_pairs.c ---- */

#define MOST_PAIRS 6 /* of three sets that are alike, there are three */

/* Pairs of prefixes that about as many names share, the best first. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE twin_pairs_find(struct twin_pair best[MOST_PAIRS], size_t *n_best,
                               struct phema_arena *arena, const struct phema_checkpoint *checkpoint,
                               struct phema_error *err);

/* Whether a word of a key or a name says average: "ema", "checkpoint-50-avg". */
bool says_average(struct phema_span prefix);
/* Whether the prefixes of both sets say so, parents that they share aside: "ema_0.99." and "ema_0.998.".
 * Then neither set is raw. */
bool twin_pair_says_averages(const struct twin_pair *pair);
/* Whether the sets are two layers of one model: their prefixes differ in one number alone, and other
 * parameters stand beside them. A list called average, such as "emas.0" and "emas.1", has layers only
 * where it has these others itself. */
bool twin_pair_is_of_layers(const struct twin_pair *pair,
                            const struct phema_checkpoint *checkpoint);
/* A set by its prefix, for messages. */
const char *twin_show(struct phema_name_buffer *shown, struct phema_span prefix);

int twin_shapes_compare(const struct phema_tensor *a, const struct phema_tensor *b);
bool span_begins_with(struct phema_span outer, struct phema_span inner);
/* The rest of a name behind a prefix, wrappers in the name aside; NULL: it begins otherwise. */
const char *twin_name_behind(const char *name, size_t *size, struct phema_span prefix);

/* ---- twin_evidence.c ---- */

/* Whether a tensor can be in a set: floats of one dimension or more, no state of an optimizer. */
bool twin_is_parameter(const struct phema_tensor *tensor);
/* Whether a checkpoint has one: states of an optimizer or of random numbers are no model. */
bool twin_has_parameters(const struct phema_checkpoint *checkpoint);

/* Sums over a sample of the twins at two times. */
struct twin_evidence {
    double forward;  /* |second, later - first, earlier|^2 */
    double backward; /* |first, later - second, earlier|^2 */
    double moved[2]; /* |later - earlier|^2 of the first, of the second */
    double apart;    /* |first, later - second, later|^2 */
    double before;   /* |first, earlier - second, earlier|^2 */
    double sizes[2]; /* |first, later|^2, |second, later|^2 */
};

/* Adds what the data say. Tensors that are missing or of other dtypes add nothing.
 *   checkpoints  earlier and later ones of the first set, then of the second
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE twin_evidence_read(struct twin_evidence *evidence,
                                  struct phema_checkpoint *const checkpoints[4],
                                  const struct twin_pair *pair, struct phema_error *err);

/* ---- twins.c ---- */

/* What decides which set of a pair is the average. */
struct twin_decision {
    bool is_first;    /* the average */
    bool is_still;    /* the average has not changed, so that it is none */
    bool is_by_data;  /* else by the names */
    bool contradicts; /* the names say otherwise */
    size_t n_shared;  /* tensors of files that were compared */
    struct twin_evidence evidence;
};

/* A pair of twins, and what is known of it. */
struct twin_judged {
    const struct twin_pair *pair;
    struct twin_decision decision;
    struct phema_span average, raw;
};

#define MOST_JUDGED 28 /* pairs of 8 */

struct twin_judgement {
    struct twin_judged items[MOST_JUDGED]; /* [n] the twins */
    size_t n;
    struct twin_judged all[MOST_JUDGED]; /* [n_all] with others that were compared */
    size_t n_all;
    const struct twin_pair *unclear;  /* the first one; NULL: none */
    const struct twin_pair *averages; /* the first one of two averages; NULL: none */
};

/* Adds a pair. */
void twins_judge(struct twin_judgement *judgement, const struct twin_pair *pair,
                 const struct twin_decision *decision, bool are_twins);

/* ---- twin_choice.c ---- */

/* Puts the pair first that the series is made of: of the raw set that all others look back at, and of
 * its average.
 *   how  chooses otherwise, for the message
 * PHEMA_ERR_INPUTS  several models have averages, one has several, or what is called average stands
 *                   still */
PHEMA_FALLIBLE twins_select(struct twin_judgement *judgement,
                            const struct candidate_list *candidates,
                            const struct phema_series_options *options, enum phema_setting how,
                            struct phema_error *err);

/* Refuses two averages of one model, and proposes the first where a key chooses.
 * PHEMA_ERR_INPUTS */
PHEMA_FALLIBLE twins_fail_averages(const char *root, struct phema_span first,
                                   struct phema_span second, enum phema_setting how,
                                   struct phema_error *err);

/* Another average of the model than the first; {NULL, 0}: there is none. */
struct phema_span twins_second(const struct twin_judgement *judgement);

/* ---- twins.c ---- */

/* Adds what was decided to what the series is said to hold: "sets: 6
 * snapshots each of 'model' and its average 'ema', which looks back at it (margin 0.31)".
 *   raw, average  names for messages
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE twins_tell(struct candidate_list *candidates, const struct twin_decision *decision,
                          size_t n, const char *raw, const char *average, struct phema_error *err);

/* The two newest checkpoints of the series.
 *   kinds  [candidates] only those of this kind; two of one time are in no order. NULL: all that are
 *          numbered, one of each time
 * false: there are no two times */
bool twins_find_newest(const struct candidate *newest[2], const struct candidate_list *candidates,
                       const char *const *kinds, const char *kind);

/* Compares two sets under the same names in other files.
 *   checkpoints    earlier and later ones of the first set, then of the second
 *   first, second  their names, which decide where the data do not
 * PHEMA_ERR_FILE  a file cannot be read */
PHEMA_FALLIBLE twins_compare(struct twin_decision *decision, bool *are_twins,
                             struct phema_checkpoint *const checkpoints[4], const char *first,
                             const char *second, struct phema_error *err);

/* Of twins whose data contradict their names: adds the evidence of the intervals before the newest, and
 * leaves it to the names where it is weak.
 *   kinds, kind  of the files of both sets, as in twins_find_newest; kinds NULL: one file has both
 * PHEMA_ERR_FILE  a file cannot be read */
PHEMA_FALLIBLE twins_reconsider(struct twin_decision *decision, const struct twin_pair *pair,
                                struct candidate_list *candidates, const char *const *kinds,
                                const char *const kind[2],
                                const struct phema_checkpoint_options *options,
                                struct phema_error *err);

/* The twins of a checkpoint, in the arena of the candidates; NULL: it has none. Reads some 2000
 * elements of the two newest checkpoints. A note says what was decided, and by what.
 *   checkpoint  the first of the series
 * PHEMA_ERR_INPUTS    nothing says which of several sets is the average
 * PHEMA_ERR_FILE      a checkpoint cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE twins_find(const struct twins **out, struct candidate_list *candidates,
                          const struct phema_series_options *options,
                          const struct phema_checkpoint *checkpoint, struct phema_error *err);

/* False for tensors of no set. */
bool twins_split(struct split_name *out, const struct twins *twins, const char *name, size_t size);

/* ---- nameless_tensors.c ---- */

/* The key of averages that are a list without names, each of the shape of a parameter beside it; NULL:
 * there is none, or an optimizer holds it. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE nameless_find(const char **key, struct phema_arena *arena,
                             const struct phema_checkpoint *checkpoint, struct phema_error *err);

/* Refuses a checkpoint without twins whose averages are a list without names, where profiles matter.
 * PHEMA_ERR_INPUTS
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE nameless_check(const struct candidate_list *candidates,
                              const struct phema_series_options *options,
                              const struct phema_checkpoint *checkpoint, struct phema_error *err);

/* ---- twin_files.c ---- */

/* Puts the checkpoints in folders into the place of these, and leaves one file of each time: of the
 * average, of the raw parameters where they are asked for, or of the model beside other files.
 * PHEMA_ERR_INPUTS    nothing says which one is the model
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE twin_files_choose(struct candidate_list *candidates,
                                 const struct phema_series_options *options,
                                 struct phema_error *err);

/* ---- snapshot_folders.c ---- */

/* Puts the checkpoints in each folder into its place. A newest folder without a model is left out. */
PHEMA_FALLIBLE snapshot_folders_expand(struct candidate_list *candidates, struct phema_error *err);

/* ---- twin_folders.c ---- */

/* Chooses as twin_files_choose of two folders, one of the raw parameters and one of their average, with as many files of
 * the same times. Sets the expression for their names.
 *   is_found  out: else the candidates are of no use any more */
PHEMA_FALLIBLE twin_folders_find(bool *is_found, struct candidate_list *candidates,
                                 struct phema_series_options *options, struct phema_error *err);

#endif
