/* spec_format.h - a SPEC as text again. */
#ifndef PROFILE_SPEC_FORMAT_H
#define PROFILE_SPEC_FORMAT_H

#include "spec_internal.h"

/* Fills in shown and file_part. */
PHEMA_FALLIBLE spec_show(struct phema_spec *spec, struct phema_error *err);

/* averages.c: both numbers of a power function. PHEMA_ERR_TARGET when there is none. */
PHEMA_FALLIBLE spec_power(double *sigma_rel, double *gamma, const struct phema_spec_term *term,
                          struct phema_error *err);

#endif
