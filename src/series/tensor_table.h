/* tensor_table.h - the table of tensors that all snapshots share, and where each snapshot has them.
 */
#ifndef SERIES_TENSOR_TABLE_H
#define SERIES_TENSOR_TABLE_H

#include "phema/arena.h"
#include "phema/series.h"
#include "tensor_filter.h"

struct tensor_table {
    struct phema_arena *arena;
    const struct tensor_filter *selection;
    bool averages_buffers;
    bool may_be_empty; /* a file without tensors is one as well */
    bool is_alone;     /* series->became is filled in */
    struct phema_series *series;
    const char *reference; /* label of the snapshot whose tensors the table holds, ... */
    const struct phema_checkpoint *checkpoint; /* ... and its file ... */
    const struct phema_tensor_location *first; /* ... [n_tensors] and places */
    size_t *by_name;                           /* [n_tensors] indices in the order of names */
    struct phema_tensor_location
        *places; /* [n_tensors] of the snapshot at hand, before it is shared */
};

/* The first snapshot makes the table. */
PHEMA_FALLIBLE tensor_table_init(struct tensor_table *tensor_table, struct phema_snapshot *snapshot,
                                 struct phema_error *err);

/* Every other one that has a file must have the same tensors.
 * PHEMA_ERR_INPUTS names the tensor, both files, and what differs. */
PHEMA_FALLIBLE tensor_table_match(struct tensor_table *tensor_table,
                                  struct phema_snapshot *snapshot, struct phema_error *err);

/* Index of a name in the table, SIZE_MAX when it is not there. hint: where it stands in files that
 * were written alike, SIZE_MAX when nothing is known. */
size_t tensor_table_find(const struct tensor_table *tensor_table, const char *name, size_t size,
                         size_t hint);

/* Relative rms rounding error of a snapshot's averaged tensors, element by element. */
double tensor_table_rounding(const struct phema_series *series);

/* Tensors of one storage, in every snapshot, are averaged once: fills in same_as. */
PHEMA_FALLIBLE tensor_table_find_tied(struct tensor_table *tensor_table, struct phema_error *err);

#endif
