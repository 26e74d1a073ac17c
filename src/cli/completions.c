// SPDX-License-Identifier: Apache-2.0
/* completions.c - scripts for bash, zsh and fish. The placeholder of a value in the table tells
 * which words are offered. Lower-case words between bars are offered as they are; FILE and DIR
 * complete file names; other values are not completed. */
#include "cli.h"
#include "remedy/remedy.h"

#include <string.h>

static bool takes_value(const struct cli_opt *option)
{
    return option->kind != CLI_FLAG && !cli_is_operand(option);
}

static bool is_repeatable(const struct cli_opt *option)
{
    return option->kind == CLI_TEXTS || option->kind == CLI_OPERANDS;
}

/* ---- Values ---- */

static bool is_word(struct phema_span part)
{
    for (size_t i = 0; i < part.size; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", part.data[i]))
            return false;
    return part.size > 0;
}

/* Writes the words that are offered, separated by spaces; false when there are no words. */
static bool write_words(struct phema_strbuf *out, const struct cli_opt *option)
{
    bool is_any = false;
    for (const char *at = option->value; at;) {
        struct phema_span part = cli_next_choice(&at);
        if (!is_word(part))
            continue;
        if (is_any)
            phema_strbuf_puts(out, " ");
        phema_strbuf_append(out, (const char *)part.data, part.size);
        is_any = true;
    }
    return is_any;
}

static bool has_words(const struct cli_opt *option)
{
    struct phema_strbuf unused = {0};
    bool is_any = write_words(&unused, option);
    phema_strbuf_clear(&unused);
    return is_any;
}

static bool is_file(const struct cli_opt *option)
{
    if (cli_is_operand(option))
        return !has_words(option);
    return cli_find_choice(option->value, "FILE") != SIZE_MAX ||
           cli_find_choice(option->value, "DIR") != SIZE_MAX;
}

/* Writes help on one line, for use within single quotes. escaped: characters that need a
 * backslash. */
static void write_help(struct phema_strbuf *out, const char *help, const char *escaped)
{
    for (const char *at = help; *at; at++) {
        if (*at == '\n') {
            phema_strbuf_puts(out, " ");
        } else if (*at == '\'') {
            phema_strbuf_puts(out, "'\\''");
        } else {
            if (strchr(escaped, *at))
                phema_strbuf_puts(out, "\\");
            phema_strbuf_append(out, at, 1);
        }
    }
}

static void write_verbs(struct phema_strbuf *out, const struct cli_verb *const *verbs)
{
    for (size_t i = 0; verbs[i]; i++)
        phema_strbuf_printf(out, "%s%s", i ? " " : "", verbs[i]->name);
}

/* ---- bash ---- */

static const char bash_head[] =
    "# Completions of posthoc-ema for bash, as printed by posthoc-ema help --completions bash.\n"
    "_posthoc_ema() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} option='' flags='' valued=''\n"
    "    local operands='' words='' files='' at=2 n_operands=0\n"
    "    COMPREPLY=()\n"
    "    # Bash parts words at '=': --metric=walk is three of them.\n"
    "    if [ \"$cur\" = = ]; then\n"
    "        cur=''\n"
    "        option=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    elif [ \"${COMP_WORDS[COMP_CWORD - 1]}\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    elif [ \"$COMP_CWORD\" -gt 2 ]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    fi\n";

static const char bash_tail[] =
    "    if [ \"$COMP_CWORD\" -gt 1 ] && [[ \" $valued \" == *\" $option \"* ]] && [ \"$option\" "
    "]; "
    "then\n"
    "        : # a value, of what the tables say\n"
    "    elif [ \"$COMP_CWORD\" -gt 1 ] && [[ $cur == -* ]]; then\n"
    "        words=\"$flags $valued\" files=''\n"
    "    elif [ \"$COMP_CWORD\" -gt 1 ]; then\n"
    "        while [ \"$at\" -lt \"$COMP_CWORD\" ]; do\n"
    "            if [[ \" $valued \" == *\" ${COMP_WORDS[at]} \"* ]]; then\n"
    "                [ \"${COMP_WORDS[at + 1]}\" = = ] && at=$((at + 1))\n"
    "                at=$((at + 1))\n"
    "            elif [[ ${COMP_WORDS[at]} != -* ]]; then\n"
    "                n_operands=$((n_operands + 1))\n"
    "            fi\n"
    "            at=$((at + 1))\n"
    "        done\n"
    "        local kinds=()\n"
    "        read -ra kinds <<<\"$operands\"\n"
    "        [ ${#kinds[@]} -gt 0 ] && [ \"${kinds[-1]}\" = ... ] &&\n"
    "            [ \"$n_operands\" -ge $((${#kinds[@]} - 1)) ] && n_operands=$((${#kinds[@]} - "
    "2))\n"
    "        words=${kinds[n_operands]//|/ }\n"
    "        [ \"$words\" = FILE ] && words='' files=1\n"
    "    fi\n"
    "    local IFS=$'\\n'\n"
    "    if [ \"$files\" ]; then\n"
    "        compopt -o filenames\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "    else\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"${words// /$'\\n'}\" -- \"$cur\")\n"
    "    fi\n"
    "}\n"
    "complete -F _posthoc_ema posthoc-ema\n";

static void write_bash_names(struct phema_strbuf *out, const struct cli_opt *options,
                             bool are_valued)
{
    const char *before = "";
    for (const struct cli_opt *o = options; o->name; o++) {
        if (cli_is_operand(o) || takes_value(o) != are_valued)
            continue;
        phema_strbuf_printf(out, "%s--%s", before, o->name);
        before = " ";
        if (o->letter)
            phema_strbuf_printf(out, " -%c", o->letter);
    }
}

static void write_bash_operands(struct phema_strbuf *out, const struct cli_opt *options)
{
    const char *before = "";
    for (const struct cli_opt *o = options; o->name; o++) {
        if (!cli_is_operand(o))
            continue;
        phema_strbuf_printf(out, "%s%s%s", before, has_words(o) ? o->value : "FILE",
                            is_repeatable(o) ? " ..." : "");
        before = " ";
    }
}

static void write_bash_verb(struct phema_strbuf *out, const struct cli_verb *verb)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    phema_strbuf_printf(out, "    %s)\n        flags='", verb->name);
    write_bash_names(out, options.items, false);
    phema_strbuf_puts(out, "'\n        valued='");
    write_bash_names(out, options.items, true);
    phema_strbuf_puts(out, "'\n        operands='");
    write_bash_operands(out, options.items);
    phema_strbuf_puts(out, "'\n        case $option in\n");
    for (const struct cli_opt *o = options.items; o->name; o++) {
        if (!takes_value(o) || (!has_words(o) && !is_file(o)))
            continue;
        phema_strbuf_printf(out, "        --%s", o->name);
        if (o->letter)
            phema_strbuf_printf(out, " | -%c", o->letter);
        phema_strbuf_puts(out, ") ");
        if (is_file(o)) {
            phema_strbuf_puts(out, "files=1");
        } else {
            phema_strbuf_puts(out, "words='");
            (void)write_words(out, o);
            phema_strbuf_puts(out, "'");
        }
        phema_strbuf_puts(out, " ;;\n");
    }
    phema_strbuf_puts(out, "        esac\n        ;;\n");
}

