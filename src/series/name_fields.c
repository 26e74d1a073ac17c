// SPDX-License-Identifier: Apache-2.0
/* name_fields.c - cuts a name into fields: the digits, and the text before them, whose last word says
 * what is counted. Dates, and numbers with a unit, are fields as a whole. */
#include "name_fields.h"

#include <ctype.h>
#include <string.h>

#define MOST_DIGITS 15
#define LEAST_HASH  ((size_t)7) /* letters and digits */

size_t name_stem_size(const char *base)
{
    const char *extension = NULL;
    size_t size = strlen(base);
    if (phema_format_from_path(&extension, base, PHEMA_NAMES_SNAPSHOT))
        size -= strlen(extension);
    return size;
}

/* The size of "0.3k" at a place in a name, whose number is whole; 0: another text is there. */
static size_t read_unit(struct field *field, const char *text, size_t size)
{
    static const char *const words[] = {"tok", "step", "it"};
    size_t digits = 0, end = 0;
    while (digits < size && isdigit((unsigned char)text[digits]))
        digits++;
    end = digits;
    if (end + 1 < size && text[end] == '.' && isdigit((unsigned char)text[end + 1]))
        for (end++; end < size && isdigit((unsigned char)text[end]);)
            end++;
    if (end == size || end > MOST_DIGITS || !strchr("kKmMbBGT", text[end]))
        return 0;
    size_t after = end + 1;
    bool ends_word = after == size || !isalnum((unsigned char)text[after]);
    for (size_t w = 0; w < ARRAY_LEN(words) && !ends_word; w++)
        ends_word = size - after >= strlen(words[w]) &&
                    memcmp(text + after, words[w], strlen(words[w])) == 0;
    double number = 0;
    if (!ends_word ||
        !name_number_read(&number, (struct phema_span){(const uint8_t *)text, after}) ||
        number != floor(number) || number >= 0x1p53)
        return 0;
    field->number = (uint64_t)number;
    field->is_count = field->has_unit = true;
    return after;
}

/* The digits of the exponent of "5e3", a word of its own, behind the digits from at to end; 0: it is
 * none. */
static size_t exponent_digits(const char *base, size_t at, size_t end, size_t stem_size)
{
    size_t last = end + 1;
    if (end >= stem_size || tolower((unsigned char)base[end]) != 'e' ||
        (at && isalnum((unsigned char)base[at - 1])))
        return 0;
    while (last < stem_size && isdigit((unsigned char)base[last]))
        last++;
    return last < stem_size && isalnum((unsigned char)base[last]) ? 0 : last - end - 1;
}

/* By the word before the digits: steps, then anything, then epochs; parts of a checkpoint and
 * settings are no times. */
static int rank_of_word(const struct field *field)
{
    static const struct {
        const char *word;
        int rank;
    } words[] = {
        {"step", 0},   {"steps", 0},  {"iter", 0},   {"iteration", 0}, {"it", 0},
        {"ba", 0},     {"batch", 0},  {"update", 0}, {"updates", 0},   {"kimg", 0},
        {"nimg", 0},   {"img", 0},    {"epoch", 2},  {"epochs", 2},    {"ep", 2},
        {"rank", -1},  {"part", -1},  {"shard", -1}, {"version", -1},  {"v", -1},
        {"seed", -1},  {"fold", -1},  {"run", -1},   {"exp", -1},      {"trial", -1},
        {"loss", -1},  {"acc", -1},   {"score", -1}, {"fid", -1},      {"lr", -1},
        {"decay", -1}, {"sigma", -1},
    };
    size_t end = field->before_size;
    while (end > 0 && !isalpha((unsigned char)field->before[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && isalpha((unsigned char)field->before[begin - 1]))
        begin--;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strlen(words[i].word) == end - begin &&
            strncasecmp(field->before + begin, words[i].word, end - begin) == 0)
            /* "model:v3" is the fourth one that was saved */
            return words[i].rank < 0 && begin && field->before[begin - 1] == ':' ? 2
                                                                                 : words[i].rank;
    return 1;
}

int name_word_rank(const char *name, size_t at)
{
    size_t begin = at;
    while (begin > 0 && !isdigit((unsigned char)name[begin - 1]))
        begin--;
    return rank_of_word(&(struct field){.before = name + begin, .before_size = at - begin});
}

const char *name_unit(const char *name, size_t at)
{
    static const struct {
        const char *word, *unit;
    } words[] = {{"epoch", "epochs"},  {"epochs", "epochs"},  {"ep", "epochs"},
                 {"kimg", "kimg"},     {"img", "images"},     {"nimg", "images"},
                 {"images", "images"}, {"tok", "tokens"},     {"token", "tokens"},
                 {"tokens", "tokens"}, {"sample", "samples"}, {"samples", "samples"}};
    size_t before = at, end = at + strspn(name + at, "0123456789.");
    end += name[end] && strchr("kKMBGT", name[end]) && name[end + 1] != 'i';
    while (before > 0 && strchr("-_=. ", name[before - 1]))
        before--;
    size_t begin = before, behind = end;
    while (begin > 0 && isalpha((unsigned char)name[begin - 1]))
        begin--;
    while (isalpha((unsigned char)name[end]))
        end++;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t size = strlen(words[i].word);
        if ((size == before - begin && strncasecmp(name + begin, words[i].word, size) == 0) ||
            (size == end - behind && strncasecmp(name + behind, words[i].word, size) == 0))
            return words[i].unit;
    }
    return NULL;
}

