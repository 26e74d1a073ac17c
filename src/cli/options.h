/* options.h - option tables, one per verb. Parsing, --help, completions, typo suggestions and the
 * command in a provenance all use them. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stddef.h>

#include "phema/arena.h"
#include "phema/error.h"
#include "phema/render.h"
#include "phema/span.h"
#include "phema/strbuf.h"
#include "phema/terminal.h"

enum cli_group { INPUT, TARGET, OUTPUT, NUMBERS, RESOURCES, MESSAGES };

enum cli_kind {
    CLI_OPERAND,  /* const char *; in the order of the table */
    CLI_OPERANDS, /* struct cli_texts or CLI_LIST: one or more, all but those of the rows behind */
    CLI_FLAG,     /* bool */
    CLI_TEXT,     /* const char * */
    CLI_TEXTS,    /* struct cli_texts or CLI_LIST, repeatable */
    CLI_WORD,     /* const char *, one of value's a|b|c */
    CLI_CHOICE,   /* unsigned or an enum: the index of one of value's a|b|c, or its meaning */
    CLI_EITHER,   /* bool: true for the second of value's a|b */
    CLI_REAL,     /* double; NaN until given */
    CLI_REALS,    /* struct cli_reals or CLI_LIST: "0.1,0.2", "0.01:0.25:0.005", "1,2,...,9" */
    CLI_COUNT,    /* uint64_t, whole, with suffixes: phema_count_parse */
    CLI_SIZE,     /* uint64_t, bytes: phema_size_parse */
    CLI_ROWS      /* no option: the rows of another table, CLI_INCLUDE */
};

enum {
    CLI_OPTIONAL = 1, /* an operand that may be missing */
    /* The values that determine an output are recorded in its provenance. --skip-existing compares
     * the values of SHAPES_BYTES, and the snapshots and weights that come of SHAPES_WEIGHTS. */
    CLI_SHAPES_BYTES = 2,
    CLI_SHAPES_WEIGHTS = 64,
    CLI_POSITIVE = 4, /* a count that may not be 0 */
    CLI_NEGATED = 8,  /* CLI_FLAG: sets false; CLI_EITHER: true for the first word */
    CLI_INITIALLY_TRUE = 16,
    CLI_EVERYDAY = 32,    /* in -h, too, which shows the options of every day */
    CLI_RARE = 256,       /* in the man page and in help --all only */
    CLI_DEPRECATED = 512, /* in no help, and warns; help is the words that replace it */
    CLI_NEEDED = 128,     /* without it the result would be another, or none: no remedy drops it */
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
    /* The value in help: the choices, or a placeholder; FILE and DIR are names of files. Of an
     * operand, not in help: its possible words, or NULL for names of files. */
    const char *value;
    const char *help;
    unsigned flags;
    char letter;                /* -j */
    uint64_t initial;           /* of CLI_COUNT and CLI_CHOICE, until it is given */
    uint64_t most;              /* of CLI_COUNT; 0: no limit */
    const unsigned *meanings;   /* of CLI_CHOICE, of each choice; NULL: their indices */
    const struct cli_opt *rows; /* of CLI_ROWS; ends with a name of NULL */
};

/* Includes a shared table. at: offset of the struct that its rows fill. */
#define CLI_INCLUDE(table, at)                                                                     \
    {                                                                                              \
        .name = "", .kind = CLI_ROWS, .offset = (at), .rows = (table)                              \
    }

/* The meanings of choices. */
#define CLI_MEANINGS(...) ((const unsigned[]){__VA_ARGS__})

/* The offset of a list in a struct of the library: a pointer, followed by a size_t n. */
#define CLI_LIST(type, items, n)                                                                   \
    (offsetof(type, items) +                                                                       \
     0 * sizeof(char[offsetof(type, n) == offsetof(type, items) + sizeof(void *) ? 1 : -1]))

struct cli_verb {
    const char *name;
    const char *summary;
    const struct cli_opt *options; /* ends with a name of NULL */
    const char *examples;          /* lines: "command\n    what it does\n" */
    size_t values_size;            /* of the struct the table fills */
    enum phema_status (*run)(void *values, struct phema_error *err);
};

/* All options of a table, those of included ones too, with offsets in the outermost struct. */
#define CLI_MAX_OPTIONS 80
struct cli_options {
    struct cli_opt items[CLI_MAX_OPTIONS + 1]; /* ends with a name of NULL */
    size_t n;
};
void cli_list_options(struct cli_options *out, const struct cli_opt *rows);

/* The command line of a verb. */
struct cli_line {
    const struct cli_verb *verb;
    int argc;
    char **argv; /* argv[1] is the verb */
    struct cli_options options;
    bool is_given[CLI_MAX_OPTIONS]; /* options on the command line */
};

/* A word after the verb: an operand, an option, or "--". */
struct cli_word {
    int at; /* in argv; 0 before the first one */
    const char *text;
    bool is_operand, are_options_over;
    const struct cli_opt *option; /* that it names; NULL: none, or several letters together */
    bool takes_next;              /* the next word is its value, which is no word of its own */
};
/* false: there is no other. word: {0} at first */
bool cli_next_word(struct cli_word *word, const struct cli_line *line);

size_t cli_count_operands(const struct cli_line *line);
/* The row of operand k of n; NULL: there are too many. */
const struct cli_opt *cli_find_row(const struct cli_opt *options, size_t k, size_t n);

/* First member of every verb's struct. */
struct cli_common {
    struct phema_arena arena;
    struct render_style style;
    bool is_help, is_short_help; /* --help, -h */
    bool has_no_color;           /* as --color never */
    enum terminal_color color;
    struct cli_line line;
    const struct phema_team *team; /* of MPI processes (phema/cli.h), or NULL */
    const char *command;      /* "posthoc-ema VERB", for messages that complete a command line */
    const char *command_tail; /* the words after the verb, shell-quoted, each with a space before */
    const char *repeated_options; /* those that shape bytes, shell-quoted, for the provenance */
};

/* The first option of SHAPES_BYTES whose values differ in two structs that the rows have filled;
 * NULL: none. */
const char *cli_find_difference(const struct cli_opt *rows, const void *a, const void *b);

bool cli_is_operand(const struct cli_opt *option);

/* The first of the choices "a|b|c" at *at, which moves to the next one; NULL after the last. */
struct phema_span cli_next_choice(const char **at);
/* The option of that name, of so many bytes; NULL: none. */
const struct cli_opt *cli_find_option(const struct cli_opt *options, const char *name, size_t size);
const struct cli_opt *cli_find_letter(const struct cli_opt *options, char letter);

/* The index of text in choices; SIZE_MAX when it is absent, or choices is NULL. */
size_t cli_find_choice(const char *choices, const char *text);

/* Fills values (zeroed, of verb->values_size) from argv[2..]. PHEMA_ERR_USAGE names the option, the
 * value and the values that are accepted. */
PHEMA_FALLIBLE cli_parse(const struct cli_verb *verb, void *values, int argc, char **argv,
                         struct phema_error *err);

/* Values of another verb, which are the first member of those of the line: options that the line's
 * own verb lacks get what they are when nobody gives them. */
void cli_set_others(void *values, const struct cli_line *line, const struct cli_verb *other);

/* True when the command line has this option of the verb. */
bool cli_is_given(const struct cli_common *common, const char *name);

/* ---- number_list.c ---- */

PHEMA_FALLIBLE cli_parse_reals(struct cli_reals *out, struct phema_arena *arena, const char *text,
                               struct phema_error *err);

#endif
