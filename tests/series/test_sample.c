// SPDX-License-Identifier: Apache-2.0
/* Samples hold the same elements whatever the format of the files, exactly as stored. Failures name
 * the reason. */
#include <math.h>

#include "models.h"
#include "phema/dtype.h"
#include "phema/series.h"
#include "sparse_read.h"

#define N_SNAPSHOTS 3

/* ---- Series of files KIND-0, KIND-1, ... ---- */

static char *file_of(const char *kind, size_t k)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s-%zu", kind, k);
    return support_tmp_path(name);
}

/* exclude: tensors that are left out, or NULL */
static struct phema_series *open_path(const char *path, bool may_be_sampled, const char *exclude)
{
    struct phema_error err = {0};
    struct phema_series *series = NULL;
    struct phema_series_options options = {.snapshots = path,
                                           .from = -HUGE_VAL,
                                           .to = HUGE_VAL,
                                           .needs_no_tensors = true,
                                           .may_be_sampled = may_be_sampled,
                                           .excludes = &exclude,
                                           .n_excludes = exclude != NULL};
    assert_ok(phema_series_open(&series, &options, &err), &err);
    return series;
}

/* A manifest at times 1, 2, ...; the last n_fileless snapshots have no files. */
static struct phema_series *open_series(const char *kind, size_t n, size_t n_fileless)
{
    struct phema_strbuf manifest = {0};
    put_text(&manifest, "{\"snapshots\":[");
    for (size_t k = 0; k < n; k++) {
        phema_strbuf_printf(&manifest, "%s{\"time\":%zu,\"sigma_rel\":0.1", k ? "," : "", k + 1);
        if (k + n_fileless < n)
            phema_strbuf_printf(&manifest, ",\"file\":\"%s-%zu\"", kind, k);
        put_text(&manifest, "}");
    }
    put_text(&manifest, "]}");
    char *path = support_tmp_path("manifest.json");
    write_text(path, &manifest);
    struct phema_series *series = open_path(path, true, NULL);
    free(path);
    return series;
}

static struct phema_sample read_series(const struct phema_series *series)
{
    struct phema_error err = {0};
    struct phema_sample sample = {0};
    assert_ok(phema_sample_read(&sample, series, false, 0, &err), &err);
    assert_int_equal(sample.n, series->n);
    return sample;
}

static struct phema_sample read_files(const char *kind, size_t n)
{
    struct phema_series *series = open_series(kind, n, 0);
    struct phema_sample sample = read_series(series);
    phema_series_close(series);
    return sample;
}

static void assert_no_sample(const struct phema_series *series, const char *part)
{
    struct phema_error err = {0};
    struct phema_sample sample = {0};
    assert_fails(phema_sample_read(&sample, series, false, 0, &err), PHEMA_NO, &err, part);
    assert_null(sample.values);
}

static void assert_no_sample_of(const char *kind, size_t n, const char *part)
{
    struct phema_series *series = open_series(kind, n, 0);
    assert_no_sample(series, part);
    phema_series_close(series);
}

/* ---- A model whose elements encode their position ---- */

/* Element i of snapshot k is its number + k/4, exactly: all are different. */
static const struct {
    const char *name;
    enum phema_dtype dtype;
    unsigned rank;
    int64_t rows, columns;
    double first;
} layout[] = {
    {"b.weight", PHEMA_F32, 2, 300, 200, 100000}, {"count", PHEMA_I64, 1, 4000, 0, 0},
    {"z.weight", PHEMA_F32, 2, 40, 125, 300000},  {"a.half", PHEMA_F16, 1, 100, 0, 1},
    {"a.weight", PHEMA_F32, 2, 200, 100, 40000},  {"c.bias", PHEMA_F32, 1, 7, 0, 1000},
};

static uint16_t half_of(double x) /* of quarters from 1 to 256 */
{
    int exponent;
    double mantissa = frexp(x, &exponent);
    return (uint16_t)((exponent + 14) << 10 | ((int)ldexp(mantissa, 11) & 1023));
}

static struct model make_model(size_t k, size_t first)
{
    struct model model = {.first = first};
    for (size_t i = 0; i < ARRAY_LEN(layout); i++) {
        struct entry *entry = add_entry(&model, layout[i].name, layout[i].dtype, layout[i].rank,
                                        layout[i].rows, layout[i].columns);
        for (size_t j = 0; j < entry->n_elems; j++) {
            double value = layout[i].first + (double)j + (double)k / 4;
            if (layout[i].dtype == PHEMA_F32)
                ((float *)entry->data)[j] = (float)value;
            else if (layout[i].dtype == PHEMA_F16)
                ((uint16_t *)entry->data)[j] = half_of(value);
        }
    }
    return model;
}

