/* frame_prefetch.h - The pages of a zstd file's headers, before they are looked at. */
#ifndef FORMATS_ZSTD_FRAME_PREFETCH_H
#define FORMATS_ZSTD_FRAME_PREFETCH_H

#include "phema/mapped_file.h"

/* Reads the pages that zstd_frames_new looks at, those of many frames at once where a seek table
 * says where frames begin. Does nothing for a file that is not zstd. */
void zstd_frames_prefetch(const struct phema_file *file);

#endif
