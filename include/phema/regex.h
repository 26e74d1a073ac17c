/* regex.h - bounded regular expressions, for names of files and tensors and the output of commands.
 */
#ifndef PHEMA_REGEX_H
#define PHEMA_REGEX_H

#include "phema/error.h"
#include "phema/span.h"

struct phema_regex;

/* PHEMA_ERR_USAGE when the expression is not valid; the message quotes it. */
PHEMA_FALLIBLE phema_regex_compile(struct phema_regex **out, const char *expression,
                                   struct phema_error *err);
void phema_regex_free(struct phema_regex *regex); /* takes NULL */

bool phema_regex_has_group(const struct phema_regex *regex, const char *group);

/* Searches anywhere in the subject. PHEMA_ERR_USAGE when the search meets PCRE2's limits: neither
 * answer is known. */
PHEMA_FALLIBLE phema_regex_match(struct phema_regex *regex, const char *subject, size_t size,
                                 bool *is_match, struct phema_error *err);

/* After a match: the text of a named group, {NULL, 0} when it is not part of the match. */
struct phema_span phema_regex_group(const struct phema_regex *regex, const char *subject,
                                    const char *group);
/* The same by number: 0 is the whole match. */
struct phema_span phema_regex_numbered(const struct phema_regex *regex, const char *subject,
                                       unsigned number);

#endif
