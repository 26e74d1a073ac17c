/* series_checks.h - whether the snapshots of a series are what their labels say. */
#ifndef PLAN_SERIES_CHECKS_H
#define PLAN_SERIES_CHECKS_H

#include "phema/plan.h"

/* Fits the motion to the sample and compares each snapshot with what the others predict. Where they
 * do not fit, searches for labels that do. Sets checks; the motion is the caller's.
 *   schedule  of the learning rate; NULL: unknown
 * PHEMA_NO            no motion can be fitted; the message has the reason
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE series_checks_make(struct phema_series_checks *checks, struct phema_motion *motion,
                                  const struct phema_series *series,
                                  const struct phema_schedule *schedule,
                                  const struct phema_sample *sample, bool is_checked,
                                  struct phema_error *err);

#endif
