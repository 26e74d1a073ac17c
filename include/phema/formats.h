/* formats.h - A checkpoint: a list of named tensors, each at a known place in a mapped file.
 * Formats find the places and copy no data. Everything from a file is checked before use; nothing
 * in it is executed, trusted as a length, or followed out of its directory. Formats are recognised
 * by content, not by extension: safetensors, also compressed with zstd; an index of shards of
 * safetensors or PyTorch; PyTorch zip and its format before 1.6; pickles of EDM2; the metadata of a
 * PyTorch Distributed Checkpoint. */
#ifndef PHEMA_FORMATS_H
#define PHEMA_FORMATS_H

#include "phema/arena.h"
#include "phema/dtype.h"
#include "phema/error.h"
#include "phema/file_reader.h"
#include "phema/mapped_file.h"
#include "phema/span.h"

enum phema_tensor_kind {
    PHEMA_KIND_UNKNOWN, /* the file does not say */
    PHEMA_KIND_PARAMETER,
    PHEMA_KIND_BUFFER,
    PHEMA_KIND_ATTRIBUTE, /* of a dict, module or object in a pickle, outside the state_dict */
    PHEMA_KIND_SCALE,     /* of the fp8 codes of another tensor (struct phema_scaling) */
    PHEMA_KIND_ACTIVATION_SCALE, /* input_scale and the like, beside such tensors */
    PHEMA_KIND_FROZEN            /* of the file that snapshots share */
};

/* Metadata of a snapshot whose frozen tensors are in a file beside it: the name of that file, and
 * the digest, which the file has, too. */
#define PHEMA_FROZEN_FILE   "posthoc_ema.frozen_file"
#define PHEMA_FROZEN_DIGEST "posthoc_ema.frozen_digest"

#define PHEMA_MAX_RANK 64 /* the limit of torch and numpy 2 */

/* Limit of a *.index.json, read or written. Those of the largest models have a few MiB; a tree of
 * the JSON takes several times as much memory. */
#define PHEMA_MAX_INDEX_BYTES ((size_t)64 << 20)

/* A rectangular part of a tensor at its own place, as in distributed checkpoints. */
struct phema_chunk {
    const uint64_t *start, *size; /* [rank] first index and extent in every dimension */
    const uint64_t *stride;       /* [rank] in elements; NULL: C order */
    size_t file;
    uint64_t offset; /* absolute, of the chunk's first element [bytes] */
};

/* The scale of an fp8 tensor: value = code * scale. Block by block, leading dimensions apart: rows
 * and columns are those of the last two dimensions, or of the whole where a scale serves all
 * columns. */
struct phema_scaling {
    const char *name; /* of the scale, NUL-terminated */
    size_t name_size;
    enum phema_dtype codes; /* F8_E4M3, F8_E5M2 */
    enum phema_dtype dtype; /* of the scale: a float; F8_E8M0 also where the file says U8 */
    bool is_power_of_two;   /* every scale: F8_E8M0, and where config.json says so */
    uint64_t rows, columns; /* of a matrix of codes; more matrices follow one another */
    uint64_t block_rows, block_columns; /* that share a scale; the last ones may be fewer */
    uint64_t scale_rows, scale_columns; /* of the scales of a matrix */
    /* the place of the scale, in C order: its offset minus that of the codes, which may wrap */
    uint64_t distance;
    size_t file;
    unsigned rank;
    const uint64_t *shape;
    uint64_t n_elems;
    const struct phema_chunk *chunks; /* [n_chunks] as those of a tensor */
    size_t n_chunks;
    const float *values; /* [n_elems] of a compressed file, until it is closed; else NULL */
};

/* The scale of element `at`, and the elements [*first, *end) of its row that share the scale. */
uint64_t phema_scaling_find(uint64_t *first, uint64_t *end, const struct phema_scaling *scaling,
                            uint64_t at);

/* Whether the shapes say the size of the blocks. Else it is that of config.json, which other files
 * of the same codes and scales need beside them. */
