// SPDX-License-Identifier: Apache-2.0
/* join.c - checks that all parts of an output are done and that PATH.partial agrees with them, and
 * publishes it. PATH.partial is locked against parts and ordinary runs before the markers are read,
 * so that a part that is done stays done. Markers are removed last, since they alone tell that the
 * output is complete. */
#include "join.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory.h"
#include "phema/path.h"
#include "phema/setting.h"
#include "writer_internal.h"

/* ---- The parts ---- */

static enum phema_status find_division(struct phema_writer_join *join, struct phema_error *err)
{
    struct part_marker_list list = {0};
    enum phema_status status = part_marker_list_make(&list, join->out.path, err);
    if (!status && !list.n)
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "%s: no parts found; make them with synth %sI/N",
                            join->out.path, phema_setting_equals(PHEMA_SET_PART));
    for (size_t i = 1; i < list.n && !status; i++)
        if (list.items[i].n_parts != list.items[0].n_parts)
            status = phema_fail(err, PHEMA_ERR_OUTPUT,
                                "%s: there is a part of %llu and one of %llu; remove what is left "
                                "of the division that is not meant",
                                join->out.path, (unsigned long long)list.items[0].n_parts,
                                (unsigned long long)list.items[i].n_parts);
    uint64_t n_parts = status ? 0 : list.items[0].n_parts;
    part_marker_list_clear(&list);
    if (!status && !(join->parts = calloc((size_t)n_parts, sizeof(*join->parts))))
        status = phema_fail_memory(err);
    for (; join->n_parts < n_parts && !status; join->n_parts++) {
        struct join_part *part = &join->parts[join->n_parts];
        part->marker_path = part_marker_path(join->out.path, join->n_parts + 1, n_parts);
        part->frames_path = part_frames_path(part->marker_path);
        if (!part->frames_path)
            status = phema_fail_memory(err);
    }
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
        status = phema_fail(err, PHEMA_NO, "%s: of %llu parts, %s; nothing was changed",
                            join->out.path, (unsigned long long)join->n_parts, text.data);
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
                    (a->block_bytes == b->block_bytes || !a->has_blocks || !b->has_blocks);
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
    enum phema_status status = part_marker_read(&marker, join->parts[part - 1].marker_path, err);
    bool is_done = !status && marker.state == MARKER_DONE;
    if (is_done && marker.is_compressed)
        status = join_add_frames(join, &marker, part, err);
    if (is_done && !status)
        status = join_add_blocks(join, &marker, part, err);
    if (!status && !is_done) {
        join->is_begun |= marker.state != MARKER_ABSENT;
        numbers_add(&markers->states[marker.state], part);
        markers->n_missing++;
    } else if (!status && !join->first.files) {
        join->first = marker;
        return PHEMA_OK;
    } else if (!status && is_alike(&marker, &join->first)) {
        for (size_t k = 0; k < marker.n_sums; k++)
            phema_hash_sum_add(&join->first.sums[k].sum, &marker.sums[k].sum);
        status = add_crcs(&join->first, &marker, err);
    } else if (!status && !markers->unlike) {
        markers->unlike = part;
    }
    part_marker_clear(&marker);
    return status;
}

static enum phema_status check_markers(struct phema_writer_join *join, struct phema_error *err)
{
    struct markers markers = {0};
    enum phema_status status = PHEMA_OK;
    for (uint64_t part = 1; part <= join->n_parts && !status; part++)
        status = add_marker(&markers, join, part, err);
    if (!status && markers.n_missing)
        status = fail_missing(join, markers.states, err);
    else if (!status && markers.unlike)
        status =
            phema_fail(err, PHEMA_ERR_OUTPUT,
                       "%s: part %llu does not go with part 1: targets, options, the program's "
                       "version%s or a snapshot differ; run it again",
                       join->out.path, (unsigned long long)markers.unlike,
                       join->first.is_compressed ? ", that of libzstd" : "");
    for (size_t s = 0; s < MARKER_DONE; s++)
        phema_strbuf_clear(&markers.states[s].text);
    return status;
}

