// SPDX-License-Identifier: Apache-2.0
/* checkpoint.c - Open and close a checkpoint, whatever its format: a file, or the one checkpoint of
 * a directory. Two tensors with one name are refused here, for all formats. */
#include "phema/formats.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format.h"
#include "phema/path.h"
#include "phema/strbuf.h"
#include "reader.h"
#include "zstd/frame_index.h"

static enum phema_status index_names(struct phema_checkpoint *checkpoint, struct phema_error *err)
{
    for (size_t i = 0; i < checkpoint->n_tensors; i++) {
        const struct phema_tensor *tensor = &checkpoint->tensors[i];
        switch (name_table_add(&checkpoint->names, tensor->name, tensor->name_size, i)) {
        case NAME_ADDED:
            break;
        case NAME_EXISTS:
            (void)phema_fail(err, PHEMA_ERR_FILE,
                             "two tensors have this name, expected each name once");
            return fail_in_tensor(err, PHEMA_ERR_FILE, tensor->name, tensor->name_size);
        case NAME_NO_MEMORY:
            return phema_fail_memory(err);
        }
    }
    return PHEMA_OK;
}

static enum phema_status open_file(struct phema_checkpoint *checkpoint, const char *path,
                                   const struct phema_checkpoint_options *options,
                                   struct phema_error *err)
{
    enum phema_status status =
        checkpoint_add_file(checkpoint, path, phema_path_last_name(path), err);
    if (status)
        return status;
    checkpoint->format = format_probe(checkpoint_content(checkpoint, 0));
    status = checkpoint->format->open(checkpoint, options, err);
    return status ? status : index_names(checkpoint, err);
}

/* ---- The one checkpoint of a directory ----
 * A directory must hold exactly one: the .metadata of a distributed checkpoint, an index with its
 * shards, or one checkpoint file. Other files (config.json, tokenizers, optimizers, hidden files)
 * are ignored. Where there is none of these, the distributed checkpoints of its subdirectories are
 * one checkpoint: trainers save model, averages and optimizer side by side. */

/* The checkpoint files found so far. */
struct finding {
    struct directory_names names;
    const char *index; /* the last *.index.json of safetensors */
    const char *file; /* the last name with the extension of a checkpoint, of a training only ... */
    size_t n_files, n_indices, n_states; /* ... where there is no other */
    bool is_distributed;
    const char **parts; /* of the names: subdirectories that hold a distributed checkpoint */
    size_t n_parts, parts_capacity;
};

/* Files that transformers and accelerate keep next to the model to resume a training. */
static const char *const files_of_training[] = {"optimizer.", "scheduler.",     "scaler.",
                                                "rng_state",  "random_states_", NULL};

/* Parts with states of a training, which are not those of a model; they can be large. */
static const char *const states_of_training[] = {"optim",      "sched", "lr_sched", "trainer",
                                                 "dataloader", "rng",   NULL};

static bool begins_with(const char *name, const char *const *starts)
{
    while (*starts && strncmp(name, *starts, strlen(*starts)) != 0)
        starts++;
    return *starts != NULL;
}

/* A word does not begin within another, as in "resampler". */
static bool names_training(const char *name)
{
    static const char *const words[] = {"optim",   "rng_state", "random_state", "scheduler",
                                        "sampler", "scaler",    "training_args"};
    for (size_t i = 0; i < ARRAY_LEN(words) && strncmp(name, "model", 5) != 0; i++) {
        const char *at = strstr(name, words[i]);
        if (at && (at == name || !isalpha((unsigned char)at[-1])))
            return true;
    }
    return begins_with(name, files_of_training) || begins_with(name, states_of_training);
}

bool names_checkpoint_part(const char *name)
{
    return strcmp(name, ".metadata") == 0 ||
           (name[0] != '.' && phema_format_from_path(NULL, name, 0) &&
            !begins_with(name, files_of_training));
}

