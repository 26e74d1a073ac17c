// SPDX-License-Identifier: Apache-2.0
/* join_outputs.c - for the verb join, and for the last process of synth --part auto. */
#include "processes/join_outputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "phema/array.h"
#include "phema/clock.h"
#include "phema/path.h"
#include "phema/progress.h"
#include "phema/report.h"

/* A join takes seconds, and minutes where the disk is slow to sync. */
#define LONGEST_JOIN_S 600.0

/* Most joins take less. */
#define SILENT_S 1.0
#define PAUSE_NS 20000000

PHEMA_FALLIBLE join_list_add(struct join_list *list, const char *path,
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

static void write_output(struct phema_strbuf *text, struct phema_json_out *json,
                         const struct phema_writer_join *join)
{
    if (!json) {
        render_write_path(text, phema_writer_join_path(join));
        phema_strbuf_puts(text, "\n");
        return;
    }
    phema_json_out_open(json, NULL, '{');
    phema_json_out_path(json, "file", phema_writer_join_path(join));
    phema_json_out_u64(json, "bytes", phema_writer_join_bytes(join));
    phema_json_out_u64(json, "parts", phema_writer_join_n_parts(join));
    phema_json_out_close(json, '}');
}

/* Of a compressed output; its size is known after that. */
static enum phema_status compress(struct phema_writer_join *join, const struct cli_common *common,
                                  struct phema_error *err)
{
    struct watch *watch = watch_start(&common->style, "compressing");
    enum phema_status status = phema_writer_join_compress(join, err);
    watch_stop(watch);
    return status;
}

/* Compares all outputs with the checksums of their parts. */
static enum phema_status check_all(const struct join_list *list, const struct cli_common *common,
                                   struct phema_error *err)
{
    struct watch *watch = watch_start(&common->style, "checking the parts");
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < list->n && !status; i++)
        status = phema_writer_join_check(list->items[i], err);
    watch_stop(watch);
    for (size_t i = 0; i < list->n && !status; i++) {
        uint64_t part = phema_writer_join_unchecked_part(list->items[i]);
        if (part)
            render_warn(&common->style,
                        "%s: part %llu was written by an earlier version, without checksums: "
                        "nobody knows whether the bytes of its parts have changed since",
                        phema_writer_join_path(list->items[i]), (unsigned long long)part);
    }
    return status;
}

PHEMA_FALLIBLE join_list_commit(struct join_list *list, const struct cli_common *common,
                                bool is_brief, struct phema_strbuf *text,
                                struct phema_json_out *json, struct phema_error *err)
{
    enum phema_status status = check_all(list, common, err);
    for (size_t i = 0; i < list->n && !status; i++) {
        struct phema_writer_join *join = list->items[i];
        struct phema_name_buffer size;
        status = compress(join, common, err);
        if (status)
            return status;
        write_output(text, json, join);
        if (!is_brief && !common->style.is_quiet)
            render_say("%s: %llu parts, %s", phema_writer_join_path(join),
                       (unsigned long long)phema_writer_join_n_parts(join),
                       phema_size_format(&size, phema_writer_join_bytes(join)));
        list->items[i] = NULL;
        struct watch *watch = watch_start(&common->style, "storing");
        status = phema_writer_join_commit(join, err);
        watch_stop(watch);
    }
    return status;
}

void join_list_clear(struct join_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        phema_writer_join_abandon(list->items[i]);
    free(list->items);
    *list = (struct join_list){0};
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
    bool has_looked = false, is_said = !request->says_waiting;
    for (;;) {
        enum phema_status status = phema_writer_join_lock_try(lock, request->paths[0], err);
        if (status != PHEMA_NO)
            return status;
        double waited_s = phema_clock_s() - begin_s;
        if (waited_s >= LONGEST_JOIN_S)
            return fail_held(err);
        if (!is_said && waited_s >= SILENT_S) {
            render_say("waiting: %s", err->message);
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

static enum phema_status add_paths(struct join_list *list, const struct join_request *request,
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
            status = join_list_add(list, request->paths[j], &request->options, err);
    }
    return status;
}

/* The lock is held while the markers are read: of the last two processes, the second one finds both
 * parts done. */
PHEMA_FALLIBLE join_when_done(enum join_result *result, const struct join_request *request,
                              struct phema_strbuf *text, struct phema_error *err)
{
    struct phema_writer_join_lock *lock = NULL;
    struct join_list list = {0};
    *result = JOIN_NOTHING;
    enum phema_status status = take_lock(&lock, result, request, err);
    if (status || !lock)
        return status;
    *result = JOIN_NOTHING;
    status = add_paths(&list, request, err);
    if (!status && list.n) {
        status = join_list_commit(&list, request->common, request->is_brief, text, NULL, err);
        *result = JOIN_DONE;
    } else if (status == PHEMA_NO) {
        status = PHEMA_OK;
        *result = JOIN_WAITS;
    }
    join_list_clear(&list);
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
