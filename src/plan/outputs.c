// SPDX-License-Identifier: Apache-2.0
/* outputs.c - what each output is called and where every tensor lies in it, before anything is
 * read. All of it follows from the plan: the same plan gives the same bytes. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/plan.h"
#include "phema/text.h"
#include "provenance.h"

/* ---- Names ---- */

static enum phema_status check_extension(const char *out, struct phema_error *err)
{
    static const char *const later[] = {".pt", ".pth", ".ckpt", ".pkl", ".safetensors.zst"};
    if (phema_ends_with(out, ".safetensors"))
        return PHEMA_OK;
    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        if (phema_ends_with(out, later[i]))
            return phema_fail(
                err, PHEMA_ERR_USAGE,
                "%s: this version writes safetensors, not %s; end OUT in .safetensors", out,
                later[i]);
    return phema_fail(err, PHEMA_ERR_USAGE,
                      "%s: what to write is not clear; end OUT in .safetensors, or in / for a "
                      "directory",
                      out);
}

/* Time and width as names show them: at least seven digits, at least three decimals. */
static void show_time(char *buffer, size_t size, double time)
{
    if (time == floor(time))
        (void)snprintf(buffer, size, "%07.0f", time);
    else
        (void)snprintf(buffer, size, "%.17g", time);
}

static void show_sigma(char *buffer, size_t size, double sigma_rel)
{
    if (isnan(sigma_rel)) {
        (void)snprintf(buffer, size, "weights");
        return;
    }
    for (int decimals = 3; decimals <= 17; decimals++) {
        (void)snprintf(buffer, size, "%.*f", decimals, sigma_rel);
        if (strtod(buffer, NULL) == sigma_rel)
            return;
    }
    (void)snprintf(buffer, size, "%.6f", sigma_rel); /* a width that came from a gamma */
}

