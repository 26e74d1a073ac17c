/* api_call.h - what every call of the library begins and ends with: structs whose size the caller
 * knows, errors as the caller has them, numbers written with a point whatever the locale. */
#ifndef API_API_CALL_H
#define API_API_CALL_H

#include <locale.h>
#include <posthoc-ema.h>

#include "phema/error.h"
#include "phema/span.h"

/* Files and messages are written as in the locale "C". Of this thread alone, until call_end. */
struct call {
    locale_t before, during;
};
struct call call_begin(void);

/* The message goes to the caller, when there is one to take it; returns the status. */
enum posthoc_ema_status call_end(struct call *call, enum phema_status status,
                                 const struct phema_error *err, struct posthoc_ema_error *error);

/* A struct of options, which may be NULL or of another version, into one that is known: known_size
 * bytes, zeroed where nothing was given. PHEMA_ERR_USAGE: it has no size, or says what is not
 * known.
 */
PHEMA_FALLIBLE call_take(void *known, size_t known_size, const void *given, const char *name,
                         struct phema_error *err);

/* The other way: as much of what is known as there is room for. */
PHEMA_FALLIBLE call_give(void *given, const void *known, size_t known_size, const char *name,
                         struct phema_error *err);

/* The index of a word among names (NULL at the end); 0 for NULL. PHEMA_ERR_USAGE names the option.
 */
PHEMA_FALLIBLE call_choose(size_t *index, const char *word, const char *const *names,
                           const char *option, struct phema_error *err);

#endif
