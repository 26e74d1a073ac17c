// SPDX-License-Identifier: Apache-2.0
/* existing.c - outputs that exist and need not be made again. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "listener.h"
#include "phema/formats.h"
#include "phema/path.h"
#include "phema/setting.h"

/* PHEMA_NO  the message says how they differ */
static enum phema_status compare(const struct phema_provenance *recorded,
                                 const struct phema_prepared *prepared, size_t output,
                                 const struct phema_commands *commands, struct phema_error *err)
{
    const struct phema_plan *plan = prepared->plan;
    const char *path = prepared->outputs.items[output].path;
    if (phema_provenance_find_target(recorded, plan) != output)
        return phema_fail(err, PHEMA_NO, "is another average");
    if (!recorded->inputs[0].digest)
        return phema_fail(err, PHEMA_NO, "does not say which snapshots it was made of");
    void *command = NULL;
    struct phema_request unused;
    enum phema_status status =
        commands->read(commands->context, &command, &unused, recorded->command, path, err);
    struct phema_name_buffer shown;
    const char *other =
        status ? NULL : commands->find_difference(&shown, commands->context, command);
    commands->release(command);
    if (status)
        return status;
    if (other) /* checked first: other settings may cause other tensors */
        return phema_fail(err, PHEMA_NO, "was made with another %s", other);
    status = phema_provenance_check_inputs(recorded, plan, output, err);
    if (!status)
        status = phema_provenance_check_labels(recorded, err);
    if (!status)
        status = phema_provenance_check_rows(recorded, plan, err);
    return status ? status : phema_provenance_check_weights(recorded, plan, output, err);
}

PHEMA_FALLIBLE phema_output_compare(const struct phema_prepared *prepared, size_t output,
                                    const struct phema_request *request, struct phema_error *err)
{
    struct phema_provenance *recorded = NULL;
    enum phema_status status = phema_provenance_open(
        &recorded, prepared->outputs.items[output].path, &request->plan.series.checkpoint, err);
    if (!status)
        status = compare(recorded, prepared, output, request->commands, err);
    /* the provenance says of snapshots what they were like, not of another file */
    const struct phema_output_traits *form = phema_output_traits(&prepared->outputs);
    if (!status && request->outputs.into && !form->is_directory)
        status =
            phema_synth_check_copied(prepared->plan, &prepared->outputs, recorded->checkpoint, err);
    phema_provenance_close(recorded);
    return status;
}

PHEMA_FALLIBLE phema_outputs_skip_existing(struct phema_prepared *prepared,
                                           const struct phema_request *request,
                                           const struct phema_listener *listener,
                                           struct phema_error *err)
{
    if (request->plan.is_conversion)
        return phema_fail_setting(err, PHEMA_ERR_USAGE, PHEMA_SET_SKIP_EXISTING,
                                  "excludes %s, whose outputs do not record what they were made of",
                                  phema_setting_name(PHEMA_SET_CONVERT));
    struct phema_outputs *outputs = &prepared->outputs;
    for (size_t j = 0; j < outputs->m;) {
        const char *path = outputs->items[j].path;
        struct stat st;
        enum phema_status status =
            lstat(path, &st) ? PHEMA_NO : phema_output_compare(prepared, j, request, err);
        if (!status) {
            listener_note(listener, "%s: is up to date", path);
            phema_writer_journal_remove_of(path);
            phema_outputs_keep(outputs, prepared->plan, j);
            continue;
        }
        if (status == PHEMA_ERR_RESOURCE)
            return status;
        bool is_in_the_way = lstat(path, &st) == 0 && !request->synth.replaces;
        if (is_in_the_way && request->in_the_way)
            return phema_fail_in(err, PHEMA_ERR_OUTPUT, "%s: exists, but is not up to date (%s)",
                                 path, request->in_the_way);
        if (is_in_the_way)
            return phema_suggest(err,
                                 phema_fail_in(err, PHEMA_ERR_OUTPUT,
                                               "%s: exists, but is not up to date (%s replaces it)",
                                               path, phema_setting_name(PHEMA_SET_FORCE)),
                                 PHEMA_SET_FORCE, NULL);
        j++;
    }
    return PHEMA_OK;
}

