/* team.h - the processes of one run, which share its work. */
#ifndef PHEMA_TEAM_H
#define PHEMA_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

/* What the processes of a team add up while they work. */
#define PHEMA_TEAM_VALUES 4

/* The processes that an MPI launcher has started with the same command line. The functions are
 * called by the thread that runs the command line. All processes call all but next_run and stop in
 * the same order. */
struct phema_team {
    unsigned rank, size;             /* rank < size */
    unsigned local_rank, local_size; /* of the processes on this machine */
    void *context;
    /* Each number from 0 on, in one process each; after stop large ones. */
    uint64_t (*next_run)(void *context);
    void (*stop)(void *context);
    /* A round adds up the values of all processes, and ends when each has given its own. A process
     * is in one round at a time, and gives the values of the call that begins it. Called ten times
     * a second while a process works; with waits it sleeps until the round ends.
     *   sums  out, if the round has ended: true */
    bool (*exchange)(void *context, const uint64_t values[PHEMA_TEAM_VALUES],
                     uint64_t sums[PHEMA_TEAM_VALUES], bool waits);
    /* Returns, in all processes, status and message of the lowest rank that failed; PHEMA_OK where
     * all succeeded. A failure of some processes only names the process and its host. */
    enum phema_status (*agree)(void *context, enum phema_status status, struct phema_error *err);
    /* data: [size] of rank 0, and then of all */
    void (*broadcast)(void *context, void *data, size_t size);
    /* values: [n] of each process, and then their sums over all */
    void (*sum)(void *context, uint64_t *values, size_t n);
};

#endif
