/* format.h - Private to formats/: a checkpoint while a format fills it, and the interface of a
 * format. A format is one const struct phema_format in its own file and one line in registry.c. */
#ifndef FORMATS_FORMAT_H
#define FORMATS_FORMAT_H

#include <string.h>

#include "phema/arena.h"
#include "phema/array.h"
#include "phema/formats.h"

static inline bool span_is(struct phema_span span, const char *text)
{
    return phema_bytes_are(span.data, span.size, text);
}

/* A little-endian number of up to 8 bytes, at any address. */
static inline uint64_t load_number(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* ---- Names (name_table.c) ----
 * Hash table from names to numbers. Names come from files and may be chosen to collide, so there is
 * a secret key. Nothing depends on the order of slots. */

struct name_slot;

/* Starts as {0}. Names are borrowed. */
struct name_table {
    struct name_slot *slots;
    size_t capacity, n;
    uint64_t key[2]; /* of the hash */
};

enum name_added { NAME_ADDED, NAME_EXISTS, NAME_NO_MEMORY };

enum name_added name_table_add(struct name_table *table, const char *name, size_t size,
                               size_t value);
bool name_table_find(size_t *value, const struct name_table *table, const char *name, size_t size);
void name_table_clear(struct name_table *table);

/* ---- Formats ---- */

struct directory_name {
    char *text;
    bool is_checkpoint; /* by its extension, the one checkpoint of the directory, or a part of it */
    bool is_listed;     /* an index that was read names the file */
};

/* The names in a directory, in the order of their bytes, without hidden ones. */
struct directory_names {
    struct directory_name *at;
    size_t n, capacity;
};

struct phema_format {
    struct phema_format_info info;
    /* True when the content is of this format; looks at the first few bytes only. */
    bool (*probe)(struct phema_span content);
    /* Fills the checkpoint from its file 0. Messages name tensor and shard, not the file. */
    enum phema_status (*open)(struct phema_checkpoint *checkpoint,
                              const struct phema_checkpoint_options *options,
                              struct phema_error *err);
    /* Of the formats of torch.save: lists the tensors of a file that an index names. Else NULL. */
    enum phema_status (*read_shard)(struct phema_checkpoint *checkpoint, size_t file,
                                    const struct phema_checkpoint_options *options,
                                    struct phema_error *err);
    /* phema_checkpoint_records, not sorted; NULL: the format has none. */
    enum phema_status (*list_records)(struct phema_record **out, size_t *n,
                                      const struct phema_checkpoint *checkpoint,
                                      struct phema_error *err);
    /* Of a checkpoint that is a directory without a file that lists the others; then probe and
     * open are NULL. Messages name file and tensor, not the directory. Names alone can be those of
     * a series, too: then they are not certain. */
    bool (*probe_directory)(bool *is_certain, const struct directory_names *names);
    enum phema_status (*open_directory)(struct phema_checkpoint *checkpoint,
                                        const struct directory_names *names,
                                        const struct phema_checkpoint_options *options,
                                        struct phema_error *err);
};

/* The format of a content; never NULL: the open of safetensors refuses an unknown content. */
const struct phema_format *format_probe(struct phema_span content);
/* The format of phema_checkpoint_format's name, or NULL. */
const struct phema_format *format_from_name(const char *name);
/* The format of a directory without .metadata and index; NULL: of none. */
const struct phema_format *format_probe_directory(bool *is_certain,
                                                  const struct directory_names *names);

struct zstd_frames;

struct checkpoint_file {
    struct phema_file *file;
    char *label;
    bool is_metadata; /* the .metadata of a distributed checkpoint, or of a part of one */
    bool is_shared;   /* phema_checkpoint_shares_file */
};

/* Of a single safetensors file: the place of the data, and the text of the header about them. */
struct header_text {
    struct phema_span text; /* after the metadata, up to the last brace; NULL: not kept */
    bool has_metadata;      /* the metadata precede the text */
    uint64_t data_offset, data_size;
};

/* What config.json says about scales of blocks. */
struct scale_config {
    uint64_t block_size[2]; /* rows, columns */
    bool is_power_of_two;   /* scale_fmt is "ue8m0" */
};

struct phema_checkpoint {
    char *path;
    const struct phema_format *format;
    struct checkpoint_file *files;
    size_t n_files, files_capacity;
    struct zstd_frames *frames;     /* of the one file if it is compressed, else NULL */
    struct phema_arena arena;       /* names, shapes, strides, metadata */
    struct phema_arena chunk_arena; /* chunks of tensors: outlive the listing */
    struct phema_tensor *tensors;
    size_t n_tensors, tensors_capacity;
    struct phema_metadata *metadata;
    size_t n_metadata, metadata_capacity;
    struct phema_value *values;
    size_t n_values, values_capacity;
    struct phema_unread *unread;
    size_t n_unread, unread_capacity;
    char **warnings;
    size_t n_warnings, warnings_capacity;
    struct name_table names;          /* of tensors; values are their indices */
    const char **scale_faults;        /* [n_tensors] NULL: none */
    bool has_blocks;                  /* a scale serves blocks of config.json's size, ... */
    struct scale_config scale_config; /* ... which is here */
    struct header_text header;
    size_t base;            /* the file whose directory relative paths start from */
    bool keeps_descriptors; /* of files that are added */
    struct phema_span part; /* "NAME.", which begins the names of a part's tensors; {NULL, 0} */
    const char *root_key;   /* phema_checkpoint_root_key */
    bool is_alike;          /* not listed: the tensors are those of another checkpoint ... */
    uint64_t shift;         /* ... at this distance [bytes] */
};

#define FILE_START 512 /* bytes that tell the format of a file */
/* The first bytes of a file; none of a directory, a pipe, or a file that cannot be read. */
struct phema_span file_start(uint8_t start[FILE_START], const char *path);

/* What an archive with a member of this name is, as the end of a sentence; NULL: unknown. */
const char *foreign_zip(const char *name, size_t size);

/* PHEMA_ERR_FILE names the format of the content, where it is one that is not read. */
PHEMA_FALLIBLE foreign_refuse(struct phema_span content, struct phema_error *err);

/* Requests the header of a file, whose next accesses fetch single pages. Waits for the first
 * one. */
void header_prefetch(const struct phema_file *file);

/* Maps a file and appends it; the label is copied. Its accesses fetch single pages. */
PHEMA_FALLIBLE checkpoint_add_file(struct phema_checkpoint *checkpoint, const char *path,
                                   const char *label, struct phema_error *err);
/* A part of the path is "..". */
bool path_has_parent(const char *path, size_t size);
/* The fault of a path that a file of a checkpoint names, as the end of a sentence ("is absolute"),
 * or NULL. A path must stay below the directory of that file. */
const char *relative_path_fault(const char *name, size_t size);
/* Maps a file by such a path, relative to the base file. The path from the checkpoint's directory
 * is its label. */
PHEMA_FALLIBLE checkpoint_add_relative(struct phema_checkpoint *checkpoint, const char *name,
                                       size_t size, struct phema_error *err);
/* The same relative to the directory that is the checkpoint. */
PHEMA_FALLIBLE checkpoint_add_member(struct phema_checkpoint *checkpoint, const char *name,
                                     struct phema_error *err);
struct phema_span checkpoint_content(const struct phema_checkpoint *checkpoint, size_t file);

/* Names a tensor of a part of the checkpoint: part, which ends in a point or is empty, then name.
 * false: no memory */
bool set_part_name(struct phema_tensor *tensor, struct phema_arena *arena, struct phema_span part,
                   struct phema_span name);
/* Appends a copy of the tensor. Its pointers must lead into the checkpoint's arena. */
PHEMA_FALLIBLE checkpoint_add_tensor(struct phema_checkpoint *checkpoint,
                                     const struct phema_tensor *tensor, struct phema_error *err);
PHEMA_FALLIBLE checkpoint_add_metadata(struct phema_checkpoint *checkpoint,
                                       const struct phema_metadata *metadata,
                                       struct phema_error *err);
/* Appends a copy. */
PHEMA_FALLIBLE checkpoint_add_unread(struct phema_checkpoint *checkpoint,
                                     const struct phema_unread *unread, struct phema_error *err);
PHEMA_FALLIBLE checkpoint_warn(struct phema_checkpoint *checkpoint, struct phema_error *err,
                               const char *format, ...) PHEMA_PRINTF(3, 4);

/* PHEMA_ERR_FILE, "expected WANTED". */
enum phema_status fail_expected(struct phema_error *err, const char *wanted);
/* Puts "tensor 'NAME': " before the message. */
enum phema_status fail_in_tensor(struct phema_error *err, enum phema_status status,
                                 const char *name, size_t name_size);

/* Lists one safetensors file of the checkpoint: its tensors and, if asked for, its metadata.
 *   sharding_info  out: the JSON that says where its tensors begin in those that they are parts of,
 *                  in the arena; {NULL, 0}: there is none. NULL: parts are refused */
PHEMA_FALLIBLE safetensors_read(struct phema_checkpoint *checkpoint, size_t file,
                                bool keeps_metadata, struct phema_span *sharding_info,
                                struct phema_error *err);

/* Adds the tensors of the file that the metadata name, if they do (frozen.c).
 * PHEMA_ERR_INPUTS  it cannot be read, or is of another training */
PHEMA_FALLIBLE frozen_read(struct phema_checkpoint *checkpoint, struct phema_error *err);

#define SAFETENSORS_MAX_HEADER_BYTES 100000000u /* the limit of the Rust library */

/* The end of the header of a safetensors file; 0: of another format, or damaged. */
static inline uint64_t safetensors_header_end(struct phema_span content)
{
    if (content.size < 9)
        return 0;
    uint64_t size = phema_load_u64(content.data);
    bool is_header =
        size <= SAFETENSORS_MAX_HEADER_BYTES && size <= content.size - 8 && content.data[8] == '{';
    return is_header ? size + 8 : 0;
}

/* The same of file 0 from the JSON of its header alone, which starts at byte 8 of the content.
 *   content_size  out: end of the last tensor */
PHEMA_FALLIBLE safetensors_read_header(uint64_t *content_size, struct phema_checkpoint *checkpoint,
                                       struct phema_span json, struct phema_error *err);

#endif