/* path: out, the caller's, also after a failure */
static enum phema_status fill_template(char **path, const char *template,
                                       const struct phema_target *target, struct phema_error *err)
{
    char time[64], sigma[64];
    show_time(time, sizeof(time), target->named_time);
    show_sigma(sigma, sizeof(sigma), target->sigma_rel);
    struct phema_text text = {0};
    enum phema_status status = PHEMA_OK;
    for (const char *at = template; *at && !status;) {
        if (strncmp(at, "{time}", 6) == 0) {
            phema_text_puts(&text, time);
            at += 6;
        } else if (strncmp(at, "{sigma}", 7) == 0) {
            phema_text_puts(&text, sigma);
            at += 7;
        } else if (*at == '{') {
            status = phema_fail(err, PHEMA_ERR_USAGE,
                                "%s: a template may hold {time} and {sigma} alone", template);
        } else {
            phema_text_append(&text, at++, 1);
        }
    }
    if (!status)
        status = phema_text_check(&text, err);
    if (!status && !text.data)
        status = phema_fail(err, PHEMA_ERR_USAGE, "OUT is empty");
    *path = text.data;
    return status;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* OUT as a template for every target; *directory: what has to exist, or NULL. */
static enum phema_status choose_template(struct phema_text *template, char **directory,
                                         const char *out, size_t m, struct phema_error *err)
{
    size_t size = strlen(out);
    if (size == 0)
        return phema_fail(err, PHEMA_ERR_USAGE, "OUT is empty");
    bool is_template = strchr(out, '{') != NULL;
    bool is_folder = !is_template && (m > 1 || out[size - 1] == '/' || is_directory(out));
    if (is_folder && phema_ends_with(out, ".safetensors") && !is_directory(out))
        return phema_fail(
            err, PHEMA_ERR_USAGE,
            "%s: %zu outputs do not fit one file; make OUT a directory, or put {sigma} "
            "and {time} into it",
            out, m);
    if (is_folder) {
        phema_text_printf(template, "%s%sphema-{time}-{sigma}.safetensors", out,
                          out[size - 1] == '/' ? "" : "/");
    } else {
        enum phema_status status = check_extension(out, err);
        if (status)
            return status;
        phema_text_puts(template, out);
    }
    enum phema_status status = phema_text_check(template, err);
    if (status || (!is_folder && !is_template))
        return status;
    const char *slash = strrchr(template->data, '/');
    size_t directory_size = slash ? (size_t)(slash - template->data) : 0;
    if (directory_size && !memchr(template->data, '{', directory_size)) {
        *directory = strndup(template->data, directory_size);
        if (!*directory)
            return phema_fail_memory(err);
        if (is_directory(*directory)) {
            free(*directory);
            *directory = NULL;
        }
    }
    return PHEMA_OK;
}

static enum phema_status name_outputs(struct phema_outputs *outputs, const struct phema_plan *plan,
                                      const char *out, struct phema_error *err)
{
    struct phema_text template = {0};
    enum phema_status status =
        choose_template(&template, &outputs->made_directory, out, plan->m, err);
    for (size_t j = 0; !status && j < plan->m; j++)
        status = fill_template(&outputs->items[j].path, template.data, &plan->targets[j], err);
    phema_text_clear(&template);
    for (size_t j = 1; !status && j < plan->m; j++)
        for (size_t i = 0; !status && i < j; i++)
            if (strcmp(outputs->items[i].path, outputs->items[j].path) == 0)
                status =
                    phema_fail(err, PHEMA_ERR_USAGE,
                               "%s: is the name of two targets; put {sigma} and {time} into OUT",
                               outputs->items[i].path);
    return status;
}

/* ---- Layout ---- */

static enum phema_dtype dtype_written(const struct phema_series_tensor *entry,
                                      const struct phema_outputs_options *options)
{
    bool is_counter = entry->rule == PHEMA_RULE_COPY && strcmp(entry->reason, "bookkeeping") == 0;
    if (!options->has_dtype || is_counter || !phema_dtype_is_float(entry->tensor.dtype))
        return entry->tensor.dtype;
    return options->dtype;
}

/* Fills the one file of an output and the places, which differ between outputs by the length of the
 * header alone: that of the provenance. */
static enum phema_status lay_out(struct phema_output *output, struct phema_place *places,
                                 const struct phema_plan *plan, const struct phema_target *target,
                                 const struct phema_tensor *tensors,
                                 const struct phema_outputs_options *options,
                                 struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct provenance provenance;
    uint64_t *offsets = calloc(series->n_tensors + 1, sizeof(*offsets));
    output->files = calloc(1, sizeof(*output->files));
    if (!offsets || !output->files) {
        free(offsets);
        return phema_fail_memory(err);
    }
    struct phema_output_file *file = &output->files[output->n_files++];
    enum phema_status status = provenance_make(&provenance, plan, target, options, err);
    if (!status) {
        status = phema_safetensors_layout(&file->header, &file->header_size, offsets,
                                          &file->size_bytes, tensors, series->n_tensors,
                                          provenance.items, provenance.n, err);
        provenance_clear(&provenance);
    }
    for (size_t i = 0; !status && i < series->n_tensors; i++)
        places[i] = (struct phema_place){.offset = offsets[i] - file->header_size};
    output->places = places;
    output->size_bytes = file->size_bytes;
    free(offsets);
    return status ? phema_fail_in(err, status, "%s", output->path) : PHEMA_OK;
}

PHEMA_FALLIBLE phema_outputs_make(struct phema_outputs *out, const struct phema_plan *plan,
                                  const struct phema_outputs_options *options,
                                  struct phema_error *err)
{
    const struct phema_series *series = plan->series;
    struct phema_outputs outputs = {.m = plan->m};
    outputs.items = calloc(plan->m ? plan->m : 1, sizeof(*outputs.items));
    outputs.dtypes = calloc(series->n_tensors + 1, sizeof(*outputs.dtypes));
    outputs.places = calloc(series->n_tensors + 1, sizeof(*outputs.places));
    struct phema_tensor *tensors = calloc(series->n_tensors + 1, sizeof(*tensors));
    enum phema_status status = PHEMA_OK;
    if (!outputs.items || !outputs.dtypes || !outputs.places || !tensors)
        status = phema_fail_memory(err);
    if (!status)
        status = name_outputs(&outputs, plan, options->out, err);
    for (size_t i = 0; !status && i < series->n_tensors; i++) {
        tensors[i] = series->tensors[i].tensor;
        tensors[i].dtype = outputs.dtypes[i] = dtype_written(&series->tensors[i], options);
        tensors[i].size_bytes = phema_dtype_bytes(tensors[i].dtype, tensors[i].n_elems);
    }
    for (size_t j = 0; !status && j < plan->m; j++)
        status = lay_out(&outputs.items[j], outputs.places, plan, &plan->targets[j], tensors,
                         options, err);
    free(tensors);
    if (status) {
        phema_outputs_clear(&outputs);
        return status;
    }
    *out = outputs;
    return PHEMA_OK;
}

static void clear_output(struct phema_output *output)
{
    for (size_t f = 0; f < output->n_files; f++) {
        free(output->files[f].name);
        free(output->files[f].header);
    }
    free(output->files);
    free(output->sidecar);
    free(output->path);
}

void phema_outputs_clear(struct phema_outputs *outputs)
{
    for (size_t j = 0; outputs->items && j < outputs->m; j++)
        clear_output(&outputs->items[j]);
    for (size_t f = 0; f < outputs->n_side_files; f++) {
        free(outputs->side_files[f].name);
        free(outputs->side_files[f].source);
        free(outputs->side_files[f].text);
    }
    free(outputs->side_files);
    free(outputs->items);
    free(outputs->dtypes);
    free(outputs->places);
    phema_checkpoint_close(outputs->into);
    free(outputs->made_directory);
    *outputs = (struct phema_outputs){0};
}
