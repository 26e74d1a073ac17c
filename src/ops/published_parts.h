/* published_parts.h - the same command twice at once: a process may have looked for an output before
 * another team published it, and write its part afterwards. Such parts are removed. */
#ifndef OPS_PUBLISHED_PARTS_H
#define OPS_PUBLISHED_PARTS_H

#include "join_outputs.h"

struct published_parts {
    const struct phema_synthesis *synthesis;
    const struct phema_listener *listener;
    size_t n_current; /* outputs that were found to be there and up to date */
};

/* Removes parts of outputs that are up to date, which it reports. For join_request; context: struct
 * published_parts. */
PHEMA_FALLIBLE published_parts_drop(void *context, struct phema_error *err);

/* After a failure, or where parts are missing: PHEMA_OK where all outputs are published and up to
 * date, and no part of them is left. Otherwise status, and err as it is. */
enum phema_status published_parts_excuse(const struct phema_synthesis *synthesis,
                                         const struct phema_listener *listener,
                                         enum phema_status status, struct phema_error *err);

/* All outputs are there: none is left to be made. */
void published_parts_forget(struct phema_prepared *prepared);

struct join_request published_parts_request(struct published_parts *parts);

#endif
