// SPDX-License-Identifier: Apache-2.0
/* Tiling: the choice of tensors that share tiles. Tiles and parts hold every element once, and
 * sharing tiles does not change the outputs. */
#include "../formats/build.h"
#include "runs.h"
#include "tiling.h"
#include "worker.h"

#define TILE ((size_t)64 << 10)

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* ---- Which tensors share tiles ---- */

enum { MAX_DRAFTS = 3000 };

/* A series of two snapshots without files. */
struct draft {
    struct phema_series series;
    struct phema_series_tensor tensors[MAX_DRAFTS];
    struct phema_tensor_location places[2][MAX_DRAFTS];
    struct phema_snapshot snapshots[2];
    enum phema_dtype dtypes[MAX_DRAFTS];
    size_t rule_of[MAX_DRAFTS];
};

/* F32 tensors of these sizes, in sequence in both. */
static struct draft *draft_new(const size_t *sizes, size_t n)
{
    struct draft *draft = calloc(1, sizeof(*draft));
    assert_non_null(draft);
    uint64_t offset = 100;
    for (size_t i = 0; i < n; i++) {
        draft->tensors[i] = (struct phema_series_tensor){
            .tensor = {.dtype = PHEMA_F32, .n_elems = sizes[i], .size_bytes = 4 * sizes[i]},
            .same_as = i};
        draft->dtypes[i] = PHEMA_F32;
        draft->places[0][i].offset = offset;
        draft->places[1][i].offset = offset + 50;
        offset += 4 * sizes[i];
    }
    for (size_t k = 0; k < 2; k++)
        draft->snapshots[k].locations = draft->places[k];
    draft->series = (struct phema_series){
        .snapshots = draft->snapshots, .n = 2, .tensors = draft->tensors, .n_tensors = n};
    return draft;
}

static void tile_draft(struct tiling *tiling, const struct draft *draft)
{
    struct phema_error err = {0};
    struct tiling_kinds kinds = {draft->dtypes, draft->rule_of};
    assert_ok(tiling_make(tiling, &draft->series, &kinds, (struct part_range){0, 0}, TILE,
                          (uint64_t)8 << 20, 1, &err),
              &err);
}

/* The tensor runs as text, "0 1|2|". */
static void assert_tensor_runs(const struct draft *draft, const char *wanted)
{
    struct tiling tiling;
    tile_draft(&tiling, draft);
    struct phema_strbuf text = {0};
    for (size_t s = 0; s < tiling.n_tensor_runs; s++)
        for (size_t i = tiling.tensor_runs[s].first; i < tiling.tensor_runs[s + 1].first; i++)
            phema_strbuf_printf(&text, "%zu%s", tiling.order[i],
                                i + 1 < tiling.tensor_runs[s + 1].first ? " " : "|");
    assert_string_equal(text.data, wanted);
    phema_strbuf_clear(&text);
    tiling_clear(&tiling);
}

