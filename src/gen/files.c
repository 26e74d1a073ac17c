// SPDX-License-Identifier: Apache-2.0
/* files.c - Snapshots and manifest. docs/layouts.md has the format of the manifest. */
#include "files.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/cleanup.h"
#include "phema/formats.h"
#include "phema/json.h"
#include "phema/strbuf.h"

#define MANIFEST "manifest.json"

/* ---- The tensors that a simulated training fills ---- */

/* Tensors alternate between weight and bias; with three or more the last is the scalar. */
static bool is_scalar(const struct gen_model *model, size_t i)
{
    return model->n >= 3 && i == model->n - 1;
}

static uint64_t share_of(const struct gen_model *model, size_t i)
{
    if (is_scalar(model, i))
        return 0;
    return i % 2 ? 1 : 64 + 64 * (i / 2 % 3);
}

/* Every tensor gets one parameter and its share of the rest. Sizes of weights are multiples of 16,
 * so that they make matrices. The first bias gets the remainder. */
static void share_out(struct gen_model *model, uint64_t n_params)
{
    uint64_t rest = n_params - model->n, left = rest, shares = 0;
    for (size_t i = 0; i < model->n; i++)
        shares += share_of(model, i);
    for (size_t i = 0; i < model->n; i++) {
        /* below 2^50 * 2^8 */
        uint64_t more =
            rest / shares * share_of(model, i) + rest % shares * share_of(model, i) / shares;
        if (i % 2 == 0 && !is_scalar(model, i) && more >= 256)
            more = more / 16 * 16 - 1;
        model->tensors[i].n_elems = 1 + more;
        left -= more;
    }
    model->tensors[model->n > 1 ? 1 : 0].n_elems += left;
}

/* Makes the matrix as square as a side of at most 1024 allows; a vector when no side divides it. */
static void shape_matrix(struct gen_tensor *tensor)
{
    uint64_t rows = 1024;
    while (rows > 1 && (rows > tensor->n_elems / rows || tensor->n_elems % rows))
        rows--;
    tensor->rank = rows > 1 ? 2 : 1;
    tensor->shape[0] = rows > 1 ? rows : tensor->n_elems;
    tensor->shape[1] = rows > 1 ? tensor->n_elems / rows : 0;
}

static void fill_tensor(const struct gen_model *model, size_t i)
{
    struct gen_tensor *tensor = &model->tensors[i];
    if (is_scalar(model, i)) {
        (void)snprintf(tensor->name, sizeof(tensor->name), "gain");
        tensor->mean = 1;
        tensor->scale = 0.1;
        return;
    }
    bool is_bias = i % 2;
    (void)snprintf(tensor->name, sizeof(tensor->name), "blocks.%zu.%s", i / 2,
                   is_bias ? "bias" : "weight");
    if (is_bias) {
        tensor->rank = 1;
        tensor->shape[0] = tensor->n_elems;
        tensor->scale = 0.02;
        return;
    }
    shape_matrix(tensor);
    /* as in initialisations: 1 / sqrt(inputs of a neuron) */
    tensor->scale = 1 / sqrt((double)tensor->shape[tensor->rank - 1]);
}

enum phema_status gen_model_init(struct gen_model *model, uint64_t n, uint64_t n_params,
                                 struct phema_error *err)
{
    model->n = (size_t)n;
    model->tensors = calloc(n + 1, sizeof(*model->tensors));
    if (!model->tensors)
        return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for %" PRIu64 " tensors", n);
    share_out(model, n_params);
    for (size_t i = 0; i < model->n; i++) {
        struct gen_tensor *tensor = &model->tensors[i];
        fill_tensor(model, i);
        uint64_t n_runs = (tensor->n_elems + GEN_RUN_ELEMS - 1) / GEN_RUN_ELEMS;
        tensor[1].first_param = tensor->first_param + tensor->n_elems;
        tensor[1].first_run = tensor->first_run + n_runs;
    }
    return PHEMA_OK;
}

