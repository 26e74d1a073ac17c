// SPDX-License-Identifier: Apache-2.0
/* later_formats.c - what is recognised and not read yet, so that the refusal says what the file is.
 * Formats: RFC 8878 (zstd), docs/formats/pickle.md, POSIX ustar. */
#include <string.h>

#include "format.h"

#define MAX_WINDOW_BYTES ((uint64_t)128 << 20)

static bool is_skippable(uint32_t magic)
{
    return (magic & 0xFFFFFFF0u) == 0x184D2A50u;
}

static bool probe_zstd(struct phema_span content)
{
    if (content.size < 4)
        return false;
    uint32_t magic = phema_load_u32(content.data);
    return magic == 0xFD2FB528u || is_skippable(magic);
}

/* The window that the first data frame asks for; 0 where the header does not say so in one byte. */
static uint64_t first_window(struct phema_span content)
{
    size_t at = 0;
    while (content.size - at >= 8 && is_skippable(phema_load_u32(content.data + at))) {
        uint64_t size = phema_load_u32(content.data + at + 4);
        if (size > content.size - at - 8)
            return 0;
        at += 8 + (size_t)size;
    }
    if (content.size - at < 6 || phema_load_u32(content.data + at) != 0xFD2FB528u)
        return 0;
    uint8_t descriptor = content.data[at + 4];
    uint8_t window = content.data[at + 5];
    if (descriptor & 0x20) /* single segment: no window byte */
        return 0;
    uint64_t base = (uint64_t)1 << (10 + (window >> 3));
    return base + base / 8 * (window & 7);
}

static enum phema_status refuse_zstd(struct phema_checkpoint *checkpoint,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err)
{
    (void)options;
    uint64_t window = first_window(checkpoint_content(checkpoint, 0));
    if (window > MAX_WINDOW_BYTES)
        return phema_fail(
            err, PHEMA_ERR_FILE,
            "is compressed with a zstd window of %llu MiB, more than the 128 MiB that "
            "are accepted",
            (unsigned long long)(window >> 20));
    return phema_fail(err, PHEMA_ERR_FILE,
                      "is compressed with zstd, which this version does not read yet; decompress "
                      "it with zstd -d");
}

static bool probe_pickle(struct phema_span content)
{
    return content.size >= 2 && content.data[0] == 0x80 && content.data[1] >= 2 &&
           content.data[1] <= 5;
}

/* torch.save before 1.6 begins with a pickle of this one number, 0x1950a86a20f9469cfc6c. */
static bool has_torch_magic(struct phema_span content)
{
    static const uint8_t magic[] = {0x8A, 0x0A, 0x6C, 0xFC, 0x9C, 0x46,
                                    0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19};
    size_t near = content.size < 64 ? content.size : 64;
    return memmem(content.data, near, magic, sizeof(magic)) != NULL;
}

static enum phema_status refuse_pickle(struct phema_checkpoint *checkpoint,
                                       const struct phema_checkpoint_options *options,
                                       struct phema_error *err)
{
    (void)options;
    if (has_torch_magic(checkpoint_content(checkpoint, 0)))
        return phema_fail(err, PHEMA_ERR_FILE,
                          "is a PyTorch file of the legacy format (not a zip), which this version "
                          "does not read yet; load it and save it again with torch 1.6 or later");
    return phema_fail(err, PHEMA_ERR_FILE,
                      "is a plain pickle (as EDM2 writes them), which this version does not read "
                      "yet; save the state_dict as safetensors");
}

static bool probe_tar(struct phema_span content)
{
    return content.size >= 512 && memcmp(content.data + 257, "ustar", 5) == 0;
}

static enum phema_status refuse_tar(struct phema_checkpoint *checkpoint,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err)
{
    (void)checkpoint;
    (void)options;
    return phema_fail(
        err, PHEMA_ERR_FILE,
        "is a tar archive (as torch 0.1 wrote them), which is not read; unpack it, or "
        "save the checkpoint again with a newer torch");
}

const struct phema_format zstd_format = {"safetensors.zst", probe_zstd, refuse_zstd};
const struct phema_format plain_pickle_format = {"pickle", probe_pickle, refuse_pickle};
const struct phema_format tar_format = {"tar", probe_tar, refuse_tar};
