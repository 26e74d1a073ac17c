/* mistakes.h - what was meant by words of a command line that the option table does not accept: the
 * error, and the command after "try:". */
#ifndef CLI_MISTAKES_H
#define CLI_MISTAKES_H

#include "options.h"

/* A command line while it is parsed. */
struct parse {
    struct cli_line *line;         /* that of the verb's struct */
    const struct cli_opt *options; /* of the line */
    struct cli_common *common;
    char *values;
    const struct cli_opt *next_operand;
    size_t n_operands, n_seen; /* on the line, and so far */
    struct phema_strbuf repeated;
};

void *parse_field(const struct parse *parse, const struct cli_opt *option); /* its value */
/* The option of this name, which a value may follow behind an equals sign; NULL: none. */
const struct cli_opt *parse_name(const struct parse *parse, const char *name);
/* The operand that has to follow, and is not there; NULL: none. */
const struct cli_opt *parse_find_missing(const struct parse *parse);

/* Each fails with PHEMA_ERR_USAGE. at: place in argv */
/* name: without dashes */
enum phema_status mistake_unknown(const struct parse *parse, int at, const char *name,
                                  struct phema_error *err);
enum phema_status mistake_missing(const struct parse *parse, const struct cli_opt *operand,
                                  struct phema_error *err);
enum phema_status mistake_without_value(const struct parse *parse, const struct cli_opt *option,
                                        int at, struct phema_error *err);
/* Of an operand too many, or one that is an option behind a typographic dash. */
enum phema_status mistake_unexpected(const struct parse *parse, const char *argument,
                                     struct phema_error *err);
enum phema_status mistake_typographic(const struct parse *parse, const char *argument,
                                      struct phema_error *err);
/* Whether the operand is an option behind such a dash. */
bool mistake_is_typographic(const struct parse *parse, const char *argument);

#endif
