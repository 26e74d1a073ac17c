/* worker.h - one thread's share of a run: its sums, its scratch, its counts. Workers share what is
 * constant and a counter of jobs, and write nothing that another one writes. */
#ifndef SYNTH_WORKER_H
#define SYNTH_WORKER_H

#include <stdatomic.h>

#include "groups.h"
#include "job.h"
#include "phema/synth.h"
#include "phema/writer.h"

enum equality { EQUALITY_UNKNOWN, EQUALITY_NONE, EQUALITY_ALL };

/* What all workers see. */
struct run {
    const struct phema_plan *plan;
    const struct phema_outputs *outputs;
    const struct phema_synth_options *options;
    const struct phema_backend *backend;
    struct phema_writer **writers; /* [outputs->m] */
    struct group *groups;
    size_t n_groups;
    struct cut cut;
    size_t *next_alias;     /* [n_tensors] of the same storage, SIZE_MAX at the end */
    _Atomic uint8_t *equal; /* [n_groups x n_tensors] enum equality */
    size_t sum_elems;       /* of a row of sums: two for each complex element */
    _Atomic uint64_t next_job;
    _Atomic uint64_t done_bytes;
    _Atomic size_t tensor; /* that is being worked on */
    _Atomic bool is_stopped;
};

struct worker {
    struct run *run;
    void *sums;       /* rows of run->sum_elems doubles or floats, one for each target */
    uint8_t *scratch; /* a tile in C order, and a tile as written */
    uint8_t *written;
    const uint8_t **inputs; /* [series->n] */
    struct phema_narrow_counts counts;
    size_t nan_tensor;
    enum phema_status status;
    struct phema_error err;
};

PHEMA_FALLIBLE worker_init(struct worker *worker, struct run *run, struct phema_error *err);
void worker_clear(struct worker *worker);

/* Takes jobs until there are none or something failed; the outcome is in the worker. */
void worker_run(struct worker *worker);

#endif
