// SPDX-License-Identifier: Apache-2.0
/* options.c - parses argv into a verb's struct by its option table. */
#include "options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "phema/formats.h"
#include "phema/number.h"
#include "remedy/remedy.h"

struct parse {
    struct cli_line *line;         /* that of the verb's struct */
    const struct cli_opt *options; /* of the line */
    struct cli_common *common;
    char *values;
    const struct cli_opt *next_operand;
    size_t n_operands, n_seen; /* on the line, and so far */
    struct phema_strbuf repeated;
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

/* Names that other programs give to options, and what their values begin with here ("ema:decay=");
 * or all of the value, where the name says it ("cuda"). */
struct synonym {
    const char *name, *option, *prefix;
};

/* NULL: none that the verb has */
static const struct synonym *find_synonym(const struct cli_opt *options, const char *name)
{
    static const struct synonym synonyms[] = {{"std", "sigma-rel", ""},
                                              {"stds", "sigma-rel", ""},
                                              {"outstd", "sigma-rel", ""},
                                              {"sigma", "sigma-rel", ""},
                                              {"sigmas", "sigma-rel", ""},
                                              {"decay", "profile", "ema:decay="},
                                              {"ema-decay", "profile", "ema:decay="},
                                              {"beta", "profile", "ema:decay="},
                                              {"ema", "profile", "ema:decay="},
                                              {"momentum", "profile", "ema:decay="},
                                              {"half-life", "profile", "ema:half-life="},
                                              {"halflife", "profile", "ema:half-life="},
                                              {"width", "sigma-rel", ""},
                                              {"widths", "sigma-rel", ""},
                                              {"width", "input-sigma", ""},
                                              {"widths", "input-sigma", ""},
                                              {"sigma-rel", "input-sigma", ""},
                                              {"steps", "until", ""},
                                              {"time", "at", ""},
                                              {"step", "at", ""},
                                              {"jobs", "threads", ""},
                                              {"workers", "threads", ""},
                                              {"memory", "max-ram", ""},
                                              {"budget", "evaluations", ""},
                                              {"trials", "evaluations", ""},
                                              {"tensors", "verbose", ""},
                                              {"gpu", "device", "cuda"},
                                              {"cuda", "device", "cuda"},
                                              {"silent", "quiet", ""},
                                              {"debug", "verbose", ""},
                                              {"fp16", "dtype", "f16"},
                                              {"half", "dtype", "f16"},
                                              {"bf16", "dtype", "bf16"},
                                              {"fp32", "dtype", "f32"},
                                              {"overwrite", "force", ""}};
    for (size_t i = 0; i < ARRAY_LEN(synonyms); i++)
        if (strcmp(name, synonyms[i].name) == 0 &&
            cli_find_option(options, synonyms[i].option, strlen(synonyms[i].option)))
            return &synonyms[i];
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
    const char *equals = strchr(parse->line->argv[at], '=');
    cli_suggest_word(err, parse->line, at, "--%s%s", name, equals ? equals : "");
}

/* The option of this name, which a value may follow behind an equals sign. */
static const struct cli_opt *parse_name(const struct parse *parse, const char *name)
{
    return cli_find_option(parse->options, name, strcspn(name, "="));
}

/* "--decay 0.999", where a profile says that. */
static enum phema_status fail_decay(const struct parse *parse, int at,
                                    const struct synonym *synonym, struct phema_error *err)
{
    const char *equals = strchr(parse->line->argv[at], '=');
    const char *value = equals                             ? equals + 1
                        : at + 1 < parse->line->argc       ? parse->line->argv[at + 1]
                        : strstr(synonym->prefix, "decay") ? "0.999"
                                                           : "2000";
    struct phema_strbuf words = {0};
    phema_strbuf_printf(&words, "--%s %s", synonym->option, synonym->prefix);
    phema_strbuf_put_word(&words, value);
    enum phema_status status = phema_fail(
        err, PHEMA_ERR_USAGE, "%s: unknown option '%.*s'; an exponential average is --profile %s%s",
        parse->line->verb->name, (int)strcspn(parse->line->argv[at], "="), parse->line->argv[at],
        synonym->prefix, strstr(synonym->prefix, "decay") ? "D" : "T");
    if (!words.is_failed)
        cli_suggest_words(err, parse->line, at, equals ? 1 : 2, words.data);
    phema_strbuf_clear(&words);
    return status;
}

/* plan is a run of synth without the run. */
static void suggest_plan(const struct cli_line *line, int at, struct phema_error *err)
{
    struct phema_strbuf words = {0};
    for (int i = 2; i < line->argc; i++) {
        if (i != at) {
            phema_strbuf_puts(&words, " ");
            phema_strbuf_put_word(&words, line->argv[i]);
        }
    }
    if (!words.is_failed)
        cli_set_command(err, "posthoc-ema plan%s", words.data ? words.data : "");
    phema_strbuf_clear(&words);
}

/* name: without dashes */
static enum phema_status fail_unknown(const struct parse *parse, int at, const char *name,
                                      struct phema_error *err)
{
    const char *argument = parse->line->argv[at], *verb = parse->line->verb->name;
    char word[64];
    (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, "="), name);
    const struct synonym *synonym = find_synonym(parse->options, word);
    bool is_letter = argument[0] == '-' && argument[1] != '-';
    if (synonym && strchr(synonym->prefix, '='))
        return fail_decay(parse, at, synonym, err);
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE, "%s: unknown option '%s'", verb, argument);
    if (strcmp(word, "version") == 0) {
        cli_set_command(err, "posthoc-ema --version");
        return status;
    }
    if (synonym && *synonym->prefix) {
        (void)snprintf(word, sizeof(word), "--%s %s", synonym->option, synonym->prefix);
        cli_suggest_words(err, parse->line, at, 1, word);
        return status;
    }
    if (strcmp(verb, "synth") == 0 &&
        (strcmp(argument, "--dry-run") == 0 || strcmp(argument, "-n") == 0)) {
        suggest_plan(parse->line, at, err);
        return status;
    }
    bool is_output = (is_letter && argument[1] == 'o') || strcmp(word, "output") == 0 ||
                     strcmp(word, "out") == 0;
    if (is_output && has_operand(parse, "OUT")) {
        status = phema_fail(err, status, "%s: unknown option '%s'; OUT is the last argument", verb,
                            argument);
        cli_suggest_out_last(err, parse->line, at);
        return status;
    }
    bool has_one_dash = is_letter && argument[2] && parse_name(parse, argument + 1);
    const char *nearest = has_one_dash ? parse_name(parse, argument + 1)->name
                          : synonym    ? synonym->option
                          : is_letter  ? NULL
                                       : cli_nearest(word, option_name, parse->options);
    if (nearest)
        suggest_name(parse, at, nearest, err);
    else
        cli_set_command(err, "posthoc-ema %s --help", verb);
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

