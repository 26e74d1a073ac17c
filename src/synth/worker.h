/* worker.h - one thread's share of a run: its sums, its copies, its counts. Workers share what is
 * constant, a counter of jobs and the turns at decompressed snapshots, and write nothing else that
 * another one writes. */
#ifndef SYNTH_WORKER_H
#define SYNTH_WORKER_H

#include "progress.h"

/* Elements of a tile that are of one tensor and compared as one. */
struct block {
    size_t tensor;
    size_t first, n_elems; /* counted from the start of the tile */
};

/* How far a group has come while a tile is added up snapshot by snapshot. */
struct group_state {
    enum phema_accumulator accumulator;
    size_t row_bytes;
    void *sums;     /* its first row */
    size_t n_taken; /* of the group's inputs, read or waiting in a batch */
    size_t n_added;
    uint8_t *equals;     /* [blocks of a tile] whether all inputs so far are equal there */
    const uint8_t *data; /* of the tile in one of the inputs, for blocks that are equal in all */
};

struct worker {
    struct run *run;
    void *sums;             /* rows of budget.sum_elems doubles or floats, one for each target */
    uint8_t *slots;         /* tiles in C order, of inputs that are copied */
    uint8_t *written;       /* a tile */
    uint8_t *references;    /* tiles of the first inputs */
    const uint8_t **inputs; /* [series->n] */
    struct block *blocks;   /* [n_blocks] of the tile at hand */
    size_t n_blocks;
    const struct ruled *ruled;  /* what the tensors of the tile follow */
    uint8_t *equals;            /* of all groups */
    struct group_state *states; /* [max_groups] */
    struct feed *feed;          /* to a device; NULL: the processor adds up */
    struct phema_narrow_counts counts;
    struct phema_hash_sum *digests; /* of what was read (digests.h); NULL: that is not wanted */
    struct tile_account *accounts;  /* [outputs->m] of the tile at hand; NULL: no journal is kept */
    size_t nan_tensor;
    bool has_asked;    /* for something ahead, at all */
    long n_from_disk;  /* what this thread has waited for or asked for until now, as counted */
    bool is_abandoned; /* another worker failed while this one waited */
    enum phema_status status;
    struct phema_error err;
};

/* index: of this thread among all */
PHEMA_FALLIBLE worker_init(struct worker *worker, struct run *run, unsigned index,
                           struct phema_error *err);
void worker_clear(struct worker *worker);

/* Takes jobs until there are none or something failed; the outcome is in the worker. */
void worker_run(struct worker *worker);

/* One tile of all outputs (tile.c). */
PHEMA_FALLIBLE tile_do(struct worker *worker, uint64_t tile, const struct piece *piece,
                       struct phema_error *err);

/* Parts of it, for feed.c: a tile of a snapshot, in the slot or a view; a tile of an output; what
 * counts of a tensor mean for the run. */
PHEMA_FALLIBLE tile_take(const uint8_t **data, struct worker *worker, size_t k, uint64_t tile,
                         bool is_needed, const struct piece *piece, size_t slot,
                         struct phema_error *err);
PHEMA_FALLIBLE tile_put(const struct worker *worker, size_t output, const struct piece *piece,
                        const void *data, struct phema_error *err);
PHEMA_FALLIBLE tile_judge(struct worker *worker, size_t output, size_t tensor,
                          const struct phema_narrow_counts *counts, struct phema_error *err);

/* One that is not taken: others wait for its turn at decompressed snapshots. */
PHEMA_FALLIBLE tile_pass(struct worker *worker, uint64_t tile, struct phema_error *err);

/* Complex numbers are averaged part by part. */
static inline enum phema_dtype part_dtype(enum phema_dtype dtype)
{
    return dtype == PHEMA_C64 ? PHEMA_F32 : dtype;
}

static inline size_t parts_of(enum phema_dtype dtype)
{
    return dtype == PHEMA_C64 ? 2 : 1;
}

#endif
