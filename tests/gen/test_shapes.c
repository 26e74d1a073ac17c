// SPDX-License-Identifier: Apache-2.0
/* test_shapes.c - averages of every shape, compared with sums over the parameters of every step.
 * This file computes the weights from the definitions of the shapes. */
#include <dirent.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "train.h"
#include "trainings.h"

#define N_STEPS  120
#define N_PARAMS ((size_t)300)

static struct phema_gen_options small_options(void)
{
    return (struct phema_gen_options){
        .count = 3,
        .steps = N_STEPS,
        .dtype = PHEMA_F64,
        .truth_dtype = PHEMA_F64,
        .n_tensors = 5,
        .n_params = N_PARAMS,
        .update_every = 1,
        .seed = 3,
        .n_threads = 2,
    };
}

/* A table like a warm-up of diffusers' EMAModel: nothing at step 1, then a decay for each listed
 * step. */
static const uint64_t table_steps[] = {2, 3, 5, 8, 13, 21, 34, 55, 89, 110};
static const double table_betas[] = {0.5, 0.25, 1, 0.75, 0.9, 0.95, 0, 0.3, 0.8, 0.125};
static const struct phema_betas table = {table_steps, table_betas, ARRAY_LEN(table_steps), NULL};
static const uint64_t never_steps[] = {1};
static const double never_betas[] = {1};
static const struct phema_betas never = {never_steps, never_betas, 1, NULL};

static const struct phema_gen_profile shapes[] = {
    {{.shape = PHEMA_SHAPE_EMA, .half_life = 12.5}, 0, "ema:half-life=12.5", "ema12.5"},
    {{.shape = PHEMA_SHAPE_RAMPED, .half_life = 10, .ramp = 0.125},
     0,
     "edm-ema:10,ramp=0.125",
     "e"},
    {{.shape = PHEMA_SHAPE_WINDOW, .length = 25}, 0, "window:25", "window25"},
    {{.shape = PHEMA_SHAPE_WINDOW, .length = 30.75}, 0, "window:30.75", "window30.75"},
    {{.shape = PHEMA_SHAPE_COSINE, .length = 40}, 0, "cosine:40", "cosine40"},
    {{.shape = PHEMA_SHAPE_MINUS_SQRT, .length = 31}, 0, "minus-sqrt:31", "minus-sqrt31"},
    {{.shape = PHEMA_SHAPE_RAW}, 0, "raw", "raw"},
    {{.shape = PHEMA_SHAPE_TABLE, .betas = &table}, 0, "table:some.txt", "table-some.txt"},
    {{.shape = PHEMA_SHAPE_TABLE, .betas = &never}, 0, "table:never.txt", "table-never.txt"},
    {{.shape = PHEMA_SHAPE_POWER, .gamma = 2.5}, (double)NAN, "power:gamma=2.5", "power-gamma2.5"},
};

/* Weight of everything before t in an average that ends at end. */
static long double weight_before(const struct phema_profile *profile, long double end,
                                 long double t)
{
    long double x = fmaxl(0, 1 - (end - t) / (long double)profile->length);
    if (profile->shape == PHEMA_SHAPE_EMA)
        return exp2l(-(end - t) / (long double)profile->half_life);
    if (profile->shape == PHEMA_SHAPE_WINDOW)
        return x;
    if (profile->shape == PHEMA_SHAPE_COSINE)
        return 1 - (1 + cosl(3.14159265358979323846264338327950288L * x)) / 2;
    if (profile->shape == PHEMA_SHAPE_MINUS_SQRT)
        return sqrtl(x);
    if (profile->shape == PHEMA_SHAPE_POWER)
        return powl(t / end, (long double)profile->gamma + 1);
    return t < end ? 0 : 1; /* raw */
}

/* The share of the parameters that a step adds, for the shapes that are defined as recurrences. */
static long double take_up(const struct phema_profile *profile, unsigned step)
{
    if (profile->shape == PHEMA_SHAPE_RAMPED)
        return 1 - exp2l(-1 /
                         fminl((long double)profile->half_life, (long double)profile->ramp * step));
    for (size_t i = 0; i < profile->betas->n; i++)
        if (profile->betas->steps[i] == step)
            return 1 - (long double)profile->betas->betas[i];
    return 0;
}

