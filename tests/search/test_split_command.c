// SPDX-License-Identifier: Apache-2.0
/* test_split_command.c - splitting of command lines into the words of a program. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phema/search.h"

static void assert_words(const char *command, const char *path, const char *const *wanted)
{
    char **words = NULL;
    struct phema_error err = {0};
    assert_ok(phema_command_split(&words, command, path, &err), &err);
    size_t n = 0;
    for (; wanted[n]; n++) {
        assert_non_null(words[n]);
        assert_string_equal(words[n], wanted[n]);
    }
    assert_null(words[n]);
    free(words);
}

static void words_are_split_as_by_a_shell(void **state)
{
    (void)state;
    assert_words("./e.sh {}", "a", (const char *const[]){"./e.sh", "a", NULL});
    assert_words("  a\t'b c'  \"d e\"f {}\n", "x",
                 (const char *const[]){"a", "b c", "d ef", "x", NULL});
    assert_words("a '' \"\" {}", "x", (const char *const[]){"a", "", "", "x", NULL});
    assert_words("a b\\ c \\{} '\\n' \"\\\"\\\\\\n\" {}", "x",
                 (const char *const[]){"a", "b c", "{}", "\\n", "\"\\\\n", "x", NULL});
    assert_words("e \"a\\$b\\`c\\z\\\nd\" '\\$' f\\\ng \\\n {}", "x",
                 (const char *const[]){"e", "a$b`c\\zd", "\\$", "fg", "x", NULL});
    assert_words("--ckpt={} '{}' \"{}.txt\"", "p",
                 (const char *const[]){"--ckpt=p", "p", "p.txt", NULL});
}

/* A path of any characters remains one word, and its text is not replaced again. */
static void a_path_stays_part_of_one_word(void **state)
{
    (void)state;
    static const char hostile[] = "a b'c\"d\\e;$(rm -rf x)`y`|{}\n*";
    assert_words("e {}", hostile, (const char *const[]){"e", hostile, NULL});
    assert_words("e '{}'", hostile, (const char *const[]){"e", hostile, NULL});
}

static void nothing_is_expanded(void **state)
{
    (void)state;
    assert_words("e $HOME ~ *.c a|b x>y {}", "p",
                 (const char *const[]){"e", "$HOME", "~", "*.c", "a|b", "x>y", "p", NULL});
    assert_words("e '|' \\; {}", "p", (const char *const[]){"e", "|", ";", "p", NULL});
}

static void invalid_commands_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *command, *part;
    } cases[] = {
        {"", "the command is empty"},
        {" \t", "the command is empty"},
        {"./e.sh", "expected {}"},
        {"e 'a {}", "a quote is not closed"},
        {"e \"{}", "a quote is not closed"},
        {"e {} | tail -n 1", "'|' is for a shell"},
        {"e {} > x", "--shell gives it to sh"},
        {"e {} && f", "'&&' is for a shell"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char **words = NULL;
        struct phema_error err = {0};
        assert_fails(phema_command_split(&words, cases[i].command, "p", &err), PHEMA_ERR_USAGE,
                     &err, cases[i].part);
        assert_null(words);
    }
}

/* Interpreters would read a path in their program text as code, but not in an argument. */
static void a_path_stays_out_of_program_texts(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "sh -c './e {}'",
        "/bin/bash -euo pipefail -c \"e {} | tail\"",
        "timeout 60 bash -lc 'e '{}",
        "env A=1 dash -e -c {}",
        "bash --norc -c 'e {}'",
        "python3.11 -W ignore -c 'import e; e.run(\"{}\")'",
        "perl -we 'print q({})'",
        "node --eval 'e(\"{}\")'",
    };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        char **words = NULL;
        struct phema_error err = {0};
        assert_fails(phema_command_split(&words, refused[i], "p", &err), PHEMA_ERR_USAGE, &err,
                     "{} stands in the text that ");
        assert_null(words);
    }
    assert_words("sh -c 'e \"$1\"' sh {}", "p",
                 (const char *const[]){"sh", "-c", "e \"$1\"", "sh", "p", NULL});
    assert_words("bash -e ./e.sh -c {}", "p",
                 (const char *const[]){"bash", "-e", "./e.sh", "-c", "p", NULL});
    assert_words("python -m e -c {}", "p",
                 (const char *const[]){"python", "-m", "e", "-c", "p", NULL});
}

