// SPDX-License-Identifier: Apache-2.0
/* cmd_inspect.c - what is in a checkpoint, or in a directory of snapshots. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "phema/cleanup.h"
#include "phema/formats.h"
#include "phema/json.h"
#include "report.h"
#include "shared.h"

struct inspect_values {
    struct cli_common common;
    struct cli_texts paths;
    struct cli_texts allow_global;
    const char *tensor, *layout, *name_regex, *key;
    bool is_raw;
};

/* ---- One checkpoint ---- */

static void write_shape(struct phema_text *out, const struct phema_tensor *tensor)
{
    phema_text_puts(out, "[");
    for (unsigned d = 0; d < tensor->rank; d++)
        phema_text_printf(out, "%s%llu", d ? ", " : "", (unsigned long long)tensor->shape[d]);
    phema_text_puts(out, "]");
}

static void write_tensor_json(struct phema_json_out *out, const struct phema_checkpoint *checkpoint,
                              const struct phema_tensor *tensor)
{
    phema_json_out_open(out, NULL, '{');
    phema_json_out_bytes(out, "name", tensor->name, tensor->name_size);
    phema_json_out_string(out, "dtype", phema_dtype_name(tensor->dtype));
    phema_json_out_open(out, "shape", '[');
    for (unsigned d = 0; d < tensor->rank; d++)
        phema_json_out_u64(out, NULL, tensor->shape[d]);
    phema_json_out_close(out, ']');
    phema_json_out_string(out, "file", phema_checkpoint_file_label(checkpoint, tensor->file));
    if (tensor->is_decoded) {
        phema_json_out_null(out, "offset"); /* of the content, not of the file */
    } else if (tensor->stride) {
        phema_json_out_null(out, "offset");
        phema_json_out_u64(out, "first_element", tensor->offset);
        phema_json_out_open(out, "stride", '[');
        for (unsigned d = 0; d < tensor->rank; d++)
            phema_json_out_u64(out, NULL, tensor->stride[d]);
        phema_json_out_close(out, ']');
    } else {
        phema_json_out_u64(out, "offset", tensor->offset);
    }
    phema_json_out_u64(out, "nbytes", tensor->size_bytes);
    if (tensor->kind != PHEMA_KIND_UNKNOWN)
        phema_json_out_string(out, "kind", tensor->kind == PHEMA_KIND_BUFFER ? "buffer" : "param");
    phema_json_out_close(out, '}');
}

/* A number that the metadata hold as text; null when they do not. */
static void write_fact(struct phema_json_out *out, const struct phema_checkpoint *checkpoint,
                       const char *name, const char *key)
{
    const char *text = phema_checkpoint_metadatum(checkpoint, key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : PHEMA_UNKNOWN;
    phema_json_out_number(out, name, text && end != text && !*end ? value : PHEMA_UNKNOWN);
}

static void write_checkpoint_json(struct phema_json_out *out,
                                  const struct phema_checkpoint *checkpoint, bool is_inner)
{
    phema_json_out_open(out, NULL, '{');
    if (!is_inner)
        phema_json_out_u64(out, "version", 1);
    phema_json_out_string(out, "file", phema_checkpoint_path(checkpoint));
    phema_json_out_string(out, "format", phema_checkpoint_format(checkpoint));
    phema_json_out_open(out, "metadata", '{');
    for (size_t i = 0; i < phema_checkpoint_n_metadata(checkpoint); i++) {
        const struct phema_metadata *item = &phema_checkpoint_metadata(checkpoint)[i];
        phema_json_out_key(out, item->key, item->key_size);
        phema_json_out_bytes(out, NULL, item->value, item->value_size);
    }
    phema_json_out_close(out, '}');
    phema_json_out_open(out, "tensors", '[');
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++)
        write_tensor_json(out, checkpoint, &phema_checkpoint_tensors(checkpoint)[i]);
    phema_json_out_close(out, ']');
    write_fact(out, checkpoint, "time", "posthoc_ema.time");
    write_fact(out, checkpoint, "sigma_rel", "posthoc_ema.sigma_rel");
    phema_json_out_close(out, '}');
}

