/* sets.h - how the sets of a checkpoint (phema/tensor_sets.h) are found: by the names that a trainer
 * gives its tensors, or as a subtree. The first checkpoint of a series decides for all. */
#ifndef SERIES_SETS_H
#define SERIES_SETS_H

#include "candidates.h"
#include "phema/tensor_sets.h"

/* ---- trainers.c: checkpoints with raw parameters, averages of them, or both ---- */

/* The parts of a tensor's name. */
struct split_name {
    const char *set; /* "raw", "ema", "half_life_0p05"; not terminated */
    size_t set_size;
    const char *name; /* in the model: without prefix and suffix */
    size_t name_size;
    bool is_raw;
};

struct twins;

struct trainer {
    const char *name;            /* for messages */
    const struct layout *layout; /* of directories with usual names that hold it; NULL: as named */
    const char *assumed; /* SPEC of averages whose profile is nowhere in the files; NULL: none is */
    double assumed_width;     /* sigma_rel, where that is a power function; else 0 */
    const char *to_fill;      /* the same with a word in place of the number that users set */
    const char *const *usual; /* [ends with NULL] SPECs that they set */
    /* Of averages whose keys have a part of the profile: the other part, and how to set it. */
    const char *assumed_rest, *rest_to_fill;
    /* False for tensors of no set: optimizer, counters. */
    bool (*split)(struct split_name *out, const char *name, size_t size);
    const struct twins *twins; /* which have sets instead; NULL: split */
    /* Whether a checkpoint with these sets is this trainer's for sure. */
    bool (*is_its)(const struct phema_tensor_sets *sets);
    bool may_lack_raw;     /* else averages without raw parameters, or of others, are an error */
    const char *counter;   /* a number inside that must be the time of the name; NULL: none */
    const char *n_updates; /* a number inside: updates of the average so far; NULL: none */
    const char *equal_weights; /* begins numbers beside averages of equal weights; NULL: none are */
    /* phema_tensor_set_change; NULL: nothing beside the tensors says how they were averaged */
    enum phema_status (*change)(struct phema_set_change *out, const struct phema_tensor_set *set,
                                const char *directory, double sigma_rel, double time,
                                struct phema_arena *arena, struct phema_error *err);
    /* Sets the profiles that the files have; NULL: they have none. */
    enum phema_status (*read_profiles)(struct phema_tensor_sets *sets,
                                       const struct candidate *candidate, struct phema_error *err);
};

/* The parts of a name, as split says. */
bool trainer_split(struct split_name *out, const struct trainer *trainer, const char *name,
                   size_t size);

/* The known ones, in the order in which they are tried. Ends with NULL. */
extern const struct trainer *const trainers[];

/* ---- subtree.c: the tensors below a key ---- */

/* A tensor that has another name in the series; to: {NULL, 0} when it takes no part. */
struct rename {
    struct phema_span from, to;
};

struct subtree {
    const char *key;           /* of the tensors below it, "" for all; NULL: not chosen yet */
    bool is_bundle;            /* KEY.emas.I are averages of the widths KEY.stds.I */
    bool has_parts;            /* parameters beside the key take part, under their full names */
    bool keeps_module;         /* one checkpoint, which need not agree with others */
    bool leaves_out_optimizer; /* tensors for which is_optimizer_state is true */
    bool is_usual;             /* the layout's own, which needs no note */
    const char *averages;      /* below it, left out of raw parameters: under names of their own, or
                                 * without names; or NULL */
    bool is_called_average;    /* by its key, or by all names of parameters */
    const struct rename *names; /* [n_names] sorted by from, the name below the key */
    size_t n_names;
};

/* The requested subtree (NULL: guessed, with a note; ".": all). Its strings live in the arena of
 * the candidates. Messages do not name the file.
 * PHEMA_ERR_INPUTS    the file has no such subtree
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE subtree_choose(struct subtree *out, struct candidate_list *candidates,
                              const char *asked, const struct phema_checkpoint *checkpoint,
                              struct phema_error *err);

/* One set of the width that the key of an average has, or the averages of a bundle by width. out
 * has its arena and checkpoint.
 * PHEMA_ERR_INPUTS    the numbers of widths and averages in a bundle differ
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE subtree_list(struct phema_tensor_sets *out, const struct subtree *subtree,
                            struct phema_error *err);

/* True of a key like P.emas.1, whose width is in P.stds. */
bool subtree_is_average(const char *key);

/* ---- tensor_sets.c: the table ---- */

/* Of which sets the checkpoints of a series are made. */
struct set_scheme {
    const struct trainer *trainer; /* NULL: the subtree decides */
    const char *wanted;            /* the one set of a trainer that --key chooses; NULL: all */
    struct subtree subtree;        /* of key "" with a trainer */
};

