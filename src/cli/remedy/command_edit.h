/* command_edit.h - a command line with some of its options and operands changed, for remedies. */
#ifndef CLI_COMMAND_EDIT_H
#define CLI_COMMAND_EDIT_H

#include "options.h"

/* A change of the command line. */
struct edit {
    const struct cli_opt *option; /* or operand */
    const char *value;            /* "" leaves the option out; NULL of a flag that stays */
    bool is_used;
};

struct editing {
    const struct cli_opt *options;
    struct edit edits[PHEMA_MOST_CHANGES];
    size_t n;
    struct phema_strbuf head, tail; /* options that were not there, the words that were */
};

/* The operand of that name, of so many bytes; NULL: none. */
const struct cli_opt *command_find_operand(const struct cli_opt *options, const char *name,
                                           size_t size);

/* The option that a word names, and whether the next word is its value. Unknown and combined
 * letters give NULL. */
const struct cli_opt *command_read_option(const struct cli_opt *options, const char *word,
                                          bool *has_next);

/* Append a word, quoted for a shell; and an operand, which may begin with a dash. */
void command_copy_word(struct phema_strbuf *out, const char *word);
void command_add_operand(struct editing *editing, const char *path, size_t size);

/* The operands of the command line; the words before and between them go to the tail. */
size_t command_split_operands(struct editing *editing, const char **operands, int argc,
                              char **argv);

/* Sets the remedy to the command with the changed words, and clears head and tail. */
void command_set_remedy(struct phema_error *err, const struct cli_verb *verb,
                        struct editing *editing);

/* Puts the command line with the changes of the error in their place. */
void command_edit_remedy(struct phema_error *err, const struct cli_verb *verb, int argc,
                         char **argv);

bool path_exists(const char *path);
bool path_is_directory(const char *path);

/* ---- paths.c ---- */

/* A file that is not there: one with a similar name. A directory in place of a file: one in it. */
void remedy_suggest_path(struct phema_error *err, const struct cli_verb *verb, int argc,
                         char **argv);
/* "synth OUT SNAPSHOTS": the same with the operands in their order. */
void remedy_suggest_order(struct phema_error *err, const struct cli_verb *verb, int argc,
                          char **argv);

#endif
