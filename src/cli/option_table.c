// SPDX-License-Identifier: Apache-2.0
/* option_table.c - what option tables hold: rows, names, values, choices. */
#include <assert.h>
#include <string.h>

#include "options.h"

/* ---- Rows ---- */

bool cli_is_operand(const struct cli_opt *option)
{
    return option->kind == CLI_OPERAND || option->kind == CLI_OPERANDS;
}

static void add_rows(struct cli_options *out, const struct cli_opt *rows, size_t offset,
                     unsigned flags)
{
    for (; rows->name; rows++) {
        if (rows->kind == CLI_ROWS) {
            add_rows(out, rows->rows, offset + rows->offset, flags | rows->flags);
            continue;
        }
        assert(out->n < CLI_MAX_OPTIONS);
        out->items[out->n] = *rows;
        out->items[out->n].offset += offset;
        out->items[out->n++].flags |= flags;
    }
}

void cli_list_options(struct cli_options *out, const struct cli_opt *rows)
{
    out->n = 0;
    add_rows(out, rows, 0, 0);
    out->items[out->n] = (struct cli_opt){0};
}

const struct cli_opt *cli_find_option(const struct cli_opt *options, const char *name, size_t size)
{
    for (const struct cli_opt *o = options; o->name; o++)
        if (!cli_is_operand(o) && phema_bytes_are(name, size, o->name))
            return o;
    return NULL;
}

const struct cli_opt *cli_find_letter(const struct cli_opt *options, char letter)
{
    for (const struct cli_opt *o = options; o->name; o++)
        if (o->letter && o->letter == letter)
            return o;
    return NULL;
}

/* ---- Words ---- */

bool cli_next_word(struct cli_word *word, const struct cli_line *line)
{
    word->at = word->at ? word->at + 1 + word->takes_next : 2;
    word->takes_next = false;
    word->option = NULL;
    if (word->at >= line->argc)
        return false;
    const char *text = word->text = line->argv[word->at];
    word->is_operand = word->are_options_over || text[0] != '-' || !text[1];
    word->are_options_over |= strcmp(text, "--") == 0;
    if (word->is_operand)
        return true;
    bool is_long = text[1] == '-';
    size_t size = is_long ? strcspn(text + 2, "=") : 1;
    const struct cli_opt *option = is_long ? cli_find_option(line->options.items, text + 2, size)
                                           : cli_find_letter(line->options.items, text[1]);
    bool has_value = text[is_long ? 2 + size : 2] != '\0';
    bool is_flag = option && option->kind == CLI_FLAG;
    word->takes_next = option && !is_flag && !has_value;
    word->option = is_flag && has_value ? NULL : option;
    return true;
}

size_t cli_count_operands(const struct cli_line *line)
{
    size_t n = 0;
    for (struct cli_word word = {0}; cli_next_word(&word, line);)
        n += word.is_operand;
    return n;
}

const struct cli_opt *cli_find_row(const struct cli_opt *options, size_t k, size_t n)
{
    size_t n_rows = 0;
    for (const struct cli_opt *o = options; o->name; o++)
        n_rows += cli_is_operand(o);
    for (const struct cli_opt *o = options; o->name; o++) {
        if (!cli_is_operand(o))
            continue;
        n_rows--; /* behind this one */
        size_t n_taken = o->kind == CLI_OPERANDS && n > n_rows + 1 ? n - n_rows : 1;
        if (k < n_taken)
            return o;
        k -= n_taken;
        n -= n_taken;
    }
    return NULL;
}

/* ---- Values ---- */

static bool is_same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Lists may be members of the library's structs: they are copied out as bytes. */
static bool are_same_texts(const void *a, const void *b)
{
    struct cli_texts from, to;
    memcpy(&from, a, sizeof(from));
    memcpy(&to, b, sizeof(to));
    bool are_same = from.n == to.n;
    for (size_t i = 0; are_same && i < from.n; i++)
        are_same = strcmp(from.items[i], to.items[i]) == 0;
    return are_same;
}

/* Of the kinds that rows of SHAPES_BYTES have. */
static bool is_same_value(const struct cli_opt *option, const void *a, const void *b)
{
    switch (option->kind) {
    case CLI_TEXT:
        return is_same_text(*(const char *const *)a, *(const char *const *)b);
    case CLI_TEXTS:
        return are_same_texts(a, b);
    case CLI_FLAG:
    case CLI_EITHER:
        return *(const bool *)a == *(const bool *)b;
    case CLI_CHOICE:
        return *(const unsigned *)a == *(const unsigned *)b;
    case CLI_COUNT:
    case CLI_SIZE:
        return *(const uint64_t *)a == *(const uint64_t *)b;
    default:
        assert(false);
        return false;
    }
}

const char *cli_find_difference(const struct cli_opt *rows, const void *a, const void *b)
{
    struct cli_options options;
    cli_list_options(&options, rows);
    for (const struct cli_opt *o = options.items; o->name; o++)
        if ((o->flags & CLI_SHAPES_BYTES) &&
            !is_same_value(o, (const char *)a + o->offset, (const char *)b + o->offset))
            return o->name;
    return NULL;
}

/* ---- Choices ---- */

struct phema_span cli_next_choice(const char **at)
{
    const char *start = *at, *bar = strchr(start, '|');
    *at = bar ? bar + 1 : NULL;
    return (struct phema_span){(const uint8_t *)start, bar ? (size_t)(bar - start) : strlen(start)};
}

size_t cli_find_choice(const char *choices, const char *text)
{
    size_t size = strlen(text), index = 0;
    for (const char *at = choices; at; index++) {
        struct phema_span choice = cli_next_choice(&at);
        if (choice.size == size && memcmp(choice.data, text, size) == 0)
            return index;
    }
    return SIZE_MAX;
}
