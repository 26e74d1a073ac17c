// SPDX-License-Identifier: Apache-2.0
/* Reads past the page cache, by a queue or at once, give the bytes of the mapping: in every format,
 * for ranges of each tensor. Ranges that do not lie in one piece are left to the mapping. */
#include <stdlib.h>
#include <string.h>

#include "phema/formats.h"
#include "support.h"

struct pair {
    struct phema_checkpoint *checkpoint;
    struct phema_reader *direct, *mapped;
    struct phema_read_queue *queue;
    size_t n_ahead; /* ranges that were read by the queue */
};

/* false: the filesystem cannot read past the page cache. */
static bool open_pair(struct pair *pair, const char *name)
{
    static const struct phema_reading reading = {.io = PHEMA_IO_DIRECT};
    struct phema_error err = {0};
    char *path = support_fixture(name);
    *pair = (struct pair){0};
    assert_ok(phema_checkpoint_open(&pair->checkpoint, path, NULL, &err), &err);
    assert_ok(phema_reader_open(&pair->direct, pair->checkpoint, &err), &err);
    assert_ok(phema_reader_open(&pair->mapped, pair->checkpoint, &err), &err);
    assert_ok(phema_read_queue_open(&pair->queue, 4, PHEMA_READ_BY_ANY, &err), &err);
    free(path);
    enum phema_status status = phema_reader_use(pair->direct, &reading, &err);
    if (status)
        assert_fails(status, PHEMA_ERR_FILE, &err, "use --io read");
    return status == PHEMA_OK;
}

static void close_pair(struct pair *pair)
{
    phema_read_queue_close(pair->queue);
    phema_reader_close(pair->direct);
    phema_reader_close(pair->mapped);
    phema_checkpoint_close(pair->checkpoint);
}

static void check_range(struct pair *pair, const struct phema_tensor *tensor, uint64_t first,
                        uint64_t n)
{
    struct phema_error err = {0};
    size_t size = (size_t)phema_dtype_bytes(tensor->dtype, n);
    struct phema_tensor codes = phema_tensor_codes(tensor);
    size_t whole = (size + PHEMA_INPUT_ROOM) / PHEMA_INPUT_ALIGNMENT * PHEMA_INPUT_ALIGNMENT +
                   PHEMA_INPUT_ALIGNMENT;
    uint8_t *buffer = aligned_alloc(PHEMA_INPUT_ALIGNMENT, whole), *scratch = malloc(size + 1);
    uint8_t *numbers = malloc(size + 1);
    const uint8_t *found = NULL, *wanted = NULL;
    struct phema_read read;
    size_t file = 0;
    uint64_t offset = 0;
    assert_non_null(buffer);
    assert_non_null(scratch);
    assert_non_null(numbers);
    assert_ok(phema_reader_read(&wanted, pair->mapped, tensor, first, n, scratch, &err), &err);
    assert_ok(phema_reader_read(&found, pair->direct, tensor, first, n, buffer, &err), &err);
    assert_memory_equal(found, wanted, size);
    phema_tensor_prefetch(pair->checkpoint, tensor, first, n); /* changes nothing */
    if (phema_tensor_find(&file, &offset, tensor, first))
        assert_memory_equal(phema_file_span(phema_checkpoint_file(pair->checkpoint, file)).data +
                                offset,
                            wanted, (size_t)phema_dtype_bytes(tensor->dtype, 2) / 2);
    else
        assert_true(tensor->stride || tensor->is_compressed || codes.dtype != tensor->dtype);
    if (phema_reader_prepare(&read, pair->direct, tensor, first, n, buffer)) {
        phema_read_queue_submit(pair->queue, &read);
        assert_ptr_equal(phema_read_queue_wait(pair->queue), &read);
        assert_ok(phema_reader_complete(&found, &read, tensor, &err), &err);
        assert_ok(
            phema_reader_convert(&found, pair->direct, tensor, first, n, found, numbers, &err),
            &err);
        assert_memory_equal(found, wanted, size);
        pair->n_ahead++;
    } else {
        assert_true(tensor->stride || tensor->chunks || tensor->is_compressed);
    }
    free(buffer);
    free(scratch);
    free(numbers);
}

static size_t check_all(const char *name)
{
    struct pair pair;
    bool is_direct = open_pair(&pair, name);
    for (size_t i = 0; is_direct && i < phema_checkpoint_n_tensors(pair.checkpoint); i++) {
        struct phema_tensor values =
            phema_tensor_values(&phema_checkpoint_tensors(pair.checkpoint)[i]);
        const struct phema_tensor *tensor = &values;
        uint64_t n = tensor->n_elems;
        if (n == 0)
            continue;
        check_range(&pair, tensor, 0, n);
        check_range(&pair, tensor, n / 2 / 2 * 2, n - n / 2 / 2 * 2);
        for (uint64_t first = 0; first + 2 <= n && first < 64; first += 2)
            check_range(&pair, tensor, first, 2);
    }
    close_pair(&pair);
    if (!is_direct)
        skip();
    return pair.n_ahead;
}

static void every_format_is_read_by_a_queue(void **state)
{
    (void)state;
    assert_true(check_all("sharded/model.safetensors.index.json") > 10);
    assert_true(check_all("dcp/one_rank") > 10);
    assert_true(check_all("edm2/snapshots/network-snapshot-0000004-0.050.pkl") > 10);
    assert_true(check_all("ema_pytorch/snapshots/0.50.pt") > 10);
}

/* In pieces by rows most ranges lie in one piece; by columns few do. */
static void pieces_of_a_tensor_are_read_by_a_queue(void **state)
{
    (void)state;
    assert_true(check_all("dcp/two_ranks") > 10);
}

/* The numbers of codes, whose scales are requested into the page cache. */
static void codes_are_read_by_a_queue(void **state)
{
    (void)state;
    assert_true(check_all("trainers/fp8_block/checkpoint-100") > 10);
    assert_true(check_all("trainers/fp8_block16/checkpoint-100") > 10);
    assert_true(check_all("trainers/fp8_tensor/checkpoint-10") > 10);
    assert_true(check_all("scaled/channel/snapshot-0001000-0.050.safetensors") > 10);
}

static void others_are_left_to_the_mapping(void **state)
{
    (void)state;
    assert_int_equal(check_all("zst/gaps.safetensors.zst"), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_format_is_read_by_a_queue),
    cmocka_unit_test(pieces_of_a_tensor_are_read_by_a_queue),
    cmocka_unit_test(codes_are_read_by_a_queue),
    cmocka_unit_test(others_are_left_to_the_mapping),
};
TEST_GROUP(tests)
