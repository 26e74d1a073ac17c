// SPDX-License-Identifier: Apache-2.0
/* main.c - a program of tests: runs all of its groups, or the groups and cases that are named.
 *   test_solver lapack gram.is_symmetric     a group and a case; a case also without its group
 *   test_solver --list
 * A case called slow_... is skipped, unless it is named or PHEMA_SLOW=1 is in the environment. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static struct support_group *groups, **last = &groups;

void support_add_group(struct support_group *group)
{
    *last = group;
    last = &group->next;
}

/* The file's name without "test_" and ".c"; valid until the next call. */
static const char *group_name(const struct support_group *group)
{
    static char name[64];
    const char *slash = strrchr(group->file, '/');
    (void)snprintf(name, sizeof(name), "%s", (slash ? slash + 1 : group->file) + strlen("test_"));
    *strrchr(name, '.') = '\0';
    return name;
}

/* What words of the command line say about a case. */
enum match { NO_MATCH, BY_GROUP, BY_CASE };

static enum match match_word(const char *word, const struct support_group *group, const char *name)
{
    const char *group_word = group_name(group);
    size_t size = strlen(group_word);
    if (strcmp(word, group_word) == 0)
        return BY_GROUP;
    if (strncmp(word, group_word, size) == 0 && word[size] == '.')
        word += size + 1;
    return strcmp(word, name) == 0 ? BY_CASE : NO_MATCH;
}

/* The best match of the words, of which there may be none. */
static enum match match_words(char *const *words, const struct support_group *group,
                              const char *name)
{
    enum match best = *words ? NO_MATCH : BY_GROUP;
    for (; *words; words++) {
        enum match match = match_word(*words, group, name);
        best = match > best ? match : best;
    }
    return best;
}

static bool is_chosen(char *const *words, const struct support_group *group)
{
    for (size_t i = 0; i < group->n_cases; i++)
        if (match_words(words, group, group->cases[i].name))
            return true;
    return false;
}

static size_t count_chosen_groups(char *const *words)
{
    size_t n = 0;
    for (const struct support_group *group = groups; group; group = group->next)
        n += is_chosen(words, group);
    return n;
}

static void skip_slow(void **state)
{
    (void)state;
    print_message("slow: runs with PHEMA_SLOW=1 in the environment, or when it is named\n");
    skip();
}

/* Returns the exit status. */
static int run_group(char *const *words, const struct support_group *group)
{
    struct CMUnitTest *cases = calloc(group->n_cases, sizeof(*cases));
    if (!cases)
        return EXIT_FAILURE;
    const char *setting = getenv("PHEMA_SLOW");
    bool skips_slow = !setting || strcmp(setting, "1") != 0;
    size_t n = 0;
    for (size_t i = 0; i < group->n_cases; i++) {
        const char *name = group->cases[i].name;
        enum match match = match_words(words, group, name);
        if (!match)
            continue;
        cases[n] = group->cases[i];
        if (match < BY_CASE && skips_slow && strncmp(name, "slow_", strlen("slow_")) == 0)
            cases[n].test_func = skip_slow;
        n++;
    }
    int n_failed = _cmocka_run_group_tests("tests", cases, n, group->set_up, group->tear_down);
    free(cases);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* In a process of its own, so that no group finds the locks, handlers and limits of another. */
static bool passes_apart(char *const *words, const struct support_group *group)
{
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(run_group(words, group));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror(program_invocation_short_name);
        return false;
    }
    if (WIFSIGNALED(status))
        (void)printf("%s: ended by signal %d\n", group_name(group), WTERMSIG(status));
    return status == 0;
}

static void list_cases(void)
{
    for (const struct support_group *group = groups; group; group = group->next)
        for (size_t i = 0; i < group->n_cases; i++)
            (void)printf("%s.%s\n", group_name(group), group->cases[i].name);
}

/* nohup and background jobs of scripts ignore signals that tests expect to end a process. */
static void heed_signals(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        (void)signal(ends[i], SIG_DFL);
}

int main(int argc, char **argv)
{
    heed_signals();
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_cases();
        return EXIT_SUCCESS;
    }
    for (int i = 1; i < argc; i++) {
        if (count_chosen_groups((char *[]){argv[i], NULL}) == 0) {
            (void)fprintf(stderr, "%s: expected a group or a case of --list, found '%s'\n",
                          program_invocation_short_name, argv[i]);
            return 2;
        }
    }
    char *const *words = argv + 1;
    size_t n_chosen = count_chosen_groups(words), n_failed = 0;
    for (const struct support_group *group = groups; group; group = group->next) {
        if (!is_chosen(words, group))
            continue;
        if (n_chosen == 1)
            return run_group(words, group); /* without fork, for debuggers */
        (void)printf("\n%s %s\n", program_invocation_short_name, group_name(group));
        if (!passes_apart(words, group)) {
            (void)printf("%s %s failed\n", program_invocation_short_name, group_name(group));
            n_failed++;
        }
    }
    (void)printf("%zu groups, %zu failed\n", n_chosen, n_failed);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
