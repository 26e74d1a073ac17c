/* memory_budget.h - tile size, passes and buffers of a run under --max-ram, computed before any of
 * them is allocated. `plan` reports the result. Under a tight limit tiles shrink first; then the
 * targets are split over several passes through the snapshots. */
#ifndef SYNTH_MEMORY_BUDGET_H
#define SYNTH_MEMORY_BUDGET_H

#include "phema/synth.h"

struct run;

/* Stack that a thread touches, and the memory that libc keeps for it. */
#define BUDGET_THREAD_BYTES ((uint64_t)192 << 10)

/* Allocations of one worker [bytes], multiples of 64. */
struct worker_buffers {
    size_t sums;       /* all rows */
    size_t n_slots;    /* of inputs that are not views, at once */
    size_t slot;       /* one of them: a tile in C order */
    size_t copied;     /* all slots */
    size_t span;       /* tiles of an input that are read ahead together */
    size_t ahead_slot; /* their bytes, more for aligned reads */
    size_t n_ahead;    /* such reads at once, at most; 0: inputs are not read ahead */
    size_t ahead;      /* their buffer: fewer of them fit if each is of ahead_slot */
    size_t written;    /* a tile of an output */
    size_t reference;  /* a tile of one of the first inputs */
    size_t references; /* all reference tiles */
    size_t digests;    /* sums over the data read */
};

struct memory_budget {
    uint64_t limit; /* 0: none */
    bool is_limit_of_cgroup;
    bool is_tight; /* few inputs are read ahead, so that tiles need not shrink so much */
    size_t targets_per_pass, n_passes;
    size_t tile_elems;
    size_t sum_elems; /* of a row of sums: two for each complex element */
    struct worker_buffers buffers;
    unsigned n_threads;   /* that sum */
    unsigned n_finishers; /* threads that compress or recompute checksums */
    uint64_t baseline;    /* memory in use after opening and solving */
    uint64_t weights;     /* of a pass, and its new scales */
    uint64_t decoders;    /* of all compressed snapshots, and of all threads that have their own */
    uint64_t lanes;       /* host memory of GPUs, without slots */
    uint64_t finisher;    /* of one of those threads */
};

/* For a run whose plan, outputs and options are set.
 * PHEMA_ERR_RESOURCE  the limit is too low for one target and the smallest tiles: the message says
 *                     how much they need */
PHEMA_FALLIBLE memory_budget_make(struct memory_budget *budget, const struct run *run,
                                  struct phema_error *err);

/* Shrinks buffers and threads to what the run's tiling needs. */
PHEMA_FALLIBLE memory_budget_trim(struct memory_budget *budget, const struct run *run,
                                  struct phema_error *err);

/* Anonymous memory of the whole process while tensors are summed, and while outputs are finished.
 */
uint64_t memory_budget_accumulate_bytes(const struct memory_budget *budget);
uint64_t memory_budget_write_bytes(const struct memory_budget *budget);

#endif
