// SPDX-License-Identifier: Apache-2.0
/* test_golden.c - weights compared with values from 220-digit arithmetic: 48 cases up to condition
 * 2e18, and 12 that must fail. Distances are measured in quad, with the golden 32-digit gammas and
 * with inner products written out in this file. */
#include "profiles.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/json.h"
#include "phema/solver.h"

#include "phema/quad.h"

struct golden {
    const struct phema_json *json;
    const char *id;
    size_t n;                        /* the number of inputs used */
    struct phema_profile *snapshots; /* [n] */
    phema_quad *times, *gammas;      /* [n + 1], the target last */
    struct phema_profile target;
    phema_quad *white, *walk; /* [n x n] */
    phema_quad white_target, walk_target;
};

static const char *string_of(const struct phema_json *object, const char *key)
{
    const char *found = phema_json_string(phema_json_get(object, key), NULL);
    if (!found)
        fail_msg("no \"%s\" in the golden values", key);
    return found;
}

static double number_of(const struct phema_json *object, const char *key)
{
    return strtod(string_of(object, key), NULL);
}

static double time_of(const struct phema_json *object)
{
    double t = -1;
    assert_true(phema_json_number(&t, phema_json_get(object, "time")));
    return t;
}

static phema_quad white_product(phema_quad ga, phema_quad ta, phema_quad gb, phema_quad tb)
{
    return (ga + 1) * (gb + 1) * phema_quad_pow(ta / tb, gb) / ((ga + gb + 1) * tb);
}

static phema_quad walk_product(phema_quad ga, phema_quad ta, phema_quad gb, phema_quad tb)
{
    phema_quad a = ga + 1;
    phema_quad b = gb + 1;
    phema_quad r = phema_quad_pow(ta / tb, b);
    return ta * (1 - 1 / (a + 1) - r / (b + 1) + r / (a + b + 1));
}

typedef phema_quad product(phema_quad, phema_quad, phema_quad, phema_quad);

static phema_quad ordered(product *multiply, const struct golden *golden, size_t i, size_t j)
{
    if (golden->times[i] > golden->times[j])
        return ordered(multiply, golden, j, i);
    return multiply(golden->gammas[i], golden->times[i], golden->gammas[j], golden->times[j]);
}

static void read_case(struct golden *golden, const struct phema_json *json)
{
    const struct phema_json *inputs = phema_json_get(json, "inputs");
    const struct phema_json *target = phema_json_get(json, "target");
    size_t n_inputs = phema_json_length(inputs);
    bool is_dropped = strcmp(string_of(json, "later_inputs"), "dropped") == 0;
    *golden = (struct golden){.json = json, .id = string_of(json, "id")};
    golden->snapshots = calloc(n_inputs, sizeof(*golden->snapshots));
    golden->times = calloc(n_inputs + 1, sizeof(*golden->times));
    golden->gammas = calloc(n_inputs + 1, sizeof(*golden->gammas));
    assert_true(golden->snapshots && golden->times && golden->gammas);

    struct phema_error err = {0};
    for (size_t i = 0; i < n_inputs; i++) {
        const struct phema_json *input = phema_json_at(inputs, i);
        if (is_dropped && time_of(input) > time_of(target))
            continue;
        struct phema_profile *snapshot = &golden->snapshots[golden->n];
        snapshot->t = time_of(input);
        assert_ok(phema_gamma_from_sigma_rel(&snapshot->gamma, number_of(input, "sigma"), &err),
                  &err);
        golden->times[golden->n] = (phema_quad)snapshot->t;
        golden->gammas[golden->n++] = phema_quad_from_text(string_of(input, "gamma"));
    }
    golden->target.t = time_of(target);
    assert_ok(phema_gamma_from_sigma_rel(&golden->target.gamma, number_of(target, "sigma"), &err),
              &err);
    golden->times[golden->n] = (phema_quad)golden->target.t;
    golden->gammas[golden->n] = phema_quad_from_text(string_of(target, "gamma"));
}

static void multiply_all(struct golden *golden)
{
    size_t n = golden->n;
    golden->white = calloc(n * n, sizeof(*golden->white));
    golden->walk = calloc(n * n, sizeof(*golden->walk));
    assert_true(golden->white && golden->walk);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            golden->white[i * n + j] = ordered(white_product, golden, i, j);
            golden->walk[i * n + j] = ordered(walk_product, golden, i, j);
        }
    }
    golden->white_target = ordered(white_product, golden, n, n);
    golden->walk_target = ordered(walk_product, golden, n, n);
}

static void free_case(struct golden *golden)
{
    free(golden->snapshots);
    free(golden->times);
    free(golden->gammas);
    free(golden->white);
    free(golden->walk);
}

