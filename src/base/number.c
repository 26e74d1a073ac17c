// SPDX-License-Identifier: Apache-2.0
/* number.c - parsing of numbers, counts and sizes. The program never sets a locale. */
#include "phema/number.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT       ((uint64_t)1 << 53) /* whole numbers below it are doubles */
#define MAX_DECIMAL 64                  /* longer texts are not numbers */
#define MAX_DIGITS  ((size_t)64)        /* of a size: more than any needs */

static bool read_suffix(double *factor, const char *suffix)
{
    static const struct {
        const char *name;
        double factor;
    } known[] = {{"", 1},
                 {"k", 1e3},
                 {"K", 1e3},
                 {"M", 1e6},
                 {"G", 1e9},
                 {"T", 1e12},
                 {"Ki", 1024.0},
                 {"Mi", 1048576.0},
                 {"Gi", 1073741824.0},
                 {"Ti", 1099511627776.0}};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(suffix, known[i].name) == 0) {
            *factor = known[i].factor;
            return true;
        }
    return false;
}

PHEMA_FALLIBLE phema_number_parse(double *out, const char *text, struct phema_error *err)
{
    char *end = NULL;
    double factor = 1;
    /* strtod also accepts hexadecimal digits and leading space */
    bool is_plain = isdigit((unsigned char)*text) || strchr("+-.nN", *text);
    double value = strtod(text, &end);
    bool is_billions = strcmp(end, "B") == 0; /* of a size it would be bytes */
    if (!is_plain || end == text || strpbrk(text, "xX") ||
        !read_suffix(&factor, is_billions ? "G" : end))
        return phema_fail(err, PHEMA_ERR_USAGE, "expected a number like 0.1 or 20k, found '%s'",
                          text);
    *out = value * factor;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_count_parse(uint64_t *out, const char *text, struct phema_error *err)
{
    double value = 0;
    enum phema_status status = phema_number_parse(&value, text, err);
    if (status || !(value >= 0) || value != floor(value) || value >= (double)LIMIT)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "expected a whole number like 16 or 20k, found '%s'", text);
    *out = (uint64_t)value;
    return PHEMA_OK;
}

/* ---- Sizes, exactly ---- */

/* n_digits digits whose decimal point is after the first `point` of them; without a sign. */
struct decimal {
    const char *digits; /* with a point after n_whole of them, if there are more */
    size_t n_whole, n_digits;
    long point;
};

static unsigned digit_at(const struct decimal *decimal, size_t i)
{
    return (unsigned)(decimal->digits[i < decimal->n_whole ? i : i + 1] - '0');
}

/* Parses "1.5e3". Returns the text after it, or NULL. */
static const char *read_decimal(struct decimal *out, const char *text)
{
    out->digits = text;
    out->n_whole = strspn(text, "0123456789");
    const char *end = text + out->n_whole;
    size_t n_after = *end == '.' ? strspn(end + 1, "0123456789") : 0;
    end += *end == '.' ? 1 + n_after : 0;
    out->n_digits = out->n_whole + n_after;
    out->point = (long)out->n_whole;
    if (!out->n_digits || out->n_digits > MAX_DIGITS)
        return NULL;
    if (*end != 'e' && *end != 'E')
        return end;
    bool is_negative = end[1] == '-';
    const char *exponent = end + 1 + (end[1] == '-' || end[1] == '+');
    size_t n = strspn(exponent, "0123456789");
    if (n == 0 || n > 4)
        return NULL;
    long shift = strtol(exponent, NULL, 10);
    out->point += is_negative ? -shift : shift;
    return exponent + n;
}

/* The floor of the decimal times factor, exact below the limit. Carries from the last digit to the
 * first: for a whole m, floor((m + x) / 10) = floor((m + floor x) / 10). */
static bool floor_of_product(uint64_t *out, const struct decimal *decimal, uint64_t factor)
{
    uint64_t fraction = 0, whole = 0;
    long n = (long)decimal->n_digits;
    for (long i = n - 1; i >= decimal->point && (i >= 0 || fraction); i--)
        fraction = ((i >= 0 ? digit_at(decimal, (size_t)i) * factor : 0) + fraction) / 10;
    for (long i = 0; i < decimal->point && (i < n || whole); i++) {
        whole = 10 * whole + (i < n ? digit_at(decimal, (size_t)i) : 0);
        if (whole >= LIMIT)
            return false;
    }
    if (!phema_size_mul(&whole, whole, factor) || whole >= LIMIT || fraction >= LIMIT - whole)
        return false;
    *out = whole + fraction;
    return true;
}

/* "GiB", "G", "B", "". */
static bool read_byte_suffix(double *factor, const char *text)
{
    char suffix[4];
    size_t size = strlen(text);
    if (size && text[size - 1] == 'B')
        size--;
    if (size >= sizeof(suffix))
        return false;
    memcpy(suffix, text, size);
    suffix[size] = '\0';
    return read_suffix(factor, suffix);
}

PHEMA_FALLIBLE phema_size_parse(uint64_t *out, const char *text, struct phema_error *err)
{
    struct decimal decimal;
    double factor = 0;
    uint64_t bytes = 0;
    const char *end = read_decimal(&decimal, text);
    if (!end || !read_byte_suffix(&factor, end))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "expected a size like 512M, 1.5GiB or 1e9, found '%s'", text);
    if (!floor_of_product(&bytes, &decimal, (uint64_t)factor))
        return phema_fail(err, PHEMA_ERR_USAGE, "expected a size below 8192 TiB, found '%s'", text);
    if (bytes == 0 &&
        isdigit((unsigned char)text[strspn(text, "0.")])) /* not all digits are zeros */
        return phema_fail(err, PHEMA_ERR_USAGE, "expected a size of at least one byte, found '%s'",
                          text);
    *out = bytes;
    return PHEMA_OK;
}

/* strtod also accepts hexadecimal numbers and leading blanks, so other characters are refused
 * first. */
bool phema_decimal_parse(double *out, struct phema_span text)
{
    char copy[MAX_DECIMAL];
    if (text.size == 0 || text.size >= sizeof(copy))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    if (strlen(copy) != text.size || strspn(copy, "0123456789+-.eEinfatyINFATY") != text.size)
        return false;
    char *end = NULL;
    *out = strtod(copy, &end);
    return end == copy + text.size;
}
