// SPDX-License-Identifier: Apache-2.0
/* join_outputs.c - for the verb join, and for processes that share a run of synth: the last one joins
 * the parts of all. */
#include "join_outputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "listener.h"
#include "phema/array.h"
#include "phema/clock.h"
#include "phema/path.h"

/* A join takes seconds, and minutes where the disk is slow to sync. */
#define LONGEST_JOIN_S 600.0

#define PAUSE_NS 20000000

PHEMA_FALLIBLE phema_join_add(struct phema_join_list *list, const char *path,
                              const struct phema_writer_options *options, struct phema_error *err)
{
    if (!phema_array_grow(&list->items, &list->capacity, list->n,
                          sizeof(struct phema_writer_join *)))
        return phema_fail_memory(err);
    enum phema_status status = phema_writer_join_open(&list->items[list->n], path, options, err);
    if (!status)
        list->n++;
    return status;
}

/* Compares all outputs with the checksums of their parts. */
static enum phema_status check_all(const struct phema_join_list *list, struct join_check *check,
                                   const struct phema_listener *listener, struct phema_error *err)
{
    listener_stage(listener, "checking the parts");
    enum phema_status status = join_check_list(check, list, err);
    listener_stage(listener, NULL);
    for (size_t i = 0; i < list->n && !status; i++) {
        uint64_t part = phema_writer_join_unchecked_part(list->items[i]);
        if (part)
            listener_warn(listener,
                          "%s: part %llu was written by an earlier version, without checksums: "
                          "nobody knows whether the bytes of its parts have changed since",
                          phema_writer_join_path(list->items[i]), (unsigned long long)part);
    }
    return status;
}

static enum phema_status commit(struct phema_join_list *list, struct join_check *check,
                                const struct phema_listener *listener, struct phema_error *err)
{
    enum phema_status status = check_all(list, check, listener, err);
    for (size_t i = 0; i < list->n && !status; i++) {
        struct phema_writer_join *join = list->items[i];
        struct phema_name_buffer size;
        listener_stage(listener, "compressing"); /* the size is known after that */
        status = phema_writer_join_compress(join, err);
        listener_stage(listener, NULL);
        if (status)
            return status;
        if (listener->joined) {
            listener->joined(listener->context, join);
            listener_note(listener, "%s: %llu parts, %s", phema_writer_join_path(join),
                          (unsigned long long)phema_writer_join_n_parts(join),
                          phema_size_format(&size, phema_writer_join_bytes(join)));
        }
        list->items[i] = NULL;
        listener_stage(listener, "storing");
        status = phema_writer_join_commit(join, err);
        listener_stage(listener, NULL);
    }
    return status;
}

PHEMA_FALLIBLE phema_join_commit(struct phema_join_list *list,
                                 const struct phema_listener *listener, struct phema_error *err)
{
    struct join_check alone = {.team = NULL};
    return commit(list, &alone, listener, err);
}

void phema_join_clear(struct phema_join_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        phema_writer_join_abandon(list->items[i]);
    free(list->items);
    *list = (struct phema_join_list){0};
}

/* ---- Outputs that are published, and parts of them ---- */

PHEMA_FALLIBLE join_has_parts(bool *has, const char *path, struct phema_error *err)
{
    char **found = NULL, *own = phema_path_trim(path);
    size_t n = 0;
    enum phema_status status =
        own ? phema_writer_find_parts(&found, &n, own, err) : phema_fail_memory(err);
    *has = !status && n == 1 && strcmp(found[0], own) == 0;
    for (size_t i = 0; i < n; i++)
        free(found[i]);
    free(found);
    free(own);
    return status;
}

/* *is_any: an output is there, and parts of it. */
static enum phema_status find_beside(bool *is_any, const struct join_request *request,
                                     struct phema_error *err)
{
    struct stat st;
    enum phema_status status = PHEMA_OK;
    const struct phema_synthesis *synthesis = request->synthesis;
    for (size_t j = 0; j < synthesis->n_paths && !*is_any && !status; j++)
        if (lstat(synthesis->paths[j], &st) == 0)
            status = join_has_parts(is_any, synthesis->paths[j], err);
    return status;
}

