/* worker.h - one thread of a run: claims jobs, processes their tiles, releases pages. Workers share
 * the run's constants, the counter of jobs and the decode order; each writes nothing else that
 * another one uses. */
#ifndef SYNTH_WORKER_H
#define SYNTH_WORKER_H

#include "run.h"

/* Elements of a tile that belong to one tensor and are compared as one. */
struct block {
    size_t tensor;
    size_t first, n_elems; /* counted from the start of the tile */
};

/* Progress of one group while a tile is summed. */
struct group_state {
    const struct group *group;
    enum phema_accumulator accumulator;
    size_t row_bytes;
    uint8_t *sums;    /* its first row */
    size_t n_claimed; /* of the group's inputs: read, or waiting in a batch */
    size_t n_added;
    uint8_t *equals;     /* [blocks of a tile] whether all inputs so far are equal there */
    const uint8_t *data; /* one input's tile, the source of blocks that are equal in all */
};

struct read_ahead; /* read_ahead.h */

/* A tile of one output, for its journal. */
struct tile_account {
    uint64_t sum; /* checksum of the written data (phema/sink.h) */
    struct phema_narrow_counts counts;
};

struct worker {
    struct run *run;
    struct phema_reader **readers; /* [series->n] of the run, or its own (decode_order.h) */
    void *sums;          /* rows of budget.sum_elems doubles or floats, one for each target */
    uint8_t *slots;      /* tiles in C order, of inputs that are copied */
    uint8_t *written;    /* a tile of an output */
    uint8_t *references; /* tiles of the first inputs */
    uint64_t tile;       /* the current one, as the members up to rule */
    struct tile_range range;
    const uint8_t **inputs; /* [series->n] its data */
    struct block *blocks;   /* [n_blocks] */
    size_t n_blocks;
    const struct rule_state *rule; /* of its tensors */
    uint8_t *equals;               /* of all groups */
    struct group_state *states;    /* [max_groups] */
    struct gpu_worker *gpu;        /* NULL: the CPU sums */
    struct read_ahead *ahead;      /* NULL: tiles are read when they are needed */
    struct phema_narrow_counts counts;
    struct phema_hash_sum *digests; /* of the data read (input_digests.h); NULL: not hashed */
    struct tile_account *accounts;  /* [outputs->m] of the current tile; NULL: no journal is kept */
    size_t nan_tensor;
    bool has_prefetched; /* at least once */
    long n_from_disk;    /* disk reads of this thread at the last look, as the kernel counts them */
    bool is_abandoned;   /* another worker failed while this one waited */
    enum phema_status status;
    struct phema_error err;
};

static inline void counts_add(struct phema_narrow_counts *counts,
                              const struct phema_narrow_counts *more)
{
    counts->n_overflow += more->n_overflow;
    counts->n_nan += more->n_nan;
    counts->n_inf += more->n_inf;
}

static inline bool counts_any(const struct phema_narrow_counts *counts)
{
    return counts->n_overflow || counts->n_nan || counts->n_inf;
}

/* The elements of one tensor, from block *b on. *b moves to the next tensor's first block. */
static inline struct block next_tensor(const struct worker *worker, size_t *b)
{
    struct block slice = worker->blocks[(*b)++];
    for (; *b < worker->n_blocks && worker->blocks[*b].tensor == slice.tensor; ++*b)
        slice.n_elems += worker->blocks[*b].n_elems;
    return slice;
}

/* index: of this thread among all */
PHEMA_FALLIBLE worker_init(struct worker *worker, struct run *run, unsigned index,
                           struct phema_error *err);
void worker_clear(struct worker *worker);

/* Runs jobs until none is left or one fails. The status is in the worker. */
void worker_run(struct worker *worker);

#endif