static void write_checkpoint(struct phema_text *out, const struct phema_checkpoint *checkpoint)
{
    size_t n = phema_checkpoint_n_tensors(checkpoint);
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    uint64_t elems = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        elems += tensors[i].n_elems;
        bytes += tensors[i].size_bytes;
    }
    struct phema_name_buffer size, name;
    phema_text_puts_shown(out, phema_checkpoint_path(checkpoint));
    phema_text_printf(out, ": %s, %zu tensor%s, %llu elements, %s\n",
                      phema_checkpoint_format(checkpoint), n, n == 1 ? "" : "s",
                      (unsigned long long)elems, phema_size_shown(&size, bytes));
    for (size_t i = 0; i < phema_checkpoint_n_metadata(checkpoint); i++) {
        const struct phema_metadata *item = &phema_checkpoint_metadata(checkpoint)[i];
        phema_text_printf(out, "  %s = ", phema_name_shown(&name, item->key, item->key_size));
        phema_text_printf(out, "%s\n", phema_name_shown(&name, item->value, item->value_size));
    }
    for (size_t i = 0; i < n; i++) {
        struct phema_text shape = {0};
        write_shape(&shape, &tensors[i]);
        phema_text_printf(out, "  %-11s %-22s %9s  %s%s\n", phema_dtype_name(tensors[i].dtype),
                          shape.data ? shape.data : "",
                          phema_size_shown(&size, tensors[i].size_bytes),
                          phema_name_shown(&name, tensors[i].name, tensors[i].name_size),
                          tensors[i].stride ? "  (strided)" : "");
        phema_text_clear(&shape);
    }
    for (size_t i = 0; i < phema_checkpoint_n_warnings(checkpoint); i++)
        (void)fprintf(stderr, "%s: %s\n", phema_checkpoint_path(checkpoint),
                      phema_checkpoint_warning(checkpoint, i));
}

/* ---- The bytes of one tensor ---- */

static enum phema_status write_raw(const struct phema_checkpoint *checkpoint, const char *wanted,
                                   struct phema_error *err)
{
    const struct phema_tensor *tensor = phema_checkpoint_find(checkpoint, wanted, strlen(wanted));
    struct phema_name_buffer name;
    if (!tensor)
        return phema_fail(err, PHEMA_NO, "%s: has no tensor '%s'",
                          phema_checkpoint_path(checkpoint),
                          phema_name_shown(&name, wanted, strlen(wanted)));
    static const uint64_t chunk = 32768; /* elements, even: of F4 two are a byte */
    uint8_t scratch[32768 * 16];
    struct phema_reader *reader = NULL;
    enum phema_status status = phema_reader_open(&reader, checkpoint, err);
    for (uint64_t first = 0; !status && first < tensor->n_elems; first += chunk) {
        uint64_t n = tensor->n_elems - first < chunk ? tensor->n_elems - first : chunk;
        size_t size = (size_t)(n * phema_dtype_bits(tensor->dtype) / 8);
        const uint8_t *data = NULL;
        status = phema_reader_read(&data, reader, tensor, first, n, scratch, err);
        if (status)
            break;
        phema_cleanup_touch(data, size); /* a file that was cut is named, not standard output */
        if (fwrite(data, 1, size, stdout) != size)
            status = phema_fail(err, PHEMA_ERR_OUTPUT, "standard output: %s", strerror(errno));
    }
    phema_reader_close(reader);
    if (!status && fflush(stdout))
        status = phema_fail(err, PHEMA_ERR_OUTPUT, "standard output: %s", strerror(errno));
    return status;
}

/* ---- A series ---- */

