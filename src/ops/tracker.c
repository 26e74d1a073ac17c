// SPDX-License-Identifier: Apache-2.0
/* tracker.c - an output from which the trainer resumes: the copy of its checkpoint, under the name of
 * that step, and the tracker file beside it, which names the newest one. */
#include "tracker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phema/setting.h"
#include "phema/tensor_sets.h"

static enum phema_status fail(struct phema_error *err, const char *what)
{
    enum phema_status status =
        phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_PUBLISH, "%s", what);
    return phema_suggest(err, status, PHEMA_SET_PUBLISH, "");
}

/* The directory that the copy is of; NULL: it is another output. */
static const char *find_template(const struct phema_outputs *outputs)
{
    const struct phema_checkpoint *template = outputs->m == 1 ? outputs->items[0].template : NULL;
    return template ? phema_checkpoint_path(template) : NULL;
}

static enum phema_status check_name(const char *out, const char *name, struct phema_error *err)
{
    const char *slash = strrchr(out, '/');
    if (strcmp(slash ? slash + 1 : out, name) == 0)
        return PHEMA_OK;
    char *wanted = NULL;
    enum phema_status status =
        phema_fail(err, PHEMA_ERR_USAGE,
                   "%s: the trainer resumes from the name %s, of the step inside", out, name);
    if (asprintf(&wanted, "%.*s/%s", slash ? (int)(slash - out) : 1, slash ? out : ".", name) < 0)
        return phema_fail_memory(err);
    status = phema_suggest(err, status, PHEMA_SET_OUT, wanted);
    free(wanted);
    return status;
}

PHEMA_FALLIBLE tracker_prepare(struct phema_synthesis *synthesis, struct phema_error *err)
{
    const struct phema_outputs *outputs = &synthesis->prepared.outputs;
    const char *template = find_template(outputs);
    if (!synthesis->publishes)
        return PHEMA_OK;
    if (synthesis->request.synth.n_parts || phema_team_of(synthesis->team))
        return fail(err, "is for the run of one process");
    struct phema_tracker *tracker = &synthesis->tracker;
    enum phema_status status =
        template
            ? phema_tracker_find(tracker, template, &synthesis->request.plan.series.checkpoint, err)
            : PHEMA_OK;
    if (!status && !tracker->file)
        return fail(err, "is for one copy of a checkpoint of Megatron (torch_dist), whose trainer "
                         "looks for the newest one in a file");
    const char *out = template ? outputs->items[0].path : "";
    const char *slash = strrchr(out, '/');
    if (!status)
        status = check_name(out, tracker->name, err);
    if (!status && asprintf(&synthesis->tracker_path, "%.*s%s", slash ? (int)(slash + 1 - out) : 0,
                            out, tracker->file) < 0)
        return phema_fail_memory(err);
    return status;
}

PHEMA_FALLIBLE tracker_write(const struct phema_synthesis *synthesis,
                             const struct phema_listener *listener, struct phema_error *err)
{
    if (!synthesis->publishes)
        return PHEMA_OK;
    struct phema_strbuf text = {0};
    const struct phema_writer_options options = {.replaces = true,
                                                 .syncs = synthesis->request.synth.syncs};
    phema_strbuf_puts(&text, synthesis->tracker.text);
    enum phema_status status = phema_writer_store(synthesis->tracker_path, &text, &options, err);
    if (!status)
        listener_note(listener, "%s: %s, from which the trainer resumes", synthesis->tracker_path,
                      synthesis->tracker.text);
    return status;
}
