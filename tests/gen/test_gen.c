// SPDX-License-Identifier: Apache-2.0
/* test_gen.c - the simulated training. Its averages are compared with recurrences in this file,
 * over the stored parameters of every step. */
#include "phema/gen.h"
#include "phema/path.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "trainings.h"

#define N_STEPS 40

static const double sigmas[] = {0.05, 0.1};
static const double truths[] = {0.15};

static struct phema_gen_options small_options(void)
{
    return (struct phema_gen_options){
        .count = 4,
        .steps = N_STEPS,
        .snapshots.sigmas = sigmas,
        .snapshots.n_sigmas = 2,
        .truths.sigmas = truths,
        .truths.n_sigmas = 1,
        .dtype = PHEMA_F32,
        .truth_dtype = PHEMA_F32,
        .n_tensors = 7,
        .n_params = 1000,
        .update_every = 1,
        .n_threads = 2,
    };
}

/* The exponent that a file states, after a comparison with the definition of its width (eq.
 * 126). */
static double gamma_of(const char *directory, const char *name, double sigma_rel)
{
    struct phema_checkpoint *checkpoint = open_file(directory, name);
    double gamma = strtod(phema_checkpoint_metadatum(checkpoint, "posthoc_ema.gamma"), NULL);
    assert_near(sqrt(gamma + 1) / ((gamma + 2) * sqrt(gamma + 3)), sigma_rel, 1e-15);
    assert_true(strtod(phema_checkpoint_metadatum(checkpoint, "posthoc_ema.sigma_rel"), NULL) ==
                sigma_rel);
    phema_checkpoint_close(checkpoint);
    return gamma;
}

/* Both sides round each step three times, by half an ulp of numbers below the largest parameter.
 * Later steps only reduce these errors. */
static void check_average(const char *directory, const char *name, const long double *wanted,
                          size_t n, double largest)
{
    size_t n_got = 0;
    double *got = read_values(directory, name, &n_got);
    assert_int_equal(n_got, n);
    for (size_t i = 0; i < n; i++)
        assert_near(got[i], (double)wanted[i], 3 * N_STEPS * 0x1p-53 * largest);
    free(got);
}

struct recurrence {
    const char *directory;
    double gamma;
    size_t update_every;
    const struct phema_reset *resets;
    size_t n_resets;
};

/* The reset after a step, which the average of the last step does not see; or NULL. */
static const struct phema_reset *reset_after(const struct recurrence *recurrence, unsigned step,
                                             unsigned last)
{
    for (size_t i = 0; step < last && i < recurrence->n_resets; i++)
        if (recurrence->resets[i].at == step)
            return &recurrence->resets[i];
    return NULL;
}

/* The average after the steps up to last, from the raw files. For update_every > 1 it has
 * ema-pytorch's form. */
static long double *recompute(const struct recurrence *recurrence, unsigned last, size_t *n,
                              double *largest)
{
    long double *average = NULL;
    unsigned origin = 0;
    for (unsigned step = 1; step <= last; step++) {
        unsigned count = step - origin;
        char name[64];
        (void)snprintf(name, sizeof(name), "snapshot-%07u-raw.safetensors", step);
        double *theta = read_values(recurrence->directory, name, n);
        if (!average) {
            average = calloc(*n, sizeof(*average));
            assert_non_null(average);
            for (size_t i = 0; i < *n; i++)
                average[i] = (long double)theta[i];
        }
        if (count == 1) /* the first call copies */
            for (size_t i = 0; i < *n; i++)
                average[i] = (long double)theta[i];
        bool is_updated = (count - 1) % recurrence->update_every == 0;
        long double now = recurrence->update_every == 1 ? count : count + 1;
        long double beta = powl(1 - 1 / now, (long double)recurrence->gamma + 1);
        for (size_t i = 0; i < *n; i++) {
            *largest = fmax(*largest, fabs(theta[i]));
            if (is_updated)
                average[i] = beta * average[i] + (1 - beta) * (long double)theta[i];
        }
        const struct phema_reset *reset = reset_after(recurrence, step, last);
        for (size_t i = 0; reset && i < *n; i++)
            average[i] = (long double)theta[i];
        origin = reset && reset->restarts_count ? step : origin;
        free(theta);
    }
    return average;
}

