// SPDX-License-Identifier: Apache-2.0
/* Tiles cover every element of every share once; shares are cut at blocks, whatever the tiles are.
 */
#include "tiling.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

/* Sizes around the block and the tile, empty ones and scalars, dtypes of 4 to 128 bits. */
static const struct {
    uint64_t n_elems;
    enum phema_dtype dtype;
} shapes[] = {{1, PHEMA_F32},      {1024, PHEMA_F16}, {1023, PHEMA_F64},   {0, PHEMA_F32},
              {300000, PHEMA_F16}, {2, PHEMA_F4},     {4098, PHEMA_F4},    {1025, PHEMA_C128},
              {65536, PHEMA_BF16}, {65537, PHEMA_I8}, {100000, PHEMA_C64}, {7, PHEMA_U8}};
#define N ARRAY_LEN(shapes)

struct fake {
    struct phema_series series;
    struct phema_series_tensor tensors[N];
    struct phema_tensor_location places[N];
    struct phema_snapshot snapshot;
};

/* Tensor 9 shares its storage with another one, and is not read by itself. */
static void make_fake(struct fake *fake)
{
    uint64_t offset = 0;
    memset(fake, 0, sizeof(*fake));
    for (size_t i = 0; i < N; i++) {
        fake->tensors[i].tensor = (struct phema_tensor){
            .dtype = shapes[i].dtype,
            .n_elems = shapes[i].n_elems,
            .size_bytes = phema_dtype_bytes(shapes[i].dtype, shapes[i].n_elems)};
        fake->tensors[i].same_as = i;
        /* the last in the list is the first in the file */
        fake->places[N - 1 - i].offset = offset++;
    }
    fake->tensors[9].same_as = 5;
    fake->snapshot.places = fake->places;
    fake->series = (struct phema_series){
        .snapshots = &fake->snapshot, .n = 1, .tensors = fake->tensors, .n_tensors = N};
}

/* seen: [N] arrays of counts, one for each element */
static uint64_t count_share(uint8_t **seen, const struct fake *fake, struct part_range share,
                            size_t tile_elems, unsigned n_threads)
{
    struct phema_error err = {""};
    struct tiling cut;
    enum phema_dtype dtypes[N];
    for (size_t i = 0; i < fake->series.n_tensors; i++)
        dtypes[i] = fake->series.tensors[i].tensor.dtype;
    struct tiling_kinds kinds = {.dtypes = dtypes};
    assert_ok(tiling_make(&cut, &fake->series, &kinds, share, tile_elems, 1 << 16, n_threads, &err),
              &err);
    size_t hint = 0;
    uint64_t bytes = 0;
    for (uint64_t t = 0; t < tiling_n_tiles(&cut); t++) {
        struct tile_range piece = tiling_tile(&cut, t, &hint);
        const struct phema_tensor *tensor = &fake->tensors[piece.tensor].tensor;
        assert_int_equal(piece.first % BLOCK_ELEMS, 0);
        assert_true(piece.n_elems > 0 && piece.n_elems <= cut.tile_elems);
        assert_true(piece.first + piece.n_elems <= tensor->n_elems);
        assert_true(piece.n_elems % BLOCK_ELEMS == 0 ||
                    piece.first + piece.n_elems == tensor->n_elems);
        bytes += phema_dtype_bytes(tensor->dtype, piece.n_elems);
        for (uint64_t e = 0; e < piece.n_elems; e++)
            seen[piece.tensor][piece.first + e]++;
    }
    assert_int_equal(bytes, cut.read_bytes);
    tiling_clear(&cut);
    return bytes;
}

static void shares_are_all_elements_once(void **state)
{
    (void)state;
    static const uint64_t divisions[] = {1, 2, 3, 7, 64, 1000};
    struct fake fake;
    make_fake(&fake);
    uint64_t total = 0;
    for (size_t i = 0; i < N; i++)
        if (i != 9)
            total += fake.tensors[i].tensor.size_bytes;
    for (size_t d = 0; d < ARRAY_LEN(divisions); d++) {
        uint8_t *seen[N];
        for (size_t i = 0; i < N; i++)
            assert_non_null(seen[i] = calloc(shapes[i].n_elems + 1, 1));
        for (uint64_t part = 1; part <= divisions[d]; part++) {
            struct part_range share = {part, divisions[d]};
            /* each process as it likes: memory and targets change the tiles, threads the jobs */
            uint64_t bytes =
                count_share(seen, &fake, share, BLOCK_ELEMS << part % 7, 1 + (unsigned)part % 5);
            /* no more than its share and a block at either end */
            assert_true(bytes <= total / divisions[d] + 2 * BLOCK_ELEMS * 16);
        }
        for (size_t i = 0; i < N; i++) {
            for (uint64_t e = 0; e < shapes[i].n_elems; e++)
                assert_int_equal(seen[i][e], i != 9);
            free(seen[i]);
        }
    }
}

static void no_share_is_all(void **state)
{
    (void)state;
    struct fake fake;
    make_fake(&fake);
    uint8_t *seen[N];
    for (size_t i = 0; i < N; i++)
        assert_non_null(seen[i] = calloc(shapes[i].n_elems + 1, 1));
    (void)count_share(seen, &fake, (struct part_range){0, 0}, 4096, 2);
    for (size_t i = 0; i < N; i++) {
        for (uint64_t e = 0; e < shapes[i].n_elems; e++)
            assert_int_equal(seen[i][e], i != 9);
        free(seen[i]);
    }
}

static void a_series_without_elements_has_no_tiles(void **state)
{
    (void)state;
    struct fake fake;
    make_fake(&fake);
    fake.series.tensors = &fake.tensors[3];
    fake.tensors[3].same_as = 0;
    fake.series.n_tensors = 1; /* of no elements */
    uint8_t *seen[1] = {NULL};
    assert_int_equal(count_share(seen, &fake, (struct part_range){0, 0}, 1024, 1), 0);
    assert_int_equal(count_share(seen, &fake, (struct part_range){2, 3}, 1024, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_all_elements_once),
        cmocka_unit_test(no_share_is_all),
        cmocka_unit_test(a_series_without_elements_has_no_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
