/* memory_report.h - see struct phema_memory_report (phema/ops.h). */
#ifndef OPS_MEMORY_REPORT_H
#define OPS_MEMORY_REPORT_H

#include "phema/claims.h"
#include "phema/ops.h"

/* When all files of the run are known: PHEMA_ERR_OUTPUT where the path is one of them. */
PHEMA_FALLIBLE memory_report_claim(struct phema_memory_report *report,
                                   const struct phema_claims *claims, struct phema_error *err);

#endif
