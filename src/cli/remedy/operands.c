// SPDX-License-Identifier: Apache-2.0
/* operands.c - operands that are not what was meant: files that are not there, words in wrong
 * places or in pieces. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "phema/array.h"
#include "phema/formats.h"
#include "phema/number.h"
#include "phema/path.h"
#include "phema/writer.h"
#include "remedy/remedy.h"

/* ---- Files ---- */

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

/* The checkpoint of a directory whose name is last: the latest where names hold times. is_average:
 * only names that synth gives */
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

bool cli_has_parts(const char *directory)
{
    char **parts = NULL;
    size_t n = 0;
    struct phema_error ignored = {0};
    if (phema_writer_find_parts(&parts, &n, directory, &ignored))
        return false;
    for (size_t i = 0; i < n; i++)
        free(parts[i]);
    free(parts);
    return n > 0;
}

PHEMA_FALLIBLE cli_check_output(const struct cli_opt *option, const char *text,
                                struct phema_error *err)
{
    static const char *const names[] = {"OUT", "DIR", "output"};
    bool is_output = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        is_output |= strcmp(option->name, names[i]) == 0 && option->kind != CLI_OPERANDS;
    if (!is_output || !phema_path_is_url(text))
        return PHEMA_OK;
    char *directory = phema_path_directory(text);
    bool is_here =
        !directory || phema_path_exists(directory); /* "s3:" can be the name of a directory */
    free(directory);
    if (is_here)
        return PHEMA_OK;
    enum phema_status status = phema_fail(
        err, PHEMA_ERR_OUTPUT,
        "%s: URLs are not written; write a local file or directory, and upload it", text);
    const char *name = strstr(text, "://") + 3;
    if (strncmp(text, "file://", 7) != 0 && strchr(name, '/'))
        for (name = text + strlen(text) - 1; name[-1] != '/';)
            name--;
    struct phema_strbuf local = {0};
    bool needs_slash = strcmp(option->name, "OUT") == 0 && !strpbrk(name, "./");
    phema_strbuf_printf(&local, "%s%s", name, needs_slash ? "/" : "");
    if (*name && !local.is_failed)
        (void)cli_suggest(err, status, option->name, local.data);
    phema_strbuf_clear(&local);
    return status;
}

/* What was meant by "@DIR", by "file://PATH", or by the URL of a file that lies here; or NULL. */
static const char *find_meant(const char *word)
{
    const char *name = phema_path_last_name(word);
    if (word[0] == '@')
        return phema_path_is_directory(word + 1) ? word + 1 : NULL;
    if (!phema_path_is_url(word))
        return NULL;
    if (strncmp(word, "file://", 7) == 0 && phema_path_exists(word + 7))
        return word + 7;
    return *name && phema_path_exists(name) ? name : NULL;
}

/* A folder below the operand is no one checkpoint: suggests a look at one of its files. */
static bool suggest_below(struct phema_error *err, const char *operand)
{
    struct phema_strbuf path = {0};
    size_t size = (size_t)(strchrnul(err->message, ':') - err->message);
    char *folder = strndup(err->message, size);
    bool is_below = folder && strcmp(folder, operand) != 0 && phema_path_is_directory(folder);
    if (is_below)
        write_last_checkpoint(&path, folder, false);
    if (path.data && !path.is_failed)
        (void)cli_suggest_command(err, PHEMA_ERR_FILE, "posthoc-ema inspect", path.data);
    phema_strbuf_clear(&path);
    free(folder);
    return is_below;
}

/* Whether the command still fails, or compares a file with itself, where path is this operand. */
static bool is_of_no_use(const struct cli_line *line, int at, const char *path)
{
    for (struct cli_word word = {0}; cli_next_word(&word, line);) {
        const char *other = word.text;
        if (word.is_operand && word.at != at &&
            (strcmp(other, path) == 0 ||
             (phema_path_is_directory(other) && !phema_directory_has_model(other, true))))
            return true;
    }
    return false;
}

