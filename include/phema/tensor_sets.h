/* tensor_sets.h - the sets of a checkpoint: groups of tensors that are the same parameters, such as
 * the raw model and each average of it. This is the one table that says which tensors of a
 * checkpoint are which. A series makes one for each file that it opens, and a copy one for the
 * checkpoint that it copies. Where trainers keep their sets is in docs/layouts.md.
 *
 * A table and its strings live in an arena of the caller, and names of members in the listing of
 * the checkpoint: the table is of use while both are there. */
#ifndef PHEMA_TENSOR_SETS_H
#define PHEMA_TENSOR_SETS_H

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/formats.h"
#include "phema/strbuf.h"

struct trainer;

/* A tensor NAME of the model is prefix, NAME, suffix in the checkpoint, as the first of the set. */
struct phema_tensor_set {
    const char *name; /* of a trainer's: "raw", "ema", "half_life_0p05"; of a subtree: its key */
    bool is_raw;
    const char *prefix, *suffix;
    size_t n_tensors;
    const struct trainer *trainer; /* who names the tensors so; NULL: a subtree */

    /* how it was averaged; in a series alone */
    const char *spec; /* of the profile, where the file has it; NULL: sigma_rel or unknown */
    double sigma_rel; /* NaN: unknown, or in the spec */
    double time;      /* named time of its last update; NaN: that of the checkpoint */
};

/* A tensor of the checkpoint. */
struct phema_set_member {
    const struct phema_tensor_set *set; /* NULL: of none, such as counters and an optimizer's */
    const char *name;                   /* in the model: without prefix and suffix; no NUL */
    size_t name_size;
};

struct phema_tensor_sets {
    const struct trainer *trainer;   /* NULL: unknown, or a subtree is chosen */
    struct phema_tensor_set **items; /* [n] as listed; in a series by time, raw ones, then widths */
    size_t n;
    bool has_raw;
    /* in a series alone */
    const struct phema_tensor_set *reference; /* an average beside raw ones that says which tensors
                                               * are averaged; NULL: none */
    struct phema_set_member *members;         /* [tensors of the checkpoint] */

    const struct phema_checkpoint *checkpoint;
    struct phema_arena *arena;
};

/* The sets of a checkpoint of a known trainer; n = 0: no trainer is known.
 *   arena  keeps them
 * PHEMA_ERR_INPUTS    it has too many
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_tensor_sets_list(struct phema_tensor_sets *out, struct phema_arena *arena,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err);

/* The set of all tensors below a key, "" for all of the checkpoint; false: no memory. */
bool phema_tensor_set_below(struct phema_tensor_set *out, const char *key,
                            struct phema_arena *arena);

/* ---- A new average in the place of a set ---- */

/* Changes of the trainer's files beside the tensors. */
struct phema_set_change {
    const char *folder, *new_folder; /* of its files; NULL: names stay */
    const char *file;                /* rewritten with text; NULL: none */
    struct phema_strbuf text;        /* its contents; the caller's */
};

/* Starts out as {0} and fills it.
 *   directory  of the template
 *   sigma_rel  of the new average; NaN: of another shape
 *   time       of the new average, as names write it
 * PHEMA_ERR_TARGET    the trainer's files cannot say such an average
 * PHEMA_ERR_INPUTS    the files disagree with the set, or another set has the new name
 * PHEMA_ERR_FILE      they cannot be read */
PHEMA_FALLIBLE phema_tensor_set_change(struct phema_set_change *out,
                                       const struct phema_tensor_set *set, const char *directory,
                                       double sigma_rel, double time, struct phema_arena *arena,
                                       struct phema_error *err);

/* ---- Tracker files ---- */

/* How a trainer finds the checkpoint that it resumes from. file NULL: no trainer that is known to
 * look into a file wrote it. */
struct phema_tracker {
    const char *file; /* beside the checkpoint; holds the text */
    char text[24];    /* the step inside */
    char name[32];    /* of the directory of that step */
};

/* PHEMA_ERR_FILE  the file with the step cannot be read */
PHEMA_FALLIBLE phema_tracker_find(struct phema_tracker *out, const char *directory,
                                  const struct phema_checkpoint_options *options,
                                  struct phema_error *err);

#endif
