/* sample_positions.h - which elements of a model are looked at. */
#ifndef SERIES_SAMPLE_POSITIONS_H
#define SERIES_SAMPLE_POSITIONS_H

#include "phema/series.h"

/* Elements [first, first + n) of a tensor of the series, and the column of the sample in which the
 * numbers begin that they are made of: one each, two of complex ones. */
struct stretch {
    size_t tensor;
    uint64_t first, n;
    size_t column;
};

struct sample_positions {
    struct stretch *stretches; /* [n] by the names of the tensors, then by element */
    size_t n;
    size_t n_numbers; /* columns */
};

/* The dtype of the numbers that an element is made of, and how many they are. */
enum phema_dtype number_dtype(enum phema_dtype dtype);
uint64_t numbers_per_element(enum phema_dtype dtype);

/* PHEMA_NO            no tensor is averaged, or they claim more elements than files hold
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE sample_positions_make(struct sample_positions *choice,
                                     const struct phema_series *series, struct phema_error *err);
void sample_positions_clear(struct sample_positions *choice);

#endif
