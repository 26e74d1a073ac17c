/* formats.h - a checkpoint: a list of named tensors, each at a known place in a mapped file.
 * Formats find the places and copy no data. Everything from a file is checked before it is used;
 * nothing in it is executed, trusted as a length, or followed out of its directory. What
 * is found by content, not by extension: safetensors, a sharded safetensors index, PyTorch zip and
 * its format before 1.6, pickles of EDM2. */
#ifndef PHEMA_FORMATS_H
#define PHEMA_FORMATS_H

#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/file.h"
#include "phema/span.h"

enum phema_tensor_kind {
    PHEMA_KIND_UNKNOWN, /* the file does not say */
    PHEMA_KIND_PARAMETER,
    PHEMA_KIND_BUFFER
};

#define PHEMA_MAX_RANK 64

/* Element (i_0, ...) lies at offset + (sum i_k stride_k) * bytes of an element. Tensors that share
 * storage (tied weights, views) have overlapping places. */
struct phema_tensor {
    const char *name; /* UTF-8, NUL-terminated, and may hold NULs: go by name_size */
    size_t name_size;
    enum phema_dtype dtype;
    enum phema_tensor_kind kind;
    unsigned rank;
    const uint64_t *shape;  /* [rank] */
    const uint64_t *stride; /* [rank], in elements; NULL when the data are in C order */
    uint64_t n_elems;       /* product of shape: 1 for rank 0 */
    uint64_t size_bytes;    /* of the data in C order: n_elems * bits / 8 */
    size_t file;            /* index of the checkpoint's file */
    uint64_t offset;        /* absolute, of the first element [bytes] */
};

struct phema_checkpoint;

struct phema_checkpoint_options {
    const char *const *allow_globals; /* [n] names let through in a pickle, as inert objects */
    size_t n_allow_globals;
};

/* path: a checkpoint file, a *.index.json, or a directory that holds exactly one checkpoint (an
 * index and its shards, or one file). options may be NULL. Messages name the file, and the tensor
 * where there is one.
 * PHEMA_ERR_FILE      unreadable, corrupt, refused; formats known but not read yet are named
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_checkpoint_open(struct phema_checkpoint **out, const char *path,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err);
void phema_checkpoint_close(struct phema_checkpoint *checkpoint); /* takes NULL */

/* Frees names, shapes and metadata, keeps the files mapped: for those who noted the places. */
void phema_checkpoint_forget_listing(struct phema_checkpoint *checkpoint);

const char *phema_checkpoint_path(const struct phema_checkpoint *checkpoint); /* as given */
/* "safetensors", "sharded", "torch-zip", "torch-legacy", "pickle" */
const char *phema_checkpoint_format(const struct phema_checkpoint *checkpoint);

/* In the file's own order: header order of safetensors (of shard after shard, in the order of the
 * index's weight_map), order of the pickle for PyTorch and EDM2. */
size_t phema_checkpoint_n_tensors(const struct phema_checkpoint *checkpoint);
const struct phema_tensor *phema_checkpoint_tensors(const struct phema_checkpoint *checkpoint);
const struct phema_tensor *phema_checkpoint_find(const struct phema_checkpoint *checkpoint,
                                                 const char *name, size_t name_size);

/* Of a sharded checkpoint, file 0 is the index. */
size_t phema_checkpoint_n_files(const struct phema_checkpoint *checkpoint);
const struct phema_file *phema_checkpoint_file(const struct phema_checkpoint *checkpoint,
                                               size_t index);
/* Of the file as a listing shows it: the path relative to the checkpoint's directory. */
const char *phema_checkpoint_file_label(const struct phema_checkpoint *checkpoint, size_t index);

/* String metadata (safetensors' __metadata__; of a sharded one, that of its first shard). */
struct phema_metadata {
    const char *key, *value;
    size_t key_size, value_size;
};
size_t phema_checkpoint_n_metadata(const struct phema_checkpoint *checkpoint);
const struct phema_metadata *phema_checkpoint_metadata(const struct phema_checkpoint *checkpoint);
/* The value of a key, NUL-terminated, or NULL. */
const char *phema_checkpoint_metadatum(const struct phema_checkpoint *checkpoint, const char *key);

/* Sentences about what was odd but harmless (a wrong total_size); borrowed. */
size_t phema_checkpoint_n_warnings(const struct phema_checkpoint *checkpoint);
const char *phema_checkpoint_warning(const struct phema_checkpoint *checkpoint, size_t index);

/* Elements [first, first + n) in C order. For data in C order this is a view into the mapped file
 * (any address, aligned or not; sub-byte dtypes must begin and end on a byte).
 *   start   the tensor's first element in the mapped file
 *   scratch [n * bytes of an element], used only for strided data, where it is what is returned */
const uint8_t *phema_tensor_read(const uint8_t *start, const struct phema_tensor *tensor,
                                 uint64_t first, uint64_t n, void *scratch);

/* The first element in the mapped file; NULL for a tensor without elements. */
const uint8_t *phema_tensor_start(const struct phema_checkpoint *checkpoint,
                                  const struct phema_tensor *tensor);

/* A file for a fresh safetensors: the header of a layout, and where each tensor's data go.
 * Tensors are laid out by falling element size, then by name, as safetensors 0.8 does, so that data
 * are aligned; the header is padded with spaces to a multiple of 8.
 *   header    out: the caller's (free); 8 bytes of length and the JSON
 *   offsets   out: [n] absolute offset of each tensor, in the order given
 *   total     out: size of the whole file
 * PHEMA_ERR_OUTPUT when a dtype does not exist in safetensors or the header exceeds 100 MB. */
PHEMA_FALLIBLE phema_safetensors_layout(uint8_t **header, size_t *header_size, uint64_t *offsets,
                                        uint64_t *total, const struct phema_tensor *tensors,
                                        size_t n, const struct phema_metadata *metadata,
                                        size_t n_metadata, struct phema_error *err);

#endif
