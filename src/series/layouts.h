/* layouts.h - table of known trainers: pattern of file names, unit, subtree, defaults. */
#ifndef SERIES_LAYOUTS_H
#define SERIES_LAYOUTS_H

#include "phema/error.h"
#include "phema/span.h"

struct layout {
    const char *name;    /* of --layout and listings */
    const char *library; /* its writer, where a message needs it */
    const char *pattern; /* of names, groups time, sigma or index, prefix; NULL: none */
    const char *unit;
    double (*clock)(double named_time); /* time of a named time; NULL: equal */
    const char *subtree;                /* averaged unless --key says otherwise; NULL: all */
    /* the counter inside the file: the time on the clock, or counts_per_time times the named time
     * */
    const char *counter;    /* NULL: none */
    double counts_per_time; /* the division rounds down */
    bool is_labelled_only;  /* files lack sigma: --input-sigma and --update-every are needed */
    bool has_step_inside;   /* the tensor 'step', not the name, is the clock of the average */
    uint64_t default_update_every; /* documented by the library */
    const char *default_sigmas;
};

/* The layout of that name, or NULL. */
const struct layout *layout_find(const char *name);

extern const struct layout layout_own, layout_edm2, layout_ema_pytorch, layout_posthoc_ema,
    layout_lightning, layout_hf, layout_manifest, layout_custom;

/* EDM2's training states hold in float32 what its pickles hold in float16. */
bool layout_is_training_state(const char *base);

#endif