static void averages_are_those_of_the_stored_parameters(void **state)
{
    (void)state;
    for (size_t every = 1; every <= 7; every += 3) {
        struct phema_gen_options options = small_options();
        options.count = N_STEPS;
        options.is_raw = true;
        options.dtype = options.truth_dtype = PHEMA_F64;
        options.update_every = every;
        char name[64];
        (void)snprintf(name, sizeof(name), "every-%zu", every);
        char *directory = generate(name, &options);
        static const unsigned times[] = {1, 2, 8, 33, N_STEPS};
        for (size_t t = 0; t < ARRAY_LEN(times); t++) {
            (void)snprintf(name, sizeof(name), "snapshot-%07u-0.050.safetensors", times[t]);
            struct recurrence recurrence = {
                .directory = directory,
                .gamma = gamma_of(directory, name, 0.05),
                .update_every = every,
            };
            size_t n = 0;
            double largest = 0;
            long double *wanted = recompute(&recurrence, times[t], &n, &largest);
            assert_int_equal(n, 1000);
            check_average(directory, name, wanted, n, largest);
            free(wanted);
        }
        /* truths are updated at every step */
        (void)snprintf(name, sizeof(name), "truth/truth-%07u-0.150.safetensors", N_STEPS);
        struct recurrence recurrence = {
            .directory = directory, .gamma = gamma_of(directory, name, 0.15), .update_every = 1};
        size_t n = 0;
        double largest = 0;
        long double *wanted = recompute(&recurrence, N_STEPS, &n, &largest);
        check_average(directory, name, wanted, n, largest);
        free(wanted);
        free(directory);
    }
}

/* Copies of the parameters after steps 9 and 23, with another step count after the latter. */
static void resets_are_copies_of_the_stored_parameters(void **state)
{
    (void)state;
    static const struct phema_reset resets[] = {{9, false}, {23, true}};
    for (size_t every = 1; every <= 4; every += 3) {
        struct phema_gen_options options = small_options();
        options.count = N_STEPS;
        options.is_raw = true;
        options.dtype = options.truth_dtype = PHEMA_F64;
        options.update_every = every;
        options.resets = resets;
        options.n_resets = ARRAY_LEN(resets);
        options.truths.sigmas = sigmas; /* 0.05, as of snapshots */
        char name[64];
        (void)snprintf(name, sizeof(name), "reset-%zu", every);
        char *directory = generate(name, &options);
        struct recurrence recurrence = {.directory = directory,
                                        .update_every = every,
                                        .resets = resets,
                                        .n_resets = ARRAY_LEN(resets)};
        static const unsigned times[] = {9, 10, 13, 23, 24, 25, N_STEPS};
        for (size_t t = 0; t <= ARRAY_LEN(times); t++) {
            bool is_truth = t == ARRAY_LEN(times);
            unsigned time = is_truth ? N_STEPS : times[t];
            (void)snprintf(name, sizeof(name), "%s-%07u-0.050.safetensors",
                           is_truth ? "truth/truth" : "snapshot", time);
            recurrence.gamma = gamma_of(directory, name, 0.05);
            recurrence.n_resets = is_truth ? 0 : ARRAY_LEN(resets);
            recurrence.update_every = is_truth ? 1 : every;
            size_t n = 0;
            double largest = 0;
            long double *wanted = recompute(&recurrence, time, &n, &largest);
            check_average(directory, name, wanted, n, largest);
            free(wanted);
        }
        free(directory);
    }
}

static const char *const small_names[] = {
    "snapshot-0000010-0.050.safetensors",    "snapshot-0000010-0.100.safetensors",
    "snapshot-0000020-0.050.safetensors",    "snapshot-0000020-0.100.safetensors",
    "snapshot-0000030-0.050.safetensors",    "snapshot-0000030-0.100.safetensors",
    "snapshot-0000040-0.050.safetensors",    "snapshot-0000040-0.100.safetensors",
    "truth/truth-0000040-0.150.safetensors",
};

static size_t count_entries(const char *path)
{
    DIR *directory = opendir(path);
    assert_non_null(directory);
    size_t n = 0;
    while (readdir(directory))
        n++;
    (void)closedir(directory);
    return n - 2;
}

static void bytes_do_not_depend_on_threads_or_cpu(void **state)
{
    (void)state;
    struct phema_gen_options options = small_options();
    options.n_params = 60000; /* several runs */
    options.dtype = PHEMA_F16;
    options.n_threads = 1;
    assert_int_equal(setenv("PHEMA_CPU", "ref", 1), 0);
    char *one = generate("one", &options);
    assert_int_equal(unsetenv("PHEMA_CPU"), 0);
    options.n_threads = 3;
    char *three = generate("three", &options);
    options.seed = 1;
    char *other = generate("other", &options);
    assert_int_equal(count_entries(one), 9);
    for (size_t i = 0; i < ARRAY_LEN(small_names); i++) {
        char *paths[] = {path_of(one, small_names[i]), path_of(three, small_names[i]),
                         path_of(other, small_names[i])};
        size_t sizes[3];
        uint8_t *data[3];
        for (size_t j = 0; j < 3; j++)
            data[j] = support_read(paths[j], &sizes[j]);
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(data[0], data[1], sizes[0]);
        assert_true(sizes[0] == sizes[2] && memcmp(data[0], data[2], sizes[0]) != 0);
        for (size_t j = 0; j < 3; j++) {
            free(paths[j]);
            free(data[j]);
        }
    }
    free(one);
    free(three);
    free(other);
}

