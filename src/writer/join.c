// SPDX-License-Identifier: Apache-2.0
/* join.c - checks that all parts of an output are done and that PATH.partial agrees with them, and
 * publishes it. PATH.partial is locked against parts and ordinary runs before the markers are read,
 * so that a part that is done stays done. Markers are removed last, since they alone tell that the
 * output is complete. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "join.h"
#include "numbers.h"
#include "partial.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "phema/strbuf.h"
#include "write_error.h"
#include "writer_internal.h"

/* ---- The parts ---- */

static enum phema_status choose_division(struct phema_writer_join *join,
                                         const struct part_marker_list *list,
                                         struct phema_error *err)
{
    if (!list->n)
        return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: no parts found; make them with synth %sI/N",
                          join->path, phema_setting_equals(PHEMA_SET_PART));
    join->n_parts = list->items[0].n_parts;
    for (size_t i = 1; i < list->n; i++)
        if (list->items[i].n_parts != join->n_parts)
            return phema_fail(err, PHEMA_ERR_OUTPUT,
                              "%s: there is a part of %llu and one of %llu; remove what is left "
                              "of the division that is not meant",
                              join->path, (unsigned long long)join->n_parts,
                              (unsigned long long)list->items[i].n_parts);
    return PHEMA_OK;
}

static enum phema_status find_division(struct phema_writer_join *join, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, join->path, err);
    if (status)
        return status;
    status = choose_division(join, &list, err);
    part_marker_list_clear(&list);
    return status;
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
        numbers_end(&states[s]);
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

static bool is_alike(const struct part_marker *a, const struct part_marker *b)
{
    bool is_alike = strcmp(a->digest, b->digest) == 0 && a->is_directory == b->is_directory &&
                    a->n_files == b->n_files && a->n_sums == b->n_sums &&
                    a->sums_file == b->sums_file && a->sidecar_bytes == b->sidecar_bytes &&
                    a->is_compressed == b->is_compressed &&
                    a->all_frames.library == b->all_frames.library &&
                    a->all_frames.level == b->all_frames.level &&
                    (a->blocks.block_bytes == b->blocks.block_bytes || !a->blocks.are_there ||
                     !b->blocks.are_there);
    for (size_t f = 0; is_alike && f < a->n_files; f++) {
        const char *name = a->files[f].name, *other = b->files[f].name;
        is_alike = a->files[f].size_bytes == b->files[f].size_bytes && !name == !other &&
                   (!name || strcmp(name, other) == 0);
    }
    for (size_t k = 0; is_alike && k < a->n_sums; k++)
        is_alike = a->sums[k].offset == b->sums[k].offset;
    return is_alike;
}

struct markers {
    struct numbers states[MARKER_DONE]; /* parts that are not done */
    uint64_t n_missing;                 /* all of them */
    uint64_t unlike;                    /* the first part that disagrees with join->first, or 0 */
};

static int compare_crcs(const void *a, const void *b)
{
    const struct phema_writer_part_crc *left = a, *right = b;
    if (left->file != right->file)
        return left->file < right->file ? -1 : 1;
    return (left->at[0] > right->at[0]) - (left->at[0] < right->at[0]);
}

/* Adds the shares of a part to those of the parts before it. */
static enum phema_status add_crcs(struct part_marker *all, const struct part_marker *marker,
                                  struct phema_error *err)
{
    size_t n = all->n_crcs + marker->n_crcs, n_merged = 0;
    struct phema_writer_part_crc *crcs = realloc(all->crcs, (n + 1) * sizeof(*crcs));
    if (!crcs)
        return phema_fail_memory(err);
    all->crcs = crcs;
    if (marker->n_crcs)
        memcpy(&crcs[all->n_crcs], marker->crcs, marker->n_crcs * sizeof(*crcs));
    qsort(crcs, n, sizeof(*crcs), compare_crcs);
    for (size_t k = 0; k < n; k++) {
        if (n_merged && compare_crcs(&crcs[n_merged - 1], &crcs[k]) == 0)
            crcs[n_merged - 1].crc ^= crcs[k].crc;
        else
            crcs[n_merged++] = crcs[k];
    }
    all->n_crcs = n_merged;
    return PHEMA_OK;
}

