/* facts.h - what the inside of a snapshot's files says about how it was averaged. */
#ifndef PLAN_FACTS_H
#define PLAN_FACTS_H

#include "phema/formats.h"
#include "scan.h"

/* Metadata of our own (posthoc_ema.*) against what the name said; fills in what it did not.
 *   is_output  out: the file was made by synth, and is no snapshot
 * PHEMA_ERR_INPUTS when name and metadata disagree. Messages do not name the file. */
PHEMA_FALLIBLE facts_read(struct candidate *candidate, bool *is_output, const char **unit,
                          const struct phema_checkpoint *checkpoint, struct phema_error *err);

/* A number kept in a tensor of one element; NaN when there is no such tensor or it is no number. */
double facts_scalar(const struct phema_checkpoint *checkpoint, const char *name);

/* true when a tensor's name begins with "KEY." */
bool facts_has_subtree(const struct phema_checkpoint *checkpoint, const char *key);

#endif