static enum phema_status note(struct finding *finding, const char *name, struct phema_error *err)
{
    if (strcmp(name, ".metadata") == 0)
        finding->is_distributed = true;
    if (name[0] == '.')
        return PHEMA_OK;
    struct directory_names *names = &finding->names;
    char *copy = phema_array_grow(&names->at, &names->capacity, names->n, sizeof(*names->at))
                     ? strdup(name)
                     : NULL;
    if (!copy)
        return phema_fail_memory(err);
    const struct phema_format_info *format =
        begins_with(name, files_of_training)
            ? NULL
            : phema_format_from_path(NULL, name, PHEMA_NAMES_CHECKPOINT);
    bool is_index = format && format->is_index;
    names->at[names->n++] = (struct directory_name){copy, format && !is_index, false};
    if (is_index) {
        finding->index = copy;
        finding->n_indices++;
    } else if (format) {
        bool is_state = names_training(name);
        finding->file = is_state && finding->n_files ? finding->file : copy;
        finding->n_states += is_state;
        finding->n_files += !is_state;
    }
    return PHEMA_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct directory_name *)a)->text,
                  ((const struct directory_name *)b)->text);
}

/* Files .bin can be anything: they count where they begin as PyTorch's do, and nothing else is there. */
static enum phema_status find_torch_files(struct finding *finding, const char *directory,
                                          struct phema_error *err)
{
    for (size_t i = 0; i < finding->names.n; i++) {
        struct directory_name *name = &finding->names.at[i];
        char *path = NULL;
        if (names_training(name->text))
            continue;
        if (asprintf(&path, "%s/%s", directory, name->text) < 0)
            return phema_fail_memory(err);
        name->is_checkpoint = phema_file_is_torch(path);
        free(path);
        finding->n_files += name->is_checkpoint;
        finding->file = name->is_checkpoint ? name->text : finding->file;
    }
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
    if (finding->names.n)
        qsort(finding->names.at, finding->names.n, sizeof(*finding->names.at), compare_names);
    bool is_empty = !finding->is_distributed && !finding->n_indices && !finding->n_files;
    return status || !is_empty ? status : find_torch_files(finding, directory, err);
}

static void clear_finding(struct finding *finding)
{
    for (size_t i = 0; i < finding->names.n; i++)
        free(finding->names.at[i].text);
    free(finding->names.at);
    free(finding->parts);
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

static bool is_index(const char *name)
{
    const struct phema_format_info *format =
        phema_format_from_path(NULL, name, PHEMA_NAMES_CHECKPOINT);
    return format && format->is_index;
}

/* Marks the files that an index mentions. Opening the index checks the rest. */
static enum phema_status read_index(struct finding *finding, const char *directory,
                                    const char *index, struct phema_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, index) < 0)
        return phema_fail_memory(err);
    struct phema_file *file = NULL;
    enum phema_status status = phema_file_open(&file, path, err);
    free(path);
    if (status)
        return phema_fail_in(err, status, "%s", index);
    for (size_t i = 0; i < finding->names.n; i++) {
        struct directory_name *name = &finding->names.at[i];
        name->is_listed |= name->is_checkpoint && mentions(phema_file_span(file), name->text);
    }
    phema_file_close(file);
    return PHEMA_OK;
}

/* A checkpoint that no index lists; NULL: there is none. */
static const char *find_unlisted(const struct finding *finding)
{
    for (size_t i = 0; i < finding->names.n; i++) {
        const struct directory_name *name = &finding->names.at[i];
        if (name->is_checkpoint && !name->is_listed && !names_training(name->text))
            return name->text;
    }
    return NULL;
}

/* The name of the checkpoint's file is borrowed from the finding. */
static enum phema_status choose(const char **name, struct finding *finding, const char *directory,
                                struct phema_error *err)
{
    size_t n_files = finding->n_files ? finding->n_files : finding->n_states;
    if (finding->is_distributed) { /* others (tokenizers, exports) are not part of the checkpoint */
        *name = ".metadata";
        return PHEMA_OK;
    }
    if (finding->n_indices > 1)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds %zu indices (*.index.json), expected one checkpoint; name the one "
                          "that is meant",
                          finding->n_indices);
    if (finding->n_indices == 1) {
        enum phema_status status = read_index(finding, directory, finding->index, err);
        const char *unlisted = find_unlisted(finding);
        struct phema_name_buffer shown;
        if (!status && unlisted)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "holds '%s' besides an index that does not name it, expected one "
                              "checkpoint; name the one that is meant",
                              phema_name_escape(&shown, unlisted, strlen(unlisted)));
        *name = finding->index;
        return status;
    }
    const char *unfinished = n_files == 0 ? phema_unfinished_directory(directory) : NULL;
    if (unfinished)
        return phema_fail(err, PHEMA_ERR_FILE, "%s", unfinished);
    if (n_files == 0)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds no checkpoint, expected one (*.safetensors, *.index.json, *.pt, "
                          "*.pth or *.ckpt)");
    if (n_files > 1)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds %zu checkpoint files and no index, expected one checkpoint; name "
                          "the one that is meant",
                          n_files);
    *name = finding->file;
    return PHEMA_OK;
}