/* ---- Outputs in a directory ---- */

/* Also a file that cannot be read, which may have been one. */
static bool may_be_output(const char *path, const struct phema_checkpoint_options *options)
{
    struct phema_checkpoint *checkpoint = NULL;
    struct phema_error ignored = {0};
    if (phema_path_is_directory(path))
        return phema_provenance_exists(path, options);
    if (!phema_format_from_path(NULL, path, 0))
        return false;
    bool is_damaged = phema_checkpoint_open(&checkpoint, path, options, &ignored) != PHEMA_OK;
    phema_checkpoint_close(checkpoint);
    return is_damaged || phema_provenance_exists(path, options);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

PHEMA_FALLIBLE phema_outputs_list(const char ***paths, size_t *n, struct phema_arena *arena,
                                  const char *path, const struct phema_checkpoint_options *options,
                                  struct phema_error *err)
{
    DIR *directory = phema_provenance_exists(path, options) ? NULL : opendir(path);
    const char *slash = phema_ends_with(path, "/") ? "" : "/";
    size_t first = *n;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        char *item = entry->d_name[0] == '.'
                         ? NULL
                         : phema_arena_printf(arena, "%s%s%s", path, slash, entry->d_name);
        if (!item || !may_be_output(item, options))
            continue;
        *paths = phema_arena_grow(arena, *paths, *n, sizeof(**paths));
        if (*paths)
            (*paths)[(*n)++] = item;
    }
    if (directory)
        (void)closedir(directory);
    if (*n == first && !arena->is_failed) { /* the path itself, whatever is wrong with it */
        *paths = phema_arena_grow(arena, *paths, *n, sizeof(**paths));
        if (*paths)
            (*paths)[(*n)++] = path;
    }
    if (!*paths || arena->is_failed)
        return phema_fail_memory(err);
    qsort(*paths + first, *n - first, sizeof(**paths), compare_paths);
    return PHEMA_OK;
}

/* ---- Leftovers ---- */

/* Whether the name is that of an output of the run with something behind it. */
static bool is_of_run(const struct phema_outputs *outputs, const char *name)
{
    for (size_t j = 0; j < outputs->m + outputs->n_kept; j++) {
        const char *own = phema_path_last_name(outputs->items[j].path);
        if (strncmp(name, own, strlen(own)) == 0)
            return true;
    }
    return false;
}

static bool is_leftover(const struct phema_outputs *outputs, const char *name)
{
    return (phema_ends_with(name, ".partial") || phema_ends_with(name, ".journal")) &&
           !is_of_run(outputs, name);
}

void phema_note_leftovers(const struct phema_outputs *outputs,
                          const struct phema_listener *listener)
{
    bool is_any = outputs->m + outputs->n_kept > 0;
    char *path = is_any ? phema_path_directory(outputs->items[0].path) : NULL;
    DIR *directory = path ? opendir(path) : NULL;
    const struct dirent *entry;
    struct phema_name_buffer first = {""}, size;
    uint64_t bytes = 0;
    size_t n = 0;
    while (directory && (entry = readdir(directory))) {
        struct stat st;
        if (!is_leftover(outputs, entry->d_name) ||
            fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (n++ == 0)
            (void)phema_name_show(&first, entry->d_name);
        bytes += (uint64_t)st.st_blocks * 512;
    }
    if (n)
        listener_note(listener,
                      "%s holds %zu file%s of other runs that have not ended, such as '%s' (%s): "
                      "continue those with their own %s, or remove them",
                      path, n, n == 1 ? "" : "s", first.text, phema_size_format(&size, bytes),
                      phema_setting_name(PHEMA_SET_AT));
    if (directory)
        (void)closedir(directory);
    free(path);
}
