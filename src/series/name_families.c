// SPDX-License-Identifier: Apache-2.0
/* name_families.c - several families of names in one directory: names of one are the same text but for
 * one number, the time. "ema_0.99_50" and "ema_0.999_50" are of two, "net_g_50" and "net_d_50" too.
 * Files whose names differ in a second whole number are parts of a checkpoint, or several runs. */
#include <ctype.h>
#include <string.h>

#include "candidates.h"

#define MOST_NAMES 2048u /* all pairs are compared */

/* A name, and its number that is the time. */
struct member {
    const char *name;
    size_t at, end; /* of the number; equal: there is none */
    size_t n_alike; /* names of its family */
};

/* The end of a number without decimals at a place; 0: none begins there. */
static size_t whole_number_end(const char *name, size_t at)
{
    if (!isdigit((unsigned char)name[at]) || (at && isdigit((unsigned char)name[at - 1])))
        return 0;
    size_t end = at + strspn(name + at, "0123456789");
    bool is_after_point = at >= 2 && name[at - 1] == '.' && isdigit((unsigned char)name[at - 2]);
    bool is_before_point = name[end] == '.' && isdigit((unsigned char)name[end + 1]);
    return is_after_point || is_before_point ? 0 : end;
}

static bool is_alike(const struct member *a, const char *name, size_t end)
{
    return strncmp(a->name, name, a->at) == 0 && strcmp(a->name + a->end, name + end) == 0;
}

/* How many names are the same text but for the number at a place. */
static size_t count_alike(const struct member *members, size_t n, const char *name, size_t at,
                          size_t end)
{
    const struct member own = {.name = name, .at = at, .end = end};
    size_t n_alike = 0;
    for (size_t i = 0; i < n; i++) {
        const char *other = members[i].name;
        size_t other_end = strncmp(other, name, at) == 0 ? whole_number_end(other, at) : 0;
        n_alike += other_end && is_alike(&own, other, other_end);
    }
    return n_alike;
}

/* Sets the number of a name that makes the largest family. */
static void find_number(struct member *member, const struct member *members, size_t n)
{
    for (size_t at = 0; member->name[at]; at++) {
        size_t end = whole_number_end(member->name, at);
        if (!end || name_word_rank(member->name, at) < 0)
            continue;
        size_t n_alike = count_alike(members, n, member->name, at, end);
        if (n_alike < member->n_alike)
            continue;
        member->n_alike = n_alike;
        member->at = at;
        member->end = end;
    }
}

/* Whether two names are one text but for whole numbers. */
static bool differ_in_whole_numbers(const char *a, const char *b)
{
    size_t i = 0, j = 0;
    while (a[i] || b[j]) {
        size_t a_end = whole_number_end(a, i), b_end = whole_number_end(b, j);
        if (a_end && b_end) {
            i = a_end;
            j = b_end;
        } else if (a[i++] != b[j++]) {
            return false;
        }
    }
    return true;
}

/* "^ema_0\.99_(?<time>[0-9]+)\.pt$" */
static void write_family(struct phema_strbuf *out, const struct member *member)
{
    phema_strbuf_puts(out, "^");
    name_quote(out, member->name, member->at);
    phema_strbuf_puts(out, "(?<time>[0-9]+)");
    name_quote(out, member->name + member->end, strlen(member->name + member->end));
    phema_strbuf_puts(out, "$");
}

/* The first name of each family; 0: a name has none, there is one family, or they are parts. */
static size_t list_families(const struct member *families[NAME_MOST_FAMILIES],
                            const struct member *members, size_t n)
{
    size_t n_families = 0;
    for (size_t i = 0; i < n; i++) {
        size_t f = 0;
        if (members[i].n_alike < 2)
            return 0;
        while (f < n_families && !(families[f]->at == members[i].at &&
                                   is_alike(families[f], members[i].name, members[i].end)))
            f++;
        if (f < n_families)
            continue;
        if (f == NAME_MOST_FAMILIES)
            return 0;
        for (f = 0; f < n_families; f++)
            if (differ_in_whole_numbers(families[f]->name, members[i].name))
                return 0;
        families[n_families++] = &members[i];
    }
    return n_families > 1 ? n_families : 0;
}

enum phema_status name_families_find(const char **pattern, const struct candidate_list *candidates,
                                     struct phema_error *err)
{
    struct member *members =
        phema_arena_array(candidates->arena, candidates->n + 1, sizeof(*members));
    const struct member *families[NAME_MOST_FAMILIES];
    size_t n = 0;
    *pattern = NULL;
    if (!members)
        return phema_fail_memory(err);
    for (size_t i = 0; i < candidates->n && n < MOST_NAMES; i++) {
        const char *base = candidates->items[i].base;
        if (!candidates->items[i].is_excluded &&
            candidate_is_checkpoint(candidates, &candidates->items[i]) &&
            strcspn(base, "0123456789") < name_stem_size(base))
            members[n++] = (struct member){.name = base};
    }
    for (size_t i = 0; i < n; i++)
        find_number(&members[i], members, n);
    size_t n_families = candidates->may_be_parts || name_times_find_date(candidates)
                            ? 0
                            : list_families(families, members, n);
    if (!n_families)
        return PHEMA_OK;
    struct phema_strbuf text = {0};
    for (size_t f = 0; f < n_families; f++) {
        phema_strbuf_puts(&text, f ? "|" : "(?|");
        write_family(&text, families[f]);
    }
    phema_strbuf_puts(&text, ")");
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status)
        *pattern = phema_arena_copy(candidates->arena, text.data, text.size);
    phema_strbuf_clear(&text);
    return status || *pattern ? status : phema_fail_memory(err);
}
