// SPDX-License-Identifier: Apache-2.0
/* split_command.c - splits a command line into the words of a program, or prepares it for a shell.
 * A file name always stays part of one argument. */
#include "phema/path.h"
#include "phema/search.h"
#include "phema/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE  "{}"
#define BLANKS " \t\n"

/* Words one after another, each ended by a NUL. */
struct splitting {
    struct phema_strbuf words;
    size_t n, n_places;
    const char *path;
    const struct interpreter *interpreter; /* the next words may be its options; or NULL */
    bool is_value;                         /* the next word belongs to the option before it */
    bool is_program;                       /* the next word is the interpreter's program text */
};

/* True for a word that only a shell understands, such as "|". */
static bool wants_shell(const char *start, size_t size)
{
    static const char *const known[] = {"|",  "||", "&",    "&&", ";", "<", ">",
                                        ">>", "2>", "2>&1", "&>", "(", ")"};
    return phema_bytes_are_any(start, size, known, ARRAY_LEN(known));
}

static void append_path(struct splitting *splitting)
{
    phema_strbuf_puts(&splitting->words, splitting->path);
    splitting->n_places++;
}

/* Within double quotes, as sh has it; before other characters a backslash is itself. */
static bool is_escape(const char *at)
{
    return at[0] == '\\' && at[1] && strchr("$`\"\\\n", at[1]);
}

/* A backslash and a line feed are nothing: the line continues. */
static void append_escaped(struct splitting *splitting, const char *at)
{
    phema_strbuf_append(&splitting->words, at, *at != '\n');
}

static const char *skip_blanks(const char *at)
{
    for (;;) {
        at += strspn(at, BLANKS);
        if (at[0] != '\\' || at[1] != '\n')
            return at;
        at += 2;
    }
}

/* Copies from after the opening quote; returns the position after the closing one, or NULL. */
static const char *append_quoted(struct splitting *splitting, const char *at, char quote)
{
    for (; *at && *at != quote; at++) {
        if (quote == '"' && is_escape(at)) {
            append_escaped(splitting, ++at);
        } else if (strncmp(at, PLACE, 2) == 0) {
            append_path(splitting);
            at++;
        } else {
            phema_strbuf_append(&splitting->words, at, 1);
        }
    }
    return *at ? at + 1 : NULL;
}

/* Programs that run a text given as an argument after an option with one of these letters. */
static const struct interpreter {
    const char *name, *letters;
} interpreters[] = {
    {"sh", "c"},    {"ash", "c"},   {"bash", "c"},    {"dash", "c"},   {"ksh", "c"},
    {"mksh", "c"},  {"zsh", "c"},   {"su", "c"},      {"python", "c"}, {"python2", "c"},
    {"node", "ep"}, {"perl", "eE"}, {"python3", "c"}, {"ruby", "e"},   {"lua", "e"},
    {"php", "r"},   {"julia", "e"}, {"Rscript", "e"},
};

static const struct interpreter *find_interpreter(const char *word)
{
    const char *name = phema_path_last_name(word);
    size_t size = strcspn(name, "."); /* python3.11 */
    for (size_t i = 0; i < ARRAY_LEN(interpreters); i++)
        if (phema_bytes_are(name, size, interpreters[i].name))
            return &interpreters[i];
    return NULL;
}

/* Reads an option of an interpreter. */
static void read_option(struct splitting *splitting, const char *text)
{
    bool is_long = text[1] == '-';
    bool has_program = is_long ? strcmp(text, "--eval") == 0 || strcmp(text, "--command") == 0
                               : strpbrk(text + 1, splitting->interpreter->letters) != NULL;
    splitting->is_program = splitting->is_program || has_program;
    splitting->is_value = !is_long && strchr("oOWX", text[strlen(text) - 1]); /* -o pipefail */
}

/* Ends the word that starts at `word`. Refuses a path in an interpreter's program text, where it
 * would be read as code. */