static void tensors_that_are_alike_and_adjacent_share_tiles(void **state)
{
    (void)state;
    static const size_t sizes[] = {5, 1, 7, 3};
    static const uint64_t stride[] = {2};
    static const struct phema_chunk chunk = {.file = 0};
    struct draft *draft = draft_new(sizes, ARRAY_LEN(sizes));
    assert_tensor_runs(draft, "0 1 2 3|");
    struct draft kept = *draft;

    draft->tensors[2].tensor.dtype = PHEMA_I32;
    assert_tensor_runs(draft, "0 1|2|3|");
    draft->tensors[2].tensor.dtype = PHEMA_F32;
    draft->tensors[2].rule = PHEMA_RULE_COPY;
    assert_tensor_runs(draft, "0 1|2|3|");
    draft->tensors[2].rule = PHEMA_RULE_AVERAGE;
    draft->rule_of[1] = draft->rule_of[2] = 1;
    assert_tensor_runs(draft, "0|1 2|3|");
    draft->rule_of[2] = 2;
    assert_tensor_runs(draft, "0|1|2|3|");
    draft->rule_of[1] = draft->rule_of[2] = 0;
    draft->dtypes[1] = PHEMA_BF16;
    assert_tensor_runs(draft, "0|1|2 3|");
    draft->dtypes[1] = PHEMA_F32;
    draft->places[1][3].offset += 4; /* a gap in one of the snapshots */
    assert_tensor_runs(draft, "0 1 2|3|");
    draft->places[1][3] = kept.places[1][3];
    draft->places[1][1].stride = stride;
    assert_tensor_runs(draft, "0|1|2 3|");
    draft->places[1][1].stride = NULL;
    draft->places[0][0].chunks = &chunk;
    assert_tensor_runs(draft, "0|1 2 3|");
    draft->places[0][0].chunks = NULL;
    draft->places[1][1].file = draft->places[1][2].file = draft->places[1][3].file = 1;
    assert_tensor_runs(draft, "0|1 2 3|");
    for (size_t i = 0; i < 4; i++)
        draft->places[1][i].file = 0;
    draft->tensors[3].same_as = 1; /* read once, written twice */
    assert_tensor_runs(draft, "0|1|2|");
    draft->tensors[3].same_as = 3;
    assert_tensor_runs(draft, "0 1 2 3|");
    free(draft);
}

static void a_tensor_run_ends_with_its_last_tile(void **state)
{
    (void)state;
    static const size_t sizes[] = {TILE + 10, TILE - 11, 1, 1, TILE, 2, TILE - 2, 3 * TILE};
    struct draft *draft = draft_new(sizes, ARRAY_LEN(sizes));
    assert_tensor_runs(draft, "0 1 2|3|4|5 6|7|");
    free(draft);
}

/* Every element of every tensor is in one tile, for any order of the calls. */
static void tiles_hold_every_element_once(void **state)
{
    (void)state;
    static size_t sizes[MAX_DRAFTS];
    uint32_t seed = 3;
    for (size_t i = 0; i < MAX_DRAFTS; i++)
        sizes[i] = i % 100 == 7  ? next_random(&seed) % (3 * TILE)
                   : i % 10 == 3 ? next_random(&seed) % 9000
                                 : next_random(&seed) % 3; /* some have no elements */
    struct draft *draft = draft_new(sizes, MAX_DRAFTS);
    struct tiling tiling;
    tile_draft(&tiling, draft);
    uint64_t *seen = calloc(MAX_DRAFTS, sizeof(*seen));
    size_t hint = 0, other = 0;
    for (uint64_t t = 0; t < tiling_n_tiles(&tiling); t++) {
        struct tile_range range = tiling_tile(&tiling, t, &hint);
        uint64_t jumped = next_random(&seed) % tiling_n_tiles(&tiling);
        (void)tiling_tile(&tiling, jumped, &other);
        struct tile_range again = tiling_tile(&tiling, t, &other);
        assert_ptr_equal(again.tensors, range.tensors);
        assert_int_equal(again.position, range.position);
        assert_int_equal(again.first, range.first);
        assert_int_equal(again.n_elems, range.n_elems);
        assert_true(range.n_elems > 0 && range.n_elems <= TILE);
        assert_true(range.n_tensors <= MAX_RUN_TENSORS);
        assert_int_equal(range.first % BLOCK_ELEMS, 0);
        uint64_t start = 0; /* of a tensor in its run */
        for (size_t x = 0; x < range.n_tensors; x++) {
            size_t i = range.tensors[x];
            uint64_t from = start > range.first ? start : range.first;
            uint64_t end = start + sizes[i];
            if (end > range.first + range.n_elems)
                end = range.first + range.n_elems;
            if (from < end) {
                assert_int_equal(seen[i], from - start); /* in order, without omissions */
                seen[i] += end - from;
            }
            start += sizes[i];
        }
    }
    for (size_t i = 0; i < MAX_DRAFTS; i++)
        assert_int_equal(seen[i], sizes[i]);
    assert_true(tiling_n_tiles(&tiling) < MAX_DRAFTS / 10);
    free(seen);
    tiling_clear(&tiling);
    free(draft);
}

/* ---- Sharing tiles changes nothing ---- */

