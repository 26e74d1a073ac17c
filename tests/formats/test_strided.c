// SPDX-License-Identifier: Apache-2.0
/* Strided tensors compared with their definition, element by element: the sum of index * stride. */
#include "phema/formats.h"

#include "build.h"

#define MAX_STORAGE 4096

static uint64_t state_of_random = 1;

static uint64_t below(uint64_t n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (state_of_random >> 33) % n;
}

/* A random view of up to 4 dimensions. Returns the number of storage elements it needs. */
static size_t random_view(struct phema_tensor *tensor, uint64_t shape[4], uint64_t stride[4],
                          enum phema_dtype dtype)
{
    tensor->rank = 1 + (unsigned)below(4);
    tensor->n_elems = 1;
    uint64_t last = 0;
    for (unsigned k = 0; k < tensor->rank; k++) {
        shape[k] = 1 + below(5);
        stride[k] = below(12);
        tensor->n_elems *= shape[k];
        last += (shape[k] - 1) * stride[k];
    }
    tensor->shape = shape;
    tensor->stride = stride;
    tensor->dtype = dtype;
    tensor->size_bytes = tensor->n_elems * phema_dtype_bits(dtype) / 8;
    return last + 1;
}

static void check_against_definition(const uint8_t *start, const struct phema_tensor *tensor,
                                     uint64_t first, uint64_t n)
{
    size_t size = phema_dtype_bits(tensor->dtype) / 8;
    uint8_t *scratch = support_guarded(NULL, n * size);
    const uint8_t *read = phema_tensor_read(start, tensor, first, n, scratch);
    assert_ptr_equal(read, scratch);
    for (uint64_t i = first; i < first + n; i++) {
        uint64_t place = 0;
        uint64_t rest = i;
        for (unsigned k = tensor->rank; k-- > 0; rest /= tensor->shape[k])
            place += rest % tensor->shape[k] * tensor->stride[k];
        assert_memory_equal(read + (i - first) * size, start + place * size, size);
    }
}

static void strided_reads_follow_the_definition(void **state)
{
    (void)state;
    static const enum phema_dtype dtypes[] = {PHEMA_U8, PHEMA_F16, PHEMA_F32, PHEMA_F64,
                                              PHEMA_C128};
    static uint8_t bytes[MAX_STORAGE];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)below(256);
    for (int round = 0; round < 300; round++) {
        struct phema_tensor tensor = {0};
        uint64_t shape[4];
        uint64_t stride[4];
        size_t n = random_view(&tensor, shape, stride, dtypes[below(ARRAY_LEN(dtypes))]);
        size_t size = n * phema_dtype_bits(tensor.dtype) / 8;
        assert_true(size <= sizeof(bytes));
        /* ends at an inaccessible page, and therefore begins at any address */
        const uint8_t *start = support_guarded(bytes, size);
        uint64_t first = below(tensor.n_elems);
        check_against_definition(start, &tensor, first, 1 + below(tensor.n_elems - first));
        check_against_definition(start, &tensor, 0, tensor.n_elems);
    }
}

static void reads_in_c_order_are_views(void **state)
{
    (void)state;
    static const uint8_t bytes[64] = {0};
    const uint64_t shape[] = {2, 8};
    struct phema_tensor tensor = {
        .dtype = PHEMA_F16, .rank = 2, .shape = shape, .n_elems = 16, .size_bytes = 32};
    assert_ptr_equal(phema_tensor_read(bytes + 1, &tensor, 3, 5, NULL), bytes + 7);
    tensor.dtype = PHEMA_F4;
    assert_ptr_equal(phema_tensor_read(bytes, &tensor, 6, 2, NULL), bytes + 3);
    tensor.dtype = PHEMA_F6_E2M3; /* four elements occupy three bytes */
    assert_ptr_equal(phema_tensor_read(bytes, &tensor, 12, 4, NULL), bytes + 9);
    tensor.dtype = PHEMA_C128;
    assert_ptr_equal(phema_tensor_read(bytes, &tensor, 3, 1, NULL), bytes + 48);
    assert_null(phema_tensor_read(NULL, &tensor, 0, 0, NULL));
}

/* Bytes [first, first + n) of a storage that is written element by element; the last write wins. */
static void write_by_definition(uint8_t *start, const struct phema_tensor *tensor, uint64_t first,
                                uint64_t n, const uint8_t *data)
{
    size_t size = phema_dtype_bits(tensor->dtype) / 8;
    for (uint64_t i = first; i < first + n; i++) {
        uint64_t place = 0;
        uint64_t rest = i;
        for (unsigned k = tensor->rank; k-- > 0; rest /= tensor->shape[k])
            place += rest % tensor->shape[k] * tensor->stride[k];
        memcpy(start + place * size, data + (i - first) * size, size);
    }
}

static void strided_writes_follow_the_definition(void **state)
{
    (void)state;
    static const enum phema_dtype dtypes[] = {PHEMA_U8, PHEMA_F16, PHEMA_F32, PHEMA_F64,
                                              PHEMA_C128};
    static uint8_t expected[MAX_STORAGE];
    for (int round = 0; round < 300; round++) {
        struct phema_tensor tensor = {0};
        uint64_t shape[4];
        uint64_t stride[4];
        size_t n = random_view(&tensor, shape, stride, dtypes[below(ARRAY_LEN(dtypes))]);
        size_t size = n * phema_dtype_bits(tensor.dtype) / 8;
        assert_true(size <= sizeof(expected));
        for (size_t i = 0; i < size; i++)
            expected[i] = (uint8_t)below(256);
        uint8_t *start = support_guarded(expected, size);
        uint64_t first = below(tensor.n_elems);
        uint64_t taken = 1 + below(tensor.n_elems - first);
        size_t data_size = taken * phema_dtype_bits(tensor.dtype) / 8;
        uint8_t *data = support_guarded(NULL, data_size);
        for (size_t i = 0; i < data_size; i++)
            data[i] = (uint8_t)below(256);
        write_by_definition(expected, &tensor, first, taken, data);
        phema_tensor_write(start, &tensor, first, taken, data);
        assert_memory_equal(start, expected, size);
    }
}

static void writes_in_c_order_are_copies(void **state)
{
    (void)state;
    uint8_t bytes[9] = "........";
    const uint64_t shape[] = {8};
    struct phema_tensor tensor = {
        .dtype = PHEMA_U8, .rank = 1, .shape = shape, .n_elems = 8, .size_bytes = 8};
    phema_tensor_write(bytes, &tensor, 3, 2, "ab");
    assert_string_equal((const char *)bytes, "...ab...");
    tensor.dtype = PHEMA_F4;
    phema_tensor_write(bytes, &tensor, 2, 4, "cd");
    assert_string_equal((const char *)bytes, ".cdab...");
    tensor.dtype = PHEMA_F6_E2M3; /* four elements occupy three bytes */
    phema_tensor_write(bytes, &tensor, 4, 4, "efg");
    assert_string_equal((const char *)bytes, ".cdefg..");
    phema_tensor_write(bytes, &tensor, 4, 0, NULL);
    phema_tensor_write(NULL, &tensor, 0, 0, NULL);
    assert_string_equal((const char *)bytes, ".cdefg..");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(strided_reads_follow_the_definition),
    cmocka_unit_test(reads_in_c_order_are_views),
    cmocka_unit_test(strided_writes_follow_the_definition),
    cmocka_unit_test(writes_in_c_order_are_copies),
};
TEST_GROUP(tests)
