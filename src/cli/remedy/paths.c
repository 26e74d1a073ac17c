// SPDX-License-Identifier: Apache-2.0
/* paths.c - the file or directory that was meant by one that is not there. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "phema/array.h"
#include "phema/formats.h"
#include "phema/path.h"
#include "phema/writer.h"
#include "remedy/command_edit.h"
#include "remedy/remedy.h"

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
    bool is_here = !directory || path_exists(directory); /* "s3:" can be the name of a directory */
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
        return path_is_directory(word + 1) ? word + 1 : NULL;
    if (!phema_path_is_url(word))
        return NULL;
    if (strncmp(word, "file://", 7) == 0 && path_exists(word + 7))
        return word + 7;
    return *name && path_exists(name) ? name : NULL;
}

void remedy_suggest_path(struct phema_error *err, const struct cli_verb *verb, int argc,
                         char **argv)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    for (int i = 2; i < argc; i++) {
        struct phema_strbuf path = {0};
        bool has_next = false;
        if (argv[i][0] == '-' && argv[i][1]) {
            (void)command_read_option(options.items, argv[i], &has_next);
            i += has_next;
            continue;
        }
        const char *meant = find_meant(argv[i]);
        if (meant)
            cli_suggest_word(err, argc, argv, i, meant);
        if (meant)
            return;
        if (!argv[i][0] || !strstr(err->message, argv[i]))
            continue;
        if (!path_exists(argv[i]))
            write_nearest(&path, argv[i]);
        else if (strstr(err->message, "; name the one that is meant"))
            write_last_checkpoint(&path, argv[i], strcmp(verb->name, "verify") == 0);
        else
            continue;
        if (!path.data && path_exists(argv[i]))
            (void)cli_suggest_command(err, PHEMA_ERR_FILE, "posthoc-ema inspect", argv[i]);
        if (path.data && !path.is_failed && path_exists(path.data))
            cli_suggest_word(err, argc, argv, i, path.data);
        phema_strbuf_clear(&path);
        return;
    }
}

void remedy_suggest_order(struct phema_error *err, const struct cli_verb *verb, int argc,
                          char **argv)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    struct editing editing = {.options = options.items};
    const char **operands = calloc((size_t)argc, sizeof(*operands));
    size_t n = operands ? command_split_operands(&editing, operands, argc, argv) : 0;
    bool is_turned = n == 2 && command_find_operand(options.items, "SNAPSHOTS", 9) &&
                     command_find_operand(options.items, "OUT", 3) && !path_exists(operands[0]) &&
                     path_is_directory(operands[1]);
    for (size_t i = n; is_turned && i-- > 0;)
        command_add_operand(&editing, operands[i], strlen(operands[i]));
    if (is_turned)
        command_set_remedy(err, verb, &editing);
    else
        phema_strbuf_clear(&editing.tail);
    free(operands);
}
