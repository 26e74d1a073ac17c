/* wishes.h - options of a series as they were given, kept: plans open the series again. */
#ifndef API_WISHES_H
#define API_WISHES_H

#include "api_call.h"
#include "phema/arena.h"
#include "phema/series.h"
#include "phema/strbuf.h"

struct wishes {
    struct phema_arena arena; /* all texts and numbers */
    struct phema_series_options options;
    const char *command; /* the same as options of the command, for the provenance */
};

/* Of a zeroed struct; to be cleared after a failure as well. */
PHEMA_FALLIBLE wishes_keep(struct wishes *wishes, const char *snapshots,
                           const struct posthoc_ema_series_options *given, struct phema_error *err);
PHEMA_FALLIBLE wishes_copy(struct wishes *copy, const struct wishes *wishes,
                           struct phema_error *err);
void wishes_clear(struct wishes *wishes);

/* " --name VALUE", quoted for a shell; nothing for NULL. */
void wishes_add(struct phema_text *command, const char *name, const char *value);

#endif
