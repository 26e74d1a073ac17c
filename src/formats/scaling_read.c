// SPDX-License-Identifier: Apache-2.0
/* scaling_read.c - reads fp8 tensors as numbers: codes times scales, in float32. Codes are read to
 * the beginning of the numbers' memory and replaced from the last one on, so that they need
 * none. */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "phema/file_reader.h"
#include "reader.h"

/* Scales that are read at once; those of a row of blocks, unless they are more. */
#define MAX_SCALES 512

struct scales {
    struct phema_reader *reader;
    const struct phema_scaling *scaling;
    struct phema_tensor tensor; /* the scale */
    uint64_t first, n;          /* that are held */
    float values[MAX_SCALES];
};

struct phema_tensor phema_tensor_values(const struct phema_tensor *tensor)
{
    struct phema_tensor values = *tensor;
    if (!tensor->scaling)
        return values;
    values.dtype = PHEMA_F32;
    values.size_bytes = phema_dtype_bytes(PHEMA_F32, tensor->n_elems);
    return values;
}

struct phema_tensor phema_tensor_codes(const struct phema_tensor *tensor)
{
    struct phema_tensor codes = *tensor;
    if (!tensor->scaling)
        return codes;
    codes.dtype = tensor->scaling->codes;
    codes.size_bytes = phema_dtype_bytes(codes.dtype, codes.n_elems);
    return codes;
}

static struct phema_tensor scale_of(const struct phema_tensor *codes)
{
    const struct phema_scaling *scaling = codes->scaling;
    return (struct phema_tensor){.name = scaling->name,
                                 .name_size = scaling->name_size,
                                 .dtype = scaling->dtype,
                                 .rank = scaling->rank,
                                 .shape = scaling->shape,
                                 .n_elems = scaling->n_elems,
                                 .size_bytes = phema_dtype_bytes(scaling->dtype, scaling->n_elems),
                                 .file = scaling->file,
                                 .offset = codes->offset + scaling->distance,
                                 .chunks = scaling->chunks,
                                 .n_chunks = scaling->n_chunks};
}

/* Reads the scales up to the end of the row of blocks that this one is in, or up to this one:
 * scales are needed backwards. */
static enum phema_status load_scales(struct scales *scales, uint64_t index, struct phema_error *err)
{
    alignas(PHEMA_INPUT_ALIGNMENT) uint8_t scratch[MAX_SCALES * sizeof(double) + PHEMA_INPUT_ROOM];
    uint64_t columns = scales->scaling->scale_columns;
    uint64_t end = columns < MAX_SCALES ? (index / columns + 1) * columns : index + 1;
    scales->first = end > MAX_SCALES ? end - MAX_SCALES : 0;
    scales->n = end - scales->first;
    const uint8_t *data = NULL;
    if (scales->scaling->values) {
        memcpy(scales->values, scales->scaling->values + scales->first,
               (size_t)scales->n * sizeof(*scales->values));
        return PHEMA_OK;
    }
    enum phema_status status = reader_read_scales(&data, scales->reader, &scales->tensor,
                                                  scales->first, scales->n, scratch, err);
    for (size_t i = 0; i < scales->n && !status; i++)
        scales->values[i] = (float)phema_element_widen(scales->tensor.dtype, data, i);
    return status;
}

uint64_t phema_scaling_find(uint64_t *first, uint64_t *end, const struct phema_scaling *scaling,
                            uint64_t at)
{
    uint64_t row = at / scaling->columns, column = at % scaling->columns;
    uint64_t scale_row =
        row / scaling->rows * scaling->scale_rows + row % scaling->rows / scaling->block_rows;
    uint64_t in_block = column % scaling->block_columns;
    uint64_t after = scaling->columns - column, of_block = scaling->block_columns - in_block;
    *first = at - in_block;
    *end = at + (of_block < after ? of_block : after);
    return scale_row * scaling->scale_columns + column / scaling->block_columns;
}

PHEMA_FALLIBLE phema_reader_convert(const uint8_t **data, struct phema_reader *reader,
                                    const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                    const uint8_t *stored, void *scratch, struct phema_error *err)
{
    if (!phema_tensor_is_converted(tensor)) {
        *data = stored;
        return PHEMA_OK;
    }
    struct phema_tensor codes = phema_tensor_codes(tensor);
    float values[256]; /* of the codes */
    for (unsigned code = 0; code < ARRAY_LEN(values); code++) {
        uint8_t byte = (uint8_t)code;
        values[code] = (float)phema_element_widen(codes.dtype, &byte, 0);
    }
    struct scales scales = {
        .reader = reader, .scaling = tensor->scaling, .tensor = scale_of(&codes)};
    uint8_t *out = scratch;
    for (uint64_t left = n; left > 0;) {
        uint64_t begin = 0, end = 0, last = first + left - 1;
        uint64_t index = phema_scaling_find(&begin, &end, scales.scaling, last);
        uint64_t n_alike = begin < first ? left : last - begin + 1;
        enum phema_status status = PHEMA_OK;
        if (index < scales.first || index - scales.first >= scales.n)
            status = load_scales(&scales, index, err);
        if (status)
            return status;
        left -= n_alike;
        const float scale = scales.values[index - scales.first];
        for (uint64_t i = left + n_alike; i-- > left;) { /* codes may lie at the start of out */
            float value = values[stored[i]] * scale;
            memcpy(out + i * sizeof(value), &value, sizeof(value));
        }
    }
    *data = out;
    return PHEMA_OK;
}

