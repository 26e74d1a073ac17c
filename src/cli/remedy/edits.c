// SPDX-License-Identifier: Apache-2.0
/* edits.c - the command line of the user with one thing changed: an option or operand of the error.
 * No other option vanishes, and none gets another value that the message does not name. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/number.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "remedy/remedy.h"

/* ---- What a message names ---- */

enum { AS_A_WORD = 1, IN_QUOTES };

/* How well and where a message names a word. */
struct naming {
    int rank;       /* 0: it does not */
    const char *at; /* in the message */
};

static bool is_better(struct naming a, struct naming b)
{
    return a.rank > b.rank || (a.rank && a.rank == b.rank && a.at < b.at);
}

static bool is_inside_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static struct naming find_naming(const char *message, const char *word)
{
    struct naming best = {0};
    size_t size = strlen(word);
    for (const char *at = message; (at = strstr(at, word)) && *at; at++) {
        char before = ' ', after = at[size];
        if (at > message)
            before = at[-1];
        bool is_quoted = before == '\'' && after == '\'';
        bool is_cut = after == '.' && isalnum((unsigned char)at[size + 1]);
        bool is_word =
            !is_inside_word(before) && before != '.' && !is_inside_word(after) && !is_cut;
        struct naming here = {is_quoted ? IN_QUOTES : is_word && size ? AS_A_WORD : 0, at};
        if (is_better(here, best))
            best = here;
    }
    return best;
}

/* The program writes numbers in its own way, too. */
static struct naming find_naming_of_value(const char *message, const char *value)
{
    struct phema_error ignored = {0};
    struct phema_name_buffer shown;
    double number = 0;
    struct naming naming = find_naming(message, value);
    return naming.rank || phema_number_parse(&number, value, &ignored)
               ? naming
               : find_naming(message, phema_number_format(&shown, number));
}

/* The item of a list that the message names best, and first. */
static struct naming find_naming_of_item(size_t *item_at, const char *message, const char *value)
{
    struct naming best = {0};
    for (size_t at = 0; value[at];) {
        char item[64];
        size_t size = strcspn(value + at, ",");
        if (snprintf(item, sizeof(item), "%.*s", (int)size, value + at) < (int)sizeof(item)) {
            struct naming naming = find_naming_of_value(message, item);
            if (is_better(naming, best)) {
                best = naming;
                *item_at = at;
            }
        }
        at += size + (value[at + size] == ',');
    }
    return best;
}

static bool names_option(const struct phema_error *err, const struct cli_opt *option)
{
    char name[64];
    if (strcmp(err->about, option->name) == 0)
        return true;
    (void)snprintf(name, sizeof(name), "-%c", option->letter);
    if (option->letter && find_naming(err->message, name).rank)
        return true;
    (void)snprintf(name, sizeof(name), "--%s", option->name);
    return find_naming(err->message, name).rank > 0;
}

/* ---- Changes ---- */

/* A change of the command line. */
struct edit {
    const struct cli_opt *option; /* or operand */
    const char *value;            /* "" leaves the option out; NULL of a flag that stays */
    const char *wrong;            /* of several values the one that is replaced; NULL: each */
    bool is_added;                /* beside values that stay */
    bool is_there;                /* another one is the value already */
    bool is_used;
};

struct edits {
    struct edit items[PHEMA_MOST_CHANGES];
    size_t n;
    const char *message;
};

static struct edit *find_edit(struct edits *edits, const struct cli_opt *option)
{
    for (size_t i = 0; option && i < edits->n; i++)
        if (edits->items[i].option == option)
            return &edits->items[i];
    return NULL;
}

/* The value of the option that the word names; NULL: a flag, or its value is missing. */
static const char *find_value(const struct cli_line *line, const struct cli_word *word)
{
    const char *text = word->text, *equals = strchr(text, '=');
    if (word->takes_next)
        return word->at + 1 < line->argc ? line->argv[word->at + 1] : NULL;
    if (text[1] == '-')
        return equals ? equals + 1 : NULL;
    return word->option->kind != CLI_FLAG ? text + 2 : NULL;
}

/* Looks which value of the option is meant. false: the message is about none of them, and the user
 * wanted them. */