/* Reads markers up to the first that is not done. */
PHEMA_FALLIBLE phema_writer_parts_look(enum phema_writer_parts_state *out, const char *path,
                                       struct phema_error *err)
{
    struct part_marker_list list = {0};
    char *own = phema_path_trim(path);
    enum phema_status status =
        own ? part_marker_list_make(&list, own, err) : phema_fail_memory(err);
    free(own);
    if (status)
        return status;
    *out = list.n ? PHEMA_WRITER_PARTS_DONE : PHEMA_WRITER_PARTS_ABSENT;
    if (list.n && list.n < list.items[0].n_parts)
        *out = PHEMA_WRITER_PARTS_MISSING;
    for (size_t i = 0; i < list.n && *out == PHEMA_WRITER_PARTS_DONE && !status; i++) {
        struct part_marker marker = {0};
        status = part_marker_read(&marker, list.items[i].path, err);
        if (!status && marker.state != MARKER_DONE)
            *out = PHEMA_WRITER_PARTS_MISSING;
        part_marker_clear(&marker);
    }
    part_marker_list_clear(&list);
    return status;
}

/* ---- PATH.partial ---- */

/* path: for messages */
static enum phema_status check_file(const struct phema_writer_join *join, int descriptor,
                                    const struct phema_writer_part_file *file, const char *path,
                                    struct phema_error *err)
{
    struct stat st;
    if (fstat(descriptor, &st))
        return writer_fail_errno(err, join->out.partial_path, "cannot be examined", errno);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->size_bytes)
        return leftover_check_one_name(&st, path, err);
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: expected a file of %llu bytes, found %llu; remove it and all "
                      "%s.part-*, and write all parts again",
                      path, (unsigned long long)file->size_bytes, (unsigned long long)st.st_size,
                      join->out.path);
}

/* The file is synced too, since parts may have run with --no-sync. */
static enum phema_status check_file_inside(struct phema_writer_join *join,
                                           const struct phema_writer_part_file *file,
                                           struct phema_error *err)
{
    int descriptor = -1;
    char *path = path_inside(join->out.partial_path, file->name);
    if (!path)
        return phema_fail_memory(err);
    enum phema_status status =
        leftover_open(&descriptor, join->out.lock, file->name, path, O_RDONLY, S_IFREG, err);
    if (!status && descriptor < 0)
        status = writer_fail_errno(err, path, "cannot be opened", ENOENT);
    if (!status)
        status = check_file(join, descriptor, file, path, err);
    if (!status && join->options.syncs && file_sync(descriptor))
        status = writer_fail_errno(err, join->out.path, "cannot be synced", errno);
    if (!status)
        join->size_bytes += file->size_bytes;
    if (descriptor >= 0)
        (void)close(descriptor);
    free(path);
    return status;
}

static enum phema_status check_no_other_files(const struct phema_writer_join *join,
                                              struct phema_error *err)
{
    DIR *stream = directory_list(join->out.lock, ".");
    if (!stream)
        return writer_fail_errno(err, join->out.partial_path, "cannot be listed", errno);
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
                                join->out.partial_path, phema_name_show(&shown, name));
    }
    if (!status && errno)
        status = writer_fail_errno(err, join->out.partial_path, "cannot be listed", errno);
    (void)closedir(stream);
    return status;
}

static enum phema_status fail_gone(const struct phema_writer_join *join, const char *path,
                                   struct phema_error *err)
{
    return phema_fail(err, PHEMA_ERR_OUTPUT,
                      "%s: is gone, though all its parts are done; remove all %s.part-*, and "
                      "write all parts again unless %s is there and whole",
                      path, join->out.path, join->out.path);
}