static void write_series(struct phema_text *out, const struct phema_series *series)
{
    int width = 4;
    for (size_t k = 0; k < series->n; k++)
        if ((int)strlen(series->snapshots[k].label) > width)
            width = (int)strlen(series->snapshots[k].label);
    /* names of EDM2 and pytorch-posthoc-ema count otherwise than the clock of the average */
    bool is_renamed = false;
    for (size_t k = 0; k < series->n; k++)
        is_renamed |= series->snapshots[k].time != series->snapshots[k].named_time;
    phema_text_printf(out, "%-*s %14s %10s%s\n", width, "file", series->unit, "sigma_rel",
                      is_renamed ? "         named" : "");
    for (size_t k = 0; k < series->n; k++) {
        const struct phema_snapshot *snapshot = &series->snapshots[k];
        struct phema_name_buffer time, label;
        phema_text_printf(out, "%-*s %14s ", width,
                          phema_name_shown(&label, snapshot->label, strlen(snapshot->label)),
                          phema_number_shown(&time, snapshot->time));
        if (isnan(snapshot->sigma_rel))
            phema_text_printf(out, "%10s", "unknown");
        else
            phema_text_printf(out, "%10.6g", snapshot->sigma_rel);
        if (is_renamed)
            phema_text_printf(out, " %13s", phema_number_shown(&time, snapshot->named_time));
        phema_text_puts(out, "\n");
    }
}

static void write_series_json(struct phema_json_out *out, const struct phema_series *series,
                              bool is_inner)
{
    phema_json_out_open(out, NULL, '{');
    if (!is_inner)
        phema_json_out_u64(out, "version", 1);
    phema_json_out_string(out, "file", series->root);
    phema_json_out_string(out, "layout", series->layout);
    phema_json_out_string(out, "unit", series->unit);
    phema_json_out_open(out, "snapshots", '[');
    for (size_t k = 0; k < series->n; k++)
        report_snapshot_json(out, &series->snapshots[k]);
    phema_json_out_close(out, ']');
    phema_json_out_u64(out, "tensors", series->n_tensors);
    phema_json_out_close(out, '}');
}

