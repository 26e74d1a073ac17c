// SPDX-License-Identifier: Apache-2.0
/* nearest_words.c - guesses what was meant: the nearest word, or a value that the option can have. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "options.h"
#include "phema/number.h"
#include "remedy/remedy.h"

/* ---- Words ---- */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

static bool is_same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Number of letters to insert, delete or change (Levenshtein); for words of up to 31 letters. */
static size_t distance(const char *a, const char *b)
{
    size_t row[32], n = strlen(b);
    if (n >= ARRAY_LEN(row))
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j];
            row[j] =
                least(row[j] + 1, row[j - 1] + 1, diagonal + !is_same_letter(a[i - 1], b[j - 1]));
            diagonal = above;
        }
    }
    return row[n];
}

/* "jsno" for "json" */
static bool is_swapped(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && is_same_letter(a[i], b[i]))
        i++;
    return a[i] && b[i] && is_same_letter(a[i], b[i + 1]) && is_same_letter(a[i + 1], b[i]) &&
           strcasecmp(a + i + 2, b + i + 2) == 0;
}

/* "synthesise" for "synth", "sigma" for "sigma-rel" */
static bool is_start(const char *a, const char *b)
{
    size_t size_a = strlen(a), size_b = strlen(b);
    size_t shorter = size_a < size_b ? size_a : size_b;
    return shorter >= 3 && strncasecmp(a, b, shorter) == 0;
}

const char *cli_nearest(const char *word, const char *(*name)(const void *table, size_t index),
                        const void *table)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) < 5 ? 1 : strlen(word) < 8 ? 2 : 3;
    for (size_t i = 0; name(table, i); i++) {
        const char *other = name(table, i);
        bool is_near = is_start(word, other) || is_swapped(word, other);
        size_t here = is_near ? 1 : distance(word, other);
        if (here <= best_distance) {
            best_distance = here - (here > 0);
            best = other;
        }
    }
    return best;
}

struct choices {
    char names[16][32];
};

static const char *choice_name(const void *table, size_t index)
{
    const struct choices *choices = table;
    return index < ARRAY_LEN(choices->names) && choices->names[index][0] ? choices->names[index]
                                                                         : NULL;
}

void cli_suggest_choice(struct phema_error *err, const char *name, const char *words,
                        const char *text, bool has_default)
{
    struct choices choices = {.names = {""}};
    size_t n = 0;
    for (const char *at = words; at && n < ARRAY_LEN(choices.names); n++) {
        struct phema_span choice = cli_next_choice(&at);
        (void)snprintf(choices.names[n], sizeof(choices.names[n]), "%.*s", (int)choice.size,
                       (const char *)choice.data);
    }
    const char *nearest = cli_nearest(text, choice_name, &choices);
    if (nearest || has_default)
        (void)cli_suggest(err, PHEMA_ERR_USAGE, name, nearest ? nearest : choices.names[0]);
}

/* ---- Values ---- */

static bool is_valid(const struct cli_opt *option, const char *text)
{
    struct phema_error ignored = {0};
    double number = 0;
    uint64_t count = 0;
    if (option->kind == CLI_REAL)
        return !phema_number_parse(&number, text, &ignored) && isfinite(number);
    if (option->kind == CLI_SIZE ? phema_size_parse(&count, text, &ignored)
                                 : phema_count_parse(&count, text, &ignored))
        return false;
    uint64_t least = option->kind == CLI_SIZE       ? (uint64_t)1 << 20 /* its unit was lost */
                     : option->flags & CLI_POSITIVE ? 1
                                                    : 0;
    return count >= least;
}

bool cli_join_values(struct phema_strbuf *out, const struct cli_opt *option, const char *value,
                     const char *next)
{
    struct phema_arena arena = {0};
    struct phema_error ignored = {0};
    struct cli_reals reals = {0};
    double number = 0;
    bool is_list = option->kind == CLI_REALS, is_joined = false;
    bool is_number =
        option->kind == CLI_REAL || option->kind == CLI_COUNT || option->kind == CLI_SIZE;
    phema_strbuf_printf(out, "%s%s%s", value, is_list ? "," : "", next);
    if (out->is_failed)
        return false;
    if (is_list)
        is_joined = !phema_number_parse(&number, next, &ignored) &&
                    !cli_parse_reals(&reals, &arena, out->data, &ignored);
    else if (is_number)
        is_joined = isalpha((unsigned char)*next) && is_valid(option, out->data);
    phema_arena_clear(&arena);
    return is_joined;
}

/* The longest beginning of the text that is a value of its magnitude, not 1e3 of 1e30; without one the
 * option is left out. Models are counted in billions, "7b". */
