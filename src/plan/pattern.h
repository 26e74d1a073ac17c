/* pattern.h - regular expressions: names of files and of tensors. The one user of PCRE2. */
#ifndef PLAN_PATTERN_H
#define PLAN_PATTERN_H

#include "phema/error.h"
#include "phema/span.h"

struct pattern;

/* PHEMA_ERR_USAGE when the expression is not valid; the message quotes it. */
PHEMA_FALLIBLE pattern_compile(struct pattern **out, const char *expression,
                               struct phema_error *err);
void pattern_free(struct pattern *pattern); /* takes NULL */

bool pattern_has_group(const struct pattern *pattern, const char *group);

/* Searches anywhere in the subject. PHEMA_ERR_USAGE when the search meets PCRE2's limits: neither
 * answer would be right. */
PHEMA_FALLIBLE pattern_match(struct pattern *pattern, const char *subject, size_t size,
                             bool *is_match, struct phema_error *err);

/* After a match: the text of a named group, {NULL, 0} when it is not part of the match. */
struct phema_span pattern_group(const struct pattern *pattern, const char *subject,
                                const char *group);

#endif
