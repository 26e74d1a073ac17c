// SPDX-License-Identifier: Apache-2.0
/* Headers equal, byte for byte, those of the Rust library 0.8 for the same tensors. */
#include "phema/formats.h"

#include "build.h"

/* The tensors of a fixture, shuffled and laid out again, give the header and the offsets of the
 * file. */
static void check_fixture(const char *name)
{
    char *path = support_fixture(name);
    size_t size = 0;
    uint8_t *file = support_read(path, &size);
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, path, NULL, &err), &err);

    size_t n = phema_checkpoint_n_tensors(checkpoint);
    struct phema_tensor *tensors = calloc(n + 1, sizeof(*tensors));
    uint64_t *offsets = calloc(n + 1, sizeof(*offsets));
    assert_non_null(tensors);
    assert_non_null(offsets);
    for (size_t i = 0; i < n; i++) {
        tensors[i] = phema_checkpoint_tensors(checkpoint)[(2 * n - 1 - i + 3) % n];
    }
    uint8_t *header = NULL;
    size_t header_size = 0;
    uint64_t total = 0;
    assert_ok(phema_safetensors_layout(&header, &header_size, offsets, &total, tensors, n,
                                       phema_checkpoint_metadata(checkpoint),
                                       phema_checkpoint_n_metadata(checkpoint), &err),
              &err);
    size_t old_size = 8 + phema_load_u64(file);
    assert_int_equal(total - header_size, size - old_size);
    assert_int_equal(header_size % 8, 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(offsets[i] - header_size, tensors[i].offset - old_size);
    /* a control character can be escaped in two ways; then only the meaning is compared, below */
    if (!memchr(file + 8, '\\', old_size - 8)) {
        assert_int_equal(header_size, old_size);
        assert_memory_equal(header, file, header_size);
    }
    struct phema_strbuf written = {0};
    put(&written, header, header_size);
    put(&written, file + old_size, size - old_size);
    struct phema_checkpoint *again = NULL;
    assert_ok(open_bytes(&again, written.data, written.size, &err), &err);
    phema_strbuf_clear(&written);
    assert_int_equal(phema_checkpoint_n_tensors(again), n);
    assert_int_equal(phema_checkpoint_n_metadata(again), phema_checkpoint_n_metadata(checkpoint));
    for (size_t i = 0; i < n; i++) {
        const struct phema_tensor *found =
            phema_checkpoint_find(again, tensors[i].name, tensors[i].name_size);
        assert_non_null(found);
        assert_int_equal(found->offset, offsets[i]);
        assert_int_equal(found->dtype, tensors[i].dtype);
    }
    phema_checkpoint_close(again);
    phema_checkpoint_close(checkpoint);
    free(header);
    free(offsets);
    free(tensors);
    free(file);
    free(path);
}

static void headers_are_those_of_the_library(void **state)
{
    (void)state;
    check_fixture("safetensors/dtypes.safetensors");
    check_fixture("safetensors/names.safetensors");
    check_fixture("safetensors/specials.safetensors");
    check_fixture("safetensors/f4.safetensors");
    check_fixture("safetensors/no_tensors.safetensors");
    check_fixture("safetensors/metadata.safetensors");
    check_fixture("sharded/model-00003-of-00003.safetensors");
}

static void unwritable_tensors_are_refused(void **state)
{
    (void)state;
    struct phema_tensor tensor = {
        .name = "z", .name_size = 1, .dtype = PHEMA_C128, .n_elems = 1, .size_bytes = 16};
    struct phema_error err = {0};
    uint8_t *header = NULL;
    size_t header_size = 0;
    uint64_t offset = 0;
    uint64_t total = 0;
    assert_fails(
        phema_safetensors_layout(&header, &header_size, &offset, &total, &tensor, 1, NULL, 0, &err),
        PHEMA_ERR_OUTPUT, &err, "tensor 'z': safetensors cannot hold dtype C128");
    assert_null(header);

    size_t size = 100000000;
    char *name = malloc(size + 1);
    assert_non_null(name);
    memset(name, 'n', size);
    name[size] = '\0';
    tensor = (struct phema_tensor){
        .name = name, .name_size = size, .dtype = PHEMA_U8, .n_elems = 1, .size_bytes = 1};
    assert_fails(
        phema_safetensors_layout(&header, &header_size, &offset, &total, &tensor, 1, NULL, 0, &err),
        PHEMA_ERR_OUTPUT, &err, "100000000");
    free(name);

    tensor = (struct phema_tensor){
        .name = "z", .name_size = 1, .dtype = PHEMA_U8, .n_elems = 1, .size_bytes = UINT64_MAX};
    assert_fails(
        phema_safetensors_layout(&header, &header_size, &offset, &total, &tensor, 1, NULL, 0, &err),
        PHEMA_ERR_OUTPUT, &err, "too large");
    assert_null(header);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(headers_are_those_of_the_library),
    cmocka_unit_test(unwritable_tensors_are_refused),
};
TEST_GROUP(tests)
