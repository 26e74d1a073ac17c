// SPDX-License-Identifier: Apache-2.0
/* later_formats.c - what is recognised and not read yet, so that the refusal says what the file is.
 * Formats: RFC 8878 (zstd), POSIX ustar. */
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
const struct phema_format tar_format = {"tar", probe_tar, refuse_tar};
