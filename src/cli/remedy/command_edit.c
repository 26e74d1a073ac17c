// SPDX-License-Identifier: Apache-2.0
/* command_edit.c - the command line of the user with some options and operands changed. */
#include "remedy/command_edit.h"
#include "remedy/remedy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool path_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static struct edit *find_edit(struct editing *editing, const struct cli_opt *option)
{
    for (size_t i = 0; option && i < editing->n; i++)
        if (editing->edits[i].option == option)
            return &editing->edits[i];
    return NULL;
}

const struct cli_opt *command_find_operand(const struct cli_opt *options, const char *name,
                                           size_t size)
{
    for (const struct cli_opt *o = options; o->name; o++)
        if (cli_is_operand(o) && strlen(o->name) == size && memcmp(o->name, name, size) == 0)
            return o;
    return NULL;
}

/* false: the verb lacks one of the options. */
static bool list_edits(struct editing *editing, const struct phema_error *err)
{
    for (size_t i = 0; i < err->n_changes; i++) {
        const char *name = phema_change_name(err, i);
        size_t size = strlen(name);
        struct edit edit = {.option = command_find_operand(editing->options, name, size),
                            .value = phema_change_value(err, i)};
        if (!edit.option && strcmp(name, "SNAPSHOTS") == 0)
            edit.option = command_find_operand(editing->options, "FILE|DIR", 8); /* of inspect */
        if (!edit.option)
            edit.option = cli_find_option(editing->options, name, size);
        if (!edit.option)
            return false;
        editing->edits[editing->n++] = edit;
    }
    return editing->n > 0;
}

static void write_option(struct phema_strbuf *out, const struct edit *edit)
{
    if (edit->value && !*edit->value)
        return;
    phema_strbuf_printf(out, " --%s", edit->option->name);
    if (!edit->value)
        return;
    phema_strbuf_puts(out, " ");
    cli_shell_quote(out, edit->value);
}

const struct cli_opt *command_read_option(const struct cli_opt *options, const char *word,
                                          bool *has_next)
{
    bool is_long = word[1] == '-';
    size_t size = is_long ? strcspn(word + 2, "=") : 1;
    const struct cli_opt *option =
        is_long ? cli_find_option(options, word + 2, size) : cli_find_letter(options, word[1]);
    bool has_value = is_long ? word[2 + size] == '=' : word[2] != '\0';
    *has_next = option && option->kind != CLI_FLAG && !has_value;
    return option && option->kind == CLI_FLAG && has_value ? NULL : option;
}

void command_copy_word(struct phema_strbuf *out, const char *word)
{
    phema_strbuf_puts(out, " ");
    cli_shell_quote(out, word);
}

/* "--sigma-rel run": the value was forgotten, and the next word is an operand. */
static bool is_operand_there(const struct cli_opt *option, const char *word)
{
    bool is_number = option->kind == CLI_REALS || option->kind == CLI_REAL ||
                     option->kind == CLI_COUNT || option->kind == CLI_SIZE;
    return is_number && path_exists(word);
}

/* Copies the option at argv[*at], with its value, or writes what stands in its place. */
static void edit_option(struct editing *editing, int argc, char **argv, int *at)
{
    bool has_next = false;
    const struct cli_opt *option = command_read_option(editing->options, argv[*at], &has_next);
    struct edit *edit = find_edit(editing, option);
    if (!edit)
        command_copy_word(&editing->tail, argv[*at]);
    else if (!edit->is_used)
        write_option(&editing->tail, edit);
    if (edit)
        edit->is_used = true;
    if (has_next && *at + 1 < argc) {
        ++*at;
        if (!edit || is_operand_there(option, argv[*at]))
            command_copy_word(&editing->tail, argv[*at]);
    }
}

static void edit_operand(struct editing *editing, const struct cli_opt **next, const char *word)
{
    const struct cli_opt *option = *next;
    while (option->name && !cli_is_operand(option))
        option++;
    struct edit *edit = find_edit(editing, option->name ? option : NULL);
    if (option->name)
        *next = option->kind == CLI_OPERANDS ? option : option + 1;
    if (!edit) {
        command_copy_word(&editing->tail, word);
    } else if (!edit->is_used) {
        phema_strbuf_puts(&editing->tail, " ");
        phema_strbuf_put_operand(&editing->tail, edit->value);
    }
    if (edit)
        edit->is_used = true;
}