/* weights: [end + 1], for the parameters before training and after each step */
static void find_weights(long double *weights, const struct phema_profile *profile, unsigned end)
{
    bool is_recurrence =
        profile->shape == PHEMA_SHAPE_RAMPED || profile->shape == PHEMA_SHAPE_TABLE;
    weights[0] = is_recurrence ? 1 : weight_before(profile, end, 0);
    for (unsigned step = 1; step <= end; step++) {
        weights[step] = is_recurrence ? take_up(profile, step)
                                      : weight_before(profile, end, step) -
                                            weight_before(profile, end, step - 1);
        for (unsigned before = 0; is_recurrence && before < step; before++)
            weights[before] *= 1 - weights[step];
    }
}

/* A training with the parameters of every step, and all shapes at some times: those that windows and
 * the like allow as exact averages, the others as snapshots of every step. */
static const uint64_t truth_times[] = {77, 40, N_STEPS};

static char *generate_training(const char *name)
{
    static struct phema_gen_profile kinds[ARRAY_LEN(shapes)];
    struct phema_gen_options options = small_options();
    options.count = N_STEPS;
    options.snapshots.profiles = kinds;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        if (!phema_shape_has_begin(shapes[i].profile.shape))
            kinds[options.snapshots.n_profiles++] = shapes[i];
    options.truths.profiles = shapes;
    options.truths.n_profiles = ARRAY_LEN(shapes);
    options.truth_times = truth_times;
    options.n_truth_times = ARRAY_LEN(truth_times);
    return generate(name, &options);
}

/* An average that is never updated gives the parameters before training. */
static double *read_training(const char *directory)
{
    double *thetas = calloc((N_STEPS + 1) * N_PARAMS, sizeof(*thetas));
    assert_non_null(thetas);
    for (unsigned step = 0; step <= N_STEPS; step++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "snapshot-%07u-%s.safetensors", step ? step : N_STEPS,
                       step ? "raw" : "table-never.txt");
        size_t n = 0;
        double *values = read_values(directory, name, &n);
        assert_int_equal(n, N_PARAMS);
        memcpy(thetas + step * N_PARAMS, values, n * sizeof(*values));
        free(values);
    }
    return thetas;
}

static void check_file(const char *directory, const char *name, const double *thetas,
                       const struct phema_profile *profile, unsigned end)
{
    long double weights[N_STEPS + 1];
    find_weights(weights, profile, end);
    size_t n = 0;
    double *values = read_values(directory, name, &n);
    assert_int_equal(n, N_PARAMS);
    for (size_t i = 0; i < n; i++) {
        long double wanted = 0;
        for (unsigned step = 0; step <= end; step++)
            wanted += weights[step] * (long double)thetas[step * N_PARAMS + i];
        assert_near(values[i], (double)wanted, 1e-14);
    }
    free(values);
}

static void every_shape_is_the_sum_of_its_weights(void **state)
{
    (void)state;
    char *directory = generate_training("shapes");
    double *thetas = read_training(directory);
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        char name[96];
        for (unsigned time = 1; !phema_shape_has_begin(shapes[i].profile.shape) && time <= N_STEPS;
             time += 17) {
            (void)snprintf(name, sizeof(name), "snapshot-%07u-%s.safetensors", time,
                           shapes[i].name);
            check_file(directory, name, thetas, &shapes[i].profile, time);
        }
        for (size_t t = 0; t < ARRAY_LEN(truth_times); t++) {
            (void)snprintf(name, sizeof(name), "truth/truth-%07u-%s.safetensors",
                           (unsigned)truth_times[t], shapes[i].name);
            check_file(directory, name, thetas, &shapes[i].profile, (unsigned)truth_times[t]);
        }
    }
    free(directory);
    free(thetas);
}

/* Parameters move little in one step, so the parameters before training belong to the same
 * training. */
static void parameters_before_training_are_one_step_away(void **state)
{
    (void)state;
    char *directory = generate_training("before");
    double *thetas = read_training(directory), moved2 = 0, size2 = 0;
    for (size_t i = 0; i < N_PARAMS; i++) {
        moved2 += (thetas[N_PARAMS + i] - thetas[i]) * (thetas[N_PARAMS + i] - thetas[i]);
        size2 += thetas[i] * thetas[i];
    }
    assert_true(moved2 > 0 && moved2 < 0.04 * size2);
    free(directory);
    free(thetas);
}

