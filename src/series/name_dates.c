// SPDX-License-Identifier: Apache-2.0
/* name_dates.c - dates and times of day in names: 2024-05-28, 20240530_163824, 28-05-2024,
 * May27_15-03-11, and seconds or milliseconds since 1970. All numbers of one are a single one, which
 * counts no steps. */
#include <ctype.h>
#include <string.h>

#include "candidates.h"

/* A number of exactly so many digits from least to most, and no further digit; 0: another text. */
static size_t read_part(uint64_t *out, struct phema_span text, size_t n_digits, uint64_t least,
                        uint64_t most)
{
    *out = 0;
    if (text.size < n_digits || (text.size > n_digits && isdigit(text.data[n_digits])))
        return 0;
    for (size_t i = 0; i < n_digits; i++) {
        if (!isdigit(text.data[i]))
            return 0;
        *out = *out * 10 + (uint64_t)(text.data[i] - '0');
    }
    return *out >= least && *out <= most ? n_digits : 0;
}

static struct phema_span span_after(struct phema_span text, size_t size)
{
    return (struct phema_span){text.data + size, text.size - size};
}

/* Parts of so many digits, with the same character of separators between any two. */
static size_t read_parts(uint64_t parts[3], struct phema_span text, const size_t digits[3],
                         const char *separators)
{
    static const uint64_t most[] = {0, 0, 99, 0, 9999};
    size_t size = 0;
    for (size_t i = 0; i < 3 && digits[i]; i++) {
        if (i && (size == text.size || !strchr(separators, text.data[size]) ||
                  (i == 2 && text.data[size] != text.data[size - digits[1] - 1])))
            return 0;
        size += i > 0;
        size_t part = read_part(&parts[i], span_after(text, size), digits[i], 0, most[digits[i]]);
        if (!part)
            return 0;
        size += part;
    }
    return size;
}

static bool is_day(uint64_t year, uint64_t month, uint64_t day)
{
    return year >= 1970 && year <= 2099 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool is_clock(uint64_t hour, uint64_t minute, uint64_t second)
{
    return hour < 24 && minute < 60 && second < 60;
}

static bool is_compact_clock(uint64_t number)
{
    return is_clock(number / 10000, number / 100 % 100, number % 100);
}

static bool is_compact_day(uint64_t number)
{
    return is_day(number / 10000, number / 100 % 100, number % 100);
}

/* 163824, 16-38-24 or 16-38 behind a date; 1638 and 16 where takes_short. */
static size_t read_clock(struct phema_span text, bool takes_short)
{
    uint64_t number, parts[3] = {0, 0, 0};
    if (text.size < 2 || !strchr("-_T .:", text.data[0]))
        return 0;
    struct phema_span clock = span_after(text, 1);
    size_t size = read_part(&number, clock, 6, 0, 235959);
    if (size)
        return is_compact_clock(number) ? 1 + size : 0;
    size = read_parts(parts, clock, (const size_t[]){2, 2, 2}, "-_:.h");
    if (!size)
        size = read_parts(parts, clock, (const size_t[]){2, 2, 0}, "-_:.h");
    if (size)
        return is_clock(parts[0], parts[1], parts[2]) ? 1 + size : 0;
    if (takes_short && (size = read_part(&number, clock, 4, 0, 2359)))
        return number % 100 < 60 ? 1 + size : 0;
    size = takes_short ? read_part(&number, clock, 2, 0, 23) : 0;
    return size ? 1 + size : 0;
}

/* Three letters before the digits. */
static bool ends_with_month(const char *name, size_t at)
{
    static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    if (at < 3 || (at > 3 && isalpha((unsigned char)name[at - 4])))
        return false;
    for (size_t m = 0; months[m]; m += 3)
        if (strncasecmp(name + at - 3, months + m, 3) == 0)
            return true;
    return false;
}

/* The day of a date, without its time. */
static size_t read_day(bool *has_clock, const char *name, size_t at, struct phema_span text)
{
    uint64_t number, parts[3];
    size_t size;
    *has_clock = true;
    if ((size = read_part(&number, text, 14, 19700101000000, 20991231235959)))
        return is_compact_day(number / 1000000) && is_compact_clock(number % 1000000) ? size : 0;
    if ((size = read_part(&number, text, 12, 197001010000, 209912312359)))
        return is_compact_day(number / 10000) && is_compact_clock(number % 10000 * 100) ? size : 0;
    if ((size = read_part(&number, text, 10, 1000000000, 4000000000u)) ||
        (size = read_part(&number, text, 13, 1000000000000, 4000000000000)))
        return size; /* since 1970 */
    *has_clock = false;
    if ((size = read_part(&number, text, 8, 19700101, 20991231)))
        return is_compact_day(number) ? size : 0;
    if ((size = read_parts(parts, text, (const size_t[]){4, 2, 2}, "-_./")))
        return is_day(parts[0], parts[1], parts[2]) ? size : 0;
    if ((size = read_parts(parts, text, (const size_t[]){2, 2, 4}, "-_./")))
        return is_day(parts[2], parts[1], parts[0]) || is_day(parts[2], parts[0], parts[1]) ? size
                                                                                            : 0;
    return ends_with_month(name, at) ? read_part(&number, text, 2, 1, 31) : 0;
}

size_t name_date_size(size_t *n_letters, const char *name, size_t at, size_t end, bool takes_short)
{
    const struct phema_span text = {(const uint8_t *)name + at, end - at};
    bool has_clock = false;
    size_t size = read_day(&has_clock, name, at, text);
    *n_letters = size == 2 ? 3 : 0;
    return size && !has_clock ? size + read_clock(span_after(text, size), takes_short) : size;
}