bool phema_scaling_is_evident(const struct phema_scaling *scaling);

/* Element (i_0, ...) lies at offset + (sum i_k stride_k) * bytes of an element. Tensors that share
 * storage (tied weights, views) overlap. */
struct phema_tensor {
    const char *name; /* UTF-8, NUL-terminated; may contain NULs: use name_size */
    size_t name_size;
    enum phema_dtype dtype;
    enum phema_tensor_kind kind;
    unsigned rank;
    const uint64_t *shape;  /* [rank] */
    const uint64_t *stride; /* [rank], in elements; NULL: C order */
    uint64_t n_elems;       /* product of shape: 1 for rank 0 */
    uint64_t size_bytes;    /* of the data in C order: n_elems * bits / 8 */
    size_t file;            /* index of the checkpoint's file */
    uint64_t offset;        /* absolute, of the first element [bytes] */
    bool is_compressed;     /* offset counts in the decompressed content of the file */
    /* [n_chunks] disjoint parts that make up the tensor, until the checkpoint is closed; file,
     * offset and stride are unused. NULL: the tensor lies in one place. */
    const struct phema_chunk *chunks;
    size_t n_chunks;
    /* The file holds narrower floats, which every read makes floats of dtype. No view is possible:
     * chunks or stride are not NULL. Listings have no such tensors, and they have no scaling. */
    bool is_widened;
    enum phema_dtype stored_dtype;
    /* Of fp8 codes, as long as the listing; NULL: the tensor has no scale. A tensor of another
     * dtype than the codes is what phema_tensor_values makes of them. */
    const struct phema_scaling *scaling;
};

/* The numbers of an fp8 tensor with a scale: F32, read as codes times scales. Others as they
 * are. */
struct phema_tensor phema_tensor_values(const struct phema_tensor *tensor);

/* The inverse: the codes of numbers. */
struct phema_tensor phema_tensor_codes(const struct phema_tensor *tensor);

/* The dtype in the file. */
static inline enum phema_dtype phema_tensor_stored_dtype(const struct phema_tensor *tensor)
{
    if (tensor->is_widened)
        return tensor->stored_dtype;
    return tensor->scaling ? tensor->scaling->codes : tensor->dtype;
}

/* Whether a read makes other numbers of those in the file: wider floats, or codes times scales. */
static inline bool phema_tensor_is_converted(const struct phema_tensor *tensor)
{
    return tensor->dtype != phema_tensor_stored_dtype(tensor);
}

struct phema_strbuf;
/* "[64, 3]" */
void phema_tensor_write_shape(struct phema_strbuf *out, const struct phema_tensor *tensor);
/* Whether the last part of its name, behind the last point, is one of n words. */
bool phema_tensor_is_called(const struct phema_tensor *tensor, const char *const *words, size_t n);

struct phema_checkpoint;

struct phema_checkpoint_options {
    const char *const *allow_globals; /* [n] names allowed in a pickle, as inert objects */
    size_t n_allow_globals;
    /* An open checkpoint that is likely to list the same tensors; or NULL. When both are single
     * safetensors files whose headers differ only in the metadata, the listing is omitted: see
     * phema_checkpoint_is_alike. */
    const struct phema_checkpoint *alike;
    bool keeps_descriptors; /* its files are opened once (phema_file_open_once) */
};

/* path: a checkpoint file, a *.index.json, or a directory that holds exactly one checkpoint (a
 * distributed one with .metadata, an index and its shards, or one file). options may be NULL.
 * Messages name the file, and the tensor where there is one.
 * PHEMA_ERR_FILE      unreadable, corrupt, refused; the message names formats that are known
 *                     but not read
 * PHEMA_ERR_INPUTS    the file of its frozen tensors is unreadable, or of another training
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_checkpoint_open(struct phema_checkpoint **out, const char *path,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err);
void phema_checkpoint_close(struct phema_checkpoint *checkpoint); /* takes NULL */

/* Frees names, shapes, metadata and values; keeps the files mapped for callers that have copied the
 * places. */
