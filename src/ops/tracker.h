/* tracker.h - the file by which a trainer finds the output, to resume from it. */
#ifndef OPS_TRACKER_H
#define OPS_TRACKER_H

#include "listener.h"

/* Where the synthesis publishes: finds how the trainer names the output, once that is planned.
 * PHEMA_ERR_USAGE  the output is no copy of such a checkpoint, or has another name */
PHEMA_FALLIBLE tracker_prepare(struct phema_synthesis *synthesis, struct phema_error *err);
/* When the output is there: writes the file that names it. */
PHEMA_FALLIBLE tracker_write(const struct phema_synthesis *synthesis,
                             const struct phema_listener *listener, struct phema_error *err);

#endif