/* ---- Parts ---- */

/* Such a name is a time: "100". */
static bool is_number(const char *name)
{
    return name[strspn(name, "0123456789")] == '\0';
}

/* The subdirectories that hold a distributed checkpoint. */
static enum phema_status find_parts(struct finding *finding, const char *directory,
                                    struct phema_error *err)
{
    for (size_t i = 0; i < finding->names.n; i++) {
        const char *name = finding->names.at[i].text;
        char *path = NULL;
        struct stat st;
        if (begins_with(name, states_of_training) || is_number(name) ||
            asprintf(&path, "%s/%s/.metadata", directory, name) < 0)
            continue;
        bool is_part = stat(path, &st) == 0 && S_ISREG(st.st_mode);
        free(path);
        if (!is_part)
            continue;
        if (!phema_array_grow(&finding->parts, &finding->parts_capacity, finding->n_parts,
                              sizeof(*finding->parts)))
            return phema_fail_memory(err);
        finding->parts[finding->n_parts++] = name;
    }
    return PHEMA_OK;
}

static enum phema_status open_part(struct phema_checkpoint *checkpoint, const char *name,
                                   const struct phema_checkpoint_options *options,
                                   struct phema_error *err)
{
    char *path = phema_arena_printf(&checkpoint->arena, "%s/%s/.metadata", checkpoint->path, name);
    char *label = phema_arena_printf(&checkpoint->arena, "%s/.metadata", name);
    char *start = phema_arena_printf(&checkpoint->arena, "%s.", name);
    if (!path || !label || !start)
        return phema_fail_memory(err);
    enum phema_status status = checkpoint_add_file(checkpoint, path, label, err);
    if (status)
        return status;
    checkpoint->base = checkpoint->n_files - 1;
    checkpoint->part = (struct phema_span){(const uint8_t *)start, strlen(start)};
    checkpoint->format = format_probe(checkpoint_content(checkpoint, checkpoint->base));
    if (strcmp(checkpoint->format->info.name, "dcp") != 0)
        return phema_fail(err, PHEMA_ERR_FILE, "expected the metadata of a distributed checkpoint");
    return checkpoint->format->open(checkpoint, options, err);
}

static enum phema_status open_parts(struct phema_checkpoint *checkpoint,
                                    const struct finding *finding,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    struct phema_name_buffer shown;
    for (size_t i = 0; i < finding->n_parts; i++) {
        const char *name = finding->parts[i];
        enum phema_status status = open_part(checkpoint, name, options, err);
        if (status)
            return phema_fail_in(err, status, "%s/.metadata",
                                 phema_name_escape(&shown, name, strlen(name)));
    }
    checkpoint->base = 0;
    checkpoint->part = (struct phema_span){NULL, 0};
    return index_names(checkpoint, err);
}

/* Whether the directory holds nothing that is a checkpoint by itself. */
static bool is_bare(const struct finding *finding)
{
    return !finding->is_distributed && finding->n_indices == 0 && finding->n_files == 0;
}

static enum phema_status open_found(struct phema_checkpoint *checkpoint, struct finding *finding,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    const char *name = NULL;
    enum phema_status status = scan(finding, checkpoint->path, err);
    if (!status && is_bare(finding))
        status = find_parts(finding, checkpoint->path, err);
    if (status)
        return status;
    if (finding->n_parts)
        return open_parts(checkpoint, finding, options, err);
    bool is_certain = false;
    if (!finding->is_distributed && !finding->n_indices)
        checkpoint->format = format_probe_directory(&is_certain, &finding->names);
    if (checkpoint->format) {
        status = checkpoint->format->open_directory(checkpoint, &finding->names, options, err);
        return status ? status : index_names(checkpoint, err);
    }
    status = choose(&name, finding, checkpoint->path, err);
    if (status)
        return status;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", checkpoint->path, name) < 0)
        return phema_fail_memory(err);
    status = open_file(checkpoint, path, options, err);
    free(path);
    struct phema_name_buffer shown;
    if (status)
        return phema_fail_in(err, status, "%s", phema_name_escape(&shown, name, strlen(name)));
    return PHEMA_OK;
}

