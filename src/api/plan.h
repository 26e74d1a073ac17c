/* plan.h - a plan with the options of its series, which it opens again, and the outputs of its last
 * run. */
#ifndef API_PLAN_H
#define API_PLAN_H

#include "api_call.h"
#include "phema/arena.h"
#include "phema/output.h"
#include "phema/strbuf.h"
#include "phema/synth.h"

struct api_options {
    struct phema_arena arena; /* holds all texts and numbers */
    struct phema_series_options options;
    const char *command; /* the same options on a command line, for the provenance */
};

/* Fills a zeroed struct, to be cleared after a failure as well. */
PHEMA_FALLIBLE api_options_keep(struct api_options *kept, const char *snapshots,
                                const struct posthoc_ema_series_options *given,
                                struct phema_error *err);
PHEMA_FALLIBLE api_options_copy(struct api_options *copy, const struct api_options *kept,
                                struct phema_error *err);
void api_options_clear(struct api_options *kept);

/* Replace *text, which may be NULL, or the n texts by copies in the arena. false: no memory. */
bool api_keep_text(struct phema_arena *arena, const char **text);
bool api_keep_texts(struct phema_arena *arena, const char *const **texts, size_t n);

/* Appends the setting as an option of the program, its value quoted for a shell; nothing when value
 * is NULL. */
void api_options_add(struct phema_strbuf *command, enum phema_setting setting, const char *value);

/* The options that runs and single tensors share, as those of the modules. */
struct api_choices {
    struct phema_outputs_options outputs; /* the dtypes */
    struct phema_synth_options synth;     /* overflow, io, threads */
};

/* PHEMA_ERR_USAGE names the option. */
PHEMA_FALLIBLE api_choose(struct api_choices *out, const char *dtype, const char *overflow,
                          const char *io, unsigned threads, struct phema_error *err);

/* The caller's callback, which sees the progress of a run or of one tensor and may stop it. */
struct api_watch {
    int (*progress)(void *context, const struct posthoc_ema_progress *progress); /* or NULL */
    void *context;
    locale_t callers; /* callbacks run in it */
    bool is_stopped;
    struct posthoc_ema_progress read; /* the last report of reading; size 0: none yet */
};

/* Makes a run with these options report to the watch, which outlives it. */
void api_watch_run(struct api_watch *watch, struct phema_synth_options *options);

/* The status of the public call: CANCELLED where the callback stopped the run. */
enum posthoc_ema_status api_watch_end(const struct api_watch *watch,
                                      enum posthoc_ema_status status);

struct posthoc_ema_plan {
    struct api_options series_options;
    struct phema_plan *plan;
    /* the caller's texts, for the provenance; rules: [n_rules] */
    const char *metric, *schedule, *const *rules;
    size_t n_rules;
    uint64_t max_ram_bytes;
    const char **warnings; /* [n_warnings] in the arena of series_options */
    size_t n_warnings;
    struct phema_outputs outputs; /* of the last run that succeeded */
};

#endif