void phema_checkpoint_forget_listing(struct phema_checkpoint *checkpoint);

const char *phema_checkpoint_path(const struct phema_checkpoint *checkpoint); /* as given */

/* Packs a checkpoint without its listing, or makes the receiver's (packed.h). The receiver opens no
 * file before phema_checkpoint_demand, except a compressed one; readers that open before leave the
 * file out. demand also says whether descriptors of the file stay open (mapped_file.h).
 * PHEMA_ERR_FILE  the file cannot be opened, or is not the one that was packed; names the path */
struct phema_packer;
PHEMA_FALLIBLE phema_checkpoint_pack(struct phema_checkpoint **checkpoint,
                                     struct phema_packer *packer, struct phema_error *err);
PHEMA_FALLIBLE phema_checkpoint_demand(const struct phema_checkpoint *checkpoint, size_t file,
                                       bool keeps_descriptors, struct phema_error *err);

/* Brings the headers of checkpoints into the page cache, with many requests at once, before they
 * are opened one by one: those of files, and of all files beside an index or in a directory. Does
 * nothing where some of them are cached. Ignores files that are not there. */
void phema_headers_prefetch(const char *const *paths, size_t n);

/* To be called after use of the data. Opening does the same for the headers it has read.
 * PHEMA_ERR_FILE  a file was written to since it was opened; names the file */
PHEMA_FALLIBLE phema_checkpoint_check_unchanged(const struct phema_checkpoint *checkpoint,
                                                struct phema_error *err);
/* "safetensors", "safetensors.zst", "sharded", "torch-zip", "torch-legacy", "pickle", "dcp",
 * "torch-sharded", "dcp-safetensors", "torch-checkpointing" */
const char *phema_checkpoint_format(const struct phema_checkpoint *checkpoint);

/* ---- Names of files ----
 * The content decides the format of a file. The name decides which files of a directory are read,
 * and how an output is written. The formats' own tables are the only lists of extensions. */

/* Uses of an extension, to be combined. */
enum {
    PHEMA_NAMES_SNAPSHOT = 1,       /* a file of a series: a snapshot or an output */
    PHEMA_NAMES_CHECKPOINT = 2,     /* can be the one checkpoint of a directory */
    PHEMA_NAMES_OUTPUT = 4,         /* outputs can be written under such a name */
    PHEMA_NAMES_FILE = 7,           /* all of these */
    PHEMA_NAMES_SELF_DESCRIBED = 8, /* metadata can hold time and width, whatever the name */
    PHEMA_NAMES_BY_CONTENT = 16     /* can be anything: phema_file_is_torch */
};

struct phema_extension {
    const char *text; /* end of a name, such as .safetensors; NULL ends the table */
    unsigned uses;    /* 0: only recognised as a file of tensors */
};

/* How an output of a format is written. */
enum phema_format_output {
    PHEMA_OUTPUT_NEVER,
    PHEMA_OUTPUT_NEW,
    PHEMA_OUTPUT_COMPRESSED,
    PHEMA_OUTPUT_COPY /* a copy of a checkpoint with tensors replaced */
};

struct phema_format_info {
    const char *name;                         /* as phema_checkpoint_format */
    const struct phema_extension *extensions; /* the first one is the usual one */
    enum phema_format_output output;
    bool can_be_template; /* tensors can be replaced in a copy of a file */
    bool is_directory;    /* the copy is of a directory */
    bool is_index;        /* lists the files that hold the tensors */
    const char *model; /* key of the model in checkpoints of several items; NULL: none is usual */
};

const struct phema_format_info *
phema_checkpoint_format_info(const struct phema_checkpoint *checkpoint);

/* The format of a name by its extension, or NULL.
 *   extension  out: with the dot, static; may be NULL
 *   path       a name or a path
 *   uses       extensions of any of these uses; 0: all extensions */
const struct phema_format_info *phema_format_from_path(const char **extension, const char *path,
                                                       unsigned uses);
