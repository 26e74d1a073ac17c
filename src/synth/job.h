/* job.h - how the work is cut: tiles of tensors, and jobs of several tiles that follow each other
 * in the files. Everything is computed from numbers, no list of tiles is kept. */
#ifndef SYNTH_JOB_H
#define SYNTH_JOB_H

#include "phema/plan.h"

/* Elements that are equal in all snapshots are copied in blocks of this many, counted from the
 * start of the tensor: whatever the tiles are, since they begin and end at such blocks. */
#define BLOCK_ELEMS ((size_t)1024)

/* Of the data in read order, one of n stretches of about the same bytes. */
struct share {
    uint64_t part, n_parts; /* from 1; 0 of 0: all */
};

struct cut {
    const struct phema_series *series;
    size_t tile_elems;    /* even, of a tile that is full */
    size_t *order;        /* [n] tensors that are read, as they lie in the files */
    uint64_t first_elem;  /* of order[0], and */
    uint64_t end_elem;    /* of order[n - 1]: where a share begins and ends */
    uint64_t *first_tile; /* [n + 1] number of the first tile of order[i] */
    size_t n;
    uint64_t tiles_per_job;
    uint64_t n_jobs;
    uint64_t read_bytes; /* of one snapshot */
};

struct piece {
    size_t tensor; /* index into the series */
    uint64_t first, n_elems;
};

/* Where a share begins and ends follows from the series alone. max_job_bytes: of one snapshot's
 * data in a job. Where snapshots are decompressed the order is theirs, and a job is a single tile.
 * PHEMA_ERR_INPUTS when two of those have their tensors in different orders and no index */
PHEMA_FALLIBLE cut_make(struct cut *cut, const struct phema_series *series, struct share share,
                        size_t tile_elems, uint64_t max_job_bytes, unsigned n_threads,
                        struct phema_error *err);
void cut_clear(struct cut *cut);

uint64_t cut_n_tiles(const struct cut *cut);
/* Elements of order[x] that are in the share. */
uint64_t cut_n_elems(const struct cut *cut, size_t x);
/* hint: 0, or where the tile before was found */
struct piece cut_tile(const struct cut *cut, uint64_t tile, size_t *hint);

#endif
