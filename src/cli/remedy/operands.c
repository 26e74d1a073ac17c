// SPDX-License-Identifier: Apache-2.0
/* operands.c - operands and values that stand in wrong places or in pieces. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/number.h"
#include "remedy/command_edit.h"
#include "remedy/remedy.h"

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
            command_copy_word(&command, argv[i]);
    if (out)
        command_copy_word(&command, out);
    if (out && !command.is_failed)
        cli_set_command(err, "%s", command.data);
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
        if (i && name->data && path_exists(name->data))
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
    bool is_first = !n_name && !is_glob && !has_out && path_exists(operands[0]);
    if (n_name && name.data)
        command_add_operand(editing, name.data, name.size);
    else if (is_glob)
        command_add_operand(editing, slash ? operands[0] : ".",
                            slash ? (size_t)(slash - operands[0]) : 1);
    else if (is_first)
        command_add_operand(editing, operands[0], strlen(operands[0]));
    phema_strbuf_clear(&name);
    if (has_out)
        command_add_operand(editing, operands[n - 1], strlen(operands[n - 1]));
    return n_name || is_glob || is_first;
}

/* "--sigma-rel 0.1 0.2" or "--max-ram 64 MB": the words that were meant as one value. */
static bool join_values(struct editing *editing, int argc, char **argv)
{
    bool is_joined = false;
    for (int i = 2; i < argc; i++) {
        bool has_next = false;
        const struct cli_opt *option =
            argv[i][0] == '-' && argv[i][1]
                ? command_read_option(editing->options, argv[i], &has_next)
                : NULL;
        struct phema_strbuf value = {0}, longer = {0};
        command_copy_word(&editing->tail, argv[i]);
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
        command_copy_word(&editing->tail, value.data ? value.data : argv[i]);
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
            is_absent &= !path_exists(argv[i]);
            continue;
        }
        (void)command_read_option(options.items, argv[i], &has_next);
        if (has_next && i + 1 < argc && path_is_directory(argv[i + 1]))
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
    size_t n = operands ? command_split_operands(&editing, operands, argc, argv) : 0;
    struct editing joined = {.options = items};
    bool has_out = command_find_operand(items, "OUT", 3) != NULL;
    bool is_done = false;
    if (join_values(&joined, argc, argv)) {
        phema_strbuf_clear(&editing.tail);
        editing.tail = joined.tail;
        joined.tail = (struct phema_strbuf){0};
        is_done = true;
    } else if (cli_find_option(items, "sigma-rel", 9) && write_widths(&editing, operands, n)) {
        is_done = true;
    } else if (n && !path_exists(operands[0]) &&
               cli_find_option(items, operands[0], strlen(operands[0]))) {
        phema_strbuf_printf(&editing.tail, " --%s", operands[0]); /* "convert sigma-rel 0.1" */
        for (size_t i = 1; i < n; i++)
            command_copy_word(&editing.tail, operands[i]);
        is_done = true;
    } else if (n > 1 && has_out && !command_find_operand(items, "SNAPSHOTS", 9)) {
        command_add_operand(&editing, operands[0], strlen(operands[0])); /* verify takes one */
        is_done = true;
    } else if (command_find_operand(items, "SNAPSHOTS", 9) && cli_find_letter(items, 'o') &&
               n == (command_find_operand(items, "KIND", 4) ? 3 : 2)) { /* of plot, of report */
        phema_strbuf_puts(&editing.tail, " -o");
        command_copy_word(&editing.tail, operands[n - 1]);
        for (size_t i = 0; i + 1 < n; i++)
            command_add_operand(&editing, operands[i], strlen(operands[i]));
        is_done = true;
    } else if (n > 1 && command_find_operand(items, "SNAPSHOTS", 9)) {
        is_done = write_snapshots(&editing, operands, n, has_out && n > 2);
    }
    if (!is_done) {
        phema_strbuf_clear(&editing.tail);
        phema_strbuf_puts(&editing.tail, " -h");
    }
    command_set_remedy(err, verb, &editing);
    phema_strbuf_clear(&joined.tail);
    free(operands);
}
