// SPDX-License-Identifier: Apache-2.0
/* test_journal.c - scores.csv: written line by line, truncated anywhere, read back. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/search.h"

static const struct phema_journal_header header = {
    .command = "./e.sh {}\n\"x\"", .options = "run", .snapshots = "00ff"};

static enum phema_status open_journal(struct phema_journal **out, bool *was_cut, const char *path,
                                      struct phema_error *err)
{
    *out = NULL;
    return phema_journal_open(out, was_cut, path, &header, false, err);
}

static void fill(const char *path)
{
    struct phema_journal *journal = NULL;
    struct phema_error err = {0};
    bool was_cut = true;
    assert_ok(open_journal(&journal, &was_cut, path, &err), &err);
    assert_false(was_cut);
    const struct phema_search_score scores[] = {
        {{0.1, 4096}, 2.5, 1e-3, 1.25},
        {{0.12345, 12.5}, (double)NAN, PHEMA_UNKNOWN, 0},
        {{0.2, 4096}, -HUGE_VAL, 0.5, 3},
        {{0.1, 4096}, 2.75, 1e-3, 1.5}, /* the same point again */
        {{PHEMA_SEARCH_NEWEST, 4096}, 7, 1e-8, 2},
    };
    assert_ok(phema_journal_add_made(journal, scores[0].at, "a \"b\".pt", &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(scores); i++)
        assert_ok(phema_journal_add(journal, &scores[i], &err), &err);
    assert_ok(phema_journal_add_made(journal, scores[1].at, "c", &err), &err);
    phema_journal_close(journal);
}

static void written_scores_are_read_back(void **state)
{
    (void)state;
    char *path = support_tmp_path("scores.csv");
    (void)unlink(path);
    fill(path);
    struct phema_journal *journal = NULL;
    struct phema_error err = {0};
    bool was_cut = true;
    assert_ok(open_journal(&journal, &was_cut, path, &err), &err);
    assert_false(was_cut);
    size_t n = 0, n_made = 0;
    const struct phema_search_score *scores = phema_journal_scores(journal, &n);
    assert_int_equal(n, 4);
    assert_true(phema_search_is_newest(scores[3].at) && scores[3].score == 7);
    assert_true(scores[0].score == 2.75 && scores[0].at.sigma_rel == 0.1); /* the last one */
    assert_true(isnan(scores[1].score) && scores[1].at.time == 12.5);
    assert_true(isnan(scores[1].predicted_error));
    assert_true(scores[2].score == -HUGE_VAL && scores[2].seconds == 3);
    const struct phema_search_made *made = phema_journal_made(journal, &n_made);
    assert_int_equal(n_made, 2);
    assert_string_equal(made[0].name, "a \"b\".pt");
    assert_true(made[1].at.sigma_rel == 0.12345);
    assert_true(phema_journal_has_made(journal, "c"));
    assert_false(phema_journal_has_made(journal, "a"));
    assert_ok(phema_journal_remove_made(journal, "a \"b\".pt", &err), &err);
    phema_journal_close(journal);
    for (int begins_anew = 0; begins_anew < 2; begins_anew++) { /* it stays removed */
        assert_ok(phema_journal_open(&journal, &was_cut, path, &header, begins_anew, &err), &err);
        made = phema_journal_made(journal, &n_made);
        assert_int_equal(n_made, 1);
        assert_string_equal(made[0].name, "c");
        phema_journal_close(journal);
    }
    free(path);
}

