// SPDX-License-Identifier: Apache-2.0
/* number.c - numbers as users write them. The locale has no say: the program never sets one. */
#include "phema/number.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_suffix(double *factor, const char *suffix)
{
    static const struct {
        const char *name;
        double factor;
    } known[] = {{"", 1},     {"k", 1e3},     {"K", 1e3},        {"M", 1e6},          {"G", 1e9},
                 {"T", 1e12}, {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}};
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
    /* strtod would also take hexadecimal and leading space */
    bool is_plain = isdigit((unsigned char)*text) || strchr("+-.nN", *text);
    double value = strtod(text, &end);
    if (!is_plain || end == text || !read_suffix(&factor, end) || strpbrk(text, "xX"))
        return phema_fail(err, PHEMA_ERR_USAGE, "'%s' is no number; expected one like 0.1 or 20k",
                          text);
    *out = value * factor;
    return PHEMA_OK;
}

PHEMA_FALLIBLE phema_count_parse(uint64_t *out, const char *text, struct phema_error *err)
{
    double value = 0;
    enum phema_status status = phema_number_parse(&value, text, err);
    if (status || !(value >= 0) || value != floor(value) || value >= 9007199254740992.0)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "'%s' is no count; expected a whole number like 16 or 20k", text);
    *out = (uint64_t)value;
    return PHEMA_OK;
}
