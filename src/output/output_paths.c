// SPDX-License-Identifier: Apache-2.0
/* output_paths.c - OUT to form and file names. The extension of OUT chooses the form; outputs in a
 * directory get the form of the newest snapshot. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "phema/path.h"
#include "phema/setting.h"
#include "phema/writer.h"

#include "outputs.h"

/* The form that an output has by the end of its name. */
static bool find_form(enum phema_output_form *form, const char **extension, const char *name)
{
    static const enum phema_output_form forms[] = {
        [PHEMA_OUTPUT_NEW] = PHEMA_FORM_FRESH,
        [PHEMA_OUTPUT_COMPRESSED] = PHEMA_FORM_COMPRESSED,
        [PHEMA_OUTPUT_COPY] = PHEMA_FORM_TEMPLATE,
    };
    const struct phema_format_info *format =
        phema_format_from_path(extension, name, PHEMA_NAMES_OUTPUT);
    if (format)
        *form = forms[format->output];
    return format != NULL;
}

/* Time and width in file names: at least seven digits, at least three decimals. */
static void format_time(char *buffer, size_t size, double time)
{
    struct phema_name_buffer shown; /* 3000.4, not 3000.4000000000001 */
    if (time == floor(time))
        (void)snprintf(buffer, size, "%07.0f", time);
    else
        (void)snprintf(buffer, size, "%s", phema_number_format(&shown, time));
}

static void format_sigma(char *buffer, size_t size, double sigma_rel)
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
    (void)snprintf(buffer, size, "%.6f", sigma_rel); /* converted from a gamma */
}

static enum phema_status fail_empty(struct phema_error *err)
{
    return phema_suggest(err, phema_fail(err, PHEMA_ERR_USAGE, "OUT is empty"), PHEMA_SET_OUT,
                         "out.safetensors");
}

/* {sigma} and {profile} both give the width, or the file part of another shape. {{ is one brace.
 *   path  out: the caller's, also after a failure */
static enum phema_status fill_template(char **path, const char *template,
                                       const struct phema_target *target, struct phema_error *err)
{
    char time[64], sigma[64];
    format_time(time, sizeof(time), target->named_time);
    format_sigma(sigma, sizeof(sigma), target->sigma_rel);
    const char *profile = target->file_part ? target->file_part : sigma;
    const struct {
        const char *field, *value;
    } fields[] = {{"{time}", time}, {"{sigma}", profile}, {"{profile}", profile}, {"{{", "{"}};
    struct phema_strbuf text = {0};
    enum phema_status status = PHEMA_OK;
    for (const char *at = template; *at && !status;) {
        size_t f = 0;
        while (f < ARRAY_LEN(fields) && strncmp(at, fields[f].field, strlen(fields[f].field)) != 0)
            f++;
        if (f < ARRAY_LEN(fields)) {
            phema_strbuf_puts(&text, fields[f].value);
            at += strlen(fields[f].field);
        } else if (*at == '{') {
            status =
                phema_fail(err, PHEMA_ERR_USAGE,
                           "%s: a template may hold {time}, {sigma} and {profile} alone; {{ is a "
                           "brace of the name",
                           template);
            status = phema_suggest(err, status, PHEMA_SET_OUT, "averages/");
        } else {
            phema_strbuf_append(&text, at++, 1);
        }
    }
    if (!status)
        status = phema_strbuf_check(&text, err);
    if (!status && !text.data)
        status = fail_empty(err);
    *path = text.data;
    return status;
}

/* Whether --into is a directory with .metadata, that file, or a directory of such directories. */
static bool copies_directory(const struct phema_outputs_options *options)
{
    static const char name[] = ".metadata";
    char *path = NULL;
    if (!options->into || asprintf(&path, "%s/%s", options->into, name) < 0)
        return false;
    bool is_one = phema_path_exists(path) ||
                  strcmp(phema_path_last_name(options->into), name) == 0 ||
                  phema_directory_has_parts(options->into);
    free(path);
    return is_one;
}

/* A folder with one file of tensors, or shards of PyTorch, and the configuration of the model:
 * libraries load the folder. */
static bool is_model_folder(const struct draft *draft)
{
    const struct phema_series *series = draft->plan->series;
    const char *path = phema_checkpoint_path(draft->newest);
    struct phema_strbuf config = {0};
    struct stat st;
    phema_strbuf_printf(&config, "%s/" OUTPUTS_CONFIG, path);
    bool has_config = !config.is_failed && stat(config.data, &st) == 0 && S_ISREG(st.st_mode);
    phema_strbuf_clear(&config);
    return has_config && phema_path_is_directory(path) &&
           (phema_checkpoint_n_files(draft->newest) == 1 ||
            strcmp(phema_checkpoint_format(draft->newest), "torch-sharded") == 0) &&
           !series->snapshots[series->n - 1].key;
}

