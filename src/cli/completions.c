// SPDX-License-Identifier: Apache-2.0
/* completions.c - what may stand in the place of a word, from the option tables, for the scripts in
 * completions/. The placeholder of a value tells the words: lower-case words between bars are
 * offered as they are; FILE and DIR stand for names of files; other values are not completed. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "remedy/remedy.h"

/* The candidates that begin with what was typed. */
struct offer {
    struct phema_strbuf *out;
    const char *typed;
};

/* help: a description behind a TAB, on one line; NULL: none */
static void offer_word(const struct offer *offer, struct phema_span word, const char *help)
{
    size_t size = strlen(offer->typed);
    if (word.size < size || memcmp(word.data, offer->typed, size) != 0)
        return;
    phema_strbuf_append(offer->out, (const char *)word.data, word.size);
    for (const char *at = help, *separator = "\t"; at; separator = " ") {
        size = strcspn(at, "\n");
        phema_strbuf_puts(offer->out, separator);
        phema_strbuf_append(offer->out, at, size);
        at = at[size] ? at + size + 1 : NULL;
    }
    phema_strbuf_puts(offer->out, "\n");
}

static void offer_text(const struct offer *offer, const char *word, const char *help)
{
    offer_word(offer, (struct phema_span){(const uint8_t *)word, strlen(word)}, help);
}

static bool is_word(struct phema_span part)
{
    for (size_t i = 0; i < part.size; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", part.data[i]))
            return false;
    return part.size > 0;
}

/* value: NULL is names of files, which the line FILE stands for: words are lower-case. */
static void offer_value(const struct offer *offer, const char *value)
{
    if (!value || cli_find_choice(value, "FILE") != SIZE_MAX ||
        cli_find_choice(value, "DIR") != SIZE_MAX) {
        phema_strbuf_puts(offer->out, "FILE\n");
        return;
    }
    for (const char *at = value; at;) {
        struct phema_span part = cli_next_choice(&at);
        if (is_word(part))
            offer_word(offer, part, NULL);
    }
}

static void offer_options(const struct offer *offer, const struct cli_opt *options)
{
    for (const struct cli_opt *o = options; o->name; o++) {
        if (cli_is_operand(o))
            continue;
        char name[64], letter[] = {'-', o->letter, '\0'};
        (void)snprintf(name, sizeof(name), "--%s", o->name);
        offer_text(offer, name, o->help);
        if (o->letter)
            offer_text(offer, letter, o->help);
    }
}

/* n_before: operands in front of this one */
static void offer_operand(const struct offer *offer, const struct cli_opt *options, size_t n_before)
{
    for (const struct cli_opt *o = options; o->name; o++) {
        if (!cli_is_operand(o))
            continue;
        if (n_before == 0 || o->kind == CLI_OPERANDS) {
            offer_value(offer, o->value);
            return;
        }
        n_before--;
    }
}

/* The option of that word whose value is the next word; NULL: no value follows. */
static const struct cli_opt *find_valued(const struct cli_opt *options, const char *word)
{
    const struct cli_opt *option = NULL;
    if (word[1] == '-')
        option = cli_find_option(options, word + 2, strlen(word + 2));
    else if (!word[2])
        option = cli_find_letter(options, word[1]);
    return option && option->kind != CLI_FLAG ? option : NULL;
}

/* words: after the verb, the last of them to be completed */
static void offer_after_verb(struct phema_strbuf *out, const struct cli_opt *options, int n,
                             char **words)
{
    struct offer offer = {out, words[n - 1]};
    const struct cli_opt *valued = NULL;
    bool are_options_over = false;
    size_t n_operands = 0;
    for (int i = 0; i + 1 < n; i++) {
        bool is_option = !valued && !are_options_over && words[i][0] == '-' && words[i][1];
        n_operands += !valued && !is_option;
        valued = is_option ? find_valued(options, words[i]) : NULL;
        are_options_over |= is_option && strcmp(words[i], "--") == 0;
    }
    if (valued)
        offer_value(&offer, valued->value);
    else if (offer.typed[0] == '-' && !are_options_over)
        offer_options(&offer, options);
    else
        offer_operand(&offer, options, n_operands);
}

static void offer_verbs(const struct offer *offer, const struct cli_verb *const *verbs)
{
    if (offer->typed[0] == '-') {
        offer_text(offer, "--help", "the verbs");
        offer_text(offer, "--version", "the version");
        return;
    }
    for (size_t i = 0; verbs[i]; i++)
        offer_text(offer, verbs[i]->name, verbs[i]->summary);
    offer_text(offer, "help", "how to use a verb");
}

void cli_write_candidates(struct phema_strbuf *out, const struct cli_verb *const *verbs, int n,
                          char **words)
{
#define NAME_AND_BAR(name) #name "|"
    static const struct cli_opt of_help[] = {
        {"VERB", INPUT, CLI_OPERAND, 0, CLI_VERBS(NAME_AND_BAR), .help = ""},
        {"completions", INPUT, CLI_TEXT, 0, "bash|zsh|fish", .help = "a script for this shell"},
        {0},
    };
    if (n < 2) {
        offer_verbs(&(struct offer){out, n ? words[0] : ""}, verbs);
        return;
    }
    if (strcmp(words[0], "help") == 0)
        offer_after_verb(out, of_help, n - 1, words + 1);
    for (size_t i = 0; verbs[i]; i++) {
        struct cli_options options;
        if (strcmp(verbs[i]->name, words[0]) != 0)
            continue;
        cli_list_options(&options, verbs[i]);
        offer_after_verb(out, options.items, n - 1, words + 1);
    }
}

PHEMA_FALLIBLE cli_write_completions(struct phema_strbuf *out, const char *shell,
                                     struct phema_error *err)
{
    if (!shell)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "completions",
                               "expected bash, zsh or fish after it");
    for (size_t i = 0; cli_completion_scripts[i][0]; i++) {
        if (strcmp(shell, cli_completion_scripts[i][0]) == 0) {
            phema_strbuf_puts(out, cli_completion_scripts[i][1]);
            return PHEMA_OK;
        }
    }
    return cli_fail_option(err, PHEMA_ERR_USAGE, "completions",
                           "'%s' is not one of bash, zsh, fish", shell);
}
