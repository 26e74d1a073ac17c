// SPDX-License-Identifier: Apache-2.0
/* Blocks that are equal in all snapshots are copied bit for bit, and the blocks next to them are
 * averaged. The bytes do not depend on tiles, targets or threads, nor on whether data are views or
 * gathered. */
#include "../formats/build.h"
#include "runs.h"
#include "worker.h"

#define N_ELEMS (4 * BLOCK_ELEMS + 904) /* the last block is partial */

static const uint32_t odd_values[] = {0x7FC12345, 0xFFC00001, 0x7F800000, 0xFF800000,
                                      0x80000000, 0x00000001, 0x3DCCCCCD, 0xFF7FFFFF};

static void fill_odd(uint32_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        data[i] = odd_values[i % ARRAY_LEN(odd_values)];
}

/* Blocks 1 and 4 are equal, and block 2 except for its last element. Blocks 0 and 3 differ
 * everywhere. */
static void fill_f32(uint32_t *data, uint32_t value)
{
    for (size_t i = 0; i < N_ELEMS; i++)
        data[i] = value;
    fill_odd(data + BLOCK_ELEMS, 2 * BLOCK_ELEMS - 1);
    fill_odd(data + 4 * BLOCK_ELEMS, N_ELEMS - 4 * BLOCK_ELEMS);
}

#define FLOAT_2 0x40000000u
#define FLOAT_6 0x40C00000u
#define FLOAT_5 0x40A00000u

static struct phema_checkpoint *open_made(const char *path)
{
    struct phema_error err = {0};
    struct phema_checkpoint *made = NULL;
    assert_ok(phema_checkpoint_open(&made, path, NULL, &err), &err);
    return made;
}

/* Two snapshots of one tensor in a directory of this name, averaged as requested. */
static struct phema_checkpoint *average_two(const char *name, enum phema_dtype dtype, size_t n,
                                            const void *old, const void *new,
                                            const struct request *request,
                                            struct phema_synth_result *result)
{
    struct phema_error err = {0};
    char *directory = support_tmp_path(name), *out = NULL;
    (void)mkdir(directory, 0777);
    assert_true(asprintf(&out, "%s.safetensors", directory) > 0);
    const struct entry first[] = {{"w", dtype, n, false, old}};
    const struct entry second[] = {{"w", dtype, n, false, new}};
    write_snapshot(directory, "snapshot-0000100-0.050.safetensors", first, 1);
    write_snapshot(directory, "snapshot-0000200-0.050.safetensors", second, 1);
    assert_ok(synthesise(directory, out, request, result, &err), &err);
    struct phema_checkpoint *made = open_made(out);
    free(directory);
    free(out);
    return made;
}

static void equal_blocks_are_copied_bit_for_bit(void **state)
{
    (void)state;
    static uint32_t old[N_ELEMS], new[N_ELEMS], got[N_ELEMS];
    fill_f32(old, FLOAT_2);
    fill_f32(new, FLOAT_6);
    static const enum phema_sums sums[] = {PHEMA_SUMS_F64, PHEMA_SUMS_F32};
    for (size_t a = 0; a < ARRAY_LEN(sums); a++) {
        struct request request = {.weights = two_files, .sums = sums[a]};
        struct phema_synth_result result;
        struct phema_checkpoint *made =
            average_two("blocks", PHEMA_F32, N_ELEMS, old, new, &request, &result);
        memcpy(got, find(made, "w"), sizeof(got));
        for (size_t i = 0; i < N_ELEMS; i++) {
            size_t block = i / BLOCK_ELEMS;
            if (block == 1 || block == 4)
                assert_int_equal(got[i], new[i]);
            else if (block == 0 || block == 3 || i == 3 * BLOCK_ELEMS - 1)
                assert_int_equal(got[i], FLOAT_5); /* 1/4 2 + 3/4 6, exact in float too */
        }
        assert_int_equal(result.n_constant, 0); /* the tensor varies */
        assert_int_equal(result.n_averaged, 1);
        /* in blocks 1, 2 and 4, two of eight are NaN and two infinite: copied ones are counted
         * too */
        assert_int_equal(result.n_nan, 2 * (2 * BLOCK_ELEMS + 904) / 8);
        assert_int_equal(result.n_inf, 2 * (2 * BLOCK_ELEMS + 904) / 8);
        phema_checkpoint_close(made);
    }
}

