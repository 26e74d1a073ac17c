// SPDX-License-Identifier: Apache-2.0
/* sink_check.c - what is asked of an output before anything of it is made. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phema/writer.h"
#include "sink.h"

static bool is_same_file(const char *path, const struct stat *wanted)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino;
}

static bool is_in_directory(const char *path, const struct stat *wanted)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    bool is_in = directory && is_same_file(directory, wanted);
    free(directory);
    return is_in;
}

/* Replacing a snapshot by an average of it is never what was meant, nor the directory of one. */
static enum phema_status check_is_no_input(const struct phema_series *series, const char *path,
                                           struct phema_error *err)
{
    struct stat out;
    if (stat(path, &out))
        return PHEMA_OK; /* does not exist */
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_checkpoint *checkpoint = series->snapshots[k].checkpoint;
        for (size_t f = 0; checkpoint && f < phema_checkpoint_n_files(checkpoint); f++) {
            const char *input = phema_file_path(phema_checkpoint_file(checkpoint, f));
            if (is_same_file(input, &out))
                return phema_fail(err, PHEMA_ERR_OUTPUT,
                                  "%s: is one of the snapshots; choose another name", path);
            if (S_ISDIR(out.st_mode) && is_in_directory(input, &out))
                return phema_fail(err, PHEMA_ERR_OUTPUT,
                                  "%s: holds one of the snapshots; choose another name", path);
        }
    }
    return PHEMA_OK;
}

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

/* Ours begins with what describes the checkpoint. */
static bool is_provenance(const char *path)
{
    char *full = NULL;
    char begin[32] = "";
    if (asprintf(&full, "%s.json", path) < 0)
        return false;
    int descriptor = open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    free(full);
    if (descriptor < 0)
        return false;
    bool is_ours = pread(descriptor, begin, sizeof(begin) - 1, 0) > 0 &&
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
    enum phema_status status = check_is_no_input(plan->series, wanted->path, err);
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

static enum phema_status watch_file(struct phema_ledger *ledger, const char *path, const char *end,
                                    const char *name, struct phema_error *err)
{
    char *full = NULL;
    if (asprintf(&full, "%s%s%s%s", path, end, name ? "/" : "", name ? name : "") < 0)
        return phema_fail_memory(err);
    enum phema_status status = phema_ledger_watch_file(ledger, full, err);
    free(full);
    return status;
}

PHEMA_FALLIBLE sink_watch_files(const struct phema_outputs *outputs, size_t output,
                                struct phema_ledger *ledger, struct phema_error *err)
{
    static const char *const ends[] = {"", ".partial", ".plain.partial"};
    const struct phema_output *item = &outputs->items[output];
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < item->n_files; f++)
        for (size_t i = 0; i < ARRAY_LEN(ends) && !status; i++)
            status = watch_file(ledger, item->path, ends[i], item->files[f].name, err);
    return status;
}