static enum phema_status open_directory(struct phema_checkpoint *checkpoint,
                                        const struct phema_checkpoint_options *options,
                                        struct phema_error *err)
{
    struct finding finding = {0};
    enum phema_status status = open_found(checkpoint, &finding, options, err);
    clear_finding(&finding);
    return status;
}

bool phema_directory_has_model(const char *path, bool may_be_one_file)
{
    static const char *const names[] = {".metadata", "model.safetensors.index.json",
                                        "diffusion_pytorch_model.safetensors.index.json",
                                        /* one file */
                                        "model.safetensors", "diffusion_pytorch_model.safetensors",
                                        "pytorch_model.bin"};
    bool is_there = false;
    for (size_t i = 0; i < (may_be_one_file ? ARRAY_LEN(names) : 3) && !is_there; i++) {
        char *file = NULL;
        struct stat st;
        if (asprintf(&file, "%s/%s", path, names[i]) < 0)
            return false;
        is_there = stat(file, &st) == 0;
        free(file);
    }
    return is_there;
}

bool phema_directory_is_checkpoint(const char *path, bool for_sure)
{
    struct phema_error ignored = {0};
    struct finding finding = {0};
    bool is_certain = false;
    bool is_found = scan(&finding, path, &ignored) == PHEMA_OK && !finding.is_distributed &&
                    !finding.n_indices && format_probe_directory(&is_certain, &finding.names);
    clear_finding(&finding);
    return is_found && (is_certain || !for_sure);
}

bool phema_directory_has_parts(const char *path)
{
    struct phema_error ignored = {0};
    struct finding finding = {0};
    bool is_found = scan(&finding, path, &ignored) == PHEMA_OK && is_bare(&finding) &&
                    find_parts(&finding, path, &ignored) == PHEMA_OK && finding.n_parts > 0;
    clear_finding(&finding);
    return is_found;
}

/* ---- The checkpoints of a folder ---- */

struct folder_list {
    struct phema_arena *arena;
    const char **paths;
    size_t n;
    bool is_failed;
};

static void add_to_folder(struct folder_list *list, const char *path, const char *name)
{
    const char **grown = phema_arena_grow(list->arena, list->paths, list->n, sizeof(*list->paths));
    const char *joined = name ? phema_arena_printf(list->arena, "%s/%s", path, name)
                              : phema_arena_copy(list->arena, path, strlen(path));
    if (!grown || !joined) {
        list->is_failed = true;
        return;
    }
    list->paths = grown;
    list->paths[list->n++] = joined;
}

static bool is_one_checkpoint(const struct finding *finding, const char *path)
{
    bool is_certain = false;
    return finding->is_distributed || finding->n_indices || finding->n_parts > 1 ||
           finding->n_files == 1 || format_probe_directory(&is_certain, &finding->names) ||
           phema_directory_has_model(path, false);
}

/* Whether a directory has checkpoints beside an index and its files, such as another index. */
static bool has_beside_index(struct finding *finding, const char *path)
{
    struct phema_error ignored = {0};
    bool is_other = finding->n_indices > 1;
    for (size_t i = 0; i < finding->names.n && finding->n_indices; i++) {
        const struct directory_name *name = &finding->names.at[i];
        is_other |= name->is_checkpoint && !strstr(name->text, "-of-"); /* no usual part */
    }
    for (size_t i = 0; i < finding->names.n && is_other; i++)
        if (is_index(finding->names.at[i].text) &&
            read_index(finding, path, finding->names.at[i].text, &ignored))
            return false;
    return is_other && (finding->n_indices > 1 || find_unlisted(finding));
}

#define MOST_LEVELS 2

