// SPDX-License-Identifier: Apache-2.0
/* test_decay_fit.c - decays are read off recurrences whose decays are known: trainings that move in
 * different ways, files of three dtypes, and what goes wrong with averages. */
#include "phema/decay_fit.h"

#include <math.h>
#include <string.h>

#include "support.h"

enum { N_TIMES = 8, N_ELEMS = 480, N_TENSORS = 6 };
enum motion { WALK, SLOWING, DRIFT, RELAXING, FALLING, MOMENTUM, N_MOTIONS };

struct training {
    enum motion motion;
    double jitter;       /* of the parameters at each step; the walk of all steps is 0.3 long */
    size_t apart;        /* steps between two checkpoints */
    double decay;        /* of a step */
    unsigned digits;     /* bits of the numbers in the files */
    size_t restart_at;   /* step: the average is a copy; 0: never */
    size_t frozen_at;    /* step: the average is not updated from here on; 0: never */
    bool warms_up;       /* the decay of step s is min(decay, (1 + s) / (4 + s)) */
    size_t counter_from; /* step from which s counts again */
};

struct files {
    double averages[N_TIMES][N_ELEMS], raws[N_TIMES][N_ELEMS], spacings[N_ELEMS];
    double kept[N_TIMES - 1]; /* the truth */
    struct phema_decay_interval found[N_TIMES - 1];
    struct phema_estimate margin;
};

static double uniform(uint64_t *state)
{
    return ((double)(support_random(state) >> 11) + 0.5) * 0x1p-53;
}

/* Nearly: the sum of four uniform numbers. */
static double normal(uint64_t *state)
{
    uint64_t bits = support_random(state), sum = 0;
    for (unsigned i = 0; i < 64; i += 16)
        sum += bits >> i & 0xffff;
    return sqrt(3) * ((double)sum / 0xffff - 2);
}

static double decay_of(const struct training *training, size_t step)
{
    size_t count = step > training->counter_from ? step - training->counter_from : step;
    double ramp = (1 + (double)count) / (4 + (double)count);
    if (training->frozen_at && step > training->frozen_at)
        return 1;
    return training->warms_up ? fmin(training->decay, ramp) : training->decay;
}

/* One element of a training: its parameter and its average at each checkpoint. */
static void train(double *averages, double *raws, const struct training *training, double scale,
                  uint64_t *random)
{
    size_t n = N_TIMES * training->apart;
    double start = normal(random), x = start, average = start, speed = normal(random);
    double goal = normal(random), size = 0.3 / sqrt((double)n), slow = 0.3 + 2 * uniform(random);
    for (size_t step = 1; step <= n; step++) {
        double done = (double)step / (double)n, kick = size * normal(random);
        if (training->motion == SLOWING)
            kick *= sqrt(0.3 / (done + 0.05));
        else if (training->motion == DRIFT)
            kick = 0.7 * kick + 0.2 * speed / (double)n;
        else if (training->motion == RELAXING)
            kick = 0.5 * kick + (start + 0.3 * goal - x) / (slow * (double)n);
        else if (training->motion == FALLING)
            kick *= 0.5 * (1.05 + cos(M_PI * done));
        else if (training->motion == MOMENTUM)
            kick = speed = 0.9 * speed + 0.1 * kick;
        x += kick;
        double shown = x + training->jitter * normal(random), decay = decay_of(training, step);
        average = decay * average + (1 - decay) * shown;
        if (step == training->restart_at)
            average = shown;
        if (step % training->apart == 0) {
            *averages++ = scale * average;
            *raws++ = scale * shown;
        }
    }
}

static double round_to(double *spacing, double value, unsigned digits)
{
    int exponent;
    (void)frexp(value, &exponent);
    double unit = ldexp(1, exponent - (int)digits);
    *spacing = fmax(*spacing, unit);
    return unit * nearbyint(value / unit);
}

static void find_truth(struct files *files, const struct training *training)
{
    for (size_t k = 0; k + 1 < N_TIMES; k++) {
        double kept = 1;
        for (size_t step = (k + 1) * training->apart + 1; step <= (k + 2) * training->apart; step++)
            kept *= step == training->restart_at ? 0 : decay_of(training, step);
        files->kept[k] = kept;
    }
}

static void fit(struct files *files)
{
    const double *averages[N_TIMES], *raws[N_TIMES];
    double fineness[2 * N_TIMES], scratch[N_ELEMS];
    size_t tensors[N_ELEMS];
    for (size_t k = 0; k < N_TIMES; k++) {
        averages[k] = files->averages[k];
        raws[k] = files->raws[k];
        fineness[k] = fineness[N_TIMES + k] = 1;
    }
    for (size_t i = 0; i < N_ELEMS; i++)
        tensors[i] = i * N_TENSORS / N_ELEMS;
    const struct phema_decay_rows rows = {.averages = averages,
                                          .raws = raws,
                                          .n = N_TIMES,
                                          .n_elems = N_ELEMS,
                                          .tensors = tensors,
                                          .spacings = files->spacings,
                                          .fineness = fineness};
    files->margin = phema_decay_fit(files->found, &rows, scratch);
}