static enum phema_status end_word(struct splitting *splitting, size_t word, bool has_place,
                                  struct phema_error *err)
{
    phema_strbuf_append(&splitting->words, "", 1);
    splitting->n++;
    if (splitting->words.is_failed)
        return phema_fail_memory(err);
    if (splitting->is_program && has_place)
        return phema_fail(
            err, PHEMA_ERR_USAGE,
            "{} stands in the text that %s runs, which would read a path as code; give "
            "it as an argument, as in sh -c './evaluate.sh \"$1\"' sh {}",
            splitting->interpreter->name);
    const char *text = splitting->words.data + word;
    if (splitting->interpreter && (text[0] == '-' || text[0] == '+') && text[1]) {
        read_option(splitting, text);
    } else if (splitting->is_value) {
        splitting->is_value = false;
    } else {
        splitting->interpreter = has_place ? NULL : find_interpreter(text);
        splitting->is_program = false;
    }
    return PHEMA_OK;
}

/* Reads one word; *at moves after it. */
static enum phema_status append_word(struct splitting *splitting, const char **at,
                                     struct phema_error *err)
{
    const char *start = *at, *next = start;
    size_t word = splitting->words.size, n_places = splitting->n_places;
    while (*next && !strchr(BLANKS, *next)) {
        if (*next == '\'' || *next == '"') {
            next = append_quoted(splitting, next + 1, *next);
            if (!next)
                return phema_fail(err, PHEMA_ERR_USAGE, "'%s': a quote is not closed", start);
        } else if (*next == '\\' && next[1]) {
            append_escaped(splitting, next + 1);
            next += 2;
        } else if (strncmp(next, PLACE, 2) == 0) {
            append_path(splitting);
            next += 2;
        } else {
            phema_strbuf_append(&splitting->words, next++, 1);
        }
    }
    if (wants_shell(start, (size_t)(next - start)))
        return phema_suggest(
            err,
            phema_fail(err, PHEMA_ERR_USAGE,
                       "'%.*s' is for a shell, and the command runs without one; %s gives it to sh",
                       (int)(next - start), start, phema_setting_name(PHEMA_SET_SHELL)),
            PHEMA_SET_SHELL, NULL);
    *at = next;
    return end_word(splitting, word, splitting->n_places > n_places, err);
}

/* Allocates an array of pointers, followed by the texts. */
static enum phema_status build_argv(char ***out, const struct phema_strbuf *words, size_t n,
                                    struct phema_error *err)
{
    enum phema_status status = phema_strbuf_check(words, err);
    if (status)
        return status;
    size_t table = (n + 1) * sizeof(char *);
    char **argv = malloc(table + words->size);
    if (!argv)
        return phema_fail_memory(err);
    char *texts = (char *)argv + table;
    memcpy(texts, words->data, words->size);
    for (size_t i = 0; i < n; i++) {
        argv[i] = texts;
        texts += strlen(texts) + 1;
    }
    argv[n] = NULL;
    *out = argv;
    return PHEMA_OK;
}

static enum phema_status check_places(size_t n_places, const char *command, struct phema_error *err)
{
    if (n_places)
        return PHEMA_OK;
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE,
                   "expected {} where the path of an average stands, as in './evaluate.sh {}'");
    struct phema_strbuf with_place = {0};
    phema_strbuf_printf(&with_place, "%s " PLACE, command);
    if (!with_place.is_failed)
        (void)phema_suggest(err, status, PHEMA_SET_EXEC, with_place.data);
    phema_strbuf_clear(&with_place);
    return status;
}

static enum phema_status split(char ***out, struct splitting *splitting, const char *command,
                               struct phema_error *err)
{
    for (const char *at = skip_blanks(command); *at; at = skip_blanks(at)) {
        enum phema_status status = append_word(splitting, &at, err);
        if (status)
            return status;
    }
    if (splitting->n == 0)
        return phema_fail(err, PHEMA_ERR_USAGE, "the command is empty");
    enum phema_status status = check_places(splitting->n_places, command, err);
    return status ? status : build_argv(out, &splitting->words, splitting->n, err);
}

PHEMA_FALLIBLE phema_command_split(char ***out, const char *command, const char *path,
                                   struct phema_error *err)
{
    struct splitting splitting = {.path = path};
    enum phema_status status = split(out, &splitting, command, err);
    phema_strbuf_clear(&splitting.words);
    return status;
}

/* ---- Commands for a shell ---- */

/* The path is an argument of the shell and the value of this variable, which functions and programs
 * see as well. Each {} becomes the variable. The shell never parses the path. */