/* A similar name may be that of another training. */
static void ask_whether(struct phema_error *err, const char *path)
{
    struct phema_strbuf message = {0};
    struct phema_name_buffer shown;
    phema_strbuf_printf(&message, "%s; did you mean '%s'?", err->message,
                        phema_name_show(&shown, path));
    if (!message.is_failed)
        (void)phema_fail(err, PHEMA_ERR_FILE, "%s", message.data);
    phema_strbuf_clear(&message);
}

void remedy_suggest_path(struct phema_error *err, const struct cli_line *line)
{
    bool is_of_into = strcmp(err->about, "into") == 0; /* SNAPSHOTS may have the same name */
    for (struct cli_word word = {0}; cli_next_word(&word, line);) {
        struct phema_strbuf path = {0};
        bool is_value = is_of_into && word.option && strcmp(word.option->name, "into") == 0 &&
                        word.takes_next && word.at + 1 < line->argc;
        if (is_of_into ? !is_value : !word.is_operand)
            continue;
        int at = word.at + is_value;
        const char *operand = line->argv[at], *meant = find_meant(operand);
        if (meant) {
            cli_suggest_word(err, line, at, "%s", meant);
            return;
        }
        if (!*operand || !strstr(err->message, operand))
            continue;
        bool is_there = phema_path_exists(operand);
        const char *home = strncmp(operand, "~/", 2) == 0 ? getenv("HOME") : NULL;
        if (home)
            phema_strbuf_printf(&path, "%s%s", home, operand + 1);
        else if (!is_there)
            write_nearest(&path, operand);
        else if (!strstr(err->message, "; name the one that is meant"))
            continue;
        else if (suggest_below(err, operand))
            return;
        else
            write_last_checkpoint(&path, operand, strcmp(line->verb->name, "verify") == 0);
        if (path.data && is_there && strcmp(line->verb->name, "diff") == 0 &&
            is_of_no_use(line, at, path.data))
            phema_strbuf_clear(&path);
        if (!path.data && is_there && strcmp(line->verb->name, "inspect") != 0)
            (void)cli_suggest_command(err, PHEMA_ERR_FILE, "posthoc-ema inspect", operand);
        bool is_found = path.data && !path.is_failed && phema_path_exists(path.data);
        if (is_found && !is_there && !home)
            ask_whether(err, path.data);
        if (is_found)
            cli_suggest_word(err, line, at, "%s", path.data);
        phema_strbuf_clear(&path);
        return;
    }
}

/* "plot weights", where there is a --weights, too */
static bool is_choice(const struct cli_line *line, const char *word)
{
    const struct cli_opt *kind = command_find_operand(line, "KIND");
    return kind && cli_find_choice(kind->value, word) != SIZE_MAX;
}

void remedy_suggest_order(struct phema_error *err, const struct cli_line *line)
{
    struct editing editing = {.line = line};
    const char **operands = NULL;
    size_t n = command_split_operands(&editing, &operands);
    bool is_out_first = n == 2 && command_find_operand(line, "SNAPSHOTS") &&
                        command_find_operand(line, "OUT") && !phema_path_exists(operands[0]) &&
                        phema_path_is_directory(operands[1]);
    bool is_kind_last =
        n == 2 && is_choice(line, operands[1]) && !is_choice(line, operands[0]); /* of plot */
    bool is_turned = is_out_first || is_kind_last;
    for (size_t i = n; is_turned && i-- > 0;)
        command_add_operand(&editing, operands[i]);
    if (is_turned)
        command_set_remedy(err, &editing);
    phema_strbuf_clear(&editing.tail);
    free(operands);
}

/* ---- Words in wrong places or in pieces ---- */

/* -o FILE, -oFILE, --output FILE or --output=FILE, where OUT is the last argument. */
void cli_suggest_out_last(struct phema_error *err, const struct cli_line *line, int at)
{
    struct editing command = {.line = line};
    char **argv = line->argv;
    const char *equals = strchr(argv[at], '=');
    bool is_long = argv[at][1] == '-';
    const char *inside = is_long ? (equals ? equals + 1 : NULL) : argv[at][2] ? argv[at] + 2 : NULL;
    const char *out = inside ? inside : at + 1 < line->argc ? argv[at + 1] : NULL;
    if (!out)
        return;
    for (int i = 2; i < line->argc; i++)
        if (i != at && (inside || i != at + 1))
            command_add_word(&command, argv[i]);
    command_add_word(&command, out);
    command_set_remedy(err, &command);
}

