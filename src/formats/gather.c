// SPDX-License-Identifier: Apache-2.0
/* gather.c - Elements in C order of tensors that are stored with strides or in chunks. Rows of
 * strides are copied one by one. A read of chunks splits its range along the dimensions of each
 * chunk, from the first dimension inwards, into contiguous runs. So it costs one look at each
 * chunk, and then only the runs that it copies. No alignment is assumed. */
#include <string.h>

#include "format.h"
#include "reader.h"

/* ---- Strides ---- */

const uint8_t *phema_tensor_start(const struct phema_checkpoint *checkpoint,
                                  const struct phema_tensor *tensor)
{
    if (!tensor->n_elems || tensor->chunks || tensor->is_compressed)
        return NULL;
    return checkpoint_content(checkpoint, tensor->file).data + tensor->offset;
}

static inline void copy_elements(uint8_t *to, uint64_t to_step, const uint8_t *from,
                                 uint64_t from_step, uint64_t n, size_t size)
{
    for (uint64_t i = 0; i < n; i++)
        memcpy(to + i * to_step, from + i * from_step, size);
}

/* Copies n elements from one distance [bytes] to another; one of both is the size of an element. In
 * each case the size is a compile-time constant. */
static inline void copy_row(uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step,
                            uint64_t n, size_t size)
{
    if (to_step == from_step) {
        memcpy(to, from, n * size);
        return;
    }
    switch (size) {
    case 1:
        copy_elements(to, to_step, from, from_step, n, 1);
        break;
    case 2:
        copy_elements(to, to_step, from, from_step, n, 2);
        break;
    case 4:
        copy_elements(to, to_step, from, from_step, n, 4);
        break;
    case 8:
        copy_elements(to, to_step, from, from_step, n, 8);
        break;
    default:
        copy_elements(to, to_step, from, from_step, n, size);
        break;
    }
}

/* Limits *n elements from first on to those in the row of first. Returns the place of the first
 * [elements]. */
static uint64_t part_of_row(uint64_t *n, const struct phema_tensor *tensor, uint64_t first)
{
    uint64_t row_size = tensor->shape[tensor->rank - 1]; /* strided: rank > 0, no size is 0 */
    uint64_t column = first % row_size;
    if (*n > row_size - column)
        *n = row_size - column;
    uint64_t row = first / row_size;
    uint64_t place = column * tensor->stride[tensor->rank - 1];
    for (unsigned k = tensor->rank - 1; k-- > 0; row /= tensor->shape[k])
        place += row % tensor->shape[k] * tensor->stride[k];
    return place; /* within the storage: checked when the tensor was listed */
}

const uint8_t *phema_tensor_read(const uint8_t *start, const struct phema_tensor *tensor,
                                 uint64_t first, uint64_t n, void *scratch)
{
    if (!tensor->stride || n == 0)
        return start ? start + phema_dtype_bytes(tensor->dtype, first) : NULL;
    size_t size = phema_dtype_bits(tensor->dtype) / 8;
    uint64_t step = tensor->stride[tensor->rank - 1];
    uint8_t *out = scratch;
    for (uint64_t at = first; at < first + n;) {
        uint64_t taken = first + n - at;
        uint64_t place = part_of_row(&taken, tensor, at);
        copy_row(out, size, start + place * size, step * size, taken, size);
        out += taken * size;
        at += taken;
    }
    return scratch;
}

void phema_tensor_write(uint8_t *start, const struct phema_tensor *tensor, uint64_t first,
                        uint64_t n, const void *data)
{
    if (n == 0)
        return;
    if (!tensor->stride) {
        memcpy(start + phema_dtype_bytes(tensor->dtype, first), data,
               phema_dtype_bytes(tensor->dtype, n));
        return;
    }
    size_t size = phema_dtype_bits(tensor->dtype) / 8;
    uint64_t step = tensor->stride[tensor->rank - 1];
    const uint8_t *from = data;
    for (uint64_t at = first; at < first + n;) {
        uint64_t taken = first + n - at;
        uint64_t place = part_of_row(&taken, tensor, at);
        copy_row(start + place * size, step * size, from, size, taken, size);
        from += taken * size;
        at += taken;
    }
}

/* ---- Chunks ---- */

/* One read, in elements counted from the tensor's first. */
struct gathering {
    const struct phema_tensor *tensor;
    uint64_t first, end;
    size_t size; /* of an element [bytes] */
    uint8_t *out;
    uint64_t block[PHEMA_MAX_RANK + 1]; /* elements of the tensor below an index of dimension k-1 */
    /* of the current chunk */
    const struct phema_chunk *chunk;
    const uint8_t *data;
    uint64_t stride[PHEMA_MAX_RANK];
    unsigned flat;             /* from this dimension on, the chunk is one run of the tensor ... */
    uint64_t step;             /* ... with this distance between elements */
    struct visiting *visiting; /* runs are visited; NULL: copied */
};