/* After a kill at any byte, exactly the complete lines are recovered. */
static void a_journal_truncated_anywhere_is_recovered(void **state)
{
    (void)state;
    char *path = support_tmp_path("cut.csv");
    (void)unlink(path);
    fill(path);
    size_t size = 0;
    uint8_t *bytes = support_read(path, &size);
    size_t header_size = (size_t)(strstr((char *)bytes, "\n# made") - (char *)bytes) + 1;
    for (size_t cut = 0; cut <= size; cut++) {
        support_write(path, bytes, cut);
        struct phema_journal *journal = NULL;
        struct phema_error err = {0};
        bool was_cut = false;
        assert_ok(open_journal(&journal, &was_cut, path, &err), &err);
        bool is_whole = cut <= header_size || bytes[cut - 1] == '\n';
        assert_int_equal(was_cut, !is_whole);
        size_t n = 0, n_lines = 0;
        (void)phema_journal_scores(journal, &n);
        for (size_t i = header_size; i < cut; i++)
            n_lines += bytes[i] == '\n';
        /* lines: made, three scores, one of them again, newest, made */
        static const size_t n_scores[] = {0, 0, 1, 2, 3, 3, 4, 4};
        assert_int_equal(n, n_scores[n_lines]);
        const struct phema_search_score more = {{0.25, 1}, 9, 0, 0};
        assert_ok(phema_journal_add(journal, &more, &err), &err);
        phema_journal_close(journal);
        journal = NULL;
        assert_ok(open_journal(&journal, &was_cut, path, &err), &err);
        assert_false(was_cut); /* nothing is appended to the truncated line */
        size_t n_after = 0;
        const struct phema_search_score *scores = phema_journal_scores(journal, &n_after);
        assert_int_equal(n_after, n + 1);
        assert_true(scores[n].score == 9);
        phema_journal_close(journal);
    }
    free(bytes);
    free(path);
}

static void lambdas_have_any_sign(void **state)
{
    (void)state;
    char *path = support_tmp_path("lambdas.csv");
    (void)unlink(path);
    const struct phema_journal_header line = {"f {}", "--line raw,sma:2", "11", true};
    static const struct phema_search_score scores[] = {
        {{-0.5, 9}, 1, 0, 0}, {{0, 9}, 2, 0, 0}, {{PHEMA_SEARCH_NEWEST, 9}, 3, 0, 0}};
    for (int is_again = 0; is_again < 2; is_again++) {
        struct phema_journal *journal = NULL;
        struct phema_error err = {0};
        bool was_cut = false;
        size_t n = 0, n_made = 0;
        assert_ok(phema_journal_open(&journal, &was_cut, path, &line, false, &err), &err);
        for (size_t i = 0; i < ARRAY_LEN(scores) && !is_again; i++) {
            char name[] = {(char)('a' + i), '\0'};
            assert_ok(phema_journal_add_made(journal, scores[i].at, name, &err), &err);
            assert_ok(phema_journal_add(journal, &scores[i], &err), &err);
        }
        const struct phema_search_score *found = phema_journal_scores(journal, &n);
        const struct phema_search_made *made = phema_journal_made(journal, &n_made);
        assert_true(n == ARRAY_LEN(scores) && n_made == n);
        for (size_t i = 0; i < n; i++) {
            assert_true(phema_search_point_equals(found[i].at, scores[i].at));
            assert_true(phema_search_point_equals(made[i].at, scores[i].at));
        }
        phema_journal_close(journal);
    }
    free(path);
}

