// SPDX-License-Identifier: Apache-2.0
/* Digests in provenances, compared with checksums of each tensor separately. */
#include "runs.h"

enum { N_SNAPSHOTS = 3, N_TENSORS = 5 };

/* More than a tile, partial blocks, tensors that share a tile, and integers. */
static float large[N_SNAPSHOTS][70001];
static uint16_t small[N_SNAPSHOTS][3], medium[N_SNAPSHOTS][2000];
static int64_t counts[N_SNAPSHOTS][1500];

static void fill(void *data, size_t size, uint64_t seed)
{
    uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(support_random(&seed) & 0x3f); /* no NaN and no large number */
}

static void list_entries(struct entry *entries, size_t k)
{
    const struct entry all[N_TENSORS] = {
        {"large", PHEMA_F32, ARRAY_LEN(large[k]), false, large[k]},
        {"medium", PHEMA_F16, ARRAY_LEN(medium[k]), false, medium[k]},
        {"small", PHEMA_F16, ARRAY_LEN(small[k]), false, small[k]},
        {"counts", PHEMA_I64, ARRAY_LEN(counts[k]), false, counts[k]},
        {"none", PHEMA_F32, 0, false, large[k]},
    };
    memcpy(entries, all, sizeof(all));
}

static char *make_snapshots(const char *name)
{
    char *directory = make_directory(name);
    for (size_t k = 0; k < N_SNAPSHOTS; k++) {
        struct entry entries[N_TENSORS];
        char file[64];
        fill(large[k], sizeof(large[k]), 10 + k);
        fill(medium[k], sizeof(medium[k]), 20 + k);
        fill(small[k], sizeof(small[k]), 30 + k);
        fill(counts[k], sizeof(counts[k]), 40 + k);
        list_entries(entries, k);
        (void)snprintf(file, sizeof(file), "snapshot-0000%zu00-0.050.safetensors", k + 1);
        write_snapshot(directory, file, entries, N_TENSORS);
    }
    return directory;
}

static struct phema_hash_sum expected(size_t k, bool with_averaged, bool with_copied)
{
    struct entry entries[N_TENSORS];
    struct phema_hash_sum sum = {0, 0};
    list_entries(entries, k);
    for (size_t i = 0; i < N_TENSORS; i++) {
        const struct phema_hash_blocks blocks = {
            entries[i].data, bytes_of(&entries[i]),
            (size_t)phema_dtype_bytes(entries[i].dtype, 1024),
            phema_hash_name(entries[i].name, strlen(entries[i].name)), 0};
        if (entries[i].dtype == PHEMA_I64 ? with_copied : with_averaged)
            phema_block_hasher_for_cpu()(&sum, &blocks);
    }
    return sum;
}

static void assert_sum(const struct phema_provenance_input *input, struct phema_hash_sum wanted)
{
    char left[PHEMA_DIGEST], right[PHEMA_DIGEST];
    assert_true(input->has_data_sum);
    phema_hash_sum_show(left, &input->data_sum);
    phema_hash_sum_show(right, &wanted);
    assert_string_equal(left, right);
}

static struct phema_provenance *run(const char *directory, struct request request)
{
    struct phema_error err = {0};
    struct phema_synth_result result;
    struct phema_provenance *recorded = NULL;
    char *out = support_tmp_path("digests.safetensors");
    request.hashes_inputs = true;
    assert_ok(synthesise(directory, out, &request, &result, &err), &err);
    assert_ok(phema_provenance_open(&recorded, out, NULL, &err), &err);
    assert_int_equal(recorded->n_inputs, N_SNAPSHOTS);
    free(out);
    return recorded;
}

/* All averaged tensors of the first and the newest snapshot; copied ones of the newest. */
static void digests_cover_all_data_read(void **state)
{
    (void)state;
    static const char weights[] = "snapshot-0000100-0.050.safetensors 0.25\n"
                                  "snapshot-0000200-0.050.safetensors 0\n"
                                  "snapshot-0000300-0.050.safetensors 0.75\n";
    static const struct request requests[] = {
        {.weights = weights, .n_threads = 1},
        {.weights = weights, .n_threads = 3, .io = PHEMA_IO_MMAP},
        {.weights = weights, .n_threads = 2, .io = PHEMA_IO_READ},
        {.weights = weights, .n_threads = 1, .sums = PHEMA_SUMS_F32},
    };
    char *directory = make_snapshots("digests");
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct phema_provenance *recorded = run(directory, requests[i]);
        assert_sum(&recorded->inputs[0], expected(0, true, false));
        assert_sum(&recorded->inputs[1], (struct phema_hash_sum){0, 0});
        assert_sum(&recorded->inputs[2], expected(2, true, true));
        phema_provenance_close(recorded);
    }
    free(directory);
}

static void unused_tensors_have_no_digest(void **state)
{
    (void)state;
    char *directory = make_snapshots("digests_of_some");
    const struct request request = {.sigma_rel = 0.05, .include = "^(large|medium|small)$"};
    struct phema_provenance *recorded = run(directory, request);
    for (size_t k = 0; k < N_SNAPSHOTS; k++)
        if (recorded->inputs[k].weight != 0)
            assert_sum(&recorded->inputs[k], expected(k, true, false));
    phema_provenance_close(recorded);
    free(directory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(digests_cover_all_data_read),
    cmocka_unit_test(unused_tensors_have_no_digest),
};
TEST_GROUP(tests)
