// SPDX-License-Identifier: Apache-2.0
/* Elements that are equal in all snapshots keep every bit in the average if the weights sum to 1.
 * The cases are weights whose floating-point sum is not exactly 1, negative weights, every dtype,
 * precision, instruction set and way of reading. Written in another dtype, the elements keep their
 * value. Zeros stay zeros for any sum of weights. Subnormal numbers are averaged like others. */
#include "phema/dtype.h"
#include "runs.h"

#define N_ELEMS ((size_t)3000) /* two blocks and a partial one */
#define N_FILES 7

static const enum phema_dtype dtypes[] = {PHEMA_F64, PHEMA_F32,     PHEMA_F16,     PHEMA_BF16,
                                          PHEMA_C64, PHEMA_F8_E4M3, PHEMA_F8_E5M2, PHEMA_F8_E8M0,
                                          PHEMA_F4,  PHEMA_I64,     PHEMA_U8,      PHEMA_BOOL};

/* Each sums to 1 in decimal; the sums of doubles do not. */
static const double weights[][N_FILES] = {
    {1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0}, /* 1 - 2^-52 */
    {0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2},
    {3.7, -2.9, 1.3, -0.6, 0.25, -0.45, -0.3},
    {1e6 / 3, -1e6 / 3, 0.7, 0.2, 0.05, 0.03, 0.02},
    {0.3, 0, 0, 0.3, 0, 0, 0.4}, /* some weights are 0 */
};

static const char *name_of(size_t k)
{
    static char name[64];
    (void)snprintf(name, sizeof(name), "snapshot-%07zu-0.050.safetensors", 100 * (k + 1));
    return name;
}

static char *weights_text(const double *of_files)
{
    struct phema_strbuf text = {0};
    for (size_t k = 0; k < N_FILES; k++)
        phema_strbuf_printf(&text, "%s %.17g\n", name_of(k), of_files[k]);
    assert_non_null(text.data);
    return text.data;
}

/* Random bits, with NaN, infinities and subnormals; 0 and 1 for a bool. */
static uint8_t *any_bits(enum phema_dtype dtype, uint64_t seed)
{
    size_t size = (size_t)phema_dtype_bytes(dtype, N_ELEMS);
    uint8_t *data = malloc(size);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(support_random(&seed) & (dtype == PHEMA_BOOL ? 1 : 255));
    return data;
}

/* The same number in all elements: the first random bits that are finite. */
static uint8_t *one_value(enum phema_dtype dtype, uint64_t seed)
{
    uint8_t *data = any_bits(dtype, seed);
    size_t size = dtype == PHEMA_F4 ? 1 : (size_t)phema_dtype_bytes(dtype, 1);
    bool is_float = phema_dtype_is_float(dtype);
    for (size_t at = 0; is_float && at + size <= N_ELEMS / 2; at += size)
        if (isfinite(phema_element_widen(dtype, data + at, 0))) {
            memmove(data, data + at, size);
            break;
        }
    for (size_t at = size; at < phema_dtype_bytes(dtype, N_ELEMS); at++)
        data[at] = data[at - size];
    return data;
}

/* 'w' is the same in all snapshots, 'v' is not. */
static char *make_snapshots(const char *name, enum phema_dtype dtype, const uint8_t *constant)
{
    char *directory = make_directory(name);
    for (size_t k = 0; k < N_FILES; k++) {
        float varying[5] = {(float)k, 1, 2, 3, (float)(k * k)};
        const struct entry entries[] = {{"v", PHEMA_F32, 5, false, varying},
                                        {"w", dtype, N_ELEMS, false, constant}};
        write_snapshot(directory, name_of(k), entries, 2);
    }
    return directory;
}

static struct phema_checkpoint *average(const char *directory, struct request *request,
                                        const double *of_files)
{
    struct phema_error err = {0};
    struct phema_synth_result result;
    struct phema_checkpoint *made = NULL;
    char *out = support_tmp_path("out.safetensors"), *text = weights_text(of_files);
    request->weights = text;
    assert_ok(synthesise(directory, out, request, &result, &err), &err);
    assert_ok(phema_checkpoint_open(&made, out, NULL, &err), &err);
    free(text);
    free(out);
    return made;
}

static void assert_stays(const char *name, enum phema_dtype dtype, const uint8_t *constant)
{
    static const char *const levels[] = {"ref", "avx512"};
    char *directory = make_snapshots(name, dtype, constant);
    for (unsigned way = 0; way < 8; way++) {
        struct request request = {.sums = way & 1 ? PHEMA_SUMS_F32 : PHEMA_SUMS_F64,
                                  .io = way & 2 ? PHEMA_IO_MMAP : PHEMA_IO_READ};
        assert_int_equal(setenv("PHEMA_CPU", levels[way >> 2], 1), 0);
        for (size_t x = 0; x < ARRAY_LEN(weights); x++) {
            struct phema_checkpoint *made = average(directory, &request, weights[x]);
            assert_memory_equal(find(made, "w"), constant,
                                (size_t)phema_dtype_bytes(dtype, N_ELEMS));
            phema_checkpoint_close(made);
        }
    }
    assert_int_equal(unsetenv("PHEMA_CPU"), 0);
    free(directory);
}

