// SPDX-License-Identifier: Apache-2.0
/* words.c - a command line as the words of a program, without a shell: no name of a file can become
 * anything but a part of one argument. */
#include "phema/search.h"

#include <stdlib.h>
#include <string.h>

#define PLACE "{}"

/* Words one after another, each ended by a NUL. */
struct splitting {
    struct phema_text words;
    size_t n, n_places;
    const char *path;
};

/* What only a shell understands, where it is a word of its own. */
static bool wants_shell(const char *start, size_t size)
{
    static const char *const known[] = {"|",  "||", "&",    "&&", ";", "<", ">",
                                        ">>", "2>", "2>&1", "&>", "(", ")"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strlen(known[i]) == size && memcmp(known[i], start, size) == 0)
            return true;
    return false;
}

static void put_path(struct splitting *splitting)
{
    phema_text_puts(&splitting->words, splitting->path);
    splitting->n_places++;
}

/* From behind the opening quote to behind the closing one; NULL where there is none. */
static const char *put_quoted(struct splitting *splitting, const char *at, char quote)
{
    for (; *at && *at != quote; at++) {
        if (quote == '"' && *at == '\\' && (at[1] == '"' || at[1] == '\\')) {
            phema_text_append(&splitting->words, ++at, 1);
        } else if (strncmp(at, PLACE, 2) == 0) {
            put_path(splitting);
            at++;
        } else {
            phema_text_append(&splitting->words, at, 1);
        }
    }
    return *at ? at + 1 : NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* One word; *at is moved behind it. */
static enum phema_status put_word(struct splitting *splitting, const char **at,
                                  struct phema_error *err)
{
    const char *start = *at, *next = start;
    while (*next && !is_blank(*next)) {
        if (*next == '\'' || *next == '"') {
            next = put_quoted(splitting, next + 1, *next);
            if (!next)
                return phema_fail(err, PHEMA_ERR_USAGE, "'%s': a quote is not closed", start);
        } else if (*next == '\\' && next[1]) {
            phema_text_append(&splitting->words, next + 1, 1);
            next += 2;
        } else if (strncmp(next, PLACE, 2) == 0) {
            put_path(splitting);
            next += 2;
        } else {
            phema_text_append(&splitting->words, next++, 1);
        }
    }
    if (wants_shell(start, (size_t)(next - start)))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "'%.*s' is for a shell, and the command runs without one; --shell gives "
                          "it to sh",
                          (int)(next - start), start);
    phema_text_append(&splitting->words, "", 1);
    splitting->n++;
    *at = next;
    return PHEMA_OK;
}

/* The texts become an array of pointers with the texts behind it. */
static enum phema_status take_words(char ***out, const struct phema_text *words, size_t n,
                                    struct phema_error *err)
{
    enum phema_status status = phema_text_check(words, err);
    if (status)
        return status;
    size_t table = (n + 1) * sizeof(char *);
    char **taken = malloc(table + words->size);
    if (!taken)
        return phema_fail_memory(err);
    char *texts = (char *)taken + table;
    memcpy(texts, words->data, words->size);
    for (size_t i = 0; i < n; i++) {
        taken[i] = texts;
        texts += strlen(texts) + 1;
    }
    taken[n] = NULL;
    *out = taken;
    return PHEMA_OK;
}

static enum phema_status check_places(size_t n_places, struct phema_error *err)
{
    if (n_places)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "expected {} where the path of an average stands, as in './evaluate.sh {}'");
}

PHEMA_FALLIBLE phema_command_split(char ***out, const char *command, const char *path,
                                   struct phema_error *err)
{
    struct splitting splitting = {.path = path};
    enum phema_status status = PHEMA_OK;
    const char *at = command;
    for (;;) {
        while (is_blank(*at))
            at++;
        if (!*at || status)
            break;
        status = put_word(&splitting, &at, err);
    }
    if (!status && splitting.n == 0)
        status = phema_fail(err, PHEMA_ERR_USAGE, "the command is empty");
    if (!status)
        status = check_places(splitting.n_places, err);
    if (!status)
        status = take_words(out, &splitting.words, splitting.n, err);
    phema_text_clear(&splitting.words);
    return status;
}

/* In single quotes, in which a shell sees nothing but their end. */
static void put_shell_quoted(struct phema_text *out, const char *path)
{
    phema_text_puts(out, "'");
    for (; *path; path++) {
        if (*path == '\'')
            phema_text_puts(out, "'\\''");
        else
            phema_text_append(out, path, 1);
    }
    phema_text_puts(out, "'");
}

PHEMA_FALLIBLE phema_command_shell(char ***out, const char *command, const char *path,
                                   struct phema_error *err)
{
    struct phema_text words = {0};
    size_t n_places = 0;
    phema_text_append(&words, "/bin/sh", sizeof("/bin/sh"));
    phema_text_append(&words, "-c", sizeof("-c"));
    for (const char *at = command; *at;) {
        if (strncmp(at, PLACE, 2) == 0) {
            put_shell_quoted(&words, path);
            n_places++;
            at += 2;
        } else {
            phema_text_append(&words, at++, 1);
        }
    }
    phema_text_append(&words, "", 1);
    enum phema_status status = check_places(n_places, err);
    if (!status)
        status = take_words(out, &words, 3, err);
    phema_text_clear(&words);
    return status;
}
