// SPDX-License-Identifier: Apache-2.0
/* checkpoint_directory.c - which names of a directory are checkpoints, their parts or none, and what is missing
 * where it holds no whole one. */
#include "checkpoint_directory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/strbuf.h"

/* ---- Names ---- */

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

static enum phema_status note(struct directory_scan *scan, const char *name,
                              struct phema_error *err)
{
    if (strcmp(name, ".metadata") == 0)
        scan->is_distributed = true;
    if (name[0] == '.')
        return PHEMA_OK;
    struct directory_names *names = &scan->names;
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
        scan->index = copy;
        scan->n_indices++;
    } else if (format) {
        bool is_state = names_training(name);
        scan->file = is_state && scan->n_files ? scan->file : copy;
        scan->n_states += is_state;
        scan->n_files += !is_state;
    }
    return PHEMA_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct directory_name *)a)->text,
                  ((const struct directory_name *)b)->text);
}

/* Files .bin can be anything: they count where they begin as PyTorch's do, and nothing else is there. */
static enum phema_status find_torch_files(struct directory_scan *scan, const char *directory,
                                          struct phema_error *err)
{
    for (size_t i = 0; i < scan->names.n; i++) {
        struct directory_name *name = &scan->names.at[i];
        char *path = NULL;
        if (names_training(name->text))
            continue;
        if (asprintf(&path, "%s/%s", directory, name->text) < 0)
            return phema_fail_memory(err);
        name->is_checkpoint = phema_file_is_torch(path);
        free(path);
        scan->n_files += name->is_checkpoint;
        scan->file = name->is_checkpoint ? name->text : scan->file;
    }
    return PHEMA_OK;
}

enum phema_status directory_scan(struct directory_scan *scan, const char *directory,
                                 struct phema_error *err)
{
    DIR *stream = opendir(directory);
    if (!stream)
        return phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be opened", errno);
    enum phema_status status = PHEMA_OK;
    for (const struct dirent *entry; !status && (entry = readdir(stream));)
        status = note(scan, entry->d_name, err);
    (void)closedir(stream);
    if (scan->names.n)
        qsort(scan->names.at, scan->names.n, sizeof(*scan->names.at), compare_names);
    bool is_empty = !scan->is_distributed && !scan->n_indices && !scan->n_files;
    return status || !is_empty ? status : find_torch_files(scan, directory, err);
}

