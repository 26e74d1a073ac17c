/* formats.h - a checkpoint: a list of named tensors, each at a known place in a mapped file.
 * Formats find the places and copy no data. Everything from a file is checked before it is used;
 * nothing in it is executed, trusted as a length, or followed out of its directory. What
 * is found by content, not by extension: safetensors, also compressed with zstd, a sharded
 * safetensors index, PyTorch zip and its format before 1.6, pickles of EDM2, the metadata of a
 * PyTorch Distributed Checkpoint. */
#ifndef PHEMA_FORMATS_H
#define PHEMA_FORMATS_H

#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/file_reader.h"
#include "phema/mapped_file.h"
#include "phema/span.h"

enum phema_tensor_kind {
    PHEMA_KIND_UNKNOWN, /* the file does not say */
    PHEMA_KIND_PARAMETER,
    PHEMA_KIND_BUFFER,
    PHEMA_KIND_ATTRIBUTE /* of a dict, module or object in a pickle: no part of a state_dict */
};

#define PHEMA_MAX_RANK 64 /* torch and numpy 2 have no more */

/* Of a *.index.json, read or written. Those of the largest models have a few; a tree of the JSON
 * takes several times as much memory. */
#define PHEMA_MAX_INDEX_BYTES ((size_t)64 << 20)

/* A box of a tensor that lies by itself, as distributed checkpoints have them. */
struct phema_chunk {
    const uint64_t *start, *size; /* [rank] first index and extent in every dimension */
    const uint64_t *stride;       /* [rank] in elements; NULL when the box is in C order */
    size_t file;
    uint64_t offset; /* absolute, of the box's first element [bytes] */
};

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
    bool is_compressed;     /* offset counts in the decompressed content of the file */
    /* [n_parts] disjoint boxes that make up the tensor; NULL: it lies in one place. File, offset
     * and stride are then of no use. They live until the checkpoint is closed. */
    const struct phema_chunk *parts;
    size_t n_parts;
};

struct phema_checkpoint;

struct phema_checkpoint_options {
    const char *const *allow_globals; /* [n] names let through in a pickle, as inert objects */
    size_t n_allow_globals;
    /* A checkpoint that is open still and likely to list the same tensors; or NULL. Where both are
     * single safetensors files whose headers have the same text but for the metadata, the listing
     * is left out: see phema_checkpoint_is_alike. */
    const struct phema_checkpoint *alike;
};

/* path: a checkpoint file, a *.index.json, or a directory that holds exactly one checkpoint (a
 * distributed one with .metadata, an index and its shards, or one file). options may be NULL.
 * Messages name the file, and the tensor where there is one. PHEMA_ERR_FILE      unreadable,
 * corrupt, refused; formats known but not read yet are named PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_checkpoint_open(struct phema_checkpoint **out, const char *path,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err);
void phema_checkpoint_close(struct phema_checkpoint *checkpoint); /* takes NULL */

/* Frees names, shapes, metadata and values, keeps the files mapped: for those who noted the places.
 */
void phema_checkpoint_forget_listing(struct phema_checkpoint *checkpoint);

const char *phema_checkpoint_path(const struct phema_checkpoint *checkpoint); /* as given */

/* When something was made of the data: PHEMA_ERR_FILE names the file that was written to since it
 * was opened. Opening asks this itself about what it has read. */
PHEMA_FALLIBLE phema_checkpoint_check_unchanged(const struct phema_checkpoint *checkpoint,
                                                struct phema_error *err);
/* "safetensors", "safetensors.zst", "sharded", "torch-zip", "torch-legacy", "pickle", "dcp" */
const char *phema_checkpoint_format(const struct phema_checkpoint *checkpoint);

/* In the file's own order: header order of safetensors (of shard after shard, in the order of the
 * index's weight_map), order of the pickle for PyTorch (of .metadata, if distributed) and EDM2. */
size_t phema_checkpoint_n_tensors(const struct phema_checkpoint *checkpoint);
const struct phema_tensor *phema_checkpoint_tensors(const struct phema_checkpoint *checkpoint);
const struct phema_tensor *phema_checkpoint_find(const struct phema_checkpoint *checkpoint,
                                                 const char *name, size_t name_size);

/* Of a sharded checkpoint, file 0 is the index; of a distributed one, .metadata. */
size_t phema_checkpoint_n_files(const struct phema_checkpoint *checkpoint);
const struct phema_file *phema_checkpoint_file(const struct phema_checkpoint *checkpoint,
                                               size_t index);
