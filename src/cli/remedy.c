// SPDX-License-Identifier: Apache-2.0
/* remedy.c - the command after "try:": the command line of the user with one thing changed. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "options.h"
#include "phema/array.h"
#include "phema/formats.h"
#include "phema/number.h"

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- The whole command ---- */

/* A change of the command line. */
struct edit {
    const struct cli_opt *option; /* or operand */
    const char *value;            /* "": without the option, unless it is a flag */
    bool is_used;
};

struct editing {
    const struct cli_opt *options;
    struct edit edits[8];
    size_t n;
    struct phema_strbuf head, tail; /* options that were not there, the words that were */
};

static struct edit *find_edit(struct editing *editing, const struct cli_opt *option)
{
    for (size_t i = 0; option && i < editing->n; i++)
        if (editing->edits[i].option == option)
            return &editing->edits[i];
    return NULL;
}

static const struct cli_opt *find_operand(const struct cli_opt *options, const char *name,
                                          size_t size)
{
    for (const struct cli_opt *o = options; o->name; o++)
        if (cli_is_operand(o) && strlen(o->name) == size && memcmp(o->name, name, size) == 0)
            return o;
    return NULL;
}

/* "--name", "--name value" or "OPERAND=value" */
static bool read_edits(struct editing *editing, const struct cli_words *words)
{
    for (int i = 0; i < words->n; i++) {
        const char *word = words->items[i];
        struct edit edit = {.value = ""};
        if (editing->n == ARRAY_LEN(editing->edits))
            return false;
        if (strncmp(word, "--", 2) == 0) {
            edit.option = cli_find_option(editing->options, word + 2, strlen(word + 2));
            if (edit.option && edit.option->kind != CLI_FLAG)
                edit.value = i + 1 < words->n ? words->items[++i] : "";
        } else {
            size_t size = strcspn(word, "=");
            edit.option = find_operand(editing->options, word, size);
            if (!edit.option && strncmp(word, "SNAPSHOTS=", 10) == 0)
                edit.option = find_operand(editing->options, "FILE|DIR", 8); /* of inspect */
            edit.value = word[size] ? word + size + 1 : "";
        }
        if (!edit.option)
            return false;
        editing->edits[editing->n++] = edit;
    }
    return editing->n > 0;
}

static void write_option(struct phema_strbuf *out, const struct edit *edit)
{
    if (!*edit->value && edit->option->kind != CLI_FLAG)
        return;
    phema_strbuf_printf(out, " --%s", edit->option->name);
    if (edit->option->kind == CLI_FLAG)
        return;
    phema_strbuf_puts(out, " ");
    cli_shell_quote(out, edit->value);
}

/* The option that a word names, and whether the next word is its value. Unknown and combined letters
 * are copied. */
static const struct cli_opt *read_option(const struct cli_opt *options, const char *word,
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

static void copy_word(struct phema_strbuf *out, const char *word)
{
    phema_strbuf_puts(out, " ");
    cli_shell_quote(out, word);
}

/* "--sigma-rel run": the value was forgotten, and the next word is an operand. */
static bool is_operand_there(const struct cli_opt *option, const char *word)
{
    bool is_number = option->kind == CLI_REALS || option->kind == CLI_REAL ||
                     option->kind == CLI_COUNT || option->kind == CLI_SIZE;
    return is_number && exists(word);
}

/* Copies the option at argv[*at], with its value, or writes what stands in its place. */
static void edit_option(struct editing *editing, int argc, char **argv, int *at)
{
    bool has_next = false;
    const struct cli_opt *option = read_option(editing->options, argv[*at], &has_next);
    struct edit *edit = find_edit(editing, option);
    if (!edit)
        copy_word(&editing->tail, argv[*at]);
    else if (!edit->is_used)
        write_option(&editing->tail, edit);
    if (edit)
        edit->is_used = true;
    if (has_next && *at + 1 < argc) {
        ++*at;
        if (!edit || is_operand_there(option, argv[*at]))
            copy_word(&editing->tail, argv[*at]);
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
        copy_word(&editing->tail, word);
    } else if (!edit->is_used) {
        phema_strbuf_puts(&editing->tail, " ");
        cli_quote_operand(&editing->tail, edit->value);
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
            copy_word(&editing->tail, argv[i]);
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
        } else if (*edit->value) {
            phema_strbuf_puts(&editing->tail, " ");
            cli_quote_operand(&editing->tail, edit->value);
        }
    }
}