enum format { PLAIN, SHARDED, COMPRESSED, TORCH, DISTRIBUTED };

static void write_series(const char *kind, enum format format, size_t first)
{
    for (size_t k = 0; k < N_SNAPSHOTS; k++) {
        struct model model = make_model(k, first);
        char *path = file_of(kind, k);
        if (format == PLAIN)
            write_safetensors(path, &model);
        else if (format == SHARDED)
            write_sharded(path, &model);
        else if (format == COMPRESSED)
            write_zst(path, &model, 50000, true);
        else if (format == TORCH)
            write_torch(path, &model);
        else
            write_dcp(path + strlen(support_tmp()) + 1, &model);
        free(path);
        clear_model(&model);
    }
}

/* The position in the model of the element with a number. */
static size_t tensor_of(double number)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < ARRAY_LEN(layout); i++)
        if (layout[i].dtype != PHEMA_I64 && layout[i].first <= number &&
            (best == SIZE_MAX || layout[i].first > layout[best].first))
            best = i;
    assert_true(best != SIZE_MAX);
    return best;
}

static uint64_t size_of(size_t tensor)
{
    return (uint64_t)(layout[tensor].rows * (layout[tensor].columns ? layout[tensor].columns : 1));
}

/* The number of an element, whose value is multiplied by the root of a weight: snapshots that
 * follow each other differ by 1/4. */
static double number_at(const struct phema_sample *sample, size_t i, double *root)
{
    *root = (sample->values[(N_SNAPSHOTS - 1) * sample->n_elems + i] - sample->values[i]) * 4 /
            (N_SNAPSHOTS - 1);
    double number = sample->values[i] / *root;
    assert_near(number, round(number), 1e-3);
    return round(number);
}

/* Tensors are in the order of names and their elements ascend, so each occurs at most once. Each
 * tensor has some, and its weights add up to its part of the model. */
static void elements_equal_those_in_the_files(void **state)
{
    (void)state;
    write_series("elements", PLAIN, 0);
    struct phema_sample sample = read_files("elements", N_SNAPSHOTS);
    assert_in_range(sample.n_elems, 1950, 2048);
    size_t counts[ARRAY_LEN(layout)] = {0};
    double squares = 0, weights[ARRAY_LEN(layout)] = {0}, before = 0;
    for (size_t i = 0; i < sample.n_elems; i++) {
        double root, number = number_at(&sample, i, &root);
        size_t t = tensor_of(number);
        assert_true(number - layout[t].first < (double)size_of(t));
        counts[t]++;
        weights[t] += root * root;
        if (i > 0) {
            size_t last = tensor_of(before);
            assert_true(t == last ? number > before
                                  : strcmp(layout[last].name, layout[t].name) < 0);
            assert_true((t == last) == (sample.tensors[i] == sample.tensors[i - 1]));
        }
        before = number;
        for (size_t k = 1; k < N_SNAPSHOTS; k++)
            assert_near(sample.values[k * sample.n_elems + i], root * (number + (double)k / 4),
                        1e-9 * number);
        double newest = sample.values[(N_SNAPSHOTS - 1) * sample.n_elems + i];
        squares += newest * newest;
        double spacing = phema_element_spacing(layout[t].dtype, number + 0.5);
        assert_near(sample.spacings[i], root * spacing, 1e-9 * spacing);
    }
    static const size_t wanted[] = {1403, 0, 131, 18, 478, 7}; /* 16 and a part of 1968 */
    for (size_t t = 0; t < ARRAY_LEN(layout); t++) {
        assert_near((double)counts[t], (double)wanted[t], 16);
        if (counts[t])
            assert_near(weights[t] / (double)sample.n_elems, (double)size_of(t) / 85107, 1e-7);
    }
    assert_int_equal(counts[5], 7);
    assert_near(sample.mean_square, squares / (double)sample.n_elems, 1e-12 * sample.mean_square);
    phema_sample_clear(&sample);
}

static size_t elements_of_many(size_t tensor)
{
    return tensor % 3 ? tensor % 7 + 1 : 400;
}