static void write_bash(struct phema_strbuf *out, const struct cli_verb *const *verbs)
{
    phema_strbuf_puts(out, bash_head);
    phema_strbuf_puts(out, "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='");
    write_verbs(out, verbs);
    phema_strbuf_puts(out, " help'\n        [[ $cur == -* ]] && words='--help --version'\n    fi\n"
                           "    case $verb in\n");
    for (size_t i = 0; verbs[i]; i++)
        write_bash_verb(out, verbs[i]);
    phema_strbuf_puts(out, "    help)\n        valued='--completions'\n        operands='");
    for (size_t i = 0; verbs[i]; i++)
        phema_strbuf_printf(out, "%s%s", i ? "|" : "", verbs[i]->name);
    phema_strbuf_puts(out, "'\n        [ \"$option\" = --completions ] && words='bash zsh fish'\n"
                           "        ;;\n    esac\n");
    phema_strbuf_puts(out, bash_tail);
}

/* ---- zsh ---- */

static const char zsh_head[] =
    "#compdef posthoc-ema\n"
    "# Completions of posthoc-ema for zsh, as printed by posthoc-ema help --completions zsh.\n"
    "_posthoc_ema() {\n"
    "    local -a verbs\n"
    "    verbs=(\n";

static const char zsh_verbs[] =
    "        'help:how to use a verb'\n"
    "    )\n"
    "    if (( CURRENT == 2 )); then\n"
    "        if [[ $words[2] == -* ]]; then\n"
    "            _values option '--help[the verbs]' '--version[the version]'\n"
    "        else\n"
    "            _describe -t verbs verb verbs\n"
    "        fi\n"
    "        return\n"
    "    fi\n"
    "    local verb=$words[2]\n"
    "    shift words\n"
    "    (( CURRENT-- ))\n"
    "    case $verb in\n";

