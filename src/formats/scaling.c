// SPDX-License-Identifier: Apache-2.0
/* scaling.c - finds the scales of fp8 tensors by name and shape. Writers and names are listed in
 * docs/formats/README.md. Shapes decide what a number of the scale serves: the tensor, a row or a
 * block. */
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "phema/json.h"
#include "phema/strbuf.h"

/* Of DeepSeek-V3 and transformers, where config.json does not say. */
#define DEFAULT_BLOCK 128

#define MAX_CONFIG_BYTES ((size_t)64 << 20)

/* Of a scale in a compressed file: 256 MiB, the blocks of 10^12 codes. */
#define MAX_HELD_SCALES ((uint64_t)1 << 26)

struct finding {
    struct phema_checkpoint *checkpoint;
    struct phema_strbuf name; /* of a scale that may exist */
    bool knows_config;
};

/* ---- config.json ---- */

static const struct phema_json *member(const struct phema_json *object, const char *key)
{
    bool is_object = object && phema_json_type(object) == PHEMA_JSON_OBJECT;
    return is_object ? phema_json_get(object, key) : NULL;
}

static enum phema_status read_config(struct scale_config *out, struct phema_span config,
                                     struct phema_error *err)
{
    uint64_t *size = out->block_size;
    struct phema_json *document = NULL;
    if (config.size > MAX_CONFIG_BYTES)
        return phema_fail(err, PHEMA_ERR_FILE, "expected at most %zu bytes, found %zu",
                          MAX_CONFIG_BYTES, config.size);
    enum phema_status status = phema_json_parse(&document, config, err);
    if (status)
        return status;
    const struct phema_json *quantisation = member(document, "quantization_config");
    const struct phema_json *list = member(quantisation, "weight_block_size");
    const struct phema_json *kind = member(quantisation, "scale_fmt");
    size_t kind_size = 0;
    const char *text = kind ? phema_json_string(kind, &kind_size) : NULL;
    out->is_power_of_two = text && phema_bytes_are(text, kind_size, "ue8m0");
    if (list && phema_json_type(list) != PHEMA_JSON_NULL) {
        bool is_pair = phema_json_length(list) == 2 &&
                       phema_json_u64(&size[0], phema_json_at(list, 0)) && size[0] > 0 &&
                       phema_json_u64(&size[1], phema_json_at(list, 1)) && size[1] > 0;
        if (!is_pair)
            status = phema_fail(err, PHEMA_ERR_FILE,
                                "quantization_config.weight_block_size: expected two numbers above "
                                "0, such as [128, 128]");
    }
    phema_json_free(document);
    return status;
}

/* Of config.json in the directory of the checkpoint's first file. */
static enum phema_status find_config(struct scale_config *out,
                                     const struct phema_checkpoint *checkpoint,
                                     struct phema_error *err)
{
    const char *path = phema_file_path(checkpoint->files[0].file);
    const char *slash = strrchr(path, '/');
    char *config = NULL;
    if (asprintf(&config, "%.*sconfig.json", slash ? (int)(slash - path) + 1 : 0, path) < 0)
        return phema_fail_memory(err);
    *out = (struct scale_config){.block_size = {DEFAULT_BLOCK, DEFAULT_BLOCK}};
    struct stat st;
    struct phema_file *file = NULL;
    enum phema_status status = PHEMA_OK;
    if (stat(config, &st) == 0) {
        status = phema_file_open(&file, config, err);
        if (!status)
            status = read_config(out, phema_file_span(file), err);
        phema_file_close(file);
    }
    if (status)
        (void)phema_fail_in(err, status, "config.json");
    free(config);
    return status;
}

/* ---- Names ---- */

static bool ends_with(const char *name, size_t size, const char *end)
{
    size_t end_size = strlen(end);
    return size >= end_size && memcmp(name + size - end_size, end, end_size) == 0;
}

/* The scales of codes: at most two are told apart. */
static enum phema_status find_scales(const struct phema_tensor *scales[2], size_t *n,
                                     struct finding *finding, const struct phema_tensor *codes,
                                     struct phema_error *err)
{
    static const char *const appended[] = {"_scale_inv", "_scale"};
    static const char *const replacing[] = {"scale_weight", "scale"}; /* "weight" */
    size_t size = codes->name_size, stem = size - strlen("weight");
    bool is_weight =
        ends_with(codes->name, size, "weight") && (stem == 0 || codes->name[stem - 1] == '.');
    *n = 0;
    for (size_t i = 0; i < ARRAY_LEN(appended) + ARRAY_LEN(replacing) * is_weight; i++) {
        bool is_appended = i < ARRAY_LEN(appended);
        struct phema_strbuf *name = &finding->name;
        name->size = 0;
        phema_strbuf_append(name, codes->name, is_appended ? size : stem);
        phema_strbuf_puts(name, is_appended ? appended[i] : replacing[i - ARRAY_LEN(appended)]);
        enum phema_status status = phema_strbuf_check(name, err);
        if (status)
            return status;
        const struct phema_tensor *found =
            phema_checkpoint_find(finding->checkpoint, name->data, name->size);
        if (found && *n < 2)
            scales[(*n)++] = found;
    }
    return PHEMA_OK;
}