/* The same for the extensions of one format. */
bool phema_format_has_extension(const struct phema_format_info *format, const char *path,
                                unsigned uses);
/* The usual extension of the format of this name, with the dot; NULL: the format has none. */
const char *phema_format_extension(const char *format);
/* True of a file of a name of BY_CONTENT that begins as PyTorch's files do. */
bool phema_file_is_torch(const char *path);
/* True of a file of any name that begins as safetensors or PyTorch's files do. */
bool phema_file_is_checkpoint(const char *path);
/* The name is that of a file of tensors, also of formats that are not read (.gguf, .onnx). */
bool phema_path_names_tensors(const char *path);

/* True when the names in a directory can be those of one checkpoint in files that no index lists; for_sure:
 * when they can be nothing else. */
bool phema_directory_is_checkpoint(const char *path, bool for_sure);
/* Whether a directory can be read, and holds one checkpoint, of whatever names, or nothing.
 * PHEMA_ERR_RESOURCE */
PHEMA_FALLIBLE phema_directory_holds_checkpoint(bool *out, const char *path,
                                                struct phema_error *err);
/* True when subdirectories are distributed checkpoints that are the parts of one. */
bool phema_directory_has_parts(const char *path);
/* Checkpoints in a folder of a training: the folder itself if it is one, else its files and the
 * folders in it, two levels down, without the state of the training.
 *   paths  out: [*n] in the order of their names, in the arena; each can be opened
 * Returns false without memory. */
bool phema_folder_list(const char *const **paths, size_t *n, struct phema_arena *arena,
                       const char *path);
/* The name of the file that makes a folder one checkpoint, in the arena: its index, or its only file.
 * NULL: there is none, or no memory. */
const char *phema_folder_own_file(struct phema_arena *arena, const char *path);
/* What a file of a format that is not read is, as the end of a sentence ("is a GGUF file, ..."); NULL:
 * none is known. */
const char *phema_foreign_file(const char *path);
/* What a directory is that lacks a part of its checkpoint, as the end of a sentence; NULL: none is known. */
const char *phema_unfinished_directory(const char *path);
/* What a directory of a format that is not read is ("an Orbax checkpoint"); NULL: none is known. */
const char *phema_foreign_directory(const char *path);
/* True when a name in a directory is a usual one of a model: of an index or of distributed
 * metadata, or also of a single file. */
bool phema_directory_has_model(const char *path, bool may_be_one_file);

/* ---- Contents of a checkpoint ---- */

/* In the order of the file: the header of safetensors (shard after shard, in the order of the
 * index's weight_map), the pickle of PyTorch and EDM2 (.metadata of a distributed checkpoint). */
size_t phema_checkpoint_n_tensors(const struct phema_checkpoint *checkpoint);
const struct phema_tensor *phema_checkpoint_tensors(const struct phema_checkpoint *checkpoint);
const struct phema_tensor *phema_checkpoint_find(const struct phema_checkpoint *checkpoint,
                                                 const char *name, size_t name_size);

/* The reason why a tensor of the listing, fp8 codes, has no scaling although it has a scale: a
 * sentence about the tensor; NULL: there is no such scale. */
const char *phema_checkpoint_scale_fault(const struct phema_checkpoint *checkpoint,
                                         const struct phema_tensor *tensor);

/* Of a sharded checkpoint, file 0 is the index; of a distributed one, .metadata. */
size_t phema_checkpoint_n_files(const struct phema_checkpoint *checkpoint);
const struct phema_file *phema_checkpoint_file(const struct phema_checkpoint *checkpoint,
                                               size_t index);
/* The path of the file for listings, relative to the checkpoint's directory. */
const char *phema_checkpoint_file_label(const struct phema_checkpoint *checkpoint, size_t index);

/* Whether a file is that of the frozen tensors, which other snapshots have, too. */
bool phema_checkpoint_shares_file(const struct phema_checkpoint *checkpoint, size_t index);

/* True when the listing is omitted because it equals that of options->alike: the same tensors in
 * the same order, with *shift added to all offsets, which may wrap. Metadata are those of this
 * file. */
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

