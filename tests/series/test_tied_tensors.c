// SPDX-License-Identifier: Apache-2.0
/* A raw parameter without an average has that of another one, if both hold the same bytes in every
 * checkpoint, and not by chance. The checkpoints are named as torchtitan's: a, b without an average,
 * and c. */
#include <math.h>
#include <sys/stat.h>

#include "models.h"
#include "phema/series.h"

#define N_FILES 3

/* Beyond the elements of which a sample has all. */
#define N_ROWS    700
#define N_COLUMNS 64
#define N_ELEMS   ((size_t)N_ROWS * N_COLUMNS)

enum form { SAFETENSORS, TORCH, DCP, FRAMES, FRAME }; /* FRAME: a compressed one */

struct made {
    enum form form;
    float a[N_FILES], b[N_FILES]; /* the first number in each file, ... */
    float rise;                   /* ... and by how much each is above the one before */
    size_t differs;               /* 1 + this element of b differs in the second file; 0: none */
    bool is_of_other_shape;
};

static void fill(struct entry *entry, float first, float rise)
{
    float *numbers = entry->data;
    for (size_t i = 0; i < entry->n_elems; i++)
        numbers[i] = first + rise * (float)i;
}

static void write_file(const char *name, size_t k, const struct made *made)
{
    struct model model = {0};
    fill(add_entry(&model, "ema.state.a.ema_params", PHEMA_F32, 2, N_ROWS, N_COLUMNS), 0.5f,
         made->rise);
    fill(add_entry(&model, "ema.state.c.ema_params", PHEMA_F32, 1, 3, 0), 0, 1);
    struct entry *b = made->is_of_other_shape
                          ? add_entry(&model, "b", PHEMA_F32, 2, N_COLUMNS, N_ROWS)
                          : add_entry(&model, "b", PHEMA_F32, 2, N_ROWS, N_COLUMNS);
    fill(b, made->b[k], made->rise);
    if (made->differs && k == 1)
        ((float *)b->data)[made->differs - 1] += 1;
    fill(add_entry(&model, "a", PHEMA_F32, 2, N_ROWS, N_COLUMNS), made->a[k], made->rise);
    fill(add_entry(&model, "c", PHEMA_F32, 1, 3, 0), (float)k, 1);
    model.first = k; /* in another order in each file */
    static const char *const ends[] = {".safetensors", ".pt", "", ".safetensors.zst",
                                       ".safetensors.zst"};
    char relative[64];
    (void)snprintf(relative, sizeof(relative), "%s/step-%zu%s", name, 100 * (k + 1),
                   ends[made->form]);
    char *path = support_tmp_path(relative);
    if (made->form == SAFETENSORS)
        write_safetensors(path, &model);
    else if (made->form == TORCH)
        write_torch(path, &model);
    else if (made->form == DCP)
        write_dcp(relative, &model);
    else
        write_zst(path, &model, made->form == FRAME ? 1000000 : 50000, true);
    free(path);
    clear_model(&model);
}

static const char *const excludes[] = {"^a$"};

/* What becomes of b: "a" is its average, "" is a copy. */
static void check(const struct made *made, const struct phema_series_options *more,
                  const char *wanted)
{
    static const char *const names[] = {"safetensors", "torch", "dcp", "frames", "frame"};
    char *directory = support_tmp_path(names[made->form]);
    (void)mkdir(directory, 0777);
    for (size_t k = 0; k < N_FILES; k++)
        write_file(names[made->form], k, made);
    struct phema_error err = {0};
    struct phema_series *series = NULL;
    struct phema_series_options options = *more;
    options.snapshots = directory;
    options.name_regex = "^step-(?<time>[0-9]+)";
    options.from = -HUGE_VAL;
    options.to = HUGE_VAL;
    assert_ok(phema_series_open(&series, &options, &err), &err);
    size_t n_found = 0, a = SIZE_MAX, b = SIZE_MAX;
    for (size_t i = 0; i < series->n_tensors; i++) {
        const struct phema_tensor *tensor = &series->tensors[i].tensor;
        a = phema_bytes_are(tensor->name, tensor->name_size, "a") ? i : a;
        b = phema_bytes_are(tensor->name, tensor->name_size, "b") ? i : b;
    }
    assert_int_not_equal(b, SIZE_MAX);
    const struct phema_series_tensor *entry = &series->tensors[b];
    assert_string_equal(entry->tied_to ? entry->tied_to : "", wanted);
    assert_int_equal(entry->rule, *wanted ? PHEMA_RULE_AVERAGE : PHEMA_RULE_COPY);
    for (size_t i = 0; i < series->n_notes; i++)
        n_found += strstr(series->notes[i], "'b' as 'a'") != NULL;
    assert_int_equal(n_found, *wanted != 0);
    if (*wanted && a != SIZE_MAX)
        assert_int_equal(entry->same_as, series->tensors[a].same_as);
    for (size_t k = 0; k < series->n && *wanted; k++) { /* the average's bytes, not the raw ones */
        struct phema_reader *reader = NULL;
        const uint8_t *data = NULL;
        float scratch[4], number;
        struct phema_tensor tensor = phema_series_tensor_in(series, k, b);
        assert_ok(phema_reader_open(&reader, series->snapshots[k].checkpoint, &err), &err);
        assert_ok(phema_reader_read(&data, reader, &tensor, 0, 1, scratch, &err), &err);
        memcpy(&number, data, sizeof(number));
        bool is_raw = strcmp(series->snapshots[k].key, "raw") == 0;
        float raw = made->a[(size_t)(series->snapshots[k].time / 100) - 1];
        assert_true(number == (is_raw ? raw : 0.5F));
        phema_reader_close(reader);
    }
    phema_series_close(series);
    free(directory);
}

