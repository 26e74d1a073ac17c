// SPDX-License-Identifier: Apache-2.0
/* join_check.c - checks that all parts of an output are done, and that PATH.partial agrees with
 * them. PATH.partial is locked against parts and ordinary runs before the markers are read, so that
 * a part that is done stays done until the output is published. */
#include "join.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "partial.h"
#include "phema/strbuf.h"
#include "write_error.h"
#include "writer_internal.h"

static enum phema_status find_division(struct phema_writer_join *join, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, join->directory, join->path, err);
    if (!status && !list.n)
        status = phema_fail(err, PHEMA_ERR_OUTPUT,
                            "%s: no parts of it are here; synth --part writes them", join->path);
    for (size_t i = 1; i < list.n && !status; i++)
        if (list.items[i].n_parts != list.items[0].n_parts)
            status = phema_fail(err, PHEMA_ERR_OUTPUT,
                                "%s: there is a part of %llu and one of %llu; remove what is left "
                                "of the division that is not meant",
                                join->path, (unsigned long long)list.items[0].n_parts,
                                (unsigned long long)list.items[i].n_parts);
    if (!status)
        join->n_parts = list.items[0].n_parts;
    part_marker_list_clear(&list);
    return status;
}

/* A list of numbers, "2, 5-7". */
struct numbers {
    struct phema_strbuf text;
    uint64_t first, last, n;
};

static void end_run(struct numbers *numbers)
{
    if (!numbers->first)
        return;
    phema_strbuf_printf(&numbers->text, "%s%llu", numbers->text.size ? ", " : "",
                        (unsigned long long)numbers->first);
    if (numbers->last > numbers->first)
        phema_strbuf_printf(&numbers->text, "%s%llu",
                            numbers->last > numbers->first + 1 ? "-" : ", ",
                            (unsigned long long)numbers->last);
    numbers->first = 0;
}

static void add_number(struct numbers *numbers, uint64_t number)
{
    numbers->n++;
    if (numbers->first && number == numbers->last + 1) {
        numbers->last = number;
        return;
    }
    end_run(numbers);
    numbers->first = numbers->last = number;
}

static enum phema_status fail_missing(const struct phema_writer_join *join,
                                      struct numbers states[MARKER_DONE], struct phema_error *err)
{
    static const char *const words[] = {[MARKER_ABSENT] = "not here",
                                        [MARKER_UNFINISHED] = "not finished",
                                        [MARKER_RUNNING] = "being written"};
    struct phema_strbuf text = {0};
    for (size_t s = 0; s < MARKER_DONE; s++) {
        if (!states[s].n)
            continue;
        end_run(&states[s]);
        phema_strbuf_printf(&text, "%s%s %s %s %s", text.size ? ", " : "",
                            states[s].n == 1 ? "part" : "parts", states[s].text.data,
                            states[s].n == 1 ? "is" : "are", words[s]);
    }
    enum phema_status status = phema_strbuf_check(&text, err);
    if (!status)
        status = phema_fail(err, PHEMA_NO, "%s: of %llu parts, %s; nothing was changed", join->path,
                            (unsigned long long)join->n_parts, text.data);
    phema_strbuf_clear(&text);
    return status;
}

static enum phema_status compare(const struct phema_writer_join *join,
                                 const struct part_marker *marker, uint64_t part,
                                 struct phema_error *err)
{
    bool is_alike = strcmp(marker->digest, join->first.digest) == 0 &&
                    marker->is_directory == join->first.is_directory &&
                    marker->n_files == join->first.n_files;
    for (size_t f = 0; f < marker->n_files && is_alike; f++) {
        const struct part_marker_file *file = &marker->files[f], *wanted = &join->first.files[f];
        is_alike = file->size_bytes == wanted->size_bytes && !file->name == !wanted->name &&
                   (!file->name || strcmp(file->name, wanted->name) == 0);
    }
    is_alike = is_alike && marker->n_sums == join->first.n_sums;
    for (size_t k = 0; k < marker->n_sums && is_alike; k++)
        is_alike = marker->sums[k].offset == join->first.sums[k].offset;
    return is_alike ? PHEMA_OK
                    : phema_fail(err, PHEMA_ERR_OUTPUT,
                                 "%s: part %llu does not go with part 1: targets, options, the "
                                 "program's version or a snapshot differ; run it again",
                                 join->path, (unsigned long long)part);
}