static bool has_scales(const struct phema_tensor *tensor)
{
    return tensor->scaling && phema_tensor_is_converted(tensor);
}

enum phema_status phema_reader_read(const uint8_t **data, struct phema_reader *reader,
                                    const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                    void *scratch, struct phema_error *err)
{
    if (!has_scales(tensor))
        return reader_read_stored(data, reader, tensor, first, n, scratch, err);
    struct phema_tensor codes = phema_tensor_codes(tensor);
    uint8_t *out = scratch;
    const uint8_t *from = NULL;
    enum phema_status status = reader_read_stored(&from, reader, &codes, first, n, out, err);
    if (status)
        return status;
    if (from > out && from < out + n * sizeof(float)) /* where a block of the file begins earlier */
        from = memmove(out, from, (size_t)n);
    return phema_reader_convert(data, reader, tensor, first, n, from, out, err);
}

/* ---- Pages of scales ---- */

typedef void visit_pages(const struct phema_checkpoint *checkpoint,
                         const struct phema_tensor *tensor, uint64_t first, uint64_t n);

/* The scales of elements [first, first + n), and those that load_scales reads with them. */
static void visit_scales(visit_pages *visit, const struct phema_checkpoint *checkpoint,
                         const struct phema_tensor *tensor, uint64_t first, uint64_t n)
{
    const struct phema_scaling *scaling = tensor->scaling;
    if (!has_scales(tensor) || scaling->values || n == 0)
        return;
    struct phema_tensor codes = phema_tensor_codes(tensor), scale = scale_of(&codes);
    uint64_t ignored = 0, columns = scaling->scale_columns;
    uint64_t begin = phema_scaling_find(&ignored, &ignored, scaling, first) / columns * columns;
    uint64_t last = phema_scaling_find(&ignored, &ignored, scaling, first + n - 1);
    begin = begin > MAX_SCALES ? begin - MAX_SCALES : 0;
    visit(checkpoint, &scale, begin, (last / columns + 1) * columns - begin);
}

bool phema_reader_prepare(struct phema_read *read, const struct phema_reader *reader,
                          const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                          uint8_t *buffer)
{
    struct phema_tensor codes = phema_tensor_codes(tensor);
    if (!reader_prepare_stored(read, reader, &codes, first, n, buffer))
        return false;
    visit_scales(tensor_prefetch_stored, reader_checkpoint(reader), tensor, first, n);
    return true;
}

void phema_tensor_prefetch(const struct phema_checkpoint *checkpoint,
                           const struct phema_tensor *tensor, uint64_t first, uint64_t n)
{
    struct phema_tensor codes = phema_tensor_codes(tensor);
    tensor_prefetch_stored(checkpoint, &codes, first, n);
    visit_scales(tensor_prefetch_stored, checkpoint, tensor, first, n);
}

void phema_tensor_release(const struct phema_checkpoint *checkpoint,
                          const struct phema_tensor *tensor, uint64_t first, uint64_t n)
{
    tensor_release_stored(checkpoint, tensor, first, n);
    visit_scales(tensor_release_stored, checkpoint, tensor, first, n);
}

/* ---- Compressed files ---- */

static int by_offset_of_scale(const void *a, const void *b)
{
    const struct phema_tensor *left = *(struct phema_tensor *const *)a;
    const struct phema_tensor *right = *(struct phema_tensor *const *)b;
    uint64_t x = left->offset + left->scaling->distance;
    uint64_t y = right->offset + right->scaling->distance;
    return (x > y) - (x < y);
}

static enum phema_status load(struct phema_checkpoint *checkpoint, struct phema_reader *reader,
                              struct phema_tensor *codes, struct phema_error *err)
{
    struct phema_scaling *held = phema_arena_alloc(&checkpoint->arena, sizeof(*held));
    size_t n = (size_t)codes->scaling->n_elems;
    float *values = phema_arena_array(&checkpoint->chunk_arena, n, sizeof(*values));
    if (!held || !values)
        return phema_fail_memory(err);
    *held = *codes->scaling;
    struct phema_tensor scale = scale_of(codes);
    scale.is_compressed = true;
    uint8_t scratch[MAX_SCALES * sizeof(double)];
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < n && !status; i += MAX_SCALES) {
        size_t n_read = n - i < MAX_SCALES ? n - i : MAX_SCALES;
        const uint8_t *data = NULL;
        status = reader_read_stored(&data, reader, &scale, i, n_read, scratch, err);
        for (size_t x = 0; x < n_read && !status; x++)
            values[i + x] = (float)phema_element_widen(scale.dtype, data, x);
    }
    held->values = values;
    codes->scaling = held;
    return status;
}

static enum phema_status load_all(struct phema_checkpoint *checkpoint, struct phema_tensor **codes,
                                  struct phema_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        if (checkpoint->tensors[i].scaling)
            codes[n++] = &checkpoint->tensors[i];
    qsort(codes, n, sizeof(struct phema_tensor *), by_offset_of_scale);
    struct phema_reader *reader = NULL;
    enum phema_status status = phema_reader_open(&reader, checkpoint, err);
    for (size_t i = 0; i < n && !status; i++)
        status = load(checkpoint, reader, codes[i], err);
    phema_reader_close(reader);
    return status;
}

PHEMA_FALLIBLE scaling_load(struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct phema_tensor **codes = calloc(checkpoint->n_tensors + 1, sizeof(struct phema_tensor *));
    enum phema_status status = codes ? load_all(checkpoint, codes, err) : phema_fail_memory(err);
    free(codes);
    return status;
}
