/* claims.h - which files a run reads and which it writes, so that no file is written over what is
 * read, nor two files over each other. Inputs are known by device and inode, so that links and hard
 * links to them are found, whatever they are called; outputs by their names as well, since most do
 * not exist yet. For one thread at a time. */
#ifndef PHEMA_CLAIMS_H
#define PHEMA_CLAIMS_H

#include "phema/error.h"

struct phema_claims;

PHEMA_FALLIBLE phema_claims_new(struct phema_claims **out, struct phema_error *err);
void phema_claims_free(struct phema_claims *claims); /* takes NULL */

/* A file that the run reads; one that is not there is no claim. what: "one of the snapshots", for
 * messages; borrowed. claims NULL notes nothing. */
PHEMA_FALLIBLE phema_claims_add_input(struct phema_claims *claims, const char *path,
                                      const char *what, struct phema_error *err);

/* A file that the run writes under path; until it is whole it is path.partial. */
PHEMA_FALLIBLE phema_claims_add_output(struct phema_claims *claims, const char *path,
                                       struct phema_error *err);

/* Whether path may be written, and path.partial: PHEMA_ERR_OUTPUT when an input is there or a link
 * to one, or path is a directory that holds an input. claims NULL lets everything through. */
PHEMA_FALLIBLE phema_claims_check_inputs(const struct phema_claims *claims, const char *path,
                                         struct phema_error *err);

/* That, and PHEMA_ERR_OUTPUT when it is one of the outputs: before it becomes one itself. */
PHEMA_FALLIBLE phema_claims_check(const struct phema_claims *claims, const char *path,
                                  struct phema_error *err);

#endif