void directory_scan_clear(struct directory_scan *scan)
{
    for (size_t i = 0; i < scan->names.n; i++)
        free(scan->names.at[i].text);
    free(scan->names.at);
    free(scan->parts);
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
static enum phema_status read_index(struct directory_scan *scan, const char *directory,
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
    for (size_t i = 0; i < scan->names.n; i++) {
        struct directory_name *name = &scan->names.at[i];
        name->is_listed |= name->is_checkpoint && mentions(phema_file_span(file), name->text);
    }
    phema_file_close(file);
    return PHEMA_OK;
}

/* A checkpoint that no index lists; NULL: there is none. */
static const char *find_unlisted(const struct directory_scan *scan)
{
    for (size_t i = 0; i < scan->names.n; i++) {
        const struct directory_name *name = &scan->names.at[i];
        if (name->is_checkpoint && !name->is_listed && !names_training(name->text))
            return name->text;
    }
    return NULL;
}

/* The name of the checkpoint's file is borrowed from the scan. */
enum phema_status directory_choose(const char **name, struct directory_scan *scan,
                                   const char *directory, struct phema_error *err)
{
    size_t n_files = scan->n_files ? scan->n_files : scan->n_states;
    if (scan->is_distributed) { /* others (tokenizers, exports) are not part of the checkpoint */
        *name = ".metadata";
        return PHEMA_OK;
    }
    if (scan->n_indices > 1)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds %zu indices (*.index.json), expected one checkpoint; name the one "
                          "that is meant",
                          scan->n_indices);
    if (scan->n_indices == 1) {
        enum phema_status status = read_index(scan, directory, scan->index, err);
        const char *unlisted = find_unlisted(scan);
        struct phema_name_buffer shown;
        if (!status && unlisted)
            return phema_fail(err, PHEMA_ERR_FILE,
                              "holds '%s' besides an index that does not name it, expected one "
                              "checkpoint; name the one that is meant",
                              phema_name_show(&shown, unlisted));
        *name = scan->index;
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
    const char *of = strstr(scan->file, "-of-");
    struct phema_name_buffer shown;
    if (of && of > scan->file && isdigit((unsigned char)of[-1]) &&
        strtoul(of + strlen("-of-"), NULL, 10) > 1)
        return phema_fail(err, PHEMA_ERR_FILE,
                          "holds '%s' alone, a part of a checkpoint, and no index",
                          phema_name_show(&shown, scan->file));
    *name = scan->file;
    return PHEMA_OK;
}

/* ---- Parts ---- */

/* Such a name is a time: "100". */
static bool is_number(const char *name)
{
    return name[strspn(name, "0123456789")] == '\0';
}

/* The subdirectories that hold a distributed checkpoint. */
enum phema_status directory_find_parts(struct directory_scan *scan, const char *directory,
                                       struct phema_error *err)
{
    for (size_t i = 0; i < scan->names.n; i++) {
        const char *name = scan->names.at[i].text;
        char *path = NULL;
        struct stat st;
        if (begins_with(name, states_of_training) || is_number(name) ||
            asprintf(&path, "%s/%s/.metadata", directory, name) < 0)
            continue;
        bool is_part = stat(path, &st) == 0 && S_ISREG(st.st_mode);
        free(path);
        if (!is_part)
            continue;
        if (!phema_array_grow(&scan->parts, &scan->parts_capacity, scan->n_parts,
                              sizeof(*scan->parts)))
            return phema_fail_memory(err);
        scan->parts[scan->n_parts++] = name;
    }
    return PHEMA_OK;
}

/* Whether the directory holds nothing that is a checkpoint by itself. */
bool directory_is_bare(const struct directory_scan *scan)
{
    return !scan->is_distributed && scan->n_indices == 0 && scan->n_files == 0;
}

/* ---- Questions ---- */

bool phema_directory_has_model(const char *path, bool may_be_one_file)
{
    static const char *const names[] = {
        ".metadata", "model.safetensors.index.json",
        "diffusion_pytorch_model.safetensors.index.json", "pytorch_model.bin.index.json",
        /* one file */
        "model.safetensors", "diffusion_pytorch_model.safetensors", "pytorch_model.bin"};
    bool is_there = false;
    for (size_t i = 0; i < (may_be_one_file ? ARRAY_LEN(names) : 4) && !is_there; i++) {
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
    struct directory_scan scan = {0};
    bool is_certain = false;
    bool is_found = directory_scan(&scan, path, &ignored) == PHEMA_OK && !scan.is_distributed &&
                    !scan.n_indices && format_probe_directory(&is_certain, &scan.names);
    directory_scan_clear(&scan);
    return is_found && (is_certain || !for_sure);
}

bool phema_directory_has_parts(const char *path)
{
    struct phema_error ignored = {0};
    struct directory_scan scan = {0};
    bool is_found = directory_scan(&scan, path, &ignored) == PHEMA_OK && directory_is_bare(&scan) &&
                    directory_find_parts(&scan, path, &ignored) == PHEMA_OK && scan.n_parts > 0;
    directory_scan_clear(&scan);
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

static bool is_one_checkpoint(const struct directory_scan *scan, const char *path)
{
    bool is_certain = false;
    return scan->is_distributed || scan->n_indices || scan->n_parts > 1 || scan->n_files == 1 ||
           format_probe_directory(&is_certain, &scan->names) ||
           phema_directory_has_model(path, false);
}

PHEMA_FALLIBLE phema_directory_holds_checkpoint(bool *out, const char *path,
                                                struct phema_error *err)
{
    struct directory_scan scan = {0};
    enum phema_status status = directory_scan(&scan, path, err);
    *out = !status && (!scan.names.n || is_one_checkpoint(&scan, path));
    directory_scan_clear(&scan);
    return status == PHEMA_ERR_RESOURCE ? status : PHEMA_OK;
}

/* Whether a directory has checkpoints beside an index and its files, such as another index. */
static bool has_beside_index(struct directory_scan *scan, const char *path)
{
    struct phema_error ignored = {0};
    bool is_other = scan->n_indices > 1;
    for (size_t i = 0; i < scan->names.n && scan->n_indices; i++) {
        const struct directory_name *name = &scan->names.at[i];
        is_other |= name->is_checkpoint && !strstr(name->text, "-of-"); /* no usual part */
    }
    for (size_t i = 0; i < scan->names.n && is_other; i++)
        if (is_index(scan->names.at[i].text) &&
            read_index(scan, path, scan->names.at[i].text, &ignored))
            return false;
    return is_other && (scan->n_indices > 1 || find_unlisted(scan));
}

#define MOST_LEVELS 2

static void list_folder(struct folder_list *list, const char *path, unsigned n_levels)
{
    struct phema_error ignored = {0};
    struct directory_scan scan = {0};
    if (directory_scan(&scan, path, &ignored) ||
        (directory_is_bare(&scan) && directory_find_parts(&scan, path, &ignored))) {
        directory_scan_clear(&scan);
        return;
    }
    bool has_others = !scan.is_distributed && has_beside_index(&scan, path);
    bool is_one = !has_others && is_one_checkpoint(&scan, path);
    /* an average may lie in a folder beside the file of the model */
    bool has_folders =
        n_levels && (is_one ? scan.n_files == 1 && !scan.is_distributed : scan.n_files == 0);
    if (is_one)
        add_to_folder(list, path, NULL);
    for (size_t i = 0; i < scan.names.n && !list->is_failed; i++) {
        const struct directory_name *name = &scan.names.at[i];
        char *below = NULL;
        struct stat st;
        if (names_training(name->text) || asprintf(&below, "%s/%s", path, name->text) < 0)
            continue;
        bool is_checkpoint = name->is_checkpoint && !name->is_listed;
        bool is_beside = is_one && scan.n_files == 1 && !name->is_checkpoint;
        if (is_beside ? phema_file_is_torch(below)
                      : (is_checkpoint && !is_one) || (has_others && is_index(name->text)))
            add_to_folder(list, path, name->text);
        else if (has_folders && lstat(below, &st) == 0 && S_ISDIR(st.st_mode))
            list_folder(list, below, n_levels - 1);
        free(below);
    }
    if (n_levels == MOST_LEVELS && list->n == 0 && scan.n_states == 1)
        add_to_folder(list, path, NULL);
    directory_scan_clear(&scan);
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

const char *phema_folder_own_file(struct phema_arena *arena, const char *path)
{
    struct phema_error ignored = {0};
    struct directory_scan scan = {0};
    const char *name = NULL;
    if (directory_scan(&scan, path, &ignored) == PHEMA_OK && !scan.is_distributed)
        name = scan.n_indices == 1                        ? scan.index
               : scan.n_indices == 0 && scan.n_files == 1 ? scan.file
                                                          : NULL;
    name = name ? phema_arena_copy(arena, name, strlen(name)) : NULL;
    directory_scan_clear(&scan);
    return name;
}

/* ---- What is missing ---- */

const char *phema_unfinished_directory(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    bool has_parts = false, has_list = false;
    while (directory && (entry = readdir(directory))) {
        const struct phema_format_info *format = phema_format_from_path(NULL, entry->d_name, 0);
        has_list |= strcmp(entry->d_name, ".metadata") == 0;
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