void gen_model_clear(struct gen_model *model)
{
    free(model->tensors);
    model->tensors = NULL;
}

/* ---- Manifest and tables ---- */

/* The table of the kind is a separate file, which the manifest lists under the name of the kind.
 * Rules of libraries are tables inside, but their text describes them. */
static bool has_table(const struct gen_kind *kind)
{
    return kind->text && strncmp(kind->text, "table:", 6) == 0;
}

/* "snapshot-0001000-ema2000.safetensors" */
static void append_file_name(struct phema_strbuf *text, const struct gen_item *item)
{
    phema_strbuf_printf(text, "%s-%07" PRIu64 "-%s.safetensors",
                        item->is_truth ? "truth" : "snapshot", item->time, item->kind->name);
}

static void write_profile(struct phema_json_out *out, const struct gen_kind *kind)
{
    bool is_power = !kind->text;
    if (!is_power && !has_table(kind)) {
        phema_json_out_string(out, "profile", kind->text);
        return;
    }
    phema_json_out_open(out, "profile", '{');
    phema_json_out_string(out, "kind", is_power ? "power" : "table");
    if (!is_power)
        phema_json_out_string(out, "file", kind->name);
    else if (kind->is_by_gamma)
        phema_json_out_number(out, "gamma", kind->profile.gamma);
    else
        phema_json_out_number(out, "sigma_rel", kind->sigma_rel);
    if (is_power && kind->profile.update_every > 1 && !kind->hides_update_every)
        phema_json_out_u64(out, "update_every", kind->profile.update_every);
    phema_json_out_close(out, '}');
}

static void write_manifest(struct phema_strbuf *text, const struct gen_request *request)
{
    struct phema_json_out out = {.text = text, .is_pretty = true, .has_all_digits = true};
    phema_json_out_open(&out, NULL, '{');
    phema_json_out_string(&out, "unit", "steps");
    phema_json_out_open(&out, "snapshots", '[');
    for (size_t i = 0; i < request->n_items; i++) {
        const struct gen_item *item = &request->items[i];
        if (item->is_truth)
            continue;
        struct phema_strbuf name = {0};
        append_file_name(&name, item);
        phema_json_out_open(&out, NULL, '{');
        phema_json_out_string(&out, "file", name.data ? name.data : "");
        phema_json_out_u64(&out, "time", item->time);
        write_profile(&out, item->kind);
        phema_json_out_close(&out, '}');
        text->is_failed = text->is_failed || name.is_failed;
        phema_strbuf_clear(&name);
    }
    phema_json_out_close(&out, ']');
    phema_json_out_close(&out, '}');
    phema_strbuf_puts(text, "\n");
}

/* ---- Metadata ---- */

struct metadata_text {
    char time[24], gamma[48], update_every[24];
    struct phema_name_buffer sigma_rel;
    struct phema_metadata entries[6];
    size_t n;
};

static void add_entry(struct metadata_text *text, const char *key, const char *value)
{
    text->entries[text->n++] = (struct phema_metadata){key, value, strlen(key), strlen(value)};
}

static void describe_power(struct metadata_text *text, const struct gen_kind *kind)
{
    (void)snprintf(text->gamma, sizeof(text->gamma), "%.17g", kind->profile.gamma);
    add_entry(text, "posthoc_ema.sigma_rel",
              phema_number_format(&text->sigma_rel, kind->sigma_rel));
    add_entry(text, "posthoc_ema.gamma", text->gamma);
    if (kind->profile.update_every == 1 || kind->hides_update_every)
        return;
    (void)snprintf(text->update_every, sizeof(text->update_every), "%" PRIu64,
                   kind->profile.update_every);
    add_entry(text, "posthoc_ema.update_every", text->update_every);
}

