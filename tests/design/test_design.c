// SPDX-License-Identifier: Apache-2.0
/* test_design.c - designs keep to the disk and to the wanted times, and no usual choice and no grid
 * of widths and times is better. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/design.h"

#define N_TARGETS 8

static const enum phema_dtype dtypes[] = {PHEMA_F16, PHEMA_F32};

struct asked {
    struct phema_profile targets[N_TARGETS];
    double ends[3];
    struct phema_design_question question;
};

/* Widths from lowest to highest, models of 1000 numbers, a disk of so many in 16 bits. */
static void ask(struct asked *asked, double lowest, double highest, uint64_t n_halves)
{
    struct phema_error err = {0};
    *asked = (struct asked){.ends = {20000, 50000, 100000}};
    for (size_t i = 0; i < N_TARGETS; i++)
        assert_ok(phema_gamma_from_sigma_rel(
                      &asked->targets[i].gamma,
                      lowest * pow(highest / lowest, (double)i / (N_TARGETS - 1)), &err),
                  &err);
    asked->question = (struct phema_design_question){.until = 100000,
                                                     .model_elems = 1000,
                                                     .targets = asked->targets,
                                                     .n_targets = N_TARGETS,
                                                     .ends = asked->ends + 2,
                                                     .n_ends = 1,
                                                     .disk_bytes = 2000 * n_halves,
                                                     .least_widths = 1,
                                                     .most_widths = 3,
                                                     .dtypes = dtypes,
                                                     .n_dtypes = 2};
}

static void check_times(const struct phema_design *design,
                        const struct phema_design_question *question)
{
    size_t n_found = 0;
    for (size_t i = 0; i < design->n_times; i++) {
        assert_true(design->times[i] > (i ? design->times[i - 1] : question->begun));
        assert_true(design->times[i] == floor(design->times[i]));
        for (size_t e = 0; e < question->n_ends; e++)
            n_found += design->times[i] == question->ends[e];
    }
    assert_int_equal(n_found, question->n_ends);
    assert_true(design->times[design->n_times - 1] == question->until);
    uint64_t bytes = phema_design_bytes(design->widths, design->n_widths, question);
    assert_int_equal(design->disk_bytes, bytes * (design->n_times + question->n_useless));
    assert_true(design->disk_bytes <= question->disk_bytes);
}

static void choices_keep_to_disk_and_times(void **state)
{
    (void)state;
    static const uint64_t disks[] = {3, 7, 40, 400};
    for (size_t d = 0; d < ARRAY_LEN(disks); d++)
        for (size_t n_ends = 1; n_ends <= 3; n_ends += 2) {
            struct asked asked;
            struct phema_error err = {0};
            struct phema_design_choices choices;
            ask(&asked, 0.03, 0.2, disks[d]);
            asked.question.ends = asked.ends + 3 - n_ends;
            asked.question.n_ends = n_ends;
            assert_ok(phema_design_choose(&choices, &asked.question, &err), &err);
            assert_true(choices.n > 0);
            assert_int_equal(choices.chosen, choices.n - 1);
            for (size_t i = 0; i < choices.n; i++) {
                const struct phema_design *item = &choices.items[i];
                check_times(item, &asked.question);
                if (i) {
                    assert_true(item->worst_error < item[-1].worst_error);
                    assert_true(item->disk_bytes > item[-1].disk_bytes);
                }
            }
            phema_design_choices_clear(&choices);
        }
}

