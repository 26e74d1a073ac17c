// SPDX-License-Identifier: Apache-2.0
/* sink_check.c - what is asked of an output before anything of it is made. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/sink.h"
#include "phema/writer.h"

/* ---- Names ---- */

/* Calls act for the output's path and for the names beside it that a run may write. */
static enum phema_status for_names(const struct phema_outputs *outputs, size_t output,
                                   enum phema_status (*act)(void *context, const char *path,
                                                            struct phema_error *err),
                                   void *context, struct phema_error *err)
{
    const struct phema_output *item = &outputs->items[output];
    const char *const ends[] = {"", item->sidecar ? ".json" : NULL,
                                outputs->form == PHEMA_FORM_COMPRESSED ? ".plain" : NULL,
                                ".journal"};
    int size = (int)strlen(item->path);
    while (size > 1 && item->path[size - 1] == '/')
        size--;
    enum phema_status status = PHEMA_OK;
    for (size_t e = 0; e < ARRAY_LEN(ends) && !status; e++) {
        char *path = NULL;
        if (!ends[e])
            continue;
        if (asprintf(&path, "%.*s%s", size, item->path, ends[e]) < 0)
            return phema_fail_memory(err);
        status = act(context, path, err);
        free(path);
    }
    return status;
}

/* Replacing a snapshot by an average of it is never what was meant, nor the directory of one. */
static enum phema_status check_name(void *context, const char *path, struct phema_error *err)
{
    return phema_claims_check_inputs(context, path, err);
}

static enum phema_status add_name(void *context, const char *path, struct phema_error *err)
{
    return phema_claims_add_output(context, path, err);
}

static enum phema_status add_inside(struct phema_claims *claims, const char *path, const char *name,
                                    struct phema_error *err)
{
    char *full = NULL;
    if (asprintf(&full, "%s/%s", path, name) < 0)
        return phema_fail_memory(err);
    enum phema_status status = phema_claims_add_output(claims, full, err);
    free(full);
    return status;
}

/* "out.safetensors.part-2-of-8", and its journal */
static enum phema_status add_marker(struct phema_claims *claims, const char *path, uint64_t part,
                                    uint64_t n_parts, struct phema_error *err)
{
    static const char *const ends[] = {"", ".journal"};
    int size = (int)strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    enum phema_status status = PHEMA_OK;
    for (size_t e = 0; n_parts && e < ARRAY_LEN(ends) && !status; e++) {
        char *full = NULL;
        if (asprintf(&full, "%.*s.part-%llu-of-%llu%s", size, path, (unsigned long long)part,
                     (unsigned long long)n_parts, ends[e]) < 0)
            return phema_fail_memory(err);
        status = phema_claims_add_output(claims, full, err);
        free(full);
    }
    return status;
}

PHEMA_FALLIBLE sink_claim_names(const struct phema_plan *plan, const struct phema_outputs *outputs,
                                uint64_t part, uint64_t n_parts, struct phema_error *err)
{
    struct phema_claims *claims = plan->series->claims;
    bool is_directory = outputs->form == PHEMA_FORM_SHARDED;
    enum phema_status status = PHEMA_OK;
    for (size_t j = 0; j < outputs->m && !status; j++) {
        const struct phema_output *item = &outputs->items[j];
        status = for_names(outputs, j, add_name, claims, err);
        if (!status)
            status = add_marker(claims, item->path, part, n_parts, err);
        for (size_t f = 0; is_directory && f < item->n_files && !status; f++)
            status = add_inside(claims, item->path, item->files[f].name, err);
        for (size_t f = 0; is_directory && f < outputs->n_side_files && !status; f++)
            status = add_inside(claims, item->path, outputs->side_files[f].name, err);
    }
    return status;
}

/* ---- What is there ---- */

static enum phema_status check_absent(const char *path, const char *end, struct phema_error *err)
{
    char *full = NULL;
    if (asprintf(&full, "%s%s", path, end) < 0)
        return phema_fail_memory(err);
    enum phema_status status = phema_writer_check_absent(full, err);
    free(full);
    return status;
}

static bool is_there(const char *path, const char *end)
{
    char *full = NULL;
    struct stat st;
    bool is_found = asprintf(&full, "%s%s", path, end) >= 0 && lstat(full, &st) == 0;
    free(full);
    return is_found;
}

/* Ours begins with what describes the checkpoint, and is this user's. */
static bool is_provenance(const char *path)
{
    struct stat st;
    char *full = NULL;
    char begin[32] = "";
    if (asprintf(&full, "%s.json", path) < 0)
        return false;
    bool is_own = lstat(full, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
    int descriptor =
        !is_own ? -1 : open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    free(full);
    if (descriptor < 0)
        return false;
    bool is_ours = fstat(descriptor, &st) == 0 && st.st_uid == geteuid() &&
                   pread(descriptor, begin, sizeof(begin) - 1, 0) > 0 &&
                   strstr(begin, "\"posthoc_ema.") != NULL;
    (void)close(descriptor);
    return is_ours;
}

bool sink_is_sidecar_left(const char *path)
{
    return is_there(path, ".partial") && !is_there(path, "") && is_provenance(path);
}

PHEMA_FALLIBLE sink_check(const struct phema_plan *plan, const struct phema_outputs *outputs,
                          size_t output, const struct sink_options *options,
                          struct phema_error *err)
{
    const struct phema_output *wanted = &outputs->items[output];
    enum phema_status status = for_names(outputs, output, check_name, plan->series->claims, err);
    if (!status && outputs->form == PHEMA_FORM_SHARDED)
        status = phema_writer_directory_check(wanted->path, options->replaces, err);
    else if (!status && !options->replaces)
        status = check_absent(wanted->path, "", err);
    if (!status && !options->replaces && wanted->sidecar && !sink_is_sidecar_left(wanted->path))
        status = check_absent(wanted->path, ".json", err);
    return status;
}

size_t sink_n_files(const struct phema_outputs *outputs, bool resumes)
{
    /* a sidecar, a directory, ...; a journal */
    return outputs->m ? outputs->items[0].n_files + 1 + resumes : 0;
}

static enum phema_status watch_file(struct phema_memory_profile *ledger, const char *path,
                                    const char *end, const char *name, struct phema_error *err)
{
    char *full = NULL;
    if (asprintf(&full, "%s%s%s%s", path, end, name ? "/" : "", name ? name : "") < 0)
        return phema_fail_memory(err);
    enum phema_status status = phema_memory_profile_watch_file(ledger, full, err);
    free(full);
    return status;
}

PHEMA_FALLIBLE sink_watch_files(const struct phema_outputs *outputs, size_t output,
                                struct phema_memory_profile *ledger, struct phema_error *err)
{
    static const char *const ends[] = {"", ".partial", ".plain.partial"};
    const struct phema_output *item = &outputs->items[output];
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < item->n_files; f++)
        for (size_t i = 0; i < ARRAY_LEN(ends) && !status; i++)
            status = watch_file(ledger, item->path, ends[i], item->files[f].name, err);
    return status;
}
