// SPDX-License-Identifier: Apache-2.0
/* boxes.c - see boxes.h. Boxes are swept in the order of their starts in one dimension: only those
 * that lie side by side there can overlap. */
#include "boxes.h"

#include <stdio.h>
#include <stdlib.h>

#include "format.h"

const char *chunks_format_index(struct phema_name_buffer *buffer, const uint64_t *index,
                                unsigned rank)
{
    size_t used = (size_t)snprintf(buffer->text, sizeof(buffer->text), "[");
    unsigned d = 0;
    for (; d < rank && used + 32 < sizeof(buffer->text); d++)
        used += (size_t)snprintf(buffer->text + used, sizeof(buffer->text) - used, "%s%llu",
                                 d ? ", " : "", (unsigned long long)index[d]);
    (void)snprintf(buffer->text + used, sizeof(buffer->text) - used, "%s]", d < rank ? "..." : "");
    return buffer->text;
}

enum phema_status chunks_check_inside(const struct phema_chunk *part, const uint64_t *shape,
                                      unsigned rank, struct phema_error *err)
{
    for (unsigned d = 0; d < rank; d++) {
        if (part->start[d] <= shape[d] && part->size[d] <= shape[d] - part->start[d])
            continue;
        struct phema_name_buffer start, size;
        return phema_fail(err, PHEMA_ERR_FILE,
                          "the piece at %s of shape %s runs over the end of the tensor",
                          chunks_format_index(&start, part->start, rank),
                          chunks_format_index(&size, part->size, rank));
    }
    return PHEMA_OK;
}

/* At most that of the tensor, inside which the box lies. */
static uint64_t volume(const struct phema_chunk *part, unsigned rank)
{
    uint64_t n_elems = 1;
    for (unsigned d = 0; d < rank; d++)
        if (part->size[d] == 0)
            return 0;
    for (unsigned d = 0; d < rank; d++)
        n_elems *= part->size[d];
    return n_elems;
}

static bool overlap(const struct phema_chunk *a, const struct phema_chunk *b, unsigned rank)
{
    for (unsigned d = 0; d < rank; d++)
        if (a->start[d] >= b->start[d] + b->size[d] || b->start[d] >= a->start[d] + a->size[d])
            return false;
    return true;
}

/* Where most boxes begin behind the edge, fewest lie side by side: a tensor cut by columns is swept
 * along its rows. */
static unsigned best_dimension(const struct phema_chunk *const *boxes, size_t n, unsigned rank)
{
    unsigned best = 0;
    size_t most = 0;
    for (unsigned d = 0; d < rank; d++) {
        size_t n_behind = 0;
        for (size_t i = 0; i < n; i++)
            n_behind += boxes[i]->start[d] > 0;
        if (n_behind > most) {
            most = n_behind;
            best = d;
        }
    }
    return best;
}

static int by_start(const void *a, const void *b, void *dimension)
{
    unsigned d = *(const unsigned *)dimension;
    uint64_t left = (*(const struct phema_chunk *const *)a)->start[d];
    uint64_t right = (*(const struct phema_chunk *const *)b)->start[d];
    return (left > right) - (left < right);
}

static enum phema_status check_disjoint(const struct phema_chunk **boxes, size_t n, unsigned rank,
                                        struct phema_error *err)
{
    if (rank == 0 && n > 1)
        return phema_fail(err, PHEMA_ERR_FILE, "has %zu pieces, expected one of a scalar", n);
    if (n < 2)
        return PHEMA_OK;
    unsigned d = best_dimension(boxes, n, rank);
    qsort_r(boxes, n, sizeof(const struct phema_chunk *), by_start, &d);
    for (size_t i = 0; i < n; i++) {
        uint64_t end = boxes[i]->start[d] + boxes[i]->size[d];
        for (size_t j = i + 1; j < n && boxes[j]->start[d] < end; j++) {
            if (!overlap(boxes[i], boxes[j], rank))
                continue;
            struct phema_name_buffer left, right;
            return phema_fail(err, PHEMA_ERR_FILE, "the pieces at %s and %s overlap",
                              chunks_format_index(&left, boxes[i]->start, rank),
                              chunks_format_index(&right, boxes[j]->start, rank));
        }
    }
    return PHEMA_OK;
}

enum phema_status chunks_check(const struct phema_chunk *parts, size_t n, unsigned rank,
                               uint64_t n_elems, struct phema_error *err)
{
    const struct phema_chunk **boxes =
        calloc(n + 1, sizeof(const struct phema_chunk *)); /* those that hold something */
    if (!boxes)
        return phema_fail_memory(err);
    size_t n_boxes = 0;
    for (size_t i = 0; i < n; i++)
        if (volume(&parts[i], rank))
            boxes[n_boxes++] = &parts[i];
    enum phema_status status = check_disjoint(boxes, n_boxes, rank, err);
    uint64_t n_covered = 0; /* disjoint boxes inside the tensor: no more than it has */
    for (size_t i = 0; i < n_boxes && !status; i++)
        n_covered += volume(boxes[i], rank);
    if (!status && n_covered != n_elems)
        status = phema_fail(err, PHEMA_ERR_FILE,
                            "its pieces hold %llu of its %llu elements, expected all",
                            (unsigned long long)n_covered, (unsigned long long)n_elems);
    free(boxes);
    return status;
}
