/* schedule_pieces.h - a schedule as pieces of simple forms. */
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

PHEMA_FALLIBLE schedule_add(struct phema_schedule *schedule, const struct schedule_piece *piece,
                            struct phema_error *err);

#endif
