/* subtree.h - which of a checkpoint's tensors are the model that is averaged. */
#ifndef SERIES_SUBTREE_H
#define SERIES_SUBTREE_H

#include "discover.h"
#include "phema/arena.h"
#include "phema/formats.h"

/* A tensor that the series has under another name; to: {NULL, 0} when it takes no part. */
struct rename {
    struct phema_span from, to;
};

struct subtree {
    const char *key;            /* tensors below it, "" for all */
    bool is_bundle;             /* KEY.emas.I are averages of the widths KEY.stds.I */
    bool leaves_out_optimizer;  /* the tensors that root_is_optimizer is true of */
    const struct rename *names; /* [n_names] by from, which is the name below the key */
    size_t n_names;
};

/* The subtree asked for (NULL: guessed, and said in a note; ".": all). All that it points to lives
 * in the scan's arena.
 * PHEMA_ERR_INPUTS when there is none of that name. Messages do not name the file. */
PHEMA_FALLIBLE subtree_choose(struct subtree *out, struct discovery *scan, const char *asked,
                              const struct phema_checkpoint *checkpoint, struct phema_error *err);

/* The widths of a bundle: one for each of its averages.
 *   widths  out: [*n] in the arena
 * PHEMA_ERR_INPUTS when they are not as many as the averages */
PHEMA_FALLIBLE subtree_widths(const double **widths, size_t *n, struct phema_arena *arena,
                              const char *key, const struct phema_checkpoint *checkpoint,
                              struct phema_error *err);

/* Whether a key is like P.emas.1: then its width is what P.stds says, NaN where that says none. */
bool subtree_is_average(const char *key);
/* NaN of other keys. */
double subtree_width_of(const char *key, const struct phema_checkpoint *checkpoint);

/* The key of one average of a bundle, in the arena; NULL when there is no memory. */
const char *subtree_key_of(struct phema_arena *arena, const char *key, size_t index);

/* lit_ema.c: the key of averages that LitEma keeps, or NULL; and what its names are in the model.
 * Those that cannot be told keep their own, which is said in a note. */
const char *litema_find(const struct phema_checkpoint *checkpoint);
PHEMA_FALLIBLE litema_match(struct subtree *subtree, struct discovery *scan,
                            const struct phema_checkpoint *checkpoint, struct phema_error *err);

/* The entry of a sorted table, or NULL. */
const struct rename *rename_find(const struct rename *renames, size_t n, const char *name,
                                 size_t size);

/* Whether a name from the root leads into an optimizer's state. */
bool root_is_optimizer(const char *name, size_t size);

#endif