static void no_usual_choice_is_better(void **state)
{
    (void)state;
    static const double usual[][2] = {{0.05, 0.10}, {0.05, 0.28}};
    static const double ranges[][2] = {{0.02, 0.25}, {0.05, 0.10}, {0.1, 0.28}, {0.01, 0.02}};
    static const uint64_t disks[] = {8, 32, 128};
    for (size_t r = 0; r < ARRAY_LEN(ranges); r++)
        for (size_t d = 0; d < ARRAY_LEN(disks); d++)
            for (size_t u = 0; u < ARRAY_LEN(usual); u++)
                for (int moving = 0; moving < (d == 1 ? PHEMA_N_MOVING : 1); moving++) {
                    struct asked asked;
                    struct phema_error err = {0};
                    struct phema_design found, theirs;
                    struct phema_design_width widths[2];
                    ask(&asked, ranges[r][0], ranges[r][1], disks[d]);
                    asked.question.motion.moving = (enum phema_design_moving)moving;
                    for (size_t k = 0; k < 2; k++)
                        assert_ok(phema_design_width_make(&widths[k], usual[u][k], PHEMA_F16,
                                                          &asked.question, &err),
                                  &err);
                    assert_ok(phema_design_find(&found, &asked.question, &err), &err);
                    assert_ok(phema_design_make_even(&theirs, widths, 2, &asked.question, &err),
                              &err);
                    assert_true(found.worst_error <= theirs.worst_error);
                    phema_design_clear(&found);
                    phema_design_clear(&theirs);
                }
}

static void even_times_are_multiples_of_one_interval(void **state)
{
    (void)state;
    struct asked asked;
    struct phema_error err = {0};
    struct phema_design design;
    ask(&asked, 0.03, 0.2, 64);
    asked.question.spacing = PHEMA_SPACING_EVEN;
    asked.question.ends = asked.ends;
    asked.question.n_ends = 3;
    assert_ok(phema_design_find(&design, &asked.question, &err), &err);
    check_times(&design, &asked.question);
    for (size_t i = 0; i < design.n_times; i++)
        assert_near(design.times[i], design.times[0] * (double)(i + 1), 0);
    phema_design_clear(&design);
    asked.ends[2] = asked.question.until = 99991; /* a prime */
    assert_fails(phema_design_find(&design, &asked.question, &err), PHEMA_ERR_TARGET, &err,
                 "no interval between snapshots divides all wanted times");
}

static void a_disk_that_is_too_small_is_refused(void **state)
{
    (void)state;
    struct asked asked;
    struct phema_error err = {0};
    struct phema_design_choices choices;
    ask(&asked, 0.03, 0.2, 2);
    asked.question.ends = asked.ends;
    asked.question.n_ends = 3;
    assert_fails(phema_design_choose(&choices, &asked.question, &err), PHEMA_ERR_TARGET, &err,
                 "does not hold a snapshot at each of 3 times, which take 5.86 KiB");
    asked.question.disk_bytes = 6000;
    assert_ok(phema_design_choose(&choices, &asked.question, &err), &err);
    assert_int_equal(choices.items[choices.chosen].n_times, 3);
    phema_design_choices_clear(&choices);
}

/* The search has a budget: what it leaves out must not cost times that are wanted. */
static void many_ends_each_have_their_snapshot(void **state)
{
    (void)state;
    static double ends[PHEMA_DESIGN_MAX_ENDS];
    struct asked asked;
    struct phema_error err = {0};
    struct phema_design design;
    ask(&asked, 0.03, 0.2, 4000);
    for (size_t e = 0; e < ARRAY_LEN(ends); e++)
        ends[e] = e + 1 < ARRAY_LEN(ends) ? 389 * (double)(e + 1) : 100000;
    asked.question.ends = ends;
    asked.question.n_ends = ARRAY_LEN(ends);
    assert_ok(phema_design_find(&design, &asked.question, &err), &err);
    check_times(&design, &asked.question);
    assert_true(design.worst_error < 1e-4); /* 5e-5: one width at 512 times, in f32 */
    phema_design_clear(&design);
}

/* What a trainer stores besides takes disk: the state of an optimizer, snapshots before the first
 * step. */
