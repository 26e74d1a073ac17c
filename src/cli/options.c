// SPDX-License-Identifier: Apache-2.0
/* options.c - parses argv into a verb's struct by its option table, and prints --help from it. */
#include "options.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "phema/number.h"

struct parse {
    const struct cli_verb *verb;
    const struct cli_opt *options; /* [n] of the verb, then a name of NULL */
    bool *is_given;                /* [n] */
    struct cli_common *common;
    char *values;
    const struct cli_opt *next_operand;
    struct phema_strbuf repeated;
    int argc;
    char **argv;
};

static void *field(const struct parse *parse, const struct cli_opt *option)
{
    return parse->values + option->offset;
}

/* ---- Unknown words ---- */

/* Operands are no options: each gets a name that is near to no word. */
static const char *option_name(const void *table, size_t index)
{
    const struct cli_opt *option = (const struct cli_opt *)table + index;
    return option->name && cli_is_operand(option) ? "<operand>" : option->name;
}

/* Names that other programs give to options; NULL: none. */
static const char *find_synonym(const char *name)
{
    static const char *const synonyms[][2] = {{"std", "sigma-rel"},
                                              {"stds", "sigma-rel"},
                                              {"outstd", "sigma-rel"},
                                              {"sigma", "sigma-rel"},
                                              {"sigmas", "sigma-rel"}};
    for (size_t i = 0; i < ARRAY_LEN(synonyms); i++)
        if (strcmp(name, synonyms[i][0]) == 0)
            return synonyms[i][1];
    return NULL;
}

static bool has_operand(const struct parse *parse, const char *name)
{
    for (const struct cli_opt *o = parse->options; o->name; o++)
        if (cli_is_operand(o) && strcmp(o->name, name) == 0)
            return true;
    return false;
}

/* "--sigma=0.1" becomes "--sigma-rel=0.1" */
static void suggest_name(const struct parse *parse, int at, const char *name,
                         struct phema_error *err)
{
    const char *equals = strchr(parse->argv[at], '=');
    struct phema_strbuf word = {0};
    phema_strbuf_printf(&word, "--%s%s", name, equals ? equals : "");
    if (!word.is_failed)
        cli_suggest_word(err, parse->argc, parse->argv, at, word.data);
    phema_strbuf_clear(&word);
}

/* name: without dashes and value */
static enum phema_status fail_unknown(const struct parse *parse, int at, const char *name,
                                      struct phema_error *err)
{
    const char *argument = parse->argv[at], *verb = parse->verb->name;
    const char *synonym = find_synonym(name);
    bool is_letter = argument[0] == '-' && argument[1] != '-';
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE, "%s: unknown option '%s'", verb, argument);
    if (is_letter && argument[1] == 'o' && has_operand(parse, "OUT")) {
        status = phema_fail(err, status, "%s: unknown option '%s'; OUT is the last argument", verb,
                            argument);
        cli_suggest_out_last(err, parse->argc, parse->argv, at);
        return status;
    }
    const char *nearest = synonym && cli_find_option(parse->options, synonym, strlen(synonym))
                              ? synonym
                          : is_letter ? NULL
                                      : cli_nearest(name, option_name, parse->options);
    if (nearest)
        suggest_name(parse, at, nearest, err);
    else
        phema_error_set_remedy(err, "posthoc-ema %s --help", verb);
    return status;
}

/* ---- Values ---- */

/* Lists may be members of the library's structs: they are copied in and out as bytes. */
static enum phema_status add_text(void *list, struct phema_arena *arena, const char *text,
                                  struct phema_error *err)
{
    struct cli_texts texts;
    memcpy(&texts, list, sizeof(texts));
    texts.items = phema_arena_grow(arena, texts.items, texts.n, sizeof(*texts.items));
    if (!texts.items)
        return phema_fail_memory(err);
    texts.items[texts.n++] = text;
    memcpy(list, &texts, sizeof(texts));
    return PHEMA_OK;
}

