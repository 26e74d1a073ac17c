/* twin_kinds.h - kinds of files: those of one kind have the same path but for the digits. */
#ifndef SERIES_TWIN_KINDS_H
#define SERIES_TWIN_KINDS_H

#include "candidates.h"

struct kind {
    const char *text;
    size_t n; /* candidates */
};

#define MOST_KINDS 8

struct kinds {
    struct kind items[MOST_KINDS];
    size_t n;
    const char **of; /* [candidates] */
};

/* ---- twin_refusals.c ---- */

/* Proposes the expression for the names of one kind, "^net_g_(?<time>[0-9]+)[.]pth$", and of another one
 * beside it, or NULL.
 * PHEMA_ERR_INPUTS  always: the failure that it is a remedy for */
PHEMA_FALLIBLE kinds_suggest(const struct candidate_list *candidates, const struct kinds *kinds,
                             const char *text, const char *beside, struct phema_error *err);

/* Lists the kinds, and proposes the one with the largest files.
 *   has_equal  some have one time
 * PHEMA_ERR_INPUTS    always
 * PHEMA_ERR_RESOURCE  or no memory */
PHEMA_FALLIBLE kinds_fail(const struct candidate_list *candidates, const struct kinds *kinds,
                          bool has_equal, const char *root, struct phema_error *err);

/* The same of kinds that are all averages: proposes to read their widths. */
PHEMA_FALLIBLE kinds_fail_averages(const struct candidate_list *candidates,
                                   const struct kinds *kinds, const char *root,
                                   struct phema_error *err);

#endif