/* Compares a part with the first one that is done, and adds the sums over the data that it has
 * read. */
static enum phema_status add_marker(struct markers *markers, struct phema_writer_join *join,
                                    uint64_t part, struct phema_error *err)
{
    struct part_marker marker = {0};
    char *path = part_marker_path(join->path, part, join->n_parts);
    enum phema_status status = path ? part_marker_read(&marker, path, err) : phema_fail_memory(err);
    free(path);
    if (status)
        return status;
    if (marker.state == MARKER_DONE && marker.is_compressed)
        status = join_add_frames(join, &marker, part, err);
    if (!status && marker.state == MARKER_DONE)
        status = join_add_blocks(join, &marker, part, err);
    if (status) {
        part_marker_clear(&marker);
        return status;
    }
    if (marker.state != MARKER_DONE) {
        join->is_begun |= marker.state != MARKER_ABSENT;
        numbers_add(&markers->states[marker.state], part);
        markers->n_missing++;
    } else if (!join->first.files) {
        join->first = marker;
        return PHEMA_OK;
    } else if (is_alike(&marker, &join->first)) {
        for (size_t k = 0; k < marker.n_sums; k++)
            phema_hash_sum_add(&join->first.sums[k].sum, &marker.sums[k].sum);
        status = add_crcs(&join->first, &marker, err);
    } else if (!markers->unlike) {
        markers->unlike = part;
    }
    part_marker_clear(&marker);
    return status;
}

static enum phema_status judge_markers(struct markers *markers,
                                       const struct phema_writer_join *join,
                                       struct phema_error *err)
{
    if (markers->n_missing)
        return fail_missing(join, markers->states, err);
    if (!markers->unlike)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: part %llu does not go with part 1: targets, options, the program's "
                      "version%s or a snapshot differ; run it again",
                      join->path, (unsigned long long)markers->unlike,
                      join->first.is_compressed ? ", that of libzstd" : "");
}

static enum phema_status check_markers(struct phema_writer_join *join, struct phema_error *err)
{
    struct markers markers = {0};
    enum phema_status status = PHEMA_OK;
    for (uint64_t part = 1; part <= join->n_parts && !status; part++)
        status = add_marker(&markers, join, part, err);
    if (!status)
        status = judge_markers(&markers, join, err);
    for (size_t s = 0; s < MARKER_DONE; s++)
        phema_strbuf_clear(&markers.states[s].text);
    return status;
}

/* ---- A look ---- */

/* Reads markers up to the first that is not done. */
static enum phema_status look(enum phema_writer_parts_state *out,
                              const struct part_marker_list *list, const char *path,
                              struct phema_error *err)
{
    *out = list->n ? PHEMA_WRITER_PARTS_DONE : PHEMA_WRITER_PARTS_ABSENT;
    if (list->n && list->n < list->items[0].n_parts)
        *out = PHEMA_WRITER_PARTS_MISSING;
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; i < list->n && *out == PHEMA_WRITER_PARTS_DONE && !status; i++) {
        struct part_marker marker = {0};
        char *marker_path = part_marker_path(path, list->items[i].part, list->items[i].n_parts);
        status = marker_path ? part_marker_read(&marker, marker_path, err) : phema_fail_memory(err);
        if (!status && marker.state != MARKER_DONE)
            *out = PHEMA_WRITER_PARTS_MISSING;
        part_marker_clear(&marker);
        free(marker_path);
    }
    return status;
}

PHEMA_FALLIBLE phema_writer_parts_look(enum phema_writer_parts_state *out, const char *path,
                                       struct phema_error *err)
{
    struct part_marker_list list = {0};
    char *own = phema_path_trim(path);
    enum phema_status status =
        own ? part_marker_list_make(&list, own, err) : phema_fail_memory(err);
    if (!status)
        status = look(out, &list, own, err);
    part_marker_list_clear(&list);
    free(own);
    return status;
}