/* The one key of the object that was saved, if it held all tensors below that key alone, and the
 * checkpoint says so. Borrowed like a name; NULL: none. */
const char *phema_checkpoint_root_key(const struct phema_checkpoint *checkpoint);

/* Numbers that a pickle holds next to its tensors (integers and floats in dicts, lists and tuples),
 * named like tensors: "global_step", "ema.stds.0". Those nearest to the root come first; some of
 * many deep ones are dropped. Other formats have no such numbers. */
struct phema_value {
    const char *name;
    size_t name_size;
    double number;
};
size_t phema_checkpoint_n_values(const struct phema_checkpoint *checkpoint);
const struct phema_value *phema_checkpoint_values(const struct phema_checkpoint *checkpoint);

/* A place of tensors that are not read: an object of a class that nobody here knows and that holds
 * tensors otherwise than a dict or module, or a tensor of an unknown kind. Whoever needs the
 * tensors at its name has to refuse the checkpoint. */
struct phema_unread {
    const char *name; /* of the place, as tensors are named; "": the root. Not terminated */
    size_t name_size;
    const char *class_name; /* or the function, "module.name" */
    const char *why;        /* of a kind of tensors, as the end of a sentence; NULL: an object */
};
const struct phema_unread *phema_checkpoint_unread(const struct phema_checkpoint *checkpoint,
                                                   size_t *n);

/* Warnings about harmless faults (a wrong total_size), one sentence each; borrowed. */
size_t phema_checkpoint_n_warnings(const struct phema_checkpoint *checkpoint);
const char *phema_checkpoint_warning(const struct phema_checkpoint *checkpoint, size_t index);

/* True when reads decompress: then tensors should be read once, in the order of their offsets. */
bool phema_checkpoint_is_compressed(const struct phema_checkpoint *checkpoint);
/* True when any order of reads is cheap: data are mapped, or compressed in small frames at known
 * places. Otherwise a backward read decompresses a large frame, or the file, from its beginning. */
bool phema_checkpoint_can_seek(const struct phema_checkpoint *checkpoint);
/* The offset where a read of a byte of content begins. Mapped data: the byte itself.
 * Compressed data: the beginning of the frame that holds it; without an index 0. */
uint64_t phema_checkpoint_entry(const struct phema_checkpoint *checkpoint, uint64_t offset);
/* Memory of one reader for decompression: window, buffers and decoder; 0 for mapped files.
 * Allocated from the first read until finish, close or the end of the content. */
uint64_t phema_checkpoint_decoder_bytes(const struct phema_checkpoint *checkpoint);

/* Reads the tensors of one checkpoint, even after phema_checkpoint_forget_listing. Any number of
 * threads may read mapped tensors at the same time, but only one thread compressed tensors. */
struct phema_reader;
PHEMA_FALLIBLE phema_reader_open(struct phema_reader **out,
                                 const struct phema_checkpoint *checkpoint,
                                 struct phema_error *err);
void phema_reader_close(struct phema_reader *reader); /* takes NULL */

/* How a reader accesses elements that lie in C order and in one place. All others, and compressed
 * files, stay mapped. */
struct phema_reading {
    enum phema_io io;              /* auto: read */
    const enum phema_io *of_files; /* [files of the checkpoint] chosen for each; NULL: io for all. A
                                    * filesystem may refuse direct reads that io does not demand */
    bool rereads;     /* as no earlier reads: direct ones go through the page cache, and
                                    * phema_file_forget is called for each file */
    bool drops_cache; /* the files leave nothing in the page cache */
    bool is_sparse;   /* single pages are read, no neighbours */
};
/* Called before the first read; opens every file of the checkpoint for which the mapping is not
 * enough. Without this call, everything is mapped.
 * PHEMA_ERR_FILE      as phema_file_reader_open; names the path
 * PHEMA_ERR_RESOURCE  as phema_file_reader_open; names the path */
PHEMA_FALLIBLE phema_reader_use(struct phema_reader *reader, const struct phema_reading *reading,
                                struct phema_error *err);