/* |sum (w_i - golden_i) p_i| / |target| */
static double distance(const struct golden *golden, const phema_quad *matrix, phema_quad target,
                       const phema_quad *difference)
{
    phema_quad sum = 0;
    for (size_t i = 0; i < golden->n; i++) {
        phema_quad row = 0;
        for (size_t j = 0; j < i; j++)
            row += matrix[i * golden->n + j] * difference[j];
        sum += difference[i] * (2 * row + matrix[i * golden->n + i] * difference[i]);
    }
    return (double)phema_quad_sqrt(phema_quad_abs(sum / target));
}

/* The golden weights that remain when later inputs are dropped: those of the inputs used, in
 * order. */
static void compare_weights(const struct golden *golden, const char *key, const double *weights,
                            bool is_walk)
{
    const struct phema_json *wanted = phema_json_get(golden->json, key);
    const struct phema_json *inputs = phema_json_get(golden->json, "inputs");
    phema_quad *difference = calloc(golden->n, sizeof(*difference));
    assert_non_null(difference);
    double largest = 0;
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < phema_json_length(wanted); i++) {
        phema_quad value = phema_quad_from_text(phema_json_string(phema_json_at(wanted, i), NULL));
        if (at == golden->n || time_of(phema_json_at(inputs, i)) != golden->snapshots[at].t) {
            assert_true(value == 0);
            continue;
        }
        difference[at] = (phema_quad)weights[at] - value;
        largest = fmax(largest, fabs((double)value));
        worst = fmax(worst, fabs((double)difference[at++]));
    }
    assert_int_equal(at, golden->n);

    /* Each norm belongs to a metric. The weights of one metric are compared in the other norm as
     * well. There the digits of a float64 gamma and weight (1e-16) meet weights of 1e9
     * ("dense"). */
    double white = distance(golden, golden->white, golden->white_target, difference);
    double walk = distance(golden, golden->walk, golden->walk_target, difference);
    double white_limit = is_walk ? fmax(1e-10, 1e-18 * largest) : 1e-10;
    free(difference);
    if (!(white <= white_limit) || !(walk <= 1e-10))
        fail_msg("%s: %s are %.1e (white) and %.1e (walk) from the golden profile", golden->id, key,
                 white, walk);
    if (number_of(golden->json, "condition_number") < 1e9 && !(worst <= 1e-12 * largest))
        fail_msg("%s: %s differ by %.1e of the largest", golden->id, key, worst / largest);
}

static void solve_case(const struct golden *golden, struct phema_solution *solution,
                       enum phema_metric metric, bool keeps_sum)
{
    struct phema_error err = {0};
    struct phema_solve_options options = {.finds_condition = true,
                                          .metric = metric,
                                          .ridge = PHEMA_RIDGE_NONE,
                                          .keeps_sum = keeps_sum};
    assert_ok(solve_profiles(solution, golden->snapshots, NULL, golden->n, &golden->target, 1, 0,
                             &options, &err),
              &err);
}

/* The error of the printed digits, and that of weights stored as doubles: 1e-16 |w|_1 |p| /
 * |target|. */
static void compare_error(const struct golden *golden, const char *key, double got, double norm1)
{
    double wanted = number_of(golden->json, key);
    assert_near(got, wanted, 1e-11 * wanted + 1e-15 * (1 + norm1));
}

static void check_case(const struct golden *golden)
{
    struct phema_solution solution;
    solve_case(golden, &solution, PHEMA_METRIC_PROFILE, true);
    compare_weights(golden, "weights", solution.weights, false);
    compare_error(golden, "rel_profile_error", solution.profile_error, solution.norm1);
    assert_near(solution.sum, number_of(golden->json, "sum_of_weights"), 1e-15 * solution.norm1);
    double condition = number_of(golden->json, "condition_number"); /* 7 digits */
    assert_near(solution.condition, condition, 1e-6 * condition);
    phema_solutions_clear(&solution, 1);

    solve_case(golden, &solution, PHEMA_METRIC_PROFILE, false);
    compare_weights(golden, "weights_normalised", solution.weights, false);
    compare_error(golden, "rel_profile_error_normalised", solution.profile_error, solution.norm1);
    double norm1 = number_of(golden->json, "l1"); /* 10 digits */
    double norm2 = number_of(golden->json, "l2");
    assert_near(solution.norm1, norm1, 1e-9 * norm1);
    assert_near(solution.norm2, norm2, 1e-9 * norm2);
    phema_solutions_clear(&solution, 1);

    solve_case(golden, &solution, PHEMA_METRIC_WALK, false);
    compare_weights(golden, "weights_rw", solution.weights, true);
    compare_error(golden, "rel_rw_error", solution.walk_error, solution.norm1);
    /* weights rounded together: large ones add up to 1 more exactly than their own digits allow */
    assert_near(solution.sum, 1, 1e-15 * fmin(solution.norm1, 1e4));
    phema_solutions_clear(&solution, 1);
}