static bool is_activation_scale(const struct phema_tensor *tensor)
{
    static const char *const ends[] = {"input_scale",      "output_scale",  "k_scale",
                                       "v_scale",          "q_scale",       "scale_input",
                                       "activation_scale", "input_scale_ub"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (!ends_with(tensor->name, tensor->name_size, ends[i]))
            continue;
        size_t at = tensor->name_size - strlen(ends[i]);
        if (at == 0 || tensor->name[at - 1] == '.' || tensor->name[at - 1] == '_')
            return true;
    }
    return false;
}

/* ---- Shapes ---- */

static uint64_t count_blocks(uint64_t n, uint64_t block)
{
    return n / block + (n % block != 0);
}

/* One number for a row: [rows], [rows, 1], [rows, 1, 1]. */
static bool fit_rows(struct phema_scaling *out, const struct phema_tensor *codes,
                     const struct phema_tensor *scale)
{
    if (codes->rank < 2 || scale->rank == 0 || scale->shape[0] != codes->shape[0] ||
        scale->n_elems != codes->shape[0])
        return false;
    out->rows = out->scale_rows = codes->shape[0];
    out->columns = out->block_columns = codes->n_elems / out->rows;
    out->block_rows = out->scale_columns = 1;
    return true;
}

/* The blocks of matrices and scales of known shapes. */
static bool fit_size(struct phema_scaling *out, const uint64_t size[2])
{
    out->block_rows = size[0];
    out->block_columns = size[1];
    if (count_blocks(out->rows, size[0]) == out->scale_rows &&
        count_blocks(out->columns, size[1]) == out->scale_columns)
        return true;
    if (out->rows % out->scale_rows || out->columns % out->scale_columns)
        return false;
    out->block_rows = out->rows / out->scale_rows;
    out->block_columns = out->columns / out->scale_columns;
    return true;
}

/* One number for a block of the last two dimensions. Blocks that are not of this size may divide
 * the tensor evenly: transformers derives them so. */
static bool fit_blocks(struct phema_scaling *out, const struct phema_tensor *codes,
                       const struct phema_tensor *scale, const uint64_t size[2])
{
    unsigned outer = codes->rank - 2;
    if (codes->rank < 2 || scale->rank != codes->rank)
        return false;
    for (unsigned d = 0; d < outer; d++)
        if (scale->shape[d] != codes->shape[d])
            return false;
    out->rows = codes->shape[outer];
    out->columns = codes->shape[outer + 1];
    out->scale_rows = scale->shape[outer];
    out->scale_columns = scale->shape[outer + 1];
    return fit_size(out, size);
}

bool phema_scaling_is_evident(const struct phema_scaling *scaling)
{
    static const uint64_t usual[2] = {DEFAULT_BLOCK, DEFAULT_BLOCK};
    struct phema_scaling evident = *scaling;
    bool is_of_rows = scaling->block_rows == 1 && scaling->block_columns == scaling->columns;
    return is_of_rows || (fit_size(&evident, usual) && evident.block_rows == scaling->block_rows &&
                          evident.block_columns == scaling->block_columns);
}

/* false: the shapes do not fit. Neither tensor is empty. */
static enum phema_status fit(bool *fits, struct phema_scaling *out, struct finding *finding,
                             const struct phema_tensor *codes, const struct phema_tensor *scale,
                             struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = finding->checkpoint;
    *fits = true;
    if (scale->n_elems == 1) {
        out->rows = out->block_rows = out->scale_rows = out->scale_columns = 1;
        out->columns = out->block_columns = codes->n_elems;
        return PHEMA_OK;
    }
    if (fit_rows(out, codes, scale))
        return PHEMA_OK;
    if (!finding->knows_config) {
        enum phema_status status = find_config(&checkpoint->scale_config, checkpoint, err);
        if (status)
            return status;
        finding->knows_config = checkpoint->has_blocks = true;
    }
    *fits = fit_blocks(out, codes, scale, checkpoint->scale_config.block_size);
    return PHEMA_OK;
}