/* Small tensors between large ones, by name. */
static struct phema_sample read_many(size_t n_tensors)
{
    struct phema_strbuf header = {0}, file = {0};
    size_t at = 0;
    for (size_t t = 0; t < n_tensors; t++) {
        size_t n = elements_of_many(t);
        phema_strbuf_printf(
            &header, "%s\"%05zu\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}",
            t ? "," : "{", t, n, at, at + 4 * n);
        at += 4 * n;
    }
    put_text(&header, "}");
    put_int(&file, header.size, 8);
    put(&file, header.data, header.size);
    static const float one = 1;
    for (size_t i = 0; i < at / 4; i++)
        put(&file, &one, sizeof(one));
    char *path = file_of("many", 0);
    write_text(path, &file);
    free(path);
    phema_strbuf_clear(&header);
    return read_files("many", 1);
}

static void every_tensor_has_a_share(void **state)
{
    (void)state;
    static const size_t n_tensors[] = {20, 100, 384};
    for (size_t i = 0; i < ARRAY_LEN(n_tensors); i++) {
        struct phema_sample sample = read_many(n_tensors[i]);
        assert_in_range(sample.n_elems, 1400, 2048);
        size_t counts[384] = {0};
        for (size_t e = 0; e < sample.n_elems; e++)
            counts[sample.tensors[e]]++;
        for (size_t t = 0; t < n_tensors[i]; t++)
            assert_true(counts[t] == elements_of_many(t) || counts[t] >= 1 + (t % 3 == 0) * 3);
        phema_sample_clear(&sample);
    }
}

/* Of 2000, five or six neighbours share one. */
static void many_tensors_are_sampled_evenly(void **state)
{
    (void)state;
    struct phema_sample sample = read_many(2000);
    assert_in_range(sample.n_elems, 1400, 2048);
    assert_true(sample.tensors[0] < 6 && sample.tensors[sample.n_elems - 1] >= 1994);
    for (size_t e = 1; e < sample.n_elems; e++)
        assert_in_range(sample.tensors[e] - sample.tensors[e - 1], 0, 10);
    phema_sample_clear(&sample);
}

static void every_format_gives_the_same_sample(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        enum format format;
        size_t first;
    } others[] = {{"permuted", PLAIN, 2},  {"sharded", SHARDED, 3}, {"zst", COMPRESSED, 1},
                  {"torch", TORCH, 4},     {"torch0", TORCH, 0},    {"dcp", DISTRIBUTED, 0},
                  {"dcp5", DISTRIBUTED, 5}};
    write_series("plain", PLAIN, 0);
    struct phema_sample plain = read_files("plain", N_SNAPSHOTS);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        write_series(others[i].kind, others[i].format, others[i].first);
        struct phema_sample other = read_files(others[i].kind, N_SNAPSHOTS);
        assert_int_equal(other.n_elems, plain.n_elems);
        assert_memory_equal(other.values, plain.values,
                            N_SNAPSHOTS * plain.n_elems * sizeof(double));
        assert_memory_equal(other.rounding, plain.rounding, N_SNAPSHOTS * sizeof(double));
        assert_true(other.mean_square == plain.mean_square);
        phema_sample_clear(&other);
    }
    phema_sample_clear(&plain);
}

/* Snapshots of one series may have different formats. */
static void formats_may_be_mixed(void **state)
{
    (void)state;
    write_series("mixed", PLAIN, 0);
    struct phema_sample plain = read_files("mixed", N_SNAPSHOTS);
    struct model model = make_model(1, 3);
    char *path = file_of("mixed", 1);
    write_torch(path, &model);
    struct phema_sample mixed = read_files("mixed", N_SNAPSHOTS);
    assert_int_equal(mixed.n_elems, plain.n_elems);
    assert_memory_equal(mixed.values, plain.values, N_SNAPSHOTS * plain.n_elems * sizeof(double));
    phema_sample_clear(&plain);
    phema_sample_clear(&mixed);
    clear_model(&model);
    free(path);
}

/* ---- Numbers ---- */

/* Files KIND-0 of one tensor of two elements. */
static void write_pair(const char *kind, enum phema_dtype dtype, const void *data)
{
    struct model model = {0};
    struct entry *entry = add_entry(&model, "w", dtype, 1, 2, 0);
    memcpy(entry->data, data, entry->size_bytes);
    char *path = file_of(kind, 0);
    write_safetensors(path, &model);
    free(path);
    clear_model(&model);
}

/* At p bits, 1 and 3 have the spacings 2^-p and 2^(1-p), whose mean square / 12 is 5/24 4^-p. The
 * mean square of the numbers is 5. */