/* ---- With a real shell ---- */

/* The output of `printf '<%s>'`, run by this shell in an empty directory. */
static void run_shell(char out[4096], const char *shell, char *const *words)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)execvp(shell, words);
        _exit(127);
    }
    (void)close(ends[1]);
    size_t used = 0;
    for (ssize_t size = 1; size > 0; used += (size_t)(size > 0 ? size : 0))
        size = read(ends[0], out + used, 4095 - used);
    out[used] = '\0';
    (void)close(ends[0]);
    int state = 0;
    assert_int_equal(waitpid(pid, &state, 0), pid);
    assert_int_equal(state, 0);
}

static bool has_program(const char *name)
{
    char command[64];
    (void)snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
    return system(command) == 0; /* NOLINT(cert-env33-c): a constant */
}

/* In each command {} becomes one argument, or a part of one, for any path. No word is split, no
 * pattern is expanded, no command in it is run. `%` is the path in the expected output. */
static void a_shell_gets_the_path_as_one_argument(void **state)
{
    (void)state;
    static const char *const paths[] = {"plain",
                                        "a b",
                                        "$(touch bad)",
                                        "`touch bad`",
                                        "a'b",
                                        "a\"b",
                                        "a\\",
                                        "*",
                                        "[a-z]",
                                        "~",
                                        "a\nb",
                                        "-n",
                                        "${HOME}",
                                        "$1",
                                        ";touch bad",
                                        "{}",
                                        "#a",
                                        "a\x01\x7F\xFF",
                                        "'$(touch bad)'",
                                        "a[$(touch bad)]",
                                        "\"$(touch bad)\"",
                                        "!x",
                                        "%s",
                                        "&",
                                        "|",
                                        "a=b",
                                        "\xE2\x80\xAE",
                                        "  "};
    static const struct {
        const char *command, *wanted;
    } cases[] = {
        {"printf '<%s>' {}", "<%>"},
        {"printf '<%s>' --ckpt={} {}.json a{}b{}", "<--ckpt=%><%.json><a%b%>"},
        {"printf '<%s>' $(printf '(%s)' {})", NULL}, /* split by the user's own $() */
        {"x=$(printf '(%s)' {}); printf '<%s>' \"$x\"", "<(%)>"},
        {"x={}; printf '<%s>' \"$x\"", "<%>"},
        {"f() { printf '<%s>' {} \"$1\"; }; f other", "<%><other>"},
        {"set -- one; printf '<%s>' {} \"$1\"", "<%><one>"},
        {"for x in {}; do printf '<%s>' \"$x\"; done", "<%>"},
        {"if true; then (printf '<%s>' {}); fi", "<%>"},
        {"case a in a) printf '<%s>' {};; esac", "<%>"},
        {"case {} in \"$PHEMA_CANDIDATE\") printf '<%s>' {};; esac", "<%>"},
        {"printf '<%s>' '{ }' \\{} {}", "<{ }><{}><%>"},
        {"printf '<%s>' \"$((1 + 1))\" {}", "<2><%>"},
        {"printf '<%s>' $((1 + 1)) {}", "<2><%>"},
        {"y=a/b; printf '<%s>' \"${y##*/}\" ${y%%/*} {}", "<b><a><%>"},
        {"printf '<%s>' \"$(echo a)\" {}", "<a><%>"},
        {"printf '<%s>' 'it'\\''s' \"a\\\"b\" {}", "<it's><a\"b><%>"},
        {"# it's\nprintf '<%s>' {} # \"", "<%>"},
        {"printf '<%s>' a#b $# {}", "<a#b><1><%>"},
        {"printf '<%s>' \\ #\\'a {}", "< #'a><%>"},
        {"printf '<%s>' \\\n {}", "<%>"},
        {"printf '<%s>' {} | cat", "<%>"},
        {"printf '<%s>' {} <<EOF\n'\nEOF", "<%>"},
        {"cat <<EOF\n<$PHEMA_CANDIDATE>\nEOF", "<%>\n"},
        {"printf '<%s>' \"a$PHEMA_CANDIDATE\"", "<a%>"},
        {"sh -c 'printf \"<%s>\" \"$PHEMA_CANDIDATE\"'", "<%>"},
        {"printf '<%s>' `echo a` \"$PHEMA_CANDIDATE\"", "<a><%>"},
        {"\nprintf '<%s>' {}\n", "<%>"},
    };
    static const char *const shells[] = {"sh", "bash"};
    char directory[] = "/tmp/words-XXXXXX", output[4096];
    assert_non_null(mkdtemp(directory));
    assert_int_equal(chdir(directory), 0);
    for (size_t s = 0; s < ARRAY_LEN(shells); s++)
        for (size_t c = 0; has_program(shells[s]) && c < ARRAY_LEN(cases); c++)
            for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
                char **words = NULL;
                struct phema_error err = {0};
                assert_ok(phema_command_shell(&words, cases[c].command, paths[p], &err), &err);
                run_shell(output, shells[s], words);
                free(words);
                struct phema_strbuf wanted = {0};
                phema_strbuf_puts(&wanted, "");
                for (const char *at = cases[c].wanted; at && *at; at++)
                    phema_strbuf_append(&wanted, *at == '%' ? paths[p] : at,
                                        *at == '%' ? strlen(paths[p]) : 1);
                if (cases[c].wanted)
                    assert_string_equal(output, wanted.data);
                phema_strbuf_clear(&wanted);
                assert_int_not_equal(access("bad", F_OK), 0);
            }
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* Where sh would not read the path as one argument, the message names the position and a
 * replacement. */