/* Of the file as a listing shows it: the path relative to the checkpoint's directory. */
const char *phema_checkpoint_file_label(const struct phema_checkpoint *checkpoint, size_t index);

/* Whether nothing is listed since it would be what options->alike has listed: the same tensors in
 * the same order, and *shift added to all their offsets, which may wrap. Metadata are the own. */
bool phema_checkpoint_is_alike(const struct phema_checkpoint *checkpoint, uint64_t *shift);

/* String metadata (safetensors' __metadata__; of a sharded one, that of its first shard). */
struct phema_metadata {
    const char *key, *value;
    size_t key_size, value_size;
};
size_t phema_checkpoint_n_metadata(const struct phema_checkpoint *checkpoint);
const struct phema_metadata *phema_checkpoint_metadata(const struct phema_checkpoint *checkpoint);
/* The value of a key, NUL-terminated, or NULL. */
const char *phema_checkpoint_metadatum(const struct phema_checkpoint *checkpoint, const char *key);

/* Numbers that a pickle holds beside its tensors (integers and floats in dicts, lists and tuples),
 * named like these: "global_step", "ema.stds.0". Those nearest to the root come first; of many that
 * lie deep not all are kept. Other formats have none. */
struct phema_value {
    const char *name;
    size_t name_size;
    double number;
};
size_t phema_checkpoint_n_values(const struct phema_checkpoint *checkpoint);
const struct phema_value *phema_checkpoint_values(const struct phema_checkpoint *checkpoint);

/* Sentences about what was odd but harmless (a wrong total_size); borrowed. */
size_t phema_checkpoint_n_warnings(const struct phema_checkpoint *checkpoint);
const char *phema_checkpoint_warning(const struct phema_checkpoint *checkpoint, size_t index);

/* Whether data are decompressed: then tensors are best read once, in the order of their offsets. */
bool phema_checkpoint_is_decoded(const struct phema_checkpoint *checkpoint);
/* Whether any order is cheap: data are mapped, or compressed in small frames whose places are
 * known. Otherwise reading backward decompresses a large frame, or the file, from its beginning. */
bool phema_checkpoint_can_seek(const struct phema_checkpoint *checkpoint);
/* For a byte of a file's content: where reading it begins. Itself, or, of compressed data, the
 * beginning of the frame that is gone through from there on; of one without an index, 0. */
uint64_t phema_checkpoint_entry(const struct phema_checkpoint *checkpoint, size_t file,
                                uint64_t offset);
/* What one reader needs to decompress: window, buffers and decoder; 0 for mapped files. Held from
 * the first read until finish, close or the end of the content. */
uint64_t phema_checkpoint_decoder_bytes(const struct phema_checkpoint *checkpoint);

/* Reads the tensors of one checkpoint, whose listing may be forgotten by then. Tensors that are
 * mapped may be read from any thread at the same time; decoded ones by one thread at a time. */
struct phema_reader;
PHEMA_FALLIBLE phema_reader_open(struct phema_reader **out,
                                 const struct phema_checkpoint *checkpoint,
                                 struct phema_error *err);
void phema_reader_close(struct phema_reader *reader); /* takes NULL */

/* Before the first read: how it gets at the data of tensors that lie in C order and in one place.
 * All others, and compressed files, stay mapped. Readers that never call this map everything. */
struct phema_reading {
    enum phema_io io;
    bool maps_local;  /* auto: files are read, but for those of local filesystems */
    bool drops_cache; /* nothing of the files is left in the page cache afterwards */
};
/* Opens every file of the checkpoint where the mapping is not enough.
 * PHEMA_ERR_FILE, PHEMA_ERR_RESOURCE as phema_file_reader_open; names the path */
PHEMA_FALLIBLE phema_reader_use(struct phema_reader *reader, const struct phema_reading *reading,
                                struct phema_error *err);

/* Hints for bytes [offset, offset + size) of a file: they will be read soon; whether the first one
 * is in the page cache already (true where it cannot be told cheaply); they have been read, so that
 * mapped pages, and what the page cache has of them if so chosen, can go. */
void phema_reader_ask(const struct phema_reader *reader, size_t file, uint64_t offset,
                      uint64_t size);
bool phema_reader_is_cached(const struct phema_reader *reader, size_t file, uint64_t offset);
void phema_reader_release(const struct phema_reader *reader, size_t file, uint64_t offset,
                          uint64_t size);

