/* remedy.h - from what is wrong with a command line to a command that works, after "try:". */
#ifndef CLI_REMEDY_REMEDY_H
#define CLI_REMEDY_REMEDY_H

#include "options.h"
#include "phema/series.h"

/* As phema_fail and phema_fail_in; the message begins with "--OPTION: ", which it is about. */
enum phema_status cli_fail_option(struct phema_error *err, enum phema_status status,
                                  const char *option, const char *format, ...) PHEMA_PRINTF(4, 5);
enum phema_status cli_fail_in_option(struct phema_error *err, enum phema_status status,
                                     const char *option);

/* Adds a change of the command line, and returns the status. name: an option ("force") or an
 * operand ("OUT"). value: NULL for a flag; "" leaves an option out */
enum phema_status cli_suggest(struct phema_error *err, enum phema_status status, const char *name,
                              const char *value);
/* Sets the remedy to a whole command, quoted for a shell; "": none. */
void cli_set_command(struct phema_error *err, const char *format, ...) PHEMA_PRINTF(2, 3);
/* The same with a word that may need quotes, and returns the status. */
enum phema_status cli_suggest_command(struct phema_error *err, enum phema_status status,
                                      const char *command, const char *word);
const char *cli_command(const struct phema_error *err); /* "" without one */

/* The known word nearest to an unknown one; NULL when every word is too different. */
const char *cli_nearest(const char *word, const char *(*name)(const void *table, size_t index),
                        const void *table);
/* Proposes a value in place of one that cannot be read, or to leave the option out. */
void cli_suggest_value(struct phema_error *err, const struct cli_opt *option, const char *text);
/* Proposes the word of "a|b|c" that is nearest, else the first if that is the default. name: "--dtype" or
 * "KIND" */
void cli_suggest_choice(struct phema_error *err, const char *name, const char *words,
                        const char *text, bool has_default);

/* Whether outputs in a directory have parts, which join finishes. */
bool cli_has_parts(const char *directory);

/* PHEMA_ERR_OUTPUT where the value of OUT, DIR or --output is a URL, which nothing can write. */
PHEMA_FALLIBLE cli_check_output(const struct cli_opt *option, const char *text,
                                struct phema_error *err);

/* Proposes the command line with another word in place of argv[at]; -o FILE at its end as OUT; the
 * operands as they were meant. */
void cli_suggest_word(struct phema_error *err, const struct cli_line *line, int at,
                      const char *format, ...) PHEMA_PRINTF(4, 5);
/* n words from argv[at] on are replaced by words, which are quoted. */
void cli_suggest_words(struct phema_error *err, const struct cli_line *line, int at, int n,
                       const char *words);
void cli_suggest_out_last(struct phema_error *err, const struct cli_line *line, int at);
/* "--into run out.pt", where OUT is missing: without the option whose value was forgotten, which the
 * message says then. */
bool cli_suggest_forgotten_value(struct phema_error *err, const struct cli_line *line);
/* Writes the value of an option and the next word as one value, if both make one: "0.1 0.2" is
 * "0.1,0.2", and "64 MB" is "64MB". */
bool cli_join_values(struct phema_strbuf *out, const struct cli_opt *option, const char *value,
                     const char *next);
/* Adds a word before the operand. */
void cli_suggest_operand_before(struct phema_error *err, const struct cli_line *line,
                                const char *operand, const char *word);
void cli_suggest_operands(struct phema_error *err, const struct cli_line *line);
/* Whether all of several SNAPSHOTS are there: a value in pieces looks like one.
 * PHEMA_ERR_USAGE  something else was meant, which the remedy says
 * PHEMA_ERR_FILE   one is not there */
PHEMA_FALLIBLE cli_check_snapshots(const struct cli_line *line, struct phema_error *err);

/* Writes a command that makes averages of the series, with the options that were given and others:
 * "--from 6 ". */
void cli_write_next(struct phema_strbuf *out, const struct cli_common *common,
                    const struct phema_series *series,
                    const struct phema_checkpoint_options *checkpoint, const char *options,
                    bool asks_whether_raw);

/* Makes a remedy of options and operands (error.h) a whole command: the command line with these
 * changes. One that names an option which the verb lacks is removed. Without a remedy: a file with
 * a similar name, or the command without the option that the message begins with. */
void cli_complete_remedy(struct phema_error *err, enum phema_status status,
                         const struct cli_line *line);

/* ---- suggestion.c ---- */

/* A new command: the options that the line lacks, then its words, some of them changed. */
struct editing {
    const struct cli_line *line;
    struct phema_strbuf head, tail;
};

/* Append a word, quoted for a shell; or an operand, which may begin with a dash. */
void command_add_word(struct editing *editing, const char *word);
void command_add_operand(struct editing *editing, const char *path);

/* The operand of that name; NULL: none. */
const struct cli_opt *command_find_operand(const struct cli_line *line, const char *name);

/* The operands of the command line, in an array that the caller frees; the words before and between
 * them go to the tail. 0 operands where there is no memory. */
size_t command_split_operands(struct editing *editing, const char ***operands);

/* Sets the remedy to the command, and clears it. */
void command_set_remedy(struct phema_error *err, struct editing *editing);

/* ---- operands.c ---- */

/* A file that is not there: one with a similar name. A directory in place of a file: one in it. */
void remedy_suggest_path(struct phema_error *err, const struct cli_line *line);
/* "synth OUT SNAPSHOTS" or "plot SNAPSHOTS KIND": the same with the operands in their order. */
void remedy_suggest_order(struct phema_error *err, const struct cli_line *line);

#ifdef __clang_analyzer__ /* as in phema/error.h */
#define cli_fail_option(err, status, ...)                                                          \
    ((void)(cli_fail_option)(err, status, __VA_ARGS__), (status))
#define cli_fail_in_option(err, status, option)                                                    \
    ((void)(cli_fail_in_option)(err, status, option), (status))
#define cli_suggest(err, status, name, value)                                                      \
    ((void)(cli_suggest)(err, status, name, value), (status))
#define cli_suggest_command(err, status, command, word)                                            \
    ((void)(cli_suggest_command)(err, status, command, word), (status))
#endif

#endif