static enum phema_status drop_current(struct join_request *parts, struct phema_prepared *prepared,
                                      struct phema_error *err)
{
    struct phema_outputs *outputs = &prepared->outputs;
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < outputs->m && !status; j++) {
        struct phema_error ignored;
        if (phema_output_compare(prepared, j, &parts->synthesis->request, &ignored))
            continue;
        status = phema_synth_drop_parts(prepared->plan, outputs, j, &prepared->options, err);
        parts->n_current++;
        if (!status)
            listener_note(parts->listener, "%s: is there and up to date; its parts were removed",
                          outputs->items[j].path);
    }
    return status;
}

/* Removes the parts of outputs that are up to date, which it reports: a process may have looked for
 * an output before another team published it, and write its part afterwards. The plan is made again,
 * which is rarely needed. */
static enum phema_status drop_published(struct join_request *parts, struct phema_error *err)
{
    const struct phema_request *request = &parts->synthesis->request;
    parts->n_current = 0;
    if (request->plan.is_conversion) /* whose outputs do not record what they were made of */
        return PHEMA_OK;
    struct phema_prepared prepared = {.plan = NULL};
    /* all was said at the start */
    enum phema_status status = phema_prepare_plan(&prepared, request, NULL, &phema_nobody, err);
    if (!status)
        status =
            phema_prepare_outputs(&prepared, request, request->outputs.out, &phema_nobody, err);
    if (!status)
        status = drop_current(parts, &prepared, err);
    phema_prepared_clear(&prepared);
    return status;
}

/* ---- The join at the end of a run ---- */

/* What is to be done where another process holds the lock. JOIN_DONE: wait for it. */
static enum phema_status look(enum join_result *result, const struct join_request *request,
                              struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    *result = JOIN_NOTHING;
    for (size_t j = 0; j < request->synthesis->n_paths && *result != JOIN_WAITS && !status; j++) {
        enum phema_writer_parts_state state = PHEMA_WRITER_PARTS_ABSENT;
        status = phema_writer_parts_look(&state, request->synthesis->paths[j], err);
        if (state != PHEMA_WRITER_PARTS_ABSENT)
            *result = state == PHEMA_WRITER_PARTS_DONE ? JOIN_DONE : JOIN_WAITS;
    }
    bool is_beside = false;
    if (!status && *result == JOIN_WAITS)
        status = find_beside(&is_beside, request, err);
    if (is_beside) /* parts may be to be removed */
        *result = JOIN_DONE;
    return status;
}

/* err: who holds the lock. */
static enum phema_status fail_held(struct phema_error *err)
{
    const struct phema_error held = *err;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s; if it has ended, remove that file and run the same command again",
                      held.message);
}

/* *lock: NULL where nothing is to be joined, as *result says. */
static enum phema_status take_lock(struct phema_writer_join_lock **lock, enum join_result *result,
                                   const struct join_request *request, struct phema_error *err)
{
    double begin_s = phema_clock_s();
    bool has_looked = false, is_said = !request->waiting;
    for (;;) {
        enum phema_status status =
            phema_writer_join_lock_try(lock, request->synthesis->paths[0], err);
        if (status != PHEMA_NO)
            return status;
        double waited_s = phema_clock_s() - begin_s;
        if (waited_s >= LONGEST_JOIN_S)
            return fail_held(err);
        if (!is_said && waited_s >= PHEMA_SILENT_S) {
            listener_note(request->waiting, "waiting: %s", err->message);
            is_said = true;
        }
        if (!has_looked)
            status = look(result, request, err);
        else
            status = PHEMA_OK;
        if (status || (!has_looked && *result != JOIN_DONE))
            return status;
        has_looked = true;
        struct timespec pause = {.tv_nsec = PAUSE_NS};
        (void)nanosleep(&pause, NULL);
    }
}

