// SPDX-License-Identifier: Apache-2.0
/* Which targets share a matrix of weights, and which of them a row of sums: plans made of numbers
 * alone. */
#include "target_groups.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { N = 3, M = 4, N_RULES = 2 };

/* Two widths at each of two times; the first rule draws on the last snapshot alone at the later
 * time, the second one on those that the targets draw on. */
struct draft {
    struct phema_plan plan;
    struct phema_series series;
    struct phema_target targets[M];
    struct phema_solution ruled[2][N_RULES];
    double weights[M][N], ruled_weights[2][N_RULES][N];
};

static void set(struct phema_solution *solution, double *into, double a, double b, double c)
{
    into[0] = a;
    into[1] = b;
    into[2] = c;
    *solution = (struct phema_solution){.weights = into, .sum = a + b + c};
}

static void draft_init(struct draft *draft)
{
    *draft = (struct draft){.series = {.n = N}};
    draft->plan = (struct phema_plan){
        .series = &draft->series, .targets = draft->targets, .m = M, .n_rules = N_RULES};
    set(&draft->targets[0].solution, draft->weights[0], 0.25, 0.75, 0);
    set(&draft->targets[1].solution, draft->weights[1], 0.5, 0.5, 0);
    set(&draft->targets[2].solution, draft->weights[2], 0.25, 0.25, 0.5);
    set(&draft->targets[3].solution, draft->weights[3], 0.5, 0.25, 0.25);
    set(&draft->ruled[0][0], draft->ruled_weights[0][0], 0.125, 0.875, 0);
    set(&draft->ruled[1][0], draft->ruled_weights[1][0], 0, 0, 1);
    set(&draft->ruled[0][1], draft->ruled_weights[0][1], 0.375, 0.625, 0);
    set(&draft->ruled[1][1], draft->ruled_weights[1][1], 0.5, 0.5, 0);
    for (size_t j = 0; j < M; j++) {
        draft->targets[j].newest = j < 2 ? 1 : 2;
        draft->targets[j].ruled = draft->ruled[j / 2];
    }
}

static void make(struct group **groups, size_t *n, const struct draft *draft, size_t rule,
                 size_t first, size_t n_targets)
{
    struct phema_error err = {""};
    assert_ok(
        target_groups_make(groups, n, &draft->plan, PHEMA_SUMS_F64, rule, first, n_targets, &err),
        &err);
}

static void assert_weights(const struct group *group, const double *weights, size_t n)
{
    assert_int_equal(group->n_inputs * group->n_rows, n);
    assert_memory_equal(group->weights, weights, n * sizeof(*weights));
}

static void targets_of_one_time_have_rows_of_their_own(void **state)
{
    (void)state;
    struct draft draft;
    struct group *groups = NULL;
    size_t n = 0;
    draft_init(&draft);
    make(&groups, &n, &draft, 0, 0, M);
    assert_int_equal(n, 2);
    for (size_t g = 0; g < n; g++) {
        assert_int_equal(groups[g].n_targets, 2);
        assert_int_equal(groups[g].n_rows, 2);
        for (size_t x = 0; x < 2; x++) {
            assert_int_equal(groups[g].targets[x], 2 * g + x);
            assert_int_equal(groups[g].rows[x], x);
        }
    }
    assert_weights(&groups[0], (const double[]){0.25, 0.5, 0.75, 0.5}, 4);
    assert_weights(&groups[1], (const double[]){0.25, 0.5, 0.25, 0.25, 0.5, 0.25}, 6);
    target_groups_free(groups, n);
}

static void targets_of_one_time_share_the_row_of_a_rule(void **state)
{
    (void)state;
    struct draft draft;
    struct group *groups = NULL;
    size_t n = 0, n_used = 0, n_newest = 0;
    struct phema_error err = {""};
    draft_init(&draft);
    make(&groups, &n, &draft, 1, 0, M);
    assert_int_equal(n, 2);
    for (size_t g = 0; g < n; g++) {
        assert_int_equal(groups[g].n_targets, 2);
        assert_int_equal(groups[g].n_rows, 1);
        assert_int_equal(groups[g].rows[0], 0);
        assert_int_equal(groups[g].rows[1], 0);
    }
    assert_weights(&groups[0], (const double[]){0.125, 0.875}, 2);
    assert_weights(&groups[1], (const double[]){1}, 1); /* 0 is never multiplied by */
    assert_int_equal(groups[1].inputs[0], 2);
    struct target_groups_needs needs = target_groups_count(groups, n, true, false);
    assert_int_equal(needs.n_rows, 2);
    assert_int_equal(needs.n_references, 2);
    assert_int_equal(needs.sum_bytes, 2 * sizeof(double));
    assert_ok(target_groups_count_inputs(&n_used, &n_newest, groups, n, N, &err), &err);
    assert_int_equal(n_used, 3);
    assert_int_equal(n_newest, 2);
    target_groups_free(groups, n);
}

/* The same snapshots, but copies come from another one. */
static void a_pass_has_its_own_targets_alone(void **state)
{
    (void)state;
    struct draft draft;
    struct group *groups = NULL;
    size_t n = 0;
    draft_init(&draft);
    make(&groups, &n, &draft, 2, 0, M);
    assert_int_equal(n, 2);
    target_groups_free(groups, n);

    draft.targets[2].newest = draft.targets[3].newest = 1;
    make(&groups, &n, &draft, 2, 0, M);
    assert_int_equal(n, 1);
    assert_int_equal(groups[0].n_rows, 2); /* one for each time */
    static const size_t rows[] = {0, 0, 1, 1};
    assert_memory_equal(groups[0].rows, rows, sizeof(rows));
    assert_weights(&groups[0], (const double[]){0.375, 0.5, 0.625, 0.5}, 4);
    target_groups_free(groups, n);

    make(&groups, &n, &draft, 2, 1, 2);
    assert_int_equal(n, 1);
    assert_int_equal(groups[0].targets[0], 1);
    assert_int_equal(groups[0].targets[1], 2);
    assert_int_equal(groups[0].n_rows, 2);
    target_groups_free(groups, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_of_one_time_have_rows_of_their_own),
        cmocka_unit_test(targets_of_one_time_share_the_row_of_a_rule),
        cmocka_unit_test(a_pass_has_its_own_targets_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
