// SPDX-License-Identifier: Apache-2.0
/* shell_word.c - words quoted for a shell. */
#include "phema/shell_word.h"

#include <stdbool.h>
#include <string.h>

/* At its beginning, '=' looks up a command in zsh, and %self is a number in fish. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./_-";
    return *word && !strchr("=%", *word) && word[strspn(word, plain)] == '\0';
}

/* Writes n bytes at out + used unless out is NULL. Returns the bytes used then. */
static size_t append(char *out, size_t used, const char *bytes, size_t n)
{
    if (out)
        memcpy(out + used, bytes, n);
    return used + n;
}

/* True for a quote, and for a backslash that would escape a quote or a backslash within quotes in
 * fish. */
static bool is_special(const char *at)
{
    return *at == '\'' || (*at == '\\' && (!at[1] || at[1] == '\'' || at[1] == '\\'));
}

/* Special characters stand outside of the quotes, after a backslash. */
static size_t write_word(char *out, const char *word)
{
    size_t used = append(out, 0, "'", 1);
    for (; *word; word++) {
        bool is_outside = is_special(word);
        used = append(out, used, "'\\", is_outside ? 2 : 0);
        used = append(out, used, word, 1);
        used = append(out, used, "'", is_outside);
    }
    return append(out, used, "'", 1);
}

size_t phema_shell_word(char *out, size_t size, const char *word)
{
    bool is_bare = is_plain(word);
    size_t length = is_bare ? strlen(word) : write_word(NULL, word);
    if (length >= size)
        return length;
    if (is_bare)
        memcpy(out, word, length);
    else
        (void)write_word(out, word);
    out[length] = '\0';
    return length;
}