/* Sets the remedy to the command with the changed words. */
static void set_command(struct phema_error *err, const struct cli_verb *verb,
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
    phema_error_set_remedy(err, "%s", is_failed ? "" : command.data);
    phema_strbuf_clear(&command);
    phema_strbuf_clear(&editing->head);
    phema_strbuf_clear(&editing->tail);
}

static void complete(struct phema_error *err, struct phema_arena *arena,
                     const struct cli_verb *verb, const char *changes, int argc, char **argv)
{
    struct cli_options options;
    struct cli_words words;
    struct phema_error ignored = {""};
    cli_list_options(&options, verb);
    struct editing editing = {.options = options.items};
    if (cli_split_words(&words, arena, changes, 0, &ignored) || !read_edits(&editing, &words)) {
        phema_error_set_remedy(err, "%s", "");
        return;
    }
    edit_words(&editing, argc, argv);
    set_command(err, verb, &editing);
}

/* ---- Operands ---- */

/* The operands of the command line; the words before and between them go to the tail. */
static size_t split_operands(struct editing *editing, const char **operands, int argc, char **argv)
{
    size_t n = 0;
    bool are_options_over = false, has_next = false;
    for (int i = 2; i < argc; i++) {
        if (!are_options_over && strcmp(argv[i], "--") == 0) {
            are_options_over = true; /* operands are quoted instead */
        } else if (are_options_over || argv[i][0] != '-' || !argv[i][1]) {
            operands[n++] = argv[i];
        } else {
            (void)read_option(editing->options, argv[i], &has_next);
            copy_word(&editing->tail, argv[i]);
            if (has_next && i + 1 < argc)
                copy_word(&editing->tail, argv[++i]);
        }
    }
    return n;
}

static void add_operand(struct editing *editing, const char *path, size_t size)
{
    char *copy = strndup(path, size);
    phema_strbuf_puts(&editing->tail, " ");
    cli_quote_operand(&editing->tail, copy);
    editing->tail.is_failed |= !copy;
    free(copy);
}

/* ---- Names of files ---- */

void cli_suggest_words(struct phema_error *err, int argc, char **argv, int at, int n,
                       const char *words)
{
    struct phema_strbuf command = {0};
    phema_strbuf_puts(&command, "posthoc-ema");
    for (int i = 1; i < argc; i++) {
        if (i == at && *words)
            phema_strbuf_printf(&command, " %s", words);
        if (i < at || i >= at + n)
            copy_word(&command, argv[i]);
    }
    if (!command.is_failed)
        phema_error_set_remedy(err, "%s", command.data);
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

/* The names in a directory. */
struct names {
    char **items;
    size_t n, capacity;
};

static const char *item_name(const void *table, size_t index)
{
    const struct names *names = table;
    return index < names->n ? names->items[index] : NULL;
}

static void list_names(struct names *names, const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        char *copy = entry->d_name[0] == '.' ? NULL : strdup(entry->d_name);
        if (copy && phema_array_grow(&names->items, &names->capacity, names->n, sizeof(char *)))
            names->items[names->n++] = copy;
        else
            free(copy);
    }
    if (directory)
        (void)closedir(directory);
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
}

/* The name in the same directory that is most like the last part of a path; of a pattern that no
 * shell has expanded, the directory. */
static void write_nearest(struct phema_strbuf *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) : 0;
    struct names names = {0};
    if (slash && strpbrk(slash, "*?[")) {
        phema_strbuf_append(out, path, size);
        return;
    }
    char *directory = size ? strndup(path, size) : strdup(slash ? "/" : ".");
    if (directory)
        list_names(&names, directory);
    const char *nearest = cli_nearest(slash ? slash + 1 : path, item_name, &names);
    if (nearest)
        phema_strbuf_printf(out, "%.*s%s%s", (int)size, path, slash ? "/" : "", nearest);
    free_names(&names);
    free(directory);
}

/* The checkpoint of a directory whose name is last: the latest where names hold times. is_average: only
 * names that synth gives */
