// SPDX-License-Identifier: Apache-2.0
/* auto_part.c - parts of an earlier run, and the join at the end. */
#include "auto_part.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listener.h"
#include "published_parts.h"

/* ---- Parts of an earlier run ---- */

PHEMA_FALLIBLE auto_part_keep_paths(struct phema_synthesis *synthesis, struct phema_error *err)
{
    const struct phema_outputs *outputs = &synthesis->prepared.outputs;
    synthesis->paths = calloc(outputs->m + 1, sizeof(*synthesis->paths));
    if (!synthesis->paths)
        return phema_fail_memory(err);
    for (; synthesis->n_paths < outputs->m; synthesis->n_paths++) {
        char *path = strdup(outputs->items[synthesis->n_paths].path);
        synthesis->paths[synthesis->n_paths] = path;
        if (!path)
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

static size_t count_done(const bool *is_done, size_t m)
{
    size_t n = 0;
    for (size_t j = 0; j < m; j++)
        n += is_done[j];
    return n;
}

static enum phema_status find_done(bool *is_done, size_t *n_done, struct phema_prepared *prepared,
                                   struct phema_error *err)
{
    size_t m = prepared->outputs.m;
    enum phema_status status = phema_synth_find_done_parts(
        is_done, prepared->plan, &prepared->outputs, &prepared->options, err);
    *n_done = status ? 0 : count_done(is_done, m);
    if (prepared->options.gpu.uses_blas && *n_done < m) /* sums depend on the number of targets */
        *n_done = 0;
    return status;
}

/* A part that is seen to be done here needs nothing, whether or not another process joins it now.
 * One that was joined before has no marker, and its output is found to be up to date afterwards. */
PHEMA_FALLIBLE auto_part_skip_done(struct phema_synthesis *synthesis,
                                   const struct phema_listener *listener, struct phema_error *err)
{
    struct phema_prepared *prepared = &synthesis->prepared;
    size_t m = prepared->outputs.m, n_done = 0;
    enum phema_status status = auto_part_keep_paths(synthesis, err);
    if (status)
        return status;
    bool *is_done = calloc(m + 1, sizeof(*is_done));
    if (!is_done)
        return phema_fail_memory(err);
    status = find_done(is_done, &n_done, prepared, err);
    for (size_t j = m; j-- > 0 && n_done && !status;)
        if (is_done[j])
            phema_outputs_remove(&prepared->outputs, prepared->plan, j);
    free(is_done);
    if (n_done && !status)
        listener_note(listener, "part %llu of %llu is already written, of %zu of %zu output%s",
                      (unsigned long long)prepared->options.part,
                      (unsigned long long)prepared->options.n_parts, n_done, m, m == 1 ? "" : "s");
    return status;
}

/* ---- The end ---- */

PHEMA_FALLIBLE auto_part_join(const struct phema_synthesis *synthesis,
                              const struct phema_listener *listener, struct phema_error *err)
{
    enum join_result result = JOIN_NOTHING;
    struct published_parts published = {synthesis, listener, 0};
    struct join_request request = published_parts_request(&published);
    request.waiting = synthesis->waiting;
    enum phema_status status = join_when_done(&result, &request, err);
    if (!status && result == JOIN_WAITS)
        listener_note(listener,
                      "the last of %llu processes joins the parts; where one fails, the same "
                      "command again makes what is missing",
                      (unsigned long long)synthesis->request.synth.n_parts);
    return status;
}

enum phema_status auto_part_name_process(const struct phema_synth_options *options,
                                         enum phema_status status, struct phema_error *err)
{
    char host[128] = "";
    struct phema_name_buffer shown;
    if (gethostname(host, sizeof(host) - 1))
        host[0] = '\0';
    return phema_fail_in(err, status, "part %llu of %llu on %s", (unsigned long long)options->part,
                         (unsigned long long)options->n_parts,
                         phema_name_escape(&shown, host, strlen(host)));
}