/* These numbers were made once by this program and must never change: FNV-1a of the truth's
 * parameters as F64. */
static void numbers_are_the_same_on_every_machine(void **state)
{
    (void)state;
    struct phema_gen_options options = small_options();
    options.truth_dtype = PHEMA_F64;
    char *directory = generate("machine", &options);
    size_t n = 0;
    double *values = read_values(directory, small_names[8], &n);
    const uint8_t *bytes = (const uint8_t *)values;
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < n * sizeof(*values); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    if (hash != 0xee88833a34ecc1f0)
        fail_msg("hash is %#llx", (unsigned long long)hash);
    free(values);
    free(directory);
}

static void tensors_are_a_few_large_and_many_small(void **state)
{
    (void)state;
    static const uint64_t sizes[][2] = {{1, 1},   {1, 77},      {2, 2},      {2, 5000},
                                        {3, 3},   {8, 10000},   {7, 100003}, {101, 101},
                                        {30, 33}, {50, 1 << 20}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct phema_gen_options options = small_options();
        options.count = 1;
        options.steps = 2;
        options.truths.n_sigmas = 0;
        options.n_tensors = sizes[i][0];
        options.n_params = sizes[i][1];
        options.replaces = true;
        char *directory = generate("tensors", &options);
        struct phema_checkpoint *file = open_file(directory, "snapshot-0000002-0.050.safetensors");
        const struct phema_tensor *tensors = phema_checkpoint_tensors(file);
        assert_int_equal(phema_checkpoint_n_tensors(file), sizes[i][0]);
        uint64_t n_params = 0, n_scalars = 0;
        for (size_t j = 0; j < sizes[i][0]; j++) {
            n_params += tensors[j].n_elems;
            n_scalars += tensors[j].rank == 0;
            assert_true(tensors[j].n_elems > 0);
        }
        assert_int_equal(n_params, sizes[i][1]);
        assert_int_equal(n_scalars, sizes[i][0] >= 3);
        assert_non_null(phema_checkpoint_find(file, "blocks.0.weight", 15));
        assert_string_equal(phema_checkpoint_metadatum(file, "posthoc_ema.time"), "2");
        assert_string_equal(phema_checkpoint_metadatum(file, "posthoc_ema.unit"), "steps");
        assert_string_equal(phema_checkpoint_metadatum(file, "posthoc_ema.sigma_rel"), "0.05");
        assert_null(phema_checkpoint_metadatum(file, "posthoc_ema.update_every"));
        phema_checkpoint_close(file);
        free(directory);
    }
}

/* At the end, the averages of 0.05 and 0.10 differ by 3 %, as the solver expects of real trainings.
 * 20000 parameters determine this to a few percent, and the walk is not yet continuous. */
static void motion_is_that_of_real_trainings(void **state)
{
    (void)state;
    struct phema_gen_options options = small_options();
    options.steps = 1000;
    options.count = 1;
    options.n_params = 20000;
    char *directory = generate("motion", &options);
    size_t n = 0;
    double *narrow = read_values(directory, "snapshot-0001000-0.050.safetensors", &n);
    double *wide = read_values(directory, "snapshot-0001000-0.100.safetensors", &n);
    double difference2 = 0, size2 = 0;
    for (size_t i = 0; i < n; i++) {
        difference2 += (narrow[i] - wide[i]) * (narrow[i] - wide[i]);
        size2 += wide[i] * wide[i];
    }
    assert_near(sqrt(difference2 / size2), 0.03, 0.006);
    free(narrow);
    free(wide);
    free(directory);
}

static void metadata_tell_update_every_and_names_every_digit(void **state)
{
    (void)state;
    static const double odd[] = {0.0125, 0.28};
    struct phema_gen_options options = small_options();
    options.snapshots.sigmas = odd;
    options.count = 3;
    options.steps = 10;
    options.update_every = 5;
    options.is_raw = true;
    char *directory = generate("digits", &options);
    struct phema_checkpoint *file = open_file(directory, "snapshot-0000006-0.0125.safetensors");
    assert_string_equal(phema_checkpoint_metadatum(file, "posthoc_ema.update_every"), "5");
    assert_string_equal(phema_checkpoint_metadatum(file, "posthoc_ema.sigma_rel"), "0.0125");
    phema_checkpoint_close(file);
    file = open_file(directory, "snapshot-0000003-raw.safetensors");
    assert_null(phema_checkpoint_metadatum(file, "posthoc_ema.sigma_rel"));
    assert_null(phema_checkpoint_metadatum(file, "posthoc_ema.update_every"));
    phema_checkpoint_close(file);
    file = open_file(directory, "truth/truth-0000010-0.150.safetensors");
    assert_null(phema_checkpoint_metadatum(file, "posthoc_ema.update_every"));
    phema_checkpoint_close(file);
    free(directory);
}

