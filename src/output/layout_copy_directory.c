// SPDX-License-Identifier: Apache-2.0
/* layout_copy_directory.c - A copy of a distributed checkpoint with tensors replaced: all files of
 * its directory. Boxes, files and .metadata stay, and so do objects and all other tensors. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "outputs.h"
#include "phema/setting.h"

/* ---- Tensors that a copy would change ---- */

/* torch never stores two pieces at one place. */
static enum phema_status check_overlap(const struct phema_checkpoint *template,
                                       struct phema_error *err)
{
    struct extent_list list = {0};
    const struct phema_tensor *tensors = phema_checkpoint_tensors(template);
    enum phema_status status = PHEMA_OK;
    for (size_t t = 0; t < phema_checkpoint_n_tensors(template) && !status; t++)
        status = extents_add(&list, &tensors[t], err);
    extents_sort(&list);
    bool has_overlap = false;
    for (size_t x = 1; x < list.n; x++)
        has_overlap = has_overlap || (list.items[x].file == list.items[x - 1].file &&
                                      list.items[x].start < list.items[x - 1].end);
    if (!status && has_overlap)
        status = phema_fail(err, PHEMA_ERR_INPUTS,
                            "%s: some of its tensors share bytes, as in no checkpoint of torch, so "
                            "that none can be replaced alone; write a new checkpoint with %s",
                            phema_checkpoint_path(template), phema_setting_name(PHEMA_SET_RANKS));
    free(list.items);
    return status;
}

PHEMA_FALLIBLE outputs_check_directory_copy(const struct draft *draft,
                                            const struct phema_checkpoint *template,
                                            struct phema_error *err)
{
    const struct phema_outputs *outputs = draft->outputs;
    enum phema_status status = check_overlap(template, err);
    for (size_t i = 0; i < draft->plan->series->n_tensors && !status; i++) {
        const struct phema_tensor tensor =
            phema_output_tensor(draft->plan, outputs, &outputs->items[0], i);
        bool is_strided = tensor.stride;
        for (size_t c = 0; c < tensor.n_chunks; c++)
            is_strided = is_strided || tensor.chunks[c].stride;
        struct phema_name_buffer shown;
        if (outputs->is_replaced[i] && is_strided)
            status = phema_fail(err, PHEMA_ERR_INPUTS,
                                "%s: tensor '%s': is stored with strides, as a transposed view, "
                                "and cannot be replaced in a copy; write a new checkpoint with %s",
                                phema_checkpoint_path(template),
                                phema_name_escape(&shown, tensor.name, tensor.name_size),
                                phema_setting_name(PHEMA_SET_RANKS));
    }
    return status;
}

/* ---- Other files ---- */

/* Folders in folders of a template. */
#define MAX_DEPTH 8

/* The directory that is copied. */
struct tree {
    struct draft *draft;
    const struct phema_checkpoint *template;
    const struct phema_set_change *change; /* of the first output; all have the same files */
    const char *root;
};

static bool is_tensor_file(const struct phema_checkpoint *template, const char *name)
{
    for (size_t f = 0; f < phema_checkpoint_n_files(template); f++)
        if (strcmp(phema_checkpoint_file_label(template, f), name) == 0)
            return true;
    return false;
}

/* A file in a folder of another name would be lost. */
static bool is_in_changed_folder(const struct phema_set_change *change, const char *name)
{
    size_t size = change->folder ? strlen(change->folder) : 0;
    return size && strncmp(name, change->folder, size) == 0 && name[size] == '/';
}

/* Provenance of the template is not that of the copy. */
static enum phema_status add_other_file(const struct tree *tree, const char *name, const char *path,
                                        struct phema_error *err)
{
    const struct phema_set_change *change = tree->change;
    if (strcmp(name, PHEMA_PROVENANCE_FILE) == 0 || is_tensor_file(tree->template, name) ||
        (change->file && strcmp(name, change->file) == 0))
        return PHEMA_OK;
    if (is_in_changed_folder(change, name))
        return phema_fail(err, PHEMA_ERR_INPUTS,
                          "%s: belongs to no tensor, and the copy of its folder would lack it; "
                          "remove it, or end OUT in .safetensors",
                          path);
    enum phema_status status = phema_claims_add_input(tree->draft->plan->series->claims, path,
                                                      "a file that is copied", err);
    if (status)
        return status;
    char *source = strdup(path);
    return source ? outputs_add_side_file(tree->draft, name, source, NULL, false, err)
                  : phema_fail_memory(err);
}

static enum phema_status add_others(const struct tree *tree, const char *folder, int depth,
                                    struct phema_error *err);

/* name: below the root */
static enum phema_status add_entry(const struct tree *tree, const char *name, int depth,
                                   struct phema_error *err)
{
    struct stat st, target;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", tree->root, name) < 0)
        return phema_fail_memory(err);
    bool is_there = lstat(path, &st) == 0, is_folder = is_there && S_ISDIR(st.st_mode);
    enum phema_status status = PHEMA_OK;
    if (is_folder && depth > 0)
        status = add_others(tree, name, depth - 1, err);
    else if (is_there && !is_folder && stat(path, &target) == 0 && S_ISREG(target.st_mode))
        status = add_other_file(tree, name, path, err);
    else
        status = phema_fail(err, PHEMA_ERR_USAGE,
                            "%s: is neither a regular file nor a folder of some, and a copy of its "
                            "directory would lack it; write a new checkpoint with %s",
                            path, phema_setting_name(PHEMA_SET_RANKS));
    free(path);
    return status;
}

