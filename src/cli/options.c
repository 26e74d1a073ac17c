// SPDX-License-Identifier: Apache-2.0
/* options.c - parses argv into a verb's struct by its option table. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "mistakes.h"
#include "phema/number.h"
#include "remedy/remedy.h"

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
        phema_strbuf_put_operand(out, text);
        return;
    }
    phema_strbuf_printf(out, "--%s%s", option->name, option->kind == CLI_FLAG ? "" : " ");
    if (option->kind != CLI_FLAG)
        phema_strbuf_put_word(out, text);
}

/* Dtypes as PyTorch and others write them, in any case. */
static const char *usual_name(const char *text)
{
    static const char *const names[][2] = {
        {"f16", "f16"},     {"fp16", "f16"},      {"float16", "f16"}, {"half", "f16"},
        {"bf16", "bf16"},   {"bfloat16", "bf16"}, {"f32", "f32"},     {"fp32", "f32"},
        {"float32", "f32"}, {"float", "f32"},     {"f64", "f64"},     {"fp64", "f64"},
        {"float64", "f64"}, {"double", "f64"}};
    const char *name = strncmp(text, "torch.", 6) == 0 ? text + 6 : text;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcasecmp(name, names[i][0]) == 0)
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
        *(unsigned *)value = option->meanings ? option->meanings[choice] : (unsigned)choice;
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

/* A path that is empty, as where a variable of the shell is not set, would be "/" or ".". */
static enum phema_status check_path(const struct parse *parse, const struct cli_opt *option,
                                    const char *text, struct phema_error *err)
{
    static const char *const names[] = {"FILE", "DIR", "PATH", "RUN"};
    bool is_path = cli_is_operand(option) && !option->value;
    bool is_empty = !*text || (is_path && option->group == INPUT && strcmp(text, "@") == 0);
    if (is_empty && is_path) {
        (void)phema_fail(err, PHEMA_ERR_USAGE,
                         *text ? "%s: %s is '@', expected @FILE" : "%s: %s is empty",
                         parse->line->verb->name, option->name);
        const char *usual = strcmp(option->name, "OUT") == 0 ? "out.safetensors" : "demo";
        return option->group == INPUT ? PHEMA_ERR_USAGE
                                      : cli_suggest(err, PHEMA_ERR_USAGE, option->name, usual);
    }
    bool is_text = option->kind == CLI_TEXT || option->kind == CLI_TEXTS;
    for (size_t i = 0; is_empty && is_text && i < ARRAY_LEN(names); i++)
        if (strstr(option->value, names[i]))
            return phema_fail(err, PHEMA_ERR_USAGE, "--%s: is empty, expected %s", option->name,
                              option->value);
    return PHEMA_OK;
}

static enum phema_status set_value(struct parse *parse, const struct cli_opt *option,
                                   const char *text, struct phema_error *err)
{
    enum phema_status status = check_path(parse, option, text, err);
    if (status)
        return status;
    status = read_value(parse_field(parse, option), option, text, &parse->common->arena, err);
    if (status && cli_is_operand(option))
        return status;
    if (status) {
        cli_suggest_value(err, option, text);
        return cli_fail_in_option(err, status, option->name);
    }
    status = cli_check_output(option, text, err);
    if (status)
        return status;
    parse->line->is_given[option - parse->options] = true;
    if (option->flags & (CLI_SHAPES_BYTES | CLI_SHAPES_WEIGHTS))
        repeat(&parse->repeated, option, text);
    return PHEMA_OK;
}

/* ---- Arguments ---- */

/* "-j --force": the number is missing, and an option of the verb stands in its place. Texts may
 * begin with dashes. */
static bool is_option_there(const struct parse *parse, const struct cli_opt *option,
                            const char *word)
{
    return option->kind != CLI_TEXT && option->kind != CLI_TEXTS && strncmp(word, "--", 2) == 0 &&
           parse_name(parse, word + 2);
}

/* The value is the next word; *at becomes its place. */
static enum phema_status set_next(struct parse *parse, const struct cli_opt *option, int *at,
                                  struct phema_error *err)
{
    const struct cli_line *line = parse->line;
    if (*at + 1 >= line->argc || is_option_there(parse, option, line->argv[*at + 1]))
        return mistake_without_value(parse, option, *at, err);
    return set_value(parse, option, line->argv[++*at], err);
}

static enum phema_status parse_long(struct parse *parse, int *at, struct phema_error *err)
{
    const char *name = parse->line->argv[*at] + 2;
    const char *equals = strchr(name, '=');
    const struct cli_opt *option = parse_name(parse, name);
    if (!option)
        return mistake_unknown(parse, *at, name, err);
    if (option->kind == CLI_FLAG && equals) {
        enum phema_status status =
            cli_fail_option(err, PHEMA_ERR_USAGE, option->name, "takes no value");
        cli_suggest_word(err, parse->line, *at, "--%s", option->name);
        return status;
    }
    if (option->kind == CLI_FLAG || equals)
        return set_value(parse, option, equals ? equals + 1 : "", err);
    return set_next(parse, option, at, err);
}

