/* tiling.h - how the work is cut: tiles of tensors, and jobs of several tiles that follow each
 * other in the files. Everything is computed from numbers, no list of tiles is kept.
 *
 * Small tensors share tiles: a stretch is a tensor and those behind it that fit into what its last
 * tile leaves free. They follow one another without a gap in every snapshot and are treated alike,
 * so that a tile of them is read, added and narrowed as if it were of one tensor. */
#ifndef SYNTH_TILING_H
#define SYNTH_TILING_H

#include "phema/series.h"

/* Elements that are equal in all snapshots are copied in blocks of this many, counted from the
 * start of the tensor: whatever the tiles are, since they begin and end at such blocks. */
#define BLOCK_ELEMS ((size_t)1024)

/* By what else than their own dtypes tensors differ in how they are treated. */
struct tiling_kinds {
    const enum phema_dtype *dtypes; /* [n_tensors] as written */
    const size_t *rule_of;          /* [n_tensors] of the plan; NULL: none follows a rule */
};

/* Of the data in read order, one of n stretches of about the same bytes. */
struct part_range {
    uint64_t part, n_parts; /* from 1; 0 of 0: all */
};

/* A tile that is not of one tensor holds at most as many. More would save nothing, and their blocks
 * take memory in every worker. */
#define MAX_STRETCH_TENSORS ((size_t)256)

struct tensor_run {
    size_t first;        /* of its tensors, in the order of the cut */
    uint64_t first_tile; /* number of its first tile */
    uint64_t position;   /* elements of the cut before it */
    uint64_t start;      /* element of the first tensor that it begins with */
    uint64_t n_elems;    /* of all its tensors */
};

struct tiling {
    const struct phema_series *series;
    size_t tile_elems;   /* even, of a tile that is full */
    size_t *order;       /* [n] tensors that are read, as they lie in the files */
    uint64_t first_elem; /* of order[0], and */
    uint64_t end_elem;   /* of order[n - 1]: where a share begins and ends */
    size_t n;
    struct tensor_run *stretches; /* [n_stretches + 1], the last one is the end */
    size_t n_stretches;
    uint64_t tiles_per_job;
    uint64_t n_jobs;
    uint64_t read_bytes; /* of one snapshot */
};

/* Elements of a stretch, counted from the start of its first tensor: all but the first tensor lie
 * in one piece as a whole. */
struct tile_range {
    size_t tensor; /* the first: index into the series */
    uint64_t first, n_elems;
    uint64_t position;     /* elements of the cut before it: the same whatever the tiles are */
    const size_t *tensors; /* [n_tensors] of the stretch */
    size_t n_tensors;
};

/* Where a share begins and ends follows from the series alone.
 * max_job_bytes: of one snapshot's data in a job. Where snapshots are decompressed the order is
 * theirs, and a job is a single tile. PHEMA_ERR_INPUTS when two of those have their tensors in
 * different orders and no index */
PHEMA_FALLIBLE tiling_make(struct tiling *cut, const struct phema_series *series,
                           const struct tiling_kinds *kinds, struct part_range share,
                           size_t tile_elems, uint64_t max_job_bytes, unsigned n_threads,
                           struct phema_error *err);
void tiling_clear(struct tiling *cut);

uint64_t tiling_n_tiles(const struct tiling *cut);
/* Elements of all tiles, and the tile that has the one at a position below that. */
uint64_t tiling_total(const struct tiling *cut);
uint64_t tiling_tile_at(const struct tiling *cut, uint64_t position);
/* Elements of the largest tile. */
uint64_t tiling_largest(const struct tiling *cut);
/* Elements of order[x] that are in the share. */
uint64_t tiling_n_elems(const struct tiling *cut, size_t x);
/* hint: 0, or where the tile before was found */
struct tile_range tiling_tile(const struct tiling *cut, uint64_t tile, size_t *hint);

#endif
