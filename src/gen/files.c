// SPDX-License-Identifier: Apache-2.0
/* files.c - see files.h. */
#include "files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/formats.h"

/* The shortest decimals that read back as the same number, at least 3: 0.050, 0.0125. */
static void print_sigma(char *text, size_t size, double sigma_rel)
{
    for (int digits = 3; digits <= 40; digits++) {
        (void)snprintf(text, size, "%.*f", digits, sigma_rel);
        if (strtod(text, NULL) == sigma_rel)
            return;
    }
}

static void print_shortest(char *text, size_t size, double value)
{
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

struct metadata_text {
    char time[24], sigma_rel[48], gamma[48], update_every[24];
    struct phema_metadata entries[5];
    size_t n;
};

static void add_entry(struct metadata_text *text, const char *key, const char *value)
{
    text->entries[text->n++] = (struct phema_metadata){key, value, strlen(key), strlen(value)};
}

static void describe(struct metadata_text *text, const struct gen_file *file,
                     const struct gen_average *averages)
{
    text->n = 0;
    (void)snprintf(text->time, sizeof(text->time), "%" PRIu64, file->time);
    add_entry(text, "posthoc_ema.time", text->time);
    add_entry(text, "posthoc_ema.unit", "steps");
    if (file->average == GEN_RAW)
        return;
    const struct gen_average *average = &averages[file->average];
    print_shortest(text->sigma_rel, sizeof(text->sigma_rel), average->sigma_rel);
    (void)snprintf(text->gamma, sizeof(text->gamma), "%.17g", average->gamma);
    add_entry(text, "posthoc_ema.sigma_rel", text->sigma_rel);
    add_entry(text, "posthoc_ema.gamma", text->gamma);
    if (average->update_every == 1)
        return;
    (void)snprintf(text->update_every, sizeof(text->update_every), "%" PRIu64,
                   average->update_every);
    add_entry(text, "posthoc_ema.update_every", text->update_every);
}

static bool name_file(struct gen_file *file, const char *directory, bool is_truth,
                      const struct gen_average *averages)
{
    char width[64] = "raw";
    if (file->average != GEN_RAW)
        print_sigma(width, sizeof(width), averages[file->average].sigma_rel);
    int length = asprintf(&file->path, "%s/%s-%07" PRIu64 "-%s.safetensors", directory,
                          is_truth ? "truth/truth" : "snapshot", file->time, width);
    if (length < 0)
        file->path = NULL;
    return length >= 0;
}

/* The list of files, by time; truths, at the last time, come last. */
static bool list_files(struct gen_files *files, const char *directory,
                       const struct phema_gen_options *options, const struct gen_average *averages,
                       const size_t *average_of_input, const size_t *average_of_truth)
{
    size_t n_widths = options->n_input_sigmas + options->is_raw;
    files->files =
        calloc(options->count * n_widths + options->n_truth_sigmas + 1, sizeof(*files->files));
    bool is_complete = files->files != NULL;
    for (uint64_t i = 1; is_complete && i <= options->count; i++) {
        /* i * steps / count, rounded down, without the product */
        uint64_t time = options->steps / options->count * i +
                        options->steps % options->count * i / options->count;
        for (size_t j = 0; is_complete && j < n_widths; j++) {
            struct gen_file *file = &files->files[files->n++];
            file->time = time;
            file->average = j < options->n_input_sigmas ? average_of_input[j] : GEN_RAW;
            file->dtype = options->dtype;
            is_complete = name_file(file, directory, false, averages);
        }
    }
    for (size_t j = 0; is_complete && j < options->n_truth_sigmas; j++) {
        struct gen_file *file = &files->files[files->n++];
        file->time = options->steps;
        file->average = average_of_truth[j];
        file->dtype = options->truth_dtype;
        is_complete = name_file(file, directory, true, averages);
    }
    return is_complete;
}

/* tensors: what the layout needs, of no dtype yet */
static struct phema_tensor *list_tensors(const struct gen_model *model)
{
    struct phema_tensor *tensors = calloc(model->n, sizeof(*tensors));
    for (size_t i = 0; tensors && i < model->n; i++) {
        const struct gen_tensor *from = &model->tensors[i];
        tensors[i].name = from->name;
        tensors[i].name_size = strlen(from->name);
        tensors[i].rank = from->rank;
        tensors[i].shape = from->shape;
        tensors[i].n_elems = from->n_elems;
    }
    return tensors;
}

static enum phema_status open_file(struct gen_file *file, uint64_t *offsets,
                                   struct phema_tensor *tensors, size_t n,
                                   const struct phema_gen_options *options,
                                   const struct gen_average *averages, struct phema_error *err)
{
    uint64_t elem_bytes = phema_dtype_bits(file->dtype) / 8;
    for (size_t i = 0; i < n; i++) {
        tensors[i].dtype = file->dtype;
        tensors[i].size_bytes = tensors[i].n_elems * elem_bytes;
    }
    struct metadata_text text;
    describe(&text, file, averages);
    uint8_t *header = NULL;
    size_t header_size = 0;
    uint64_t total = 0;
    enum phema_status status = phema_safetensors_layout(&header, &header_size, offsets, &total,
                                                        tensors, n, text.entries, text.n, err);
    if (status)
        return phema_fail_in(err, status, "%s", file->path);
    struct phema_writer_options writer_options = {.replaces = options->replaces,
                                                  .syncs = options->syncs};
    status = phema_writer_open(&file->writer, file->path, total, &writer_options, err);
    if (!status)
        status = phema_writer_put(file->writer, 0, header, header_size, err);
    free(header);
    file->data_at = header_size;
    return status;
}

static enum phema_status open_all(struct gen_files *files, const struct phema_gen_options *options,
                                  const struct gen_model *model, const struct gen_average *averages,
                                  struct phema_error *err)
{
    struct phema_tensor *tensors = list_tensors(model);
    files->first_elems = calloc(model->n, sizeof(*files->first_elems));
    if (!tensors || !files->first_elems) {
        free(tensors);
        return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the tensors");
    }
    enum phema_status status = PHEMA_OK;
    /* one array of offsets for all: the last file's stay */
    for (size_t i = 0; !status && i < files->n; i++)
        status = open_file(&files->files[i], files->first_elems, tensors, model->n, options,
                           averages, err);
    free(tensors);
    if (status || !files->n)
        return status;
    const struct gen_file *last = &files->files[files->n - 1];
    for (size_t i = 0; i < model->n; i++)
        files->first_elems[i] =
            (files->first_elems[i] - last->data_at) / (phema_dtype_bits(last->dtype) / 8);
    return PHEMA_OK;
}

enum phema_status gen_files_open(struct gen_files *files, const char *directory,
                                 const struct phema_gen_options *options,
                                 const struct gen_model *model, const struct gen_average *averages,
                                 const size_t *average_of_input, const size_t *average_of_truth,
                                 struct phema_error *err)
{
    *files = (struct gen_files){NULL, 0, NULL};
    enum phema_status status = PHEMA_OK;
    if (!list_files(files, directory, options, averages, average_of_input, average_of_truth))
        status = phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the list of files");
    if (!status)
        status = phema_writer_allow(files->n, err);
    if (!status)
        status = open_all(files, options, model, averages, err);
    if (status)
        gen_files_clear(files);
    return status;
}

enum phema_status gen_files_commit(struct gen_files *files, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    size_t n_done = 0;
    phema_cleanup_hold(); /* an ending signal waits until the whole series is there */
    while (!status && n_done < files->n) {
        struct gen_file *file = &files->files[n_done++];
        status = phema_writer_commit(file->writer, err);
        file->writer = NULL;
    }
    /* half a series under its names would look like a whole one; the last file was not published */
    for (size_t i = 0; status && i + 1 < n_done; i++)
        (void)unlink(files->files[i].path);
    phema_cleanup_resume();
    return status;
}

void gen_files_clear(struct gen_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        phema_writer_abandon(files->files[i].writer);
        free(files->files[i].path);
    }
    free(files->files);
    free(files->first_elems);
    *files = (struct gen_files){NULL, 0, NULL};
}