static enum phema_status add_reals(void *list, struct phema_arena *arena, const char *text,
                                   struct phema_error *err)
{
    struct cli_reals reals;
    memcpy(&reals, list, sizeof(reals));
    enum phema_status status = cli_parse_reals(&reals, arena, text, err);
    if (!status)
        memcpy(list, &reals, sizeof(reals));
    return status;
}

/* Appends the words that reproduce the option in a provenance. */
static void repeat(struct phema_strbuf *out, const struct cli_opt *option, const char *text)
{
    if (out->size)
        phema_strbuf_puts(out, " ");
    if (cli_is_operand(option)) {
        cli_quote_operand(out, text);
        return;
    }
    phema_strbuf_printf(out, "--%s%s", option->name, option->kind == CLI_FLAG ? "" : " ");
    if (option->kind != CLI_FLAG)
        cli_shell_quote(out, text);
}

/* Dtypes as PyTorch and others write them. */
static const char *usual_name(const char *text)
{
    static const char *const names[][2] = {
        {"fp16", "f16"},      {"float16", "f16"}, {"half", "f16"},
        {"bfloat16", "bf16"}, {"fp32", "f32"},    {"float32", "f32"},
        {"float", "f32"},     {"fp64", "f64"},    {"float64", "f64"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(text, names[i][0]) == 0)
            return names[i][1];
    return text;
}

static enum phema_status read_choice(void *value, const struct cli_opt *option, const char *text,
                                     struct phema_error *err)
{
    size_t choice = cli_find_choice(option->value, text);
    if (choice == SIZE_MAX)
        choice = cli_find_choice(option->value, usual_name(text));
    if (choice == SIZE_MAX)
        return phema_fail(err, PHEMA_ERR_USAGE, "'%s' is not one of %s", text, option->value);
    if (option->kind == CLI_WORD)
        *(const char **)value = text;
    else if (option->kind == CLI_CHOICE)
        *(unsigned *)value = (unsigned)choice;
    else
        *(bool *)value = (choice == 1) != ((option->flags & CLI_NEGATED) != 0);
    return PHEMA_OK;
}

static enum phema_status read_value(void *value, const struct cli_opt *option, const char *text,
                                    struct phema_arena *arena, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)value = !(option->flags & CLI_NEGATED);
        return PHEMA_OK;
    case CLI_OPERAND:
    case CLI_TEXT:
        *(const char **)value = text;
        return PHEMA_OK;
    case CLI_OPERANDS:
    case CLI_TEXTS:
        return add_text(value, arena, text, err);
    case CLI_WORD:
    case CLI_CHOICE:
    case CLI_EITHER:
        return read_choice(value, option, text, err);
    case CLI_REAL:
        status = phema_number_parse(value, text, err);
        if (!status && isnan(*(double *)value))
            return phema_fail(err, PHEMA_ERR_USAGE, "expected a number, found '%s'", text);
        return status;
    case CLI_REALS:
        return add_reals(value, arena, text, err);
    case CLI_COUNT:
    case CLI_SIZE:
        status = option->kind == CLI_SIZE ? phema_size_parse(value, text, err)
                                          : phema_count_parse(value, text, err);
        if (!status && (option->flags & CLI_POSITIVE) && *(uint64_t *)value == 0)
            return phema_fail(err, PHEMA_ERR_USAGE, "expected at least 1, found '%s'", text);
        return status;
    case CLI_ROWS: /* cli_list_options resolves them */
        break;
    }
    return PHEMA_BUG;
}

static enum phema_status set_value(struct parse *parse, const struct cli_opt *option,
                                   const char *text, struct phema_error *err)
{
    enum phema_status status =
        read_value(field(parse, option), option, text, &parse->common->arena, err);
    if (status && cli_is_operand(option))
        return status;
    if (status) {
        cli_suggest_value(err, option, text);
        return phema_fail_in(err, status, "--%s", option->name);
    }
    parse->is_given[option - parse->options] = true;
    if (option->flags & CLI_SHAPES_BYTES)
        repeat(&parse->repeated, option, text);
    return PHEMA_OK;
}