/* A directory with an index, or one that holds no names of snapshots, is one checkpoint. */
static bool holds_index(const char *path)
{
    static const char *const names[] = {"model.safetensors.index.json",
                                        "diffusion_pytorch_model.safetensors.index.json",
                                        ".metadata"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *file = NULL;
        struct stat st;
        if (asprintf(&file, "%s/%s", path, names[i]) < 0)
            return false;
        bool is_there = stat(file, &st) == 0;
        free(file);
        if (is_there)
            return true;
    }
    return false;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_series(const char *path)
{
    bool is_manifest = phema_ends_with(path, ".json") && !phema_ends_with(path, ".index.json");
    return path[0] == '@' || is_manifest || (is_directory(path) && !holds_index(path));
}

static enum phema_status inspect_series(const struct inspect_values *given, const char *path,
                                        struct phema_text *text, struct phema_json_out *json,
                                        struct phema_error *err)
{
    struct phema_series_options options = {
        .snapshots = path,
        .layout = given->layout,
        .name_regex = given->name_regex,
        .key = given->key,
        .from = -HUGE_VAL,
        .to = HUGE_VAL,
        .checkpoint = {given->allow_global.items, given->allow_global.n},
        .needs_no_profiles = true,
        .command = given->common.command,
        .command_tail = given->common.command_tail};
    struct phema_series *series = NULL;
    enum phema_status status = phema_series_open(&series, &options, err);
    if (status)
        return status;
    report_series(&given->common, series);
    if (given->common.is_json)
        write_series_json(json, series, given->paths.n > 1);
    else
        write_series(text, series);
    phema_series_close(series);
    return PHEMA_OK;
}

/* ---- Together ---- */

static enum phema_status inspect_checkpoint(const struct inspect_values *given, const char *path,
                                            struct phema_text *text, struct phema_json_out *json,
                                            struct phema_error *err)
{
    struct phema_checkpoint_options options = {given->allow_global.items, given->allow_global.n};
    struct phema_checkpoint *checkpoint = NULL;
    enum phema_status status = phema_checkpoint_open(&checkpoint, path, &options, err);
    if (status)
        return status;
    if (given->is_raw)
        status = write_raw(checkpoint, given->tensor, err);
    else if (given->common.is_json)
        write_checkpoint_json(json, checkpoint, given->paths.n > 1);
    else
        write_checkpoint(text, checkpoint);
    phema_checkpoint_close(checkpoint);
    return status;
}

static enum phema_status inspect(const struct inspect_values *given, const char *path,
                                 struct phema_text *text, struct phema_json_out *json,
                                 struct phema_error *err)
{
    if (!is_series(path) || given->is_raw)
        return inspect_checkpoint(given, path, text, json, err);
    enum phema_status status = inspect_series(given, path, text, json, err);
    struct phema_error series_err = *err;
    /* a directory without snapshots may be a checkpoint by itself */
    if (status == PHEMA_ERR_INPUTS && is_directory(path) &&
        inspect_checkpoint(given, path, text, json, err) == PHEMA_OK)
        return PHEMA_OK;
    if (status)
        *err = series_err;
    return status;
}

static enum phema_status run(void *values, struct phema_error *err)
{
    const struct inspect_values *given = values;
    if (given->is_raw != (given->tensor != NULL) || (given->is_raw && given->paths.n > 1))
        return phema_fail(err, PHEMA_ERR_USAGE,
                          "inspect: --tensor NAME and --raw go together, with one file");
    struct phema_text text = {0};
    struct phema_json_out json = {.text = &text, .is_pretty = true};
    bool is_wrapped = given->common.is_json && given->paths.n > 1;
    if (is_wrapped) {
        phema_json_out_open(&json, NULL, '{');
        phema_json_out_u64(&json, "version", 1);
        phema_json_out_open(&json, "files", '[');
    }
    enum phema_status status = PHEMA_OK;
    for (size_t i = 0; !status && i < given->paths.n; i++)
        status = inspect(given, given->paths.items[i], &text, &json, err);
    if (is_wrapped) {
        phema_json_out_close(&json, ']');
        phema_json_out_close(&json, '}');
    }
    if (given->common.is_json)
        phema_text_puts(&text, "\n");
    if (!status && !given->is_raw)
        status = cli_print(&text, err);
    phema_text_clear(&text);
    return status;
}

static const struct cli_opt rows[] = {
    {"FILE|DIR", INPUT, CLI_OPERANDS, CLI_ROW(inspect_values, paths), NULL,
     "checkpoints, or directories of snapshots", 0, 0},
    {"layout", INPUT, CLI_CHOICE, CLI_ROW(inspect_values, layout),
     "auto|own|edm2|ema-pytorch|posthoc-ema|manifest",
     "who wrote the snapshots of a directory; auto:\nrecognised by names", 0, 0},
    {"name-regex", INPUT, CLI_TEXT, CLI_ROW(inspect_values, name_regex), "RE",
     "what names say: groups (?<time>..), (?<sigma>..)\nor (?<index>..)", 0, 0},
    {"key", INPUT, CLI_TEXT, CLI_ROW(inspect_values, key), "PATH",
     "subtree of the snapshots of a directory; . for all", 0, 0},
    CLI_PICKLE_ROWS(inspect_values, allow_global),
    {"tensor", OUTPUT, CLI_TEXT, CLI_ROW(inspect_values, tensor), "NAME",
     "this tensor alone, with --raw", 0, 0},
    {"raw", OUTPUT, CLI_FLAG, CLI_ROW(inspect_values, is_raw), NULL,
     "write the tensor's bytes: C order, little-endian", 0, 0},
    CLI_COMMON_ROWS(inspect_values),
    {0},
};

const struct cli_verb cli_inspect = {
    .name = "inspect",
    .summary = "what is in a checkpoint or a series of snapshots",
    .options = rows,
    .examples = "  posthoc-ema inspect ckpts/\n"
                "      the snapshots of a directory: times and widths\n"
                "  posthoc-ema inspect --json model.safetensors\n"
                "      every tensor: dtype, shape, place\n"
                "  posthoc-ema inspect --tensor conv_in.weight --raw model.pt > conv_in.bin\n"
                "      the bytes of one tensor\n",
    .values_size = sizeof(struct inspect_values),
    .run = run,
};
