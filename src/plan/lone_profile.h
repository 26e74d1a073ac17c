/* lone_profile.h - the profile of one average that has no raw parameters beside it. */
#ifndef PLAN_LONE_PROFILE_H
#define PLAN_LONE_PROFILE_H

#include "phema/plan.h"
#include "phema/strbuf.h"

/* What was found, and how. */
struct finding {
    const char *spec;    /* NULL: none */
    const char *why;     /* or the reason why none is */
    const char *doubted; /* phema_series.doubted */
    const char *from;    /* a named time from which on there is one; NULL: unknown */
    struct phema_arena memory;
};

/* Keeps the SPEC, which may be NULL, and the reason, which it clears. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE finding_finish(struct finding *found, const char *spec, struct phema_strbuf *why,
                              struct phema_error *err);

/*   bare  the series without profiles
 * Fails as phema_series_open and phema_sample_read */
PHEMA_FALLIBLE lone_profile_find(struct finding *found, const struct phema_series *bare,
                                 const struct phema_series_options *options,
                                 struct phema_error *err);

#endif
