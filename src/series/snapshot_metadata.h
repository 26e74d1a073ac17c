/* snapshot_metadata.h - time and width from metadata and bookkeeping tensors of a checkpoint. */
#ifndef SERIES_SNAPSHOT_METADATA_H
#define SERIES_SNAPSHOT_METADATA_H

#include "candidates.h"
#include "phema/formats.h"

/* Compares our own metadata (posthoc_ema.*) with the facts from the name, and fills in missing
 * facts. Messages do not name the file.
 *   specs      keeps profiles of other shapes than power
 *   is_output  out: the file was made by synth, and is no snapshot
 *   unit       out: of the metadata, or NULL; unchanged if is_output
 * PHEMA_ERR_INPUTS    name and metadata disagree, or the metadata are invalid
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE snapshot_metadata_read(struct candidate *candidate, bool *is_output,
                                      const char **unit, struct phema_specs *specs,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err);

/* The number in a tensor of one element; NaN where there is no such tensor or number, or its dtype
 * is too narrow for counters. */
double snapshot_metadata_scalar(const struct phema_checkpoint *checkpoint, const char *name);

/* A number stored outside of the tensors; NaN where the name is absent or has several values. */
double snapshot_metadata_value(const struct phema_checkpoint *checkpoint, const char *name);

/* The number LIST.INDEX, or that element of the tensor LIST, which is PREFIX (prefix_size bytes),
 * END; NaN where there is none. */
double snapshot_metadata_item(const struct phema_checkpoint *checkpoint, const char *prefix,
                              size_t prefix_size, const char *end, size_t index);

/* Compares the trainer's counter inside the file with the time in the file's name.
 * PHEMA_ERR_INPUTS  they disagree */
PHEMA_FALLIBLE snapshot_metadata_check_counter(const struct candidate *candidate,
                                               const struct layout *layout,
                                               const struct phema_checkpoint *checkpoint,
                                               struct phema_error *err);

/* True when "FILE.json" holds a provenance: the file is an output in a format without metadata. */
bool snapshot_metadata_is_described_output(const char *path);

#endif
