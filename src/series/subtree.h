/* subtree.h - which part of a checkpoint is the averaged model. */
#ifndef SERIES_SUBTREE_H
#define SERIES_SUBTREE_H

#include "candidates.h"
#include "phema/arena.h"
#include "phema/formats.h"

/* A tensor that has another name in the series; to: {NULL, 0} when it takes no part. */
struct rename {
    struct phema_span from, to;
};

struct subtree {
    const char *key;            /* of the tensors below it, "" for all */
    bool is_bundle;             /* KEY.emas.I are averages of the widths KEY.stds.I */
    bool leaves_out_optimizer;  /* tensors for which root_is_optimizer is true */
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

/* The widths of a bundle, one for each of its averages.
 *   widths  out: [*n] in the arena
 * PHEMA_ERR_INPUTS    the numbers of widths and averages differ
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE subtree_widths(const double **widths, size_t *n, struct phema_arena *arena,
                              const char *key, const struct phema_checkpoint *checkpoint,
                              struct phema_error *err);

/* True of a key like P.emas.1, whose width is in P.stds. */
bool subtree_is_average(const char *key);
/* The width of such a key; NaN of other keys and where P.stds lacks it. */
double subtree_width_of(const char *key, const struct phema_checkpoint *checkpoint);

/* The key of one average of a bundle, in the arena; NULL: no memory. */
const char *subtree_key_of(struct phema_arena *arena, const char *key, size_t index);

/* The name of a tensor in the model, from a table of subtree; NULL: it keeps its name. */
const struct rename *rename_find(const struct rename *renames, size_t n, const char *name,
                                 size_t size);

/* The part of a name after "KEY.", with its size, which may be 0; NULL: another beginning. */
const char *subtree_inner_name(const char *name, size_t *size, const char *key);
/* true when a tensor's name begins with "KEY." */
bool subtree_exists(const struct phema_checkpoint *checkpoint, const char *key);

/* True of a full name that begins at the root of an optimizer's state. */
bool root_is_optimizer(const char *name, size_t size);

#endif