/* ---- Arguments ---- */

static enum phema_status fail_with_value(const struct parse *parse, int at,
                                         const struct cli_opt *option, struct phema_error *err)
{
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE, "--%s: takes no value", option->name);
    struct phema_strbuf word = {0};
    phema_strbuf_printf(&word, "--%s", option->name);
    if (!word.is_failed)
        cli_suggest_word(err, parse->argc, parse->argv, at, word.data);
    phema_strbuf_clear(&word);
    return status;
}

/* argument: the option as it was written */
static enum phema_status fail_without_value(const struct cli_opt *option, const char *argument,
                                            struct phema_error *err)
{
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE, "%s: expected %s after it", argument, option->value);
    cli_suggest_value(err, option, "");
    return status;
}

static enum phema_status parse_long(struct parse *parse, int argc, char **argv, int *at,
                                    struct phema_error *err)
{
    const char *argument = argv[*at];
    const char *name = argument + 2;
    const char *equals = strchr(name, '=');
    size_t size = equals ? (size_t)(equals - name) : strlen(name);
    const struct cli_opt *option = cli_find_option(parse->options, name, size);
    if (!option)
        return fail_unknown(parse, *at, name, err);
    if (option->kind == CLI_FLAG) {
        if (equals)
            return fail_with_value(parse, *at, option, err);
        return set_value(parse, option, "", err);
    }
    if (equals)
        return set_value(parse, option, equals + 1, err);
    if (*at + 1 >= argc)
        return fail_without_value(option, argument, err);
    return set_value(parse, option, argv[++*at], err);
}

/* -j2, -j 2, -qv */
static enum phema_status parse_letters(struct parse *parse, int argc, char **argv, int *at,
                                       struct phema_error *err)
{
    const char *argument = argv[*at];
    for (const char *letter = argument + 1; *letter; letter++) {
        const struct cli_opt *option = cli_find_letter(parse->options, *letter);
        if (!option)
            return fail_unknown(parse, *at, argument, err);
        if (option->kind == CLI_FLAG) {
            enum phema_status status = set_value(parse, option, "", err);
            if (status)
                return status;
            parse->common->is_short_help |= *letter == 'h';
            continue;
        }
        if (letter[1])
            return set_value(parse, option, letter + 1, err);
        if (*at + 1 >= argc)
            return fail_without_value(option, argument, err);
        return set_value(parse, option, argv[++*at], err);
    }
    return PHEMA_OK;
}

static enum phema_status fail_unexpected(const struct parse *parse, const char *argument,
                                         struct phema_error *err)
{
    const char *advice =
        has_operand(parse, "SNAPSHOTS") ? "; SNAPSHOTS is one directory, manifest or @list" : "";
    enum phema_status status = phema_fail(err, PHEMA_ERR_USAGE, "%s: unexpected argument '%s'%s",
                                          parse->verb->name, argument, advice);
    cli_suggest_operands(err, parse->verb, parse->argc, parse->argv);
    return status;
}

static enum phema_status parse_operand(struct parse *parse, const char *argument,
                                       struct phema_error *err)
{
    const struct cli_opt *option = parse->next_operand;
    while (option->name && !cli_is_operand(option))
        option++;
    if (!option->name)
        return fail_unexpected(parse, argument, err);
    parse->next_operand = option->kind == CLI_OPERANDS ? option : option + 1;
    return set_value(parse, option, argument, err);
}