static void constants_keep_every_bit(void **state)
{
    (void)state;
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
        char name[32];
        uint8_t *any = any_bits(dtypes[d], d), *one = one_value(dtypes[d], 100 + d);
        (void)snprintf(name, sizeof(name), "any-%s", phema_dtype_name(dtypes[d]));
        assert_stays(name, dtypes[d], any);
        (void)snprintf(name, sizeof(name), "one-%s", phema_dtype_name(dtypes[d]));
        assert_stays(name, dtypes[d], one);
        free(any);
        free(one);
    }
}

/* A wider dtype stores the same number. */
static void a_constant_written_wider_is_the_same_number(void **state)
{
    (void)state;
    static const enum phema_dtype from[] = {PHEMA_F16, PHEMA_BF16, PHEMA_F8_E4M3, PHEMA_F8_E5M2,
                                            PHEMA_F4};
    for (size_t d = 0; d < ARRAY_LEN(from); d++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "wider-%s", phema_dtype_name(from[d]));
        uint8_t *constant = one_value(from[d], 7 + d);
        char *directory = make_snapshots(name, from[d], constant);
        for (size_t x = 0; x < ARRAY_LEN(weights); x++) {
            struct request request = {.has_dtype = true, .dtype = PHEMA_F32};
            struct phema_checkpoint *made = average(directory, &request, weights[x]);
            const uint8_t *got = find(made, "w");
            for (size_t i = 0; i < N_ELEMS; i++)
                assert_true(phema_element_widen(PHEMA_F32, got, i) ==
                            phema_element_widen(from[d], constant, i));
            phema_checkpoint_close(made);
        }
        free(constant);
        free(directory);
    }
}

/* Where a single snapshot has -0, the elements are not equal, and the sums give 0. */
static void zeros_stay_zeros_whatever_the_weights_sum_to(void **state)
{
    (void)state;
    static const double others[][N_FILES] = {
        {1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0, 1 / 7.0},
        {2, -5, 0.3, 1e300, 1e-300, 0, 7}};
    static const enum phema_dtype kinds[] = {PHEMA_F64, PHEMA_F32, PHEMA_F16, PHEMA_BF16,
                                             PHEMA_C64};
    for (size_t d = 0; d < ARRAY_LEN(kinds); d++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "zeros-%s", phema_dtype_name(kinds[d]));
        char *directory = make_directory(name);
        size_t size = (size_t)phema_dtype_bytes(kinds[d], N_ELEMS);
        uint8_t *zeros = calloc(size, 1);
        assert_non_null(zeros);
        for (size_t k = 0; k < N_FILES; k++) {
            zeros[phema_dtype_bytes(kinds[d], 1) - 1] = k == 3 ? 0x80 : 0;
            const struct entry entries[] = {{"w", kinds[d], N_ELEMS, false, zeros}};
            write_snapshot(directory, name_of(k), entries, 1);
        }
        for (size_t x = 0; x < ARRAY_LEN(others); x++) {
            struct request request = {.has_dtype = false};
            struct phema_checkpoint *made = average(directory, &request, others[x]);
            const uint8_t *got = find(made, "w");
            for (size_t i = 0; i < size; i++) /* 0 of either sign where -0 and 0 are mixed */
                assert_int_equal(got[i] & (i < phema_dtype_bytes(kinds[d], 1) ? 0x7f : 0xff), 0);
            phema_checkpoint_close(made);
        }
        free(zeros);
        free(directory);
    }
}

/* The code of a subnormal number is a multiple of the smallest one: half of 1 and half of 3 is
 * 2. */
static void subnormal_numbers_are_averaged_like_others(void **state)
{
    (void)state;
    static const enum phema_dtype kinds[] = {PHEMA_F64,  PHEMA_F32,     PHEMA_F16,
                                             PHEMA_BF16, PHEMA_F8_E4M3, PHEMA_F8_E5M2};
    static const double halves[N_FILES] = {0.5, 0, 0, 0, 0, 0, 0.5};
    static const char *const levels[] = {"ref", "avx2", "avx512"};
    for (size_t d = 0; d < ARRAY_LEN(kinds); d++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "subnormal-%s", phema_dtype_name(kinds[d]));
        char *directory = make_directory(name);
        size_t elem = (size_t)phema_dtype_bytes(kinds[d], 1), size = elem * N_ELEMS;
        uint8_t *data = calloc(size, 1);
        assert_non_null(data);
        for (size_t k = 0; k < N_FILES; k++) {
            for (size_t i = 0; i < N_ELEMS; i++)
                data[i * elem] = k == 0 ? 1 : 3; /* little-endian */
            const struct entry entries[] = {{"w", kinds[d], N_ELEMS, false, data}};
            write_snapshot(directory, name_of(k), entries, 1);
        }
        for (size_t l = 0; l < ARRAY_LEN(levels); l++) {
            struct request request = {.has_dtype = false};
            assert_int_equal(setenv("PHEMA_CPU", levels[l], 1), 0);
            struct phema_checkpoint *made = average(directory, &request, halves);
            const uint8_t *got = find(made, "w");
            for (size_t i = 0; i < size; i++)
                assert_int_equal(got[i], i % elem ? 0 : 2);
            phema_checkpoint_close(made);
        }
        assert_int_equal(unsetenv("PHEMA_CPU"), 0);
        free(data);
        free(directory);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(constants_keep_every_bit),
    cmocka_unit_test(a_constant_written_wider_is_the_same_number),
    cmocka_unit_test(zeros_stay_zeros_whatever_the_weights_sum_to),
    cmocka_unit_test(subnormal_numbers_are_averaged_like_others),
};
TEST_GROUP(tests)
