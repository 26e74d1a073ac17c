// SPDX-License-Identifier: Apache-2.0
/* quantised.c - finds quantised tensors by name. Codes and scale averaged separately are not the
 * average of the tensor. Names that writers of quantised checkpoints use:
 *   X.weight, X.weight_scale_inv            DeepSeek-V3; transformers (also X, X_scale_inv)
 *   X.weight, X.weight_scale, X.input_scale compressed-tensors, ModelOpt (NVFP4: X.weight_scale_2)
 *   X.weight_packed, X.weight_scale         compressed-tensors, pack-quantized
 *   X.weight, X.scale                       DeepSeek's later ones, with F8_E8M0
 *   X.weight, X.scale_weight                ComfyUI, Neural Compressor
 *   X.weight, X.qscale_weight               Mistral
 *   X._weight_qdata, X._weight_scale        torchao
 *   X.weight._data, X.weight._scale         quanto
 *   X_blocks, X_scales                      gpt-oss (both are integers, and copied)
 *   X.qweight, X.scales                     GPTQ, AWQ
 *   X.weight, X.SCB; X.weight.absmax        bitsandbytes
 * The name of a scale is a stem followed by words, one of which means a scale. The codes are named
 * by the stem, perhaps with another word, or are the weight of the same module. */
#include "tensor_table.h"

#include <string.h>

#include "phema/strbuf.h"

/* Words after a stem: "weight_scale_inv" has three. */
#define MAX_WORDS 4

static bool is_one_of(const char *const *words, const char *word, size_t size)
{
    while (*words && !phema_bytes_are(word, size, *words))
        words++;
    return *words;
}

/* Small floats and integers, which a scale multiplies. */
static bool holds_codes(const struct phema_tensor *tensor)
{
    switch (tensor->dtype) {
    case PHEMA_F8_E4M3:
    case PHEMA_F8_E5M2:
    case PHEMA_F8_E4M3FNUZ:
    case PHEMA_F8_E5M2FNUZ:
    case PHEMA_F6_E2M3:
    case PHEMA_F6_E3M2:
    case PHEMA_F4:
    case PHEMA_U8:
    case PHEMA_I8:
    case PHEMA_U16:
    case PHEMA_I16:
    case PHEMA_U32:
    case PHEMA_I32:
    case PHEMA_U64:
    case PHEMA_I64:
        return true;
    default:
        return false;
    }
}

static const struct phema_tensor *find_codes(struct phema_strbuf *name, const char *stem,
                                             size_t size, const char *end,
                                             const struct phema_checkpoint *checkpoint)
{
    name->size = 0;
    phema_strbuf_append(name, stem, size);
    phema_strbuf_puts(name, end);
    if (name->is_failed)
        return NULL;
    const struct phema_tensor *found = phema_checkpoint_find(checkpoint, name->data, name->size);
    return found && holds_codes(found) ? found : NULL;
}

/* is_module: the stem may name a module, since a dot follows it or it is empty. */
static const struct phema_tensor *find_by_stem(struct phema_strbuf *name, const char *stem,
                                               size_t size, bool is_module,
                                               const struct phema_checkpoint *checkpoint)
{
    static const char *const ends[] = {"",       "_packed", "_qdata",  ".qdata", ":qdata",
                                       "._data", "_blocks", ".blocks", "_q"};
    static const char *const weights[] = {".weight", ".qweight",  ".weight_packed",
                                          ".W_q",    ".weight_q", ".float8_data"};
    const struct phema_tensor *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(ends) && size && !found; i++)
        found = find_codes(name, stem, size, ends[i], checkpoint);
    for (size_t i = 0; i < ARRAY_LEN(weights) && is_module && !found; i++)
        found = find_codes(name, stem, size, weights[i] + (size == 0), checkpoint);
    return found;
}

static const char *const scales[] = {"scale",  "scales",  "scalar", "absmax",
                                     "qscale", "wscales", "SCB",    NULL};