static void write_last_checkpoint(struct phema_strbuf *out, const char *directory, bool is_average)
{
    struct names names = {0};
    const char *last = NULL;
    size_t size = strlen(directory);
    list_names(&names, directory);
    for (size_t i = 0; i < names.n; i++)
        if (phema_format_from_path(NULL, names.items[i], PHEMA_NAMES_SNAPSHOT) &&
            (!is_average || strncmp(names.items[i], "phema-", 6) == 0) &&
            (!last || strcmp(names.items[i], last) > 0))
            last = names.items[i];
    if (last)
        phema_strbuf_printf(out, "%s%s%s", directory, directory[size - 1] == '/' ? "" : "/", last);
    free_names(&names);
}

/* A file that is not there: one with a similar name. A directory in place of a file: one in it. */
static void suggest_path(struct phema_error *err, const struct cli_verb *verb, int argc,
                         char **argv)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    for (int i = 2; i < argc; i++) {
        struct phema_strbuf path = {0};
        bool has_next = false;
        if (argv[i][0] == '-' && argv[i][1]) {
            (void)read_option(options.items, argv[i], &has_next);
            i += has_next;
            continue;
        }
        const char *list = argv[i][0] == '@' && is_directory(argv[i] + 1) ? argv[i] + 1 : NULL;
        if (list)
            cli_suggest_word(err, argc, argv, i, list);
        if (list)
            return;
        if (!argv[i][0] || !strstr(err->message, argv[i]))
            continue;
        if (!exists(argv[i]))
            write_nearest(&path, argv[i]);
        else if (strstr(err->message, "; name the one that is meant"))
            write_last_checkpoint(&path, argv[i], strcmp(verb->name, "verify") == 0);
        else
            continue;
        if (!path.data && exists(argv[i]))
            phema_suggest(err, PHEMA_ERR_FILE, "posthoc-ema inspect", argv[i]);
        if (path.data && !path.is_failed && exists(path.data))
            cli_suggest_word(err, argc, argv, i, path.data);
        phema_strbuf_clear(&path);
        return;
    }
}

/* "synth OUT SNAPSHOTS": the same with the operands in their order. */
static void suggest_order(struct phema_error *err, const struct cli_verb *verb, int argc,
                          char **argv)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    struct editing editing = {.options = options.items};
    const char **operands = calloc((size_t)argc, sizeof(*operands));
    size_t n = operands ? split_operands(&editing, operands, argc, argv) : 0;
    bool is_turned = n == 2 && find_operand(options.items, "SNAPSHOTS", 9) &&
                     find_operand(options.items, "OUT", 3) && !exists(operands[0]) &&
                     is_directory(operands[1]);
    for (size_t i = n; is_turned && i-- > 0;)
        add_operand(&editing, operands[i], strlen(operands[i]));
    if (is_turned)
        set_command(err, verb, &editing);
    else
        phema_strbuf_clear(&editing.tail);
    free(operands);
}

/* Options whose absence would give another result, or none. */
static bool is_needed(const struct cli_opt *option)
{
    static const char *const names[] = {
        "layout",   "name-regex",  "input-sigma",   "input-profile", "update-every",
        "reset-at", "time-offset", "weights",       "exec",          "sigma-rel",
        "profile",  "max-error",   "max-ram",       "force",         "convert",
        "into",     "advise",      "gamma",         "half-life",     "half-life-rel",
        "beta",     "decay",       "ema-half-life", "model",         "until",
        "disk",     "design"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(option->name, names[i]) == 0)
            return true;
    return cli_is_operand(option);
}

/* "--device: ...": suggests to leave that option out. */
static void suggest_default(struct phema_error *err, const struct cli_verb *verb)
{
    struct cli_options options;
    const char *message = err->message;
    if (strncmp(message, "--", 2) != 0)
        return;
    size_t size = strcspn(message + 2, ": ");
    cli_list_options(&options, verb);
    const struct cli_opt *option = cli_find_option(options.items, message + 2, size);
    if (option && option->kind != CLI_FLAG && !is_needed(option))
        phema_error_set_remedy(err, "--%s ''", option->name);
}

