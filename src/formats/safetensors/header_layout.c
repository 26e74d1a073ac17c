// SPDX-License-Identifier: Apache-2.0
/* header_layout.c - Header of a new file: order, offsets, padding. The order of tensors is that of
 * the Rust library 0.8, so that equal tensors make equal bytes. */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "phema/json.h"
#include "phema/sort.h"
#include "phema/strbuf.h"

/* The library sorts by its enum Dtype, last first: by falling width but for the sub-byte types. */
static const enum phema_dtype order[] = {
    PHEMA_U64,         PHEMA_I64,     PHEMA_F64,     PHEMA_C64,     PHEMA_F32, PHEMA_U32,
    PHEMA_I32,         PHEMA_BF16,    PHEMA_F16,     PHEMA_U16,     PHEMA_I16, PHEMA_F8_E5M2FNUZ,
    PHEMA_F8_E4M3FNUZ, PHEMA_F8_E8M0, PHEMA_F8_E4M3, PHEMA_F8_E5M2, PHEMA_I8,  PHEMA_U8,
    PHEMA_F6_E3M2,     PHEMA_F6_E2M3, PHEMA_F4,      PHEMA_BOOL,
};

struct place {
    const struct phema_tensor *tensor;
    size_t rank; /* position of its dtype in the order above */
    uint64_t begin;
};

static int by_order(const void *a, const void *b, void *unused)
{
    (void)unused;
    const struct place *left = a;
    const struct place *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    size_t left_size = left->tensor->name_size;
    size_t right_size = right->tensor->name_size;
    size_t shorter = left_size < right_size ? left_size : right_size;
    int names = memcmp(left->tensor->name, right->tensor->name, shorter);
    return names ? names : (left_size > right_size) - (left_size < right_size);
}

static enum phema_status sort_places(struct place *places, const struct phema_tensor *tensors,
                                     size_t n, struct phema_error *err)
{
    for (size_t i = 0; i < n; i++) {
        size_t rank = 0;
        while (rank < ARRAY_LEN(order) && order[rank] != tensors[i].dtype)
            rank++;
        if (rank == ARRAY_LEN(order)) {
            (void)phema_fail(err, PHEMA_ERR_OUTPUT, "safetensors cannot hold dtype %s",
                             phema_dtype_name(tensors[i].dtype));
            return fail_in_tensor(err, PHEMA_ERR_OUTPUT, tensors[i].name, tensors[i].name_size);
        }
        places[i] = (struct place){&tensors[i], rank, 0};
    }
    phema_sort(places, n, sizeof(*places), by_order, NULL);
    return PHEMA_OK;
}

static void write_tensor(struct phema_json_out *out, const struct place *place)
{
    const struct phema_tensor *tensor = place->tensor;
    phema_json_out_key(out, tensor->name, tensor->name_size);
    phema_json_out_open(out, NULL, '{');
    phema_json_out_string(out, "dtype", phema_dtype_name(tensor->dtype));
    phema_json_out_open(out, "shape", '[');
    for (unsigned k = 0; k < tensor->rank; k++)
        phema_json_out_u64(out, NULL, tensor->shape[k]);
    phema_json_out_close(out, ']');
    phema_json_out_open(out, "data_offsets", '[');
    phema_json_out_u64(out, NULL, place->begin);
    phema_json_out_u64(out, NULL, place->begin + tensor->size_bytes);
    phema_json_out_close(out, ']');
    phema_json_out_close(out, '}');
}

/* Eight bytes for the length, the JSON, and spaces up to a multiple of 8. */
static enum phema_status write_header(struct phema_strbuf *text, const struct place *places,
                                      size_t n, const struct phema_metadata *metadata,
                                      size_t n_metadata, struct phema_error *err)
{
    static const char zeros[8] = {0};
    phema_strbuf_append(text, zeros, sizeof(zeros));
    struct phema_json_out out = {.text = text};
    phema_json_out_open(&out, NULL, '{');
    if (n_metadata)
        phema_json_out_open(&out, "__metadata__", '{');
    for (size_t i = 0; i < n_metadata; i++) {
        phema_json_out_key(&out, metadata[i].key, metadata[i].key_size);
        phema_json_out_bytes(&out, NULL, metadata[i].value, metadata[i].value_size);
    }
    if (n_metadata)
        phema_json_out_close(&out, '}');
    for (size_t i = 0; i < n; i++)
        write_tensor(&out, &places[i]);
    phema_json_out_close(&out, '}');
    while (text->size % 8 && !text->is_failed)
        phema_strbuf_puts(text, " ");
    enum phema_status status = phema_strbuf_check(text, err);
    if (status)
        return status;
    if (text->size - 8 > SAFETENSORS_MAX_HEADER_BYTES)
        return phema_fail(err, PHEMA_ERR_OUTPUT,
                          "the safetensors header would have %zu bytes, more than the %u that "
                          "readers accept",
                          text->size - 8, SAFETENSORS_MAX_HEADER_BYTES);
    phema_store_u64((uint8_t *)text->data, text->size - 8);
    return PHEMA_OK;
}

static enum phema_status lay_out(struct place *places, struct phema_strbuf *text,
                                 uint64_t *data_size, const struct phema_tensor *tensors, size_t n,
                                 const struct phema_metadata *metadata, size_t n_metadata,
                                 struct phema_error *err)
{
    enum phema_status status = sort_places(places, tensors, n, err);
    if (status)
        return status;
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        places[i].begin = at;
        if (!phema_size_add(&at, at, places[i].tensor->size_bytes) || at > INT64_MAX / 2)
            return phema_fail(err, PHEMA_ERR_OUTPUT, "the tensors are too large for one file");
    }
    *data_size = at;
    return write_header(text, places, n, metadata, n_metadata, err);
}

enum phema_status phema_safetensors_layout(uint8_t **header, size_t *header_size, uint64_t *offsets,
                                           uint64_t *total, const struct phema_tensor *tensors,
                                           size_t n, const struct phema_metadata *metadata,
                                           size_t n_metadata, struct phema_error *err)
{
    struct place *places = calloc(n + 1, sizeof(*places));
    if (!places)
        return phema_fail_memory(err);
    struct phema_strbuf text = {0};
    uint64_t data_size = 0;
    enum phema_status status =
        lay_out(places, &text, &data_size, tensors, n, metadata, n_metadata, err);
    if (status) {
        phema_strbuf_clear(&text);
        free(places);
        return status;
    }
    for (size_t i = 0; i < n; i++)
        offsets[places[i].tensor - tensors] = text.size + places[i].begin;
    *header = (uint8_t *)text.data;
    *header_size = text.size;
    *total = text.size + data_size;
    free(places);
    return PHEMA_OK;
}
