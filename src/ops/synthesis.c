// SPDX-License-Identifier: Apache-2.0
/* synthesis.c - a run of synth: what is there already, what has to be made, and parts that are
 * joined. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "join_outputs.h"
#include "listener.h"
#include "phema/sink.h"
#include "team_runs.h"
#include "tracker.h"

/* ---- Before the run ---- */

/* True when OUT is in another directory than the snapshots, so that it is not one of them. For a
 * snapshot the advice to replace it would be wrong. */
static bool is_outside(const char *out, const char *snapshots)
{
    struct stat place, directory;
    const char *slash = strrchr(out, '/');
    char *parent = slash ? strndup(out, (size_t)(slash - out) + 1) : strdup(".");
    bool is_other = parent && stat(parent, &place) == 0 && stat(snapshots, &directory) == 0 &&
                    S_ISDIR(directory.st_mode) &&
                    (place.st_ino != directory.st_ino || place.st_dev != directory.st_dev);
    free(parent);
    return is_other;
}

/* No output may be there, or begun. Parts and teams may have to finish a join. */
static bool is_begun_anew(const struct phema_synthesis *synthesis)
{
    const struct phema_synth_options *synth = &synthesis->request.synth;
    return !synth->resumes && !synthesis->skips_existing && !synthesis->joins && !synth->n_parts &&
           !synthesis->team;
}

/* What is wrong with OUT before anything is read. */
static enum phema_status check_out(const struct phema_synthesis *synthesis, struct phema_error *err)
{
    const struct phema_request *request = &synthesis->request;
    const struct phema_plan_options *wanted = &request->plan;
    const struct phema_synth_options *synth = &request->synth;
    size_t n_widths = wanted->n_sigma_rels + wanted->n_gammas + wanted->n_profiles;
    bool is_new = !synth->replaces && is_begun_anew(synthesis) &&
                  is_outside(request->outputs.out, wanted->series.snapshots);
    return phema_outputs_check_out(&request->outputs,
                                   n_widths * (wanted->n_ats ? wanted->n_ats : 1), is_new, err);
}

static enum phema_status claim_memory_report(const struct phema_synthesis *synthesis,
                                             struct phema_error *err)
{
    const struct phema_prepared *prepared = &synthesis->prepared;
    const struct phema_synth_options *options = &synthesis->request.synth;
    if (!synthesis->memory)
        return PHEMA_OK;
    enum phema_status status = synthesis->memory->path
                                   ? sink_claim_names(prepared->plan, &prepared->outputs,
                                                      options->part, options->n_parts, err)
                                   : PHEMA_OK;
    return status ? status
                  : phema_memory_report_claim(synthesis->memory, prepared->plan->series->claims,
                                              &prepared->outputs, err);
}

/* Links may lead into the store of a library, such as that of Hugging Face, which must stay. */
static void note_links(const struct phema_outputs *outputs, const struct phema_listener *listener)
{
    char target[PATH_MAX];
    for (size_t j = 0; j < outputs->m; j++) {
        const char *path = outputs->items[j].path;
        ssize_t size = readlink(path, target, sizeof(target) - 1);
        if (size < 0)
            continue;
        target[size] = '\0';
        listener_note(listener, "%s: the symbolic link is replaced; '%s', where it led, stays",
                      path, target);
    }
}

/* What ends the run before anything is told of its plan. */
static enum phema_status plan(struct phema_synthesis *synthesis,
                              const struct phema_listener *listener, struct phema_error *err)
{
    const struct phema_request *request = &synthesis->request;
    struct phema_prepared *prepared = &synthesis->prepared;
    enum phema_status status = check_out(synthesis, err);
    if (!status && !synthesis->team)
        status = phema_synth_check_device(&request->synth.gpu, err);
    if (!status)
        status = phema_prepare_untold(prepared, request,
                                      synthesis->memory ? synthesis->memory->profile : NULL,
                                      listener, err);
    if (!status)
        status = phema_outputs_make(&prepared->outputs, prepared->plan, &request->outputs, err);
    return status || !is_begun_anew(synthesis)
               ? status
               : phema_synth_check_new(prepared->plan, &prepared->outputs, &request->synth, err);
}

