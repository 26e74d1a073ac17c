/* launcher.h - this process among those that a launcher (srun, mpirun, torchrun) has started, as
 * its environment tells. */
#ifndef CLI_LAUNCHER_H
#define CLI_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "phema/error.h"

struct launcher {
    uint64_t rank, size; /* rank < size */
};

/* For --part auto. PHEMA_ERR_USAGE: no launcher is known, or two variables disagree. */
PHEMA_FALLIBLE launcher_read(struct launcher *out, struct phema_error *err);

/* For a run that shares nothing. PHEMA_ERR_USAGE when a launcher has started several processes:
 * each of them would make the same outputs. Tasks of an array are no such processes. */
PHEMA_FALLIBLE launcher_check_alone(struct phema_error *err);

/* For a process that MPI sees as one of size. PHEMA_ERR_USAGE where it is alone, and a launcher has
 * started several: that of another MPI library. */
PHEMA_FALLIBLE launcher_check_library(unsigned size, struct phema_error *err);

#endif
