/* publish.h - outputs from which a trainer resumes. */
#ifndef OPS_PUBLISH_H
#define OPS_PUBLISH_H

#include "listener.h"

/* Where the synthesis publishes: finds how the trainer names the output, once that is planned.
 * PHEMA_ERR_USAGE  the output is no copy of such a checkpoint, or has another name */
PHEMA_FALLIBLE publish_prepare(struct phema_synthesis *synthesis, struct phema_error *err);
/* When the output is there: writes the file that names it. */
PHEMA_FALLIBLE publish_name(const struct phema_synthesis *synthesis,
                            const struct phema_listener *listener, struct phema_error *err);

#endif
