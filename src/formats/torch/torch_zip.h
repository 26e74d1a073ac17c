/* torch_zip.h - archives of torch.save: how their records are named, and one inside a larger file.
 */
#ifndef FORMATS_TORCH_TORCH_ZIP_H
#define FORMATS_TORCH_TORCH_ZIP_H

#include "phema/arena.h"
#include "phema/formats.h"
#include "torch/zip.h"

/* TOP, which every record's name begins with; it points into the mapped file.
 * PHEMA_ERR_FILE for TorchScript, and where there is not one record TOP/data.pkl. */
PHEMA_FALLIBLE torch_zip_find_top(const char **top, size_t *top_size, const struct zip_archive *zip,
                                  struct phema_error *err);

/* The one tensor that an archive holds: all of *out but its name and kind.
 *   arena    where shape and stride go
 *   content  of the archive, whose first byte is byte start of file number file */
PHEMA_FALLIBLE torch_zip_read_tensor(struct phema_tensor *out, struct phema_arena *arena,
                                     struct phema_span content, size_t file, uint64_t start,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err);

#endif
