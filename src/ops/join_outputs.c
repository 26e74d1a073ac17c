// SPDX-License-Identifier: Apache-2.0
/* join_outputs.c - for the verb join, and for the last process of synth --part auto. */
#include "join_outputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "listener.h"
#include "phema/array.h"
#include "phema/clock.h"
#include "phema/path.h"

/* A join takes seconds, and minutes where the disk is slow to sync. */
#define LONGEST_JOIN_S 600.0

/* Most joins take less. */
#define SILENT_S 1.0
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

/* Of a compressed output; its size is known after that. */
static enum phema_status compress(struct phema_writer_join *join,
                                  const struct phema_listener *listener, struct phema_error *err)
{
    listener_stage(listener, "compressing");
    enum phema_status status = phema_writer_join_compress(join, err);
    listener_stage(listener, NULL);
    return status;
}

/* Compares all outputs with the checksums of their parts. */
static enum phema_status check_all(const struct phema_join_list *list,
                                   const struct phema_listener *listener, struct phema_error *err)
{
    listener_stage(listener, "checking the parts");
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < list->n && !status; i++)
        status = phema_writer_join_check(list->items[i], err);
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

static void tell_joined(const struct phema_listener *listener, const struct phema_writer_join *join)
{
    struct phema_name_buffer size;
    listener->joined(listener->context, join);
    listener_note(listener, "%s: %llu parts, %s", phema_writer_join_path(join),
                  (unsigned long long)phema_writer_join_n_parts(join),
                  phema_size_format(&size, phema_writer_join_bytes(join)));
}

PHEMA_FALLIBLE phema_join_commit(struct phema_join_list *list,
                                 const struct phema_listener *listener, struct phema_error *err)
{
    enum phema_status status = check_all(list, listener, err);
    for (size_t i = 0; i < list->n && !status; i++) {
        struct phema_writer_join *join = list->items[i];
        status = compress(join, listener, err);
        if (status)
            return status;
        if (listener->joined)
            tell_joined(listener, join);
        list->items[i] = NULL;
        listener_stage(listener, "storing");
        status = phema_writer_join_commit(join, err);
        listener_stage(listener, NULL);
    }
    return status;
}

void phema_join_clear(struct phema_join_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        phema_writer_join_abandon(list->items[i]);
    free(list->items);
    *list = (struct phema_join_list){0};
}

/* ---- --part auto ---- */

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
    for (size_t j = 0; j < request->n && !*is_any && !status; j++)
        if (lstat(request->paths[j], &st) == 0)
            status = join_has_parts(is_any, request->paths[j], err);
    return status;
}

/* What is to be done where another process holds the lock. JOIN_DONE: wait for it. */
static enum phema_status look(enum join_result *result, const struct join_request *request,
                              struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    *result = JOIN_NOTHING;
    for (size_t j = 0; j < request->n && *result != JOIN_WAITS && !status; j++) {
        enum phema_writer_parts_state state = PHEMA_WRITER_PARTS_ABSENT;
        status = phema_writer_parts_look(&state, request->paths[j], err);
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
        enum phema_status status = phema_writer_join_lock_try(lock, request->paths[0], err);
        if (status != PHEMA_NO)
            return status;
        double waited_s = phema_clock_s() - begin_s;
        if (waited_s >= LONGEST_JOIN_S)
            return fail_held(err);
        if (!is_said && waited_s >= SILENT_S) {
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

static enum phema_status add_paths(struct phema_join_list *list, const struct join_request *request,
                                   struct phema_error *err)
{
    bool is_beside = false;
    enum phema_status status = phema_writer_reserve_descriptors(request->n, err);
    if (!status)
        status = find_beside(&is_beside, request, err);
    if (!status && is_beside)
        status = request->drop(request->context, err);
    for (size_t j = 0; j < request->n && !status; j++) {
        bool has = false;
        status = join_has_parts(&has, request->paths[j], err);
        if (!status && has)
            status = phema_join_add(list, request->paths[j], &request->options, err);
    }
    return status;
}

/* The lock is held while the markers are read: of the last two processes, the second one finds both
 * parts done. */
PHEMA_FALLIBLE join_when_done(enum join_result *result, const struct join_request *request,
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
        status = phema_join_commit(&list, request->listener, err);
        *result = JOIN_DONE;
    } else if (status == PHEMA_NO) {
        status = PHEMA_OK;
        *result = JOIN_WAITS;
    }
    phema_join_clear(&list);
    phema_writer_join_lock_close(lock);
    return status;
}

PHEMA_FALLIBLE join_drop(const struct join_request *request, struct phema_error *err)
{
    struct phema_writer_join_lock *lock = NULL;
    enum join_result result = JOIN_NOTHING;
    enum phema_status status = take_lock(&lock, &result, request, err);
    if (!status)
        status = request->drop(request->context, err);
    phema_writer_join_lock_close(lock);
    return status;
}
