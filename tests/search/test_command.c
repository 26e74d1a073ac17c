// SPDX-License-Identifier: Apache-2.0
/* test_command.c - running commands, and finding the score in their output. */
#include "support.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phema/search.h"

static enum phema_status run(struct phema_command_result *out, const char *script, double timeout_s,
                             struct phema_error *err)
{
    char copy[4096];
    (void)snprintf(copy, sizeof(copy), "%s", script);
    char sh[] = "sh", c[] = "-c";
    char *words[] = {sh, c, copy, NULL};
    const struct phema_command_options options = {.timeout_s = timeout_s};
    return phema_command_run(out, words, &options, err);
}

static void output_and_errors_are_separate(void **state)
{
    (void)state;
    struct phema_command_result result;
    struct phema_error err = {0};
    assert_ok(run(&result, "echo one; echo two >&2; cat", 0, &err),
              &err); /* standard input is empty */
    assert_string_equal(result.output.data, "one\n");
    assert_string_equal(result.errors.data, "two\n");
    phema_command_clear(&result);
}

static void a_failure_has_its_status_and_last_line(void **state)
{
    (void)state;
    static const struct {
        const char *script, *part;
    } cases[] = {
        {"echo a; echo b >&2; echo c >&2; exit 3", "ended with status 3: c"},
        {"echo a; echo b; exit 1", "ended with status 1: b"},
        {"exit 5", "ended with status 5, and printed nothing"},
        {"echo x >&2; kill -9 $$", "was ended by signal 9 (Killed): x"},
        {"printf 'a\\033[31m\\n\\n' >&2; exit 1", "ended with status 1: a\x1b[31m"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct phema_command_result result;
        struct phema_error err = {0};
        assert_fails(run(&result, cases[i].script, 0, &err), PHEMA_ERR_COMMAND, &err,
                     cases[i].part);
        phema_command_clear(&result);
    }
}

static void a_missing_program_is_reported(void **state)
{
    (void)state;
    char name[] = "/nowhere/program";
    char *words[] = {name, NULL};
    const struct phema_command_options options = {0};
    struct phema_command_result result;
    struct phema_error err = {0};
    assert_fails(phema_command_run(&result, words, &options, &err), PHEMA_ERR_COMMAND, &err,
                 "cannot be run: No such file or directory");
    phema_command_clear(&result);
}

/* A command may print gigabytes before its score. */
static void only_the_end_of_long_output_is_kept(void **state)
{
    (void)state;
    struct phema_command_result result;
    struct phema_error err = {0};
    assert_ok(run(&result, "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo 4.5", 0, &err),
              &err);
    assert_true(result.output.size <= 2 * PHEMA_COMMAND_KEPT_BYTES + 65536);
    double score = 0;
    assert_ok(phema_command_score(&score, &result.output, NULL, &err), &err);
    assert_near(score, 4.5, 0);
    phema_command_clear(&result);
}

static void background_processes_are_not_waited_for(void **state)
{
    (void)state;
    struct phema_command_result result;
    struct phema_error err = {0};
    assert_ok(run(&result, "sleep 600 & echo $!; echo 2", 0, &err), &err);
    assert_true(result.elapsed_s < 300);
    /* they outlive the command, and no child process is left */
    char path[64], line[256] = "";
    long pid = strtol(result.output.data, NULL, 10);
    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    (void)fclose(file);
    assert_null(strstr(line, ") Z"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    (void)kill((pid_t)pid, SIGKILL);
    phema_command_clear(&result);
}

static void a_slow_command_is_ended(void **state)
{
    (void)state;
    struct phema_command_result result;
    struct phema_error err = {0};
    /* On a slow machine a command may be ended before it begins. */
    for (double limit_s = 0.2; limit_s < 300; limit_s *= 4) {
        char wanted[80];
        (void)snprintf(wanted, sizeof(wanted), "took longer than %.12g s, and was ended", limit_s);
        assert_fails(run(&result, "echo begun >&2; sleep 600", limit_s, &err), PHEMA_ERR_COMMAND,
                     &err, wanted);
        assert_true(result.elapsed_s < limit_s + 300);
        phema_command_clear(&result);
        if (strstr(err.message, ", and was ended: begun"))
            return;
    }
    fail();
}

/* ---- Scores ---- */

static enum phema_status score_of(double *out, const char *text, const char *expression,
                                  struct phema_error *err)
{
    struct phema_strbuf output = {0};
    struct phema_regex *pattern = NULL;
    enum phema_status status = PHEMA_OK;
    if (expression)
        status = phema_regex_compile(&pattern, expression, err);
    phema_strbuf_puts(&output, text);
    if (!status)
        status = phema_command_score(out, &output, pattern, err);
    phema_strbuf_clear(&output);
    phema_regex_free(pattern);
    return status;
}

static void the_score_is_in_the_last_line_or_matches_the_pattern(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expression;
        double score;
    } cases[] = {
        {"2.5", NULL, 2.5},
        {"loss 7\n -1e-3 \r\n\n", NULL, -1e-3},
        {"10%\r100%\r3\n", NULL, 3},
        {"+inf\n", NULL, HUGE_VAL},
        {"fid 3.5 is 2\nfid 2.5 is 3\nbye\n", "fid ([0-9.]+)", 2.5},
        {"a=1 b=2\n", "a=(\\d+) b=(?<score>\\d+)", 2},
        {"x 12\ny\n", "[0-9]+", 12},
        {"acc 0.5\nacc nan", "acc (\\S+)$", (double)NAN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double score = 0;
        struct phema_error err = {0};
        assert_ok(score_of(&score, cases[i].text, cases[i].expression, &err), &err);
        if (isnan(cases[i].score))
            assert_true(isnan(score));
        else
            assert_true(score == cases[i].score);
    }
}

static void an_invalid_score_is_reported(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expression, *part;
    } cases[] = {
        {"", NULL, "printed nothing"},
        {" \n\r\n", NULL, "printed nothing"},
        {"3\ndone\n", NULL, "in the last line of its output, found 'done'; --score-regex"},
        {"0x10", NULL, "found '0x10'"},
        {"1 2", NULL, "found '1 2'"},
        {"1e101", NULL, "expected a score of at most 1e+100, found 1e101"},
        {"fid: 2", "is: (.*)", "no line of its output matches --score-regex"},
        {"fid: two", "fid: (.*)", "expected a number where --score-regex matches, found 'two'"},
        {"\x1b]0;x\x07", NULL, "found '\\x1b]0;x\\x07'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double score = 0;
        struct phema_error err = {0};
        assert_fails(score_of(&score, cases[i].text, cases[i].expression, &err), PHEMA_ERR_COMMAND,
                     &err, cases[i].part);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(output_and_errors_are_separate),
    cmocka_unit_test(a_failure_has_its_status_and_last_line),
    cmocka_unit_test(a_missing_program_is_reported),
    cmocka_unit_test(only_the_end_of_long_output_is_kept),
    cmocka_unit_test(background_processes_are_not_waited_for),
    cmocka_unit_test(a_slow_command_is_ended),
    cmocka_unit_test(the_score_is_in_the_last_line_or_matches_the_pattern),
    cmocka_unit_test(an_invalid_score_is_reported),
};
TEST_GROUP(tests)