static void rounding_follows_from_the_dtypes(void **state)
{
    (void)state;
    static const uint16_t f16[] = {0x3C00, 0x4200}, bf16[] = {0x3F80, 0x4040};
    static const uint8_t e4m3[] = {0x38, 0x44}, e5m2[] = {0x3C, 0x42}, f4[] = {0x52};
    static const float f32[] = {1, 3}, c64[] = {1, 3, 3, 1};
    static const double f64[] = {1, 3};
    const struct {
        enum phema_dtype dtype;
        const void *data;
        int bits;
    } cases[] = {{PHEMA_F16, f16, 10},     {PHEMA_BF16, bf16, 7}, {PHEMA_F32, f32, 23},
                 {PHEMA_F64, f64, 52},     {PHEMA_C64, c64, 23},  {PHEMA_F8_E4M3, e4m3, 3},
                 {PHEMA_F8_E5M2, e5m2, 2}, {PHEMA_F4, f4, 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_pair("pair", cases[i].dtype, cases[i].data);
        struct phema_sample sample = read_files("pair", 1);
        assert_int_equal(sample.n_elems, cases[i].dtype == PHEMA_C64 ? 4 : 2);
        assert_true(sample.values[0] == 1 && sample.values[1] == 3);
        assert_true(sample.mean_square == 5);
        double wanted = ldexp(sqrt(1.0 / 24), -cases[i].bits);
        assert_near(sample.rounding[0], wanted, 1e-15 * wanted);
        phema_sample_clear(&sample);
    }
    /* below 2^-14 the spacing of F16 is constant: 2^-24 for both */
    static const uint16_t small[] = {0x0001, 0x0401};
    write_pair("pair", PHEMA_F16, small);
    struct phema_sample sample = read_files("pair", 1);
    double squares = ldexp(1, -48) + pow(ldexp(1, -14) + ldexp(1, -24), 2);
    assert_true(sample.mean_square == squares / 2);
    double wanted = ldexp(1, -24) / sqrt(12 * squares / 2);
    assert_near(sample.rounding[0], wanted, 1e-15 * wanted);
    phema_sample_clear(&sample);
}

static void write_floats(const char *kind, size_t k, const float *values, size_t n)
{
    struct model model = {0};
    add_floats(&model, "w", values, n);
    char *path = file_of(kind, k);
    write_safetensors(path, &model);
    free(path);
    clear_model(&model);
}

static void distances_are_relative_to_the_newest(void **state)
{
    (void)state;
    static const float values[3][4] = {{1, 2, 3, 4}, {1, 2, 3, 6}, {2, 2, 2, 2}};
    for (size_t k = 0; k < 3; k++)
        write_floats("distance", k, values[k], 4);
    struct phema_sample sample = read_files("distance", 3);
    assert_true(sample.mean_square == 4);
    assert_true(phema_sample_distance(&sample, 0, 1) == 4.0 / 4 / 4);
    assert_true(phema_sample_distance(&sample, 1, 2) == (1.0 + 0 + 1 + 16) / 4 / 4);
    assert_true(phema_sample_distance(&sample, 2, 0) == (1.0 + 0 + 1 + 4) / 4 / 4);
    assert_true(phema_sample_distance(&sample, 1, 1) == 0);
    phema_sample_clear(&sample);
}

static void non_finite_elements_are_left_out_of_all_snapshots(void **state)
{
    (void)state;
    float values[2][20];
    for (size_t i = 0; i < 20; i++) {
        values[0][i] = (float)i;
        values[1][i] = (float)(100 + i);
    }
    values[0][3] = NAN;
    values[1][7] = INFINITY;
    values[0][19] = values[1][19] = -INFINITY;
    write_floats("finite", 0, values[0], 20);
    write_floats("finite", 1, values[1], 20);
    struct phema_sample sample = read_files("finite", 2);
    assert_int_equal(sample.n_elems, 17);
    for (size_t i = 0, column = 0; i < 20; i++) {
        if (i == 3 || i == 7 || i == 19)
            continue;
        assert_true(sample.values[column] == (double)i);
        assert_true(sample.values[17 + column] == 100.0 + (double)i);
        column++;
    }
    assert_near(phema_sample_distance(&sample, 0, 1), 10000 / sample.mean_square, 1e-15);
    phema_sample_clear(&sample);

    /* squares of these numbers are infinite */
    static const double large[] = {1e101, 5};
    write_pair("large", PHEMA_F64, large);
    sample = read_files("large", 1);
    assert_int_equal(sample.n_elems, 1);
    assert_true(sample.values[0] == 5);
    phema_sample_clear(&sample);
}

/* (30, 40), (0, 0) and (6, 8): root mean squares of 5, 0 and 1 times that of the last. */
static void sizes_are_relative_to_the_newest(void **state)
{
    (void)state;
    static const float numbers[][2] = {{30, -40}, {0, 0}, {6, 8}};
    for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
        write_floats("sizes", k, numbers[k], 2);
    struct phema_sample sample = read_files("sizes", ARRAY_LEN(numbers));
    static const double wanted[] = {5, 0, 1};
    for (size_t k = 0; k < ARRAY_LEN(wanted); k++)
        assert_near(sample.sizes[k], wanted[k], 1e-15);
    phema_sample_clear(&sample);
}

/* A tensor w that moves by k in each element, and another one. */
static void write_beside(const char *kind, size_t k, const char *name, const float *values,
                         size_t n, size_t n_moving)
{
    struct model model = {0};
    float moving[200];
    for (size_t i = 0; i < n_moving; i++)
        moving[i] = (float)(1 + k);
    add_floats(&model, name, values, n);
    add_floats(&model, "w", moving, n_moving);
    char *path = file_of(kind, k);
    write_safetensors(path, &model);
    free(path);
    clear_model(&model);
}

/* Sizes, distances and rounding are those of a series without it. It is the same in a plain sample. */
static void constant_tensors_take_no_part(void **state)
{
    (void)state;
    static const float mask[] = {-1e9F, 0, -1e9F, 0};
    for (size_t k = 0; k < 3; k++)
        write_beside("mask", k, "attn.mask", mask, 4, 5);
    struct phema_sample sample = read_files("mask", 3);
    assert_int_equal(sample.n_elems, 5);
    assert_false(sample.is_plain);
    assert_true(sample.mean_square == 9);
    assert_near(sample.sizes[0], 1.0 / 3, 1e-15);
    assert_near(phema_sample_distance(&sample, 0, 2), 4.0 / 9, 1e-15);
    assert_true(sample.rounding[2] < 1e-7);
    phema_sample_clear(&sample);

    struct phema_error err = {0};
    struct phema_series *series = open_series("mask", 3, 0);
    assert_ok(phema_sample_read(&sample, series, true, 0, &err), &err);
    assert_int_equal(sample.n_elems, 9);
    assert_true(sample.is_plain);
    phema_sample_clear(&sample);
    phema_series_close(series);

    for (size_t k = 0; k < 2; k++) /* one snapshot and its copy: all that there is */
        write_beside("mask", k, "attn.mask", mask, 4, 0);
    sample = read_files("mask", 2);
    assert_int_equal(sample.n_elems, 4);
    assert_true(sample.is_plain);
    phema_sample_clear(&sample);
}

static void statistics_are_no_parameters(void **state)
{
    (void)state;
    static const char *const names[] = {"norm.running_mean", "norm.running_mean_of", "v"};
    static const size_t expected[] = {5, 0, 0}; /* 0: there are no statistics */
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        for (size_t k = 0; k < 3; k++) {
            float jitter[] = {(float)(k % 2), 2, 3, 4};
            write_beside(names[i], k, names[i], jitter, 4, 5);
        }
        struct phema_error err = {0};
        struct phema_series *series = open_series(names[i], 3, 0);
        struct phema_sample sample = {0};
        assert_ok(phema_sample_read_parameters(&sample, series, 0, &err), &err);
        assert_int_equal(sample.n_elems, expected[i]);
        if (sample.n_elems)
            assert_near(phema_sample_distance(&sample, 0, 2), 4.0 / 9, 1e-15);
        phema_sample_clear(&sample);
        assert_ok(phema_sample_read(&sample, series, false, 0, &err), &err);
        assert_int_equal(sample.n_elems, 9);
        phema_sample_clear(&sample);
        phema_series_close(series);
    }
}