/* Hints for bytes [offset, offset + size) of a file.
 *   prefetch   they will be read soon
 *   is_cached  true when the first one is in the page cache, or when that is expensive to know
 *   release    they have been read: mapped pages can go, and with drops_cache cached ones, too */
void phema_reader_prefetch(const struct phema_reader *reader, size_t file, uint64_t offset,
                           uint64_t size);
bool phema_reader_is_cached(const struct phema_reader *reader, size_t file, uint64_t offset);
void phema_reader_release(const struct phema_reader *reader, size_t file, uint64_t offset,
                          uint64_t size);

/* Elements [first, first + n) in C order; sub-byte dtypes must begin and end on a byte. n > 0.
 *   data     out: a view into the mapped file (any address, aligned or not), or inside scratch
 *   scratch  [n * bytes of an element]; with the alignment and extra bytes of file_reader.h for
 *            files that are read
 * PHEMA_ERR_FILE      compressed data are corrupt or end too early, or the file cannot be read;
 *                     names path and tensor
 * PHEMA_ERR_RESOURCE  no memory for a decoder */
PHEMA_FALLIBLE phema_reader_read(const uint8_t **data, struct phema_reader *reader,
                                 const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                 void *scratch, struct phema_error *err);

/* The same read, for a queue (phema/read_queue.h), if the elements lie in one piece of a file that
 * is read past the page cache. prepare: false if they do not. Submit the read unless its size is 0,
 * and complete it when the queue has returned it: *data are the elements as they are stored.
 * convert makes numbers of codes, in scratch, and leaves others as they are. Pages of scales are
 * requested by prepare.
 *   buffer  as scratch, aligned to PHEMA_INPUT_ALIGNMENT */
bool phema_reader_prepare(struct phema_read *read, const struct phema_reader *reader,
                          const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                          uint8_t *buffer);
PHEMA_FALLIBLE phema_reader_complete(const uint8_t **data, const struct phema_read *read,
                                     const struct phema_tensor *tensor, struct phema_error *err);
PHEMA_FALLIBLE phema_reader_convert(const uint8_t **data, struct phema_reader *reader,
                                    const struct phema_tensor *tensor, uint64_t first, uint64_t n,
                                    const uint8_t *stored, void *scratch, struct phema_error *err);

/* Where one element begins. false: unknown, for a strided, compressed or converted tensor. */
bool phema_tensor_find(size_t *file, uint64_t *offset, const struct phema_tensor *tensor,
                       uint64_t element);

/* Requests the pages of elements [first, first + n) and of their scales, without waiting; of a
 * compressed tensor the frames that hold them, as far as they are needed. Does nothing for strided
 * and widened tensors, and where the places of frames are not known. n > 0. */
void phema_tensor_prefetch(const struct phema_checkpoint *checkpoint,
                           const struct phema_tensor *tensor, uint64_t first, uint64_t n);

/* Releases the mapped pages of elements [first, first + n), which have been read. */
void phema_tensor_release(const struct phema_checkpoint *checkpoint,
                          const struct phema_tensor *tensor, uint64_t first, uint64_t n);

/* Called after the last read. Decompresses the rest of the file, or, where the sizes of all frames
 * are known, of the frame that was read last. Mapped files need no check.
 * PHEMA_ERR_FILE  content follows the last tensor, or a checksum is wrong */
PHEMA_FALLIBLE phema_reader_finish(struct phema_reader *reader, struct phema_error *err);

/* The first element of a tensor that is mapped in one place; NULL when the tensor is empty, in
 * chunks or compressed. */
const uint8_t *phema_tensor_start(const struct phema_checkpoint *checkpoint,
                                  const struct phema_tensor *tensor);
/* Elements from there on, as in phema_reader_read. */
const uint8_t *phema_tensor_read(const uint8_t *start, const struct phema_tensor *tensor,
                                 uint64_t first, uint64_t n, void *scratch);

