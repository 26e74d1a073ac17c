/* options.h - option tables: one for each verb, from which parsing, help, completion of typos and
 * the command in the provenance all follow. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/span.h"
#include "phema/strbuf.h"

enum cli_group { INPUT, TARGET, OUTPUT, NUMBERS, RESOURCES, MESSAGES };

enum cli_kind {
    CLI_OPERAND,  /* const char *; in the order of the table */
    CLI_OPERANDS, /* struct cli_texts: all that are left, at least one */
    CLI_FLAG,     /* bool */
    CLI_TEXT,     /* const char * */
    CLI_TEXTS,    /* struct cli_texts, repeatable */
    CLI_CHOICE,   /* const char *, one of value's a|b|c */
    CLI_REAL,     /* double; NaN until given */
    CLI_REALS,    /* struct cli_reals: "0.1", "0.1,0.2", "0.01:0.25:0.005", "0.01,0.02,...,0.1" */
    CLI_COUNT,    /* uint64_t, whole, with suffixes: phema_count_parse */
    CLI_SIZE      /* uint64_t, bytes: phema_size_parse */
};

enum {
    CLI_OPTIONAL = 1,     /* an operand that may be missing */
    CLI_SHAPES_BYTES = 2, /* part of the command that makes an output again */
    CLI_POSITIVE = 4,     /* a count that may not be 0 */
};

struct cli_texts {
    const char **items;
    size_t n;
};

struct cli_reals {
    double *items;
    size_t n;
};

struct cli_opt {
    const char *name; /* without dashes; of an operand as help shows it */
    enum cli_group group;
    enum cli_kind kind;
    size_t offset;
    /* What help shows for the value: the choices of CLI_CHOICE; FILE and DIR are names of files. Of
     * an operand, which it does not show it for: the words it may be, NULL for names of files. */
    const char *value;
    const char *help;
    unsigned flags;
    char letter; /* -j */
};

struct cli_verb {
    const char *name;
    const char *summary;
    const struct cli_opt *options; /* ends with a name of NULL */
    const char *examples;          /* lines: "command\n    what it does\n" */
    size_t values_size;            /* of the struct the table fills */
    enum phema_status (*run)(void *values, struct phema_error *err);
};

/* First member of every verb's struct. */
struct cli_common {
    struct phema_arena arena;
    bool is_quiet, is_verbose, is_json, has_no_color, is_help;
    const char *progress;
    const struct cli_verb *verb;
    const char *command;      /* "posthoc-ema VERB", for messages that complete a command line */
    const char *command_tail; /* the words behind it, shell-quoted, each with a space before */
    const char *repeated_options; /* what shapes bytes, shell-quoted: for the provenance */
};

/* Fills values (zeroed, of verb->values_size) from argv[2..]. PHEMA_ERR_USAGE names the option, the
 * value and what would do. */
PHEMA_FALLIBLE cli_parse(const struct cli_verb *verb, void *values, int argc, char **argv,
                         struct phema_error *err);

void cli_write_help(struct phema_strbuf *out, const struct cli_verb *verb);

/* The known word nearest to one that is not known, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *(*name)(const void *table, size_t index),
                        const void *table);

void cli_shell_quote(struct phema_strbuf *out, const char *word);
/* The same of an operand, which must not look like an option: "./-run" for "-run". */
void cli_quote_operand(struct phema_strbuf *out, const char *path);

/* numbers.c */
PHEMA_FALLIBLE cli_parse_reals(struct cli_reals *out, struct phema_arena *arena, const char *text,
                               struct phema_error *err);

#endif