static void parameters_that_cannot_be_compared_are_no_sample(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct model model = {0};
        float statistic[] = {(float)(1 + k), 2, 3, 4}, broken[] = {NAN, NAN, NAN, NAN};
        add_floats(&model, "norm.running_mean", statistic, 4);
        add_floats(&model, "w", broken, 4);
        char *path = file_of("broken", k);
        write_safetensors(path, &model);
        free(path);
        clear_model(&model);
    }
    struct phema_error err = {0};
    struct phema_series *series = open_series("broken", 3, 0);
    struct phema_sample sample = {0};
    assert_ok(phema_sample_read_parameters(&sample, series, 0, &err), &err);
    assert_int_equal(sample.n_elems, 0);
    assert_ok(phema_sample_read(&sample, series, false, 0, &err), &err);
    assert_int_equal(sample.n_elems, 4);
    phema_sample_clear(&sample);
    phema_series_close(series);
}

/* Frozen layers leave their share of the sample to the others. */
static void other_tensors_are_read_in_place_of_constants(void **state)
{
    (void)state;
    static float frozen[100000];
    for (size_t k = 0; k < 2; k++)
        write_beside("frozen", k, "body", frozen, ARRAY_LEN(frozen), 200);
    struct phema_sample sample = read_files("frozen", 2);
    assert_int_equal(sample.n_elems, 200);
    assert_false(sample.is_plain);
    phema_sample_clear(&sample);
}

