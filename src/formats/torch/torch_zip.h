/* torch_zip.h - torch.save archives: names of their records; an archive inside a larger file. */
#ifndef FORMATS_TORCH_TORCH_ZIP_H
#define FORMATS_TORCH_TORCH_ZIP_H

#include "phema/arena.h"
#include "phema/formats.h"
#include "torch/zip.h"

extern const struct phema_format torch_zip_format;
extern const struct phema_extension torch_extensions[]; /* of torch.save, whatever the version */

/* TOP, the first part of every record's name; it points into the mapped file.
 * PHEMA_ERR_FILE  TorchScript, or not exactly one record TOP/data.pkl */
PHEMA_FALLIBLE torch_zip_find_top(const char **top, size_t *top_size, const struct zip_archive *zip,
                                  struct phema_error *err);

/* Reads the one tensor of an archive: all of *out but its name and kind.
 *   arena    memory of shape and stride
 *   content  of the archive, whose first byte is byte start of file number file */
PHEMA_FALLIBLE torch_zip_read_tensor(struct phema_tensor *out, struct phema_arena *arena,
                                     struct phema_span content, size_t file, uint64_t start,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err);

#endif
