/* done.h - which elements of a cut are done, by their positions (job.h): few ranges, since tiles
 * are done nearly in order. */
#ifndef SYNTH_DONE_H
#define SYNTH_DONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

struct done_range {
    uint64_t first, end;
};

/* Starts as {0}. Ranges are sorted, none is empty and no two touch. */
struct done {
    struct done_range *items; /* [n] */
    size_t n, capacity;
};

/* All of [first, end). */
bool done_has(const struct done *done, uint64_t first, uint64_t end);
/* PHEMA_ERR_RESOURCE, and nothing has changed */
PHEMA_FALLIBLE done_add(struct done *done, uint64_t first, uint64_t end, struct phema_error *err);
PHEMA_FALLIBLE done_remove(struct done *done, uint64_t first, uint64_t end,
                           struct phema_error *err);
/* What the other has not goes. */
PHEMA_FALLIBLE done_intersect(struct done *done, const struct done *other, struct phema_error *err);
void done_clear(struct done *done);

#endif