/* Two of 202 numbers have nearly all of the squared norm. Divided, each counts as one of the others
 * does. Those of 99 times the others' size remain what they are. */
static void few_large_numbers_do_not_hide_the_others(void **state)
{
    (void)state;
    static const float means[2][2] = {{5000, 5000}, {5100, 5100}};
    for (size_t k = 0; k < 2; k++)
        write_beside("means", k, "data_mean", means[k], 2, 200);
    struct phema_sample sample = read_files("means", 2);
    assert_false(sample.is_plain);
    double relative = 1 / (5000.0 * 5000); /* of two snapshots, the one with the smaller norm */
    double newest = (200 * 4 + 2 * 5100.0 * 5100 * relative) / 202;
    assert_near(sample.mean_square, newest, 1e-12);
    assert_near(phema_sample_distance(&sample, 0, 1) * newest,
                (200 + 2 * 100.0 * 100 * relative) / 202, 1e-12);
    phema_sample_clear(&sample);

    static const float gains[2][2] = {{99, 99}, {198, 198}};
    for (size_t k = 0; k < 2; k++)
        write_beside("gains", k, "gain", gains[k], 2, 200);
    sample = read_files("gains", 2);
    assert_true(sample.is_plain);
    assert_near(sample.mean_square, (200 * 4 + 2 * 198.0 * 198) / 202, 1e-12);
    phema_sample_clear(&sample);
}

static void samples_without_usable_elements_are_refused(void **state)
{
    (void)state;
    static const float none[] = {NAN, INFINITY}, zeros[] = {0, -0.0F};
    write_floats("none", 0, none, 2);
    static const float first[] = {1, NAN}, second[] = {INFINITY, 1};
    assert_no_sample_of("none", 1, "no element of snapshot 'none-0' that was looked at is finite");
    write_floats("none", 1, first, 2);
    assert_no_sample_of("none", 2, "no element of snapshot 'none-0' that was looked at is finite");
    write_floats("none", 0, second, 2);
    assert_no_sample_of("none", 2, "no element that was looked at is finite");
    write_floats("none", 0, zeros, 2);
    assert_no_sample_of(
        "none", 1, "all elements that were looked at are zero in the newest snapshot, 'none-0'");
    static const int64_t integers[] = {1, 2};
    write_pair("none", PHEMA_I64, integers);
    assert_no_sample_of("none", 1, "no tensor is averaged");
}

/* ---- Files ---- */

static void snapshots_without_files_are_refused(void **state)
{
    (void)state;
    write_series("fileless", PLAIN, 0);
    struct phema_series *series = open_series("fileless", 3, 3);
    assert_no_sample(series, "the snapshots have no files to look at");
    phema_series_close(series);
    series = open_series("fileless", 3, 1);
    assert_no_sample(series, "snapshot '#3' has no file to look at");
    phema_series_close(series);
}

static void frames_must_be_listed_and_small(void **state)
{
    (void)state;
    struct model model = make_model(0, 0);
    char *path = file_of("frames", 0);
    write_zst(path, &model, 50000, false);
    assert_no_sample_of("frames", 1, "frames-0 is compressed without a seek table");
    clear_model(&model);
    add_entry(&model, "w", PHEMA_F32, 2, 5 << 10, 1 << 10); /* 20 MiB of zeros */
    write_zst(path, &model, 32 << 20, true);
    assert_no_sample_of("frames", 1, "frames-0 is compressed without a seek table");
    clear_model(&model);
    free(path);
}