/* Elements [first, first + n) in C order; sub-byte dtypes must begin and end on a byte. n > 0.
 *   data    out: a view into the mapped file (any address, aligned or not), or somewhere in scratch
 *   scratch [n * bytes of an element]; aligned, and with room, as input.h has it where it is read
 * PHEMA_ERR_FILE      compressed data are corrupt or end too early, or the file cannot be read;
 *                     names path and tensor
 * PHEMA_ERR_RESOURCE  no memory for a decoder */
PHEMA_FALLIBLE phema_reader_read(const uint8_t **data, struct phema_reader *reader,
                                 const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                 void *scratch, struct phema_error *err);

/* Lets go of the mapped pages of elements [first, first + n), which have been read. */
void phema_tensor_release(const struct phema_checkpoint *checkpoint,
                          const struct phema_tensor *tensor, uint64_t first, uint64_t n);

/* When all is read that will be: PHEMA_ERR_FILE when decompressed content goes on behind the last
 * tensor, or a checksum is wrong. Decompresses the rest of the file, or, where the sizes of all
 * frames are known, of the frame that was read last. Nothing to do for mapped files. */
PHEMA_FALLIBLE phema_reader_finish(struct phema_reader *reader, struct phema_error *err);

/* Of a tensor that lies mapped in one place: its first element, NULL when it has none (and of one
 * that is decompressed) ... */
const uint8_t *phema_tensor_start(const struct phema_checkpoint *checkpoint,
                                  const struct phema_tensor *tensor);
/* ... and elements from there on, as phema_reader_read has them. */
const uint8_t *phema_tensor_read(const uint8_t *start, const struct phema_tensor *tensor,
                                 uint64_t first, uint64_t n, void *scratch);

/* The inverse of phema_tensor_read, for a copy of the file: elements [first, first + n) in C order
 * go to their places relative to start, that of the first element. Where several elements have one
 * place (expanded tensors) it holds the last of them afterwards. n may be 0. */
void phema_tensor_write(uint8_t *start, const struct phema_tensor *tensor, uint64_t first,
                        uint64_t n, const void *data);

/* Whether two tensors, each in one place of a checkpoint (no parts), share a byte. Answers true
 * where that cannot be ruled out in bounded time and 16 MiB of memory: views that are interleaved
 * in unusual ways over a range beyond that. PHEMA_ERR_RESOURCE: no memory. */
PHEMA_FALLIBLE phema_tensors_overlap(bool *out, const struct phema_tensor *a,
                                     const struct phema_tensor *b, struct phema_error *err);

enum phema_overlap {
    PHEMA_OVERLAP_KEPT,    /* of a tensor that is replaced with one that is kept */
    PHEMA_OVERLAP_REPLACED /* of two that are replaced and are not the same elements in the same
                              order, as several names of one tensor are */
};
/* Looks for two of n tensors that share bytes, as above.
 *   pair         out: their indices, the replaced one first
 *   is_replaced  [n] */
PHEMA_FALLIBLE phema_find_overlap(size_t pair[2], bool *found, enum phema_overlap sought,
                                  const struct phema_tensor *tensors, const bool *is_replaced,
                                  size_t n, struct phema_error *err);

#define PHEMA_RECORD_CRCS 3 /* at most, of a record */

/* Bytes [offset, offset + size_bytes) of a file and the CRC-32 of them, which stands little-endian
 * at each of the absolute offsets crc_at. Who changes the bytes mends them all. */
struct phema_record {
    uint64_t offset, size_bytes;
    uint64_t crc_at[PHEMA_RECORD_CRCS];
    unsigned n_crc; /* 2 or 3 */
    uint32_t crc;   /* as the file has it; nobody has compared it with the data */
};

/* The records that hold the tensors of a PyTorch zip, sorted by offset, read anew from the mapped
 * file: the listing may be forgotten by then. Other formats have none. out: the caller's (free).
 * PHEMA_ERR_FILE      the file was changed since it was opened, and is damaged; names the path
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_checkpoint_records(struct phema_record **out, size_t *n,
                                        const struct phema_checkpoint *checkpoint,
                                        struct phema_error *err);

/* Whether checksums were switched off when the file was written: the record says 0 and its data say
 * otherwise. Then 0 is what the copy keeps. content: of the whole file, before any change. Reads
 * the data only where the CRC is 0. */
bool phema_record_is_switched_off(const struct phema_record *record, struct phema_span content);

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