static const char zsh_tail[] =
    "    help)\n"
    "        _arguments '--completions[a script for this shell]:SHELL:(bash zsh fish)' \\\n"
    "            '1:VERB:(";

static const char zsh_end[] = ")'\n"
                              "        ;;\n"
                              "    esac\n"
                              "}\n"
                              "if [[ $funcstack[1] == _posthoc-ema ]]; then\n"
                              "    _posthoc_ema \"$@\"\n"
                              "else\n"
                              "    compdef _posthoc_ema posthoc-ema\n"
                              "fi\n";

static void write_zsh_value(struct phema_strbuf *out, const struct cli_opt *option)
{
    if (is_file(option)) {
        phema_strbuf_puts(out, "_files");
    } else if (has_words(option)) {
        phema_strbuf_puts(out, "(");
        (void)write_words(out, option);
        phema_strbuf_puts(out, ")");
    } else {
        phema_strbuf_puts(out, " "); /* nothing to offer */
    }
}

static void write_zsh_option(struct phema_strbuf *out, const struct cli_opt *option)
{
    phema_strbuf_puts(out, " \\\n            ");
    if (is_repeatable(option))
        phema_strbuf_puts(out, "'*'");
    else if (option->letter)
        phema_strbuf_printf(out, "'(-%c --%s)'", option->letter, option->name);
    const char *equals = takes_value(option) ? "=" : "";
    if (option->letter)
        phema_strbuf_printf(out, "{-%c%s,--%s%s}'[", option->letter, *equals ? "+" : "",
                            option->name, equals);
    else
        phema_strbuf_printf(out, "'--%s%s[", option->name, equals);
    write_help(out, option->help, "\\[]");
    phema_strbuf_puts(out, "]");
    if (takes_value(option)) {
        phema_strbuf_puts(out, ":");
        write_help(out, has_words(option) ? option->name : option->value, "\\:");
        phema_strbuf_puts(out, ":");
        write_zsh_value(out, option);
    }
    phema_strbuf_puts(out, "'");
}

static void write_zsh_verb(struct phema_strbuf *out, const struct cli_verb *verb)
{
    struct cli_options options;
    cli_list_options(&options, verb);
    phema_strbuf_printf(out, "    %s)\n        _arguments -s -S", verb->name);
    int n_operands = 0;
    for (const struct cli_opt *o = options.items; o->name; o++) {
        if (!cli_is_operand(o)) {
            write_zsh_option(out, o);
            continue;
        }
        phema_strbuf_puts(out, " \\\n            ");
        if (is_repeatable(o))
            phema_strbuf_puts(out, "'*:");
        else
            phema_strbuf_printf(out, "'%d:", ++n_operands);
        write_help(out, o->name, "\\:");
        phema_strbuf_puts(out, ":");
        write_zsh_value(out, o);
        phema_strbuf_puts(out, "'");
    }
    phema_strbuf_puts(out, "\n        ;;\n");
}

static void write_zsh(struct phema_strbuf *out, const struct cli_verb *const *verbs)
{
    phema_strbuf_puts(out, zsh_head);
    for (size_t i = 0; verbs[i]; i++) {
        phema_strbuf_printf(out, "        '%s:", verbs[i]->name);
        write_help(out, verbs[i]->summary, "\\:");
        phema_strbuf_puts(out, "'\n");
    }
    phema_strbuf_puts(out, zsh_verbs);
    for (size_t i = 0; verbs[i]; i++)
        write_zsh_verb(out, verbs[i]);
    phema_strbuf_puts(out, zsh_tail);
    write_verbs(out, verbs);
    phema_strbuf_puts(out, zsh_end);
}

/* ---- fish ---- */