void cli_complete_remedy(struct phema_error *err, enum phema_status status,
                         const struct cli_verb *verb, int argc, char **argv)
{
    static const char whole[] = "posthoc-ema ";
    struct phema_arena arena = {0};
    if (!*phema_error_remedy(err) && status == PHEMA_ERR_FILE)
        suggest_order(err, verb, argc, argv);
    if (!*phema_error_remedy(err) && status == PHEMA_ERR_FILE)
        suggest_path(err, verb, argc, argv);
    if (!*phema_error_remedy(err) && status != PHEMA_NO && status != PHEMA_BUG)
        suggest_default(err, verb);
    const char *remedy = phema_error_remedy(err);
    if (!*remedy || strncmp(remedy, whole, sizeof(whole) - 1) == 0)
        return;
    const char *changes = phema_arena_copy(&arena, remedy, strlen(remedy));
    if (changes) {
        struct phema_strbuf same = {0};
        complete(err, &arena, verb, changes, argc, argv);
        phema_strbuf_puts(&same, "posthoc-ema");
        for (int i = 1; i < argc; i++)
            copy_word(&same, argv[i]);
        if (!same.is_failed && strcmp(same.data, phema_error_remedy(err)) == 0)
            phema_error_set_remedy(err, "%s", ""); /* nothing was changed */
        phema_strbuf_clear(&same);
    } else {
        phema_error_set_remedy(err, "%s", "");
    }
    phema_arena_clear(&arena);
}

/* ---- Words in wrong places ---- */

/* -o FILE, -oFILE, --output FILE or --output=FILE, where OUT is the last argument. */
void cli_suggest_out_last(struct phema_error *err, int argc, char **argv, int at)
{
    struct phema_strbuf command = {0};
    const char *equals = strchr(argv[at], '=');
    bool is_long = argv[at][1] == '-';
    const char *inside = is_long ? (equals ? equals + 1 : NULL) : argv[at][2] ? argv[at] + 2 : NULL;
    const char *out = inside ? inside : at + 1 < argc ? argv[at + 1] : NULL;
    phema_strbuf_puts(&command, "posthoc-ema");
    for (int i = 1; i < argc; i++)
        if (i != at && (inside || i != at + 1))
            copy_word(&command, argv[i]);
    if (out)
        copy_word(&command, out);
    if (out && !command.is_failed)
        phema_error_set_remedy(err, "%s", command.data);
    phema_strbuf_clear(&command);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Operands that are a name with blanks, which nobody quoted: how many make a file; 0: none do. */
static size_t count_unquoted(struct phema_strbuf *name, const char *const *operands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        phema_strbuf_printf(name, "%s%s", i ? " " : "", operands[i]);
        if (i && name->data && exists(name->data))
            return i + 1;
    }
    return 0;
}

/* Too many operands before OUT: a shell's glob of the snapshots, or a name with blanks. */
static bool write_snapshots(struct editing *editing, const char *const *operands, size_t n,
                            bool has_out)
{
    struct phema_strbuf name = {0};
    size_t n_name = count_unquoted(&name, operands, has_out ? n - 1 : n);
    const char *slash = strrchr(operands[0], '/');
    bool is_glob = !n_name && is_file(operands[0]) && n > 2;
    bool is_first = !n_name && !is_glob && !has_out && exists(operands[0]);
    if (n_name && name.data)
        add_operand(editing, name.data, name.size);
    else if (is_glob)
        add_operand(editing, slash ? operands[0] : ".", slash ? (size_t)(slash - operands[0]) : 1);
    else if (is_first)
        add_operand(editing, operands[0], strlen(operands[0]));
    phema_strbuf_clear(&name);
    if (has_out)
        add_operand(editing, operands[n - 1], strlen(operands[n - 1]));
    return n_name || is_glob || is_first;
}