/* Compares it, or its files, with those that the parts tell, and syncs them. */
static enum phema_status check_partial(struct phema_writer_join *join, struct phema_error *err)
{
    struct stat st;
    const struct part_marker *wanted = &join->first;
    if (join->out.lock < 0)
        return fail_gone(join, join->out.partial_path, err);
    if (fstat(join->out.lock, &st))
        return writer_fail_errno(err, join->out.partial_path, "cannot be examined", errno);
    if (S_ISDIR(st.st_mode) != wanted->is_directory)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "%s: expected a %s, as its parts say; remove it and all %s.part-*, and "
                          "write all parts again",
                          join->out.partial_path, wanted->is_directory ? "directory" : "file",
                          join->out.path);
    if (wanted->is_compressed) {
        bool is_locked = false;
        struct pending *plain = &join->plain;
        enum phema_status status = leftover_check_one_name(&st, join->out.partial_path, err);
        if (!status)
            status = pending_open_left(plain, &is_locked, true, err);
        if (!status && plain->lock < 0)
            status = fail_gone(join, plain->partial_path, err);
        if (!status && !is_locked)
            status = writer_fail_locked(err, join->out.path);
        if (!status)
            status = check_file(join, plain->lock, &wanted->files[0], plain->partial_path, err);
        return status ? status : join_check_frames(join, err);
    }
    if (!wanted->is_directory) {
        join->size_bytes = wanted->files[0].size_bytes;
        return check_file(join, join->out.lock, &wanted->files[0], join->out.partial_path, err);
    }
    for (size_t f = 0; f < wanted->n_files; f++) {
        enum phema_status status = check_file_inside(join, &wanted->files[f], err);
        if (status)
            return status;
    }
    return check_no_other_files(join, err);
}

/* ---- Checks ---- */

/* true when an earlier join has renamed PATH.partial to PATH. That join only has to be finished,
 * and may have removed some of the markers. PATH.partial may be the directory that PATH has
 * replaced, and must not be mistaken for its parts. */