enum { N_TENSORS = 500, N_SNAPSHOTS = 4, LARGE = 250, NAN_AT = 123, HUGE_AT = 211 };

static enum phema_dtype dtype_at(size_t i)
{
    static const enum phema_dtype dtypes[] = {PHEMA_F32, PHEMA_F16, PHEMA_F32, PHEMA_F8_E4M3,
                                              PHEMA_F4,  PHEMA_C64, PHEMA_F32, PHEMA_I64};
    return i == LARGE || i == NAN_AT || i == HUGE_AT ? PHEMA_F32
                                                     : dtypes[i / 30 % ARRAY_LEN(dtypes)];
}

static size_t size_at(size_t i)
{
    uint32_t seed = (uint32_t)i + 1;
    (void)next_random(&seed);
    size_t n = i == LARGE ? 2 * TILE + 77 : i % 17 == 5 ? 1000 + next_random(&seed) % 3000 : 0;
    if (i == NAN_AT || i == HUGE_AT)
        return 40;
    return n ? n / 2 * 2 : next_random(&seed) % 25 * 2; /* even, because F4 must fill bytes */
}

/* Every seventh tensor is the same in all snapshots. */
static void fill(uint8_t *data, size_t i, unsigned snapshot)
{
    enum phema_dtype dtype = dtype_at(i);
    uint32_t seed = (uint32_t)(i * 31 + (i % 7 == 2 ? 0 : snapshot + 1));
    size_t n_bytes = (size_t)phema_dtype_bytes(dtype, size_at(i));
    for (size_t b = 0; b < n_bytes; b++)
        data[b] = (uint8_t)(next_random(&seed) & 0x77); /* no NaN of an 8-bit dtype */
    if (dtype == PHEMA_F16)
        for (size_t b = 1; b < n_bytes; b += 2)
            data[b] = (uint8_t)(data[b] & 0x37);
    for (size_t x = 0; (dtype == PHEMA_F32 || dtype == PHEMA_C64) && x < n_bytes / 4; x++) {
        float value = (float)next_random(&seed) / 16777216.0f - 0.5f;
        if (i == NAN_AT && x == 3)
            value = (float)NAN;
        if (i == HUGE_AT && x == 5)
            value = 1e30f;
        memcpy(data + 4 * x, &value, sizeof(value));
    }
}

/* The header lists the tensors in one order. Their data are in the same or in the reverse order. */
static void write_tiny(const char *directory, unsigned snapshot, bool is_reversed)
{
    struct phema_strbuf json = {0}, file = {0};
    uint64_t offsets[N_TENSORS], end = 0;
    for (size_t x = 0; x < N_TENSORS; x++) {
        size_t i = is_reversed ? N_TENSORS - 1 - x : x;
        offsets[i] = end;
        end += phema_dtype_bytes(dtype_at(i), size_at(i));
    }
    uint8_t *data = calloc(1, end + 1);
    assert_non_null(data);
    for (size_t i = 0; i < N_TENSORS; i++) {
        fill(data + offsets[i], i, snapshot);
        phema_strbuf_printf(
            &json,
            "%s\"t%03zu\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[%llu,"
            "%llu]}",
            i ? "," : "{", i, phema_dtype_name(dtype_at(i)), size_at(i),
            (unsigned long long)offsets[i],
            (unsigned long long)(offsets[i] + phema_dtype_bytes(dtype_at(i), size_at(i))));
    }
    put_text(&json, "}");
    put_safetensors(&file, json.data, 0);
    put(&file, data, end);
    char *path = NULL;
    assert_true(
        asprintf(&path, "%s/snapshot-%07u-0.050.safetensors", directory, 100 * (snapshot + 1)) > 0);
    support_write(path, file.data, file.size);
    free(path);
    free(data);
    phema_strbuf_clear(&json);
    phema_strbuf_clear(&file);
}

static void write_tiny_series(const char *directory, bool is_mixed)
{
    for (unsigned k = 0; k < N_SNAPSHOTS; k++)
        write_tiny(directory, k, is_mixed && k == 1);
}