static const char fish_head[] =
    "# Completions of posthoc-ema for fish, as printed by posthoc-ema help --completions fish.\n"
    "function __posthoc_ema_verb_is\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -ge 2; and test \"$words[2]\" = $argv[1]\n"
    "end\n"
    "function __posthoc_ema_has_no_verb\n"
    "    test (count (commandline -opc)) -eq 1\n"
    "end\n"
    "# Options before it do not count: they may have values of their own.\n"
    "function __posthoc_ema_at_first_word\n"
    "    test (count (commandline -opc)) -eq 2\n"
    "end\n"
    "complete -c posthoc-ema -f\n"
    "complete -c posthoc-ema -n __posthoc_ema_has_no_verb -l help -d 'the verbs'\n"
    "complete -c posthoc-ema -n __posthoc_ema_has_no_verb -l version -d 'the version'\n"
    "complete -c posthoc-ema -n __posthoc_ema_has_no_verb -a help -d 'how to use a verb'\n"
    "complete -c posthoc-ema -n '__posthoc_ema_verb_is help' -l completions -x -a 'bash zsh fish' "
    "-d 'a script for this shell'\n"
    "complete -c posthoc-ema -n '__posthoc_ema_verb_is help' -a '";

static void write_fish_begin(struct phema_strbuf *out, const struct cli_verb *verb)
{
    phema_strbuf_printf(out, "complete -c posthoc-ema -n '__posthoc_ema_verb_is %s", verb->name);
}

/* begins_with_word: the first operand is a word, and this operand comes after it. */
static void write_fish_operand(struct phema_strbuf *out, const struct cli_verb *verb,
                               const struct cli_opt *option, bool begins_with_word)
{
    write_fish_begin(out, verb);
    if (has_words(option)) {
        phema_strbuf_puts(out, "; and __posthoc_ema_at_first_word' -a '");
        (void)write_words(out, option);
        phema_strbuf_puts(out, "' -d '");
        write_help(out, option->name, "\\");
        phema_strbuf_puts(out, "'\n");
    } else {
        phema_strbuf_printf(out, "%s' -F\n",
                            begins_with_word ? "; and not __posthoc_ema_at_first_word" : "");
    }
}

static void write_fish_option(struct phema_strbuf *out, const struct cli_verb *verb,
                              const struct cli_opt *option)
{
    write_fish_begin(out, verb);
    phema_strbuf_printf(out, "' -l %s", option->name);
    if (option->letter)
        phema_strbuf_printf(out, " -s %c", option->letter);
    if (is_file(option)) {
        phema_strbuf_puts(out, " -r -F");
    } else if (has_words(option)) {
        phema_strbuf_puts(out, " -x -a '");
        (void)write_words(out, option);
        phema_strbuf_puts(out, "'");
    } else if (takes_value(option)) {
        phema_strbuf_puts(out, " -x");
    }
    phema_strbuf_puts(out, " -d '");
    write_help(out, option->help, "\\");
    phema_strbuf_puts(out, "'\n");
}

static void write_fish(struct phema_strbuf *out, const struct cli_verb *const *verbs)
{
    phema_strbuf_puts(out, fish_head);
    write_verbs(out, verbs);
    phema_strbuf_puts(out, "'\n");
    for (size_t i = 0; verbs[i]; i++) {
        phema_strbuf_printf(out, "complete -c posthoc-ema -n __posthoc_ema_has_no_verb -a %s -d '",
                            verbs[i]->name);
        write_help(out, verbs[i]->summary, "\\");
        phema_strbuf_puts(out, "'\n");
        bool begins_with_word = false;
        struct cli_options options;
        cli_list_options(&options, verbs[i]);
        for (const struct cli_opt *o = options.items; o->name; o++) {
            if (!cli_is_operand(o)) {
                write_fish_option(out, verbs[i], o);
                continue;
            }
            write_fish_operand(out, verbs[i], o, begins_with_word);
            begins_with_word |= has_words(o);
        }
    }
}

PHEMA_FALLIBLE cli_write_completions(struct phema_strbuf *out, const struct cli_verb *const *verbs,
                                     const char *shell, struct phema_error *err)
{
    static const struct {
        const char *name;
        void (*write)(struct phema_strbuf *out, const struct cli_verb *const *verbs);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    for (size_t i = 0; shell && i < ARRAY_LEN(shells); i++) {
        if (strcmp(shell, shells[i].name) != 0)
            continue;
        shells[i].write(out, verbs);
        return PHEMA_OK;
    }
    if (!shell)
        return cli_fail_option(err, PHEMA_ERR_USAGE, "completions",
                               "expected bash, zsh or fish after it");
    return cli_fail_option(err, PHEMA_ERR_USAGE, "completions",
                           "'%s' is not one of bash, zsh, fish", shell);
}
