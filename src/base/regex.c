// SPDX-License-Identifier: Apache-2.0
/* regex.c - bounded regular expressions (the only user of PCRE2). PCRE2's own limits bound
 * matching, so that no expression runs for ever on a hostile name. */
#include "phema/regex.h"

#include <stdlib.h>

#include "phema/strbuf.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* subjects are names: a line feed is an ordinary byte of a name */
#define NAME_OPTIONS (PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY)

struct phema_regex {
    pcre2_code *code;
    pcre2_match_data *match;
};

PHEMA_FALLIBLE phema_regex_compile(struct phema_regex **out, const char *expression,
                                   struct phema_error *err)
{
    struct phema_regex *regex = calloc(1, sizeof(*regex));
    if (!regex)
        return phema_fail_memory(err);
    int code = 0;
    PCRE2_SIZE at = 0;
    regex->code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED, NAME_OPTIONS, &code,
                                &at, NULL);
    if (!regex->code) {
        PCRE2_UCHAR text[256];
        (void)pcre2_get_error_message(code, text, sizeof(text));
        phema_regex_free(regex);
        if (code == PCRE2_ERROR_HEAP_FAILED)
            return phema_fail_memory(err);
        return phema_fail(err, PHEMA_ERR_USAGE, "regular expression '%s': %s at character %zu",
                          expression, (const char *)text, (size_t)at);
    }
    regex->match = pcre2_match_data_create_from_pattern(regex->code, NULL);
    if (!regex->match) {
        phema_regex_free(regex);
        return phema_fail_memory(err);
    }
    *out = regex;
    return PHEMA_OK;
}

void phema_regex_free(struct phema_regex *regex)
{
    if (!regex)
        return;
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    free(regex);
}

bool phema_regex_has_group(const struct phema_regex *regex, const char *group)
{
    return pcre2_substring_number_from_name(regex->code, (PCRE2_SPTR)group) > 0;
}

PHEMA_FALLIBLE phema_regex_match(struct phema_regex *regex, const char *subject, size_t size,
                                 bool *is_match, struct phema_error *err)
{
    int result = pcre2_match(regex->code, (PCRE2_SPTR)subject, size, 0, 0, regex->match, NULL);
    *is_match = result > 0;
    if (result > 0 || result == PCRE2_ERROR_NOMATCH)
        return PHEMA_OK;
    if (result == PCRE2_ERROR_NOMEMORY)
        return phema_fail_memory(err);
    PCRE2_UCHAR text[256];
    (void)pcre2_get_error_message(result, text, sizeof(text));
    struct phema_name_buffer shown;
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "a regular expression cannot be searched for in '%s': %s; write it simpler",
                      phema_name_escape(&shown, subject, size), (const char *)text);
}

struct phema_span phema_regex_numbered(const struct phema_regex *regex, const char *subject,
                                       unsigned number)
{
    if (number >= pcre2_get_ovector_count(regex->match))
        return (struct phema_span){NULL, 0};
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(regex->match);
    size_t at = 2 * (size_t)number;
    PCRE2_SIZE start = ends[at], end = ends[at + 1];
    if (start == PCRE2_UNSET || end < start)
        return (struct phema_span){NULL, 0};
    return (struct phema_span){(const uint8_t *)subject + start, end - start};
}

struct phema_span phema_regex_group(const struct phema_regex *regex, const char *subject,
                                    const char *group)
{
    int number = pcre2_substring_number_from_name(regex->code, (PCRE2_SPTR)group);
    return number > 0 ? phema_regex_numbered(regex, subject, (unsigned)number)
                      : (struct phema_span){NULL, 0};
}