/* The inverse of phema_tensor_read, for a copy of the file: writes elements [first, first + n) in C
 * order to their places relative to start, the place of the first element. Where several elements
 * share a place (expanded tensors) the last one remains. n may be 0. */
void phema_tensor_write(uint8_t *start, const struct phema_tensor *tensor, uint64_t first,
                        uint64_t n, const void *data);

/* Elements [first, first + n) of a tensor that follow one another in a file too, from offset on. */
struct phema_run {
    size_t chunk, file;
    uint64_t offset, first, n;
};
typedef enum phema_status phema_run_visitor(void *context, const struct phema_run *run,
                                            struct phema_error *err);
/* Calls visit for every run of elements [first, first + n) of a tensor of chunks in C order, chunk
 * by chunk. Returns its first failure; later runs are then left out. */
PHEMA_FALLIBLE phema_tensor_visit_runs(const struct phema_tensor *tensor, uint64_t first,
                                       uint64_t n, phema_run_visitor *visit, void *context,
                                       struct phema_error *err);

enum phema_overlap {
    PHEMA_OVERLAP_KEPT,    /* a replaced tensor and a kept one */
    PHEMA_OVERLAP_REPLACED /* two replaced tensors, unless they are the same elements in the same
                              order, as several names of one tensor are */
};
/* Finds two of n tensors, each in one place of a checkpoint (no chunks), that share bytes. Also
 * finds tensors where bounded time and 16 MiB of memory cannot exclude it: views that are
 * interleaved in unusual ways over a larger range.
 *   pair         out: their indices, the replaced one first
 *   is_replaced  [n]
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_find_overlap(size_t pair[2], bool *found, enum phema_overlap sought,
                                  const struct phema_tensor *tensors, const bool *is_replaced,
                                  size_t n, struct phema_error *err);

#define PHEMA_RECORD_CRCS 3 /* at most, for a record */

/* Bytes [offset, offset + size_bytes) of a file of the checkpoint and their CRC-32, which is stored
 * little-endian at each of the absolute offsets crc_at. A change of the bytes must update all of
 * them. */
struct phema_record {
    size_t file;
    uint64_t offset, size_bytes;
    uint64_t crc_at[PHEMA_RECORD_CRCS];
    unsigned n_crc; /* 2 or 3 */
    uint32_t crc;   /* as stored in the file; not compared with the data */
};

/* The records that hold the tensors of a PyTorch zip, or of all zips of a distributed checkpoint,
 * sorted by file and offset. Reads the mapped files again, so the listing may be forgotten. Other
 * formats have no records. out: the caller's (free).
 * PHEMA_ERR_FILE      the file was changed since it was opened, and is damaged; names the path
 * PHEMA_ERR_RESOURCE  no memory */
PHEMA_FALLIBLE phema_checkpoint_records(struct phema_record **out, size_t *n,
                                        const struct phema_checkpoint *checkpoint,
                                        struct phema_error *err);

/* True when checksums were disabled when the file was written: the stored CRC is 0 and that of the
 * data is not. Then a copy keeps 0. Reads the data only where the stored CRC is 0.
 *   content  of the whole file, before any change */
bool phema_record_is_switched_off(const struct phema_record *record, struct phema_span content);

/* Header and offsets of a new safetensors file. Tensors are ordered by falling element size, then
 * by name, as in safetensors 0.8, so that data are aligned. The header is padded with spaces to a
 * multiple of 8.
 *   header   out: the caller's (free); 8 bytes of length and the JSON
 *   offsets  out: [n] absolute offset of each tensor, in the order of tensors
 *   total    out: size of the whole file
 * PHEMA_ERR_OUTPUT  a dtype does not exist in safetensors, or the header exceeds 100 MB */
PHEMA_FALLIBLE phema_safetensors_layout(uint8_t **header, size_t *header_size, uint64_t *offsets,
                                        uint64_t *total, const struct phema_tensor *tensors,
                                        size_t n, const struct phema_metadata *metadata,
                                        size_t n_metadata, struct phema_error *err);

#endif