static enum phema_status prepare(struct phema_synthesis *synthesis,
                                 const struct phema_listener *listener, struct phema_error *err)
{
    const struct phema_request *request = &synthesis->request;
    struct phema_prepared *prepared = &synthesis->prepared;
    enum phema_status status = plan(synthesis, listener, err);
    if (!status)
        status = phema_prepare_tell(prepared, request, listener, err);
    if (!status)
        phema_note_unfinished_time(prepared, request, listener);
    if (!status && listener->named)
        listener->named(listener->context, request, prepared);
    if (!status)
        status = tracker_prepare(synthesis, err);
    if (!status)
        status = claim_memory_report(synthesis, err);
    if (!status && synthesis->joins)
        status = auto_part_skip_done(synthesis, listener, err);
    if (!status)
        status = team_is_wanted(synthesis, err);
    bool may_be_there = request->synth.resumes || synthesis->joins || synthesis->is_of_team;
    if (!status && (synthesis->skips_existing || (may_be_there && !request->plan.is_conversion)))
        status = phema_outputs_skip_existing(prepared, request, listener, err);
    if (!status)
        note_links(&prepared->outputs, listener);
    if (!status && request->synth.resumes)
        phema_note_leftovers(&prepared->outputs, listener);
    bool may_be_begun = may_be_there || request->synth.n_parts; /* its space is taken already */
    return status || may_be_begun ? status : phema_outputs_check_space(&prepared->outputs, err);
}

/* Rank 0 makes the plan. */
PHEMA_FALLIBLE phema_synthesis_prepare(struct phema_synthesis *synthesis,
                                       const struct phema_listener *listener,
                                       struct phema_error *err)
{
    const struct phema_team *team = phema_team_of(synthesis->team);
    synthesis->result = (struct phema_synth_result){.part = synthesis->request.synth.part,
                                                    .n_parts = synthesis->request.synth.n_parts};
    if (!team)
        return auto_part_name_process(synthesis, prepare(synthesis, listener, err), err);
    enum phema_status status = PHEMA_OK;
    if (team->rank == 0) {
        status = prepare(synthesis, listener, err);
    } else {
        synthesis->is_of_team = true;
        synthesis->prepared.options = synthesis->request.synth;
    }
    return team_share_plan(&synthesis->prepared, team, status, err);
}

/* ---- The run ---- */

static enum phema_status make(struct phema_synthesis *synthesis,
                              const struct phema_listener *listener, struct phema_error *err)
{
    struct phema_prepared *prepared = &synthesis->prepared;
    const struct phema_synth_options *options = &synthesis->request.synth;
    listener_begin(listener,
                   options->n_parts   ? PHEMA_KEEPS_PART
                   : options->resumes ? PHEMA_KEEPS_TILES
                                      : PHEMA_KEEPS_NOTHING,
                   &prepared->options);
    enum phema_status status = phema_synth_run(&synthesis->result, prepared->plan,
                                               &prepared->outputs, &prepared->options, err);
    listener_end(listener, &prepared->options);
    if (status && synthesis->joins && !join_excuse(synthesis, listener, status, err)) {
        join_forget(prepared);
        return PHEMA_OK;
    }
    if (!status && listener->made)
        listener->made(listener->context, synthesis);
    return status;
}

PHEMA_FALLIBLE phema_synthesis_run(struct phema_synthesis *synthesis,
                                   const struct phema_listener *listener, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    if (!synthesis->is_of_team) {
        if (synthesis->prepared.outputs.m) /* otherwise every output is up to date */
            status = make(synthesis, listener, err);
        if (!status)
            status = tracker_write(synthesis, listener, err);
        if (!status && synthesis->joins)
            status = auto_part_join(synthesis, listener, err);
        return auto_part_name_process(synthesis, status, err);
    }
    status = team_synth(synthesis, listener, err);
    if (!status && synthesis->prepared.outputs.m && listener->made)
        listener->made(listener->context, synthesis);
    return status;
}

void phema_synthesis_clear(struct phema_synthesis *synthesis)
{
    phema_prepared_clear(&synthesis->prepared);
    for (size_t j = 0; j < synthesis->n_paths; j++)
        free(synthesis->paths[j]);
    free(synthesis->paths);
    free(synthesis->tracker_path);
}
