// SPDX-License-Identifier: Apache-2.0
/* checkpoint_dir.c - Which checkpoint a directory holds. A directory must hold exactly one: the
 * .metadata of a distributed checkpoint, an index with its shards, or one checkpoint file. Other
 * files (config.json, tokenizers, optimizers, hidden files) are ignored. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "phema/strbuf.h"

/* The checkpoint files found so far. */
struct finding {
    char *index;  /* the first *.index.json of safetensors */
    char **files; /* names with the extension of a checkpoint */
    size_t n_files, files_capacity;
    size_t n_indices;
    bool is_distributed;
};

/* Files that transformers and accelerate keep next to the model to resume a training. */
static bool is_of_training(const char *name)
{
    static const char *const starts[] = {"optimizer.", "scheduler.", "scaler.", "rng_state",
                                         "random_states_"};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

static enum phema_status note(struct finding *finding, const char *name, struct phema_error *err)
{
    if (strcmp(name, ".metadata") == 0)
        finding->is_distributed = true;
    const struct phema_format_info *format =
        phema_format_from_path(NULL, name, PHEMA_NAMES_CHECKPOINT);
    if (name[0] == '.' || !format || is_of_training(name))
        return PHEMA_OK;
    char *copy = strdup(name);
    if (!copy)
        return phema_fail_memory(err);
    if (format->is_index) {
        /* the smallest name, whatever order the directory has */
        finding->n_indices++;
        if (!finding->index || strcmp(copy, finding->index) < 0) {
            free(finding->index);
            finding->index = copy;
        } else {
            free(copy);
        }
        return PHEMA_OK;
    }
    if (!phema_array_grow(&finding->files, &finding->files_capacity, finding->n_files,
                          sizeof(*finding->files))) {
        free(copy);
        return phema_fail_memory(err);
    }
    finding->files[finding->n_files++] = copy;
    return PHEMA_OK;
}

static enum phema_status scan(struct finding *finding, const char *directory,
                              struct phema_error *err)
{
    DIR *stream = opendir(directory);
    if (!stream)
        return phema_fail(err, PHEMA_ERR_FILE, "cannot be opened: %s", strerror(errno));
    enum phema_status status = PHEMA_OK;
    for (const struct dirent *entry; !status && (entry = readdir(stream));)
        status = note(finding, entry->d_name, err);
    (void)closedir(stream);
    return status;
}

/* True when the text holds name as a JSON string, or as the last part of a path in one. */
static bool mentions(struct phema_span text, const char *name)
{
    size_t size = strlen(name);
    const uint8_t *end = text.data + text.size;
    for (const uint8_t *at = text.data; at < end; at++) {
        at = memmem(at, (size_t)(end - at), name, size);
        if (!at)
            return false;
        if (at > text.data && (at[-1] == '"' || at[-1] == '/') && at + size < end &&
            at[size] == '"')
            return true;
    }
    return false;
}

/* A shard belongs to the index when the text of the index mentions it. Opening the index checks the
 * rest. */
static enum phema_status count_strangers(size_t *out, const char **stranger,
                                         const struct finding *finding, const char *directory,
                                         struct phema_error *err)
{
    struct phema_strbuf path = {0};
    phema_strbuf_printf(&path, "%s/%s", directory, finding->index);
    struct phema_file *file = NULL;
    enum phema_status status = phema_strbuf_check(&path, err);
    if (!status)
        status = phema_file_open(&file, path.data, err);
    phema_strbuf_clear(&path);
    if (status)
        return phema_fail_in(err, status, "%s", finding->index);

    struct phema_span text = phema_file_span(file);
    *out = 0;
    for (size_t i = 0; i < finding->n_files; i++) {
        if (!mentions(text, finding->files[i])) {
            (*out)++;
            *stranger = finding->files[i];
        }
    }
    phema_file_close(file);
    return PHEMA_OK;
}

/* Other files of the directory (tokenizers, exports) are not part of the checkpoint. */
static enum phema_status take_distributed(char **out, struct phema_error *err)
{
    *out = strdup(".metadata");
    return *out ? PHEMA_OK : phema_fail_memory(err);
}

static enum phema_status choose(char **out, struct finding *finding, const char *directory,
                                struct phema_error *err)
{
    if (finding->is_distributed)
        return take_distributed(out, err);
    if (finding->n_indices > 1)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds %zu indices (*.index.json), expected one checkpoint; name the one "
                          "that is meant",
                          finding->n_indices);
    if (finding->n_indices == 1) {
        size_t n_strangers = 0;
        const char *stranger = NULL;
        enum phema_status status =
            count_strangers(&n_strangers, &stranger, finding, directory, err);
        if (status)
            return status;
        struct phema_name_buffer shown;
        if (n_strangers)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "holds '%s' besides an index that does not name it, expected one "
                              "checkpoint; name the one that is meant",
                              phema_name_escape(&shown, stranger, strlen(stranger)));
        *out = finding->index;
        finding->index = NULL;
        return PHEMA_OK;
    }
    if (finding->n_files == 0)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds no checkpoint, expected one (*.safetensors, *.index.json, *.pt, "
                          "*.pth or *.ckpt)");
    if (finding->n_files > 1)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds %zu checkpoint files and no index, expected one checkpoint; name "
                          "the one that is meant",
                          finding->n_files);
    *out = finding->files[0];
    finding->n_files = 0;
    return PHEMA_OK;
}

enum phema_status directory_find_checkpoint(char **out, const char *directory,
                                            struct phema_error *err)
{
    struct finding finding = {0};
    enum phema_status status = scan(&finding, directory, err);
    if (!status)
        status = choose(out, &finding, directory, err);
    free(finding.index);
    for (size_t i = 0; i < finding.n_files; i++)
        free(finding.files[i]);
    free(finding.files);
    return status;
}
