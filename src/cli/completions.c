// SPDX-License-Identifier: Apache-2.0
/* completions.c - scripts for bash, zsh and fish. What a value may be is read off its placeholder
 * in the table: lower-case words between bars are offered as they are, FILE and DIR stand for names
 * of files, all else is the user's to know. */
#include "completions.h"

#include <string.h>

#include "cli.h"

static bool is_operand(const struct cli_opt *option)
{
    return option->kind == CLI_OPERAND || option->kind == CLI_OPERANDS;
}

static bool takes_value(const struct cli_opt *option)
{
    return option->kind != CLI_FLAG && !is_operand(option);
}

static bool is_repeatable(const struct cli_opt *option)
{
    return option->kind == CLI_TEXTS || option->kind == CLI_OPERANDS;
}

/* ---- Values ---- */

static struct phema_span next_part(const char **at)
{
    const char *start = *at, *bar = strchr(start, '|');
    size_t size = bar ? (size_t)(bar - start) : strlen(start);
    *at = bar ? bar + 1 : NULL;
    return (struct phema_span){(const uint8_t *)start, size};
}

static bool is_word(struct phema_span part)
{
    for (size_t i = 0; i < part.size; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", part.data[i]))
            return false;
    return part.size > 0;
}

/* The words that are offered, with spaces between; false where there are none. */
static bool put_words(struct phema_strbuf *out, const struct cli_opt *option)
{
    bool is_any = false;
    for (const char *at = option->value; at;) {
        struct phema_span part = next_part(&at);
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
    bool is_any = put_words(&unused, option);
    phema_strbuf_clear(&unused);
    return is_any;
}

static bool is_file(const struct cli_opt *option)
{
    if (is_operand(option))
        return !has_words(option);
    for (const char *at = option->value; at;) {
        struct phema_span part = next_part(&at);
        if ((part.size == 4 && memcmp(part.data, "FILE", 4) == 0) ||
            (part.size == 3 && memcmp(part.data, "DIR", 3) == 0))
            return true;
    }
    return false;
}

/* Help on one line, for within single quotes; escaped: what takes a backslash before it. */
static void put_help(struct phema_strbuf *out, const char *help, const char *escaped)
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

static void put_verbs(struct phema_strbuf *out)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        phema_strbuf_printf(out, "%s%s", i ? " " : "", cli_verbs[i]->name);
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

static void put_bash_names(struct phema_strbuf *out, const struct cli_verb *verb, bool are_valued)
{
    const char *before = "";
    for (const struct cli_opt *o = verb->options; o->name; o++) {
        if (is_operand(o) || takes_value(o) != are_valued)
            continue;
        phema_strbuf_printf(out, "%s--%s", before, o->name);
        before = " ";
        if (o->letter)
            phema_strbuf_printf(out, " -%c", o->letter);
    }
}

static void put_bash_operands(struct phema_strbuf *out, const struct cli_verb *verb)
{
    const char *before = "";
    for (const struct cli_opt *o = verb->options; o->name; o++) {
        if (!is_operand(o))
            continue;
        phema_strbuf_printf(out, "%s%s%s", before, has_words(o) ? o->value : "FILE",
                            is_repeatable(o) ? " ..." : "");
        before = " ";
    }
}

static void put_bash_verb(struct phema_strbuf *out, const struct cli_verb *verb)
{
    phema_strbuf_printf(out, "    %s)\n        flags='", verb->name);
    put_bash_names(out, verb, false);
    phema_strbuf_puts(out, "'\n        valued='");
    put_bash_names(out, verb, true);
    phema_strbuf_puts(out, "'\n        operands='");
    put_bash_operands(out, verb);
    phema_strbuf_puts(out, "'\n        case $option in\n");
    for (const struct cli_opt *o = verb->options; o->name; o++) {
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
            (void)put_words(out, o);
            phema_strbuf_puts(out, "'");
        }
        phema_strbuf_puts(out, " ;;\n");
    }
    phema_strbuf_puts(out, "        esac\n        ;;\n");
}

static void write_bash(struct phema_strbuf *out)
{
    phema_strbuf_puts(out, bash_head);
    phema_strbuf_puts(out, "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='");
    put_verbs(out);
    phema_strbuf_puts(out, " help'\n        [[ $cur == -* ]] && words='--help --version'\n    fi\n"
                           "    case $verb in\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        put_bash_verb(out, cli_verbs[i]);
    phema_strbuf_puts(out, "    help)\n        valued='--completions'\n        operands='");
    for (size_t i = 0; cli_verbs[i]; i++)
        phema_strbuf_printf(out, "%s%s", i ? "|" : "", cli_verbs[i]->name);
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

static void put_zsh_value(struct phema_strbuf *out, const struct cli_opt *option)
{
    if (is_file(option)) {
        phema_strbuf_puts(out, "_files");
    } else if (has_words(option)) {
        phema_strbuf_puts(out, "(");
        (void)put_words(out, option);
        phema_strbuf_puts(out, ")");
    } else {
        phema_strbuf_puts(out, " "); /* nothing to offer */
    }
}

static void put_zsh_option(struct phema_strbuf *out, const struct cli_opt *option)
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
    put_help(out, option->help, "\\[]");
    phema_strbuf_puts(out, "]");
    if (takes_value(option)) {
        phema_strbuf_puts(out, ":");
        put_help(out, has_words(option) ? option->name : option->value, "\\:");
        phema_strbuf_puts(out, ":");
        put_zsh_value(out, option);
    }
    phema_strbuf_puts(out, "'");
}

static void put_zsh_verb(struct phema_strbuf *out, const struct cli_verb *verb)
{
    phema_strbuf_printf(out, "    %s)\n        _arguments -s -S", verb->name);
    int n_operands = 0;
    for (const struct cli_opt *o = verb->options; o->name; o++) {
        if (!is_operand(o)) {
            put_zsh_option(out, o);
            continue;
        }
        phema_strbuf_puts(out, " \\\n            ");
        if (is_repeatable(o))
            phema_strbuf_puts(out, "'*:");
        else
            phema_strbuf_printf(out, "'%d:", ++n_operands);
        put_help(out, o->name, "\\:");
        phema_strbuf_puts(out, ":");
        put_zsh_value(out, o);
        phema_strbuf_puts(out, "'");
    }
    phema_strbuf_puts(out, "\n        ;;\n");
}

static void write_zsh(struct phema_strbuf *out)
{
    phema_strbuf_puts(out, zsh_head);
    for (size_t i = 0; cli_verbs[i]; i++) {
        phema_strbuf_printf(out, "        '%s:", cli_verbs[i]->name);
        put_help(out, cli_verbs[i]->summary, "\\:");
        phema_strbuf_puts(out, "'\n");
    }
    phema_strbuf_puts(out, zsh_verbs);
    for (size_t i = 0; cli_verbs[i]; i++)
        put_zsh_verb(out, cli_verbs[i]);
    phema_strbuf_puts(out, zsh_tail);
    put_verbs(out);
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

static void put_fish_begin(struct phema_strbuf *out, const struct cli_verb *verb)
{
    phema_strbuf_printf(out, "complete -c posthoc-ema -n '__posthoc_ema_verb_is %s", verb->name);
}

/* begins_with_word: the first operand is one of some words, and this one is not it. */
static void put_fish_operand(struct phema_strbuf *out, const struct cli_verb *verb,
                             const struct cli_opt *option, bool begins_with_word)
{
    put_fish_begin(out, verb);
    if (has_words(option)) {
        phema_strbuf_puts(out, "; and __posthoc_ema_at_first_word' -a '");
        (void)put_words(out, option);
        phema_strbuf_puts(out, "' -d '");
        put_help(out, option->name, "\\");
        phema_strbuf_puts(out, "'\n");
    } else {
        phema_strbuf_printf(out, "%s' -F\n",
                            begins_with_word ? "; and not __posthoc_ema_at_first_word" : "");
    }
}

static void put_fish_option(struct phema_strbuf *out, const struct cli_verb *verb,
                            const struct cli_opt *option)
{
    put_fish_begin(out, verb);
    phema_strbuf_printf(out, "' -l %s", option->name);
    if (option->letter)
        phema_strbuf_printf(out, " -s %c", option->letter);
    if (is_file(option)) {
        phema_strbuf_puts(out, " -r -F");
    } else if (has_words(option)) {
        phema_strbuf_puts(out, " -x -a '");
        (void)put_words(out, option);
        phema_strbuf_puts(out, "'");
    } else if (takes_value(option)) {
        phema_strbuf_puts(out, " -x");
    }
    phema_strbuf_puts(out, " -d '");
    put_help(out, option->help, "\\");
    phema_strbuf_puts(out, "'\n");
}

static void write_fish(struct phema_strbuf *out)
{
    phema_strbuf_puts(out, fish_head);
    put_verbs(out);
    phema_strbuf_puts(out, "'\n");
    for (size_t i = 0; cli_verbs[i]; i++) {
        phema_strbuf_printf(out, "complete -c posthoc-ema -n __posthoc_ema_has_no_verb -a %s -d '",
                            cli_verbs[i]->name);
        put_help(out, cli_verbs[i]->summary, "\\");
        phema_strbuf_puts(out, "'\n");
        bool begins_with_word = false;
        for (const struct cli_opt *o = cli_verbs[i]->options; o->name; o++) {
            if (!is_operand(o)) {
                put_fish_option(out, cli_verbs[i], o);
                continue;
            }
            put_fish_operand(out, cli_verbs[i], o, begins_with_word);
            begins_with_word |= has_words(o);
        }
    }
}

PHEMA_FALLIBLE cli_write_completions(struct phema_strbuf *out, const char *shell,
                                     struct phema_error *err)
{
    static const struct {
        const char *name;
        void (*write)(struct phema_strbuf *out);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    for (size_t i = 0; shell && i < ARRAY_LEN(shells); i++) {
        if (strcmp(shell, shells[i].name) != 0)
            continue;
        shells[i].write(out);
        return PHEMA_OK;
    }
    if (!shell)
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "--completions: expected bash, zsh or fish after it");
    return phema_fail(err, PHEMA_ERR_USAGE, "--completions: '%s' is not one of bash, zsh, fish",
                      shell);
}