/* ---- Faults ---- */

/* A sentence about the codes that cannot be read with this scale; NULL: its place and dtype are as
 * they should be. */
static const char *find_fault(const struct phema_tensor *codes, const struct phema_tensor *scale)
{
    if (codes->is_compressed && scale->n_elems > MAX_HELD_SCALES)
        return "has more numbers than are held in memory; decompress the file (zstd -d)";
    enum phema_dtype dtype = scale->dtype;
    if (dtype != PHEMA_F32 && dtype != PHEMA_BF16 && dtype != PHEMA_F16 && dtype != PHEMA_F64 &&
        dtype != PHEMA_F8_E8M0 && dtype != PHEMA_U8)
        return "expected F32, BF16, F16, F64, F8_E8M0 or U8";
    if (scale->stride)
        return "lies in strides";
    return scale->n_elems ? NULL : "is empty";
}

static enum phema_status set_fault(struct phema_checkpoint *checkpoint,
                                   const struct phema_tensor *codes, struct phema_strbuf *text,
                                   struct phema_error *err)
{
    if (!checkpoint->scale_faults)
        checkpoint->scale_faults = phema_arena_array(&checkpoint->arena, checkpoint->n_tensors + 1,
                                                     sizeof(*checkpoint->scale_faults));
    char *copy = text->data && !text->is_failed
                     ? phema_arena_copy(&checkpoint->arena, text->data, text->size)
                     : NULL;
    phema_strbuf_clear(text);
    if (!checkpoint->scale_faults || !copy)
        return phema_fail_memory(err);
    checkpoint->scale_faults[codes - checkpoint->tensors] = copy;
    return PHEMA_OK;
}

static enum phema_status set_scale_fault(struct phema_checkpoint *checkpoint,
                                         const struct phema_tensor *codes,
                                         const struct phema_tensor *scale, const char *fault,
                                         struct phema_error *err)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer shown;
    phema_strbuf_printf(&text, "its scale '%s' is %s ",
                        phema_name_escape(&shown, scale->name, scale->name_size),
                        phema_dtype_name(scale->dtype));
    phema_tensor_write_shape(&text, scale);
    phema_strbuf_printf(&text, ": %s", fault);
    return set_fault(checkpoint, codes, &text, err);
}

static enum phema_status set_shape_fault(struct phema_checkpoint *checkpoint,
                                         const struct phema_tensor *codes,
                                         const struct phema_tensor *scale, struct phema_error *err)
{
    struct phema_strbuf fault = {0};
    phema_strbuf_puts(&fault, "expected one number");
    if (codes->rank >= 2)
        phema_strbuf_printf(&fault,
                            ", or one for each of %llu rows, or for each block of %llu x %llu of ",
                            (unsigned long long)codes->shape[0],
                            (unsigned long long)checkpoint->scale_config.block_size[0],
                            (unsigned long long)checkpoint->scale_config.block_size[1]);
    if (codes->rank >= 2)
        phema_tensor_write_shape(&fault, codes);
    enum phema_status status = phema_strbuf_check(&fault, err);
    if (!status)
        status = set_scale_fault(checkpoint, codes, scale, fault.data, err);
    phema_strbuf_clear(&fault);
    return status;
}

static enum phema_status set_count_fault(struct phema_checkpoint *checkpoint,
                                         const struct phema_tensor *codes,
                                         const struct phema_tensor *const scales[2],
                                         struct phema_error *err)
{
    struct phema_strbuf text = {0};
    struct phema_name_buffer shown;
    phema_strbuf_printf(&text, "it has two scales, '%s'",
                        phema_name_escape(&shown, scales[0]->name, scales[0]->name_size));
    phema_strbuf_printf(&text, " and '%s'",
                        phema_name_escape(&shown, scales[1]->name, scales[1]->name_size));
    return set_fault(checkpoint, codes, &text, err);
}

const char *phema_checkpoint_scale_fault(const struct phema_checkpoint *checkpoint,
                                         const struct phema_tensor *tensor)
{
    return checkpoint->scale_faults ? checkpoint->scale_faults[tensor - checkpoint->tensors] : NULL;
}

/* ---- Tensors ---- */