static void a_block_of_doubles_keeps_what_only_doubles_hold(void **state)
{
    (void)state;
    enum { N = 2 * BLOCK_ELEMS + 3 };
    static uint64_t old[N], new[N], got[N];
    static const uint64_t odd[] = {0x7FF8000000ABCDEF, 0x7FEFFFFFFFFFFFFF, 0x0000000000000001,
                                   0x3FB999999999999A, 0xFFF0000000000000};
    for (size_t i = 0; i < N; i++) {
        bool is_varying = i < BLOCK_ELEMS;
        old[i] = is_varying ? 0x4000000000000000 : odd[i % ARRAY_LEN(odd)]; /* 2 */
        new[i] = is_varying ? 0x4018000000000000 : odd[i % ARRAY_LEN(odd)]; /* 6 */
    }
    struct request request = {.weights = two_files, .sums = PHEMA_SUMS_F32};
    struct phema_synth_result result;
    struct phema_checkpoint *made =
        average_two("doubles", PHEMA_F64, N, old, new, &request, &result);
    memcpy(got, find(made, "w"), sizeof(got));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(got[i], i < BLOCK_ELEMS ? 0x4014000000000000 : new[i]);
    phema_checkpoint_close(made);
}

static void weights_that_do_not_sum_to_one_copy_nothing(void **state)
{
    (void)state;
    static float data[2 * BLOCK_ELEMS];
    for (size_t i = 0; i < ARRAY_LEN(data); i++)
        data[i] = 2;
    struct request request = {.weights = "snapshot-0000100-0.050.safetensors 0.5\n"
                                         "snapshot-0000200-0.050.safetensors 0.25\n"};
    struct phema_synth_result result;
    struct phema_checkpoint *made =
        average_two("no_sum", PHEMA_F32, ARRAY_LEN(data), data, data, &request, &result);
    const uint8_t *bytes = find(made, "w");
    for (size_t i = 0; i < ARRAY_LEN(data); i++) {
        float got;
        memcpy(&got, bytes + i * sizeof(got), sizeof(got));
        assert_true(got == 1.5f);
    }
    assert_int_equal(result.n_averaged, 1);
    phema_checkpoint_close(made);
}

/* Equal blocks written in another dtype hold the same values, rounded once; NaN stays NaN. */
static void equal_blocks_are_converted(void **state)
{
    (void)state;
    static uint32_t old[N_ELEMS], new[N_ELEMS];
    static uint16_t got[N_ELEMS];
    fill_f32(old, FLOAT_2);
    fill_f32(new, FLOAT_6);
    struct request request = {.weights = two_files,
                              .has_dtype = true,
                              .dtype = PHEMA_BF16,
                              .overflow = PHEMA_OVERFLOW_BECOMES_INF};
    struct phema_synth_result result;
    struct phema_checkpoint *made =
        average_two("converted", PHEMA_F32, N_ELEMS, old, new, &request, &result);
    memcpy(got, find(made, "w"), sizeof(got));
    /* of odd_values without the two NaNs: 0.1 is 3DCC CCCD and rounds up, the largest to
     * infinity */
    static const uint16_t wanted[] = {0, 0, 0x7F80, 0xFF80, 0x8000, 0x0000, 0x3DCD, 0xFF80};
    for (size_t i = BLOCK_ELEMS; i < 2 * BLOCK_ELEMS; i++) {
        if (i % 8 < 2)
            assert_true((got[i] & 0x7FFF) > 0x7F80);
        else
            assert_int_equal(got[i], wanted[i % 8]);
    }
    assert_int_equal(got[0], FLOAT_5 >> 16);
    phema_checkpoint_close(made);
}

static void complex_blocks_have_two_numbers_an_element(void **state)
{
    (void)state;
    enum { N = 2 * BLOCK_ELEMS + 1 };
    static uint32_t old[2 * N], new[2 * N], got[2 * N];
    fill_odd(old, 2 * (size_t)N);
    memcpy(new, old, sizeof(new));
    for (size_t i = 0; i < 2 * BLOCK_ELEMS; i++) {
        old[i] = FLOAT_2;
        new[i] = FLOAT_6;
    }
    struct request request = {.weights = two_files};
    struct phema_synth_result result;
    struct phema_checkpoint *made =
        average_two("complex", PHEMA_C64, N, old, new, &request, &result);
    memcpy(got, find(made, "w"), sizeof(got));
    for (size_t i = 0; i < ARRAY_LEN(got); i++)
        assert_int_equal(got[i], i < 2 * BLOCK_ELEMS ? FLOAT_5 : new[i]);
    phema_checkpoint_close(made);
}

/* ---- Tiles, targets, threads ---- */

