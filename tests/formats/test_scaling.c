// SPDX-License-Identifier: Apache-2.0
/* fp8 tensors with scales: every element and every range against value = code * scale, where the
 * scale is looked up element by element. */
#include "phema/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "phema/file_reader.h"
#include "support.h"

#define MAX_ELEMS  ((size_t)40000)
#define MAX_SCALES ((size_t)4000)

/* Codes [matrices x rows x columns] and scales [matrices x scale_rows x scale_columns]. */
struct shapes {
    const char *codes_shape, *scale_shape;
    size_t matrices, rows, columns, block_rows, block_columns, scale_rows, scale_columns;
};

static const struct shapes cases[] = {
    {"[300,70]", "[3,1]", 1, 300, 70, 128, 128, 3, 1},
    {"[5,700]", "[1,6]", 1, 5, 700, 128, 128, 1, 6},
    {"[257,130]", "[3,2]", 1, 257, 130, 128, 128, 3, 2},
    {"[6,1200]", "[6,600]", 1, 6, 1200, 1, 2, 6, 600}, /* more scales than are read at once */
    {"[48,32]", "[3,2]", 1, 48, 32, 16, 16, 3, 2},     /* no blocks of 128: divided evenly */
    {"[90,17]", "[90]", 1, 90, 17, 1, 17, 90, 1},
    {"[90,17]", "[90,1]", 1, 90, 17, 1, 17, 90, 1},
    {"[90,3,5]", "[90,1,1]", 1, 90, 15, 1, 15, 90, 1},
    {"[90,17]", "[]", 1, 90, 17, 90, 17, 1, 1},
    {"[90,17]", "[1]", 1, 90, 17, 90, 17, 1, 1},
    {"[777]", "[1,1]", 1, 1, 777, 1, 777, 1, 1},
    {"[3,130,66]", "[3,2,1]", 3, 130, 66, 128, 128, 2, 1},
};

static const struct scale_dtype {
    const char *name;
    size_t size;
} dtypes[] = {{"F32", 4}, {"BF16", 2}, {"F8_E8M0", 1}, {"U8", 1}};

static uint8_t codes[MAX_ELEMS];
static uint8_t scales[MAX_SCALES * 4];

/* By the definition of the formats: IEEE 754 without infinities (E4M3), and with them (E5M2). */
static double value_of_code(uint8_t code, bool is_e5m2)
{
    int bits = is_e5m2 ? 2 : 3, bias = is_e5m2 ? 15 : 7;
    int exponent = (code & 127) >> bits, fraction = code & ((1 << bits) - 1);
    double sign = code & 128 ? -1 : 1;
    if (is_e5m2 && exponent == 31)
        return fraction ? (double)NAN : sign * HUGE_VAL;
    if (!is_e5m2 && (code & 127) == 127)
        return (double)NAN;
    return exponent ? sign * ldexp((1 << bits) + fraction, exponent - bias - bits)
                    : sign * ldexp(fraction, 1 - bias - bits);
}

static double value_of_scale(const struct scale_dtype *dtype, size_t i)
{
    uint32_t bits = 0;
    float value;
    if (dtype->size == 1)
        return scales[i] == 255 ? (double)NAN : ldexp(1, scales[i] - 127);
    memcpy((uint8_t *)&bits + (4 - dtype->size), scales + i * dtype->size, dtype->size);
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static void fill(const struct scale_dtype *dtype, size_t n_scales)
{
    uint32_t state = 1;
    for (size_t i = 0; i < MAX_ELEMS; i++)
        codes[i] = (uint8_t)((state = state * 1664525U + 1013904223U) >> 24);
    for (size_t i = 0; i < n_scales; i++) {
        float value = 0.37F + (float)(i * 7919 % 1009) / 100;
        uint32_t bits;
        memcpy(&bits, &value, sizeof(bits));
        if (dtype->size == 1)
            scales[i] = (uint8_t)(i * 29 % 256); /* 2^-127 to 2^127, and NaN */
        else
            memcpy(scales + i * dtype->size, (uint8_t *)&bits + (4 - dtype->size), dtype->size);
    }
}

/* The scale comes first, in the same file. */
static struct phema_checkpoint *open_pair(const struct shapes *shapes,
                                          const struct scale_dtype *dtype, bool is_e5m2)
{
    size_t n = shapes->matrices * shapes->rows * shapes->columns;
    size_t n_scales = shapes->matrices * shapes->scale_rows * shapes->scale_columns;
    size_t scale_bytes = n_scales * dtype->size;
    assert_true(n <= MAX_ELEMS && n_scales <= MAX_SCALES);
    fill(dtype, n_scales);
    char header[512];
    int size =
        snprintf(header + 8, sizeof(header) - 8,
                 "{\"m.weight_scale\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%zu]},"
                 "\"m.weight\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}}",
                 dtype->name, shapes->scale_shape, scale_bytes, is_e5m2 ? "F8_E5M2" : "F8_E4M3",
                 shapes->codes_shape, scale_bytes, scale_bytes + n);
    for (int i = 0; i < 8; i++)
        header[i] = (char)((uint64_t)size >> (8 * i));
    size_t header_size = 8 + (size_t)size;
    uint8_t *file = malloc(header_size + scale_bytes + n);
    assert_non_null(file);
    memcpy(file, header, header_size);
    memcpy(file + header_size, scales, scale_bytes);
    memcpy(file + header_size + scale_bytes, codes, n);
    char *path = support_tmp_path("scaled.safetensors");
    support_write(path, file, header_size + scale_bytes + n);
    free(file);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);
    assert_int_equal(unlink(path), 0);
    free(path);
    return checkpoint;
}

