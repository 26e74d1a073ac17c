/* kinds.h - one kind of files: its profile checked, its name. */
#ifndef GEN_KINDS_H
#define GEN_KINDS_H

#include "options.h"

/* PHEMA_ERR_TARGET: no such width */
PHEMA_FALLIBLE gen_kind_of_width(struct gen_kind *kind, double sigma_rel, uint64_t update_every,
                                 struct phema_error *err);

/* update_every: of a power function whose profile has 0.
 * PHEMA_ERR_USAGE: a number of the profile is out of range; names its text */
PHEMA_FALLIBLE gen_kind_of_profile(struct gen_kind *kind, const struct phema_gen_profile *from,
                                   uint64_t update_every, struct phema_error *err);

#endif
