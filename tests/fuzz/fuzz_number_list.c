// SPDX-License-Identifier: Apache-2.0
/* fuzz_number_list.c - The bytes as the value of an option: a number, a count, a list or range. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "options.h"
#include "phema/number.h"
#include "phema/span.h"

/* The documented limit, above any useful sweep. */
#define MAX_LIST 100000

/* A single FIRST:LAST:STEP: both ends are included, and the numbers are evenly spaced. */
static void check_range(const struct cli_reals *list, const char *text)
{
    char first_text[512];
    size_t size = strcspn(text, ":");
    if (size >= sizeof(first_text))
        return;
    memcpy(first_text, text, size);
    first_text[size] = '\0';
    struct phema_error err = {0};
    double first = 0;
    fuzz_require(phema_number_parse(&first, first_text, &err) == PHEMA_OK, "its first is a number");
    fuzz_require(list->items[0] == first, "a range begins with its first");
    double last = list->items[list->n - 1];
    double step = list->n > 1 ? (last - first) / (double)(list->n - 1) : 0;
    for (size_t i = 0; i < list->n; i++) {
        double wanted = first + (double)i * step;
        double slack = 1e-5 * fabs(step) + 1e-12 * (fabs(first) + fabs(last));
        fuzz_require(fabs(list->items[i] - wanted) <= slack, "ranges are evenly spaced");
    }
}

static void check_list(const char *text)
{
    struct phema_arena arena = {0};
    struct cli_reals list = {0};
    struct phema_error err = {0};
    if (cli_parse_reals(&list, &arena, text, &err)) {
        fuzz_require(list.n == 0, "outputs change only on success");
        fuzz_require(err.message[0] != '\0', "failures have a message");
    } else {
        fuzz_require(list.n > 0 && list.n <= MAX_LIST, "lists hold something, and not too much");
        bool is_range = strchr(text, ':') && !strchr(text, ',');
        for (size_t i = 0; is_range && i < list.n; i++)
            fuzz_require(isfinite(list.items[i]), "ranges are of numbers");
        if (is_range)
            check_range(&list, text);
    }
    phema_arena_clear(&arena);
}

/* A size that is also a real number is that number rounded down, up to the rounding of doubles. */
static void check_size(const char *text, bool is_real, double value)
{
    struct phema_error err = {0};
    uint64_t size = 0;
    if (phema_size_parse(&size, text, &err) != PHEMA_OK)
        return;
    fuzz_require(size < 9007199254740992, "sizes are below 2^53");
    fuzz_require(!is_real || fabs((double)size + 0.5 - value) <= 0.5 + 1e-15 * value,
                 "sizes are what was written");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    struct phema_error err = {0};
    double value = 0;
    uint64_t count = 0;
    bool is_real = phema_number_parse(&value, text, &err) == PHEMA_OK;
    bool is_count = phema_count_parse(&count, text, &err) == PHEMA_OK;
    const char *end = strchr(text, '\0');
    bool has_b = end > text && end[-1] == 'B'; /* a billion, but bytes in a size */
    fuzz_require(!is_count || is_real, "counts are numbers");
    fuzz_require(!is_count || (count < 9007199254740992 && (double)count == value),
                 "counts are what was written");
    check_size(text, is_real && !has_b, value);
    check_list(text);
    free(text);
    return 0;
}