static void a_path_elsewhere_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *command, *where;
    } cases[] = {
        {"e \"{}\"", "within double quotes"},
        {"e \"a {} b\"", "within double quotes"},
        {"e '{}'", "within single quotes"},
        {"e 'it'\\''s {}'", "within single quotes"},
        {"sh -c 'e {}'", "within single quotes"},
        {"e {} \"$(cat {})\"", "in or behind an expansion within double quotes"},
        {"e \"$(cat \"a\")\" {}", "in or behind an expansion within double quotes"},
        {"e \"$(case x in x) echo \"{}\";; esac)\"",
         "in or behind an expansion within double quotes"},
        {"e \"${x:-'}\" {}", "in or behind an expansion within double quotes"},
        {"e # {}", "in a comment"},
        {"#e {}", "in a comment"},
        {"e;#{}\n", "in a comment"},
        {"cat <<EOF\n{}\nEOF", "in or behind a here-document"},
        {"cat <<-'EOF' | e {}\nEOF", "in or behind a here-document"},
        {"cat <\\\n<EOF\n{}\nEOF", "in or behind a word that continues in the next line"},
        {"e `cat {}`", "in or behind a backquote"},
        {"e \"`date`\" {}", "in or behind an expansion within double quotes"},
        {"e $((1 + {}))", "in or behind arithmetic"},
        {"e $[{}]", "in or behind arithmetic"},
        {"((x = {}))", "in or behind arithmetic"},
        {"e $'a' {}", "in or behind \"$'\""},
        {"e ${x:-{}}", "in or behind an expansion"},
        {"e ${}", "within an expansion"},
        {"a[{}]=1", "behind '['"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char **words = NULL;
        struct phema_error err = {0};
        char part[128];
        (void)snprintf(part, sizeof(part), "{} stands %s, where sh", cases[i].where);
        assert_fails(phema_command_shell(&words, cases[i].command, "p", &err), PHEMA_ERR_USAGE,
                     &err, part);
        assert_null(words);
    }
    char **words = NULL;
    struct phema_error err = {0};
    assert_fails(phema_command_shell(&words, "e", "p", &err), PHEMA_ERR_USAGE, &err, "expected {}");
    assert_fails(phema_command_shell(&words, "e \\{}", "p", &err), PHEMA_ERR_USAGE, &err,
                 "expected {}");
    assert_fails(phema_command_shell(&words, "e {} 'a", "p", &err), PHEMA_ERR_USAGE, &err,
                 "a quote is not closed");
    assert_fails(phema_command_shell(&words, "e {} \"a", "p", &err), PHEMA_ERR_USAGE, &err,
                 "a quote is not closed");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(words_are_split_as_by_a_shell),
    cmocka_unit_test(a_path_stays_part_of_one_word),
    cmocka_unit_test(nothing_is_expanded),
    cmocka_unit_test(invalid_commands_are_refused),
    cmocka_unit_test(a_path_stays_out_of_program_texts),
    cmocka_unit_test(a_shell_gets_the_path_as_one_argument),
    cmocka_unit_test(a_path_elsewhere_is_refused),
};
TEST_GROUP(tests)
