/* layouts.h - who wrote a directory of snapshots, and what their names say. */
#ifndef SERIES_LAYOUTS_H
#define SERIES_LAYOUTS_H

#include "phema/error.h"
#include "phema/span.h"

struct layout {
    const char *name;    /* as --layout takes it and listings say it */
    const char *library; /* that writes it, where a message needs it */
    const char *pattern; /* of names, groups time, sigma or index, prefix; NULL: has none */
    const char *unit;
    double (*clock)(double named_time); /* NULL: the same */
    const char *subtree;                /* averaged unless --key says otherwise; NULL: all */
    /* the number inside that counts the training, NULL: none; it is the time on the clock, or in
     * this unit after a division that rounds down */
    const char *counter;
    double counts_per_time;
    bool is_labelled_only; /* sigma is in no file: --input-sigma and --update-every are needed */
    bool has_step_inside;  /* the tensor 'step' is the clock of the average, not the name */
    uint64_t default_update_every; /* what the library documents */
    const char *default_sigmas;
};

/* The layout of that name, or NULL. */
const struct layout *layout_named(const char *name);
/* The names --layout takes, for messages. */
const char *layout_names(void);

extern const struct layout layout_own, layout_edm2, layout_ema_pytorch, layout_posthoc_ema,
    layout_lightning, layout_hf, layout_manifest, layout_custom;

/* EDM2's training states hold in float32 what its pickles hold in float16. */
bool layout_is_training_state(const char *base);

#endif