/* A name for an output can be proposed; only the user knows the inputs. */
static enum phema_status fail_missing(const struct parse *parse, const struct cli_opt *operand,
                                      struct phema_error *err)
{
    const struct cli_opt *widths = cli_find_option(parse->options, "sigma-rel", 9);
    struct cli_reals reals = {0};
    if (widths)
        memcpy(&reals, field(parse, widths), sizeof(reals));
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE, "%s: %s is missing", parse->verb->name, operand->name);
    if (strcmp(operand->name, "OUT") == 0 && has_operand(parse, "SNAPSHOTS"))
        phema_error_set_remedy(err, "OUT=%s", reals.n > 1 ? "averages/" : "out.safetensors");
    else if (strcmp(operand->name, "DIR") == 0)
        phema_error_set_remedy(err, "DIR=demo");
    else
        phema_error_set_remedy(err, "posthoc-ema %s -h", parse->verb->name);
    return status;
}

static enum phema_status check_operands(const struct parse *parse, struct phema_error *err)
{
    for (const struct cli_opt *o = parse->next_operand; o->name; o++) {
        bool is_missing =
            (o->kind == CLI_OPERAND && !(o->flags & CLI_OPTIONAL)) ||
            (o->kind == CLI_OPERANDS && ((const struct cli_texts *)field(parse, o))->n == 0);
        if (is_missing)
            return fail_missing(parse, o, err);
    }
    return PHEMA_OK;
}

static enum phema_status parse_arguments(struct parse *parse, int argc, char **argv,
                                         struct phema_error *err)
{
    bool are_options_over = false;
    for (int i = 2; i < argc; i++) {
        const char *argument = argv[i];
        enum phema_status status = PHEMA_OK;
        if (are_options_over || argument[0] != '-' || !argument[1])
            status = parse_operand(parse, argument, err);
        else if (strcmp(argument, "--") == 0)
            are_options_over = true;
        else if (argument[1] == '-')
            status = parse_long(parse, argc, argv, &i, err);
        else
            status = parse_letters(parse, argc, argv, &i, err);
        if (parse->common->is_help) /* even if other options are wrong or missing */
            return PHEMA_OK;
        if (status)
            return status;
    }
    return check_operands(parse, err);
}

static enum phema_status keep_command(struct parse *parse, int argc, char **argv,
                                      struct phema_error *err)
{
    struct cli_common *common = parse->common;
    const struct phema_strbuf *repeated = &parse->repeated;
    struct phema_strbuf words = {0};
    phema_strbuf_printf(&words, "posthoc-ema %s", parse->verb->name);
    size_t size = words.size;
    for (int i = 2; i < argc; i++) {
        phema_strbuf_puts(&words, " ");
        cli_shell_quote(&words, argv[i]);
    }
    if (!words.is_failed && !repeated->is_failed) {
        common->command = phema_arena_copy(&common->arena, words.data, size);
        common->command_tail =
            phema_arena_copy(&common->arena, words.data + size, words.size - size);
        common->repeated_options = phema_arena_copy(&common->arena, repeated->data, repeated->size);
    }
    phema_strbuf_clear(&words);
    return common->command && common->command_tail && common->repeated_options
               ? PHEMA_OK
               : phema_fail_memory(err);
}

PHEMA_FALLIBLE cli_parse(const struct cli_verb *verb, void *values, int argc, char **argv,
                         struct phema_error *err)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    if (verb->defaults)
        memcpy(values, verb->defaults, verb->values_size);
    struct cli_common *common = values;
    struct parse parse = {.verb = verb,
                          .options = options.items,
                          .is_given = phema_arena_array(&common->arena, options.n, sizeof(bool)),
                          .common = common,
                          .values = values,
                          .next_operand = options.items,
                          .argc = argc,
                          .argv = argv};
    if (!parse.is_given)
        return phema_fail_memory(err);
    common->verb = verb;
    common->is_given = parse.is_given;
    for (const struct cli_opt *o = options.items; o->name; o++) {
        if (o->kind == CLI_REAL)
            *(double *)field(&parse, o) = PHEMA_UNKNOWN;
        if (o->flags & CLI_INITIALLY_TRUE)
            *(bool *)field(&parse, o) = true;
    }

    enum phema_status status = parse_arguments(&parse, argc, argv, err);
    if (!status)
        status = keep_command(&parse, argc, argv, err);
    phema_strbuf_clear(&parse.repeated);
    return status;
}