/* In these files, tensors of the same name have the same bytes. */
static void assert_same_tensors(const char *left_path, const char *right_path)
{
    struct phema_error err = {0};
    struct phema_checkpoint *left = NULL, *right = NULL;
    assert_ok(phema_checkpoint_open(&left, left_path, NULL, &err), &err);
    assert_ok(phema_checkpoint_open(&right, right_path, NULL, &err), &err);
    assert_int_equal(phema_checkpoint_n_tensors(left), phema_checkpoint_n_tensors(right));
    for (size_t i = 0; i < phema_checkpoint_n_tensors(left); i++) {
        const struct phema_tensor *a = &phema_checkpoint_tensors(left)[i];
        const struct phema_tensor *b = phema_checkpoint_find(right, a->name, a->name_size);
        assert_non_null(b);
        assert_int_equal(a->size_bytes, b->size_bytes);
        if (a->size_bytes)
            assert_memory_equal(phema_tensor_start(left, a), phema_tensor_start(right, b),
                                a->size_bytes);
    }
    phema_checkpoint_close(left);
    phema_checkpoint_close(right);
}

static void assert_same_result(const char *shared, const char *alone, const char *out,
                               const char *other_out, const struct request *request)
{
    struct phema_error err = {0};
    struct phema_synth_result a, b;
    assert_ok(synthesise(shared, out, request, &a, &err), &err);
    assert_ok(synthesise(alone, other_out, request, &b, &err), &err);
    assert_int_equal(a.n_nan, b.n_nan);
    assert_int_equal(a.n_inf, b.n_inf);
    assert_int_equal(a.n_overflow, b.n_overflow);
    assert_int_equal(a.n_constant, b.n_constant);
    assert_int_equal(a.n_averaged, b.n_averaged);
    assert_int_equal(a.n_copied, b.n_copied);
    assert_int_equal(a.nan_tensor, b.nan_tensor);
    assert_int_equal(a.read_bytes, b.read_bytes);
}

/* In one series the data have the same order everywhere. In the other one, one snapshot has them in
 * reverse, so tensors cannot share tiles. */
static void sharing_tiles_changes_nothing(void **state)
{
    (void)state;
    char *shared = make_directory("shared"), *alone = make_directory("alone");
    char *out = support_tmp_path("shared.safetensors");
    char *other_out = support_tmp_path("alone.safetensors");
    write_tiny_series(shared, false);
    write_tiny_series(alone, true);
    static const struct request requests[] = {
        {.sigma_rel = 0.08, .n_threads = 1},
        {.sigma_rel = 0.08, .n_threads = 3, .sums = PHEMA_SUMS_F32},
        {.sigma_rel = 0.08, .has_dtype = true, .dtype = PHEMA_BF16},
        {.sigma_rel = 0.08,
         .has_dtype = true,
         .dtype = PHEMA_F16,
         .overflow = PHEMA_OVERFLOW_SATURATES},
        {.sigma_rel = 0.08, .include = "^t[0-9]*[1-8]$"}, /* leaves gaps */
    };
    for (size_t r = 0; r < ARRAY_LEN(requests); r++) {
        assert_same_result(shared, alone, out, other_out, &requests[r]);
        assert_same_tensors(out, other_out);
    }
    free(shared);
    free(alone);
    free(out);
    free(other_out);
}

