/* claims.h - the files that a run reads and those that it writes: no output may replace an input or
 * another output. Inputs are identified by device and inode, which finds symbolic and hard links to
 * them. Outputs are identified by their names as well, since most do not exist yet. For one thread
 * at a time. */
#ifndef PHEMA_CLAIMS_H
#define PHEMA_CLAIMS_H

#include "phema/error.h"

struct phema_claims;

PHEMA_FALLIBLE phema_claims_new(struct phema_claims **out, struct phema_error *err);
void phema_claims_free(struct phema_claims *claims); /* takes NULL */

/* Adds a file that the run reads; a file that does not exist adds no claim. what: "one of the
 * snapshots", for messages; borrowed. Does nothing when claims is NULL. */
PHEMA_FALLIBLE phema_claims_add_input(struct phema_claims *claims, const char *path,
                                      const char *what, struct phema_error *err);

/* Adds a file that the run writes as path, and before that as path.partial. */
PHEMA_FALLIBLE phema_claims_add_output(struct phema_claims *claims, const char *path,
                                       struct phema_error *err);

/* Checks path and path.partial before they are written: PHEMA_ERR_OUTPUT when one of them is an
 * input or a link to one, or a directory that holds an input. PHEMA_OK when claims is NULL. */
PHEMA_FALLIBLE phema_claims_check_inputs(const struct phema_claims *claims, const char *path,
                                         struct phema_error *err);

/* The same, and PHEMA_ERR_OUTPUT when path is already an output. To be called before
 * phema_claims_add_output. */
PHEMA_FALLIBLE phema_claims_check(const struct phema_claims *claims, const char *path,
                                  struct phema_error *err);

#endif