static void describe(struct metadata_text *text, const struct gen_item *item)
{
    text->n = 0;
    (void)snprintf(text->time, sizeof(text->time), "%" PRIu64, item->time);
    add_entry(text, "posthoc_ema.time", text->time);
    add_entry(text, "posthoc_ema.unit", "steps");
    if (item->kind->hides_profile)
        return;
    if (item->kind->text)
        add_entry(text, "posthoc_ema.profile", item->kind->text);
    else
        describe_power(text, item->kind);
}

/* ---- Files ---- */

static struct gen_file *add_file(struct gen_files *files, const char *directory, const char *name)
{
    struct gen_file *file = &files->files[files->n + files->n_beside];
    if (asprintf(&file->path, "%s/%s", directory, name) < 0)
        file->path = NULL;
    return file->path ? file : NULL;
}

static bool add_item(struct gen_files *files, const char *directory,
                     const struct phema_gen_options *options, const struct gen_item *item)
{
    struct phema_strbuf name = {0};
    phema_strbuf_puts(&name, item->is_truth ? "truth/" : "");
    append_file_name(&name, item);
    struct gen_file *file = name.is_failed ? NULL : add_file(files, directory, name.data);
    phema_strbuf_clear(&name);
    if (!file)
        return false;
    file->item = item;
    file->dtype = item->is_truth ? options->truth_dtype : options->dtype;
    files->n++;
    return true;
}

static enum phema_status list_files(struct gen_files *files, const char *directory,
                                    const struct phema_gen_options *options,
                                    const struct gen_request *request, struct phema_error *err)
{
    /* after them the manifest, and at most one table for each kind */
    files->files = calloc(request->n_items + 1 + request->n_snapshot_kinds, sizeof(*files->files));
    bool is_complete = files->files != NULL;
    for (size_t i = 0; is_complete && i < request->n_items; i++)
        is_complete = add_item(files, directory, options, &request->items[i]);
    return is_complete ? PHEMA_OK
                       : phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the list of files");
}

/* The tensors for the layout, without dtype. */
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

/* Opens a file and writes its first bytes. */
static enum phema_status begin_file(struct gen_file *file, uint64_t size_bytes, const void *data,
                                    size_t size, const struct phema_gen_options *options,
                                    struct phema_error *err)
{
    const struct phema_writer_options writer_options = {.replaces = options->replaces,
                                                        .syncs = options->syncs,
                                                        .is_published = &file->is_published};
    enum phema_status status = phema_claims_check_inputs(options->claims, file->path, err);
    if (status)
        return status;
    status = phema_writer_open(&file->writer, file->path, size_bytes, &writer_options, err);
    return status ? status : phema_writer_write(file->writer, 0, data, size, err);
}

static enum phema_status open_file(struct gen_file *file, const struct gen_item *item,
                                   uint64_t *offsets, struct phema_tensor *tensors, size_t n,
                                   const struct phema_gen_options *options, struct phema_error *err)
{
    uint64_t elem_bytes = phema_dtype_bits(file->dtype) / 8;
    for (size_t i = 0; i < n; i++) {
        tensors[i].dtype = file->dtype;
        tensors[i].size_bytes = tensors[i].n_elems * elem_bytes;
    }
    struct metadata_text text;
    describe(&text, item);
    uint8_t *header = NULL;
    size_t header_size = 0;
    uint64_t total = 0;
    enum phema_status status = phema_safetensors_layout(&header, &header_size, offsets, &total,
                                                        tensors, n, text.entries, text.n, err);
    if (status)
        return phema_fail_in(err, status, "%s", file->path);
    status = begin_file(file, total, header, header_size, options, err);
    free(header);
    file->data_at = header_size;
    return status;
}

