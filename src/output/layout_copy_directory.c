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

/* ---- Tensors that a copy would change ---- */

static enum phema_status check_stride(const struct phema_checkpoint *template,
                                      const struct phema_tensor *tensor, struct phema_error *err)
{
    bool is_strided = tensor->stride;
    for (size_t c = 0; c < tensor->n_chunks; c++)
        is_strided = is_strided || tensor->chunks[c].stride;
    struct phema_name_buffer shown;
    if (!is_strided)
        return PHEMA_OK;
    return phema_fail(
        err, PHEMA_ERR_INPUTS,
        "%s: tensor '%s': is stored with strides, as a transposed view, and cannot be "
        "replaced in a copy; write a new checkpoint with --ranks",
        phema_checkpoint_path(template),
        phema_name_escape(&shown, tensor->name, tensor->name_size));
}

/* Whether a sorted list of the bytes of all tensors has bytes of two of them. */
static bool has_overlap(const struct extent_list *list)
{
    for (size_t x = 1; x < list->n; x++)
        if (list->items[x].file == list->items[x - 1].file &&
            list->items[x].start < list->items[x - 1].end)
            return true;
    return false;
}

static enum phema_status list_template(struct extent_list *list,
                                       const struct phema_checkpoint *template,
                                       struct phema_error *err)
{
    const struct phema_tensor *tensors = phema_checkpoint_tensors(template);
    enum phema_status status = PHEMA_OK;
    for (size_t t = 0; t < phema_checkpoint_n_tensors(template) && !status; t++)
        status = extents_add(list, &tensors[t], err);
    extents_sort(list);
    return status;
}

/* torch never stores two pieces at one place. */
static enum phema_status check_overlap(const struct phema_checkpoint *template,
                                       struct phema_error *err)
{
    struct extent_list list = {0};
    enum phema_status status = list_template(&list, template, err);
    if (!status && has_overlap(&list))
        status = phema_fail(err, PHEMA_ERR_INPUTS,
                            "%s: some of its tensors share bytes, as in no checkpoint of torch, so "
                            "that none can be replaced alone; write a new checkpoint with --ranks",
                            phema_checkpoint_path(template));
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
            output_tensor(draft->plan, outputs, &outputs->items[0], i);
        if (outputs->is_replaced[i])
            status = check_stride(template, &tensor, err);
    }
    return status;
}

/* ---- Files ---- */

static bool is_tensor_file(const struct phema_checkpoint *template, const char *name)
{
    for (size_t f = 0; f < phema_checkpoint_n_files(template); f++)
        if (strcmp(phema_checkpoint_file_label(template, f), name) == 0)
            return true;
    return false;
}

/* Provenance of the template is not that of the copy. Owns path. */
static enum phema_status add_other(struct draft *draft, const struct phema_checkpoint *template,
                                   const char *name, char *path, struct phema_error *err)
{
    struct stat st;
    enum phema_status status = PHEMA_OK;
    bool is_added = strcmp(name, ".metadata") != 0 && strcmp(name, PHEMA_PROVENANCE_FILE) != 0 &&
                    !is_tensor_file(template, name);
    if (is_added && (stat(path, &st) || !S_ISREG(st.st_mode)))
        status = phema_fail(err, PHEMA_ERR_USAGE,
                            "%s: is no regular file, and a copy of its directory would lack it; "
                            "write a new checkpoint with --ranks",
                            path);
    if (is_added && !status)
        status =
            phema_claims_add_input(draft->plan->series->claims, path, "a file that is copied", err);
    if (is_added && !status)
        return outputs_add_side_file(draft, name, path, NULL, false, err);
    free(path);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct phema_side_file *)a)->name,
                  ((const struct phema_side_file *)b)->name);
}

static enum phema_status add_others(struct draft *draft, const struct phema_checkpoint *template,
                                    const char *directory, struct phema_error *err)
{
    DIR *stream = opendir(directory);
    if (!stream)
        return phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be opened: %s", directory,
                          strerror(errno));
    enum phema_status status = PHEMA_OK;
    for (const struct dirent *entry; !status && (entry = readdir(stream));) {
        char *path = NULL;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (asprintf(&path, "%s/%s", directory, entry->d_name) < 0)
            status = phema_fail_memory(err);
        else
            status = add_other(draft, template, entry->d_name, path, err);
    }
    (void)closedir(stream);
    struct phema_outputs *outputs = draft->outputs;
    if (outputs->n_side_files > 1)
        qsort(outputs->side_files, outputs->n_side_files, sizeof(*outputs->side_files), by_name);
    return status;
}

PHEMA_FALLIBLE outputs_add_directory_files(struct draft *draft,
                                           const struct phema_checkpoint *template,
                                           struct phema_error *err)
{
    for (size_t f = 1; f < phema_checkpoint_n_files(template); f++)
        if (strchr(phema_checkpoint_file_label(template, f), '/'))
            return phema_fail(err, PHEMA_ERR_USAGE,
                              "%s: its file '%s' is in a folder, which a copy does not have; write "
                              "a new checkpoint with --ranks",
                              phema_checkpoint_path(template),
                              phema_checkpoint_file_label(template, f));
    const char *path = phema_file_path(phema_checkpoint_file(template, 0));
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    if (!directory)
        return phema_fail_memory(err);
    enum phema_status status = add_others(draft, template, *directory ? directory : "/", err);
    free(directory);
    return status;
}

PHEMA_FALLIBLE outputs_add_directory_copy(struct draft *draft, size_t j, struct phema_error *err)
{
    struct phema_output *output = &draft->outputs->items[j];
    const struct phema_checkpoint *template = output->template;
    size_t n = phema_checkpoint_n_files(template);
    output->files = calloc(n + 1, sizeof(*output->files));
    if (!output->files)
        return phema_fail_memory(err);
    for (size_t f = 0; f < n; f++) {
        const struct phema_file *source = phema_checkpoint_file(template, f);
        struct phema_output_file *file = &output->files[output->n_files++];
        file->name = strdup(f ? phema_checkpoint_file_label(template, f) : ".metadata");
        if (!file->name)
            return phema_fail_memory(err);
        file->source = phema_file_path(source);
        file->size_bytes = phema_file_span(source).size;
        output->size_bytes += file->size_bytes;
    }
    if (draft->options->is_conversion)
        return PHEMA_OK;
    output->n_files++;
    return outputs_add_provenance(draft, output, n, err);
}
