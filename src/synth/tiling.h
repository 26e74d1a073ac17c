/* tiling.h - divides the tensors into tiles, and the tiles into jobs. A job is several tiles that
 * follow each other in the files. Everything is computed from numbers; no list of tiles is kept.
 *
 * Small tensors share tiles. A tensor run is a tensor and those after it that fit into the free end
 * of its last tile. They lie without a gap in every snapshot and are processed alike, so that a
 * tile of them is read, summed and rounded as if it were of one tensor. */
#ifndef SYNTH_TILING_H
#define SYNTH_TILING_H

#include "phema/series.h"

/* Elements that are equal in all snapshots are copied in blocks of this many, counted from the
 * start of the tensor. Tiles begin and end at such blocks, so the blocks do not depend on them. */
#define BLOCK_ELEMS ((size_t)1024)

/* Properties in which tensors of one tile must agree, in addition to their own dtype. */
struct tiling_kinds {
    const enum phema_dtype *dtypes; /* [n_tensors] as written */
    const size_t *rule_of;          /* [n_tensors] of the plan; NULL: no tensor follows a rule */
};

/* One of n_parts parts of the data in read order, of about the same bytes. */
struct part_range {
    uint64_t number, n_parts; /* from 1; 0 of 0: all */
};

/* Tensors in a tile of more than one tensor, at most. More would save nothing, and their blocks
 * need memory in every worker. */
#define MAX_RUN_TENSORS ((size_t)256)

struct tensor_run {
    size_t first;        /* index of its first tensor in the tiling's order */
    uint64_t first_tile; /* number of its first tile */
    uint64_t position;   /* elements of the tiling before it */
    uint64_t start;      /* first element of its first tensor that belongs to it */
    uint64_t n_elems;    /* of all its tensors */
};

struct tiling {
    const struct phema_series *series;
    size_t tile_elems;   /* even, of a full tile */
    size_t *order;       /* [n] tensors that are read, as they lie in the files */
    uint64_t first_elem; /* of order[0]: the start of the part */
    uint64_t end_elem;   /* of order[n - 1]: the end of the part */
    size_t n;
    struct tensor_run *tensor_runs; /* [n_tensor_runs + 1], the last one is the end */
    size_t n_tensor_runs;
    uint64_t tiles_per_job;
    uint64_t n_jobs;
    uint64_t read_bytes; /* of one snapshot */
};

/* The elements of one tile, counted from the start of the first tensor of its run. */
struct tile_range {
    size_t tensor;          /* the first: index into the series */
    enum phema_dtype dtype; /* of its tensors, in the snapshots */
    uint64_t first, n_elems;
    uint64_t position;     /* elements of the tiling before it: independent of the tile size */
    const size_t *tensors; /* [n_tensors] of the tensor run */
    size_t n_tensors;
};

/* The bounds of a part follow from the series alone. Compressed snapshots determine the order; a
 * job is then a single tile.
 *   tile_elems     even
 *   max_job_bytes  of one snapshot's data in a job
 * PHEMA_ERR_INPUTS    two compressed snapshots hold their tensors in different orders and have no
 *                     seek table
 * PHEMA_ERR_RESOURCE  out of memory */
PHEMA_FALLIBLE tiling_make(struct tiling *tiling, const struct phema_series *series,
                           const struct tiling_kinds *kinds, struct part_range part,
                           size_t tile_elems, uint64_t max_job_bytes, unsigned n_threads,
                           struct phema_error *err);
void tiling_clear(struct tiling *tiling);

uint64_t tiling_n_tiles(const struct tiling *tiling);
/* The first tile of a job; the number of tiles where no job is left. */
uint64_t tiling_first_tile(const struct tiling *tiling, uint64_t job);
/* Elements of all tiles. */
uint64_t tiling_total(const struct tiling *tiling);
/* The tile that holds the element at a position below the total. */
uint64_t tiling_tile_at(const struct tiling *tiling, uint64_t position);
/* Elements of the largest tile. */
uint64_t tiling_largest(const struct tiling *tiling);
/* Elements of order[x] that belong to the part. */
uint64_t tiling_n_elems(const struct tiling *tiling, size_t x);
/* hint: 0, or the value that the call for the previous tile has left */
struct tile_range tiling_tile(const struct tiling *tiling, uint64_t tile, size_t *hint);

#endif
