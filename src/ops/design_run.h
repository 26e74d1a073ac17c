/* design_run.h - another training, or the first part of this one. */
#ifndef OPS_DESIGN_RUN_H
#define OPS_DESIGN_RUN_H

#include "phema/design_question.h"

/* Takes the motion of like or keep_existing. */
PHEMA_FALLIBLE design_use_run(struct design_asked *asked, const struct phema_listener *listener,
                              struct phema_error *err);
/* Which snapshots of keep_existing are worth their disk: the others are marked as deleted. */
PHEMA_FALLIBLE design_choose_kept(struct design_asked *asked, struct phema_error *err);

#endif