static void make_files(struct files *files, const struct training *training, uint64_t seed)
{
    double averages[N_TIMES], raws[N_TIMES];
    uint64_t random = seed;
    memset(files, 0, sizeof(*files));
    for (size_t i = 0; i < N_ELEMS; i++) {
        size_t tensor = i * N_TENSORS / N_ELEMS;
        double scale = pow(10, (double)tensor / 2 - 2);
        train(averages, raws, training, scale, &random);
        for (size_t k = 0; k < N_TIMES; k++) {
            files->averages[k][i] = round_to(&files->spacings[i], averages[k], training->digits);
            files->raws[k][i] = round_to(&files->spacings[i], raws[k], training->digits);
        }
    }
    find_truth(files, training);
    fit(files);
}

/* ---- What is right ---- */

static const unsigned dtypes[] = {24, 11, 8}; /* f32, f16, bf16 */

static void finds_the_decay(void **state)
{
    (void)state;
    static struct files files;
    for (enum motion motion = WALK; motion <= DRIFT; motion++)
        for (size_t d = 0; d < 2; d++) {
            struct training training = {
                .motion = motion, .apart = 100, .decay = 0.995, .digits = dtypes[d]};
            make_files(&files, &training, 1);
            for (size_t k = 0; k + 1 < N_TIMES; k++) {
                assert_int_equal(files.found[k].state, PHEMA_DECAY_FITTED);
                assert_near(files.found[k].kept.value, files.kept[k], 0.03);
                assert_true(files.found[k].kept.spread < 0.02);
                assert_near(files.found[k].place, 0.21, 0.05);
            }
            assert_true(files.margin.value > 0.3);
        }
}

/* Where half is kept, the raw parameters before are no instruments for a walk. */
static void finds_a_half_life_of_one_interval(void **state)
{
    (void)state;
    static struct files files;
    for (unsigned jitters = 0; jitters < 2; jitters++) {
        struct training training = {.motion = WALK,
                                    .jitter = jitters ? 0.05 : 0,
                                    .apart = 100,
                                    .decay = exp2(-0.01),
                                    .digits = 24};
        make_files(&files, &training, 5);
        for (size_t k = 1; k + 2 < N_TIMES; k++) {
            assert_int_equal(files.found[k].state, PHEMA_DECAY_FITTED);
            assert_near(files.found[k].instrumented.value, 0.5, 0.1);
        }
    }
}

/* An honest series of any kind; the generator chooses. */
static struct training choose_training(uint64_t *random)
{
    static const double decays[] = {0.5, 0.9, 0.97, 0.99, 0.995, 0.999, 0.9997};
    static const size_t distances[] = {1, 7, 30, 100, 200};
    struct training training = {
        .motion = (enum motion)(support_random(random) % N_MOTIONS),
        .apart = distances[support_random(random) % ARRAY_LEN(distances)],
        .decay = decays[support_random(random) % ARRAY_LEN(decays)],
        .digits = dtypes[support_random(random) % ARRAY_LEN(dtypes)],
        .warms_up = support_random(random) % 4 == 0,
    };
    training.jitter = support_random(random) % 2 ? 0 : 0.1 * uniform(random);
    return training;
}

static void honest_series_are_never_accused(void **state)
{
    (void)state;
    static struct files files;
    uint64_t random = 7;
    size_t n_fitted = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct training training = choose_training(&random);
        make_files(&files, &training, seed + 100);
        for (size_t k = 0; k + 1 < N_TIMES; k++) {
            const struct phema_decay_interval *found = &files.found[k];
            n_fitted += found->state == PHEMA_DECAY_FITTED;
            if (phema_decay_refutes(found, files.kept[k], 1.2))
                fail_msg("series %d, interval %zu: kept %g, found %g +- %g (%g, %g)", (int)seed, k,
                         files.kept[k], found->kept.value, found->kept.spread, found->plain.value,
                         found->instrumented.value);
        }
        assert_true(files.margin.value > -0.02);
    }
    assert_true(n_fitted > 900);
}

static void jitter_alone_is_unclear(void **state)
{
    (void)state;
    static struct files files;
    struct training training = {
        .motion = WALK, .jitter = 0.3, .apart = 30, .decay = 0.999, .digits = 24};
    make_files(&files, &training, 3);
    for (size_t k = 0; k + 1 < N_TIMES; k++)
        assert_int_equal(phema_decay_refutes(&files.found[k], files.kept[k], 1.2), 0);
    assert_int_equal(files.found[0].state, PHEMA_DECAY_UNCLEAR);
    assert_int_equal(files.found[N_TIMES - 2].state, PHEMA_DECAY_UNCLEAR);
}