/* Adds the sums over the data that one part has read. */
static void add_sums(struct phema_writer_join *join, const struct part_marker *marker)
{
    for (size_t k = 0; k < marker->n_sums; k++)
        phema_hash_sum_add(&join->first.sums[k].sum, &marker->sums[k].sum);
}

/* Compares each part with the first one that is done. */
static enum phema_status check_markers(struct phema_writer_join *join, struct phema_error *err)
{
    struct numbers states[MARKER_DONE] = {0};
    bool are_all_done = true;
    enum phema_status status = PHEMA_OK, unlike = PHEMA_OK;
    for (uint64_t part = 1; part <= join->n_parts && !status; part++) {
        struct part_marker marker = {0};
        char *path = part_marker_path(join->path, part, join->n_parts);
        status = path ? part_marker_read(&marker, path, err) : phema_fail_memory(err);
        free(path);
        if (status)
            break;
        if (marker.state != MARKER_DONE) {
            are_all_done = false;
            join->is_begun |= marker.state != MARKER_ABSENT;
            add_number(&states[marker.state], part);
        } else if (!join->first.files) {
            join->first = marker;
            marker = (struct part_marker){0};
        } else if (!unlike) {
            unlike = compare(join, &marker, part, err);
            if (!unlike)
                add_sums(join, &marker);
        }
        part_marker_clear(&marker);
    }
    if (!status && !are_all_done)
        status = fail_missing(join, states, err);
    for (size_t s = 0; s < MARKER_DONE; s++)
        phema_strbuf_clear(&states[s].text);
    return status ? status : unlike;
}

static enum phema_status open_partial(bool *is_locked, struct phema_writer_join *join,
                                      struct phema_error *err)
{
    *is_locked = true;
    struct stat st;
    bool is_directory = lstat(join->partial_path, &st) == 0 && S_ISDIR(st.st_mode);
    /* for writing: network filesystems require that for an exclusive lock */
    enum phema_status status =
        leftover_open(&join->descriptor, AT_FDCWD, join->partial_path, join->partial_path,
                      is_directory ? O_RDONLY : O_RDWR, is_directory ? S_IFDIR : S_IFREG, err);
    if (status || join->descriptor < 0) /* absent: reported when the markers are known */
        return status;
    return partial_lock(is_locked, join->descriptor, LOCK_EX, true, join->path, err);
}

static enum phema_status check_name(const struct phema_writer_join *join, const struct stat *st,
                                    const struct part_marker_file *file, struct phema_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", join->partial_path, file->name ? "/" : "",
                 file->name ? file->name : "") < 0)
        return phema_fail_memory(err);
    enum phema_status status = leftover_check_one_name(st, path, err);
    free(path);
    return status;
}

static enum phema_status check_size(const struct phema_writer_join *join, int descriptor,
                                    const struct part_marker_file *file, struct phema_error *err)
{
    struct stat st;
    if (fstat(descriptor, &st))
        return writer_fail_errno(err, join->partial_path, "cannot be examined", errno);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->size_bytes)
        return check_name(join, &st, file, err);
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s%s%s: expected a file of %llu bytes, found %llu; remove it and all "
                      "%s.part-*, and write all parts again",
                      join->partial_path, file->name ? "/" : "", file->name ? file->name : "",
                      (unsigned long long)file->size_bytes, (unsigned long long)st.st_size,
                      join->path);
}

/* The file has its size. It is synced too, since parts may have run with --no-sync. */
static enum phema_status check_file_inside(struct phema_writer_join *join,
                                           const struct part_marker_file *file,
                                           struct phema_error *err)
{
    int descriptor = -1;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", join->partial_path, file->name) < 0)
        return phema_fail_memory(err);
    enum phema_status status =
        leftover_open(&descriptor, join->descriptor, file->name, path, O_RDONLY, S_IFREG, err);
    if (!status && descriptor < 0)
        status =
            phema_fail(err, PHEMA_ERR_OUTPUT, "%s: cannot be opened: %s", path, strerror(ENOENT));
    free(path);
    if (status)
        return status;
    status = check_size(join, descriptor, file, err);
    if (!status && join->options.syncs && file_sync(descriptor))
        status = writer_fail_errno(err, join->path, "cannot be synced", errno);
    (void)close(descriptor);
    join->size_bytes += file->size_bytes;
    return status;
}