/* Slow: 300 outputs, four times. */
static void slow_sharing_tiles_changes_nothing_for_many_targets(void **state)
{
    (void)state;
    char *shared = make_directory("shared_many"), *alone = make_directory("alone_many");
    char *out = support_tmp_path("s-{sigma}.safetensors");
    char *other_out = support_tmp_path("a-{sigma}.safetensors");
    write_tiny_series(shared, false);
    write_tiny_series(alone, true);
    static double sigma_rels[300]; /* tiles of 8192 elements, or of 1024 on 8 threads */
    for (size_t j = 0; j < ARRAY_LEN(sigma_rels); j++)
        sigma_rels[j] = (double)(500 + 10 * (j % 100) + j / 100) / 10000;
    for (unsigned n_threads = 1; n_threads <= 8; n_threads += 7) {
        struct request request = {
            .sigma_rels = sigma_rels, .n_sigma_rels = 300, .n_threads = n_threads};
        assert_same_result(shared, alone, out, other_out, &request);
        static const char *const shown[] = {"0.050", "0.098", "0.1492"};
        for (size_t j = 0; j < ARRAY_LEN(shown); j++) {
            char left[32], right[32];
            (void)snprintf(left, sizeof(left), "s-%s.safetensors", shown[j]);
            (void)snprintf(right, sizeof(right), "a-%s.safetensors", shown[j]);
            char *left_path = support_tmp_path(left), *right_path = support_tmp_path(right);
            assert_same_tensors(left_path, right_path);
            free(left_path);
            free(right_path);
        }
    }
    free(shared);
    free(alone);
    free(out);
    free(other_out);
}

/* An error in a tensor names that tensor. */
static void the_tensor_within_a_tile_is_named(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *directory = make_directory("named"), *out = support_tmp_path("named.safetensors");
    write_tiny_series(directory, false);
    struct phema_synth_result result;
    struct request request = {.sigma_rel = 0.08, .include = "^t(12[0-9]|21[0-9])$"};
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
    assert_int_equal(result.n_nan, 1);
    assert_int_equal(result.nan_tensor, NAN_AT - 120);
    request.has_dtype = true;
    request.dtype = PHEMA_F16;
    for (request.n_threads = 1; request.n_threads <= 3; request.n_threads += 2)
        assert_fails(synthesise(directory, out, &request, &result, &err), PHEMA_ERR_OUTPUT, &err,
                     "tensor 't211': 1 averages are too large for F16");
    free(directory);
    free(out);
}

/* ---- Parts ---- */

/* Sizes around the block and the tile, empty tensors and scalars, and dtypes of 4 to 128 bits. */
static const struct {
    uint64_t n_elems;
    enum phema_dtype dtype;
} shapes[] = {{1, PHEMA_F32},      {1024, PHEMA_F16}, {1023, PHEMA_F64},   {0, PHEMA_F32},
              {300000, PHEMA_F16}, {2, PHEMA_F4},     {4098, PHEMA_F4},    {1025, PHEMA_C128},
              {65536, PHEMA_BF16}, {65537, PHEMA_I8}, {100000, PHEMA_C64}, {7, PHEMA_U8}};
#define N_SHAPES ARRAY_LEN(shapes)

struct fake {
    struct phema_series series;
    struct phema_series_tensor tensors[N_SHAPES];
    struct phema_tensor_location places[N_SHAPES];
    struct phema_snapshot snapshot;
};

/* Tensor 9 shares its storage with another one and is not read separately. */
static void make_fake(struct fake *fake)
{
    uint64_t offset = 0;
    memset(fake, 0, sizeof(*fake));
    for (size_t i = 0; i < N_SHAPES; i++) {
        fake->tensors[i].tensor = (struct phema_tensor){
            .dtype = shapes[i].dtype,
            .n_elems = shapes[i].n_elems,
            .size_bytes = phema_dtype_bytes(shapes[i].dtype, shapes[i].n_elems)};
        fake->tensors[i].same_as = i;
        /* the last in the list is the first in the file */
        fake->places[N_SHAPES - 1 - i].offset = offset++;
    }
    fake->tensors[9].same_as = 5;
    fake->snapshot.locations = fake->places;
    fake->series = (struct phema_series){
        .snapshots = &fake->snapshot, .n = 1, .tensors = fake->tensors, .n_tensors = N_SHAPES};
}

