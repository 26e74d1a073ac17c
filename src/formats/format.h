/* format.h - inside the formats room: a checkpoint while it is being filled, and how a format plugs
 * in. A format is one const struct phema_format in its own file and one line in registry.c. */
#ifndef FORMATS_FORMAT_H
#define FORMATS_FORMAT_H

#include "name_table.h"
#include "phema/arena.h"
#include "phema/array.h"
#include "phema/formats.h"

struct phema_format {
    const char *name;
    /* Whether the content is of this format; looks at the bytes and needs no more than a few. */
    bool (*probe)(struct phema_span content);
    /* Fills the checkpoint from its file 0. Messages name tensor and shard, not the file. */
    enum phema_status (*open)(struct phema_checkpoint *checkpoint,
                              const struct phema_checkpoint_options *options,
                              struct phema_error *err);
};

/* The format of a content; never NULL: what nobody knows is refused by the last one's open. */
const struct phema_format *format_of(struct phema_span content);

extern const struct phema_format safetensors_format;
extern const struct phema_format shards_format;
extern const struct phema_format torch_zip_format;
extern const struct phema_format torch_legacy_format;
extern const struct phema_format distributed_format;
extern const struct phema_format zstd_format;
extern const struct phema_format plain_pickle_format;
extern const struct phema_format tar_format;

struct zstd_frames;

struct checkpoint_file {
    struct phema_file *file;
    char *label;
    struct zstd_frames *frames; /* of a compressed file, else NULL */
};

/* Of a single safetensors file: where its data lie, and what the header says of them. */
struct header_text {
    struct phema_span text; /* from behind the metadata up to the last brace; NULL: not kept */
    bool has_metadata;      /* they stand before the text */
    uint64_t data_offset, data_size;
};

struct phema_checkpoint {
    char *path;
    const struct phema_format *format;
    struct checkpoint_file *files;
    size_t n_files, files_capacity;
    struct phema_arena arena; /* names, shapes, strides, metadata */
    struct phema_arena parts; /* of tensors in parts: outlive the listing */
    struct phema_tensor *tensors;
    size_t n_tensors, tensors_capacity;
    struct phema_metadata *metadata;
    size_t n_metadata, metadata_capacity;
    struct phema_value *values;
    size_t n_values, values_capacity;
    char **warnings;
    size_t n_warnings, warnings_capacity;
    struct name_table names; /* of tensors; values are their indices */
    struct header_text header;
    bool is_alike;  /* not listed: the tensors are those of another one ... */
    uint64_t shift; /* ... this far behind */
};

/* Maps a file and appends it; the label is copied. */
PHEMA_FALLIBLE checkpoint_add_file(struct phema_checkpoint *checkpoint, const char *path,
                                   const char *label, struct phema_error *err);
/* NULL, or what is wrong with a path that a file of a checkpoint names: it must stay below that
 * file's directory. */
const char *relative_path_fault(const char *name, size_t size);
/* Maps the file of such a path, relative to file 0; the path is its label. */
PHEMA_FALLIBLE checkpoint_add_relative(struct phema_checkpoint *checkpoint, const char *name,
                                       size_t size, struct phema_error *err);
struct phema_span checkpoint_content(const struct phema_checkpoint *checkpoint, size_t file);

/* Appends a copy of the tensor; what it points to must lie in the checkpoint's arena. */
PHEMA_FALLIBLE checkpoint_add_tensor(struct phema_checkpoint *checkpoint,
                                     const struct phema_tensor *tensor, struct phema_error *err);
PHEMA_FALLIBLE checkpoint_add_metadata(struct phema_checkpoint *checkpoint,
                                       const struct phema_metadata *metadata,
                                       struct phema_error *err);
PHEMA_FALLIBLE checkpoint_warn(struct phema_checkpoint *checkpoint, struct phema_error *err,
                               const char *format, ...) PHEMA_PRINTF(3, 4);

/* Puts "tensor 'NAME': " before the message. */
enum phema_status fail_in_tensor(struct phema_error *err, enum phema_status status,
                                 const char *name, size_t name_size);

/* One safetensors file of the checkpoint: its tensors and, when asked for, its metadata. */
PHEMA_FALLIBLE safetensors_read(struct phema_checkpoint *checkpoint, size_t file,
                                bool takes_metadata, struct phema_error *err);

#define SAFETENSORS_MAX_HEADER_BYTES 100000000u /* the library's own limit */

/* The same from a header's JSON alone, which lies 8 bytes behind the beginning of the content.
 *   content_size  out: where the last tensor ends */
PHEMA_FALLIBLE safetensors_read_header(uint64_t *content_size, struct phema_checkpoint *checkpoint,
                                       size_t file, struct phema_span json,
                                       struct phema_error *err);

/* The one checkpoint file in a directory, relative to it; the caller's (free). */
PHEMA_FALLIBLE directory_find_checkpoint(char **out, const char *directory,
                                         struct phema_error *err);

#endif
