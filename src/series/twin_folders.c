// SPDX-License-Identifier: Apache-2.0
/* twin_folders.c - two folders with the files of all times: of the raw parameters, and of their
 * average. */
#include <sys/stat.h>

#include "phema/path.h"
#include "twins.h"

/* The files of each folder; false: a file stands beside them, or there are not two folders. */
static bool list_folders(struct candidate_list *candidates, size_t *n_first)
{
    size_t n_folders = 0;
    struct candidate_list listed = {.arena = candidates->arena};
    for (size_t i = 0; i < candidates->n; i++) {
        const struct candidate *folder = &candidates->items[i];
        const char *const *paths = NULL;
        size_t n = 0;
        struct stat st;
        if (!folder->path || stat(folder->path, &st) || !S_ISDIR(st.st_mode) ||
            !phema_folder_list(&paths, &n, candidates->arena, folder->path) || n < 2)
            continue;
        *n_first = n_folders++ == 0 ? n : *n_first;
        for (size_t p = 0; p < n && n_folders <= 2; p++) {
            struct candidate *file = candidates_add(&listed);
            if (!file)
                return false;
            file->path = paths[p];
            file->base = phema_path_last_name(paths[p]);
            file->label = phema_arena_printf(candidates->arena, "%s/%s", folder->base, file->base);
            if (!file->label)
                return false;
        }
    }
    candidates->items = listed.items;
    candidates->n = listed.n;
    return n_folders == 2;
}

/* Whether the first n candidates are of the same times as the others. */
static bool are_equal_times(const struct candidate_list *candidates, size_t n)
{
    bool are_equal = 2 * n == candidates->n;
    for (size_t i = 0; i < n && are_equal; i++) {
        are_equal = false;
        for (size_t k = n; k < candidates->n && !are_equal; k++)
            are_equal = candidates->items[i].named_time == candidates->items[k].named_time;
    }
    return are_equal;
}

enum phema_status twin_folders_find(bool *is_found, struct candidate_list *candidates,
                                    struct phema_series_options *options, struct phema_error *err)
{
    bool counts_steps = false;
    size_t n_first = 0;
    *is_found = false;
    if (!list_folders(candidates, &n_first))
        return PHEMA_OK;
    enum phema_status status =
        name_times_find(&options->name_regex, &counts_steps, candidates, err);
    if (status || !options->name_regex)
        return status;
    status = names_read_again(candidates, options, err);
    if (status || !are_equal_times(candidates, n_first))
        return status;
    status = candidates_tell_field(candidates, options->name_regex, err);
    if (!status)
        status = twin_files_choose(candidates, options, err);
    *is_found = !status;
    return status == PHEMA_ERR_INPUTS ? PHEMA_OK : status; /* two runs, or parts of a model */
}