int field_rank(const struct field *field)
{
    return field->date ? -1 : rank_of_word(field);
}

/* Makes the date at a place a field. The word "step" before it says that it is none. */
static size_t read_date(struct field *field, const char *name, size_t at, size_t end,
                        bool takes_short)
{
    size_t n_letters = 0;
    size_t size = name_date_size(&n_letters, name, at, end, takes_short);
    int rank = rank_of_word(field);
    bool is_number = (size == 10 || size == 13) && strspn(name + at, "0123456789") == size;
    if (!size || rank == 0 || rank == 2 || (is_number && name_unit(name, at))) /* tokens */
        return 0;
    field->before_size -= n_letters;
    field->date = name + at - n_letters;
    field->date_size = size + n_letters;
    for (size_t i = at; i < at + size; i++) /* equal where all digits are */
        if (isdigit((unsigned char)name[i]) && field->number < UINT64_MAX / 100)
            field->number = field->number * 10 + (uint64_t)(name[i] - '0');
    field->is_count = true;
    return size;
}

/* The word around a place of a name that is a hash: hexadecimal, with digits on both sides of letters or
 * the reverse. "ba1000" and "5e3" are none. 0: it is none.
 *   begin  out: where it begins */
static size_t find_hash(size_t *begin, const char *name, size_t at, size_t stem_size)
{
    size_t end = at, n_changes = 0;
    for (*begin = at; *begin > 0 && isalnum((unsigned char)name[*begin - 1]);)
        --*begin;
    for (end = *begin; end < stem_size && isxdigit((unsigned char)name[end]); end++)
        n_changes += end > *begin &&
                     !isdigit((unsigned char)name[end]) != !isdigit((unsigned char)name[end - 1]);
    bool is_word = end == stem_size || !isalnum((unsigned char)name[end]);
    return is_word && end - *begin >= LEAST_HASH && n_changes > 1 ? end : 0;
}

void name_cut(struct numbered_name *out, const char *base, const char *label, unsigned reading)
{
    *out = (struct numbered_name){.base = base, .label = label, .stem_size = name_stem_size(base)};
    size_t begin = 0, at = 0;
    while (at < out->stem_size && out->n_fields < MOST_FIELDS) {
        if (!isdigit((unsigned char)base[at])) {
            at++;
            continue;
        }
        struct field *field = &out->fields[out->n_fields++];
        *field = (struct field){.before = base + begin, .before_size = at - begin};
        bool takes_hashes = reading & READ_HASHES;
        size_t hash = 0, hash_end = takes_hashes ? find_hash(&hash, base, at, out->stem_size) : 0;
        if (hash_end) {
            field->before_size = hash - begin;
            field->is_hash = true;
            begin = at = hash_end;
            continue;
        }
        size_t whole = reading & READ_DATES
                           ? read_date(field, base, at, out->stem_size, reading & READ_SHORT_TIMES)
                           : 0;
        size_t end = at;
        while (end < out->stem_size && isdigit((unsigned char)base[end]))
            end++;
        bool is_before_hash = takes_hashes && end < out->stem_size && base[end] == '.' &&
                              find_hash(&hash, base, end + 1, out->stem_size);
        if (!whole && !is_before_hash)
            whole = read_unit(field, base + at, out->stem_size - at);
        if (whole) {
            begin = at += whole;
            continue;
        }
        for (size_t i = at; i < end && i - at < MOST_DIGITS; i++)
            field->number = field->number * 10 + (uint64_t)(base[i] - '0');
        bool is_after_point =
            at >= 2 && base[at - 1] == '.' && isdigit((unsigned char)base[at - 2]);
        bool is_before_point = !is_before_hash && end + 1 < out->stem_size && base[end] == '.' &&
                               isdigit((unsigned char)base[end + 1]);
        size_t power = exponent_digits(base, at, end, out->stem_size);
        field->is_count = end - at <= MOST_DIGITS && !power &&
                          ((reading & READ_FRACTIONS) || (!is_after_point && !is_before_point));
        begin = at = power ? end + 1 + power : end;
    }
}

bool field_has_text(const struct field *a, const struct field *b)
{
    return a->before_size == b->before_size && memcmp(a->before, b->before, a->before_size) == 0;
}

const struct field *name_find_field(const struct numbered_name *name, const struct field *like,
                                    unsigned nth)
{
    for (size_t f = 0; f < name->n_fields; f++)
        if (field_has_text(&name->fields[f], like) && nth-- == 0)
            return &name->fields[f];
    return NULL;
}
