// SPDX-License-Identifier: Apache-2.0
/* name_decimals.c - names of averages of several widths or decays: the same text but for a number with
 * decimals. "#" stands for the time. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "candidates.h"

#define MOST_WIDTH 0.2886 /* sigma_rel of equal weights */

struct decimals {
    size_t at, size; /* 0: there are none */
};

/* Around a place where two names differ. */
static struct decimals find_decimals(const char *name, size_t at)
{
    while (at && (isdigit((unsigned char)name[at - 1]) || name[at - 1] == '.'))
        at--;
    size_t whole = strspn(name + at, "0123456789");
    size_t n = name[at + whole] == '.' ? strspn(name + at + whole + 1, "0123456789") : 0;
    return (struct decimals){at, whole && n ? whole + 1 + n : 0};
}

/* *found: in the first name */
static bool differ(struct decimals *found, const char *first, const char *second)
{
    size_t begin = 0;
    while (first[begin] && first[begin] == second[begin])
        begin++;
    struct decimals other = find_decimals(second, begin);
    *found = find_decimals(first, begin);
    return found->size && other.size && found->at == other.at &&
           strcmp(first + found->at + found->size, second + other.at + other.size) == 0;
}

bool names_differ_in_decimals(const char *first, const char *second)
{
    struct decimals ignored;
    return differ(&ignored, first, second);
}

/* The place of the numbers in the first name; false: they are no widths, or not in one place. */
static bool find_widths(struct decimals *out, const char *const *names, size_t n)
{
    struct decimals found, other;
    for (size_t k = 1; k < n; k++) {
        if (!differ(&found, names[0], names[k]) || !differ(&other, names[k], names[0]) ||
            (k > 1 && found.at != out->at) || strtod(names[0] + found.at, NULL) > MOST_WIDTH ||
            strtod(names[k] + other.at, NULL) > MOST_WIDTH)
            return false;
        *out = found;
    }
    return n > 1;
}

char *names_write_widths(const char *const *names, size_t n)
{
    struct phema_strbuf pattern = {0};
    struct decimals width = {0, 0};
    const char *time = n ? strchr(names[0], '#') : NULL;
    if (!time || strchr(time + 1, '#') || !find_widths(&width, names, n))
        return NULL;
    phema_strbuf_puts(&pattern, "^");
    for (size_t i = 0; names[0][i]; i += i == width.at ? width.size : 1) {
        if (i == width.at)
            phema_strbuf_puts(&pattern, "(?<sigma>[0-9.]+)");
        else if (names[0] + i == time)
            phema_strbuf_puts(&pattern, "(?<time>[0-9]+)");
        else
            name_quote(&pattern, names[0] + i, 1);
    }
    phema_strbuf_puts(&pattern, "$");
    if (!pattern.is_failed)
        return pattern.data;
    phema_strbuf_clear(&pattern);
    return NULL;
}