/* seen: [N_SHAPES] arrays with one count for each element */
static uint64_t count_part(uint8_t **seen, const struct fake *fake, struct part_range part,
                           size_t tile_elems, unsigned n_threads)
{
    struct phema_error err = {0};
    struct tiling tiling;
    enum phema_dtype dtypes[N_SHAPES];
    for (size_t i = 0; i < fake->series.n_tensors; i++)
        dtypes[i] = fake->series.tensors[i].tensor.dtype;
    struct tiling_kinds kinds = {.dtypes = dtypes};
    assert_ok(
        tiling_make(&tiling, &fake->series, &kinds, part, tile_elems, 1 << 16, n_threads, &err),
        &err);
    size_t hint = 0;
    uint64_t bytes = 0;
    for (uint64_t t = 0; t < tiling_n_tiles(&tiling); t++) {
        struct tile_range range = tiling_tile(&tiling, t, &hint);
        const struct phema_tensor *tensor = &fake->tensors[range.tensor].tensor;
        assert_int_equal(range.first % BLOCK_ELEMS, 0);
        assert_true(range.n_elems > 0 && range.n_elems <= tiling.tile_elems);
        assert_true(range.first + range.n_elems <= tensor->n_elems);
        assert_true(range.n_elems % BLOCK_ELEMS == 0 ||
                    range.first + range.n_elems == tensor->n_elems);
        bytes += phema_dtype_bytes(tensor->dtype, range.n_elems);
        for (uint64_t e = 0; e < range.n_elems; e++)
            seen[range.tensor][range.first + e]++;
    }
    assert_int_equal(bytes, tiling.read_bytes);
    tiling_clear(&tiling);
    return bytes;
}

static void parts_hold_every_element_once(void **state)
{
    (void)state;
    static const uint64_t divisions[] = {1, 2, 3, 7, 64, 1000};
    struct fake fake;
    make_fake(&fake);
    uint64_t total = 0;
    for (size_t i = 0; i < N_SHAPES; i++)
        if (i != 9)
            total += fake.tensors[i].tensor.size_bytes;
    for (size_t d = 0; d < ARRAY_LEN(divisions); d++) {
        uint8_t *seen[N_SHAPES];
        for (size_t i = 0; i < N_SHAPES; i++)
            assert_non_null(seen[i] = calloc(shapes[i].n_elems + 1, 1));
        for (uint64_t p = 1; p <= divisions[d]; p++) {
            struct part_range part = {p, divisions[d]};
            /* processes may differ: memory and targets change the tiles, and threads change the
             * jobs */
            uint64_t bytes =
                count_part(seen, &fake, part, BLOCK_ELEMS << p % 7, 1 + (unsigned)p % 5);
            /* at most its part and a block at either end */
            assert_true(bytes <= total / divisions[d] + 2 * BLOCK_ELEMS * 16);
        }
        for (size_t i = 0; i < N_SHAPES; i++) {
            for (uint64_t e = 0; e < shapes[i].n_elems; e++)
                assert_int_equal(seen[i][e], i != 9);
            free(seen[i]);
        }
    }
}

static void without_parts_all_elements_are_tiled(void **state)
{
    (void)state;
    struct fake fake;
    make_fake(&fake);
    uint8_t *seen[N_SHAPES];
    for (size_t i = 0; i < N_SHAPES; i++)
        assert_non_null(seen[i] = calloc(shapes[i].n_elems + 1, 1));
    (void)count_part(seen, &fake, (struct part_range){0, 0}, 4096, 2);
    for (size_t i = 0; i < N_SHAPES; i++) {
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
    fake.series.n_tensors = 1; /* without elements */
    uint8_t *seen[1] = {NULL};
    assert_int_equal(count_part(seen, &fake, (struct part_range){0, 0}, 1024, 1), 0);
    assert_int_equal(count_part(seen, &fake, (struct part_range){2, 3}, 1024, 1), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tensors_that_are_alike_and_adjacent_share_tiles),
    cmocka_unit_test(a_tensor_run_ends_with_its_last_tile),
    cmocka_unit_test(tiles_hold_every_element_once),
    cmocka_unit_test(sharing_tiles_changes_nothing),
    cmocka_unit_test(slow_sharing_tiles_changes_nothing_for_many_targets),
    cmocka_unit_test(the_tensor_within_a_tile_is_named),
    cmocka_unit_test(parts_hold_every_element_once),
    cmocka_unit_test(without_parts_all_elements_are_tiled),
    cmocka_unit_test(a_series_without_elements_has_no_tiles),
};
TEST_GROUP(tests)
