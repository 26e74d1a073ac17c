// SPDX-License-Identifier: Apache-2.0
/* number_list.c - lists of numbers as users write them. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "phema/number.h"

/* No sweep needs more; a step that is too small must not exhaust memory. */
#define MAX_LIST ((size_t)100000)

struct list {
    struct phema_arena *arena;
    struct cli_reals reals;
};

static enum phema_status add(struct list *list, double value, struct phema_error *err)
{
    if (list->reals.n == MAX_LIST)
        return phema_fail(err, PHEMA_ERR_USAGE, "has more than %zu values", MAX_LIST);
    double *items = phema_arena_grow(list->arena, list->reals.items, list->reals.n, sizeof(*items));
    if (!items)
        return phema_fail_memory(err);
    list->reals.items = items;
    list->reals.items[list->reals.n++] = value;
    return PHEMA_OK;
}

static int decimals_of(const char *text)
{
    const char *point = strchr(text, '.');
    return point && !strpbrk(text, "eE") ? (int)strspn(point + 1, "0123456789") : 0;
}

/* Raises decimals to those of the number. */
static enum phema_status read_number(double *out, int *decimals, const char *text,
                                     struct phema_error *err)
{
    if (decimals_of(text) > *decimals)
        *decimals = decimals_of(text);
    return phema_number_parse(out, text, err);
}

/* The nearest number with that many decimals; value itself where that is farther away than slack,
 * as with exponents, or with more digits than text can hold. */
static double nearest_decimal(double value, int decimals, double slack)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%.*f", decimals, value);
    double nearest = strtod(text, NULL);
    return decimals && fabs(nearest - value) <= slack ? nearest : value;
}

/* Adds first, first + step, ... last, each the double that its decimal text would parse to. */
static enum phema_status add_range(struct list *list, double first, double last, double step,
                                   int decimals, struct phema_error *err)
{
    if (!(step != 0) || !isfinite(step) || !isfinite(first) || !isfinite(last))
        return phema_fail(err, PHEMA_ERR_USAGE, "its step is 0 or no number");
    double n = (last - first) / step;
    if (!(n >= 0) || fabs(n - round(n)) > 1e-6)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "the step %g does not lead from %g to %g; both ends are included", step,
                          first, last);
    if (n > (double)MAX_LIST)
        return phema_fail(err, PHEMA_ERR_USAGE, "has more than %zu values", MAX_LIST);
    for (size_t i = 0; i <= (size_t)round(n); i++) {
        /* the step may itself be a difference of two numbers */
        double slack = 4 * DBL_EPSILON * (double)(i + 1) * (fabs(first) + fabs(step));
        double value = nearest_decimal(first + (double)i * step, decimals, slack);
        enum phema_status status = add(list, i ? value : first, err);
        if (status)
            return status;
    }
    return PHEMA_OK;
}

static enum phema_status add_colons(struct list *list, char *item, struct phema_error *err)
{
    double values[3] = {0, 0, 1};
    int n = 0, decimals = 0;
    for (char *at = item; at; n++) {
        char *colon = strchr(at, ':');
        if (colon)
            *colon++ = '\0';
        if (n == 3)
            return phema_fail(err, PHEMA_ERR_USAGE, "expected FIRST:LAST:STEP");
        enum phema_status status = read_number(&values[n], &decimals, at, err);
        if (status)
            return status;
        at = colon;
    }
    if (n != 3)
        return phema_fail(err, PHEMA_ERR_USAGE, "expected FIRST:LAST:STEP");
    return add_range(list, values[0], values[1], values[2], decimals, err);
}

/* EDM2's a,b,...,z: the step is the difference of the two numbers before the dots. */
static enum phema_status add_dots(struct list *list, const char *next, int decimals,
                                  struct phema_error *err)
{
    double last = 0;
    if (list->reals.n < 2 || !next)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "'...' stands between two numbers and the last one");
    enum phema_status status = read_number(&last, &decimals, next, err);
    if (status)
        return status;
    double before = list->reals.items[list->reals.n - 2];
    double first = list->reals.items[list->reals.n - 1];
    list->reals.n--;
    return add_range(list, first, last, first - before, decimals, err);
}

static enum phema_status parse_items(struct list *list, char *text, struct phema_error *err)
{
    int decimals = 0;
    for (char *item = text; item;) {
        char *comma = strchr(item, ',');
        if (comma)
            *comma++ = '\0';
        enum phema_status status;
        if (strcmp(item, "...") == 0) {
            char *end = comma ? strchr(comma, ',') : NULL;
            if (end)
                *end++ = '\0';
            status = add_dots(list, comma, decimals, err);
            comma = end;
        } else if (strchr(item, ':')) {
            status = add_colons(list, item, err);
        } else {
            double value = 0;
            status = read_number(&value, &decimals, item, err);
            if (!status)
                status = add(list, value, err);
        }
        if (status)
            return status;
        item = comma;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE cli_parse_reals(struct cli_reals *out, struct phema_arena *arena, const char *text,
                               struct phema_error *err)
{
    struct list list = {.arena = arena, .reals = *out};
    char *copy = phema_arena_copy(arena, text, strlen(text));
    if (!copy)
        return phema_fail_memory(err);
    size_t size = strlen(text);
    bool is_ended = size == 0 || text[size - 1] != ',';
    enum phema_status status =
        is_ended ? parse_items(&list, copy, err)
                 : phema_fail(err, PHEMA_ERR_USAGE, "a comma too many at its end");
    if (status && strpbrk(text, ",:")) /* the message already names the item */
        (void)phema_fail_in(err, status, "'%s'", text);
    if (status)
        return status;
    *out = list.reals;
    return PHEMA_OK;
}