#define VARIABLE "PHEMA_CANDIDATE"
#define BEFORE   "export " VARIABLE "=\"$1\"; "
#define QUOTED   "\"$" VARIABLE "\""

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* A command that is being read. Only quotes and comments are recognised: {} must be outside of
 * them. Reading stops at syntax that needs a full shell parser, and {} is refused after it. */
struct script {
    struct phema_strbuf text;
    const char *command, *at;
    const char *unread; /* why reading stopped; NULL: everything was read so far */
    bool is_in_word;
    size_t n_places;
};

static void copy(struct script *script, size_t size)
{
    phema_strbuf_append(&script->text, script->at, size);
    script->at += size;
}

static enum phema_status fail_place(const char *where, const char *instead, struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "{} stands %s, where sh does not take a path as one argument; write %s (and "
                      "\\{} for braces that are no path)",
                      where, instead);
}

/* Copies the next characters; refuses {} in them. */
static enum phema_status copy_without_place(struct script *script, size_t size, const char *where,
                                            const char *instead, struct phema_error *err)
{
    if (memmem(script->at, size, PLACE, 2))
        return fail_place(where, instead, err);
    copy(script, size);
    return PHEMA_OK;
}

/* Size of an expansion that consists of plain characters; 0: it has other characters. */
static size_t plain_size(const char *at, const char *start, const char *plain, const char *end)
{
    size_t size = strlen(start);
    if (strncmp(at, start, size) != 0)
        return 0;
    size += strspn(at + size, plain);
    return strncmp(at + size, end, strlen(end)) == 0 ? size + strlen(end) : 0;
}

/* Size of a command substitution of plain characters within double quotes: without quotes,
 * comments, here-documents and the unbalanced parentheses of a case; else 0. */
static size_t plain_command_size(const char *at)
{
    size_t size = plain_size(at, "$(", LETTERS " \t\n$-./+%:=,@|&;*?<>~^[]!", ")");
    return memmem(at, size, "<<", 2) || memmem(at, size, "case", 4) ? 0 : size;
}

/* Size of an expansion at a '$' whose end is found without a shell; else 0. */
static size_t expansion_size(const char *at)
{
    size_t size = plain_size(at, "$((", LETTERS " \t+-*/%<>=!&|^~?:,$", "))");
    return size ? size : plain_size(at, "${", LETTERS " #%:=+?!@*/.,^-", "}");
}

static enum phema_status copy_single_quoted(struct script *script, struct phema_error *err)
{
    const char *end = strchr(script->at + 1, '\'');
    if (!end)
        return phema_fail(err, PHEMA_ERR_USAGE, "'%s': a quote is not closed", script->at);
    return copy_without_place(script, (size_t)(end - script->at) + 1, "within single quotes",
                              "it outside of quotes", err);
}

/* True at a line continuation within a word, which may hide an operator or an expansion. */
static bool continues_word(const struct script *script)
{
    bool is_continued = script->at[0] == '\\' && script->at[1] == '\n';
    return is_continued && script->at > script->command && !strchr(BLANKS, script->at[-1]);
}

/* Size of the next element within double quotes; 0: it cannot be read. */
static size_t quoted_size(const struct script *script)
{
    const char *at = script->at;
    if (*at == '\\')
        return continues_word(script) ? 0 : 1 + (at[1] != '\0');
    if (*at == '`')
        return 0;
    if (*at != '$' || (at[1] != '(' && at[1] != '{'))
        return 1;
    size_t size = expansion_size(at);
    return size ? size : plain_command_size(at);
}

static enum phema_status copy_double_quoted(struct script *script, struct phema_error *err)
{
    static const char instead[] = "it outside of the quotes, or $" VARIABLE " in its place";
    const char *start = script->at;
    copy(script, 1);
    while (*script->at && *script->at != '"') {
        if (strncmp(script->at, PLACE, 2) == 0)
            return fail_place("within double quotes", instead, err);
        size_t size = quoted_size(script);
        if (!size) {
            script->unread = "an expansion within double quotes";
            return PHEMA_OK;
        }
        enum phema_status status =
            copy_without_place(script, size, "within double quotes", instead, err);
        if (status)
            return status;
    }
    if (!*script->at)
        return phema_fail(err, PHEMA_ERR_USAGE, "'%s': a quote is not closed", start);
    copy(script, 1);
    return PHEMA_OK;
}

