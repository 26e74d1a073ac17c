/* listener.h - telling a listener (phema/ops.h), whose members may be NULL. */
#ifndef OPS_LISTENER_H
#define OPS_LISTENER_H

#include "phema/ops.h"

void listener_note(const struct phema_listener *listener, const char *format, ...)
    PHEMA_PRINTF(2, 3);
void listener_detail(const struct phema_listener *listener, const char *format, ...)
    PHEMA_PRINTF(2, 3);
void listener_warn(const struct phema_listener *listener, const char *format, ...)
    PHEMA_PRINTF(2, 3);
void listener_stage(const struct phema_listener *listener, const char *name);
void listener_advance(const struct phema_listener *listener, uint64_t done_bytes,
                      uint64_t total_bytes);

/* Makes the run report to the listener, from here to listener_end. */
void listener_begin(const struct phema_listener *listener, enum phema_kept kept,
                    struct phema_synth_options *options);
void listener_end(const struct phema_listener *listener, struct phema_synth_options *options);

#endif
