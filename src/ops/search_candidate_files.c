// SPDX-License-Identifier: Apache-2.0
/* search_candidate_files.c - the files of a candidate. A signal removes them until the candidate has its
 * score. A command that scores a candidate may change its files or those of others. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "search_candidates.h"

/* ---- The list ---- */

/* Adds path, or path/name, with the end appended. */
static enum phema_status add_file(struct candidate *candidate, const char *name, const char *end,
                                  bool is_directory, struct phema_error *err)
{
    struct candidate_file *file = &candidate->files[candidate->n_files];
    struct phema_strbuf path = {0};
    phema_strbuf_puts(&path, candidate->path);
    if (name)
        phema_strbuf_printf(&path, "/%s", name);
    phema_strbuf_puts(&path, end);
    enum phema_status status = phema_strbuf_check(&path, err);
    if (!status && candidate->is_own)
        status = phema_cleanup_add_partial(&file->entry, path.data, is_directory, err);
    if (status) {
        phema_strbuf_clear(&path);
        return status;
    }
    file->path = path.data;
    candidate->n_files++;
    return PHEMA_OK;
}

PHEMA_FALLIBLE candidate_list_files(struct candidate *candidate,
                                    const struct phema_outputs *outputs, size_t j,
                                    struct phema_error *err)
{
    const struct phema_output *output = &outputs->items[j];
    enum phema_status status = PHEMA_OK;
    candidate->files =
        calloc(output->n_files + outputs->n_side_files + 2, sizeof(*candidate->files));
    if (!candidate->files)
        return phema_fail_memory(err);
    for (size_t f = 0; f < output->n_files && !status; f++)
        status = add_file(candidate, output->files[f].name, "", false, err);
    bool is_directory = phema_output_traits(outputs)->is_directory;
    for (size_t f = 0; is_directory && f < outputs->n_side_files && !status; f++)
        status = add_file(candidate, outputs->side_files[f].name, "", false, err);
    if (!status && output->sidecar)
        status = add_file(candidate, NULL, ".json", false, err);
    if (status || !is_directory)
        return status;
    return add_file(candidate, NULL, "", true, err);
}

void candidate_keep(struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_files; i++) {
        phema_cleanup_remove(candidate->files[i].entry);
        candidate->files[i].entry = NULL;
    }
}

void candidate_clear(struct candidate *candidate)
{
    candidate_keep(candidate);
    for (size_t i = 0; i < candidate->n_files; i++)
        free(candidate->files[i].path);
    free(candidate->files);
    free(candidate->path);
    *candidate = (struct candidate){.path = NULL};
}

/* ---- Changes ---- */

/* Waits until a change gets another time: those of most filesystems have the ticks of this clock,
 * of 10 ms at most. */
static void wait_for_tick(const struct timespec *time)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct timespec now;
    for (int i = 0; i < 20 && !clock_gettime(CLOCK_REALTIME_COARSE, &now) &&
                    now.tv_sec == time->tv_sec && now.tv_nsec <= time->tv_nsec;
         i++)
        (void)nanosleep(&pause, NULL);
}

void candidate_note_files(struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_files; i++) {
        struct candidate_file *file = &candidate->files[i];
        file->made = (struct stat){0};
        if (lstat(file->path, &file->made) == 0)
            wait_for_tick(&file->made.st_ctim);
    }
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* A directory may get more entries. */
static bool is_as_made(const struct candidate_file *file)
{
    struct stat now;
    const struct stat *made = &file->made;
    bool is_there = lstat(file->path, &now) == 0;
    if (!made->st_ino)
        return !is_there;
    if (!is_there || now.st_dev != made->st_dev || now.st_ino != made->st_ino ||
        (now.st_mode & S_IFMT) != (made->st_mode & S_IFMT))
        return false;
    return S_ISDIR(now.st_mode) ||
           (now.st_size == made->st_size && is_same_time(&now.st_mtim, &made->st_mtim) &&
            is_same_time(&now.st_ctim, &made->st_ctim));
}

bool candidate_is_changed(const struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_files; i++)
        if (!is_as_made(&candidate->files[i]))
            return true;
    return false;
}

/* ---- Removing ---- */

/* Removes the regular files in it, and the directory if it is empty then. */
void candidate_remove_directory(const char *path)
{
    DIR *stream = opendir(path);
    if (!stream)
        return;
    for (const struct dirent *entry = NULL; (entry = readdir(stream));) {
        struct stat st;
        if (fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
    }
    (void)closedir(stream);
    (void)rmdir(path);
}

void candidate_remove(const struct candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_files; i++) /* a link, not the file that it names */
        if (unlink(candidate->files[i].path) && S_ISDIR(candidate->files[i].made.st_mode))
            candidate_remove_directory(candidate->files[i].path);
}
