/* worker.h - one thread's share of a run: its sums, its copies, its counts. Workers share what is
 * constant, a counter of jobs and the turns at decompressed snapshots, and write nothing else that
 * another one writes. */
#ifndef SYNTH_WORKER_H
#define SYNTH_WORKER_H

#include "resume/journal_write.h"

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
    const struct rule_state *ruled; /* what the tensors of the tile follow */
    uint8_t *equals;                /* of all groups */
    struct group_state *states;     /* [max_groups] */
    struct feed *feed;              /* to a device; NULL: the processor adds up */
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