static enum phema_status set_value(struct parse *parse, const struct cli_opt *option,
                                   const char *text, struct phema_error *err)
{
    enum phema_status status =
        read_value(field(parse, option), option, text, &parse->common->arena, err);
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

/* An operand that is one of some words was left out, and the file behind it stands in its place. */
static bool is_choice_missing(const struct parse *parse, const struct cli_opt *operand)
{
    if (operand == parse->options || !cli_is_operand(operand - 1) || !operand[-1].value)
        return false;
    const char *word = *(const char **)field(parse, operand - 1);
    return word && cli_find_choice(operand[-1].value, word) == SIZE_MAX;
}

/* A name for an output can be proposed; only the user knows the inputs. */
static enum phema_status fail_missing(const struct parse *parse, const struct cli_opt *operand,
                                      struct phema_error *err)
{
    const struct cli_opt *widths = cli_find_option(parse->options, "sigma-rel", 9);
    struct cli_reals reals = {0};
    if (widths)
        memcpy(&reals, field(parse, widths), sizeof(reals));
    bool is_join = operand->kind == CLI_OPERANDS && strcmp(operand->name, "OUT") == 0;
    enum phema_status status = phema_fail(
        err, PHEMA_ERR_USAGE, "%s: %s is missing%s", parse->line->verb->name, operand->name,
        is_join ? "; give an output of synth --part, or a directory of such outputs" : "");
    if (parse->line->argc == 3 && strcmp(parse->line->argv[2], "help") == 0)
        cli_set_command(err, "posthoc-ema help %s", parse->line->verb->name);
    else if (cli_suggest_forgotten_value(err, parse->line))
        return status;
    else if (is_join && cli_has_parts("."))
        (void)cli_suggest(err, status, operand->name, ".");
    else if (strcmp(operand->name, "OUT") == 0 && has_operand(parse, "SNAPSHOTS"))
        (void)cli_suggest(err, status, "OUT", reals.n > 1 ? "averages/" : "out.safetensors");
    else if (strcmp(operand->name, "DIR") == 0)
        (void)cli_suggest(err, status, "DIR", "demo");
    else if (is_choice_missing(parse, operand)) /* "plot run" */
        cli_suggest_operand_before(err, parse->line, *(const char **)field(parse, operand - 1),
                                   "error");
    else
        cli_set_command(err, "posthoc-ema %s -h", parse->line->verb->name);
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

/* "-j --force": the number is missing, and an option of the verb stands in its place. Texts may
 * begin with dashes. */
static bool is_option_there(const struct parse *parse, const struct cli_opt *option,
                            const char *word)
{
    return option->kind != CLI_TEXT && option->kind != CLI_TEXTS && strncmp(word, "--", 2) == 0 &&
           parse_name(parse, word + 2);
}

/* The option at argv[at] */
static enum phema_status fail_without_value(const struct parse *parse, const struct cli_opt *option,
                                            int at, struct phema_error *err)
{
    enum phema_status status = phema_fail(err, PHEMA_ERR_USAGE, "%s: expected %s after it",
                                          parse->line->argv[at], option->value);
    if (at + 1 < parse->line->argc) { /* without it, or with a value that could be meant */
        bool is_width = strcmp(option->name, "sigma-rel") == 0;
        cli_suggest_words(err, parse->line, at, 1, is_width ? "--sigma-rel 0.1" : "");
        return status;
    }
    cli_suggest_value(err, option, "");
    struct phema_error ignored = {0};
    if (check_operands(parse, &ignored)) /* a value alone would not do */
        cli_set_command(err, "posthoc-ema %s -h", parse->line->verb->name);
    return status;
}

/* The value is the next word; *at becomes its place. */
static enum phema_status set_next(struct parse *parse, const struct cli_opt *option, int *at,
                                  struct phema_error *err)
{
    const struct cli_line *line = parse->line;
    if (*at + 1 >= line->argc || is_option_there(parse, option, line->argv[*at + 1]))
        return fail_without_value(parse, option, *at, err);
    return set_value(parse, option, line->argv[++*at], err);
}

static enum phema_status parse_long(struct parse *parse, int *at, struct phema_error *err)
{
    const char *name = parse->line->argv[*at] + 2;
    const char *equals = strchr(name, '=');
    const struct cli_opt *option = parse_name(parse, name);
    if (!option)
        return fail_unknown(parse, *at, name, err);
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
            return fail_unknown(parse, *at, argument, err);
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

static bool has_any_operand(const struct parse *parse)
{
    return cli_find_row(parse->options, 0, 1) != NULL;
}

/* "convert a.pt b.safetensors": files are converted by another verb. */
static void suggest_conversion(const struct cli_line *line, struct phema_error *err)
{
    struct phema_strbuf words = {0};
    size_t n = 0;
    for (struct cli_word word = {0}; cli_next_word(&word, line);) {
        if (!word.is_operand)
            continue;
        phema_strbuf_puts(&words, " ");
        phema_strbuf_put_operand(&words, word.text);
        n++;
    }
    if (n == 2 && !words.is_failed)
        cli_set_command(err, "posthoc-ema synth --convert%s", words.data);
    else
        cli_set_command(err, "posthoc-ema synth --help");
    phema_strbuf_clear(&words);
}

static enum phema_status fail_unexpected(const struct parse *parse, const char *argument,
                                         struct phema_error *err)
{
    enum phema_status status = phema_fail(err, PHEMA_ERR_USAGE, "%s: unexpected argument '%s'",
                                          parse->line->verb->name, argument);
    if (!has_any_operand(parse) && phema_format_from_path(NULL, argument, 0))
        suggest_conversion(parse->line, err);
    else
        cli_suggest_operands(err, parse->line);
    return status;
}

/* Behind the dashes that word processors make of "--"; NULL: the word does not begin with one. */
static const char *skip_typographic_dashes(const char *word)
{
    static const char *const dashes[] = {"\u2010", "\u2011", "\u2012", "\u2013",
                                         "\u2014", "\u2015", "\u2212"};
    const char *at = word;
    for (size_t i = 0; i < ARRAY_LEN(dashes); i++)
        while (strncmp(at, dashes[i], 3) == 0)
            at += 3;
    return at > word ? at + strspn(at, "-") : NULL;
}

static enum phema_status fail_typographic(const struct parse *parse, const char *argument,
                                          const char *name, struct phema_error *err)
{
    int at = 2;
    while (at + 1 < parse->line->argc && strcmp(parse->line->argv[at], argument) != 0)
        at++;
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE, "%s: '%s' begins with a dash; options begin with '--'",
                   parse->line->verb->name, argument);
    suggest_name(parse, at, name, err);
    return status;
}

static enum phema_status parse_operand(struct parse *parse, const char *argument,
                                       struct phema_error *err)
{
    const char *name = skip_typographic_dashes(argument);
    if (name && parse_name(parse, name))
        return fail_typographic(parse, argument, parse_name(parse, name)->name, err);
    const struct cli_opt *option = cli_find_row(parse->options, parse->n_seen++, parse->n_operands);
    if (!option)
        return fail_unexpected(parse, argument, err);
    parse->next_operand = option->kind == CLI_OPERANDS ? option : option + 1;
    return set_value(parse, option, argument, err);
}

static enum phema_status check_limits(const struct parse *parse, struct phema_error *err)
{
    for (const struct cli_opt *o = parse->options; o->name; o++)
        if (o->most && *(const uint64_t *)field(parse, o) > o->most)
            return cli_fail_option(err, PHEMA_ERR_USAGE, o->name, "at most %llu",
                                   (unsigned long long)o->most);
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
    enum phema_status status = check_operands(parse, err);
    return status ? status : check_limits(parse, err);
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
        set_initial(field(&parse, o), o);
    enum phema_status status = parse_arguments(&parse, err);
    if (!status)
        status = keep_command(&parse, err);
    phema_strbuf_clear(&parse.repeated);
    return status;
}

bool cli_is_given(const struct cli_common *common, const char *name)
{
    const struct cli_line *line = &common->line;
    for (size_t i = 0; i < line->options.n; i++)
        if (line->is_given[i] && strcmp(line->options.items[i].name, name) == 0)
            return true;
    return false;
}
