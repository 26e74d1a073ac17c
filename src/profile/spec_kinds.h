/* spec_kinds.h - the table of SPEC kinds and keys. */
#ifndef PROFILE_SPEC_KINDS_H
#define PROFILE_SPEC_KINDS_H

#include "spec_internal.h"

/* NULL: unknown name. */
const struct spec_kind *spec_kind_find(const char *name, size_t size);
/* "power, ema, ...", for messages */
PHEMA_FALLIBLE spec_kind_fail_unknown(const char *name, size_t size, struct phema_error *err);

size_t spec_n_keys(const struct spec_kind *kind);

#endif
