// SPDX-License-Identifier: Apache-2.0
/* team_verify.c - the processes of a team compare runs of an output, and add up what differs. */
#include "team_runs.h"

#include <stdlib.h>

#include "phema/checksum.h"
#include "phema/clock.h"

/* What a process has found, and then all of them. Numbers of 128 bits are added up by quarters,
 * since a team adds up 64 bits without a carry. */
enum { N_COUNTS = 4, QUARTERS = 4 };

struct findings {
    uint64_t *numbers;     /* all that follows */
    uint64_t *n_different; /* [n_tensors] elements */
    uint64_t *sums;        /* [n_sums][QUARTERS] */
    uint64_t *counts;      /* [N_COUNTS]: other bytes, elements, tiles, bytes read */
    size_t n_tensors, n_sums;
};

static size_t n_numbers(const struct findings *findings)
{
    return findings->n_tensors + findings->n_sums * QUARTERS + N_COUNTS;
}

static bool make_findings(struct findings *out, const struct phema_prepared *prepared)
{
    *out = (struct findings){.n_tensors = prepared->plan->series->n_tensors,
                             .n_sums = prepared->outputs.items[0].n_digests};
    out->numbers = calloc(n_numbers(out), sizeof(*out->numbers));
    if (!out->numbers)
        return false;
    out->n_different = out->numbers;
    out->sums = out->n_different + out->n_tensors;
    out->counts = out->sums + out->n_sums * QUARTERS;
    return true;
}

static void add_run(struct findings *findings, const struct phema_verification *run)
{
    for (size_t x = 0; x < run->n; x++)
        findings->n_different[run->differences[x].tensor] += run->differences[x].n_elems;
    for (size_t k = 0; run->sums && k < findings->n_sums && k < run->n_sums; k++) {
        const uint64_t quarters[QUARTERS] = {run->sums[k].low & UINT32_MAX, run->sums[k].low >> 32,
                                             run->sums[k].high & UINT32_MAX,
                                             run->sums[k].high >> 32};
        for (size_t q = 0; q < QUARTERS; q++)
            findings->sums[k * QUARTERS + q] += quarters[q];
    }
    findings->counts[0] += run->n_other_bytes;
    findings->counts[1] += run->n_elems;
    findings->counts[2] += run->n_tiles;
    findings->counts[3] += run->read_bytes;
}

static enum phema_status write_verification(struct phema_verification *out,
                                            const struct findings *findings,
                                            struct phema_error *err)
{
    struct phema_verification found = {.n_other_bytes = findings->counts[0],
                                       .n_elems = findings->counts[1],
                                       .n_taken = findings->counts[2],
                                       .n_tiles = findings->counts[2],
                                       .read_bytes = findings->counts[3],
                                       .n_sums = findings->n_sums};
    found.differences = calloc(findings->n_tensors + 1, sizeof(*found.differences));
    found.sums = findings->n_sums ? calloc(findings->n_sums, sizeof(*found.sums)) : NULL;
    if (!found.differences || (findings->n_sums && !found.sums)) {
        phema_verification_clear(&found);
        return phema_fail_memory(err);
    }
    for (size_t i = 0; i < findings->n_tensors; i++)
        if (findings->n_different[i])
            found.differences[found.n++] = (struct phema_unequal){i, findings->n_different[i]};
    for (size_t k = 0; k < findings->n_sums; k++) {
        const uint64_t *quarters = &findings->sums[k * QUARTERS];
        uint64_t second = quarters[1] + (quarters[0] >> 32);
        uint64_t third = quarters[2] + (second >> 32);
        found.sums[k].low = (quarters[0] & UINT32_MAX) | second << 32;
        found.sums[k].high = (third & UINT32_MAX) | (quarters[3] + (third >> 32)) << 32;
    }
    *out = found;
    return PHEMA_OK;
}

bool team_may_share_verify(const struct phema_prepared *prepared,
                           const struct phema_checkpoint *checkpoint)
{
    return !prepared->options.sample && !prepared->options.gpu.uses_blas &&
           !prepared->outputs.has_new_scales && !phema_checkpoint_is_compressed(checkpoint);
}

/* This process' runs. */
static enum phema_status compare_runs(struct findings *findings, struct team_progress *progress,
                                      struct phema_prepared *prepared,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    const struct phema_team *team = progress->team;
    struct phema_synth_options options = prepared->options;
    options.n_parts = progress->n_runs;
    options.report = team_progress_report;
    options.context = progress;
    options.is_repeated = true;
    for (uint64_t run; (run = team->next_run(team->context)) < options.n_parts;) {
        struct phema_verification found = {0};
        options.part = run + 1;
        enum phema_status status = phema_synth_verify(&found, prepared->plan, &prepared->outputs,
                                                      &options, checkpoint, err);
        if (status)
            return status;
        add_run(findings, &found);
        phema_verification_clear(&found);
        team_progress_end_run(progress, false);
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE team_verify(struct phema_verification *out, const struct phema_team *team,
                           const struct phema_listener *listener, struct phema_prepared *prepared,
                           const struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    struct team_progress progress;
    struct findings findings;
    enum phema_status status = PHEMA_OK;
    team_progress_init(&progress, listener, team,
                       team_count_runs(prepared->plan, &prepared->outputs), PHEMA_WRITES_NOTHING);
    status = make_findings(&findings, prepared)
                 ? compare_runs(&findings, &progress, prepared, checkpoint, err)
                 : phema_fail_memory(err);
    if (status)
        team->stop(team->context);
    team_progress_finish(&progress);
    status = team->agree(team->context, status, err);
    if (!status && findings.numbers) {
        team->sum(team->context, findings.numbers, n_numbers(&findings));
        status = write_verification(out, &findings, err);
        out->elapsed_s = phema_clock_s() - progress.start_s;
        status = team->agree(team->context, status, err);
    }
    free(findings.numbers);
    return status;
}