static void suggest_beginning(struct phema_error *err, const struct cli_opt *option,
                              const char *text)
{
    char part[64];
    (void)snprintf(part, sizeof(part), "%s", text);
    double magnitude = strtod(text, NULL) / 2;
    char *unit = part + strcspn(part, "bB");
    if (unit > part && *unit && !unit[1] && option->kind == CLI_COUNT)
        *unit = 'G';
    for (size_t size = strlen(part); size > 0; part[--size] = '\0') {
        if (strtod(part, NULL) < magnitude)
            break;
        if (part[size - 1] != '.' && is_valid(option, part)) {
            (void)cli_suggest(err, PHEMA_ERR_USAGE, option->name, part);
            return;
        }
    }
    (void)cli_suggest(err, PHEMA_ERR_USAGE, option->name,
                      strcmp(option->name, "shard-size") == 0 ? "5GB" : "");
}

/* Five values from the first to the last number. */
static bool write_range(char *out, size_t size, double first, double last)
{
    double step = (last - first) / 4;
    return step > 0 && isfinite(step) &&
           snprintf(out, size, "%.6g:%.6g:%.6g", first, last, step) < (int)size;
}

/* Two numbers with a separator between them. */
static bool read_two(double *first, double *last, const char *text, const char *separator)
{
    char *end = NULL;
    *first = strtod(text, &end);
    if (end == text || strncmp(end, separator, strlen(separator)) != 0)
        return false;
    const char *second = end + strlen(separator);
    *last = strtod(second, &end);
    return end != second && !*end;
}

/* "0.25:0.05:0.05" goes down: the ends change places. */
static bool turn_range(char *out, size_t size, const char *text)
{
    size_t first = strcspn(text, ":"), last = text[first] ? strcspn(text + first + 1, ":") : 0;
    const char *step = text + first + 1 + last;
    return last && *step == ':' && !strchr(step + 1, ':') &&
           strtod(text, NULL) > strtod(text + first + 1, NULL) &&
           snprintf(out, size, "%.*s:%.*s:%s", (int)last, text + first + 1, (int)first, text,
                    step + 1 + (step[1] == '-')) < (int)size;
}

/* Copies a list without brackets and blanks, with commas in place of semicolons; decimal commas in
 * a range become points. */
static bool copy_list(char *out, size_t size, const char *text)
{
    size_t n = 0;
    bool is_comma_decimal = strchr(text, ':') && !strchr(text, '.');
    bool is_separated = strpbrk(text, ",;:") != NULL;
    for (const char *at = text; *at && n + 1 < size; at++) {
        if (strchr("[](){}", *at) || (*at == ' ' && is_separated))
            continue;
        out[n] = *at;
        if (*at == ';' || *at == ' ')
            out[n] = ',';
        else if (*at == ',' && is_comma_decimal)
            out[n] = '.';
        n++;
    }
    while (n > 0 && out[n - 1] == ',')
        n--;
    out[n] = '\0';
    return n > 0 && strlen(text) < size;
}

/* Guesses the list that is meant by "0.05..0.25", "0.05-0.25", "0.05:0.25", "10%", "0.1;0.2",
 * "[0.1, 0.2]" or "0.1,". */
static bool guess_list(char *out, size_t size, const char *text)
{
    double first = 0, last = 0;
    char *end = NULL;
    if (read_two(&first, &last, text, "..") || read_two(&first, &last, text, ":") ||
        read_two(&first, &last, text, "-"))
        return write_range(out, size, first, last);
    if (turn_range(out, size, text))
        return true;
    first = strtod(text, &end);
    if (end != text && strcmp(end, "%") == 0)
        return snprintf(out, size, "%.6g", first / 100) < (int)size;
    return copy_list(out, size, text);
}

static void suggest_list(struct phema_error *err, const struct cli_opt *option, const char *text)
{
    struct phema_arena arena = {0};
    struct phema_error ignored = {0};
    struct cli_reals reals = {0};
    char guess[256];
    bool is_width = strcmp(option->name, "sigma-rel") == 0;
    bool is_time = strcmp(option->name, "at") == 0;
    bool is_list = !(is_time && strchr(text, '%')) && guess_list(guess, sizeof(guess), text) &&
                   !cli_parse_reals(&reals, &arena, guess, &ignored);
    for (size_t i = 0; is_list && i < reals.n && is_width; i++)
        is_list = reals.items[i] > 0 && reals.items[i] < 0.289;
    const char *usual = is_width ? "0.1" : strcmp(option->name, "gamma") == 0 ? "6.94" : "";
    (void)cli_suggest(err, PHEMA_ERR_USAGE, option->name, is_list ? guess : usual);
    phema_arena_clear(&arena);
}

void cli_suggest_value(struct phema_error *err, const struct cli_opt *option, const char *text)
{
    if (err->n_changes)
        return;
    /* without the option, a CLI_WORD is none of the words, unless one is "auto" */
    bool has_default = option->kind != CLI_WORD || strncmp(option->value, "auto", 4) == 0;
    if (option->kind == CLI_WORD || option->kind == CLI_CHOICE || option->kind == CLI_EITHER)
        cli_suggest_choice(err, option->name, option->value, text, has_default);
    else if (option->kind == CLI_REAL || option->kind == CLI_COUNT || option->kind == CLI_SIZE)
        suggest_beginning(err, option, text);
    else if (option->kind == CLI_REALS)
        suggest_list(err, option, text);
}
