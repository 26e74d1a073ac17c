// SPDX-License-Identifier: Apache-2.0
/* chunks.c - elements of a tensor that lies in boxes. A range in C order is cut along the
 * dimensions of each box it meets, from the first inwards, and ends in runs that lie in one piece;
 * so a read costs a look at each box, and then no more than the runs it copies. */
#include "format.h"
#include "strided.h"

/* One read, in elements counted from the tensor's first. */
struct gathering {
    const struct phema_tensor *tensor;
    uint64_t first, end;
    size_t size; /* of an element [bytes] */
    uint8_t *out;
    uint64_t block[PHEMA_MAX_RANK + 1]; /* elements of the tensor below an index of dimension k-1 */
    /* of the box at hand */
    const struct phema_chunk *part;
    const uint8_t *data;
    uint64_t stride[PHEMA_MAX_RANK];
    unsigned flat; /* from this dimension on, the box is one run of the tensor ... */
    uint64_t step; /* ... whose elements lie this far apart */
};

static void set_blocks(struct gathering *gathering)
{
    const struct phema_tensor *tensor = gathering->tensor;
    gathering->block[tensor->rank] = 1;
    for (unsigned k = tensor->rank; k-- > 0;) /* the product was checked, and none is 0 */
        gathering->block[k] = gathering->block[k + 1] * tensor->shape[k];
}

/* False when the box is empty. */
static bool choose_part(struct gathering *gathering, const struct phema_checkpoint *checkpoint,
                        const struct phema_chunk *part)
{
    unsigned rank = gathering->tensor->rank;
    gathering->part = part;
    gathering->flat = rank - 1;
    gathering->step = 1;
    uint64_t below = 1; /* elements of the box below an index of dimension k */
    bool is_flat = true;
    for (unsigned k = rank; k-- > 0;) {
        if (part->size[k] == 0)
            return false;
        gathering->stride[k] = part->stride ? part->stride[k] : below;
        is_flat = is_flat && (part->size[k] == 1 || gathering->stride[k] == below);
        if (!is_flat && k == rank - 1)
            gathering->step = gathering->stride[k];
        if (is_flat)
            gathering->flat = k;
        /* a narrower box than the tensor ends the run at each of its rows */
        is_flat = is_flat && part->size[k] == gathering->tensor->shape[k];
        below *= part->size[k];
    }
    gathering->data = checkpoint_content(checkpoint, part->file).data + part->offset;
    return true;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The part of the range that lies in one run of the box.
 *   base   number of the tensor's element whose indices from dimension flat on are 0
 *   place  where the run begins in the box [elements of the file] */
static void copy_run(const struct gathering *gathering, uint64_t base, uint64_t place)
{
    unsigned k = gathering->flat;
    uint64_t below = gathering->block[k + 1];
    uint64_t start = base + gathering->part->start[k] * below;
    uint64_t from = larger(start, gathering->first);
    uint64_t end = smaller(start + gathering->part->size[k] * below, gathering->end);
    if (from >= end)
        return;
    strided_row(gathering->out + (from - gathering->first) * gathering->size,
                gathering->data + (place + (from - start) * gathering->step) * gathering->size,
                end - from, gathering->step * gathering->size, gathering->size);
}

/* Nesting is bounded by the rank, which is at most PHEMA_MAX_RANK. */
static void descend(const struct gathering *gathering, unsigned k, uint64_t base, uint64_t place)
{
    if (k == gathering->flat) {
        copy_run(gathering, base, place);
        return;
    }
    uint64_t below = gathering->block[k + 1];
    uint64_t low = gathering->part->start[k];
    uint64_t high = low + gathering->part->size[k];
    if (gathering->end <= base)
        return;
    if (gathering->first > base)
        low = larger(low, (gathering->first - base) / below);
    high = smaller(high, (gathering->end - base - 1) / below + 1);
    for (uint64_t i = low; i < high; i++)
        descend(gathering, k + 1, base + i * below,
                place + (i - gathering->part->start[k]) * gathering->stride[k]);
}

/* The range where a box that lies in one run holds all of it, or NULL. */
static const uint8_t *view(const struct gathering *gathering)
{
    uint64_t start = gathering->part->start[0] * gathering->block[1];
    uint64_t n = gathering->part->size[0] * gathering->block[1];
    if (gathering->flat > 0 || gathering->step != 1 || gathering->first < start ||
        gathering->end > start + n)
        return NULL;
    return gathering->data + (gathering->first - start) * gathering->size;
}

const uint8_t *parts_read(const struct phema_checkpoint *checkpoint,
                          const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                          void *scratch)
{
    struct gathering gathering = {.tensor = tensor,
                                  .first = first,
                                  .end = first + n,
                                  .size = phema_dtype_bits(tensor->dtype) / 8,
                                  .out = scratch};
    if (n == 0)
        return NULL;
    set_blocks(&gathering);
    for (size_t i = 0; i < tensor->n_parts; i++) {
        if (!choose_part(&gathering, checkpoint, &tensor->parts[i]))
            continue;
        const uint8_t *found = view(&gathering);
        if (found)
            return found;
        descend(&gathering, 0, 0, 0);
    }
    return scratch;
}