/* Calls back for each file of a directory and of truth below it. */
static void compare_directories(const char *a, const char *b)
{
    DIR *directory = opendir(a);
    assert_non_null(directory);
    size_t n_compared = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "truth") == 0)
            continue;
        char *paths[] = {path_of(a, entry->d_name), path_of(b, entry->d_name)};
        size_t sizes[2];
        uint8_t *data[2] = {support_read(paths[0], &sizes[0]), support_read(paths[1], &sizes[1])};
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(data[0], data[1], sizes[0]);
        for (size_t i = 0; i < 2; i++) {
            free(paths[i]);
            free(data[i]);
        }
        n_compared++;
    }
    (void)closedir(directory);
    assert_true(n_compared >= ARRAY_LEN(shapes));
}

static void bytes_do_not_depend_on_threads(void **state)
{
    (void)state;
    struct phema_gen_options options = small_options();
    options.n_params = 60000; /* several runs */
    options.dtype = PHEMA_F16;
    options.snapshots.profiles = options.truths.profiles = shapes;
    options.snapshots.n_profiles = options.truths.n_profiles = ARRAY_LEN(shapes);
    options.n_threads = 1;
    char *one = generate("one", &options);
    options.n_threads = 4;
    char *four = generate("four", &options);
    compare_directories(one, four);
    char *truths[] = {path_of(one, "truth"), path_of(four, "truth")};
    compare_directories(truths[0], truths[1]);
    free(truths[0]);
    free(truths[1]);
    free(one);
    free(four);
}

/* Averages that begin before the training, and undefined profiles. */
static void impossible_profiles_are_refused(void **state)
{
    (void)state;
    static const uint64_t backwards[] = {2, 2};
    static const struct phema_betas disordered = {backwards, table_betas, 2, NULL};
    static const struct {
        struct phema_gen_profile profile;
        const char *part;
    } refused[] = {
        {{{.shape = PHEMA_SHAPE_WINDOW, .length = 40.5}, 0, "window:40.5", "w"}, "at step 40;"},
        {{{.shape = PHEMA_SHAPE_COSINE, .length = 0}, 0, "cosine:0", "c"}, "cosine:0: length"},
        {{{.shape = PHEMA_SHAPE_EMA, .half_life = -1}, 0, "ema:-1", "e"}, "half-life"},
        {{{.shape = PHEMA_SHAPE_RAMPED, .half_life = 9}, 0, "edm-ema:9", "e"}, "ramp"},
        {{{.shape = PHEMA_SHAPE_POWER, .gamma = -0.5}, (double)NAN, "power:gamma=-0.5", "p"},
         "gamma"},
        {{{.shape = PHEMA_SHAPE_TABLE, .betas = &disordered}, 0, "table:t", "t"}, "ascending"},
        {{{.shape = PHEMA_SHAPE_EMA, .half_life = 9}, 0, "ema:9", "../e"}, "file's name"},
    };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct phema_gen_options options = small_options();
        options.snapshots.profiles = &refused[i].profile;
        options.snapshots.n_profiles = 1;
        struct phema_error err = {0};
        char *directory = support_tmp_path("refused");
        assert_fails(phema_gen(directory, &options, &err), PHEMA_ERR_USAGE, &err, refused[i].part);
        assert_int_equal(access(directory, F_OK), -1);
        free(directory);
    }
}

static void truths_are_at_steps_of_the_training(void **state)
{
    (void)state;
    static const uint64_t times[][2] = {{0, 5}, {5, N_STEPS + 1}, {7, 7}};
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct phema_gen_options options = small_options();
        options.truths.profiles = shapes;
        options.truths.n_profiles = 1;
        options.truth_times = times[i];
        options.n_truth_times = 2;
        struct phema_error err = {0};
        char *directory = support_tmp_path("refused");
        assert_fails(phema_gen(directory, &options, &err), PHEMA_ERR_USAGE, &err, "--truth-at");
        assert_int_equal(access(directory, F_OK), -1);
        free(directory);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_shape_is_the_sum_of_its_weights),
    cmocka_unit_test(parameters_before_training_are_one_step_away),
    cmocka_unit_test(bytes_do_not_depend_on_threads),
    cmocka_unit_test(impossible_profiles_are_refused),
    cmocka_unit_test(truths_are_at_steps_of_the_training),
};
TEST_GROUP(tests)