static void parameters_that_stay_tell_nothing(void **state)
{
    (void)state;
    static struct files files;
    memset(&files, 0, sizeof(files));
    for (size_t i = 0; i < N_ELEMS; i++)
        for (size_t k = 0; k < N_TIMES; k++)
            files.averages[k][i] = files.raws[k][i] = 1;
    fit(&files);
    for (size_t k = 0; k + 1 < N_TIMES; k++)
        assert_int_equal(files.found[k].state, PHEMA_DECAY_UNCLEAR);
    assert_true(isnan(files.margin.value));
}

/* ---- What is wrong ---- */

static void refutes_another_decay(void **state)
{
    (void)state;
    static struct files files;
    for (enum motion motion = WALK; motion < N_MOTIONS; motion++)
        for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
            struct training training = {
                .motion = motion, .apart = 100, .decay = 0.99, .digits = dtypes[d]};
            size_t n_more = 0, n_less = 0;
            make_files(&files, &training, 5);
            for (size_t k = 0; k + 1 < N_TIMES; k++) {
                n_more += phema_decay_refutes(&files.found[k], pow(0.9, 100), 1.4) < 0;
                n_less += phema_decay_refutes(&files.found[k], pow(0.999, 100), 1.4) > 0;
            }
            assert_true(n_more >= 2);
            assert_true(n_less >= 6);
        }
}

static void finds_a_restart(void **state)
{
    (void)state;
    static struct files files;
    for (enum motion motion = WALK; motion < N_MOTIONS; motion++) {
        struct training training = {
            .motion = motion, .apart = 100, .decay = 0.998, .digits = 11, .restart_at = 430};
        make_files(&files, &training, 6);
        for (size_t k = 0; k + 1 < N_TIMES; k++)
            assert_int_equal(phema_decay_refutes(&files.found[k], pow(0.998, 100), 1.6), k == 3);
        assert_near(files.found[3].kept.value, 0, 0.1);
    }
}

static void finds_frozen_averages(void **state)
{
    (void)state;
    static struct files files;
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
        struct training training = {
            .motion = SLOWING, .apart = 100, .decay = 0.99, .digits = dtypes[d], .frozen_at = 500};
        make_files(&files, &training, 8);
        for (size_t k = 0; k + 1 < N_TIMES; k++) {
            assert_int_equal(files.found[k].state == PHEMA_DECAY_FROZEN, k > 3);
            assert_int_equal(phema_decay_refutes(&files.found[k], pow(0.99, 100), 1.6),
                             k > 3 ? -1 : 0);
        }
    }
}

static void finds_averages_that_are_raw(void **state)
{
    (void)state;
    static struct files files;
    struct training training = {.motion = DRIFT, .apart = 50, .decay = 0, .digits = 24};
    make_files(&files, &training, 9);
    for (size_t k = 0; k + 1 < N_TIMES; k++) {
        assert_int_equal(files.found[k].state, PHEMA_DECAY_RAW);
        assert_int_equal(phema_decay_refutes(&files.found[k], pow(0.999, 50), 1.6), 1);
        assert_int_equal(phema_decay_refutes(&files.found[k], pow(0.8, 50), 1.6), 0);
    }
}

/* A counter that begins again makes the decays fall and rise. */
static void follows_a_counter(void **state)
{
    (void)state;
    static struct files files;
    struct training training = {.motion = WALK,
                                .apart = 100,
                                .decay = 0.9999,
                                .digits = 24,
                                .warms_up = true,
                                .counter_from = 400};
    make_files(&files, &training, 10);
    for (size_t k = 0; k + 1 < N_TIMES; k++)
        assert_near(files.found[k].kept.value, files.kept[k], 0.1);
    assert_true(files.found[2].kept.value > 0.3);
    assert_near(files.found[3].kept.value, 0, 0.05);
    assert_true(files.found[6].kept.value > 0.3);
}

static void finds_exchanged_sets(void **state)
{
    (void)state;
    static struct files files, exchanged;
    struct training training = {.motion = WALK, .apart = 100, .decay = 0.995, .digits = 24};
    make_files(&files, &training, 11);
    exchanged = files;
    memcpy(exchanged.averages, files.raws, sizeof(files.raws));
    memcpy(exchanged.raws, files.averages, sizeof(files.averages));
    fit(&exchanged);
    assert_near(exchanged.margin.value, -files.margin.value, 0.3);
    assert_true(exchanged.margin.value + 5 * exchanged.margin.spread < -0.1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(finds_the_decay),
    cmocka_unit_test(honest_series_are_never_accused),
    cmocka_unit_test(jitter_alone_is_unclear),
    cmocka_unit_test(parameters_that_stay_tell_nothing),
    cmocka_unit_test(refutes_another_decay),
    cmocka_unit_test(finds_a_restart),
    cmocka_unit_test(finds_frozen_averages),
    cmocka_unit_test(finds_averages_that_are_raw),
    cmocka_unit_test(follows_a_counter),
    cmocka_unit_test(finds_exchanged_sets),
    cmocka_unit_test(finds_a_half_life_of_one_interval),
};
TEST_GROUP(tests)