enum { N_BIG = 150001, N_BIG_SNAPSHOTS = 5 };

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Frozen stretches of odd values, some of which end inside blocks. */
static void write_big(const char *directory)
{
    uint32_t *data = malloc(sizeof(*data) * N_BIG), seed = 1;
    assert_non_null(data);
    for (int k = 0; k < N_BIG_SNAPSHOTS; k++) {
        for (size_t i = 0; i < N_BIG; i++) {
            float value = (float)next_random(&seed) / 16777216.0f;
            memcpy(&data[i], &value, sizeof(value));
        }
        for (size_t start = 0; start + 9000 < N_BIG; start += 20000)
            fill_odd(data + start, 2900 + start % 7000);
        char name[64];
        (void)snprintf(name, sizeof(name), "snapshot-%07d-0.050.safetensors", 100 * (k + 1));
        const struct entry entries[] = {{"w", PHEMA_F32, N_BIG, false, data}};
        write_snapshot(directory, name, entries, 1);
    }
    free(data);
}

static void bytes_do_not_depend_on_tiles_targets_and_threads(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *directory = make_directory("big");
    write_big(directory);
    char *alone = support_tmp_path("alone.safetensors"),
         *many = support_tmp_path("m-{sigma}.safetensors");
    struct request request = {.sigma_rel = 0.08, .n_threads = 1};
    struct phema_synth_result result;
    assert_ok(synthesise(directory, alone, &request, &result, &err), &err);
    struct phema_checkpoint *wanted = open_made(alone);

    /* 300 rows of sums on eight threads leave 4 MiB / 300 / 8 for a tile, which is the smallest
     * size */
    static double sigma_rels[300];
    for (size_t j = 0; j < ARRAY_LEN(sigma_rels); j++)
        sigma_rels[j] = 0.0505 + 0.0001 * (double)j;
    sigma_rels[295] = 0.08; /* equal to the sigma_rel above, to the last bit */
    static const struct {
        size_t n_targets;
        unsigned n_threads;
    } runs[] = {{300, 8}, {300, 1}, {296, 3}};
    for (size_t r = 0; r < ARRAY_LEN(runs); r++) {
        request = (struct request){.sigma_rels = sigma_rels,
                                   .n_sigma_rels = runs[r].n_targets,
                                   .n_threads = runs[r].n_threads};
        assert_ok(synthesise(directory, many, &request, &result, &err), &err);
        char *path = support_tmp_path("m-0.080.safetensors");
        struct phema_checkpoint *made = open_made(path);
        assert_memory_equal(find(made, "w"), find(wanted, "w"), sizeof(float) * N_BIG);
        phema_checkpoint_close(made);
        free(path);
    }
    uint32_t got[2900];
    memcpy(got, find(wanted, "w"), sizeof(got));
    for (size_t i = 0; i < 2 * BLOCK_ELEMS; i++) /* the two whole blocks of the first stretch */
        assert_int_equal(got[i], odd_values[i % ARRAY_LEN(odd_values)]);
    phema_checkpoint_close(wanted);
    free(directory);
    free(alone);
    free(many);
}

/* ---- Views and gathered tensors ---- */

enum { N_ROWS = 3, N_COLUMNS = 1500 };

static void put_u32(struct phema_strbuf *out, uint32_t value)
{
    put(out, "J", 1);
    put_int(out, value, 4);
}

/* A torch file with a pickle and one storage. */
static void write_archive(const char *directory, const char *name,
                          const struct phema_strbuf *pickle, const void *storage, size_t size)
{
    struct phema_strbuf file = {0};
    const struct zip_record records[] = {{"a/data.pkl", pickle->data, pickle->size},
                                         {"a/version", "3\n", 2},
                                         {"a/data/0", storage, size}};
    size_t headers[ARRAY_LEN(records)];
    put_zip(&file, records, ARRAY_LEN(records), headers);
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
    support_write(path, file.data, file.size);
    free(path);
    phema_strbuf_clear(&file);
}

