// SPDX-License-Identifier: Apache-2.0
/* zstd.c - The .safetensors.zst format (RFC 8878; docs/formats/zst.md). Opening decompresses only
 * the header; reader.c decompresses tensors as they are read. */
#include <stdlib.h>

#include "format.h"
#include "zstd/decoder.h"
#include "zstd/frame_header.h"

/* The buffer of the header grows with the bytes that arrive, not with the claimed length. */
#define HEADER_STEP_BYTES ((size_t)64 << 10)

static bool probe(struct phema_span content)
{
    if (content.size < 4)
        return false;
    uint32_t magic = phema_load_u32(content.data);
    return zstd_is_data(magic) || zstd_is_skippable(magic);
}

/* Reads the length of the JSON, if the content looks like safetensors. */
static enum phema_status read_length(size_t *out, struct zstd_content *content,
                                     struct phema_error *err)
{
    uint8_t start[9];
    enum phema_status status = zstd_content_read(content, 0, sizeof(start), start, err);
    if (status)
        return status;
    uint64_t size = phema_load_u64(start);
    if (size == 0 || size > SAFETENSORS_MAX_HEADER_BYTES || start[8] != '{')
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is compressed with zstd, but what is inside is not safetensors, and "
                          "nothing else is read compressed; decompress it with zstd -d");
    *out = (size_t)size;
    return PHEMA_OK;
}

/* *json is the caller's (free), even after a failure. */
static enum phema_status read_json(uint8_t **json, size_t size, struct zstd_content *content,
                                   struct phema_error *err)
{
    for (size_t have = 0, capacity = 0; have < size;) {
        if (have == capacity) {
            capacity = capacity ? capacity * 2 : HEADER_STEP_BYTES;
            capacity = capacity < size ? capacity : size;
            uint8_t *larger = realloc(*json, capacity);
            if (!larger)
                return phema_fail_memory(err);
            *json = larger;
        }
        size_t n = capacity - have < HEADER_STEP_BYTES ? capacity - have : HEADER_STEP_BYTES;
        enum phema_status status = zstd_content_read(content, 8 + have, n, *json + have, err);
        if (status)
            return phema_fail_in(err, status, "safetensors header");
        have += n;
    }
    return PHEMA_OK;
}

static enum phema_status list_tensors(uint64_t *content_size, struct phema_checkpoint *checkpoint,
                                      struct phema_error *err)
{
    struct zstd_content *content = NULL;
    enum phema_status status = zstd_content_open(&content, checkpoint->frames, err);
    if (status)
        return status;
    struct phema_span json = {NULL, 0};
    uint8_t *data = NULL;
    status = read_length(&json.size, content, err);
    if (!status)
        status = read_json(&data, json.size, content, err);
    zstd_content_close(content);
    json.data = data;
    if (!status)
        status = safetensors_read_header(content_size, checkpoint, json, err);
    free(data);
    return status;
}

static enum phema_status open_zstd(struct phema_checkpoint *checkpoint,
                                   const struct phema_checkpoint_options *options,
                                   struct phema_error *err)
{
    (void)options;
    uint64_t content_size = 0;
    phema_file_expect_sparse(checkpoint->files[0].file, false); /* frames are read in order */
    enum phema_status status = zstd_frames_new(&checkpoint->frames, checkpoint->files[0].file, err);
    if (status)
        return status;
    status = list_tensors(&content_size, checkpoint, err);
    if (status)
        return status;
    for (size_t i = 0; i < checkpoint->n_tensors; i++)
        checkpoint->tensors[i].is_compressed = true;
    return zstd_frames_settle(checkpoint->frames, content_size, err);
}

const struct phema_format zstd_format = {
    .info = {.name = "safetensors.zst",
             .extensions = (const struct phema_extension[]){{".safetensors.zst", PHEMA_NAMES_FILE},
                                                            {".zst", PHEMA_NAMES_SNAPSHOT},
                                                            {NULL, 0}},
             .output = PHEMA_OUTPUT_COMPRESSED},
    .probe = probe,
    .open = open_zstd,
};
