/* api_call.h - entry and exit of every public call. Accepts structs of any version, converts errors
 * for the caller, and writes numbers with a decimal point in any locale. */
#ifndef API_API_CALL_H
#define API_API_CALL_H

#include <locale.h>
#include <posthoc-ema.h>

#include "phema/error.h"
#include "phema/span.h"

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

/* The index of word in names, which end with NULL; 0 when word is NULL.
 * PHEMA_ERR_USAGE  word is not among them; the message names the option */
PHEMA_FALLIBLE call_find_choice(size_t *index, const char *word, const char *const *names,
                                const char *option, struct phema_error *err);

#endif