/* folder: below the root, "" for itself. The recursion is at most MAX_DEPTH deep. */
static enum phema_status add_others(const struct tree *tree, const char *folder, int depth,
                                    struct phema_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", tree->root, folder) < 0)
        return phema_fail_memory(err);
    DIR *stream = opendir(path);
    enum phema_status status = PHEMA_OK;
    if (!stream) {
        status = phema_fail_errno(err, PHEMA_ERR_FILE, "cannot be opened", errno);
        status = phema_fail_in(err, status, "%s", path);
    }
    free(path);
    for (const struct dirent *entry; !status && (entry = readdir(stream));) {
        char *name = NULL;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (asprintf(&name, "%s%s%s", folder, *folder ? "/" : "", entry->d_name) < 0)
            status = phema_fail_memory(err);
        else
            status = add_entry(tree, name, depth, err);
        free(name);
    }
    if (stream)
        (void)closedir(stream);
    return status;
}

/* The directory that labels of files begin at; the caller's. NULL without memory */
static char *find_root(const struct phema_checkpoint *template)
{
    const char *path = phema_file_path(phema_checkpoint_file(template, 0));
    size_t size = strlen(path), label_size = strlen(phema_checkpoint_file_label(template, 0));
    if (size == label_size)
        return strdup(".");
    size -= label_size + 1;
    return size ? strndup(path, size) : strdup("/");
}

/* ---- What the trainer's files say ---- */

static enum phema_status find_change(struct phema_set_change *change, const struct draft *draft,
                                     const struct phema_checkpoint *template, size_t j,
                                     struct phema_error *err)
{
    const struct phema_target *target = &draft->plan->targets[j];
    if (draft->options->is_conversion) /* the same average comes back */
        return PHEMA_OK;
    return phema_tensor_set_change(change, &draft->into, phema_checkpoint_path(template),
                                   target->sigma_rel, target->named_time, draft->arena, err);
}

PHEMA_FALLIBLE outputs_add_directory_files(struct draft *draft,
                                           const struct phema_checkpoint *template,
                                           struct phema_error *err)
{
    struct phema_set_change change = {0};
    struct phema_outputs *outputs = draft->outputs;
    char *root = find_root(template);
    enum phema_status status = root ? PHEMA_OK : phema_fail_memory(err);
    if (!status && outputs->m)
        status = find_change(&change, draft, template, 0, err);
    const struct tree tree = {draft, template, &change, root};
    if (!status)
        status = add_others(&tree, "", MAX_DEPTH, err);
    phema_strbuf_clear(&change.text);
    free(root);
    outputs_sort_side_files(outputs);
    return status;
}

/* ---- Files of an output ---- */

static enum phema_status add_copied_files(struct phema_output *output,
                                          const struct phema_set_change *change,
                                          struct phema_error *err)
{
    const struct phema_checkpoint *template = output->template;
    for (size_t f = 0; f < phema_checkpoint_n_files(template); f++) {
        const struct phema_file *source = phema_checkpoint_file(template, f);
        struct phema_output_file *file = &output->files[output->n_files++];
        const char *label = phema_checkpoint_file_label(template, f);
        bool is_moved = is_in_changed_folder(change, label);
        if (asprintf(&file->name, "%s%s", is_moved ? change->new_folder : "",
                     label + (is_moved ? strlen(change->folder) : 0)) < 0)
            file->name = NULL;
        if (!file->name)
            return phema_fail_memory(err);
        file->source = phema_file_path(source);
        file->size_bytes = phema_file_span(source).size;
        output->size_bytes += file->size_bytes;
    }
    return PHEMA_OK;
}

PHEMA_FALLIBLE outputs_add_directory_copy(struct draft *draft, size_t j, struct phema_error *err)
{
    struct phema_output *output = &draft->outputs->items[j];
    struct phema_set_change change = {0};
    output->files = calloc(phema_checkpoint_n_files(output->template) + 2, sizeof(*output->files));
    if (!output->files)
        return phema_fail_memory(err);
    enum phema_status status = find_change(&change, draft, output->template, j, err);
    if (!status)
        status = add_copied_files(output, &change, err);
    if (!status && change.file) {
        struct phema_output_file *file = &output->files[output->n_files++];
        file->name = strdup(change.file);
        file->header = (uint8_t *)change.text.data;
        file->header_size = file->size_bytes = change.text.size;
        output->size_bytes += file->size_bytes;
        change.text = (struct phema_strbuf){0};
        status = file->name ? PHEMA_OK : phema_fail_memory(err);
    }
    phema_strbuf_clear(&change.text);
    if (status || draft->options->is_conversion)
        return status;
    size_t n = output->n_files++;
    return outputs_add_provenance(draft, output, n, err);
}