/* A torch file with 'w' [rows, columns], whose storage is by columns. */
static void write_transposed(const char *directory, const char *name, const float *data)
{
    struct phema_strbuf pickle = {0};
    static const char head[] = "\x80\x02}(X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0"
                               "storagectorch\nFloatStorage\nX\1\0\0\0"
                               "0X\3\0\0\0cpu";
    put(&pickle, head, sizeof(head) - 1);
    put_u32(&pickle, N_ROWS * N_COLUMNS);
    put(&pickle, "tQK\0", 4);
    put_u32(&pickle, N_ROWS);
    put_u32(&pickle, N_COLUMNS);
    put(&pickle, "\x86", 1);
    put_u32(&pickle, 1);
    put_u32(&pickle, N_ROWS);
    static const char tail[] = "\x86\x89NtRu.";
    put(&pickle, tail, sizeof(tail) - 1);
    static float stored[N_ROWS * N_COLUMNS];
    for (size_t i = 0; i < N_ROWS; i++)
        for (size_t x = 0; x < N_COLUMNS; x++)
            stored[x * N_ROWS + i] = data[i * N_COLUMNS + x];
    write_archive(directory, name, &pickle, stored, sizeof(stored));
    phema_strbuf_clear(&pickle);
}

static void write_plain(const char *directory, const char *name, const float *data)
{
    struct phema_error err = {0};
    static const uint64_t shape[] = {N_ROWS, N_COLUMNS};
    struct phema_tensor tensor = {.name = "w",
                                  .name_size = 1,
                                  .dtype = PHEMA_F32,
                                  .rank = 2,
                                  .shape = shape,
                                  .n_elems = N_ROWS * N_COLUMNS,
                                  .size_bytes = N_ROWS * N_COLUMNS * sizeof(float)};
    uint8_t *header = NULL;
    size_t header_size = 0;
    uint64_t offset = 0, total = 0;
    assert_ok(
        phema_safetensors_layout(&header, &header_size, &offset, &total, &tensor, 1, NULL, 0, &err),
        &err);
    struct phema_strbuf file = {0};
    put(&file, header, header_size);
    put(&file, data, (size_t)tensor.size_bytes);
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
    support_write(path, file.data, file.size);
    free(path);
    free(header);
    phema_strbuf_clear(&file);
}

/* Bit s of mask: snapshot s is strided. out: memory of the caller */
static void average_mix(const char *name, unsigned mask, float *out, enum phema_sums how)
{
    struct phema_error err = {0};
    char *directory = make_directory(name), *manifest = NULL, *made = NULL;
    struct phema_strbuf weights = {0}, list = {0};
    static float data[N_ROWS * N_COLUMNS];
    uint32_t seed = 5;
    for (unsigned s = 0; s < 3; s++) {
        for (size_t i = 0; i < ARRAY_LEN(data); i++)
            data[i] = (float)next_random(&seed) / 16777216.0f - 0.5f;
        uint32_t frozen[1300];
        fill_odd(frozen, ARRAY_LEN(frozen));
        memcpy(data + 900, frozen, sizeof(frozen)); /* block 1 is equal */
        char file[16];
        (void)snprintf(file, sizeof(file), "s%u", s);
        if (mask >> s & 1)
            write_transposed(directory, file, data);
        else
            write_plain(directory, file, data);
        static const double w[] = {0.3, -0.55, 1.25};
        phema_strbuf_printf(&weights, "s%u %.17g\n", s, w[s]);
        phema_strbuf_printf(&list, "%s{\"file\": \"s%u\", \"time\": %u}", s ? ", " : "", s, s + 1);
    }
    assert_true(asprintf(&manifest, "%s/manifest.json", directory) > 0);
    struct phema_strbuf json = {0};
    phema_strbuf_printf(&json, "{\"snapshots\": [%s]}", list.data);
    support_write(manifest, json.data, json.size);
    assert_true(asprintf(&made, "%s.safetensors", directory) > 0);
    struct request request = {.weights = weights.data, .sums = how};
    struct phema_synth_result result;
    assert_ok(synthesise(manifest, made, &request, &result, &err), &err);
    struct phema_checkpoint *checkpoint = open_made(made);
    memcpy(out, find(checkpoint, "w"), sizeof(data));
    phema_checkpoint_close(checkpoint);
    phema_strbuf_clear(&weights);
    phema_strbuf_clear(&list);
    phema_strbuf_clear(&json);
    free(directory);
    free(manifest);
    free(made);
}

static void gathered_tensors_give_the_bytes_of_plain_ones(void **state)
{
    (void)state;
    static float plain[N_ROWS * N_COLUMNS], mixed[N_ROWS * N_COLUMNS];
    static const enum phema_sums sums[] = {PHEMA_SUMS_F64, PHEMA_SUMS_F32};
    for (size_t a = 0; a < ARRAY_LEN(sums); a++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "plain%zu", a);
        average_mix(name, 0, plain, sums[a]);
        uint32_t bits[BLOCK_ELEMS];
        memcpy(bits, plain + BLOCK_ELEMS, sizeof(bits));
        for (size_t i = 0; i < BLOCK_ELEMS; i++)
            assert_int_equal(bits[i], odd_values[(i + BLOCK_ELEMS - 900) % ARRAY_LEN(odd_values)]);
        for (unsigned mask = 1; mask < 8; mask++) {
            (void)snprintf(name, sizeof(name), "mix%zu%u", a, mask);
            average_mix(name, mask, mixed, sums[a]);
            assert_memory_equal(mixed, plain, sizeof(plain));
        }
    }
}