static enum phema_status check_no_other_files(const struct phema_writer_join *join,
                                              struct phema_error *err)
{
    DIR *stream = directory_list(join->descriptor);
    if (!stream)
        return writer_fail_errno(err, join->partial_path, "cannot be listed", errno);
    enum phema_status status = PHEMA_OK;
    const char *name = NULL;
    while (!status && (name = directory_next_name(stream))) {
        bool is_known = false;
        for (size_t f = 0; f < join->first.n_files && !is_known; f++)
            is_known = strcmp(join->first.files[f].name, name) == 0;
        struct phema_name_buffer shown;
        if (!is_known)
            status = phema_fail(err, PHEMA_ERR_OUTPUT,
                                "%s: holds '%s', which no part has written; remove it",
                                join->partial_path, phema_name_escape(&shown, name, strlen(name)));
    }
    if (!status && errno)
        status = writer_fail_errno(err, join->partial_path, "cannot be listed", errno);
    (void)closedir(stream);
    return status;
}

static enum phema_status check_partial(struct phema_writer_join *join, struct phema_error *err)
{
    struct stat st;
    const struct part_marker *wanted = &join->first;
    if (join->descriptor < 0)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: is gone, though all parts of it are done; remove all %s.part-*, and "
                          "write all parts again unless %s is there and whole",
                          join->partial_path, join->path, join->path);
    if (fstat(join->descriptor, &st))
        return writer_fail_errno(err, join->partial_path, "cannot be examined", errno);
    if (S_ISDIR(st.st_mode) != wanted->is_directory)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: expected a %s, as its parts say; remove it and all %s.part-*, and "
                          "write all parts again",
                          join->partial_path, wanted->is_directory ? "directory" : "file",
                          join->path);
    enum phema_status status = PHEMA_OK;
    if (!wanted->is_directory) {
        join->size_bytes = wanted->files[0].size_bytes;
        return check_size(join, join->descriptor, &wanted->files[0], err);
    }
    for (size_t f = 0; f < wanted->n_files && !status; f++)
        status = check_file_inside(join, &wanted->files[f], err);
    return status ? status : check_no_other_files(join, err);
}

/* true when an earlier join has renamed PATH.partial to PATH. That join only has to be finished,
 * and may have removed some of the markers. PATH.partial may be the directory that PATH has
 * replaced, and must not be mistaken for its parts. */
static bool is_already_published(const struct phema_writer_join *join)
{
    struct stat st;
    const struct part_marker *wanted = &join->first;
    if (join->is_begun || !wanted->inode || lstat(join->path, &st) ||
        (uint64_t)st.st_ino != wanted->inode)
        return false;
    return wanted->is_directory
               ? S_ISDIR(st.st_mode)
               : S_ISREG(st.st_mode) && (uint64_t)st.st_size == wanted->files[0].size_bytes;
}

PHEMA_FALLIBLE join_check(struct phema_writer_join *join, struct phema_error *err)
{
    bool is_locked = false;
    enum phema_status status = find_division(join, err);
    if (!status)
        status = open_partial(&is_locked, join, err);
    if (!status)
        status = check_markers(join, err);
    join->is_published = (!status || status == PHEMA_NO) && is_locked && is_already_published(join);
    if (!status && !is_locked)
        status = writer_fail_locked(err, join->path);
    if (join->is_published) {
        for (size_t f = 0; f < join->first.n_files; f++)
            join->size_bytes += join->first.files[f].size_bytes;
        return PHEMA_OK;
    }
    if (!status)
        status = check_partial(join, err);
    if (!status && join->first.is_directory)
        status = phema_writer_directory_check(join->path, join->options.replaces, err);
    else if (!status && !join->options.replaces)
        status = phema_writer_check_absent(join->path, err);
    return status;
}