static bool find_wrong(struct edit *edit, const struct cli_line *line,
                       const struct phema_error *err)
{
    struct naming best = {0};
    size_t n = 0, item_at = 0;
    for (struct cli_word word = {0}; cli_next_word(&word, line);) {
        if (word.is_operand || word.option != edit->option)
            continue;
        const char *value = find_value(line, &word);
        struct naming naming = {0};
        if (value)
            naming = find_naming_of_value(err->message, value);
        if (value && !naming.rank && edit->option->kind == CLI_REALS)
            naming = find_naming_of_item(&item_at, err->message, value);
        n++;
        edit->is_there |= value && edit->value && strcmp(value, edit->value) == 0;
        if (is_better(naming, best)) {
            best = naming;
            edit->wrong = value;
        }
    }
    bool is_about = strcmp(err->about, edit->option->name) == 0;
    bool is_removed = edit->value && !*edit->value;
    bool is_list = edit->option->kind == CLI_TEXTS && !is_removed;
    edit->is_added = n == 0 || (is_list && !best.rank && !is_about);
    if (edit->is_added)
        return !is_removed;
    if (n == 1)
        edit->wrong = NULL;
    return best.rank || (names_option(err, edit->option) && (n == 1 || is_removed));
}

/* Several changes are one where the message asks for all of them; else the first one is made. */
static bool are_asked_for(const struct edits *edits, const struct phema_error *err)
{
    for (size_t i = 0; i < edits->n; i++)
        if (!edits->items[i].is_added || !names_option(err, edits->items[i].option))
            return false;
    return true;
}

/* false: the verb lacks one of the options, or it is none to be changed. */
static bool list_edits(struct edits *edits, const struct cli_line *line,
                       const struct phema_error *err)
{
    for (size_t i = 0; i < err->n_changes; i++) {
        const char *name = phema_change_name(err, i);
        struct edit edit = {.option = command_find_operand(line, name),
                            .value = phema_change_value(err, i)};
        if (!edit.option && strcmp(name, "SNAPSHOTS") == 0)
            edit.option = command_find_operand(line, "FILE|DIR"); /* of inspect */
        bool is_operand = edit.option != NULL;
        if (!edit.option)
            edit.option = cli_find_option(line->options.items, name, strlen(name));
        if (!edit.option)
            return false;
        if (is_operand || find_wrong(&edit, line, err))
            edits->items[edits->n++] = edit;
    }
    if (!are_asked_for(edits, err) && edits->n)
        edits->n = 1;
    return edits->n > 0;
}

/* ---- Values ---- */

/* "0,1" is meant as 0.1. */
static bool is_decimal_comma(const char *given, const char *value)
{
    const char *comma = strchr(given, ',');
    size_t size = (size_t)(comma - given);
    return strncmp(given, value, size) == 0 && value[size] == '.' &&
           strcmp(comma + 1, value + size + 1) == 0;
}

/* The numbers of a range up to the value, or from it on, where the message names one on its other
 * side. false: it names none. */
static bool write_rest(struct phema_strbuf *out, const char *message, struct cli_reals range,
                       double value, bool is_dotted)
{
    struct phema_name_buffer shown;
    double step = range.n > 1 ? range.items[1] - range.items[0] : 0;
    size_t named = 0;
    while (named < range.n &&
           (range.items[named] == value ||
            !find_naming(message, phema_number_format(&shown, range.items[named])).rank))
        named++;
    if (named == range.n || !(step > 0))
        return false;
    bool is_below = range.items[named] < value;
    while (range.n && (is_below ? range.items[0] < value : range.items[range.n - 1] > value)) {
        range.n--;
        range.items += is_below;
    }
    if (range.n == 0)
        return false;
    double first = range.items[0], last = range.items[range.n - 1];
    if (is_dotted)
        phema_strbuf_printf(out, "%.6g,%.6g,...,%.6g", first, first + step, last);
    else
        phema_strbuf_printf(out, "%.6g:%.6g:%.6g", first, last, step);
    return true;
}

/* "0.05:0.30:0.05" and "0.05,0.10,...,0.30", of which the message names a number. */
static bool shorten_range(struct phema_strbuf *out, const char *message, const char *given,
                          const char *value)
{
    struct phema_arena arena = {0};
    struct phema_error ignored = {0};
    struct cli_reals range = {0};
    double bound = 0;
    bool is_dotted = strstr(given, ",...,"), has_colons = strchr(given, ':');
    bool is_range = is_dotted != has_colons && !(has_colons && strchr(given, ',')) &&
                    !phema_number_parse(&bound, value, &ignored) &&
                    !cli_parse_reals(&range, &arena, given, &ignored) &&
                    write_rest(out, message, range, bound, is_dotted);
    phema_arena_clear(&arena);
    return is_range;
}