/* Decides from the first checkpoint, and sets the layout that its trainer has.
 * PHEMA_ERR_INPUTS    there is no such subtree, or there are no raw parameters as --use wants
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE set_scheme_choose(struct set_scheme *out, struct candidate_list *candidates,
                                 const struct phema_series_options *options,
                                 const struct phema_checkpoint *checkpoint,
                                 struct phema_error *err);

/* Makes the table of a checkpoint of the series, with profiles and members.
 *   candidate  of this checkpoint
 * PHEMA_ERR_INPUTS    it has other sets than the scheme wants, raw parameters are missing, two
 *                     averages are alike, or the files of the trainer beside the tensors disagree
 * PHEMA_ERR_FILE      these files cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE tensor_sets_make(struct phema_tensor_sets *out, const struct set_scheme *scheme,
                                struct phema_arena *arena, const struct candidate *candidate,
                                const struct phema_checkpoint *checkpoint, struct phema_error *err);

/* The part of a tensor that the checkpoint of the table lists. */
static inline const struct phema_set_member *member_of(const struct phema_tensor_sets *sets,
                                                       const struct phema_tensor *listed)
{
    return &sets->members[listed - phema_checkpoint_tensors(sets->checkpoint)];
}

/* ---- trainer_files.c: files of trainers beside the tensors ---- */

/* Leaves out directories that their trainer has not finished. */
void leave_out_unfinished(struct candidate_list *candidates);

/* Whether the directory has a regular file or directory of this name. */
bool directory_has(const char *directory, const char *name);

/* state.json of flux_action: widths and times of its averages. Where it is missing, the names of
 * the sets have the widths. Failures as tensor_sets_make. */
PHEMA_FALLIBLE flux_state_read(struct phema_tensor_sets *sets, const struct candidate *candidate,
                               struct phema_error *err);

/* The change of flux_action: the folder has the width in its name, and state.json its entry. */
PHEMA_FALLIBLE flux_state_change(struct phema_set_change *out, const struct phema_tensor_set *set,
                                 const char *directory, double sigma_rel, double time,
                                 struct phema_arena *arena, struct phema_error *err);

/* A profile that numbers beside an average say, by the keys of its rule. */
struct described_profile {
    const char *spec; /* in the arena; NULL: nothing is said */
    const char *by;   /* where, for messages */
    double n_steps;   /* counted by the average so far */
};
#define DESCRIPTION_FILE "config.json"

/* path: of the checkpoint, a file or its directory. A file that cannot be read says nothing.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE described_profile_read(struct described_profile *out, const char *path,
                                      struct phema_arena *arena, struct phema_error *err);

/* Whether metadata.json says that Megatron wrote the directory with this backend. */
bool megatron_has_backend(const char *directory, const char *wanted);

/* ---- litema.c ---- */

/* The key of LitEma's averages, or NULL. Models are saved at the root or below state_dict. */
const char *litema_find(const struct phema_checkpoint *checkpoint);
/* The decay and the counter that LitEma, and torch-ema, keep below the key or beside it. Says nothing
 * where the counter is not the time: then its steps are others.
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE litema_describe(struct described_profile *out, struct phema_arena *arena,
                               const struct phema_checkpoint *checkpoint, const char *key,
                               double time, struct phema_error *err);
/* Sets the names that the tensors below out->key have in the model. PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE litema_list_names(struct subtree *out, struct phema_arena *arena,
                                 const struct phema_checkpoint *checkpoint,
                                 struct phema_error *err);
/* Warns of tensors that keep their name. */
void litema_note_unmatched(struct candidate_list *candidates, const struct subtree *subtree,
                           const struct phema_checkpoint *checkpoint);
/* The name of a tensor in the model; NULL: it keeps its name. */
const struct rename *rename_find(const struct rename *renames, size_t n, const char *name,
                                 size_t size);

/* ---- tensor_names.c ---- */

/* true when a tensor's name begins with "KEY." */
bool subtree_exists(const struct phema_checkpoint *checkpoint, const char *key);
/* The part of a name after "KEY.", with its size, which may be 0; NULL: another beginning. */
const char *name_below_key(const char *name, size_t *size, const char *key);
/* Finds where the key of an optimizer begins in a full name: at its root, or deeper where a state is
 * below it, as in "state.optimizers.AdamW.state.conv.weight.exp_avg". False: there is none. */
bool optimizer_find(size_t *at, const char *name, size_t size);
/* True of a full name below such a key. */
bool is_optimizer_state(const char *name, size_t size);
/* Whether a part of a name is a moment of gradients, whatever the key of the optimizer is. */
bool names_moment(const char *name, size_t size);
/* The size of the prefix of a wrapper that begins at a place in a name; 0: none does. */
size_t wrapper_at(const char *name, size_t size, size_t at);
/* The name of a tensor without the prefixes that wrappers of modules add anywhere in it:
 * _orig_mod. (torch.compile), _forward_module. (Fabric), those of FSDP and of checkpointing. In the
 * arena where it differs; NULL: no memory. */
const char *name_without_wrappers(size_t *size, const char *name, struct phema_arena *arena);
/* Removes each "module." that the names of all members lie below; false: no memory. */
bool names_remove_module(struct phema_tensor_sets *sets);

#endif
