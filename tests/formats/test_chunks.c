// SPDX-License-Identifier: Apache-2.0
/* Tensors in chunks, split at random and stored with random strides, compared with their
 * definition. Element i of each tensor is i, written into its chunk by its indices. */
#include "assembly.h"

#include "build_dcp.h"

#define MAX_BOXES 64

static uint64_t state_of_random = 1;

static uint64_t below(uint64_t n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (state_of_random >> 33) % n;
}

/* Splits one box after another in two, at any place; a split at an edge leaves an empty box. */
static size_t cut(struct dcp_box *boxes, const int64_t *shape, unsigned rank)
{
    size_t n = 1;
    boxes[0] = (struct dcp_box){0};
    memcpy(boxes[0].size, shape, rank * sizeof(*shape));
    size_t n_cuts = 1 + below(12);
    for (size_t i = 0; i < n_cuts; i++) {
        struct dcp_box *box = &boxes[below(n)];
        unsigned d = (unsigned)below(rank);
        if (box->size[d] < 2)
            continue;
        int64_t at = 1 + (int64_t)below((uint64_t)box->size[d] - 1);
        boxes[n] = *box;
        boxes[n].start[d] += at;
        boxes[n].size[d] -= at;
        box->size[d] = at;
        n++;
    }
    return n;
}

/* Strides of the dimensions in some order, sometimes with gaps between elements. */
static size_t choose_strides(int64_t *stride, const int64_t *size, unsigned rank)
{
    unsigned order[DCP_MAX_RANK] = {0, 1, 2};
    if (below(3) == 0) {
        order[0] = rank - 1;
        order[rank - 1] = 0;
    }
    int64_t step = below(4) == 0 ? 2 : 1;
    for (unsigned i = rank; i-- > 0;) {
        stride[order[i]] = step;
        step *= size[order[i]];
    }
    return (size_t)step;
}

static void store_box(struct phema_strbuf *file, struct dcp_box *box, const int64_t *shape,
                      unsigned rank, bool is_wide)
{
    static uint64_t data[4096];
    struct dcp_piece piece = {.storage = is_wide ? "Long" : "Short", .rank = rank, .data = data};
    memcpy(piece.size, box->size, sizeof(box->size));
    piece.first = (int64_t)below(3);
    piece.n_elems = (size_t)piece.first + choose_strides(piece.stride, box->size, rank);
    size_t elem_bytes = is_wide ? 8 : 2;
    piece.size_bytes = piece.n_elems * elem_bytes;
    assert_true(piece.size_bytes <= sizeof(data));
    memset(data, 0xEE, sizeof(data));
    int64_t n = 1;
    for (unsigned d = 0; d < rank; d++)
        n *= box->size[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t place = piece.first, number = 0, rest = i, weight = 1;
        for (unsigned d = rank; d-- > 0; rest /= box->size[d]) {
            int64_t index = rest % box->size[d];
            place += index * piece.stride[d];
            number += (box->start[d] + index) * weight;
            weight *= shape[d];
        }
        memcpy((uint8_t *)data + (size_t)place * elem_bytes, &number, elem_bytes);
    }
    box->path = "__0_0.distcp";
    box->offset = (int64_t)file->size;
    put_dcp_piece(file, &piece);
    box->length = (int64_t)file->size - box->offset;
}

static void check_range(struct phema_reader *reader, const struct phema_tensor *tensor,
                        uint64_t first, uint64_t n)
{
    size_t size = phema_dtype_bits(tensor->dtype) / 8;
    struct phema_error err = {0};
    const uint8_t *read = NULL;
    uint8_t *scratch = malloc(n * size); /* ASan guards both ends */
    assert_non_null(scratch);
    memset(scratch, 0xDD, n * size);
    assert_ok(phema_reader_read(&read, reader, tensor, first, n, scratch, &err), &err);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t value = 0;
        memcpy(&value, read + i * size, size);
        assert_int_equal(value, first + i);
    }
    free(scratch);
}