/* ---- Elements with two names ---- */

enum { N_SHARED = 400000, N_FIRST = 260000, SECOND = 140001 };

/* A torch file with 'a', the first elements of a storage, and 'b', the last ones. They overlap. */
static void write_overlapping(const char *directory, const char *name, const double *stored)
{
    struct phema_strbuf pickle = {0};
    put(&pickle, "\x80\x02}(", 4);
    for (int i = 0; i < 2; i++) {
        static const char part[] = "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0"
                                   "storagectorch\nDoubleStorage\nX\1\0\0\0"
                                   "0X\3\0\0\0cpu";
        put(&pickle, i ? "X\1\0\0\0b" : "X\1\0\0\0a", 6);
        put(&pickle, part, sizeof(part) - 1);
        put_u32(&pickle, N_SHARED);
        put(&pickle, "tQ", 2);
        put_u32(&pickle, i ? SECOND : 0);
        put_u32(&pickle, i ? N_SHARED - SECOND : N_FIRST);
        put(&pickle, "\x85K\1\x85\x89NtR", 8);
    }
    put(&pickle, "u.", 2);
    write_archive(directory, name, &pickle, stored, sizeof(*stored) * N_SHARED);
    phema_strbuf_clear(&pickle);
}

/* Stretches are equal in all snapshots. The copied blocks of 'a' and 'b' differ, and a copied
 * number differs from an averaged one in its last bit. */
static void the_last_of_two_aliases_stays_for_any_threads(void **state)
{
    (void)state;
    struct phema_error err = {0};
    char *directory = make_directory("overlapping"), *manifest = NULL;
    double *stored = malloc(sizeof(*stored) * N_SHARED);
    assert_non_null(stored);
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t changing = k + 1, frozen = 9;
        for (size_t i = 0; i < N_SHARED; i++) {
            double equal = next_random(&frozen) / 3.0, other = next_random(&changing);
            stored[i] = i % 3000 < 1700 ? equal : other;
        }
        char name[8];
        (void)snprintf(name, sizeof(name), "%u.pt", (unsigned)k);
        write_overlapping(directory, name, stored);
    }
    free(stored);
    assert_true(asprintf(&manifest, "%s/manifest.json", directory) > 0);
    static const char json[] =
        "{\"snapshots\": [{\"file\": \"0.pt\", \"time\": 1},"
        "{\"file\": \"1.pt\", \"time\": 2}, {\"file\": \"2.pt\", \"time\": 3}]}";
    support_write(manifest, json, sizeof(json) - 1);
    struct request request = {.weights = "0.pt 0.3\n1.pt -0.1\n2.pt 0.8\n", .n_threads = 1};
    struct phema_synth_result result;
    char *alone = support_tmp_path("alone.pt"), *many = support_tmp_path("many.pt");
    assert_ok(synthesise(manifest, alone, &request, &result, &err), &err);
    size_t size = 0, other_size = 0;
    uint8_t *wanted = support_read(alone, &size);
    for (int attempt = 0; attempt < 3; attempt++) {
        request.n_threads = 8;
        assert_ok(synthesise(manifest, many, &request, &result, &err), &err);
        uint8_t *got = support_read(many, &other_size);
        assert_int_equal(other_size, size);
        assert_memory_equal(got, wanted, size);
        free(got);
    }
    free(wanted);
    free(directory);
    free(manifest);
    free(alone);
    free(many);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_blocks_are_copied_bit_for_bit),
    cmocka_unit_test(a_block_of_doubles_keeps_what_only_doubles_hold),
    cmocka_unit_test(weights_that_do_not_sum_to_one_copy_nothing),
    cmocka_unit_test(equal_blocks_are_converted),
    cmocka_unit_test(complex_blocks_have_two_numbers_an_element),
    cmocka_unit_test(bytes_do_not_depend_on_tiles_targets_and_threads),
    cmocka_unit_test(the_last_of_two_aliases_stays_for_any_threads),
    cmocka_unit_test(gathered_tensors_give_the_bytes_of_plain_ones),
};
TEST_GROUP(tests)
