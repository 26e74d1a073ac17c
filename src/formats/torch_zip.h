/* torch_zip.h - how the records of a PyTorch archive are named. */
#ifndef PHEMA_FORMATS_TORCH_ZIP_H
#define PHEMA_FORMATS_TORCH_ZIP_H

#include "zip.h"

/* TOP, which every record's name begins with; it points into the mapped file.
 * PHEMA_ERR_FILE for TorchScript, and where there is not one record TOP/data.pkl. */
PHEMA_FALLIBLE torch_zip_find_top(const char **top, size_t *top_size, const struct zip_archive *zip,
                                  struct phema_error *err);

#endif
