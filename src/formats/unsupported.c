// SPDX-License-Identifier: Apache-2.0
/* unsupported.c - what is recognised and not read yet, so that the refusal says what the file is.
 * Format: POSIX ustar. */
#include <string.h>

#include "format.h"

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

const struct phema_format tar_format = {"tar", probe_tar, refuse_tar};