bool cli_is_given(const struct cli_common *common, const char *name)
{
    struct cli_options options;
    cli_list_options(&options, common->verb);
    for (size_t i = 0; i < options.n; i++)
        if (common->is_given[i] && strcmp(options.items[i].name, name) == 0)
            return true;
    return false;
}

/* ---- Help ---- */

static void write_usage(struct phema_strbuf *out, const struct cli_verb *verb,
                        const struct cli_options *options)
{
    phema_strbuf_printf(out, "usage: posthoc-ema %s [options]", verb->name);
    for (const struct cli_opt *o = options->items; o->name; o++) {
        if (!cli_is_operand(o))
            continue;
        bool is_optional = (o->flags & CLI_OPTIONAL) != 0;
        phema_strbuf_printf(out, " %s%s%s%s", is_optional ? "[" : "", o->name,
                            o->kind == CLI_OPERANDS ? "..." : "", is_optional ? "]" : "");
    }
    phema_strbuf_printf(out, "\n\n%s\n", verb->summary);
}

#define HELP_COLUMN 30

/* Words of a choice; lines end between words. */
static void write_words(struct phema_strbuf *out, size_t line_start, const char *words)
{
    for (const char *at = words; at;) {
        struct phema_span word = cli_next_choice(&at);
        if (out->size - line_start + word.size + 1 > 80) {
            phema_strbuf_printf(out, "\n%*s", 10, "");
            line_start = out->size - 10;
        }
        phema_strbuf_append(out, (const char *)word.data, word.size);
        if (at)
            phema_strbuf_puts(out, "|");
    }
}

static void write_option(struct phema_strbuf *out, const struct cli_opt *option)
{
    size_t start = out->size;
    if (cli_is_operand(option))
        phema_strbuf_printf(out, "  %s", option->name);
    else if (option->letter)
        phema_strbuf_printf(out, "  -%c, --%s", option->letter, option->name);
    else
        phema_strbuf_printf(out, "      --%s", option->name);
    if (option->value && !cli_is_operand(option)) {
        phema_strbuf_puts(out, " ");
        write_words(out, start, option->value);
    }
    size_t width = out->size - start;
    if (width + 2 > HELP_COLUMN)
        phema_strbuf_printf(out, "\n%*s", HELP_COLUMN, "");
    else
        phema_strbuf_printf(out, "%*s", (int)(HELP_COLUMN - width), "");
    for (const char *at = option->help; *at; at++) {
        phema_strbuf_append(out, at, 1);
        if (*at == '\n')
            phema_strbuf_printf(out, "%*s", HELP_COLUMN, "");
    }
    phema_strbuf_puts(out, "\n");
}

/* The short help of a verb with few options has them all. */
#define SHORT_HELP 16

static bool is_shown(const struct cli_opt *option, bool is_short)
{
    return !is_short || cli_is_operand(option) || (option->flags & CLI_EVERYDAY);
}

void cli_write_help(struct phema_strbuf *out, const struct cli_verb *verb, bool is_short)
{
    static const char *const names[] = {"Input",   "Target",    "Output",
                                        "Numbers", "Resources", "Messages"};
    struct cli_options options;
    cli_list_options(&options, verb);
    bool is_cut = is_short && options.n > SHORT_HELP;
    write_usage(out, verb, &options);
    phema_strbuf_printf(out, "\nExamples\n%s", verb->examples);
    for (size_t group = 0; group < ARRAY_LEN(names); group++) {
        bool has_title = false;
        for (const struct cli_opt *o = options.items; o->name; o++) {
            if ((size_t)o->group != group || !is_shown(o, is_cut))
                continue;
            if (!has_title)
                phema_strbuf_printf(out, "\n%s\n", names[group]);
            has_title = true;
            write_option(out, o);
        }
    }
    if (is_cut)
        phema_strbuf_printf(out, "\nall options: posthoc-ema %s --help\n", verb->name);
}
