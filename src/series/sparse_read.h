/* sparse_read.h - a few elements of a snapshot: their choice, and reads that leave the page cache
 * as it was. */
#ifndef SERIES_SPARSE_READ_H
#define SERIES_SPARSE_READ_H

#include "phema/series.h"

/* Elements [first, first + n) of a tensor of the series. Their numbers, two for a complex element,
 * begin in this column of a sample. */
struct tensor_run {
    size_t tensor;
    uint64_t first, n;
    size_t column;
    double weight; /* numbers of the model that each of them stands for */
};

/* ---- sample_positions.c ---- */

struct sample_positions {
    struct tensor_run *runs; /* [n] by tensor name, then by element */
    size_t n;
    size_t n_numbers; /* columns */
};

/*   is_skipped  [n_tensors] not looked at; NULL: none
 * PHEMA_NO            no tensor is averaged, or they claim more elements than files hold
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE sample_positions_make(struct sample_positions *choice,
                                     const struct phema_series *series, const bool *is_skipped,
                                     struct phema_error *err);
void sample_positions_clear(struct sample_positions *choice);

/* ---- sparse_read.c ---- */

/* A reader of small reads, which fetch single pages. Without enough descriptors it maps the files,
 * which fetches neighbouring pages as well.
 * PHEMA_ERR_FILE, PHEMA_ERR_RESOURCE as phema_reader_open */
PHEMA_FALLIBLE sparse_reader_open(struct phema_reader **reader,
                                  const struct phema_checkpoint *checkpoint,
                                  struct phema_error *err);

/* Releases mapped pages of strided tensors, chunks and compressed data. */
void sparse_evict(const struct phema_checkpoint *checkpoint);

/* How many threads should read the snapshots of a series, each a part of them. */
size_t sparse_count_parts(const struct phema_series *series);

/* Requests the runs of all snapshots at once, which suits disks and servers. Does nothing where
 * they are in the page cache. */
void sparse_prefetch(const struct phema_series *series, const struct tensor_run *runs, size_t n);

/* Whether snapshot k is compressed and not in the page cache: its runs need much more than their
 * pages. False from the last one on. */
bool sparse_is_compressed_and_cold(const struct phema_series *series, size_t k);

/* Requests the runs of such a snapshot; does nothing for others. */
void sparse_prefetch_compressed(const struct phema_series *series, size_t k,
                                const struct tensor_run *runs, size_t n);

#endif
