/* run.h - one run of a plan: what is made before the workers start and shared by all of them. */
#ifndef SYNTH_RUN_H
#define SYNTH_RUN_H

#include <stdatomic.h>

#include "groups.h"
#include "job.h"
#include "phema/synth.h"
#include "sink.h"
#include "turns.h"

/* What all workers see. */
struct run {
    const struct phema_plan *plan;
    struct phema_outputs *outputs;
    const struct phema_synth_options *options;
    const struct phema_backend *backend;
    struct sink **sinks;           /* [outputs->m] */
    struct phema_reader **readers; /* [series->n] */
    struct turns *turns;           /* NULL when no snapshot is decoded */
    struct group *groups;
    size_t n_groups;
    struct cut cut;
    size_t *next_alias;      /* [n_tensors] of the same storage, SIZE_MAX at the end */
    _Atomic uint8_t *varies; /* [n_tensors] true when snapshots differ */
    size_t sum_elems;        /* of a row of sums: two for each complex element */
    size_t n_references;     /* distinct first inputs of the groups; 0 when all data are views */
    size_t *reference_of;    /* [n_groups] */
    _Atomic uint64_t next_job;
    _Atomic uint64_t done_bytes;
    _Atomic size_t tensor; /* that is being worked on */
    _Atomic bool is_stopped;
};

/* Groups, readers, the cut into tiles, whatever fits into the memory that is allowed. Plan,
 * outputs, options and backend are set; cleared after a failure as well. */
PHEMA_FALLIBLE run_prepare(struct run *run, struct phema_error *err);
void run_clear(struct run *run);

/* Nobody takes another job, nobody waits. */
void run_stop(struct run *run);

#endif
