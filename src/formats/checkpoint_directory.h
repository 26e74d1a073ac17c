/* checkpoint_directory.h - what a directory holds that can be a checkpoint.
 * It must be exactly one: the .metadata of a distributed checkpoint, an index with its shards, or one
 * checkpoint file. Other files (config.json, tokenizers, optimizers, hidden files) are ignored. Where
 * there is none of these, the distributed checkpoints of its subdirectories are one checkpoint:
 * trainers save model, averages and optimizer side by side. */
#ifndef FORMATS_CHECKPOINT_DIRECTORY_H
#define FORMATS_CHECKPOINT_DIRECTORY_H

#include "format.h"

/* The checkpoint files found so far. */
struct directory_scan {
    struct directory_names names;
    const char *index; /* the last *.index.json of safetensors */
    const char *file; /* the last name with the extension of a checkpoint, of a training only ... */
    size_t n_files, n_indices, n_states; /* ... where there is no other */
    bool is_distributed;
    const char **parts; /* of the names: subdirectories that hold a distributed checkpoint */
    size_t n_parts, parts_capacity;
};

/* Whether a file of this name in the directory of a checkpoint can be a part of it. */
bool names_checkpoint_part(const char *name);

/* Lists the names in a directory. Clear it also after a failure.
 * PHEMA_ERR_FILE      it cannot be read
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE directory_scan(struct directory_scan *scan, const char *directory,
                              struct phema_error *err);
void directory_scan_clear(struct directory_scan *scan);

/* Whether the directory holds nothing that is a checkpoint by itself. */
bool directory_is_bare(const struct directory_scan *scan);
/* Sets the parts: subdirectories with a distributed checkpoint. PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE directory_find_parts(struct directory_scan *scan, const char *directory,
                                    struct phema_error *err);
/* The name of the one checkpoint's file, borrowed from the scan.
 * PHEMA_ERR_FILE      there is none, or more than one
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE directory_choose(const char **name, struct directory_scan *scan,
                                const char *directory, struct phema_error *err);

#endif