static void check_tensor(unsigned rank, bool is_wide)
{
    int64_t shape[DCP_MAX_RANK] = {0};
    struct dcp_box boxes[MAX_BOXES];
    for (unsigned d = 0; d < rank; d++)
        shape[d] = 1 + (int64_t)below(9);
    size_t n = cut(boxes, shape, rank);
    struct phema_strbuf file = {0};
    for (size_t i = 0; i < n; i++)
        store_box(&file, &boxes[i], shape, rank, is_wide);
    struct dcp_tensor tensor = {"t", is_wide ? "int64" : "int16", rank, {0}, boxes, n};
    memcpy(tensor.shape, shape, sizeof(shape));
    dcp_write("random", "__0_0.distcp", file.data, file.size);
    dcp_write_metadata("random", &tensor, 1);
    phema_strbuf_clear(&file);

    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_reader *reader = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, dcp_directory("random"), NULL, &err), &err);
    assert_int_equal(phema_checkpoint_n_tensors(checkpoint), 1);
    const struct phema_tensor *read = phema_checkpoint_tensors(checkpoint);
    assert_int_equal(read->chunks ? read->n_chunks : 1, n);
    assert_ok(phema_reader_open(&reader, checkpoint, &err), &err);
    check_range(reader, read, 0, read->n_elems);
    for (int i = 0; i < 20; i++) {
        uint64_t first = below(read->n_elems);
        check_range(reader, read, first, 1 + below(read->n_elems - first));
    }
    phema_reader_close(reader);
    phema_checkpoint_close(checkpoint);
}

static void any_range_of_any_split_is_gathered(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++)
        for (unsigned rank = 1; rank <= DCP_MAX_RANK; rank++)
            check_tensor(rank, round % 2);
}

/* Rows of a tensor of 6 x 4 bytes in two chunks. Rows inside a chunk are mapped; rows across both
 * are copied. */
static void whole_rows_are_views(void **state)
{
    (void)state;
    static const uint8_t bytes[24] = {1};
    struct dcp_piece piece = {"Byte", 0, 2, {3, 4}, {4, 1}, bytes, 12, 12};
    struct phema_strbuf file = {0};
    put_dcp_piece(&file, &piece);
    int64_t length = (int64_t)file.size;
    put_dcp_piece(&file, &piece);
    const struct dcp_box boxes[] = {{{0, 0}, {3, 4}, "a", 0, length, false, false, NULL},
                                    {{3, 0}, {3, 4}, "a", length, length, false, false, NULL}};
    const struct dcp_tensor tensor = {"t", "uint8", 2, {6, 4}, boxes, 2};
    dcp_write("rows", "a", file.data, file.size);
    dcp_write_metadata("rows", &tensor, 1);
    phema_strbuf_clear(&file);

    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_reader *reader = NULL;
    assert_ok(phema_checkpoint_open(&checkpoint, dcp_directory("rows"), NULL, &err), &err);
    assert_ok(phema_reader_open(&reader, checkpoint, &err), &err);
    struct phema_tensor read = *phema_checkpoint_tensors(checkpoint);
    assert_int_equal(read.n_chunks, 2);
    assert_null(phema_tensor_start(checkpoint, &read));
    /* the chunks outlive the listing */
    phema_checkpoint_forget_listing(checkpoint);
    const uint64_t shape[] = {6, 4};
    read.shape = shape;
    const uint8_t *content =
        phema_file_span(phema_checkpoint_file(checkpoint, read.chunks[0].file)).data;
    const uint8_t *data = NULL;
    uint8_t scratch[24];
    assert_ok(phema_reader_read(&data, reader, &read, 5, 7, scratch, &err), &err);
    assert_ptr_equal(data, content + read.chunks[0].offset + 5);
    assert_ok(phema_reader_read(&data, reader, &read, 12, 12, scratch, &err), &err);
    assert_ptr_equal(data, content + read.chunks[1].offset);
    assert_ok(phema_reader_read(&data, reader, &read, 11, 2, scratch, &err), &err);
    assert_ptr_equal(data, scratch);
    phema_reader_close(reader);
    phema_checkpoint_close(checkpoint);
}

/* ---- Coverage, compared with a mark on each element ---- */

enum { MAX_COVER = 6, COVER_RANK = 3 };

struct box {
    uint64_t start[COVER_RANK], size[COVER_RANK];
};

static enum phema_status check(const struct box *boxes, size_t n, unsigned rank, uint64_t n_elems,
                               struct phema_error *err)
{
    struct phema_chunk parts[MAX_COVER];
    memset(parts, 0, sizeof(parts));
    for (size_t i = 0; i < n; i++) {
        parts[i].start = boxes[i].start;
        parts[i].size = boxes[i].size;
    }
    return assembly_check(parts, n, rank, n_elems, err);
}

