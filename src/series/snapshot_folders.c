// SPDX-License-Identifier: Apache-2.0
/* snapshot_folders.c - folders of one time, with a checkpoint or several, whose files take their
 * places. */
#include <string.h>
#include <sys/stat.h>

#include "twins.h"

/* Puts the checkpoints in the folder of candidate i into its place. */
static enum phema_status expand(struct candidate_list *candidates, size_t i,
                                struct phema_error *err)
{
    const struct candidate folder = candidates->items[i];
    const char *const *paths = NULL;
    size_t n = 0;
    if (!phema_folder_list(&paths, &n, candidates->arena, folder.path))
        return phema_fail_memory(err);
    for (size_t p = 0; p < n; p++) {
        struct candidate *candidate = p ? candidates_add(candidates) : &candidates->items[i];
        if (!candidate)
            return phema_fail_memory(err);
        *candidate = folder;
        candidate->path = paths[p];
        candidate->label = folder.label;
        if (strlen(paths[p]) > strlen(folder.path))
            candidate->label = phema_arena_printf(candidates->arena, "%s%s", folder.label,
                                                  paths[p] + strlen(folder.path));
        if (!candidate->label)
            return phema_fail_memory(err);
    }
    return PHEMA_OK;
}

/* A training that ended while it saved leaves a newest folder without the model. */
static void leave_out_unsaved(struct candidate_list *candidates)
{
    struct candidate *newest = NULL;
    struct stat st;
    const char *const *paths = NULL;
    size_t n_folders = 0, n = 0;
    for (size_t i = 0; i < candidates->n; i++) {
        struct candidate *candidate = &candidates->items[i];
        if (candidate->is_left_out || !candidate->path || stat(candidate->path, &st) ||
            !S_ISDIR(st.st_mode))
            continue;
        n_folders++;
        if (!newest || candidate->named_time > newest->named_time)
            newest = candidate;
    }
    if (n_folders > 1 && phema_folder_list(&paths, &n, candidates->arena, newest->path) && n == 0)
        candidates_leave_out(candidates, newest,
                             "without a checkpoint: its trainer has not finished it");
}

enum phema_status snapshot_folders_expand(struct candidate_list *candidates,
                                          struct phema_error *err)
{
    struct stat st;
    enum phema_status status = PHEMA_OK;
    leave_out_unsaved(candidates);
    for (size_t i = 0, n = candidates->n; i < n && !status; i++) {
        const struct candidate *candidate = &candidates->items[i];
        if (!candidate->is_left_out && candidate->path && stat(candidate->path, &st) == 0 &&
            S_ISDIR(st.st_mode))
            status = expand(candidates, i, err);
    }
    return status;
}