/* Whether the message names a number from low to high. Examples ("such as 0.1") are no limits. */
static bool names_limit(const char *message, double low, double high)
{
    static const char example[] = "such as ";
    for (const char *at = message; *at; at++) {
        bool is_word = at == message || at[-1] == ' ';
        bool is_example = at >= message + strlen(example) &&
                          strncmp(at - strlen(example), example, strlen(example)) == 0;
        char *end = NULL;
        double number = is_word && isdigit((unsigned char)*at) ? strtod(at, &end) : 0;
        if (end && !is_inside_word(*end) && !is_example && number >= low && number <= high)
            return true;
    }
    return false;
}

/* A message names the first number of a list that is too large or too small. Others would be refused
 * next: those beyond it, and those that a limit in the message separates from the new value. */
static bool is_refused_too(const char *message, double item, double wrong, double value)
{
    bool is_above = item > value, is_too_large = wrong > value;
    if (is_too_large ? item >= wrong : item <= wrong)
        return true;
    if (is_above == is_too_large) /* the value may be the limit */
        return item != value && names_limit(message, fmin(item, value), fmax(item, value));
    double low = nextafter(fmin(item, value), HUGE_VAL);
    return names_limit(message, low, nextafter(fmax(item, value), -HUGE_VAL));
}

/* false: not a number */
static bool read_item(double *out, const char *text)
{
    struct phema_error ignored = {0};
    char item[64];
    size_t size = strcspn(text, ",");
    return snprintf(item, sizeof(item), "%.*s", (int)size, text) < (int)sizeof(item) &&
           !phema_number_parse(out, item, &ignored);
}

/* Whether the item at text is replaced as well as the wrong one. */
static bool is_replaced(const char *message, const char *text, const char *wrong, const char *value)
{
    double number = 0, wrong_number = 0, new_number = 0;
    return text == wrong || (read_item(&number, text) && read_item(&wrong_number, wrong) &&
                             read_item(&new_number, value) && wrong_number != new_number &&
                             is_refused_too(message, number, wrong_number, new_number));
}

/* "0.05,0.5,0.6" with another value in the place of 0.5, which the message names, and of those that
 * would be refused next; where the list holds that value already, without them. false: it names
 * none. */
static bool replace_item(struct phema_strbuf *out, const char *message, const char *given,
                         const char *value)
{
    size_t wrong_at = 0;
    if (shorten_range(out, message, given, value))
        return !out->is_failed;
    bool is_list = strchr(given, ',') && !strchr(given, ':') && !strstr(given, "...");
    if (!is_list || strpbrk(value, ",:") || is_decimal_comma(given, value) ||
        !find_naming_of_item(&wrong_at, message, given).rank)
        return false;
    bool is_there = false;
    for (int pass = 0; pass < 2; pass++)
        for (size_t at = 0; given[at];) {
            size_t size = strcspn(given + at, ",");
            bool is_same = phema_bytes_are(given + at, size, value);
            bool is_new = is_replaced(message, given + at, given + wrong_at, value);
            if (pass == 0)
                is_there |= is_same && !is_new;
            else if (!is_new)
                phema_strbuf_printf(out, "%s%.*s", out->size ? "," : "", (int)size, given + at);
            else if (at == wrong_at && !is_there)
                phema_strbuf_printf(out, "%s%s", out->size ? "," : "", value);
            at += size + (given[at + size] == ',');
        }
    return !out->is_failed && out->size;
}

/* given: the value that is replaced, or NULL */
static void write_option(struct phema_strbuf *out, const struct edits *edits,
                         const struct edit *edit, const char *given)
{
    struct phema_strbuf list = {0};
    if (edit->is_there || (edit->value && !*edit->value))
        return;
    phema_strbuf_printf(out, " --%s", edit->option->name);
    if (!edit->value)
        return;
    bool is_item = given && edit->option->kind == CLI_REALS &&
                   replace_item(&list, edits->message, given, edit->value);
    phema_strbuf_puts(out, " ");
    phema_strbuf_put_word(out, is_item ? list.data : edit->value);
    phema_strbuf_clear(&list);
}

/* ---- The command ---- */

/* "--sigma-rel run": the value was forgotten, and the next word is an operand. */
static bool is_operand_there(const struct cli_opt *option, const char *word)
{
    bool is_number = option->kind == CLI_REALS || option->kind == CLI_REAL ||
                     option->kind == CLI_COUNT || option->kind == CLI_SIZE;
    return is_number && phema_path_exists(word);
}

