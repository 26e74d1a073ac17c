/* done_ranges.h - the set of finished ranges of a tiling, by position (tiling.h). There are few,
 * since tiles are finished nearly in order. */
#ifndef SYNTH_RESUME_DONE_RANGES_H
#define SYNTH_RESUME_DONE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phema/error.h"

struct done_range {
    uint64_t first, end;
};

/* Starts as {0}. Ranges are sorted, not empty, and no two touch. */
struct done_ranges {
    struct done_range *items; /* [n] */
    size_t n, capacity;
};

/* Whether all of [first, end) is in the set. */
bool done_ranges_has(const struct done_ranges *done, uint64_t first, uint64_t end);
/* PHEMA_ERR_RESOURCE: nothing has changed */
PHEMA_FALLIBLE done_ranges_add(struct done_ranges *done, uint64_t first, uint64_t end,
                               struct phema_error *err);
PHEMA_FALLIBLE done_ranges_remove(struct done_ranges *done, uint64_t first, uint64_t end,
                                  struct phema_error *err);
/* Removes all that the other set does not have. */
PHEMA_FALLIBLE done_ranges_intersect(struct done_ranges *done, const struct done_ranges *other,
                                     struct phema_error *err);
void done_ranges_clear(struct done_ranges *done);

#endif
