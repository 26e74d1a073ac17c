// SPDX-License-Identifier: Apache-2.0
/* words.c - the word that a mistyped one was meant to be; commands as text, split into words. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "options.h"

/* ---- The nearest word ---- */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

static bool is_same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Number of letters to insert, delete or change (Levenshtein); for words of up to 31 letters. */
static size_t distance(const char *a, const char *b)
{
    size_t row[32], n = strlen(b);
    if (n >= ARRAY_LEN(row))
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j];
            row[j] =
                least(row[j] + 1, row[j - 1] + 1, diagonal + !is_same_letter(a[i - 1], b[j - 1]));
            diagonal = above;
        }
    }
    return row[n];
}

/* "synthesise" for "synth", "sigma" for "sigma-rel" */
static bool is_start(const char *a, const char *b)
{
    size_t size_a = strlen(a), size_b = strlen(b);
    size_t shorter = size_a < size_b ? size_a : size_b;
    return shorter >= 3 && strncasecmp(a, b, shorter) == 0;
}

const char *cli_nearest(const char *word, const char *(*name)(const void *table, size_t index),
                        const void *table)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) < 4 ? 1 : strlen(word) < 8 ? 2 : 3;
    for (size_t i = 0; name(table, i); i++) {
        size_t here = is_start(word, name(table, i)) ? 1 : distance(word, name(table, i));
        if (here <= best_distance) {
            best_distance = here - (here > 0);
            best = name(table, i);
        }
    }
    return best;
}

/* ---- Words of a command ---- */

/* More words than any shell accepts. */
#define MAX_WORDS 65536

/* Copies one word from *at to *to, without its quotes. */
static void unquote(const char **at, char **to)
{
    bool is_quoted = false;
    for (; **at && (is_quoted || **at != ' '); (*at)++) {
        if (**at == '\'')
            is_quoted = !is_quoted;
        else if (**at == '\\' && !is_quoted && (*at)[1])
            *(*to)++ = *++*at;
        else
            *(*to)++ = **at;
    }
    *(*to)++ = '\0';
}

PHEMA_FALLIBLE cli_split_words(struct cli_words *out, struct phema_arena *arena,
                               const char *command, int n_more, struct phema_error *err)
{
    size_t n_spaces = 0;
    for (const char *at = command; *at; at++)
        n_spaces += *at == ' ';
    if (n_spaces > MAX_WORDS)
        return phema_fail(err, PHEMA_ERR_FILE, "the command has more than %d words", MAX_WORDS);
    char *to = phema_arena_alloc(arena, strlen(command) + 2);
    out->items = phema_arena_array(arena, n_spaces + 2 + (size_t)n_more, sizeof(char *));
    out->n = 0;
    if (!to || !out->items)
        return phema_fail_memory(err);
    for (const char *at = command; *at;) {
        if (*at == ' ') {
            at++;
            continue;
        }
        out->items[out->n++] = to;
        unquote(&at, &to);
    }
    return PHEMA_OK;
}