/* ---- Checks ---- */

/* All parts are done, so that the first of them is part 1, which keeps the text. */
static enum phema_status check_sidecar(const struct phema_writer_join *join,
                                       struct phema_error *err)
{
    if (!join->first.sidecar_bytes || join->first.sidecar)
        return PHEMA_OK;
    return phema_fail(err, PHEMA_ERR_OUTPUT, "%s: part 1 lacks the text of %s.json; run it again",
                      join->path, phema_path_last_name(join->path));
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
    if (wanted->is_compressed)
        return S_ISREG(st.st_mode);
    return wanted->is_directory
               ? S_ISDIR(st.st_mode)
               : S_ISREG(st.st_mode) && (uint64_t)st.st_size == wanted->files[0].size_bytes;
}

static uint64_t published_bytes(const struct phema_writer_join *join)
{
    struct stat st;
    uint64_t bytes = 0;
    if (join->first.is_compressed)
        return lstat(join->path, &st) ? 0 : (uint64_t)st.st_size;
    for (size_t f = 0; f < join->first.n_files; f++)
        bytes += join->first.files[f].size_bytes;
    return bytes;
}

/* Finds the parts and locks PATH.partial. Fails unless all parts and files are complete, and no
 * other file is there. */
static enum phema_status check(struct phema_writer_join *join, struct phema_error *err)
{
    bool is_locked = false;
    enum phema_status status = find_division(join, err);
    if (status)
        return status;
    status = join_open_partial(&is_locked, join, err);
    if (status)
        return status;
    status = check_markers(join, err);
    if (status && status != PHEMA_NO)
        return status;
    join->is_published = is_locked && is_already_published(join);
    if (join->is_published) {
        join->size_bytes = published_bytes(join);
        return PHEMA_OK;
    }
    if (status)
        return status;
    if (!is_locked)
        return writer_fail_locked(err, join->path);
    status = join_check_partial(join, err);
    if (!status)
        status = check_sidecar(join, err);
    if (status)
        return status;
    if (join->first.is_directory)
        return phema_writer_directory_check(join->path, join->options.replaces, false, err);
    if (join->options.replaces)
        return PHEMA_OK;
    status = phema_writer_check_absent(join->path, err);
    return status || !join->first.sidecar ? status
                                          : phema_writer_check_sidecar_absent(join->path, err);
}

/* ---- Opening ---- */

PHEMA_FALLIBLE phema_writer_join_open(struct phema_writer_join **out, const char *path,
                                      const struct phema_writer_options *options,
                                      struct phema_error *err)
{
    struct phema_writer_join *join = calloc(1, sizeof(*join));
    if (!join)
        return phema_fail_memory(err);
    *join = (struct phema_writer_join){.options = *options, .descriptor = -1, .plain = -1};
    join->path = phema_path_trim(path);
    join->partial_path = join->path ? path_partial(join->path) : NULL;
    enum phema_status status = join->partial_path ? check(join, err) : phema_fail_memory(err);
    if (status) {
        phema_writer_join_abandon(join);
        return status;
    }
    *out = join;
    return PHEMA_OK;
}

const char *phema_writer_join_path(const struct phema_writer_join *join)
{
    return join->path;
}

PHEMA_FALLIBLE phema_writer_join_check(struct phema_writer_join *join, struct phema_error *err)
{
    if (join->is_published)
        return PHEMA_OK;
    enum phema_status status = join_check_blocks(join, err);
    return status ? status : join_check_sums(join, err);
}

uint64_t phema_writer_join_unchecked_part(const struct phema_writer_join *join)
{
    return join->is_published ? 0 : join->blocks.unchecked_part;
}

PHEMA_FALLIBLE phema_writer_join_compress(struct phema_writer_join *join, struct phema_error *err)
{
    if (join->is_published || !join->first.is_compressed)
        return PHEMA_OK;
    enum phema_status status = join_write_sums(join, err);
    return status ? status : join_write_frames(join, err);
}