/* Two chunks overlap, with others between them in the order of the sweep. The chunks omit as many
 * elements as they share, so the number of elements does not reveal the overlap. */
static void overlapping_chunks_need_not_be_neighbours(void **state)
{
    (void)state;
    /*  A .      A begins first, then B beside it, then C inside A
     *  A B
     *  AC B
     *  AC .  */
    static const struct box boxes[] = {{{0, 0}, {4, 1}}, {{1, 1}, {2, 1}}, {{2, 0}, {2, 1}}};
    struct phema_error err = {0};
    assert_fails(check(boxes, 3, 2, 8, &err), PHEMA_ERR_FILE, &err,
                 "the pieces at [0, 0] and [2, 0] overlap");
    /* the same with a long row of boxes in between */
    static const struct box row[] = {
        {{0, 0}, {6, 1}}, {{1, 1}, {1, 1}}, {{2, 1}, {1, 1}}, {{3, 1}, {1, 1}}, {{4, 0}, {2, 1}}};
    assert_fails(check(row, 5, 2, 12, &err), PHEMA_ERR_FILE, &err,
                 "the pieces at [0, 0] and [4, 0] overlap");
}

/* Number of elements in no box, or in several boxes. */
static size_t count_wrong(const struct box *boxes, size_t n, const uint64_t *shape)
{
    size_t n_wrong = 0;
    for (uint64_t i = 0; i < shape[0]; i++)
        for (uint64_t j = 0; j < shape[1]; j++)
            for (uint64_t k = 0; k < shape[2]; k++) {
                const uint64_t at[] = {i, j, k};
                size_t n_here = 0;
                for (size_t b = 0; b < n; b++) {
                    bool is_inside = true;
                    for (unsigned d = 0; d < COVER_RANK; d++)
                        is_inside = is_inside && at[d] - boxes[b].start[d] < boxes[b].size[d];
                    n_here += is_inside;
                }
                n_wrong += n_here != 1;
            }
    return n_wrong;
}

/* Splits a tensor in two repeatedly, then mostly moves or resizes one box. */
static size_t make(struct box *boxes, const uint64_t *shape)
{
    size_t n = 1;
    boxes[0] = (struct box){{0, 0, 0}, {shape[0], shape[1], shape[2]}};
    for (size_t wanted = 1 + below(MAX_COVER); n < wanted; n++) {
        struct box *box = &boxes[below(n)];
        unsigned d = (unsigned)below(COVER_RANK);
        uint64_t at = below(box->size[d] + 1);
        boxes[n] = *box;
        boxes[n].start[d] += at;
        boxes[n].size[d] -= at;
        box->size[d] = at;
    }
    for (uint64_t changes = below(4); changes > 0; changes--) {
        struct box *box = &boxes[below(n)];
        unsigned d = (unsigned)below(COVER_RANK);
        box->size[d] = below(shape[d] + 1);
        box->start[d] = below(shape[d] - box->size[d] + 1);
    }
    return n;
}

static void chunks_are_accepted_when_each_element_is_in_one(void **state)
{
    (void)state;
    size_t n_good = 0, n_bad = 0;
    for (int round = 0; round < 20000; round++) {
        const uint64_t shape[] = {1 + below(4), 1 + below(4), 1 + below(4)};
        struct box boxes[MAX_COVER];
        size_t n = make(boxes, shape);
        bool is_good = count_wrong(boxes, n, shape) == 0;
        struct phema_error err = {0};
        enum phema_status status =
            check(boxes, n, COVER_RANK, shape[0] * shape[1] * shape[2], &err);
        assert_int_equal(status, is_good ? PHEMA_OK : PHEMA_ERR_FILE);
        n_good += is_good;
        n_bad += !is_good;
    }
    assert_true(n_good > 1000 && n_bad > 1000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_range_of_any_split_is_gathered),
    cmocka_unit_test(whole_rows_are_views),
    cmocka_unit_test(overlapping_chunks_need_not_be_neighbours),
    cmocka_unit_test(chunks_are_accepted_when_each_element_is_in_one),
};
TEST_GROUP(tests)
