// SPDX-License-Identifier: Apache-2.0
/* team_exchange.c - sends the plan of rank 0 to the other processes, which look for no snapshots, read
 * no headers and solve nothing. Adds up what they have read: the bytes of all runs are unknown until
 * they are made, and are estimated from the shares of runs that are done. */
#include "team_runs.h"

#include <stdlib.h>

#include "phema/clock.h"
#include "phema/packed.h"

/* ---- The plan ---- */

const struct phema_team *phema_team_of(const struct phema_team *team)
{
    return team && team->size > 1 ? team : NULL;
}

enum phema_status phema_team_share_status(const struct phema_team *team, enum phema_status status,
                                          struct phema_error *err)
{
    struct {
        uint64_t status;
        struct phema_error err;
    } first = {status, *err};
    team->broadcast(team->context, &first, sizeof(first));
    if (first.status)
        *err = first.err;
    return (enum phema_status)first.status;
}

static enum phema_status pack(struct phema_prepared *prepared, struct phema_packer *packer,
                              struct phema_error *err)
{
    enum phema_status status = phema_plan_pack(&prepared->plan, packer, err);
    return status ? status : phema_outputs_pack(&prepared->outputs, packer, prepared->plan, err);
}

PHEMA_FALLIBLE team_send_text(struct phema_strbuf *text, const struct phema_team *team,
                              struct phema_error *err)
{
    uint64_t size_bytes = text->size;
    team->broadcast(team->context, &size_bytes, sizeof(size_bytes));
    if (!size_bytes)
        return PHEMA_OK;
    size_t size = (size_t)size_bytes;
    if (team->rank > 0)
        text->data = malloc(size);
    enum phema_status status = text->data ? PHEMA_OK : phema_fail_memory(err);
    status = team->agree(team->context, status, err);
    if (status)
        return status;
    team->broadcast(team->context, text->data, size);
    text->size = text->capacity = size;
    return PHEMA_OK;
}

PHEMA_FALLIBLE team_share_plan(struct phema_prepared *prepared, const struct phema_team *team,
                               enum phema_status status, struct phema_error *err)
{
    struct phema_strbuf text = {0};
    if (team->rank == 0 && !status)
        status = pack(prepared, &(struct phema_packer){.out = &text}, err);
    status = phema_team_share_status(team, status, err);
    if (!status)
        status = team_send_text(&text, team, err);
    if (!status) {
        const struct phema_span sent = {(const uint8_t *)text.data, text.size};
        if (team->rank > 0)
            status = pack(prepared, &(struct phema_packer){.rest = sent}, err);
        status = team->agree(team->context, status, err);
    }
    phema_strbuf_clear(&text);
    return status;
}

/* ---- Progress ---- */

/* Shares of a run are whole numbers of this. */
#define WHOLE_RUN ((uint64_t)1 << 20)

enum { READ_BYTES, DONE_SHARES, SKIPPED_SHARES, FINISHED };

void team_progress_init(struct team_progress *progress, const struct phema_listener *listener,
                        const struct phema_team *team, uint64_t n_runs, enum phema_kept kept)
{
    *progress = (struct team_progress){
        .team = team, .listener = listener, .start_s = phema_clock_s(), .n_runs = n_runs};
    if (team->rank == 0 && listener->begin)
        listener->begin(listener->context, kept);
}

/* sums: of a round */
static void show(struct team_progress *progress, const uint64_t sums[PHEMA_TEAM_VALUES])
{
    double made = (double)sums[DONE_SHARES];
    double all = (double)(progress->n_runs * WHOLE_RUN - sums[SKIPPED_SHARES]);
    const struct phema_listener *listener = progress->listener;
    if (made <= 0 || progress->team->rank > 0 || !listener->report)
        return;
    const struct phema_progress state = {
        .done_bytes = sums[READ_BYTES],
        .total_bytes = (uint64_t)((double)sums[READ_BYTES] * (all > made ? all / made : 1)),
        .elapsed_s = phema_clock_s() - progress->start_s,
    };
    listener->report(listener->context, &state);
}

/* Returns true when all processes have finished. */
static bool exchange(struct team_progress *progress, bool is_finished)
{
    uint64_t share = progress->run_total_bytes
                         ? (uint64_t)((double)progress->run_bytes /
                                      (double)progress->run_total_bytes * (double)WHOLE_RUN)
                         : 0;
    const uint64_t values[PHEMA_TEAM_VALUES] = {
        [READ_BYTES] = progress->read_bytes + progress->run_bytes,
        [DONE_SHARES] = progress->n_done * WHOLE_RUN + share,
        [SKIPPED_SHARES] = progress->n_skipped * WHOLE_RUN,
        [FINISHED] = is_finished};
    uint64_t sums[PHEMA_TEAM_VALUES];
    const struct phema_team *team = progress->team;
    if (!team->exchange(team->context, values, sums, is_finished))
        return false;
    show(progress, sums);
    return sums[FINISHED] == team->size;
}

void team_progress_report(void *context, const struct phema_progress *state)
{
    struct team_progress *progress = context;
    if (!state->stage) {
        progress->run_bytes = state->done_bytes;
        progress->run_total_bytes = state->total_bytes;
    }
    (void)exchange(progress, false);
}

void team_progress_end_run(struct team_progress *progress, bool is_skipped)
{
    progress->read_bytes += progress->run_bytes;
    progress->run_bytes = progress->run_total_bytes = 0;
    *(is_skipped ? &progress->n_skipped : &progress->n_done) += 1;
}

void team_progress_finish(struct team_progress *progress)
{
    while (!exchange(progress, true))
        continue;
    if (progress->team->rank == 0 && progress->listener->end)
        progress->listener->end(progress->listener->context);
}
