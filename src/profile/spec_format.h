/* spec_format.h - SPEC back to text. */
#ifndef PROFILE_SPEC_FORMAT_H
#define PROFILE_SPEC_FORMAT_H

#include "spec_internal.h"

/* Fills in spec->shown and spec->file_part. */
PHEMA_FALLIBLE spec_format(struct phema_spec *spec, struct phema_error *err);

/* spec_resolve.c: both numbers of a power function. PHEMA_ERR_TARGET when no such function
 * exists. */
PHEMA_FALLIBLE spec_resolve_power(double *sigma_rel, double *gamma,
                                  const struct phema_spec_term *term, struct phema_error *err);

#endif
