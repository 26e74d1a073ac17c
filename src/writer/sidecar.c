// SPDX-License-Identifier: Apache-2.0
/* sidecar.c - PATH.json, the provenance of a copy at PATH: what a killed run has left of it, and
 * both files published as one. The sidecar appears first: without its provenance the copy would
 * pass for a snapshot. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "write_error.h"
#include "writer_internal.h"

/* PATH and this suffix, the caller's; NULL without memory */
static char *path_with(const char *path, const char *suffix)
{
    char *made = NULL;
    return asprintf(&made, "%s%s", path, suffix) < 0 ? NULL : made;
}

/* ---- What a killed run has left ---- */

static bool exists(const char *path, const char *suffix)
{
    char *full = path_with(path, suffix);
    struct stat st;
    bool is_found = full && lstat(full, &st) == 0;
    free(full);
    return is_found;
}

/* Whether a file is a provenance of this program that belongs to this user. */
static bool is_provenance(const char *sidecar_path)
{
    struct stat st;
    char begin[32] = "";
    bool is_own = lstat(sidecar_path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
    int descriptor =
        !is_own ? -1
                : open(sidecar_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return false;
    bool is_ours = fstat(descriptor, &st) == 0 && st.st_uid == geteuid() &&
                   pread(descriptor, begin, sizeof(begin) - 1, 0) > 0 &&
                   strstr(begin, "\"posthoc_ema.") != NULL;
    (void)close(descriptor);
    return is_ours;
}

/* PATH.json and PATH.partial exist, and PATH does not: a run was killed after it had published the
 * sidecar, which the next run may replace. */
static bool is_left(const char *path, const char *sidecar_path)
{
    return exists(path, ".partial") && !exists(path, "") && is_provenance(sidecar_path);
}

PHEMA_FALLIBLE phema_writer_check_sidecar_absent(const char *path, struct phema_error *err)
{
    char *sidecar_path = path_with(path, ".json");
    if (!sidecar_path)
        return phema_fail_memory(err);
    enum phema_status status =
        is_left(path, sidecar_path) ? PHEMA_OK : phema_writer_check_absent(sidecar_path, err);
    free(sidecar_path);
    return status;
}

/* ---- Writing ---- */

PHEMA_FALLIBLE phema_writer_open_sidecar(struct phema_writer **out, const char *path,
                                         struct phema_span text,
                                         const struct phema_writer_options *options,
                                         struct phema_error *err)
{
    struct phema_writer *writer = NULL;
    struct phema_writer_options own = {.replaces = options->replaces,
                                       .syncs = options->syncs,
                                       .drops_cache = options->drops_cache};
    char *sidecar_path = path_with(path, ".json");
    if (!sidecar_path)
        return phema_fail_memory(err);
    own.replaces = own.replaces || is_left(path, sidecar_path);
    enum phema_status status = phema_writer_open(&writer, sidecar_path, text.size, &own, err);
    free(sidecar_path);
    if (!status)
        status = phema_writer_write(writer, 0, text.data, text.size, err);
    return writer_hand_over(out, writer, status);
}

/* ---- Publishing ---- */

/* Both are finished, and ending signals are held. */
static enum phema_status publish_both(struct phema_writer *sidecar, struct phema_writer *writer,
                                      struct phema_error *err)
{
    bool is_published = false;
    writer->options.is_published = &is_published;
    enum phema_status status = phema_writer_publish(sidecar, err);
    if (status) {
        phema_writer_abandon(writer);
        phema_writer_abandon(sidecar);
        return status;
    }
    status = phema_writer_commit(writer, err);
    if (!is_published) { /* the sidecar before it comes back */
        phema_writer_abandon(sidecar);
        return status;
    }
    struct phema_error later; /* a failure to sync the directory of the copy comes first */
    enum phema_status kept = phema_writer_commit(sidecar, status ? &later : err);
    return status ? status : kept;
}

PHEMA_FALLIBLE phema_writer_commit_both(struct phema_writer *sidecar, struct phema_writer *writer,
                                        struct phema_error *err)
{
    enum phema_status status = phema_writer_finish(sidecar, err);
    if (!status)
        status = phema_writer_finish(writer, err);
    if (status) {
        phema_writer_abandon(writer);
        phema_writer_abandon(sidecar);
        return status;
    }
    phema_cleanup_hold();
    status = publish_both(sidecar, writer, err);
    phema_cleanup_resume();
    return status;
}
