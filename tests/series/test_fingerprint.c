// SPDX-License-Identifier: Apache-2.0
/* Digests that are read in the background are those of the calling thread; a failure reaches the
 * caller, and nobody has to wait for digests that are not wanted. */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models.h"
#include "phema/series.h"

#define N_SNAPSHOTS 40 /* enough for several threads */

static char *file_of(size_t k)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "run/snapshot-%07zu-0.100.safetensors", k + 1);
    return support_tmp_path(name);
}

/* Snapshot k begins with the bytes of k. */
static struct phema_series *open_series(int64_t n_rows)
{
    char *directory = support_tmp_path("run");
    assert_int_equal(mkdir(directory, 0777) && errno != EEXIST, 0);
    for (size_t k = 0; k < N_SNAPSHOTS; k++) {
        struct model model = {0};
        struct entry *entry = add_entry(&model, "w", PHEMA_F16, 2, n_rows, 100);
        memcpy(entry->data, &k, sizeof(k));
        char *path = file_of(k);
        write_safetensors(path, &model);
        free(path);
        clear_model(&model);
    }
    struct phema_error err = {0};
    struct phema_series *series = NULL;
    struct phema_series_options options = {
        .snapshots = directory, .from = -HUGE_VAL, .to = HUGE_VAL, .may_be_sampled = true};
    assert_ok(phema_series_open(&series, &options, &err), &err);
    assert_int_equal(series->n, N_SNAPSHOTS);
    free(directory);
    return series;
}

static void digests_are_those_of_the_calling_thread(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_identification *identification = NULL;
    struct phema_series *series = open_series(8), *other = open_series(8);
    assert_ok(phema_series_identify(series, &err), &err);
    assert_ok(phema_series_identify_begin(&identification, other, &err), &err);
    assert_ok(phema_series_identify_end(identification, &err), &err);
    for (size_t k = 0; k < N_SNAPSHOTS; k++) {
        assert_int_not_equal(strlen(series->snapshots[k].digest), 0);
        assert_string_equal(series->snapshots[k].digest, other->snapshots[k].digest);
        if (k)
            assert_string_not_equal(series->snapshots[k].digest, series->snapshots[0].digest);
    }
    phema_series_close(series);
    phema_series_close(other);
}

static void the_first_failure_reaches_the_caller(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_identification *identification = NULL;
    struct phema_series *series = open_series(3000); /* too large to be mapped */
    char *path = file_of(7);
    assert_int_equal(unlink(path), 0);
    assert_ok(phema_series_identify_begin(&identification, series, &err), &err);
    assert_fails(phema_series_identify_end(identification, &err), PHEMA_ERR_FILE, &err,
                 "snapshot-0000008");
    free(path);
    phema_series_close(series);
}

static void may_be_abandoned(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct phema_identification *identification = NULL;
    struct phema_series *series = open_series(8);
    phema_series_identify_abandon(NULL);
    assert_ok(phema_series_identify_begin(&identification, series, &err), &err);
    phema_series_identify_abandon(identification);
    phema_series_close(series);
}

/* ---- Frozen tensors ---- */

#define FROZEN_ELEMS                                                                               \
    (size_t)600000 /* so many that windows over all would miss most of the others */
#define OWN_ELEMS (size_t)3000
#define CHANGED   (size_t)4000 /* byte of the own tensor, not in the first window */

static void write_file(const char *name, const char *metadata, const char *tensor, size_t n_elems,
                       uint8_t changed)
{
    struct phema_strbuf json = {0}, file = {0};
    char *path = support_tmp_path(name);
    phema_strbuf_printf(&json,
                        "{\"__metadata__\":{%s\"posthoc_ema.frozen_digest\":\"d\"},\"%s\":{"
                        "\"dtype\":\"F16\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}",
                        metadata, tensor, n_elems, 2 * n_elems);
    put_safetensors(&file, json.data, 0);
    size_t start = file.size;
    uint8_t *data = calloc(n_elems, 2);
    assert_non_null(data);
    put(&file, data, 2 * n_elems);
    file.data[start + CHANGED] = (char)changed;
    support_write(path, file.data, file.size);
    free(data);
    free(path);
    phema_strbuf_clear(&json);
    phema_strbuf_clear(&file);
}

static void of_snapshots_with_frozen_tensors_see_the_others(void **state)
{
    (void)state;
    static const char names[][48] = {"lora/x-9-0.100.safetensors", "lora/x-1000-0.100.safetensors"};
    static const char metadata[][96] = {
        "\"posthoc_ema.time\":\"9\",\"posthoc_ema.frozen_file\":\"frozen\",",
        "\"posthoc_ema.time\":\"1000\",\"posthoc_ema.frozen_file\":\"frozen\","};
    struct phema_error err = {0};
    struct phema_series *series = NULL;
    char *directory = support_tmp_path("lora");
    assert_int_equal(mkdir(directory, 0777) && errno != EEXIST, 0);
    write_file("lora/frozen", "", "base", FROZEN_ELEMS, 1);
    for (uint8_t k = 0; k < 2; k++)
        write_file(names[k], metadata[k], "a", OWN_ELEMS, k);
    struct phema_series_options options = {
        .snapshots = directory, .from = -HUGE_VAL, .to = HUGE_VAL};
    assert_ok(phema_series_open(&series, &options, &err), &err);
    assert_ok(phema_series_identify(series, &err), &err);
    const struct phema_snapshot *snapshots = series->snapshots;
    assert_string_not_equal(snapshots[0].digest, snapshots[1].digest);
    /* one table of locations, although the headers have different lengths */
    assert_int_equal(snapshots[1].shift, 3);
    assert_ptr_equal(snapshots[0].locations, snapshots[1].locations);
    assert_int_equal(phema_series_tensor_in(series, 1, 0).offset,
                     phema_series_tensor_in(series, 0, 0).offset + 3);
    assert_int_equal(phema_series_tensor_in(series, 1, 1).offset,
                     phema_series_tensor_in(series, 0, 1).offset);
    assert_int_equal(series->tensors[1].rule, PHEMA_RULE_COPY);
    phema_series_close(series);
    free(directory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(of_snapshots_with_frozen_tensors_see_the_others),
    cmocka_unit_test(digests_are_those_of_the_calling_thread),
    cmocka_unit_test(the_first_failure_reaches_the_caller),
    cmocka_unit_test(may_be_abandoned),
};
TEST_GROUP(tests)
