/* sampling.h - a sample while it is made: sample.c reads it, sample_columns.c says which of its
 * columns count, and how much. */
#ifndef SERIES_SAMPLING_H
#define SERIES_SAMPLING_H

#include "phema/series.h"
#include "sparse_read.h"

struct column {
    size_t tensor;
    enum phema_dtype dtype;
    double scaled_spacing; /* of fp8 with a scale: typical, relative to the number; else 0 */
    double weight, root;   /* of the weight, once its mean is 1 */
};

struct sampling {
    const struct phema_series *series;
    struct sample_positions choice;
    struct phema_sample *sample;
    bool is_plain;             /* all tensors take part, by their elements alone */
    bool *is_left_out;         /* [n_tensors] does not take part */
    struct column *columns;    /* [n_elems] */
    size_t scratch_bytes;      /* for the longest run */
    struct sample_part *parts; /* [n_parts] */
    size_t n_parts;
    struct phema_arena memory;
};

/* Consecutive snapshots, which one thread reads. */
struct sample_part {
    struct sampling *sampling;
    struct tensor_run *ordered; /* [choice.n] in the order of locations */
    const struct phema_tensor_location *locations;
    uint8_t *scratch;
    double *spacings; /* [n_elems] of the snapshot that is looked at */
    double *largest;  /* [n_elems] of those of its snapshots */
    struct phema_reader *reader;
};

/* ---- sample_columns.c ---- */

/* Removes the columns that are not numbers in every snapshot, and those of tensors that stand still.
 * PHEMA_NO            a snapshot has no usable number, or none is usable in all
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE sampling_drop_columns(struct sampling *sampling, struct phema_error *err);

/* Multiplies the values by the roots of their weights, with which plain means over the sample
 * estimate those over the model. Sets spacings, rounding and sizes.
 * PHEMA_NO            all values of the newest snapshot are zero
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE sampling_weigh(struct sampling *sampling, struct phema_error *err);

#endif