/* Bytes that have to be decompressed for the runs: of each frame, up to its last run. */
static uint64_t decompressed_bytes(const struct phema_series *series,
                                   const struct sample_positions *choice)
{
    uint64_t total = 0, frame = UINT64_MAX, end = 0;
    for (size_t i = 0; i < choice->n; i++) {
        struct phema_tensor tensor = phema_series_tensor_in(series, 0, choice->runs[i].tensor);
        uint64_t offset = tensor.offset + phema_dtype_bytes(tensor.dtype, choice->runs[i].first);
        uint64_t entry = phema_checkpoint_entry(series->snapshots[0].checkpoint, offset);
        total += frame != entry && frame != UINT64_MAX ? end - frame : 0;
        frame = entry;
        end = offset + phema_dtype_bytes(tensor.dtype, choice->runs[i].n);
    }
    return total + end - frame;
}

/* Eight windows of 2^16 numbers in 16 MiB, in frames of 1 MiB. Windows anywhere would cost half a
 * frame more each. */
static void windows_begin_with_frames(void **state)
{
    (void)state;
    struct phema_error err = {0};
    struct model model = {0};
    (void)add_entry(&model, "a", PHEMA_F32, 2, 1500, 1 << 10);
    (void)add_entry(&model, "b", PHEMA_F32, 2, 2596, 1 << 10);
    char *path = file_of("framed", 0);
    write_zst(path, &model, 1 << 20, true);
    struct phema_series *series = open_series("framed", 1, 0);
    struct sample_positions choice = {0};
    assert_ok(sample_positions_make(&choice, series, NULL, &err), &err);
    assert_in_range(choice.n_numbers, 1900, 2048);
    assert_in_range(decompressed_bytes(series, &choice), 7 << 18, (8 << 18) + (8 << 10));
    sample_positions_clear(&choice);
    phema_series_close(series);
    clear_model(&model);
    free(path);
}

static void damaged_frames_are_errors(void **state)
{
    (void)state;
    write_series("damaged", COMPRESSED, 0);
    char *path = file_of("damaged", 1);
    size_t size;
    uint8_t *file = support_read(path, &size);
    for (size_t i = size / 2; i < size / 2 + 1000; i++)
        file[i] ^= 0x55;
    support_write(path, file, size);
    struct phema_series *series = open_series("damaged", N_SNAPSHOTS, 0);
    struct phema_error err = {0};
    struct phema_sample sample = {0};
    assert_fails(phema_sample_read(&sample, series, false, 0, &err), PHEMA_ERR_FILE, &err,
                 "damaged-1");
    phema_series_close(series);
    free(file);
    free(path);
}

static void changed_files_are_errors(void **state)
{
    (void)state;
    write_series("changed", PLAIN, 0);
    struct phema_series *series = open_series("changed", N_SNAPSHOTS, 0);
    struct model model = make_model(0, 1);
    char *path = file_of("changed", 1);
    assert_int_equal(remove(path), 0);
    write_safetensors(path, &model);
    struct phema_error err = {0};
    struct phema_sample sample = {0};
    assert_fails(phema_sample_read(&sample, series, false, 0, &err), PHEMA_ERR_FILE, &err,
                 "changed-1");
    assert_null(sample.values);
    phema_series_close(series);
    clear_model(&model);
    free(path);
}

static void the_memory_limit_is_kept(void **state)
{
    (void)state;
    write_series("memory", PLAIN, 0);
    struct phema_series *series = open_series("memory", N_SNAPSHOTS, 0);
    struct phema_error err = {0};
    struct phema_sample sample = {0};
    assert_fails(phema_sample_read(&sample, series, false, 1, &err), PHEMA_ERR_RESOURCE, &err,
                 "to look at some elements of the snapshots");
    phema_series_close(series);
}

/* ---- EDM2's pickles, which weights need not open ---- */

static void pickles_are_opened_to_be_sampled(void **state)
{
    (void)state;
    char *path = support_fixture("edm2/snapshots");
    struct phema_series *series = open_path(path, false, NULL);
    assert_int_equal(series->n, 8);
    assert_no_sample(series, "no files to look at");
    phema_series_close(series);
    series = open_path(path, true, NULL);
    assert_int_equal(series->n, 8);
    assert_null(series->unsampled);
    struct phema_sample sample = read_series(series);
    assert_true(sample.n_elems > 100);
    /* half precision: 1.9e-4 of numbers of any size */
    for (size_t k = 0; k < sample.n; k++)
        assert_in_range((int)(sample.rounding[k] * 1e6), 100, 400);
    phema_sample_clear(&sample);
    phema_series_close(series);
    free(path);
}

/* Training states hold both averages of a time in single precision; the pickles hold the same
 * averages, rounded. Only the pickles distinguish buffers. */