static void check_range(struct phema_reader *reader, const struct phema_tensor *tensor,
                        const struct shapes *shapes, const struct scale_dtype *dtype, bool is_e5m2,
                        size_t first, size_t n)
{
    struct phema_error err = {0};
    uint8_t *scratch = support_guarded(NULL, n * sizeof(float));
    const uint8_t *data = NULL;
    assert_ok(phema_reader_read(&data, reader, tensor, first, n, scratch, &err), &err);
    for (size_t i = first; i < first + n; i++) {
        size_t row = i / shapes->columns, column = i % shapes->columns;
        size_t matrix = row / shapes->rows;
        size_t scale = (matrix * shapes->scale_rows + row % shapes->rows / shapes->block_rows) *
                           shapes->scale_columns +
                       column / shapes->block_columns;
        float expected = (float)(value_of_code(codes[i], is_e5m2) * value_of_scale(dtype, scale)),
              found;
        memcpy(&found, data + (i - first) * sizeof(found), sizeof(found));
        if (isnan(expected))
            assert_true(isnan(found));
        else
            assert_true(found == expected);
    }
}

static void elements_are_codes_times_scales(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(cases); c++)
        for (size_t d = 0; d < ARRAY_LEN(dtypes) * 2; d++) {
            const struct scale_dtype *dtype = &dtypes[d / 2];
            struct phema_checkpoint *checkpoint = open_pair(&cases[c], dtype, d % 2);
            const struct phema_tensor *listed = phema_checkpoint_find(checkpoint, "m.weight", 8);
            assert_non_null(listed);
            assert_non_null(listed->scaling);
            struct phema_tensor tensor = phema_tensor_values(listed);
            assert_int_equal(tensor.dtype, PHEMA_F32);
            struct phema_error err = {0};
            struct phema_reader *reader = NULL;
            assert_ok(phema_reader_open(&reader, checkpoint, &err), &err);
            size_t n = (size_t)tensor.n_elems;
            check_range(reader, &tensor, &cases[c], dtype, d % 2, 0, n);
            check_range(reader, &tensor, &cases[c], dtype, d % 2, n - 1, 1);
            check_range(reader, &tensor, &cases[c], dtype, d % 2, n / 3, n / 2);
            check_range(reader, &tensor, &cases[c], dtype, d % 2, 7, 1);
            phema_reader_close(reader);
            phema_checkpoint_close(checkpoint);
        }
}

static void scales_that_do_not_fit_are_faults(void **state)
{
    (void)state;
    static const struct {
        struct shapes shapes;
        const char *fault;
    } refused[] = {
        {{"[300,70]", "[2,1]", 1, 300, 70, 0, 0, 2, 1}, NULL}, /* 150 rows each */
        {{"[301,70]", "[2,1]", 1, 301, 70, 0, 0, 2, 1}, "F32 [2, 1]: expected one number"},
        {{"[300,70]", "[1,300]", 1, 300, 70, 0, 0, 1, 300}, "F32 [1, 300]: expected"},
        {{"[300,70]", "[70]", 1, 300, 70, 0, 0, 70, 1}, "300 rows, or for each block of 128 x 128"},
        {{"[64]", "[64]", 1, 1, 64, 0, 0, 64, 1}, "F32 [64]: expected one number"},
        {{"[2,64,64]", "[3,1,1]", 2, 64, 64, 0, 0, 3, 1}, "expected one number"},
        {{"[64,64]", "[0,4]", 1, 64, 64, 0, 0, 0, 4}, "is empty"},
        {{"[0,64]", "[0,1]", 1, 0, 64, 0, 0, 0, 1}, "is empty"},
    };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct shapes shapes = refused[i].shapes;
        if (i == 5)
            shapes.matrices = 1, shapes.rows = 128;
        struct phema_checkpoint *checkpoint = open_pair(&shapes, &dtypes[0], false);
        const struct phema_tensor *listed = phema_checkpoint_find(checkpoint, "m.weight", 8);
        const char *fault = phema_checkpoint_scale_fault(checkpoint, listed);
        assert_true(!listed->scaling == (refused[i].fault != NULL));
        assert_true(!fault == !refused[i].fault);
        if (fault && !strstr(fault, refused[i].fault))
            fail_msg("expected '%s' in '%s'", refused[i].fault, fault);
        phema_checkpoint_close(checkpoint);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(elements_are_codes_times_scales),
    cmocka_unit_test(scales_that_do_not_fit_are_faults),
};
TEST_GROUP(tests)
