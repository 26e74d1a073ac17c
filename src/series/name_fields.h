/* name_fields.h - a name of a file, cut into its numbers and the text before each. */
#ifndef SERIES_NAME_FIELDS_H
#define SERIES_NAME_FIELDS_H

#include "candidates.h"

#define MOST_FIELDS 16

struct field {
    const char *before; /* the text from the last digits, or the start of the name, ... */
    size_t before_size;
    uint64_t number;
    bool is_count;    /* no part of a decimal fraction, and not too long */
    bool has_unit;    /* the number is written as 300k or 1.2M */
    bool is_hash;     /* all of a word such as "7a53928f" */
    const char *date; /* the text of a whole date, whose first digits are the number; NULL: none */
    size_t date_size;
};

struct numbered_name {
    const char *base;
    const char *label; /* with the folder */
    size_t stem_size;  /* without the extension */
    struct field fields[MOST_FIELDS];
    size_t n_fields;
};

/* Of name_cut. */
enum reading {
    READ_FRACTIONS = 1, /* both numbers of "50.1" are counts */
    READ_DATES = 2,
    READ_SHORT_TIMES = 4, /* "_16" behind a date is an hour */
    READ_HASHES = 8       /* "7a53928f" is one word, which may begin with digits */
};

/* base, label: of the name; borrowed. reading: of enum reading */
void name_cut(struct numbered_name *out, const char *base, const char *label, unsigned reading);

bool field_has_text(const struct field *a, const struct field *b);
/* The nth field of a name after the text before like; NULL: it has none. */
const struct field *name_find_field(const struct numbered_name *name, const struct field *like,
                                    unsigned nth);
/* By the word before the digits: lower is likelier a time, negative is none. */
int field_rank(const struct field *field);

#endif