static void another_search_is_refused(void **state)
{
    (void)state;
    char *path = support_tmp_path("other.csv");
    (void)unlink(path);
    fill(path);
    const struct {
        struct phema_journal_header header;
        const char *part;
    } cases[] = {
        {{"./f.sh {}", header.options, header.snapshots, false}, "another --exec"},
        {{header.command, "run --every 2", header.snapshots, false}, "with other options"},
        {{header.command, header.options, "00fe", false}, "of other snapshots"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct phema_journal *journal = NULL;
        struct phema_error err = {0};
        bool was_cut = false;
        assert_fails(phema_journal_open(&journal, &was_cut, path, &cases[i].header, false, &err),
                     PHEMA_ERR_INPUTS, &err, cases[i].part);
        assert_null(journal);
    }
    free(path);
}

static void a_restarted_journal_keeps_the_candidates_made(void **state)
{
    (void)state;
    char *path = support_tmp_path("anew.csv");
    (void)unlink(path);
    fill(path);
    const struct phema_journal_header other = {"f {}", "run", "11", false};
    struct phema_journal *journal = NULL;
    struct phema_error err = {0};
    bool was_cut = false;
    for (int i = 0; i < 2; i++) {
        assert_ok(phema_journal_open(&journal, &was_cut, path, &other, i == 0, &err), &err);
        size_t n = 9, n_made = 0;
        (void)phema_journal_scores(journal, &n);
        (void)phema_journal_made(journal, &n_made);
        assert_int_equal(n, 0);
        assert_int_equal(n_made, 2);
        phema_journal_close(journal);
        journal = NULL;
    }
    free(path);
}

static void a_second_writer_is_refused(void **state)
{
    (void)state;
    char *path = support_tmp_path("locked.csv");
    (void)unlink(path);
    struct phema_journal *first = NULL, *second = NULL;
    struct phema_error err = {0};
    bool was_cut = false;
    assert_ok(open_journal(&first, &was_cut, path, &err), &err);
    assert_fails(open_journal(&second, &was_cut, path, &err), PHEMA_ERR_OUTPUT, &err,
                 "another search is writing it");
    phema_journal_close(first);
    assert_ok(open_journal(&second, &was_cut, path, &err), &err);
    phema_journal_close(second);
    free(path);
}

/* HEAD is replaced by the header. */
static void an_invalid_line_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"sigma_rel,score\n0.1,2\n", "line 1: expected '# posthoc-ema search 1'"},
        {"HEAD0.1,2\n", "line 6: expected sigma_rel,time,score,seconds,predicted_error"},
        {"HEAD0.1,2,3,4,5,6\n", "line 6"},
        {"HEAD0.1,2,3\nx\n", "line 7"},
        {"HEADnan,2,3\n", "line 6"},
        {"HEAD0,2,3\n", "line 6"},
        {"HEAD-0.1,2,3\n", "line 6"},
        {"HEADnewes,2,3\n", "line 6"},
        {"HEAD0x1,2,3\n", "found '0x1,2,3'"},
        {"HEAD# made [0.1, 2, \"../x\"]\n", "line 6: expected [sigma_rel, time, \"name"},
        {"HEAD# made [0.1, 2, \"..\"]\n", "line 6"},
        {"HEAD# made [0.1, 2, \"\"]\n", "line 6"},
        {"HEAD# made [0.1, 2, \"a\\u0000b\"]\n", "line 6"},
        {"HEAD# made [0.1, 2]\n", "line 6"},
        {"HEAD# made {\n", "line 6"},
    };
    char *path = support_tmp_path("none.csv");
    (void)unlink(path);
    struct phema_journal *journal = NULL;
    struct phema_error err = {0};
    bool was_cut = false;
    assert_ok(open_journal(&journal, &was_cut, path, &err), &err);
    phema_journal_close(journal);
    size_t head_size = 0;
    uint8_t *head = support_read(path, &head_size);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool has_head = strncmp(cases[i].text, "HEAD", 4) == 0;
        const char *rest = cases[i].text + (has_head ? 4 : 0);
        char text[1024];
        memcpy(text, head, head_size);
        size_t size = has_head ? head_size : 0;
        memcpy(text + size, rest, strlen(rest));
        support_write(path, text, size + strlen(rest));
        assert_fails(open_journal(&journal, &was_cut, path, &err),
                     has_head ? PHEMA_ERR_FILE : PHEMA_ERR_OUTPUT, &err, cases[i].part);
    }
    /* additions by hand: blank lines, comments, scores without the optional columns */
    support_write(path, head, head_size);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    (void)fputs("\n# mine\r\n0.1,2,3\r\n", file);
    assert_int_equal(fclose(file), 0);
    assert_ok(open_journal(&journal, &was_cut, path, &err), &err);
    size_t n = 0;
    assert_true(phema_journal_scores(journal, &n)[0].score == 3);
    assert_int_equal(n, 1);
    phema_journal_close(journal);
    free(head);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(written_scores_are_read_back),
    cmocka_unit_test(a_journal_truncated_anywhere_is_recovered),
    cmocka_unit_test(lambdas_have_any_sign),
    cmocka_unit_test(another_search_is_refused),
    cmocka_unit_test(a_restarted_journal_keeps_the_candidates_made),
    cmocka_unit_test(a_second_writer_is_refused),
    cmocka_unit_test(an_invalid_line_is_named),
};
TEST_GROUP(tests)
