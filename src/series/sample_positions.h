/* sample_positions.h - stratified choice of the elements of a sample. */
#ifndef SERIES_SAMPLE_POSITIONS_H
#define SERIES_SAMPLE_POSITIONS_H

#include "sparse_read.h"

struct sample_positions {
    struct tensor_run *runs; /* [n] by tensor name, then by element */
    size_t n;
    size_t n_numbers; /* columns */
};

/* The dtype of the numbers in an element, and their count. */
enum phema_dtype number_dtype(enum phema_dtype dtype);
uint64_t numbers_per_element(enum phema_dtype dtype);

/* PHEMA_NO            no tensor is averaged, or they claim more elements than files hold
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE sample_positions_make(struct sample_positions *choice,
                                     const struct phema_series *series, struct phema_error *err);
void sample_positions_clear(struct sample_positions *choice);

#endif