static enum phema_status open_all(struct gen_files *files, const struct phema_gen_options *options,
                                  const struct gen_model *model, const struct gen_request *request,
                                  struct phema_error *err)
{
    struct phema_tensor *tensors = list_tensors(model);
    files->first_elems = calloc(model->n, sizeof(*files->first_elems));
    if (!tensors || !files->first_elems) {
        free(tensors);
        return phema_fail(err, PHEMA_ERR_RESOURCE, "out of memory for the tensors");
    }
    enum phema_status status = PHEMA_OK;
    /* one array of offsets for all files: those of the last one stay */
    for (size_t i = 0; !status && i < files->n; i++)
        status = open_file(&files->files[i], &request->items[i], files->first_elems, tensors,
                           model->n, options, err);
    free(tensors);
    if (status || !files->n)
        return status;
    const struct gen_file *last = &files->files[files->n - 1];
    for (size_t i = 0; i < model->n; i++)
        files->first_elems[i] =
            (files->first_elems[i] - last->data_at) / (phema_dtype_bits(last->dtype) / 8);
    return PHEMA_OK;
}

/* Writes a file of text next to the snapshots. */
static enum phema_status open_beside(struct gen_files *files, const char *directory,
                                     const char *name, const struct phema_strbuf *text,
                                     const struct phema_gen_options *options,
                                     struct phema_error *err)
{
    struct gen_file *file = text->is_failed ? NULL : add_file(files, directory, name);
    if (!file)
        return phema_fail_memory(err);
    files->n_beside++;
    return begin_file(file, text->size, text->data, text->size, options, err);
}

static enum phema_status open_all_beside(struct gen_files *files, const char *directory,
                                         const struct phema_gen_options *options,
                                         const struct gen_request *request, struct phema_error *err)
{
    bool needs_manifest = false;
    for (size_t k = 0; k < request->n_snapshot_kinds; k++) /* some is no power function */
        needs_manifest |= request->kinds[k].text != NULL;
    if (!needs_manifest)
        return PHEMA_OK;
    struct phema_strbuf text = {0};
    write_manifest(&text, request);
    enum phema_status status = open_beside(files, directory, MANIFEST, &text, options, err);
    phema_strbuf_clear(&text);
    for (size_t k = 0; !status && k < request->n_snapshot_kinds; k++) {
        const struct gen_kind *kind = &request->kinds[k];
        if (!has_table(kind))
            continue;
        const struct phema_betas *betas = kind->profile.betas;
        phema_strbuf_puts(&text, "# step beta\n"); /* as profiles table:FILE have them */
        for (size_t i = 0; i < betas->n; i++)
            phema_strbuf_printf(&text, "%" PRIu64 " %.17g\n", betas->steps[i], betas->betas[i]);
        status = open_beside(files, directory, kind->name, &text, options, err);
        phema_strbuf_clear(&text);
    }
    return status;
}

enum phema_status gen_files_open(struct gen_files *files, const char *directory,
                                 const struct phema_gen_options *options,
                                 const struct gen_model *model, const struct gen_request *request,
                                 struct phema_error *err)
{
    *files = (struct gen_files){0};
    enum phema_status status = list_files(files, directory, options, request, err);
    if (!status)
        status = phema_writer_reserve_descriptors(files->n + 1 + request->n_snapshot_kinds, err);
    if (!status)
        status = open_all_beside(files, directory, options, request, err);
    return status ? status : open_all(files, options, model, request, err);
}

enum phema_status gen_files_commit(struct gen_files *files, struct phema_error *err)
{
    enum phema_status status = PHEMA_OK;
    phema_cleanup_hold(); /* a signal waits until the whole series is published */
    size_t n = files->n + files->n_beside;
    for (size_t i = 0; i < n && !status; i++) {
        struct gen_file *file = &files->files[i];
        status = phema_writer_commit(file->writer, err);
        file->writer = NULL;
    }
    /* half a series would look like a complete one */
    for (size_t i = 0; i < n && status; i++)
        if (files->files[i].is_published)
            (void)unlink(files->files[i].path);
    phema_cleanup_resume();
    return status;
}

void gen_files_clear(struct gen_files *files)
{
    for (size_t i = 0; i < files->n + files->n_beside; i++) {
        phema_writer_abandon(files->files[i].writer);
        free(files->files[i].path);
    }
    free(files->files);
    free(files->first_elems);
    *files = (struct gen_files){0};
}
