// SPDX-License-Identifier: Apache-2.0
/* schedule_pieces.h - what a schedule of the learning rate is made of. */
#ifndef PROFILE_SCHEDULE_PIECES_H
#define PROFILE_SCHEDULE_PIECES_H

#include "phema/schedule.h"

enum schedule_form {
    SCHEDULE_LINEAR,
    SCHEDULE_COSINE,      /* half of one, level at both ends */
    SCHEDULE_INVERSE_SQRT /* from * sqrt(begin / step) */
};

struct schedule_piece {
    double begin, end; /* [steps] */
    double from, to;   /* rates at its ends */
    enum schedule_form form;
};

struct phema_schedule {
    struct schedule_piece *pieces; /* [n] without gaps; at least one */
    size_t n, capacity;
};

/* PHEMA_ERR_RESOURCE: no memory */
PHEMA_FALLIBLE schedule_add_piece(struct phema_schedule *schedule,
                                  const struct schedule_piece *piece, struct phema_error *err);

/* ---- schedule_log.c ---- */

/* Adds the rates that a file has logged. The message names the file, and the line.
 * PHEMA_ERR_FILE      it cannot be read, or is no log with a rate above 0
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE schedule_read_log(struct phema_schedule *schedule, const char *path,
                                 struct phema_error *err);

#endif
