/* options.h - options of a series as they were given, kept: plans open the series again. */
#ifndef API_OPTIONS_H
#define API_OPTIONS_H

#include "api_call.h"
#include "phema/arena.h"
#include "phema/series.h"
#include "phema/strbuf.h"

struct api_options {
    struct phema_arena arena; /* all texts and numbers */
    struct phema_series_options options;
    const char *command; /* the same as options of the command, for the provenance */
};

/* Of a zeroed struct; to be cleared after a failure as well. */
PHEMA_FALLIBLE api_options_keep(struct api_options *wishes, const char *snapshots,
                                const struct posthoc_ema_series_options *given,
                                struct phema_error *err);
PHEMA_FALLIBLE api_options_copy(struct api_options *copy, const struct api_options *wishes,
                                struct phema_error *err);
void api_options_clear(struct api_options *wishes);

/* " --name VALUE", quoted for a shell; nothing for NULL. */
void api_options_add(struct phema_strbuf *command, const char *name, const char *value);

#endif