/* Form and extension of outputs in a directory: those of the newest snapshot. */
static void choose_form(enum phema_output_form *form, const char **end, const struct draft *draft)
{
    const char *into = draft->options->into;
    *form = PHEMA_FORM_FRESH;
    *end = phema_format_extension("safetensors");
    if (draft->options->ranks) {
        *form = PHEMA_FORM_DISTRIBUTED;
        *end = "";
        return;
    }
    if (copies_directory(draft->options)) {
        *form = PHEMA_FORM_DISTRIBUTED_TEMPLATE;
        *end = "";
        return;
    }
    if (!into && (draft->options->shard_bytes || is_model_folder(draft) ||
                  strcmp(phema_checkpoint_format(draft->newest), "sharded") == 0)) {
        *form = PHEMA_FORM_SHARDED;
        *end = "";
        return;
    }
    const char *path = into ? into : phema_file_path(phema_checkpoint_file(draft->newest, 0));
    enum phema_output_form named = PHEMA_FORM_FRESH;
    const char *found = NULL;
    if ((into || phema_checkpoint_n_files(draft->newest) == 1) && find_form(&named, &found, path) &&
        (named != PHEMA_FORM_TEMPLATE || into ||
         !draft->plan->series->snapshots[draft->plan->series->n - 1].key)) {
        *form = named;
        *end = found;
    }
}

const char *outputs_extension(const char *path)
{
    const char *end = strrchr(path, '.');
    return end && !strchr(end, '/') ? end : NULL;
}

/* Proposes another OUT. What is there already may be a snapshot, and the command may have --force. */
static enum phema_status suggest_new(struct phema_error *err, enum phema_status status,
                                     const char *out)
{
    struct phema_strbuf name = {0};
    const char *last = phema_path_last_name(out);
    bool is_there = *last && phema_path_exists(out);
    phema_strbuf_printf(&name, "%.*s%s%s", (int)(last - out), out, is_there ? "out-" : "", last);
    if (name.data && !name.is_failed)
        (void)phema_suggest(err, status, PHEMA_SET_OUT, name.data);
    phema_strbuf_clear(&name);
    return status;
}