static bool is_already_published(const struct phema_writer_join *join)
{
    struct stat st;
    const struct part_marker *wanted = &join->first;
    if (join->is_begun || !wanted->inode || lstat(join->out.path, &st) ||
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
        return lstat(join->out.path, &st) ? 0 : (uint64_t)st.st_size;
    for (size_t f = 0; f < join->first.n_files; f++)
        bytes += join->first.files[f].size_bytes;
    return bytes;
}

/* Finds the parts and locks PATH.partial. Fails unless all parts and files are complete, and no
 * other file is there. */
static enum phema_status check(struct phema_writer_join *join, struct phema_error *err)
{
    struct stat st;
    bool is_locked = false;
    enum phema_status status = find_division(join, err);
    if (status)
        return status;
    join->out.is_directory = lstat(join->out.partial_path, &st) == 0 && S_ISDIR(st.st_mode);
    status = pending_open_left(&join->out, &is_locked, true, err);
    if (status)
        return status; /* an absent one is reported when the markers are known */
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
        return writer_fail_locked(err, join->out.path);
    status = check_partial(join, err);
    if (!status && join->first.sidecar_bytes &&
        !join->first.sidecar) /* of part 1, as all are done */
        status =
            phema_fail(err, PHEMA_ERR_OUTPUT, "%s: part 1 lacks the text of %s.json; run it again",
                       join->out.path, phema_path_last_name(join->out.path));
    if (!status)
        status = join_list_places(join, err);
    if (status)
        return status;
    if (join->first.is_directory)
        return phema_writer_directory_check(join->out.path, join->options.replaces, false, err);
    status = phema_writer_check_place(join->out.path, join->options.replaces, err);
    return status || join->options.replaces || !join->first.sidecar
               ? status
               : phema_writer_check_sidecar_absent(join->out.path, err);
}

/* ---- Opening ---- */

PHEMA_FALLIBLE phema_writer_join_open(struct phema_writer_join **out, const char *path,
                                      const struct phema_writer_options *options,
                                      struct phema_error *err)
{
    struct phema_writer_join *join = calloc(1, sizeof(*join));
    if (!join)
        return phema_fail_memory(err);
    bool is_made = pending_init(&join->out, path, ".partial");
    is_made &= pending_init(&join->plain, path, PHEMA_PLAIN_SUFFIX ".partial");
    join->options = *options;
    enum phema_status status = is_made ? check(join, err) : phema_fail_memory(err);
    if (status) {
        phema_writer_join_abandon(join);
        return status;
    }
    *out = join;
    return PHEMA_OK;
}

const char *phema_writer_join_path(const struct phema_writer_join *join)
{
    return join->out.path;
}

uint64_t phema_writer_join_unchecked_part(const struct phema_writer_join *join)
{
    return join->is_published ? 0 : join->blocks.unchecked_part;
}

PHEMA_FALLIBLE phema_writer_join_compress(struct phema_writer_join *join, struct phema_error *err)
{
    if (join->is_published || !join->first.is_compressed)
        return PHEMA_OK;
    enum phema_status status = join_fill_places(join, err);
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

static enum phema_status publish(struct phema_writer_join *join, struct phema_error *err)
{
    struct phema_writer_directory *directory = NULL;
    struct phema_writer *writer = NULL, *sidecar = NULL;
    const struct phema_writer_options *options = &join->options;
    enum phema_status status = join->first.is_compressed ? PHEMA_OK : join_fill_places(join, err);
    if (status)
        return status;
    int descriptor = join->out.lock;
    join->out.lock = -1;
    if (join->first.is_directory) {
        status = directory_adopt(&directory, join->out.path, descriptor, options, err);
        return status ? status : phema_writer_directory_commit(directory, err);
    }
    status = writer_adopt(&writer, join->out.path, descriptor, options, err);
    if (status || !join->first.sidecar)
        return status ? status : phema_writer_commit(writer, err);
    status = join_open_sidecar(&sidecar, join, err);
    if (!status)
        return phema_writer_commit_both(sidecar, writer, err);
    phema_writer_abandon(writer);
    return status;
}

/* An earlier join was stopped after the rename, perhaps before it had removed what it replaced. */
static enum phema_status finish_published(struct phema_writer_join *join, struct phema_error *err)
{
    const char *path = join->out.path;
    struct phema_writer *sidecar = NULL;
    const struct phema_writer_options options = {.replaces = true};
    const struct phema_span nothing = {NULL, 0};
    enum phema_status status = join->options.syncs ? phema_writer_sync_entry(path, err) : PHEMA_OK;
    if (!status && join->first.sidecar_bytes)
        status = phema_writer_open_sidecar(&sidecar, path, nothing, &options, err);
    phema_writer_abandon(sidecar); /* with the old one, which was exchanged */
    if (!status && join->first.is_directory && join->out.lock >= 0)
        status = directory_remove_replaced(path, join->out.partial_path, err);
    return status;
}

PHEMA_FALLIBLE phema_writer_join_commit(struct phema_writer_join *join, struct phema_error *err)
{
    bool has_frames = join->first.is_compressed;
    enum phema_status status =
        join->is_published ? finish_published(join, err) : publish(join, err);
    if (!status && has_frames && unlink(join->plain.partial_path) && errno != ENOENT)
        status = writer_fail_errno(err, join->plain.partial_path, "cannot be removed", errno);
    for (uint64_t p = 0; p < join->n_parts && !status; p++)
        status = part_marker_remove(join->parts[p].marker_path, join->first.inode, has_frames, err);
    if (!status && join->options.syncs)
        status = phema_writer_sync_entry(join->out.path, err);
    phema_writer_join_abandon(join);
    return status;
}

void phema_writer_join_abandon(struct phema_writer_join *join)
{
    if (!join)
        return;
    pending_clear(&join->out);
    pending_clear(&join->plain);
    for (uint64_t p = 0; p < join->n_parts; p++) {
        free(join->parts[p].marker_path);
        free(join->parts[p].frames_path);
    }
    free(join->parts);
    free(join->frames.items);
    free(join->blocks.items);
    free(join->places.items);
    part_marker_clear(&join->first);
    free(join);
}