static struct phema_json *read_golden(void)
{
    char *path = support_fixture("golden/weights.json");
    size_t size = 0;
    uint8_t *text = support_read(path, &size);
    struct phema_json *document = NULL;
    struct phema_error err = {0};
    assert_ok(phema_json_parse(&document, (struct phema_span){text, size}, &err), &err);
    free(text);
    free(path);
    return document;
}

static void every_valid_case_is_met(void **state)
{
    (void)state;
    struct phema_json *document = read_golden();
    const struct phema_json *cases = phema_json_get(document, "cases");
    size_t n_checked = 0;
    for (size_t i = 0; i < phema_json_length(cases); i++) {
        const struct phema_json *json = phema_json_at(cases, i);
        if (phema_json_get(json, "expect_error"))
            continue;
        struct golden golden;
        read_case(&golden, json);
        multiply_all(&golden);
        check_case(&golden);
        free_case(&golden);
        n_checked++;
    }
    assert_int_equal(n_checked, 48);
    phema_json_free(document);
}

/* For each case that must fail: the golden file's text, and the program's status and message. */
static const struct refusal {
    const char *said;
    enum phema_status status;
    const char *part;
} refusals[] = {
    {"duplicate input", PHEMA_ERR_INPUTS, "are the same average"},
    {"sigma out of range", PHEMA_ERR_TARGET, "expected a sigma_rel above 0 and below 0.289"},
    {"target later than all inputs", PHEMA_ERR_TARGET, "is later than every snapshot"},
    {"no input at or before the target time", PHEMA_ERR_TARGET,
     "no snapshot at or before the target time"},
    {"no inputs", PHEMA_ERR_INPUTS, "no snapshots"},
    {"time must be positive", PHEMA_ERR_INPUTS, "the time must be positive"},
};

/* Like a caller: first the gammas, then the weights. */
static enum phema_status refuse_case(const struct phema_json *json, enum phema_metric metric,
                                     struct phema_error *err)
{
    const struct phema_json *inputs = phema_json_get(json, "inputs");
    const struct phema_json *json_target = phema_json_get(json, "target");
    struct phema_profile snapshots[16] = {{0}};
    const double rounding[16] = {2.4e-8, 2.4e-8, 2.4e-8}; /* with the default ridge */
    size_t n = phema_json_length(inputs);
    assert_true(n <= ARRAY_LEN(snapshots));
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; !status && i < n; i++) {
        const struct phema_json *input = phema_json_at(inputs, i);
        snapshots[i].t = time_of(input);
        status = phema_gamma_from_sigma_rel(&snapshots[i].gamma, number_of(input, "sigma"), err);
    }
    struct phema_profile target = {.t = time_of(json_target)};
    if (!status)
        status = phema_gamma_from_sigma_rel(&target.gamma, number_of(json_target, "sigma"), err);
    struct phema_solve_options options = {.metric = metric};
    struct phema_solution solution = {.norm1 = 17};
    if (!status)
        status = solve_profiles(&solution, snapshots, rounding, n, &target, 1, 0, &options, err);
    assert_true(solution.norm1 == 17); /* a failure does not touch it */
    return status;
}

static void every_invalid_case_is_refused(void **state)
{
    (void)state;
    struct phema_json *document = read_golden();
    const struct phema_json *cases = phema_json_get(document, "cases");
    size_t n_checked = 0;
    for (size_t i = 0; i < phema_json_length(cases); i++) {
        const struct phema_json *json = phema_json_at(cases, i);
        if (!phema_json_get(json, "expect_error"))
            continue;
        const char *said = string_of(json, "expect_error");
        size_t k = 0;
        while (k < ARRAY_LEN(refusals) && strcmp(refusals[k].said, said) != 0)
            k++;
        assert_true(k < ARRAY_LEN(refusals));
        bool is_target = strcmp(string_of(json, "id"), "bad-target-time-zero") == 0;
        enum phema_status wanted = is_target ? PHEMA_ERR_TARGET : refusals[k].status;
        struct phema_error err = {0};
        assert_fails(refuse_case(json, PHEMA_METRIC_PROFILE, &err), wanted, &err, refusals[k].part);
        assert_fails(refuse_case(json, PHEMA_METRIC_WALK, &err), wanted, &err, refusals[k].part);
        n_checked++;
    }
    assert_int_equal(n_checked, 12);
    phema_json_free(document);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_valid_case_is_met),
    cmocka_unit_test(every_invalid_case_is_refused),
};
TEST_GROUP(tests)
