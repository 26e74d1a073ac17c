/* reader.h - Private to formats/: elements as they are in the files, in chunks or with scales. */
#ifndef FORMATS_READER_H
#define FORMATS_READER_H

#include "format.h"

/* ---- Elements without scales (reader.c) ---- */

const struct phema_checkpoint *reader_checkpoint(const struct phema_reader *reader);

/* phema_reader_read of elements as they are in the file (reader.c). */
PHEMA_FALLIBLE reader_read_stored(const uint8_t **data, struct phema_reader *reader,
                                  const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                  void *scratch, struct phema_error *err);

/* The same for scales. They come from the mapping where the file is read past the page cache, since
 * their pages were requested (phema_reader_prepare). */
PHEMA_FALLIBLE reader_read_scales(const uint8_t **data, struct phema_reader *reader,
                                  const struct phema_tensor *scale, uint64_t first, uint64_t n,
                                  void *scratch, struct phema_error *err);

/* phema_reader_prepare, phema_tensor_prefetch and phema_tensor_release of elements as they are in
 * the file, without scales (reader.c). */
bool reader_prepare_stored(struct phema_read *read, const struct phema_reader *reader,
                           const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                           uint8_t *buffer);
void tensor_prefetch_stored(const struct phema_checkpoint *checkpoint,
                            const struct phema_tensor *tensor, uint64_t first, uint64_t n);
void tensor_release_stored(const struct phema_checkpoint *checkpoint,
                           const struct phema_tensor *tensor, uint64_t first, uint64_t n);

/* ---- Tensors in chunks (gather.c) ---- */

/* Elements [first, first + n) in C order of a tensor in chunks: a view where one chunk holds them
 * contiguously, else a copy in scratch. */
const uint8_t *chunks_read(const struct phema_checkpoint *checkpoint,
                           const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                           void *scratch);

/* The place of one element. */
void chunks_find_element(size_t *file, uint64_t *offset, const struct phema_tensor *tensor,
                         uint64_t element);

/* Requests the pages of these elements, except of chunks that are not contiguous. */
void chunks_prefetch(const struct phema_checkpoint *checkpoint, const struct phema_tensor *tensor,
                     uint64_t first, uint64_t n);

/* Whether one chunk holds these elements contiguously; then the place of the first one. */
bool chunks_find(size_t *file, uint64_t *offset, const struct phema_checkpoint *checkpoint,
                 const struct phema_tensor *tensor, uint64_t first, uint64_t n);

/* ---- Scales of fp8 tensors ---- */

/* Sets scaling of the fp8 codes that have a scale, and the kinds of scales. The size of blocks is
 * that of config.json beside the checkpoint.
 *   alike  the checkpoint whose listing this one shares, or NULL
 * PHEMA_ERR_FILE  config.json is damaged, or has another size of blocks than that of alike */
PHEMA_FALLIBLE scaling_find(struct phema_checkpoint *checkpoint,
                            const struct phema_checkpoint *alike, struct phema_error *err);

/* Reads the scales of a compressed checkpoint, whose codes may lie before them, into its memory
 * (scaling_read.c). PHEMA_ERR_FILE: the data are corrupt */
PHEMA_FALLIBLE scaling_load(struct phema_checkpoint *checkpoint, struct phema_error *err);

#endif