static void list_folder(struct folder_list *list, const char *path, unsigned n_levels)
{
    struct phema_error ignored = {0};
    struct finding finding = {0};
    if (scan(&finding, path, &ignored) ||
        (is_bare(&finding) && find_parts(&finding, path, &ignored))) {
        clear_finding(&finding);
        return;
    }
    bool has_others = !finding.is_distributed && has_beside_index(&finding, path);
    bool is_one = !has_others && is_one_checkpoint(&finding, path);
    /* an average may lie in a folder beside the file of the model */
    bool has_folders = n_levels && (is_one ? finding.n_files == 1 && !finding.is_distributed
                                           : finding.n_files == 0);
    if (is_one)
        add_to_folder(list, path, NULL);
    for (size_t i = 0; i < finding.names.n && !list->is_failed; i++) {
        const struct directory_name *name = &finding.names.at[i];
        char *below = NULL;
        struct stat st;
        if (names_training(name->text) || asprintf(&below, "%s/%s", path, name->text) < 0)
            continue;
        bool is_checkpoint = name->is_checkpoint && !name->is_listed;
        bool is_beside = is_one && finding.n_files == 1 && !name->is_checkpoint;
        if (is_beside ? phema_file_is_torch(below)
                      : (is_checkpoint && !is_one) || (has_others && is_index(name->text)))
            add_to_folder(list, path, name->text);
        else if (has_folders && lstat(below, &st) == 0 && S_ISDIR(st.st_mode))
            list_folder(list, below, n_levels - 1);
        free(below);
    }
    if (n_levels == MOST_LEVELS && list->n == 0 && finding.n_states == 1)
        add_to_folder(list, path, NULL);
    clear_finding(&finding);
}

bool phema_folder_list(const char *const **paths, size_t *n, struct phema_arena *arena,
                       const char *path)
{
    struct folder_list list = {.arena = arena};
    list_folder(&list, path, MOST_LEVELS);
    *paths = list.paths;
    *n = list.n;
    return !list.is_failed;
}

/* ---- Open and close ---- */

enum phema_status phema_checkpoint_open(struct phema_checkpoint **out, const char *path,
                                        const struct phema_checkpoint_options *options,
                                        struct phema_error *err)
{
    static const struct phema_checkpoint_options defaults = {0};
    enum phema_status status = PHEMA_OK;
    struct phema_checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));
    if (!checkpoint || !(checkpoint->path = strdup(path))) {
        status = phema_fail_memory(err);
        goto fail;
    }
    if (!options)
        options = &defaults;
    checkpoint->keeps_descriptors = options->keeps_descriptors;
    if (phema_path_is_directory(path))
        status = open_directory(checkpoint, options, err);
    else
        status = open_file(checkpoint, path, options, err);
    if (status)
        goto fail;
    for (size_t f = 0; f < checkpoint->n_files; f++)
        phema_file_expect_sparse(checkpoint->files[f].file, false);
    status = scaling_find(checkpoint, options->alike, err);
    if (status)
        goto fail;
    status = phema_checkpoint_check_unchanged(checkpoint, err);
    if (status) { /* the message has the path already */
        phema_checkpoint_close(checkpoint);
        return status;
    }
    *out = checkpoint;
    return PHEMA_OK;

fail:
    phema_checkpoint_close(checkpoint);
    return phema_fail_in(err, status, "%s", path);
}

PHEMA_FALLIBLE phema_checkpoint_check_unchanged(const struct phema_checkpoint *checkpoint,
                                                struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    for (size_t f = 0; f < checkpoint->n_files && !status; f++)
        status = phema_file_check_unchanged(checkpoint->files[f].file, err);
    return status;
}

void phema_checkpoint_close(struct phema_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    phema_checkpoint_forget_listing(checkpoint);
    phema_arena_clear(&checkpoint->chunk_arena);
    zstd_frames_free(checkpoint->frames);
    for (size_t i = 0; i < checkpoint->n_files; i++) {
        phema_file_close(checkpoint->files[i].file);
        free(checkpoint->files[i].label);
    }
    free(checkpoint->files);
    for (size_t i = 0; i < checkpoint->n_warnings; i++)
        free(checkpoint->warnings[i]);
    free(checkpoint->warnings);
    free(checkpoint->path);
    free(checkpoint);
}

/* ---- What is missing ---- */

const char *phema_unfinished_directory(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    bool has_parts = false, has_list = false;
    while (directory && (entry = readdir(directory))) {
        const struct phema_format_info *format = phema_format_from_path(NULL, entry->d_name, 0);
        has_list |= phema_ends_with(entry->d_name, ".metadata");
        has_parts |= format && strcmp(format->name, "dcp") == 0;
    }
    if (directory)
        (void)closedir(directory);
    return has_parts && !has_list
               ? "holds parts of a distributed checkpoint (*.distcp) without .metadata, which is "
                 "written last: the save has not ended, or a copy left hidden files out; copy the "
                 "whole directory"
               : NULL;
}
