/* checkpointing_metadata.h - Private to torch/: metadata.pkl of torch_checkpointing, which says
 * where each process keeps an item, and how its tensors are sharded
 * (docs/formats/torch-checkpointing.md). */
#ifndef FORMATS_TORCH_CHECKPOINTING_METADATA_H
#define FORMATS_TORCH_CHECKPOINTING_METADATA_H

#include "name_table.h"
#include "torch/sharding.h"

enum item_format {
    ITEM_TORCH,
    ITEM_SAFETENSORS,
    ITEM_OTHER /* JSON or bytes, without tensors */
};

/* An item of which metadata.pkl tells the sharding. */
struct checkpointing_item {
    const char *name;
    const struct pickle_node *files;   /* dict from processes to None or their file */
    const struct pickle_node *tensors; /* dict from JSON lists of keys to lists of shardings */
    struct name_table names;           /* keys joined by points; values are indices in tensors */
};

struct checkpointing_metadata {
    struct phema_arena arena; /* nodes and names */
    uint64_t n_processes;
    struct checkpointing_item *items;
    size_t n_items, items_capacity;
};

/* The caller clears it, even after a failure. */
PHEMA_FALLIBLE checkpointing_metadata_read(struct checkpointing_metadata *out,
                                           struct phema_span content,
                                           const struct phema_checkpoint_options *options,
                                           struct phema_error *err);
void checkpointing_metadata_clear(struct checkpointing_metadata *metadata);

/* Where a process keeps the item.
 *   path  out: relative to the checkpoint; NULL: ITEM_PROCESS.pt */
PHEMA_FALLIBLE checkpointing_find_file(struct phema_span *path, enum item_format *format,
                                       const struct checkpointing_item *item, uint64_t process,
                                       struct phema_error *err);

/* How a tensor of the item is sharded, seen from a process.
 *   part  of that process; the name without the item
 * PHEMA_ERR_FILE  metadata.pkl does not say it, or the part does not fit it */
PHEMA_FALLIBLE checkpointing_find_sharding(struct sharding *out, struct phema_arena *arena,
                                           const struct checkpointing_item *item, uint64_t process,
                                           const struct phema_tensor *part,
                                           struct phema_error *err);

#endif