/* "--sigma-rel 0.1 0.2" or "--max-ram 64 MB": the words that were meant as one value. */
static bool join_values(struct editing *editing, int argc, char **argv)
{
    bool is_joined = false;
    for (int i = 2; i < argc; i++) {
        bool has_next = false;
        const struct cli_opt *option = argv[i][0] == '-' && argv[i][1]
                                           ? read_option(editing->options, argv[i], &has_next)
                                           : NULL;
        struct phema_strbuf value = {0}, longer = {0};
        copy_word(&editing->tail, argv[i]);
        if (!option || !has_next || i + 1 == argc)
            continue;
        phema_strbuf_puts(&value, argv[++i]);
        while (i + 1 < argc && value.data &&
               cli_join_values(&longer, option, value.data, argv[i + 1])) {
            phema_strbuf_clear(&value);
            value = longer;
            longer = (struct phema_strbuf){0};
            is_joined = true;
            i++;
        }
        copy_word(&editing->tail, value.data ? value.data : argv[i]);
        phema_strbuf_clear(&value);
        phema_strbuf_clear(&longer);
    }
    return is_joined;
}

/* "convert 0.1 0.2": the operands as a list of widths. */
static bool write_widths(struct editing *editing, const char *const *operands, size_t n)
{
    double number = 0;
    struct phema_error ignored = {""};
    for (size_t i = 0; i < n; i++)
        if (phema_number_parse(&number, operands[i], &ignored))
            return false;
    for (size_t i = 0; i < n; i++)
        phema_strbuf_printf(&editing->tail, "%s%s", i ? "," : " --sigma-rel ", operands[i]);
    return n > 0;
}

bool cli_suggest_forgotten_value(struct phema_error *err, const struct cli_verb *verb, int argc,
                                 char **argv)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    int n_operands = 0, at = 0;
    bool is_absent = true;
    for (int i = 2; i < argc; i++) {
        bool has_next = false;
        if (argv[i][0] != '-' || !argv[i][1]) {
            n_operands++;
            is_absent &= !exists(argv[i]);
            continue;
        }
        (void)read_option(options.items, argv[i], &has_next);
        if (has_next && i + 1 < argc && is_directory(argv[i + 1]))
            at = i;
        i += has_next;
    }
    if (n_operands != 1 || !is_absent || !at)
        return false;
    cli_suggest_words(err, argc, argv, at, 1, "");
    return true;
}

void cli_suggest_operands(struct phema_error *err, const struct cli_verb *verb, int argc,
                          char **argv)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    const struct cli_opt *items = options.items;
    struct editing editing = {.options = items};
    const char **operands = calloc((size_t)argc, sizeof(*operands));
    size_t n = operands ? split_operands(&editing, operands, argc, argv) : 0;
    struct editing joined = {.options = items};
    bool has_out = find_operand(items, "OUT", 3) != NULL;
    bool is_done = false;
    if (join_values(&joined, argc, argv)) {
        phema_strbuf_clear(&editing.tail);
        editing.tail = joined.tail;
        joined.tail = (struct phema_strbuf){0};
        is_done = true;
    } else if (cli_find_option(items, "sigma-rel", 9) && write_widths(&editing, operands, n)) {
        is_done = true;
    } else if (n && cli_find_option(items, operands[0], strlen(operands[0]))) {
        phema_strbuf_printf(&editing.tail, " --%s", operands[0]); /* "convert sigma-rel 0.1" */
        for (size_t i = 1; i < n; i++)
            copy_word(&editing.tail, operands[i]);
        is_done = true;
    } else if (n > 1 && has_out && !find_operand(items, "SNAPSHOTS", 9)) {
        add_operand(&editing, operands[0], strlen(operands[0])); /* verify takes one */
        is_done = true;
    } else if (find_operand(items, "SNAPSHOTS", 9) && cli_find_letter(items, 'o') &&
               n == (find_operand(items, "KIND", 4) ? 3 : 2)) { /* of plot, of report */
        phema_strbuf_puts(&editing.tail, " -o");
        copy_word(&editing.tail, operands[n - 1]);
        for (size_t i = 0; i + 1 < n; i++)
            add_operand(&editing, operands[i], strlen(operands[i]));
        is_done = true;
    } else if (n > 1 && find_operand(items, "SNAPSHOTS", 9)) {
        is_done = write_snapshots(&editing, operands, n, has_out && n > 2);
    }
    if (!is_done) {
        phema_strbuf_clear(&editing.tail);
        phema_strbuf_puts(&editing.tail, " -h");
    }
    set_command(err, verb, &editing);
    phema_strbuf_clear(&joined.tail);
    free(operands);
}