static void check_refused(const struct phema_gen_options *options, enum phema_status wanted,
                          const char *part)
{
    struct phema_error err = {0};
    char *directory = support_tmp_path("refused");
    assert_fails(phema_gen(directory, options, &err), wanted, &err, part);
    assert_int_equal(access(directory, F_OK), -1);
    free(directory);
}

static void impossible_options_are_refused_before_any_file_is_made(void **state)
{
    (void)state;
    static const double wide[] = {0.05, 0.4}, twice[] = {0.1, 0.1};
    struct phema_gen_options options = small_options();
    options.count = N_STEPS + 1;
    check_refused(&options, PHEMA_ERR_USAGE, "steps");
    options = small_options();
    options.count = 0;
    check_refused(&options, PHEMA_ERR_USAGE, "snapshots");
    options = small_options();
    options.n_params = 6;
    check_refused(&options, PHEMA_ERR_USAGE, "expected 7");
    options = small_options();
    options.update_every = 0;
    check_refused(&options, PHEMA_ERR_USAGE, "--update-every");
    options = small_options();
    options.steps = UINT64_MAX;
    check_refused(&options, PHEMA_ERR_USAGE, "steps");
    options = small_options();
    options.dtype = PHEMA_F8_E4M3;
    check_refused(&options, PHEMA_ERR_USAGE, "F8_E4M3");
    options = small_options();
    options.snapshots.sigmas = wide;
    check_refused(&options, PHEMA_ERR_TARGET, "0.4");
    options = small_options();
    options.snapshots.sigmas = twice;
    check_refused(&options, PHEMA_ERR_USAGE, "twice");
}

static void an_existing_file_stays_and_no_other_appears(void **state)
{
    (void)state;
    struct phema_gen_options options = small_options();
    char *directory = generate("existing", &options);
    for (size_t i = 0; i < ARRAY_LEN(small_names); i++) {
        char *path = path_of(directory, small_names[i]);
        if (i != 5)
            assert_int_equal(unlink(path), 0);
        free(path);
    }
    struct phema_error err = {0};
    assert_fails(phema_gen(directory, &options, &err), PHEMA_ERR_OUTPUT, &err, small_names[5]);
    assert_int_equal(count_entries(directory), 2); /* that file, and the directory truth */
    options.replaces = true;
    assert_ok(phema_gen(directory, &options, &err), &err);
    assert_int_equal(count_entries(directory), 9);
    free(directory);
}

/* A limit on file sizes applies after the directories were created. They are removed again. */
static void directories_made_in_vain_are_removed(void **state)
{
    (void)state;
    struct phema_gen_options options = small_options();
    struct phema_error err = {0};
    char *missing = support_tmp_path("1/2/3/4/5/6/7/8/9");
    assert_fails(phema_gen(missing, &options, &err), PHEMA_ERR_OUTPUT, &err, "8 directories");
    missing[strlen(missing) - strlen("/2/3/4/5/6/7/8/9")] = '\0';
    assert_false(phema_path_exists(missing));
    free(missing);

    struct rlimit limit, tiny;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    tiny = limit;
    tiny.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    check_refused(&options, PHEMA_ERR_OUTPUT, "snapshot-0000010-0.050");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);

    char *file = support_tmp_path("plain");
    support_write(file, "x", 1);
    assert_fails(phema_gen(file, &options, &err), PHEMA_ERR_OUTPUT, &err, "not a directory");
    free(file);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(averages_are_those_of_the_stored_parameters),
    cmocka_unit_test(resets_are_copies_of_the_stored_parameters),
    cmocka_unit_test(bytes_do_not_depend_on_threads_or_cpu),
    cmocka_unit_test(numbers_are_the_same_on_every_machine),
    cmocka_unit_test(tensors_are_a_few_large_and_many_small),
    cmocka_unit_test(motion_is_that_of_real_trainings),
    cmocka_unit_test(metadata_tell_update_every_and_names_every_digit),
    cmocka_unit_test(impossible_options_are_refused_before_any_file_is_made),
    cmocka_unit_test(an_existing_file_stays_and_no_other_appears),
    cmocka_unit_test(directories_made_in_vain_are_removed),
};
TEST_GROUP(tests)
