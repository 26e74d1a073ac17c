/* memory_budget.h - what a run holds, worked out before any of it is allocated: what `plan`
 * promises and
 * --max-ram bounds. Where the limit is tight tiles shrink first, then the targets are split over
 * several passes through the snapshots. */
#ifndef SYNTH_MEMORY_BUDGET_H
#define SYNTH_MEMORY_BUDGET_H

#include "phema/synth.h"

struct run;

/* What a thread touches of its stack, and libc for it. */
#define BUDGET_THREAD_BYTES ((uint64_t)192 << 10)

/* What one worker allocates [bytes], multiples of 64. */
struct worker_buffers {
    size_t sums;       /* all rows */
    size_t n_slots;    /* of inputs that are not views, at once */
    size_t slot;       /* one of them: a tile in C order */
    size_t copied;     /* all of those */
    size_t written;    /* a tile as the output has it */
    size_t reference;  /* a tile of one of the first inputs, likewise */
    size_t references; /* all of those */
    size_t digests;    /* sums over what was read */
};

struct memory_budget {
    uint64_t limit; /* 0: none */
    bool is_limit_of_cgroup;
    size_t targets_per_pass, n_passes;
    size_t tile_elems;
    size_t sum_elems; /* of a row of sums: two for each complex element */
    struct worker_buffers buffers;
    unsigned n_threads;   /* that add up */
    unsigned n_finishers; /* threads that compress or mend checksums */
    uint64_t present;     /* what opening and solving have left */
    uint64_t weights;     /* of a pass */
    uint64_t decoders;    /* of all compressed snapshots */
    uint64_t lanes;       /* what devices read and write beside slots */
    uint64_t finisher;    /* of one of those threads */
};

/* Of a run whose plan, outputs and options are set.
 * PHEMA_ERR_RESOURCE  the limit is below what one target and the smallest tiles need: the message
 *                     names that */
PHEMA_FALLIBLE memory_budget_make(struct memory_budget *budget, const struct run *run,
                                  struct phema_error *err);

/* When it is known that no tile has more elements, and that no more threads have work. */
PHEMA_FALLIBLE memory_budget_trim(struct memory_budget *budget, const struct run *run,
                                  uint64_t n_elems, uint64_t n_jobs, struct phema_error *err);

/* While tensors are added up, and while outputs are finished: the whole process. */
uint64_t memory_budget_accumulate_bytes(const struct memory_budget *budget);
uint64_t memory_budget_write_bytes(const struct memory_budget *budget);

#endif