/* Copies the option, with its value, or writes what stands in its place. */
static void edit_option(struct editing *editing, struct edits *edits, const struct cli_word *word)
{
    const struct cli_line *line = editing->line;
    struct edit *edit = find_edit(edits, word->option);
    const char *value = edit ? find_value(line, word) : NULL;
    if (edit && (edit->is_added || (edit->wrong && (!value || strcmp(edit->wrong, value) != 0))))
        edit = NULL;
    if (!edit)
        command_add_word(editing, word->text);
    else if (!edit->is_used)
        write_option(&editing->tail, edits, edit, value);
    if (edit)
        edit->is_used = true;
    if (word->takes_next && word->at + 1 < line->argc &&
        (!edit || is_operand_there(word->option, line->argv[word->at + 1])))
        command_add_word(editing, line->argv[word->at + 1]);
}

/* row: NULL of one operand too many */
static void edit_operand(struct editing *editing, struct edits *edits, const struct cli_opt *row,
                         const char *word)
{
    struct edit *edit = find_edit(edits, row);
    if (!edit)
        command_add_word(editing, word);
    else if (!edit->is_used)
        command_add_operand(editing, edit->value);
    if (edit)
        edit->is_used = true;
}

/* Puts the command line with the changes of the error in their place. */
static void edit_remedy(struct phema_error *err, const struct cli_line *line)
{
    const struct phema_error changes = *err; /* the command takes their place */
    struct editing editing = {.line = line};
    struct edits edits = {.message = changes.message};
    size_t n_operands = cli_count_operands(line), k = 0;
    if (!list_edits(&edits, line, &changes)) {
        phema_error_clear_changes(err);
        return;
    }
    for (struct cli_word word = {0}; cli_next_word(&word, line);) {
        if (word.is_operand)
            edit_operand(&editing, &edits, cli_find_row(line->options.items, k++, n_operands),
                         word.text);
        else
            edit_option(&editing, &edits, &word);
    }
    for (size_t i = 0; i < edits.n; i++) {
        const struct edit *edit = &edits.items[i];
        if (!edit->is_used && !cli_is_operand(edit->option))
            write_option(&editing.head, &edits, edit, NULL);
        else if (!edit->is_used && edit->value && *edit->value)
            command_add_operand(&editing, edit->value);
    }
    command_set_remedy(err, &editing);
}

/* ---- Which remedy ---- */

/* Suggests to leave out the option that the failure is about. */
static void suggest_default(struct phema_error *err, enum phema_status status,
                            const struct cli_line *line)
{
    const struct cli_opt *option =
        cli_find_option(line->options.items, err->about, strlen(err->about));
    if (option && option->kind != CLI_FLAG && !(option->flags & CLI_NEEDED))
        (void)cli_suggest(err, status, option->name, "");
}

/* No change, but a look at a path. */
static bool wants_inspect(const struct phema_error *err)
{
    return strcmp(phema_change_name(err, 0), phema_setting_option(PHEMA_SET_INSPECTED)) == 0;
}

void cli_complete_remedy(struct phema_error *err, enum phema_status status,
                         const struct cli_line *line)
{
    if (!err->n_changes && status == PHEMA_ERR_FILE)
        remedy_suggest_order(err, line);
    if (!err->n_changes && status == PHEMA_ERR_FILE)
        remedy_suggest_path(err, line);
    if (!err->n_changes && *err->about && status != PHEMA_NO && status != PHEMA_BUG)
        suggest_default(err, status, line);
    if (!err->n_changes || *cli_command(err))
        return;
    if (wants_inspect(err) && strcmp(line->verb->name, "inspect") == 0) {
        char path[sizeof(err->words)];
        (void)snprintf(path, sizeof(path), "%s", phema_change_value(err, 0));
        phema_error_clear_changes(err);
        (void)cli_suggest(err, status, "FILE|DIR", path);
    } else if (wants_inspect(err)) {
        (void)cli_suggest_command(err, status, "posthoc-ema inspect", phema_change_value(err, 0));
        return;
    }
    struct phema_error same = {0};
    edit_remedy(err, line);
    cli_suggest_words(&same, line, line->argc, 0, "");
    if (strcmp(cli_command(&same), cli_command(err)) == 0)
        phema_error_clear_changes(err); /* nothing was changed */
}
