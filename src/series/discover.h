/* discover.h - the steps from SNAPSHOTS to the candidates that are wanted. */
#ifndef SERIES_DISCOVER_H
#define SERIES_DISCOVER_H

#include "candidates.h"

/* ---- discover.c ---- */

/* Lists a directory, a @list or a manifest.
 * PHEMA_ERR_USAGE     --layout or --name-regex is invalid
 * PHEMA_ERR_FILE      SNAPSHOTS cannot be read
 * PHEMA_ERR_INPUTS    SNAPSHOTS is a single file, or the manifest is invalid
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE discover_snapshots(struct candidate_list *candidates,
                                  const struct phema_series_options *options,
                                  struct phema_error *err);

/* A single checkpoint, under any name. */
PHEMA_FALLIBLE discover_checkpoint(struct candidate_list *candidates,
                                   const struct phema_series_options *options,
                                   struct phema_error *err);

/* ---- manifest.c ---- */

PHEMA_FALLIBLE manifest_read(struct candidate_list *candidates, const char *path,
                             struct phema_error *err);

/* ---- file_names.c ---- */

/* Reads each name by the requested layout, or by the one that fits most names. */
PHEMA_FALLIBLE file_names_read(struct candidate_list *candidates,
                               const struct phema_series_options *options, struct phema_error *err);

/* ---- select_snapshots.c ---- */

/* Leaves out outputs of synth, files without a time, and times outside the selection.
 * PHEMA_ERR_INPUTS    the directory holds two series, or a name disagrees with its metadata
 * PHEMA_ERR_FILE      a file cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE select_snapshots(struct candidate_list *candidates,
                                const struct phema_series_options *options,
                                struct phema_error *err);

#endif