static const char arithmetic[] = "arithmetic";

/* The syntax at this position that stops reading; NULL if it can be read. */
static const char *find_unread(const struct script *script)
{
    const char *at = script->at;
    if (*at == '`')
        return "a backquote";
    if (strncmp(at, "<<", 2) == 0)
        return "a here-document";
    if (strncmp(at, "((", 2) == 0)
        return arithmetic;
    bool is_continued = at[0] == '\\' && at[1] == '\n';
    if (continues_word(script) || (is_continued && script->is_in_word))
        return "a word that continues in the next line";
    if (*at != '$')
        return NULL;
    if (at[1] == '\'' || at[1] == '[')
        return at[1] == '[' ? arithmetic : "\"$'\"";
    if (expansion_size(at))
        return NULL;
    return strncmp(at, "$((", 3) == 0 ? arithmetic : at[1] == '{' ? "an expansion" : NULL;
}

static enum phema_status replace_place(struct script *script, struct phema_error *err)
{
    if (script->unread) {
        struct phema_name_buffer where;
        (void)snprintf(where.text, sizeof(where.text), "in or behind %s", script->unread);
        bool is_computed = script->unread == arithmetic; /* some shells evaluate it */
        return fail_place(where.text, is_computed ? "it before that" : QUOTED " in its place", err);
    }
    if (script->at > script->command &&
        script->at[-1] == '[') /* an index: some shells evaluate it */
        return fail_place("behind '['", "it as a word of its own", err);
    phema_strbuf_puts(&script->text, QUOTED);
    script->at += 2;
    script->is_in_word = true;
    script->n_places++;
    return PHEMA_OK;
}

static enum phema_status copy_next(struct script *script, struct phema_error *err)
{
    const char *at = script->at;
    if (strncmp(at, PLACE, 2) == 0)
        return replace_place(script, err);
    if (!script->unread)
        script->unread = find_unread(script);
    if (script->unread) {
        copy(script, 1);
        return PHEMA_OK;
    }
    if (*at == '#' && !script->is_in_word)
        return copy_without_place(script, strcspn(at, "\n"), "in a comment", "it outside", err);
    bool was_in_word = script->is_in_word;
    script->is_in_word = true;
    if (*at == '\'')
        return copy_single_quoted(script, err);
    if (*at == '"')
        return copy_double_quoted(script, err);
    size_t expansion = *at == '$' ? expansion_size(at) : 0;
    if (expansion)
        return copy_without_place(script, expansion, "within an expansion", "it outside", err);
    size_t size = *at == '\\' && at[1] ? 2 : 1;
    if (size == 1 && strchr(" \t\n;&|()<>", *at))
        script->is_in_word = false;
    if (size == 2 && at[1] == '\n')
        script->is_in_word = was_in_word;
    copy(script, size);
    return PHEMA_OK;
}

static enum phema_status write_script(char ***out, struct script *script, const char *path,
                                      struct phema_error *err)
{
    static const char shell[] = "/bin/sh";
    phema_strbuf_append(&script->text, shell, sizeof(shell));
    phema_strbuf_append(&script->text, "-c", sizeof("-c"));
    phema_strbuf_puts(&script->text, BEFORE);
    enum phema_status status = PHEMA_OK;
    while (!status && *script->at)
        status = copy_next(script, err);
    if (!status && !strstr(script->command, VARIABLE))
        status = check_places(script->n_places, script->command, err);
    if (status)
        return status;
    phema_strbuf_append(&script->text, "", 1);
    phema_strbuf_append(&script->text, shell, sizeof(shell)); /* $0, for messages */
    phema_strbuf_append(&script->text, path, strlen(path) + 1);
    return build_argv(out, &script->text, 5, err);
}

PHEMA_FALLIBLE phema_command_shell(char ***out, const char *command, const char *path,
                                   struct phema_error *err)
{
    struct script script = {.command = command, .at = command};
    enum phema_status status = write_script(out, &script, path, err);
    phema_strbuf_clear(&script.text);
    return status;
}
