/* synth_report.h - what a run has done, and the memory of its stages. */
#ifndef CLI_SYNTH_REPORT_H
#define CLI_SYNTH_REPORT_H

#include "options.h"
#include "phema/claims.h"
#include "phema/memory_profile.h"
#include "phema/synth.h"

/* To stderr: outputs, bytes, seconds, memory; and how to join parts. */
void report_synth(const struct cli_common *common, const struct phema_plan *plan,
                  const struct phema_outputs *outputs, const struct phema_synth_result *result);

/* To stderr: the device that computed the sums, and why it was chosen. is_asked: --device was
 * given. */
void report_device(const struct cli_common *common, const struct phema_device_choice *choice,
                   bool is_asked);

/* The memory of each stage, as JSON lines (--profile-memory) and as a table (--verbose). */
struct memory_report {
    struct phema_memory_profile *ledger;
    const char *path; /* of the lines, NULL for none; borrowed */
    bool replaces;
    bool is_free; /* path is no other file of the run (memory_report_claim) */
};

/* PHEMA_ERR_OUTPUT  the file exists and may not be replaced */
PHEMA_FALLIBLE memory_report_begin(struct memory_report *out, const struct cli_common *common,
                                   const char *path, bool replaces, struct phema_error *err);

/* Call it when all files of the run are known.
 * PHEMA_ERR_OUTPUT  the path is one of them */
PHEMA_FALLIBLE memory_report_claim(struct memory_report *report, const struct phema_claims *claims,
                                   struct phema_error *err);

/* Writes both, also of a run that failed with status, which comes back unless writing fails. A run
 * that failed before its files were known replaces nothing. */
enum phema_status memory_report_end(struct memory_report *report, const struct cli_common *common,
                                    enum phema_status status, struct phema_error *err);

#endif
