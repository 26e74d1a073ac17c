// SPDX-License-Identifier: Apache-2.0
/* command_words.c - command lines as text: words quoted for a shell (strbuf.h), and split
 * again. */
#include <string.h>

#include "options.h"

/* More words than any shell accepts. */
#define MAX_WORDS 65536

void cli_shell_quote(struct phema_strbuf *out, const char *word)
{
    if (word)
        phema_strbuf_put_word(out, word);
}

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
