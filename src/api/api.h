/* api.h - what the calls of the library share: their entry and exit, the options that a plan keeps,
 * and the caller's callback. */
#ifndef API_API_H
#define API_API_H

#include <locale.h>
#include <posthoc-ema.h>

#include "phema/arena.h"
#include "phema/output.h"
#include "phema/setting.h"
#include "phema/strbuf.h"
#include "phema/synth.h"

/* ---- call.c: structs of any version, errors for the caller, numbers with a decimal point ---- */

/* Sets the locale "C" for this thread until call_end, for files and messages. */
struct call {
    locale_t before, during;
    struct phema_error err;
};
struct call call_begin(void);

/* Copies the call's message to the caller's error, which may be NULL; returns the status. */
enum posthoc_ema_status call_end(struct call *call, enum phema_status status,
                                 struct posthoc_ema_error *error);

/* Copies the caller's struct of options to ours of known_size bytes. The caller's may be NULL or of
 * another version; members that are not given become zero.
 * PHEMA_ERR_USAGE  its size is invalid, or it sets options that this version does not know */
PHEMA_FALLIBLE call_read_struct(void *known, size_t known_size, const void *given, const char *name,
                                struct phema_error *err);

/* Copies our struct to the caller's, which may be of another version: the members that fit. */
PHEMA_FALLIBLE call_fill_struct(void *given, const void *known, size_t known_size, const char *name,
                                struct phema_error *err);

/* PHEMA_ERR_USAGE  i is not below n; the message says of what */
PHEMA_FALLIBLE call_check_index(const char *what, size_t i, size_t n, struct phema_error *err);

/* The index of word in names, which end with NULL; 0 when word is NULL.
 * PHEMA_ERR_USAGE  word is not among them; the message names the option */
PHEMA_FALLIBLE call_find_choice(size_t *index, const char *word, const char *const *names,
                                const char *option, struct phema_error *err);

/* ---- options.c ---- */

struct api_options {
    struct phema_arena arena; /* holds all texts and numbers; the caller clears it */
    struct phema_series_options options;
    const char *command; /* the same options on a command line, for the provenance */
};

/* Fill a zeroed struct, whose arena is cleared after a failure as well. */
PHEMA_FALLIBLE api_options_keep(struct api_options *kept, const char *snapshots,
                                const struct posthoc_ema_series_options *given,
                                struct phema_error *err);
PHEMA_FALLIBLE api_options_copy(struct api_options *copy, const struct api_options *kept,
                                struct phema_error *err);

/* Replace *text, which may be NULL, or the n texts by copies in the arena: its is_failed tells. */
void api_keep_text(struct phema_arena *arena, const char **text);
void api_keep_texts(struct phema_arena *arena, const char *const **texts, size_t n);

/* Appends the setting as an option of the program, its value quoted for a shell; nothing when value
 * is NULL. */
void api_options_add(struct phema_strbuf *command, enum phema_setting setting, const char *value);

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