static enum phema_status add_paths(struct phema_join_list *list, struct join_request *request,
                                   struct phema_error *err)
{
    const struct phema_synthesis *synthesis = request->synthesis;
    const struct phema_writer_options options = {.replaces = synthesis->request.synth.replaces,
                                                 .syncs = synthesis->request.synth.syncs};
    bool is_beside = false;
    enum phema_status status = phema_writer_reserve_descriptors(synthesis->n_paths, err);
    if (!status)
        status = find_beside(&is_beside, request, err);
    if (!status && is_beside)
        status = drop_published(request, err);
    for (size_t j = 0; j < synthesis->n_paths && !status; j++) {
        bool has = false;
        status = join_has_parts(&has, synthesis->paths[j], err);
        if (!status && has)
            status = phema_join_add(list, synthesis->paths[j], &options, err);
    }
    return status;
}

/* The lock is held while the markers are read: of the last two processes, the second one finds both
 * parts done. */
PHEMA_FALLIBLE join_when_done(enum join_result *result, struct join_request *request,
                              struct phema_error *err)
{
    struct phema_writer_join_lock *lock = NULL;
    struct phema_join_list list = {0};
    *result = JOIN_NOTHING;
    enum phema_status status = take_lock(&lock, result, request, err);
    if (status || !lock)
        return status;
    *result = JOIN_NOTHING;
    status = add_paths(&list, request, err);
    if (!status && list.n) {
        status = commit(&list, request->check, request->listener, err);
        *result = JOIN_DONE;
    } else if (status == PHEMA_NO) {
        status = PHEMA_OK;
        *result = JOIN_WAITS;
    }
    phema_join_clear(&list);
    phema_writer_join_lock_close(lock);
    return status;
}

enum phema_status join_excuse(const struct phema_synthesis *synthesis,
                              const struct phema_listener *listener, enum phema_status status,
                              struct phema_error *err)
{
    struct phema_writer_join_lock *lock = NULL;
    enum join_result result = JOIN_NOTHING;
    struct phema_error ignored;
    struct join_request request = {synthesis, listener, synthesis->waiting, NULL, 0};
    if (status != PHEMA_ERR_OUTPUT || !synthesis->n_paths)
        return status;
    bool is_dropped =
        !take_lock(&lock, &result, &request, &ignored) && !drop_published(&request, &ignored);
    phema_writer_join_lock_close(lock);
    if (!is_dropped || request.n_current < synthesis->n_paths)
        return status;
    *err = (struct phema_error){0};
    return PHEMA_OK;
}

void join_forget(struct phema_prepared *prepared)
{
    while (prepared->outputs.m)
        phema_outputs_remove(&prepared->outputs, prepared->plan, prepared->outputs.m - 1);
}

/* ---- The same command in many processes ---- */

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
    status = phema_synth_find_done_parts(is_done, prepared->plan, &prepared->outputs,
                                         &prepared->options, err);
    for (size_t j = 0; j < m && !status; j++)
        n_done += is_done[j];
    if (prepared->options.gpu.uses_blas && n_done < m) /* sums depend on the number of targets */
        n_done = 0;
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

PHEMA_FALLIBLE auto_part_join(const struct phema_synthesis *synthesis,
                              const struct phema_listener *listener, struct phema_error *err)
{
    enum join_result result = JOIN_NOTHING;
    struct join_check alone = {.team = NULL};
    struct join_request request = {synthesis, listener, synthesis->waiting, &alone, 0};
    enum phema_status status = join_when_done(&result, &request, err);
    if (!status && result == JOIN_WAITS)
        listener_note(listener,
                      "the last of %llu processes joins the parts; where one fails, the same "
                      "command again makes what is missing",
                      (unsigned long long)synthesis->request.synth.n_parts);
    return status;
}

enum phema_status auto_part_name_process(const struct phema_synthesis *synthesis,
                                         enum phema_status status, struct phema_error *err)
{
    const struct phema_synth_options *options = &synthesis->request.synth;
    char host[128] = "";
    struct phema_name_buffer shown;
    if (!status || !synthesis->joins)
        return status;
    if (gethostname(host, sizeof(host) - 1))
        host[0] = '\0';
    return phema_fail_in(err, status, "part %llu of %llu on %s", (unsigned long long)options->part,
                         (unsigned long long)options->n_parts, phema_name_show(&shown, host));
}
