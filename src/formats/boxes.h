/* boxes.h - whether the boxes of a tensor make it up. */
#ifndef FORMATS_BOXES_H
#define FORMATS_BOXES_H

#include "phema/formats.h"
#include "phema/strbuf.h"

/* Boxes of one tensor. Real ones have at most one for each process of a training, of which the
 * largest have some tens of thousands; n^2 / 8 pairs, which the worst choice of disjoint boxes
 * makes the check look at, then take about a second. */
#define BOXES_MAX 65536u

/* A box lies inside its tensor, of that shape. */
PHEMA_FALLIBLE chunks_check_inside(const struct phema_chunk *part, const uint64_t *shape,
                                   unsigned rank, struct phema_error *err);

/* No two boxes share an element, and none is left out. Empty boxes do not count.
 *   parts    [n] that lie inside the tensor, n at most BOXES_MAX
 *   n_elems  of the tensor */
PHEMA_FALLIBLE chunks_check(const struct phema_chunk *parts, size_t n, unsigned rank,
                            uint64_t n_elems, struct phema_error *err);

/* "[3, 0]" */
const char *chunks_format_index(struct phema_name_buffer *buffer, const uint64_t *index,
                                unsigned rank);

#endif