/* Operands that are a name with blanks, which nobody quoted: how many make a file; 0: none do. */
static size_t count_unquoted(struct phema_strbuf *name, const char *const *operands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        phema_strbuf_printf(name, "%s%s", i ? " " : "", operands[i]);
        if (i && name->data && phema_path_exists(name->data))
            return i + 1;
    }
    return 0;
}

/* A name with blanks before OUT, or files behind the snapshots where there is no OUT. */
static bool write_snapshots(struct editing *editing, const char *const *operands, size_t n,
                            bool has_out)
{
    struct phema_strbuf name = {0};
    size_t n_name = count_unquoted(&name, operands, has_out ? n - 1 : n);
    bool is_first = !n_name && !has_out && phema_path_exists(operands[0]);
    if (n_name && name.data)
        command_add_operand(editing, name.data);
    else if (is_first)
        command_add_operand(editing, operands[0]);
    phema_strbuf_clear(&name);
    if (has_out)
        command_add_operand(editing, operands[n - 1]);
    return n_name || is_first;
}

/* "--sigma-rel 0.1 0.2" or "--max-ram 64 MB": the words that were meant as one value, which the
 * message says then. */
static bool join_values(struct editing *editing, struct phema_error *err)
{
    const struct cli_line *line = editing->line;
    bool is_joined = false;
    for (struct cli_word word = {0}; cli_next_word(&word, line);) {
        struct phema_strbuf value = {0}, longer = {0};
        command_add_word(editing, word.text);
        if (!word.takes_next || word.at + 1 == line->argc)
            continue;
        int first = word.at;
        phema_strbuf_puts(&value, line->argv[word.at + 1]);
        while (word.at + 2 < line->argc && value.data &&
               cli_join_values(&longer, word.option, value.data, line->argv[word.at + 2])) {
            phema_strbuf_clear(&value);
            value = longer;
            longer = (struct phema_strbuf){0};
            is_joined = true;
            word.at++;
        }
        command_add_word(editing, value.data ? value.data : line->argv[word.at + 1]);
        if (is_joined && value.data && first != word.at)
            (void)cli_fail_option(err, PHEMA_ERR_USAGE, word.option->name,
                                  "'%s' is a word of its own; write the value as one, %s",
                                  line->argv[word.at + 1], value.data);
        phema_strbuf_clear(&value);
        phema_strbuf_clear(&longer);
    }
    return is_joined;
}

/* "convert 0.1 0.2": the operands as a list of widths. */
static bool write_widths(struct editing *editing, const char *const *operands, size_t n)
{
    double number = 0;
    struct phema_error ignored = {0};
    for (size_t i = 0; i < n; i++)
        if (phema_number_parse(&number, operands[i], &ignored))
            return false;
    for (size_t i = 0; i < n; i++)
        phema_strbuf_printf(&editing->tail, "%s%s", i ? "," : " --sigma-rel ", operands[i]);
    return n > 0;
}

bool cli_suggest_forgotten_value(struct phema_error *err, const struct cli_line *line)
{
    const char *value = NULL;
    int n_operands = 0, at = 0;
    bool is_absent = true;
    for (struct cli_word word = {0}; cli_next_word(&word, line);) {
        n_operands += word.is_operand;
        is_absent &= !word.is_operand || !phema_path_exists(word.text);
        const char *next =
            word.takes_next && word.at + 1 < line->argc ? line->argv[word.at + 1] : ".";
        if (strcmp(next, ".") == 0 || !phema_path_is_directory(next)) /* --key . means all */
            continue;
        at = word.at;
        value = next;
    }
    if (n_operands != 1 || !is_absent || !value)
        return false;
    (void)phema_fail(err, PHEMA_ERR_USAGE, "%s: '%s' is the value of %s, and an operand is missing",
                     line->verb->name, value, line->argv[at]);
    cli_suggest_words(err, line, at, 1, "");
    return true;
}