static const struct phema_series_options usual = {0};

static void equal_bytes_in_every_file_are_tied(void **state)
{
    (void)state;
    for (enum form form = SAFETENSORS; form <= FRAME; form++) {
        struct made made = {form, {1, 2, 3}, {1, 2, 3}, 0.25f, 0, false};
        check(&made, &usual, "a");
        check(&made, &(struct phema_series_options){.use = PHEMA_USE_AVERAGES}, "a");
        check(&made, &(struct phema_series_options){.key = "ema"}, "a");
        check(&made, &(struct phema_series_options){.key = "raw"}, "a");
        check(&made, &(struct phema_series_options){.compares_samples = true}, "a");
        check(&made, &(struct phema_series_options){.excludes = excludes, .n_excludes = 1}, "a");
        check(&made,
              &(struct phema_series_options){
                  .excludes = excludes, .n_excludes = 1, .use = PHEMA_USE_AVERAGES},
              "a");
    }
}

static void any_difference_unties_them(void **state)
{
    (void)state;
    for (enum form form = SAFETENSORS; form <= FRAME; form++) {
        struct made made = {form, {1, 2, 3}, {1, 2, 3}, 0.25f, 0, false};
        size_t places[] = {0, N_ELEMS / 2, N_ELEMS / 7 * 3, 4 * N_ELEMS / 5, N_ELEMS - 1};
        for (size_t i = 0; i < ARRAY_LEN(places); i++) {
            made.differs = 1 + places[i];
            check(&made, &usual, "");
        }
        check(&(struct made){form, {1, 2, 3}, {1, 2, 1}, 0.25f, 0, false}, &usual, "");
        check(&(struct made){form, {1, 2, 3}, {1, 2, 3}, 0, 0, true}, &usual, "");
    }
}

/* Ones and zeros are equal by chance, and tables that never change need no average. */
static void constants_are_not_tied(void **state)
{
    (void)state;
    for (enum form form = SAFETENSORS; form <= FRAME; form++) {
        check(&(struct made){form, {1, 1, 1}, {1, 1, 1}, 0, 0, false}, &usual, "");
        check(&(struct made){form, {1, 2, 3}, {1, 1, 1}, 0, 0, false}, &usual, "");
        check(&(struct made){form, {1, 1, 3}, {1, 1, 3}, 0, 0, false}, &usual, "a");
        check(&(struct made){form, {1, 1, 1}, {1, 1, 1}, 0.25f, 0, false}, &usual, "a");
    }
}

/* A view of one number with (2^30 - 1)^2 elements. */
#define VIEW                                                                                       \
    "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"         \
    "0X\3\0\0\0cpuK\2tQK\0J\xff\xff\xff\x3fJ\xff\xff\xff\x3f\x86K\0K\0\x86\x89NtR"

/* Elements that share bytes are more than the file holds: reading them all would never end. */
static void views_of_few_bytes_are_not_compared(void **state)
{
    (void)state;
    static const char *const names[] = {"net.a", "net.b", "net_ema.a"};
    struct phema_strbuf pickle = {0}, file = {0};
    put(&pickle, "\x80\x02}(", 4);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char head[] = {'X', (char)strlen(names[i]), 0, 0, 0};
        put(&pickle, head, sizeof(head));
        put(&pickle, names[i], strlen(names[i]));
        put(&pickle, VIEW, sizeof(VIEW) - 1);
    }
    put(&pickle, "u.", 2);
    put_torch(&file, pickle.data, pickle.size, 8);
    char *directory = support_tmp_path("views"), *path = support_tmp_path("views/step-100.pt");
    (void)mkdir(directory, 0777);
    support_write(path, file.data, file.size);
    struct phema_error err = {0};
    struct phema_series *series = NULL;
    struct phema_series_options options = {.snapshots = directory,
                                           .name_regex = "^step-(?<time>[0-9]+)",
                                           .from = -HUGE_VAL,
                                           .to = HUGE_VAL};
    assert_ok(phema_series_open(&series, &options, &err), &err);
    assert_int_equal(series->n_tensors, 2);
    assert_int_equal(series->tensors[0].rule, PHEMA_RULE_AVERAGE);
    assert_string_equal(series->tensors[1].reason, "no average");
    phema_series_close(series);
    phema_strbuf_clear(&pickle);
    phema_strbuf_clear(&file);
    free(directory);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_bytes_in_every_file_are_tied),
    cmocka_unit_test(any_difference_unties_them),
    cmocka_unit_test(constants_are_not_tied),
    cmocka_unit_test(views_of_few_bytes_are_not_compared),
};
TEST_GROUP(tests)