uint64_t phema_writer_join_bytes(const struct phema_writer_join *join)
{
    return join->size_bytes;
}

uint64_t phema_writer_join_n_parts(const struct phema_writer_join *join)
{
    return join->n_parts;
}

/* ---- Publishing ---- */

static enum phema_status publish_file(struct phema_writer_join *join, struct phema_error *err)
{
    struct phema_writer *writer = NULL, *sidecar = NULL;
    int descriptor = join->descriptor;
    join->descriptor = -1;
    enum phema_status status = writer_adopt(&writer, join->path, descriptor, &join->options, err);
    if (status || !join->first.sidecar)
        return status ? status : phema_writer_commit(writer, err);
    status = join_open_sidecar(&sidecar, join, err);
    if (!status)
        return phema_writer_commit_both(sidecar, writer, err);
    phema_writer_abandon(writer);
    return status;
}

/* An earlier join was killed after it had exchanged the sidecar with an old one. */
static enum phema_status remove_old_sidecar(const struct phema_writer_join *join,
                                            struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    struct phema_writer_options options = {.replaces = true};
    const struct phema_span nothing = {NULL, 0};
    if (!join->first.sidecar_bytes)
        return PHEMA_OK;
    enum phema_status status =
        phema_writer_open_sidecar(&writer, join->path, nothing, &options, err);
    phema_writer_abandon(writer);
    return status;
}

static enum phema_status publish_directory(struct phema_writer_join *join, struct phema_error *err)
{
    struct phema_writer_directory *directory = NULL;
    int descriptor = join->descriptor;
    join->descriptor = -1;
    enum phema_status status =
        directory_adopt(&directory, join->path, descriptor, &join->options, err);
    return status ? status : phema_writer_directory_commit(directory, err);
}

/* An earlier join was stopped after the rename. */
static enum phema_status finish_published(struct phema_writer_join *join, struct phema_error *err)
{
    enum phema_status status =
        join->options.syncs ? phema_writer_sync_entry(join->path, err) : PHEMA_OK;
    if (!status)
        status = remove_old_sidecar(join, err);
    if (!status && join->first.is_directory && join->descriptor >= 0)
        status = directory_remove_replaced(join->path, join->partial_path, err);
    return status;
}

static enum phema_status publish(struct phema_writer_join *join, struct phema_error *err)
{
    if (join->is_published)
        return finish_published(join, err);
    assert(join->frames.are_written || !join->first.is_compressed);
    enum phema_status status = join->first.is_compressed ? PHEMA_OK : join_write_sums(join, err);
    if (!status)
        status = join_write_crcs(join, err);
    if (status)
        return status;
    return join->first.is_directory ? publish_directory(join, err) : publish_file(join, err);
}

PHEMA_FALLIBLE phema_writer_join_commit(struct phema_writer_join *join, struct phema_error *err)
{
    enum phema_status status = publish(join, err);
    if (!status && join->first.is_compressed)
        status = join_remove_plain(join, err);
    for (uint64_t part = 1; part <= join->n_parts && !status; part++) {
        char *path = part_marker_path(join->path, part, join->n_parts);
        status = path ? part_marker_remove(path, join->first.inode, join->first.is_compressed, err)
                      : phema_fail_memory(err);
        free(path);
    }
    if (!status && join->options.syncs)
        status = phema_writer_sync_entry(join->path, err);
    phema_writer_join_abandon(join);
    return status;
}

void phema_writer_join_abandon(struct phema_writer_join *join)
{
    if (!join)
        return;
    if (join->descriptor >= 0)
        (void)close(join->descriptor);
    if (join->plain >= 0)
        (void)close(join->plain);
    join_frames_clear(join);
    join_blocks_clear(join);
    part_marker_clear(&join->first);
    free(join->path);
    free(join->partial_path);
    free(join->plain_path);
    free(join);
}