struct visiting {
    phema_run_visitor *visit;
    void *context;
    enum phema_status status;
    struct phema_error *err;
};

static void start_gathering(struct gathering *gathering, const struct phema_tensor *tensor,
                            uint64_t first, uint64_t n)
{
    gathering->tensor = tensor;
    gathering->first = first;
    gathering->end = first + n;
    gathering->size = phema_dtype_bits(tensor->dtype) / 8;
    gathering->block[tensor->rank] = 1;
    for (unsigned k = tensor->rank; k-- > 0;) /* the product was checked, and none is 0 */
        gathering->block[k] = gathering->block[k + 1] * tensor->shape[k];
}

/* False when the chunk is empty. */
static bool choose_part(struct gathering *gathering, const struct phema_checkpoint *checkpoint,
                        const struct phema_chunk *chunk)
{
    unsigned rank = gathering->tensor->rank;
    gathering->chunk = chunk;
    gathering->flat = rank - 1;
    gathering->step = 1;
    uint64_t below = 1; /* elements of the chunk below an index of dimension k */
    bool is_flat = true;
    for (unsigned k = rank; k-- > 0;) {
        if (chunk->size[k] == 0)
            return false;
        gathering->stride[k] = chunk->stride ? chunk->stride[k] : below;
        is_flat = is_flat && (chunk->size[k] == 1 || gathering->stride[k] == below);
        if (!is_flat && k == rank - 1)
            gathering->step = gathering->stride[k];
        if (is_flat)
            gathering->flat = k;
        /* a chunk narrower than the tensor ends the run at each of its rows */
        is_flat = is_flat && chunk->size[k] == gathering->tensor->shape[k];
        below *= chunk->size[k];
    }
    if (checkpoint)
        gathering->data = checkpoint_content(checkpoint, chunk->file).data + chunk->offset;
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

/* Copies or visits the part of the range that lies in one run of the chunk.
 *   base   number of the tensor's element whose indices from dimension flat on are 0
 *   place  start of the run in the chunk [elements of the file] */
static void copy_run(const struct gathering *gathering, uint64_t base, uint64_t place)
{
    unsigned k = gathering->flat;
    uint64_t below = gathering->block[k + 1];
    uint64_t start = base + gathering->chunk->start[k] * below;
    uint64_t from = larger(start, gathering->first);
    uint64_t end = smaller(start + gathering->chunk->size[k] * below, gathering->end);
    if (from >= end)
        return;
    place += (from - start) * gathering->step;
    struct visiting *visiting = gathering->visiting;
    if (visiting) {
        const struct phema_run run = {
            .chunk = (size_t)(gathering->chunk - gathering->tensor->chunks),
            .file = gathering->chunk->file,
            .offset = gathering->chunk->offset + place * gathering->size,
            .first = from,
            .n = end - from,
        };
        if (!visiting->status)
            visiting->status = visiting->visit(visiting->context, &run, visiting->err);
        return;
    }
    copy_row(gathering->out + (from - gathering->first) * gathering->size, gathering->size,
             gathering->data + place * gathering->size, gathering->step * gathering->size,
             end - from, gathering->size);
}

/* The recursion is at most PHEMA_MAX_RANK deep. */
static void descend(const struct gathering *gathering, unsigned k, uint64_t base, uint64_t place)
{
    if (k == gathering->flat) {
        copy_run(gathering, base, place);
        return;
    }
    uint64_t below = gathering->block[k + 1];
    uint64_t low = gathering->chunk->start[k];
    uint64_t high = low + gathering->chunk->size[k];
    if (gathering->end <= base)
        return;
    if (gathering->first > base)
        low = larger(low, (gathering->first - base) / below);
    high = smaller(high, (gathering->end - base - 1) / below + 1);
    for (uint64_t i = low; i < high; i++)
        descend(gathering, k + 1, base + i * below,
                place + (i - gathering->chunk->start[k]) * gathering->stride[k]);
}

/* A view of the range when one contiguous chunk holds all of it, else NULL. */
static const uint8_t *view(const struct gathering *gathering)
{
    uint64_t start = gathering->chunk->start[0] * gathering->block[1];
    uint64_t n = gathering->chunk->size[0] * gathering->block[1];
    if (gathering->flat > 0 || gathering->step != 1 || gathering->first < start ||
        gathering->end > start + n)
        return NULL;
    return gathering->data + (gathering->first - start) * gathering->size;
}

bool chunks_find(size_t *file, uint64_t *offset, const struct phema_checkpoint *checkpoint,
                 const struct phema_tensor *tensor, uint64_t first, uint64_t n)
{
    struct gathering gathering = {.out = NULL};
    start_gathering(&gathering, tensor, first, n);
    for (size_t i = 0; i < tensor->n_chunks; i++) {
        if (!choose_part(&gathering, checkpoint, &tensor->chunks[i]))
            continue;
        const uint8_t *found = view(&gathering);
        if (!found)
            continue;
        *file = tensor->chunks[i].file;
        *offset = (uint64_t)(found - checkpoint_content(checkpoint, *file).data);
        return true;
    }
    return false;
}

const uint8_t *chunks_read(const struct phema_checkpoint *checkpoint,
                           const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                           void *scratch)
{
    struct gathering gathering = {.out = scratch};
    if (n == 0)
        return NULL;
    start_gathering(&gathering, tensor, first, n);
    for (size_t i = 0; i < tensor->n_chunks; i++) {
        if (!choose_part(&gathering, checkpoint, &tensor->chunks[i]))
            continue;
        const uint8_t *found = view(&gathering);
        if (found)
            return found;
        descend(&gathering, 0, 0, 0);
    }
    return scratch;
}

PHEMA_FALLIBLE phema_tensor_visit_runs(const struct phema_tensor *tensor, uint64_t first,
                                       uint64_t n, phema_run_visitor *visit, void *context,
                                       struct phema_error *err)
{
    struct visiting visiting = {visit, context, PHEMA_OK, err};
    struct gathering gathering = {.visiting = &visiting};
    if (n == 0)
        return PHEMA_OK;
    start_gathering(&gathering, tensor, first, n);
    for (size_t i = 0; i < tensor->n_chunks && !visiting.status; i++)
        if (choose_part(&gathering, NULL, &tensor->chunks[i]))
            descend(&gathering, 0, 0, 0);
    return visiting.status;
}

/* Of a chunk, the bytes that hold a part of the range. */
struct prefetching {
    const struct phema_checkpoint *checkpoint;
    const struct phema_tensor *tensor;
    size_t chunk, file;
    uint64_t begin, end; /* equal: none */
};

static void prefetch_chunk(struct prefetching *prefetching)
{
    if (prefetching->end > prefetching->begin)
        phema_file_prefetch(prefetching->checkpoint->files[prefetching->file].file,
                            prefetching->begin, prefetching->end - prefetching->begin);
    prefetching->begin = UINT64_MAX;
    prefetching->end = 0;
}

static enum phema_status prefetch_run(void *context, const struct phema_run *run,
                                      struct phema_error *err)
{
    struct prefetching *prefetching = context;
    (void)err;
    if (prefetching->tensor->chunks[run->chunk].stride)
        return PHEMA_OK;
    if (run->chunk != prefetching->chunk)
        prefetch_chunk(prefetching);
    prefetching->chunk = run->chunk;
    prefetching->file = run->file;
    prefetching->begin = smaller(prefetching->begin, run->offset);
    prefetching->end = larger(prefetching->end,
                              run->offset + phema_dtype_bytes(prefetching->tensor->dtype, run->n));
    return PHEMA_OK;
}

void chunks_prefetch(const struct phema_checkpoint *checkpoint, const struct phema_tensor *tensor,
                     uint64_t first, uint64_t n)
{
    struct prefetching prefetching = {
        .checkpoint = checkpoint, .tensor = tensor, .begin = UINT64_MAX};
    struct phema_error ignored = {0};
    if (!phema_tensor_visit_runs(tensor, first, n, prefetch_run, &prefetching, &ignored))
        prefetch_chunk(&prefetching);
}

static enum phema_status note_run(void *context, const struct phema_run *run,
                                  struct phema_error *err)
{
    (void)err;
    *(struct phema_run *)context = *run;
    return PHEMA_NO; /* no need to look on */
}

void chunks_find_element(size_t *file, uint64_t *offset, const struct phema_tensor *tensor,
                         uint64_t element)
{
    struct phema_run run = {0};
    struct phema_error ignored = {0};
    /* one of the chunks holds it (assembly_check) */
    if (phema_tensor_visit_runs(tensor, element, 1, note_run, &run, &ignored) == PHEMA_NO) {
        *file = run.file;
        *offset = run.offset;
    }
}