void cli_suggest_operand_before(struct phema_error *err, const struct cli_line *line,
                                const char *operand, const char *word)
{
    for (struct cli_word at = {0}; cli_next_word(&at, line);)
        if (at.is_operand && strcmp(at.text, operand) == 0) {
            cli_suggest_words(err, line, at.at, 0, word);
            return;
        }
}

/* Writes the operands as they were meant; false: nobody knows. */
static bool write_meant(struct editing *editing, const char *const *operands, size_t n)
{
    const struct cli_line *line = editing->line;
    const struct cli_opt *options = line->options.items;
    bool has_out = command_find_operand(line, "OUT") != NULL;
    bool has_snapshots = command_find_operand(line, "SNAPSHOTS") != NULL;
    if (cli_find_option(options, "sigma-rel", 9) && write_widths(editing, operands, n))
        return true;
    if (n && !phema_path_exists(operands[0]) && !is_choice(line, operands[0]) &&
        cli_find_option(options, operands[0], strlen(operands[0]))) {
        phema_strbuf_printf(&editing->tail, " --%s", operands[0]); /* "convert sigma-rel 0.1" */
        for (size_t i = 1; i < n; i++)
            command_add_word(editing, operands[i]);
        return true;
    }
    if (has_snapshots && cli_find_letter(options, 'o') &&
        n == (command_find_operand(line, "KIND") ? 3 : 2)) { /* of plot, of report */
        phema_strbuf_puts(&editing->tail, " -o");
        command_add_word(editing, operands[n - 1]);
        for (size_t i = 0; i + 1 < n; i++)
            command_add_operand(editing, operands[i]);
        return true;
    }
    return n > 1 && has_snapshots && write_snapshots(editing, operands, n, has_out && n > 2);
}

/* The command line as it was meant; false: nobody knows. */
static bool write_command(struct editing *editing, struct phema_error *err)
{
    const char **operands = NULL;
    if (join_values(editing, err))
        return true;
    phema_strbuf_clear(&editing->tail);
    size_t n = command_split_operands(editing, &operands);
    bool is_meant = write_meant(editing, operands, n);
    if (!is_meant)
        phema_strbuf_clear(&editing->tail);
    free(operands);
    return is_meant;
}

void cli_suggest_operands(struct phema_error *err, const struct cli_line *line)
{
    struct editing editing = {.line = line};
    if (!write_command(&editing, err))
        phema_strbuf_puts(&editing.tail, " -h");
    command_set_remedy(err, &editing);
}

/* Of several SNAPSHOTS, or the CHECKPOINT that convert may do without: the first one that is not
 * there; NULL: all are. */
static const char *find_absent(const struct cli_line *line)
{
    const struct cli_opt *checkpoint = command_find_operand(line, "CHECKPOINT");
    const struct cli_opt *snapshots =
        checkpoint ? checkpoint : command_find_operand(line, "SNAPSHOTS");
    const char *absent = NULL;
    size_t n_operands = cli_count_operands(line), k = 0, n = 0;
    for (struct cli_word word = {0}; snapshots && cli_next_word(&word, line);) {
        if (!word.is_operand || cli_find_row(line->options.items, k++, n_operands) != snapshots)
            continue;
        n++;
        if (!absent && !phema_path_exists(word.text + (word.text[0] == '@')))
            absent = word.text;
    }
    return n > 1 || checkpoint ? absent : NULL;
}

PHEMA_FALLIBLE cli_check_snapshots(const struct cli_line *line, struct phema_error *err)
{
    struct editing editing = {.line = line};
    struct phema_error meant = {0};
    const char *absent = find_absent(line);
    if (!absent)
        return PHEMA_OK;
    (void)phema_fail(&meant, PHEMA_ERR_USAGE, "%s: unexpected argument '%s': %s", line->verb->name,
                     absent, phema_path_reason(absent, ENOENT));
    if (!write_command(&editing, &meant))
        return phema_fail(err, PHEMA_ERR_FILE, "%s: %s%s", absent,
                          phema_path_reason(absent, ENOENT),
                          command_find_operand(line, "OUT") && cli_count_operands(line) > 2
                              ? ", and all operands but the last are SNAPSHOTS"
                              : "");
    *err = meant;
    command_set_remedy(err, &editing);
    return PHEMA_ERR_USAGE;
}