/* Completes a scaling whose shapes are known, and gives it to the codes. */
static enum phema_status keep_scaling(struct phema_checkpoint *checkpoint,
                                      struct phema_tensor *codes, struct phema_tensor *scale,
                                      const struct phema_scaling *fitted, struct phema_error *err)
{
    struct phema_scaling *scaling = phema_arena_alloc(&checkpoint->arena, sizeof(*scaling));
    if (!scaling)
        return phema_fail_memory(err);
    *scaling = *fitted;
    scaling->name = scale->name;
    scaling->name_size = scale->name_size;
    scaling->codes = codes->dtype;
    scaling->dtype = scale->dtype == PHEMA_U8 ? PHEMA_F8_E8M0 : scale->dtype;
    scaling->is_power_of_two =
        scaling->dtype == PHEMA_F8_E8M0 || checkpoint->scale_config.is_power_of_two;
    scaling->distance = scale->offset - codes->offset;
    scaling->file = scale->file;
    scaling->rank = scale->rank;
    scaling->shape = scale->shape;
    scaling->n_elems = scale->n_elems;
    scaling->chunks = scale->chunks;
    scaling->n_chunks = scale->n_chunks;
    codes->scaling = scaling;
    scale->kind = PHEMA_KIND_SCALE;
    return PHEMA_OK;
}

static enum phema_status find_scaling(struct finding *finding, struct phema_tensor *codes,
                                      struct phema_error *err)
{
    struct phema_checkpoint *checkpoint = finding->checkpoint;
    const struct phema_tensor *scales[2];
    size_t n = 0;
    enum phema_status status = find_scales(scales, &n, finding, codes, err);
    if (status || n == 0)
        return status;
    if (n > 1)
        return set_count_fault(checkpoint, codes, scales, err);
    const char *fault = find_fault(codes, scales[0]);
    if (fault)
        return set_scale_fault(checkpoint, codes, scales[0], fault, err);
    struct phema_scaling scaling = {0};
    bool fits = false;
    if (codes->n_elems == 0) /* nothing is read */
        return PHEMA_OK;
    status = fit(&fits, &scaling, finding, codes, scales[0], err);
    if (status)
        return status;
    if (!fits)
        return set_shape_fault(checkpoint, codes, scales[0], err);
    struct phema_tensor *scale = &checkpoint->tensors[scales[0] - checkpoint->tensors];
    return keep_scaling(checkpoint, codes, scale, &scaling, err);
}

/* A shared listing has the blocks of the other checkpoint: its own config.json must agree. */
static enum phema_status check_alike(struct phema_checkpoint *checkpoint,
                                     const struct phema_checkpoint *alike, struct phema_error *err)
{
    checkpoint->has_blocks = alike->has_blocks;
    if (!alike->has_blocks)
        return PHEMA_OK;
    enum phema_status status = find_config(&checkpoint->scale_config, checkpoint, err);
    if (status)
        return status;
    const uint64_t *here = checkpoint->scale_config.block_size;
    const uint64_t *there = alike->scale_config.block_size;
    if (here[0] == there[0] && here[1] == there[1])
        return PHEMA_OK;
    return phema_fail(
        err, PHEMA_ERR_FILE,
        "config.json: blocks of fp8 tensors have %llu x %llu elements here, but %llu x "
        "%llu in that of %s",
        (unsigned long long)here[0], (unsigned long long)here[1], (unsigned long long)there[0],
        (unsigned long long)there[1], alike->path);
}

PHEMA_FALLIBLE scaling_find(struct phema_checkpoint *checkpoint,
                            const struct phema_checkpoint *alike, struct phema_error *err)
{
    if (checkpoint->is_alike && alike)
        return check_alike(checkpoint, alike, err);
    struct finding finding = {.checkpoint = checkpoint};
    enum phema_status status = PHEMA_OK;
    bool is_any = false;
    for (size_t i = 0; i < checkpoint->n_tensors && !status; i++) {
        enum phema_dtype dtype = checkpoint->tensors[i].dtype;
        if (dtype != PHEMA_F8_E4M3 && dtype != PHEMA_F8_E5M2)
            continue;
        status = find_scaling(&finding, &checkpoint->tensors[i], err);
        is_any = is_any || checkpoint->tensors[i].scaling;
    }
    phema_strbuf_clear(&finding.name);
    for (size_t i = 0; i < checkpoint->n_tensors && is_any && !status; i++) {
        struct phema_tensor *tensor = &checkpoint->tensors[i];
        if (phema_dtype_is_float(tensor->dtype) && tensor->kind != PHEMA_KIND_SCALE &&
            !tensor->scaling && is_activation_scale(tensor))
            tensor->kind = PHEMA_KIND_ACTIVATION_SCALE;
    }
    if (!status && is_any && phema_checkpoint_is_compressed(checkpoint))
        status = scaling_load(checkpoint, err);
    return status;
}
