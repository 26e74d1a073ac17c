/* snapshot_metadata.h - what the inside of a snapshot's files says about how it was averaged. */
#ifndef SERIES_SNAPSHOT_METADATA_H
#define SERIES_SNAPSHOT_METADATA_H

#include "discover.h"
#include "phema/formats.h"

/* Metadata of our own (posthoc_ema.*) against what the name said; fills in what it did not.
 *   specs      where the profile of another shape than power goes
 *   is_output  out: the file was made by synth, and is no snapshot
 * PHEMA_ERR_INPUTS when name and metadata disagree. Messages do not name the file. */
PHEMA_FALLIBLE snapshot_metadata_read(struct candidate *candidate, bool *is_output,
                                      const char **unit, struct phema_specs *specs,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err);

/* An element of a tensor in C order; NaN when there is none (tensor may be NULL), or its dtype
 * holds no numbers that can be trusted. */
double snapshot_metadata_element(const struct phema_checkpoint *checkpoint,
                                 const struct phema_tensor *tensor, uint64_t index);

/* A number kept in a tensor of one element; NaN when there is no such tensor or it is no number. */
double snapshot_metadata_scalar(const struct phema_checkpoint *checkpoint, const char *name);

/* A number kept beside the tensors; NaN when there is none of that name, or several that differ. */
double snapshot_metadata_value(const struct phema_checkpoint *checkpoint, struct phema_span name);

/* The counter that a trainer keeps in its file against the time in the file's name.
 * PHEMA_ERR_INPUTS when they disagree */
PHEMA_FALLIBLE snapshot_metadata_check_counter(const struct candidate *candidate,
                                               const struct layout *layout,
                                               const struct phema_checkpoint *checkpoint,
                                               struct phema_error *err);

/* Whether a JSON beside the file says that it is an output: "FILE.json" with the provenance that
 * formats without metadata have no room for. */
bool snapshot_metadata_is_described_output(const char *path);

/* true when a tensor's name begins with "KEY." */
bool snapshot_metadata_has_subtree(const struct phema_checkpoint *checkpoint, const char *key);

#endif
