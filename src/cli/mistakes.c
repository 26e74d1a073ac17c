// SPDX-License-Identifier: Apache-2.0
/* mistakes.c - the message and the remedy of words that the option table does not accept. */
#include "mistakes.h"

#include <stdio.h>
#include <string.h>

#include "remedy/remedy.h"

/* ---- The command line so far ---- */

void *parse_field(const struct parse *parse, const struct cli_opt *option)
{
    return parse->values + option->offset;
}

const struct cli_opt *parse_name(const struct parse *parse, const char *name)
{
    return cli_find_option(parse->options, name, strcspn(name, "="));
}

const struct cli_opt *parse_find_missing(const struct parse *parse)
{
    for (const struct cli_opt *o = parse->next_operand; o->name; o++) {
        bool is_missing =
            (o->kind == CLI_OPERAND && !(o->flags & CLI_OPTIONAL)) ||
            (o->kind == CLI_OPERANDS && ((const struct cli_texts *)parse_field(parse, o))->n == 0);
        if (is_missing)
            return o;
    }
    return NULL;
}

/* ---- Unknown options ---- */

/* Operands, and options that will go, get a name that is near to no word. */
static const char *option_name(const void *table, size_t index)
{
    const struct cli_opt *option = (const struct cli_opt *)table + index;
    bool is_proposed = !cli_is_operand(option) && !(option->flags & CLI_DEPRECATED);
    return option->name && !is_proposed ? "<none>" : option->name;
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

/* name: without dashes; "z", or what follows it, of "-qz" */
enum phema_status mistake_unknown(const struct parse *parse, int at, const char *name,
                                  struct phema_error *err)
{
    const char *argument = parse->line->argv[at], *verb = parse->line->verb->name;
    char word[64];
    (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, "="), name);
    const struct synonym *synonym = find_synonym(parse->options, word);
    bool is_letter = argument[0] == '-' && argument[1] != '-';
    if (synonym && strchr(synonym->prefix, '='))
        return fail_decay(parse, at, synonym, err);
    bool is_inside = is_letter && name > argument + 1;
    enum phema_status status =
        is_inside ? phema_fail(err, PHEMA_ERR_USAGE, "%s: unknown option '-%c'", verb, *name)
                  : phema_fail(err, PHEMA_ERR_USAGE, "%s: unknown option '%s'", verb, argument);
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

/* ---- Missing words ---- */

/* An operand that is one of some words was left out, and the file behind it stands in its place. */
static bool is_choice_missing(const struct parse *parse, const struct cli_opt *operand)
{
    if (operand == parse->options || !cli_is_operand(operand - 1) || !operand[-1].value)
        return false;
    const char *word = *(const char **)parse_field(parse, operand - 1);
    return word && cli_find_choice(operand[-1].value, word) == SIZE_MAX;
}

/* A name for an output can be proposed; only the user knows the inputs. */
enum phema_status mistake_missing(const struct parse *parse, const struct cli_opt *operand,
                                  struct phema_error *err)
{
    const struct cli_opt *widths = cli_find_option(parse->options, "sigma-rel", 9);
    struct cli_reals reals = {0};
    if (widths)
        memcpy(&reals, parse_field(parse, widths), sizeof(reals));
    bool is_join = strcmp(parse->line->verb->name, "join") == 0;
    bool is_verify = strcmp(parse->line->verb->name, "verify") == 0;
    enum phema_status status = phema_fail(
        err, PHEMA_ERR_USAGE, "%s: %s is missing%s", parse->line->verb->name, operand->name,
        is_join     ? "; give an output of synth --part, or a directory of such outputs"
        : is_verify ? "; give an average that synth has made, or a directory of averages"
                    : "");
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
        cli_suggest_operand_before(err, parse->line,
                                   *(const char **)parse_field(parse, operand - 1), "error");
    else
        cli_set_command(err, "posthoc-ema %s -h", parse->line->verb->name);
    return status;
}

/* The option at argv[at] */
enum phema_status mistake_without_value(const struct parse *parse, const struct cli_opt *option,
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
    if (parse_find_missing(parse)) /* a value alone would not do */
        cli_set_command(err, "posthoc-ema %s -h", parse->line->verb->name);
    return status;
}

/* ---- Unexpected words ---- */

enum phema_status mistake_unexpected(const struct parse *parse, const char *argument,
                                     struct phema_error *err)
{
    enum phema_status status = phema_fail(err, PHEMA_ERR_USAGE, "%s: unexpected argument '%s'",
                                          parse->line->verb->name, argument);
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

/* The option behind such dashes; NULL: none. */
static const struct cli_opt *find_typographic(const struct parse *parse, const char *argument)
{
    const char *name = skip_typographic_dashes(argument);
    return name ? parse_name(parse, name) : NULL;
}

bool mistake_is_typographic(const struct parse *parse, const char *argument)
{
    return find_typographic(parse, argument) != NULL;
}

enum phema_status mistake_typographic(const struct parse *parse, const char *argument,
                                      struct phema_error *err)
{
    int at = 2;
    while (at + 1 < parse->line->argc && strcmp(parse->line->argv[at], argument) != 0)
        at++;
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE, "%s: '%s' begins with a dash; options begin with '--'",
                   parse->line->verb->name, argument);
    suggest_name(parse, at, find_typographic(parse, argument)->name, err);
    return status;
}