enum phema_status outputs_fail_name(struct phema_error *err, enum phema_status status,
                                    const char *out)
{
    struct phema_strbuf name = {0};
    const char *end = outputs_extension(out);
    size_t size = end ? (size_t)(end - out) : strlen(out);
    while (size > 1 && out[size - 1] == '/')
        size--;
    struct stat st;
    bool is_device = stat(out, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
    bool is_named = size > 0 && out[size - 1] != '/' && out[size - 1] != '.' && !is_device;
    phema_strbuf_printf(&name, "%.*s%s", is_named ? (int)size : 3, is_named ? out : "out",
                        phema_format_extension("safetensors"));
    if (name.data && !name.is_failed)
        (void)suggest_new(err, status, name.data);
    phema_strbuf_clear(&name);
    return status;
}

static enum phema_status check_one_file(const char *out, size_t m, struct phema_error *err)
{
    return m > 1 && !strchr(out, '{')
               ? phema_suggest(
                     err,
                     phema_fail(err, PHEMA_ERR_USAGE,
                                "%s: %zu outputs do not fit one file; name a directory, or put "
                                "{sigma} and {time} into the name",
                                out, m),
                     PHEMA_SET_OUT, "averages/")
               : PHEMA_OK;
}

/* Where OUT names a file; form, end: out, of its extension */
static bool names_file(enum phema_output_form *form, const char **end,
                       const struct phema_outputs_options *options)
{
    const char *out = options->out;
    const char *copied = options->into ? outputs_extension(options->into) : NULL;
    if (copies_directory(options))
        return false;
    return !phema_ends_with(out, "/") && !phema_path_is_directory(out) &&
           (find_form(form, end, out) || (copied && phema_ends_with(out, copied)));
}

/* Directories that are missing are made, in one that is there. */
static enum phema_status check_parent(const struct phema_outputs_options *options,
                                      struct phema_error *err)
{
    const char *out = options->out, *slash = strrchr(out, '/');
    size_t size = phema_path_trimmed_size(out);
    char *place = strndup(out, size), *above = place ? phema_path_directory(place) : NULL;
    while (above && !phema_path_exists(above) && strcmp(above, place) != 0) {
        free(place);
        place = above;
        above = phema_path_directory(place);
    }
    bool is_file = place && out[size] == '/' && phema_path_exists(place);
    enum phema_status status = !above ? phema_fail_memory(err)
                               : is_file || phema_path_is_url(out)
                                   ? phema_writer_check_parent(out, err)
                                   : phema_writer_check_parent(place, err);
    free(place);
    free(above);
    const char *usual = options->is_conversion ? "out.safetensors" : "averages/";
    return status ? suggest_new(err, status, slash && slash[1] ? slash + 1 : usual) : PHEMA_OK;
}

PHEMA_FALLIBLE phema_outputs_check_out(const struct phema_outputs_options *options, size_t n,
                                       bool is_new, struct phema_error *err)
{
    enum phema_output_form form = PHEMA_FORM_FRESH;
    const char *end = NULL;
    struct stat st;
    if (options->into && stat(options->into, &st) != 0)
        return phema_fail(err, PHEMA_ERR_FILE, "%s: cannot be opened: %s", options->into,
                          phema_path_reason(options->into, errno));
    if (!names_file(&form, &end, options) || options->shard_bytes || options->ranks)
        return strchr(options->out, '{') ? PHEMA_OK : check_parent(options, err);
    enum phema_status status = check_one_file(options->out, n, err);
    if (status || strchr(options->out, '{'))
        return status;
    status = check_parent(options, err);
    return status ? status : phema_writer_check_place(options->out, !is_new, err);
}

/* What OUT and the options ask for together. is_file: OUT names a file */
static enum phema_status check_options(const struct phema_outputs_options *options, bool is_file,
                                       size_t m, struct phema_error *err)
{
    const char *out = options->out, *end;
    enum phema_output_form named;
    if (options->into && options->shard_bytes)
        return phema_fail_setting(
            err, PHEMA_ERR_USAGE, PHEMA_SET_INTO,
            "writes a copy of one file, which %s would not be; give one of them",
            phema_setting_name(PHEMA_SET_SHARD_SIZE));
    if (options->ranks && (options->into || options->shard_bytes))
        return phema_fail_setting(
            err, PHEMA_ERR_USAGE, PHEMA_SET_RANKS,
            "writes a new distributed checkpoint, which %s of %s would not be; give one of them",
            options->into ? "the copy" : "the shards",
            phema_setting_name(options->into ? PHEMA_SET_INTO : PHEMA_SET_SHARD_SIZE));
    if (is_file && (options->shard_bytes || options->ranks))
        return phema_suggest(
            err,
            phema_fail(err, PHEMA_ERR_USAGE, "%s: %s makes a directory of files; end OUT in /", out,
                       phema_setting_name(options->ranks ? PHEMA_SET_RANKS : PHEMA_SET_SHARD_SIZE)),
            PHEMA_SET_OUT, "model/");
    if (is_file && check_one_file(out, m, err))
        return PHEMA_ERR_USAGE;
    if (copies_directory(options) && !phema_ends_with(out, "/") && find_form(&named, &end, out))
        return phema_suggest(err,
                             phema_fail(err, PHEMA_ERR_USAGE,
                                        "%s: is named as a file, and a copy of %s is a directory; "
                                        "end OUT in /",
                                        out, options->into),
                             PHEMA_SET_OUT, "model/");
    return PHEMA_OK;
}

/* An OUT that names no file and no checkpoint of several files: a directory, or a template. */
static enum phema_status check_names(const struct phema_outputs_options *options, size_t m,
                                     struct phema_error *err)
{
    const char *out = options->out;
    bool is_template = strchr(out, '{') != NULL, is_slashed = phema_ends_with(out, "/");
    if (is_template ? is_slashed : m > 1 || is_slashed || phema_path_is_directory(out))
        return PHEMA_OK;
    (void)phema_fail(err, PHEMA_ERR_USAGE,
                     "%s: unknown format; end OUT in .safetensors, "
                     ".safetensors.zst, .pt, .ckpt or .pkl, or in / for a "
                     "directory",
                     out);
    return outputs_fail_name(err, PHEMA_ERR_USAGE, out);
}

/* OUT as a template of the names of all targets; sets the form. */
static enum phema_status choose_template(struct phema_strbuf *template, struct draft *draft,
                                         struct phema_error *err)
{
    const struct phema_outputs_options *options = draft->options;
    const char *out = options->out, *end = NULL;
    size_t size = strlen(out), m = draft->plan->m;
    if (size == 0)
        return fail_empty(err);
    enum phema_output_form *form = &draft->outputs->form;
    bool is_template = strchr(out, '{') != NULL;
    bool is_file = names_file(form, &end, options);
    enum phema_status status = check_options(options, is_file, m, err);
    if (status)
        return status;
    if (!is_file)
        choose_form(form, &end, draft);
    bool is_checkpoint = phema_output_traits(draft->outputs)->is_directory;
    if (options->is_conversion && (is_template || (!is_file && !is_checkpoint)))
        return outputs_fail_name(err,
                                 phema_fail(err, PHEMA_ERR_USAGE,
                                            "%s: %s writes one checkpoint; end OUT in the format "
                                            "to write, such as .safetensors",
                                            out, phema_setting_name(PHEMA_SET_CONVERT)),
                                 out);
    if (!is_file && !is_checkpoint)
        status = check_names(options, m, err);
    if (status)
        return status;
    size = is_checkpoint ? phema_path_trimmed_size(out) : size;
    phema_strbuf_append(template, out, size);
    /* one checkpoint of several files is OUT itself; other outputs in a directory need names */
    if (!is_file && !is_template && !(is_checkpoint && m == 1))
        phema_strbuf_printf(template, "%sphema-{time}-{sigma}%s", out[size - 1] == '/' ? "" : "/",
                            end);
    else if (!is_file && is_template && !is_checkpoint)
        phema_strbuf_printf(template, "phema-{time}-{sigma}%s", end);
    return phema_strbuf_check(template, err);
}

PHEMA_FALLIBLE outputs_check_name(bool *is_copy, struct draft *draft, struct phema_error *err)
{
    const struct phema_outputs_options *options = draft->options;
    struct phema_strbuf template = {0};
    enum phema_status status = choose_template(&template, draft, err);
    phema_strbuf_clear(&template);
    enum phema_output_form form = PHEMA_FORM_FRESH;
    const char *end = NULL;
    *is_copy = names_file(&form, &end, options) && form == PHEMA_FORM_TEMPLATE && !options->into;
    return status;
}

/* The directory to create for the outputs, where it does not exist. */
static enum phema_status find_directory(struct draft *draft, const char *template,
                                        struct phema_error *err)
{
    if (!template)
        return PHEMA_OK;
    const char *slash = strrchr(template, '/');
    size_t size = slash ? (size_t)(slash - template) : 0;
    if (!size || memchr(template, '{', size))
        return PHEMA_OK;
    char *directory = phema_arena_copy(draft->arena, template, size);
    if (!directory)
        return phema_fail_memory(err);
    if (!phema_path_is_directory(directory))
        draft->outputs->made_directory = directory;
    return PHEMA_OK;
}

static bool are_same_targets(const struct phema_target *a, const struct phema_target *b)
{
    return a->spec && b->spec && strcmp(a->spec, b->spec) == 0 && a->time == b->time;
}

static enum phema_status check_distinct(const struct phema_outputs *outputs,
                                        const struct phema_target *targets, struct phema_error *err)
{
    for (size_t j = 1; j < outputs->m; j++)
        for (size_t i = 0; i < j; i++)
            if (strcmp(outputs->items[i].path, outputs->items[j].path) == 0) {
                if (are_same_targets(&targets[i], &targets[j]))
                    return phema_fail(err, PHEMA_ERR_USAGE,
                                      "the average %s at %.15g is given twice", targets[i].spec,
                                      targets[i].named_time);
                (void)phema_fail(err, PHEMA_ERR_USAGE,
                                 "%s: is the name of two targets; put {sigma} and {time} into OUT",
                                 outputs->items[i].path);
                return phema_suggest(err, PHEMA_ERR_USAGE, PHEMA_SET_OUT, "averages/");
            }
    return PHEMA_OK;
}

/* Directories are made where they have one name for all targets. */
static enum phema_status check_folders(const struct phema_outputs *outputs, const char *template,
                                       const char *out, struct phema_error *err)
{
    const char *slash = strrchr(template, '/'), *at = template;
    while ((at = strchr(at, '{')) && at[1] == '{') /* one that is written twice is meant as it is */
        at += 2;
    bool are_there = true;
    for (size_t j = 0; j < outputs->m && are_there && slash && at && at < slash; j++) {
        char *folder = phema_path_directory(outputs->items[j].path);
        if (!folder)
            return phema_fail_memory(err);
        are_there = phema_path_is_directory(folder);
        free(folder);
    }
    if (are_there)
        return PHEMA_OK;
    (void)phema_fail(err, PHEMA_ERR_OUTPUT,
                     "%s: its directories are not made, since {sigma} or {time} is in their names; "
                     "put these into the last part of OUT",
                     out);
    return phema_suggest(err, PHEMA_ERR_OUTPUT, PHEMA_SET_OUT, "averages/");
}

PHEMA_FALLIBLE outputs_set_paths(struct draft *draft, struct phema_error *err)
{
    struct phema_outputs *outputs = draft->outputs;
    struct phema_strbuf template = {0};
    enum phema_status status = choose_template(&template, draft, err);
    if (!status)
        status = find_directory(draft, template.data, err);
    for (size_t j = 0; j < outputs->m && !status; j++)
        status =
            fill_template(&outputs->items[j].path, template.data, &draft->plan->targets[j], err);
    if (!status)
        status = check_folders(outputs, template.data, draft->options->out, err);
    phema_strbuf_clear(&template);
    if (draft->options->into && !copies_directory(draft->options))
        outputs->form = PHEMA_FORM_TEMPLATE;
    return status ? status : check_distinct(outputs, draft->plan->targets, err);
}