static void snapshots_of_one_file_are_sampled(void **state)
{
    (void)state;
    char *single = support_fixture("edm2_state"), *half = support_fixture("edm2/snapshots");
    struct phema_series *states = open_path(single, true, "^fourier"),
                        *pickles = open_path(half, true, "^fourier");
    struct phema_sample wide = read_series(states), narrow = read_series(pickles);
    assert_int_equal(wide.n, 4);
    assert_true(states->snapshots[1].is_checkpoint_shared);
    assert_int_equal(wide.n_elems, narrow.n_elems);
    for (size_t i = 0; i < wide.n * wide.n_elems; i++) {
        double step = phema_element_spacing(PHEMA_F16, wide.values[i]);
        assert_near(narrow.values[i], wide.values[i], step / 2);
    }
    assert_memory_not_equal(wide.values, wide.values + wide.n_elems, wide.n_elems * sizeof(double));
    phema_sample_clear(&wide);
    phema_sample_clear(&narrow);
    phema_series_close(states);
    phema_series_close(pickles);
    free(single);
    free(half);
}

static void copy_pickles(const char *to)
{
    static const char *const names[] = {
        "network-snapshot-0000004-0.050.pkl", "network-snapshot-0000004-0.100.pkl",
        "network-snapshot-0000008-0.050.pkl", "network-snapshot-0000008-0.100.pkl"};
    char *from = support_fixture("edm2/snapshots");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[4096];
        size_t size;
        (void)snprintf(path, sizeof(path), "%s/%s", from, names[i]);
        uint8_t *data = support_read(path, &size);
        (void)snprintf(path, sizeof(path), "%s/%s", to, names[i]);
        support_write(path, data, i == 2 ? size / 2 : size); /* the third one is cut short */
        free(data);
    }
    free(from);
}

/* The series is the same as from names alone. */
static void an_unreadable_pickle_is_reported(void **state)
{
    (void)state;
    char *path = support_tmp_path("pickles");
    assert_int_equal(mkdir(path, 0777), 0);
    copy_pickles(path);
    struct phema_series *series = open_path(path, true, NULL),
                        *names = open_path(path, false, NULL);
    assert_non_null(strstr(series->unsampled, "network-snapshot-0000008-0.050.pkl: "));
    assert_no_sample(series, "network-snapshot-0000008-0.050.pkl: ");
    assert_int_equal(series->n, 4);
    assert_int_equal(series->n_tensors, 0);
    assert_int_equal(series->n_notes, names->n_notes);
    assert_null(series->key);
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        assert_null(snapshot->checkpoint);
        assert_string_equal(snapshot->path, names->snapshots[k].path);
        assert_true(snapshot->time == names->snapshots[k].time);
        assert_true(snapshot->gamma == names->snapshots[k].gamma);
        assert_true(snapshot->rounding == names->snapshots[k].rounding);
    }
    phema_series_close(series);
    phema_series_close(names);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(elements_equal_those_in_the_files),
    cmocka_unit_test(every_tensor_has_a_share),
    cmocka_unit_test(many_tensors_are_sampled_evenly),
    cmocka_unit_test(every_format_gives_the_same_sample),
    cmocka_unit_test(formats_may_be_mixed),
    cmocka_unit_test(rounding_follows_from_the_dtypes),
    cmocka_unit_test(distances_are_relative_to_the_newest),
    cmocka_unit_test(non_finite_elements_are_left_out_of_all_snapshots),
    cmocka_unit_test(sizes_are_relative_to_the_newest),
    cmocka_unit_test(constant_tensors_take_no_part),
    cmocka_unit_test(statistics_are_no_parameters),
    cmocka_unit_test(parameters_that_cannot_be_compared_are_no_sample),
    cmocka_unit_test(other_tensors_are_read_in_place_of_constants),
    cmocka_unit_test(few_large_numbers_do_not_hide_the_others),
    cmocka_unit_test(samples_without_usable_elements_are_refused),
    cmocka_unit_test(snapshots_without_files_are_refused),
    cmocka_unit_test(frames_must_be_listed_and_small),
    cmocka_unit_test(windows_begin_with_frames),
    cmocka_unit_test(damaged_frames_are_errors),
    cmocka_unit_test(changed_files_are_errors),
    cmocka_unit_test(the_memory_limit_is_kept),
    cmocka_unit_test(pickles_are_opened_to_be_sampled),
    cmocka_unit_test(snapshots_of_one_file_are_sampled),
    cmocka_unit_test(an_unreadable_pickle_is_reported),
};
TEST_GROUP(tests)
