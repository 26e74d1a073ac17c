// SPDX-License-Identifier: Apache-2.0
/* scaling_read.c - reads fp8 tensors as numbers: codes times scales, in float32. Codes are read to
 * the beginning of the numbers' memory and replaced from the last one on, so that they need none. */
#include <stdalign.h>
#include <string.h>

#include "phema/file_reader.h"
#include "scaling.h"

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

/* Reads the scales up to the end of the row of blocks that this one is in, or up to this one: scales
 * are needed backwards. */
static enum phema_status load_scales(struct scales *scales, uint64_t index, struct phema_error *err)
{
    alignas(PHEMA_INPUT_ALIGNMENT) uint8_t scratch[MAX_SCALES * sizeof(double) + PHEMA_INPUT_ROOM];
    uint64_t columns = scales->scaling->scale_columns;
    uint64_t end = columns < MAX_SCALES ? (index / columns + 1) * columns : index + 1;
    scales->first = end > MAX_SCALES ? end - MAX_SCALES : 0;
    scales->n = end - scales->first;
    const uint8_t *data = NULL;
    enum phema_status status = reader_read_stored(&data, scales->reader, &scales->tensor,
                                                  scales->first, scales->n, scratch, err);
    for (size_t i = 0; i < scales->n && !status; i++)
        scales->values[i] = (float)phema_element_widen(scales->tensor.dtype, data, i);
    return status;
}

/* n numbers, from the last one on: codes may lie at the beginning of out. */
static void multiply(uint8_t *out, const uint8_t *codes, uint64_t n, const float *values,
                     float scale)
{
    for (uint64_t i = n; i-- > 0;) {
        float value = values[codes[i]] * scale;
        memcpy(out + i * sizeof(value), &value, sizeof(value));
    }
}

/* The scale of element `at`, and the elements up to it, in its row, that share the scale. */
static uint64_t find_scale(uint64_t *n, const struct phema_scaling *scaling, uint64_t at)
{
    uint64_t row = at / scaling->columns, column = at % scaling->columns;
    uint64_t scale_row =
        row / scaling->rows * scaling->scale_rows + row % scaling->rows / scaling->block_rows;
    *n = column % scaling->block_columns + 1;
    return scale_row * scaling->scale_columns + column / scaling->block_columns;
}

static enum phema_status read_multiplied(const uint8_t **data, struct phema_reader *reader,
                                         const struct phema_tensor *tensor, uint64_t first,
                                         uint64_t n, void *scratch, struct phema_error *err)
{
    struct phema_tensor codes = phema_tensor_codes(tensor);
    float values[256]; /* of the codes */
    for (unsigned code = 0; code < ARRAY_LEN(values); code++) {
        uint8_t byte = (uint8_t)code;
        values[code] = (float)phema_element_widen(codes.dtype, &byte, 0);
    }
    struct scales scales = {
        .reader = reader, .scaling = tensor->scaling, .tensor = scale_of(&codes)};
    uint8_t *out = scratch;
    const uint8_t *from = NULL;
    enum phema_status status = reader_read_stored(&from, reader, &codes, first, n, out, err);
    if (status)
        return status;
    if (from > out && from < out + n * sizeof(float)) /* where a block of the file begins earlier */
        from = memmove(out, from, (size_t)n);
    for (uint64_t left = n; left > 0;) {
        uint64_t n_alike = 0, index = find_scale(&n_alike, scales.scaling, first + left - 1);
        n_alike = n_alike < left ? n_alike : left;
        if (index < scales.first || index - scales.first >= scales.n)
            status = load_scales(&scales, index, err);
        if (status)
            return status;
        left -= n_alike;
        multiply(out + left * sizeof(float), from + left, n_alike, values,
                 scales.values[index - scales.first]);
    }
    *data = out;
    return PHEMA_OK;
}

enum phema_status phema_reader_read(const uint8_t **data, struct phema_reader *reader,
                                    const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                    void *scratch, struct phema_error *err)
{
    return tensor->scaling && phema_tensor_is_converted(tensor)
               ? read_multiplied(data, reader, tensor, first, n, scratch, err)
               : reader_read_stored(data, reader, tensor, first, n, scratch, err);
}