static void edit_words(struct editing *editing, int argc, char **argv)
{
    const struct cli_opt *next = editing->options;
    bool are_options_over = false;
    for (int i = 2; i < argc; i++) {
        bool is_operand = are_options_over || argv[i][0] != '-' || !argv[i][1];
        if (is_operand) {
            edit_operand(editing, &next, argv[i]);
        } else if (strcmp(argv[i], "--") == 0) {
            are_options_over = true;
            command_copy_word(&editing->tail, argv[i]);
        } else {
            edit_option(editing, argc, argv, &i);
        }
    }
    for (size_t i = 0; i < editing->n; i++) {
        struct edit *edit = &editing->edits[i];
        if (edit->is_used)
            continue;
        if (!cli_is_operand(edit->option)) {
            write_option(&editing->head, edit);
        } else if (edit->value && *edit->value) {
            phema_strbuf_puts(&editing->tail, " ");
            phema_strbuf_put_operand(&editing->tail, edit->value);
        }
    }
}

void command_set_remedy(struct phema_error *err, const struct cli_verb *verb,
                        struct editing *editing)
{
    struct phema_strbuf command = {0};
    phema_strbuf_printf(&command, "posthoc-ema %s", verb->name);
    if (editing->head.data)
        phema_strbuf_puts(&command, editing->head.data);
    if (editing->tail.data)
        phema_strbuf_puts(&command, editing->tail.data);
    bool is_failed = editing->head.is_failed || editing->tail.is_failed || command.is_failed ||
                     (!editing->head.size && !editing->tail.size); /* the verb alone does nothing */
    cli_set_command(err, "%s", is_failed ? "" : command.data);
    phema_strbuf_clear(&command);
    phema_strbuf_clear(&editing->head);
    phema_strbuf_clear(&editing->tail);
}

void command_edit_remedy(struct phema_error *err, const struct cli_verb *verb, int argc,
                         char **argv)
{
    const struct phema_error changes = *err; /* the command takes their place */
    struct cli_options options;
    cli_list_options(&options, verb);
    struct editing editing = {.options = options.items};
    if (!list_edits(&editing, &changes)) {
        phema_error_clear_changes(err);
        return;
    }
    edit_words(&editing, argc, argv);
    command_set_remedy(err, verb, &editing);
}

size_t command_split_operands(struct editing *editing, const char **operands, int argc, char **argv)
{
    size_t n = 0;
    bool are_options_over = false, has_next = false;
    for (int i = 2; i < argc; i++) {
        if (!are_options_over && strcmp(argv[i], "--") == 0) {
            are_options_over = true; /* operands are quoted instead */
        } else if (are_options_over || argv[i][0] != '-' || !argv[i][1]) {
            operands[n++] = argv[i];
        } else {
            (void)command_read_option(editing->options, argv[i], &has_next);
            command_copy_word(&editing->tail, argv[i]);
            if (has_next && i + 1 < argc)
                command_copy_word(&editing->tail, argv[++i]);
        }
    }
    return n;
}

void command_add_operand(struct editing *editing, const char *path, size_t size)
{
    char *copy = strndup(path, size);
    phema_strbuf_puts(&editing->tail, " ");
    phema_strbuf_put_operand(&editing->tail, copy);
    editing->tail.is_failed |= !copy;
    free(copy);
}

/* ---- Words ---- */

void cli_suggest_words(struct phema_error *err, int argc, char **argv, int at, int n,
                       const char *words)
{
    struct phema_strbuf command = {0};
    phema_strbuf_puts(&command, "posthoc-ema");
    for (int i = 1; i < argc; i++) {
        if (i == at && *words)
            phema_strbuf_printf(&command, " %s", words);
        if (i < at || i >= at + n)
            command_copy_word(&command, argv[i]);
    }
    if (!command.is_failed)
        cli_set_command(err, "%s", command.data);
    phema_strbuf_clear(&command);
}

void cli_suggest_word(struct phema_error *err, int argc, char **argv, int at, const char *word)
{
    struct phema_strbuf quoted = {0};
    cli_shell_quote(&quoted, word);
    if (!quoted.is_failed)
        cli_suggest_words(err, argc, argv, at, 1, quoted.data);
    phema_strbuf_clear(&quoted);
}