/* Words that accompany one that means a scale; two separators enclose an empty word. */
static const char *const qualifiers[] = {"",       "inv",    "weight", "input",      "output",
                                         "act",    "global", "block",  "activation", "channel",
                                         "tensor", "nested", "ub",     "2",          NULL};

/* The codes that a scale of this name belongs to; NULL for other tensors. */
static const struct phema_tensor *find_scaled_codes(struct phema_strbuf *name,
                                                    const struct phema_tensor *scale,
                                                    const struct phema_checkpoint *checkpoint)
{
    const char *text = scale->name;
    const struct phema_tensor *found = NULL;
    bool has_scale = false;
    size_t end = scale->name_size;
    for (int n_words = 0; n_words < MAX_WORDS && !found; n_words++) {
        size_t at = end;
        while (at > 0 && text[at - 1] != '.' && text[at - 1] != '_' && text[at - 1] != ':')
            at--;
        bool is_scale = is_one_of(scales, text + at, end - at);
        if (!is_scale && !is_one_of(qualifiers, text + at, end - at))
            break;
        has_scale = has_scale || is_scale;
        size_t stem = at ? at - 1 : 0;
        if (has_scale)
            found = find_by_stem(name, text, stem, at == 0 || text[stem] == '.', checkpoint);
        if (at == 0)
            break;
        end = stem;
    }
    return found == scale ? NULL : found;
}

static enum phema_status add_quantised(const struct tensor_table *tensor_table,
                                       const struct phema_tensor *codes,
                                       const struct phema_tensor *scale, struct phema_error *err)
{
    struct phema_series *series = tensor_table->series;
    const char *fault = phema_checkpoint_scale_fault(tensor_table->checkpoint, codes);
    struct phema_quantised found = {.dtype = codes->dtype};
    struct tensor_role role;
    enum phema_status status = tensor_table_role(&found.codes_at, &role, tensor_table,
                                                 tensor_table->filter, codes, SIZE_MAX, err);
    if (!status)
        status = tensor_table_role(&found.scale_at, &role, tensor_table, tensor_table->filter,
                                   scale, SIZE_MAX, err);
    if (status || (found.codes_at == SIZE_MAX && found.scale_at == SIZE_MAX))
        return status;
    struct phema_name_buffer shown;
    const char *name = phema_name_escape(&shown, codes->name, codes->name_size);
    found.codes = phema_arena_copy(&series->memory, name, strlen(name));
    name = phema_name_escape(&shown, scale->name, scale->name_size);
    found.scale = phema_arena_copy(&series->memory, name, strlen(name));
    struct phema_quantised *kept = phema_arena_alloc(&series->memory, sizeof(*kept));
    if (fault)
        found.fault = phema_arena_copy(&series->memory, fault, strlen(fault));
    if (!found.codes || !found.scale || !kept || (fault && !found.fault))
        return phema_fail_memory(err);
    *kept = found;
    kept->next = series->quantised;
    series->quantised = kept;
    return PHEMA_OK;
}

PHEMA_FALLIBLE quantised_find(const struct tensor_table *tensor_table, struct phema_error *err)
{
    const struct phema_checkpoint *checkpoint = tensor_table->checkpoint;
    const struct phema_tensor *tensors = phema_checkpoint_tensors(checkpoint);
    struct phema_strbuf name = {0};
    enum phema_status status = PHEMA_OK; /* the list ends in the order of the file */
    for (size_t i = phema_checkpoint_n_tensors(checkpoint); i-- > 0 && !status;) {
        const struct phema_tensor *codes = find_scaled_codes(&name, &tensors[i], checkpoint);
        bool is_scale =
            tensors[i].kind == PHEMA_KIND_SCALE || tensors[i].kind == PHEMA_KIND_ACTIVATION_SCALE;
        if (codes && !(codes->scaling && is_scale)) /* else they are read as numbers */
            status = add_quantised(tensor_table, codes, &tensors[i], err);
        else
            status = phema_strbuf_check(&name, err);
    }
    phema_strbuf_clear(&name);
    return status;
}