static void other_bytes_take_disk(void **state)
{
    (void)state;
    struct asked asked;
    struct phema_error err = {0};
    struct phema_design design;
    ask(&asked, 0.03, 0.2, 40);
    asked.question.other_bytes = 8000;
    asked.question.n_useless = 1;
    asked.question.width_unit = 0.01;
    assert_ok(phema_design_find(&design, &asked.question, &err), &err);
    check_times(&design, &asked.question);
    assert_true(design.disk_bytes <= 80000);
    assert_true(design.disk_bytes >= 8000 * (design.n_times + 1));
    for (size_t k = 0; k < design.n_widths; k++)
        assert_near(100 * design.widths[k].sigma_rel, round(100 * design.widths[k].sigma_rel),
                    1e-9);
    phema_design_clear(&design);
    asked.question.disk_bytes = 19999; /* two times of a width in f16 take 20000 */
    assert_int_equal(phema_design_find(&design, &asked.question, &err), PHEMA_ERR_TARGET);
    assert_non_null(strstr(err.message, "2 times"));
}

static void the_least_disk_within_an_error_is_chosen(void **state)
{
    (void)state;
    struct asked asked;
    struct phema_error err = {0};
    struct phema_design_choices choices;
    ask(&asked, 0.03, 0.2, 400);
    asked.question.max_error = 1e-3;
    assert_ok(phema_design_choose(&choices, &asked.question, &err), &err);
    assert_true(choices.items[choices.chosen].worst_error <= 1e-3);
    assert_true(choices.items[choices.chosen].disk_bytes < asked.question.disk_bytes / 4);
    phema_design_choices_clear(&choices);
    asked.question.max_error = 1e-12;
    assert_fails(phema_design_choose(&choices, &asked.question, &err), PHEMA_NO, &err,
                 "above 1e-12");
    phema_design_choices_clear(&choices);
}

/* All pairs of nine widths at all choices of three times of twelve, and the end. */
static double search_a_grid(const struct phema_design_question *question)
{
    struct phema_error err = {0};
    double best = HUGE_VAL, times[4], step = question->until / 12;
    struct phema_design design = {.n_widths = 2, .times = times, .n_times = 4};
    times[3] = question->until;
    for (size_t a = 0; a < 9; a++)
        for (size_t b = a + 1; b < 9; b++) {
            for (size_t k = 0; k < 2; k++)
                assert_ok(phema_design_width_make(&design.widths[k],
                                                  0.02 * pow(14, (double)(k ? b : a) / 8),
                                                  PHEMA_F16, question, &err),
                          &err);
            for (int i = 1; i < 12; i++)
                for (int j = i + 1; j < 12; j++)
                    for (int k = j + 1; k < 12; k++) {
                        times[0] = round(i * step);
                        times[1] = round(j * step);
                        times[2] = round(k * step);
                        assert_ok(phema_design_rate(&design, NULL, question, &err), &err);
                        best = fmin(best, design.worst_error);
                    }
        }
    return best;
}

static void no_grid_is_better(void **state)
{
    (void)state;
    static const double ranges[][2] = {{0.03, 0.2}, {0.05, 0.1}, {0.1, 0.28}};
    for (size_t r = 0; r < ARRAY_LEN(ranges); r++)
        for (int moving = 0; moving < PHEMA_N_MOVING; moving++) {
            struct asked asked;
            struct phema_error err = {0};
            struct phema_design design;
            ask(&asked, ranges[r][0], ranges[r][1], 8);
            asked.question.motion.moving = (enum phema_design_moving)moving;
            asked.question.n_dtypes = 1;
            assert_ok(phema_design_find(&design, &asked.question, &err), &err);
            assert_true(design.worst_error <= 1.1 * search_a_grid(&asked.question));
            phema_design_clear(&design);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(choices_keep_to_disk_and_times),
    cmocka_unit_test(no_usual_choice_is_better),
    cmocka_unit_test(even_times_are_multiples_of_one_interval),
    cmocka_unit_test(a_disk_that_is_too_small_is_refused),
    cmocka_unit_test(many_ends_each_have_their_snapshot),
    cmocka_unit_test(other_bytes_take_disk),
    cmocka_unit_test(the_least_disk_within_an_error_is_chosen),
    cmocka_unit_test(no_grid_is_better),
};
TEST_GROUP(tests)