/* -j2, -j 2, -qv */
static enum phema_status parse_letters(struct parse *parse, int *at, struct phema_error *err)
{
    const char *argument = parse->line->argv[*at];
    for (const char *letter = argument + 1; *letter; letter++) {
        const struct cli_opt *option = cli_find_letter(parse->options, *letter);
        if (!option)
            return mistake_unknown(parse, *at, letter > argument + 1 ? letter : argument, err);
        if (option->kind != CLI_FLAG)
            return letter[1] ? set_value(parse, option, letter + 1, err)
                             : set_next(parse, option, at, err);
        enum phema_status status = set_value(parse, option, "", err);
        if (status)
            return status;
        parse->common->is_short_help |= *letter == 'h';
    }
    return PHEMA_OK;
}

static enum phema_status parse_operand(struct parse *parse, const char *argument,
                                       struct phema_error *err)
{
    if (mistake_is_typographic(parse, argument))
        return mistake_typographic(parse, argument, err);
    const struct cli_opt *option = cli_find_row(parse->options, parse->n_seen++, parse->n_operands);
    if (!option)
        return mistake_unexpected(parse, argument, err);
    parse->next_operand = option->kind == CLI_OPERANDS ? option : option + 1;
    return set_value(parse, option, argument, err);
}

static enum phema_status fail_above(const struct cli_opt *option, struct phema_error *err)
{
    char most[24];
    (void)snprintf(most, sizeof(most), "%llu", (unsigned long long)option->most);
    return cli_suggest(err, cli_fail_option(err, PHEMA_ERR_USAGE, option->name, "at most %s", most),
                       option->name, most);
}

static enum phema_status check_limits(const struct parse *parse, struct phema_error *err)
{
    for (const struct cli_opt *o = parse->options; o->name; o++)
        if (o->most && *(const uint64_t *)parse_field(parse, o) > o->most)
            return fail_above(o, err);
    return PHEMA_OK;
}

static enum phema_status parse_arguments(struct parse *parse, struct phema_error *err)
{
    bool are_options_over = false;
    for (int i = 2; i < parse->line->argc; i++) {
        const char *argument = parse->line->argv[i];
        enum phema_status status = PHEMA_OK;
        if (are_options_over || argument[0] != '-' || !argument[1])
            status = parse_operand(parse, argument, err);
        else if (strcmp(argument, "--") == 0)
            are_options_over = true;
        else if (argument[1] == '-')
            status = parse_long(parse, &i, err);
        else
            status = parse_letters(parse, &i, err);
        if (parse->common->is_help) /* even if other options are wrong or missing */
            return PHEMA_OK;
        if (status)
            return status;
    }
    const struct cli_opt *missing = parse_find_missing(parse);
    return missing ? mistake_missing(parse, missing, err) : check_limits(parse, err);
}

static enum phema_status keep_command(struct parse *parse, struct phema_error *err)
{
    struct cli_common *common = parse->common;
    const struct cli_line *line = parse->line;
    const struct phema_strbuf *repeated = &parse->repeated;
    struct phema_strbuf words = {0};
    common->command = phema_arena_printf(&common->arena, "posthoc-ema %s", line->verb->name);
    for (int i = 2; i < line->argc; i++) {
        phema_strbuf_puts(&words, " ");
        phema_strbuf_put_word(&words, line->argv[i]);
    }
    common->command_tail = phema_arena_copy(&common->arena, words.data, words.size);
    common->repeated_options = phema_arena_copy(&common->arena, repeated->data, repeated->size);
    bool is_failed = words.is_failed || repeated->is_failed || common->arena.is_failed;
    phema_strbuf_clear(&words);
    return is_failed ? phema_fail_memory(err) : PHEMA_OK;
}

static void set_initial(void *value, const struct cli_opt *option)
{
    if (option->kind == CLI_REAL)
        *(double *)value = PHEMA_UNKNOWN;
    else if (option->kind == CLI_CHOICE)
        *(unsigned *)value = (unsigned)option->initial;
    else if (option->initial)
        *(uint64_t *)value = option->initial;
    else if (option->flags & CLI_INITIALLY_TRUE)
        *(bool *)value = true;
}

PHEMA_FALLIBLE cli_parse(const struct cli_verb *verb, void *values, int argc, char **argv,
                         struct phema_error *err)
{
    struct cli_common *common = values;
    struct cli_line *line = &common->line;
    line->verb = verb;
    line->argc = argc;
    line->argv = argv;
    cli_list_options(&line->options, verb->options);
    struct parse parse = {.line = line,
                          .options = line->options.items,
                          .common = common,
                          .values = values,
                          .next_operand = line->options.items,
                          .n_operands = cli_count_operands(line)};
    for (const struct cli_opt *o = parse.options; o->name; o++)
        set_initial(parse_field(&parse, o), o);
    enum phema_status status = parse_arguments(&parse, err);
    if (!status)
        status = keep_command(&parse, err);
    phema_strbuf_clear(&parse.repeated);
    return status;
}

void cli_set_others(void *values, const struct cli_line *line, const struct cli_verb *other)
{
    struct cli_options options;
    cli_list_options(&options, other->options);
    for (const struct cli_opt *o = options.items; o->name; o++)
        if (!cli_find_option(line->options.items, o->name, strlen(o->name)))
            set_initial((char *)values + o->offset, o);
}

bool cli_is_given(const struct cli_common *common, const char *name)
{
    const struct cli_line *line = &common->line;
    for (size_t i = 0; i < line->options.n; i++)
        if (line->is_given[i] && strcmp(line->options.items[i].name, name) == 0)
            return true;
    return false;
}
