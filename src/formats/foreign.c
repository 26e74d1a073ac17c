// SPDX-License-Identifier: Apache-2.0
/* foreign.c - Formats of others, which are not read: recognised by their first bytes, or a directory
 * by the names in it, so that the refusal says what it is and what to do. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format.h"
#include "phema/strbuf.h"

static bool begins(struct phema_span content, size_t at, const char *magic, size_t size)
{
    return content.size >= at + size && memcmp(content.data + at, magic, size) == 0;
}

/* A text of three lines: version, oid, size. */
#define LFS         "version https://git-lfs"
#define LFS_POINTER "is a pointer of Git LFS, not the file itself; fetch it with 'git lfs pull'"

/* What the pointer says of the file; 0: nothing. */
static uint64_t read_lfs_size(struct phema_span content)
{
    char text[256];
    size_t size = content.size < sizeof(text) - 1 ? content.size : sizeof(text) - 1;
    memcpy(text, content.data, size);
    text[size] = '\0';
    const char *line = strstr(text, "\nsize ");
    return line ? strtoull(line + strlen("\nsize "), NULL, 10) : 0;
}

static bool is_html(struct phema_span content)
{
    return begins(content, 0, "<!DOCTYPE", 9) || begins(content, 0, "<!doctype", 9) ||
           begins(content, 0, "<html", 5);
}

/* A text of 1 to 31 printable bytes whose length is the low five bits of the byte before. */
static bool is_short_text(struct phema_span content, size_t at)
{
    size_t size = content.size > at ? content.data[at] & 0x1fu : 0;
    if (size == 0 || content.size - at <= size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isprint(content.data[at + 1 + i]))
            return false;
    return true;
}

/* A map, small (8n), of 16 (de) or 32 bits (df), whose first key is a short text (a0 to bf). */
static bool is_msgpack(struct phema_span content)
{
    if (content.size < 8)
        return false;
    uint8_t first = content.data[0];
    size_t at = first > 0x80 && first <= 0x8f ? 1 : first == 0xde ? 3 : first == 0xdf ? 5 : 0;
    return at && (content.data[at] & 0xe0u) == 0xa0u && is_short_text(content, at);
}

/* ModelProto: field 1, the version, then field 2, the name of the producer. */
static bool is_onnx(struct phema_span content)
{
    return begins(content, 0, "\x08", 1) && begins(content, 2, "\x12", 1) &&
           content.data[1] < 0x40 && content.data[3] < 0x20 && is_short_text(content, 3);
}

/* By the bytes at a place. */
static const struct {
    size_t at, size;
    const char *magic, *sentence;
} magics[] = {
#define MAGIC(at, magic, sentence)                                                                 \
    {                                                                                              \
        at, sizeof(magic) - 1, magic, sentence                                                     \
    }
    MAGIC(257, "ustar",
          "is a tar archive (a .nemo file, or torch 0.1), which is not read; unpack it, and name "
          "the checkpoint inside"),
    MAGIC(0, "\x1f\x8b",
          "is a gzip file (a .nemo or .tar.gz archive), which is not read; unpack it, and name the "
          "checkpoint inside"),
    MAGIC(0,
          "\xfd"
          "7zXZ",
          "is an xz file, which is not read; unpack it, and name the checkpoint inside"),
    MAGIC(0, "BZh",
          "is a bzip2 file, which is not read; unpack it, and name the checkpoint inside"),
    MAGIC(0, "7z\xbc\xaf",
          "is a 7z archive, which is not read; unpack it, and name the checkpoint inside"),
    MAGIC(0, "\x89HDF\r\n\x1a\n",
          "is an HDF5 file (Keras, TensorFlow), which is not read; load it with its library, and "
          "write its arrays with safetensors.numpy.save_file"),
    MAGIC(0, "GGUF",
          "is a GGUF file, which is not read; average the checkpoints, and convert the result"),
    MAGIC(0, "lmgg",
          "is a GGML file, which is not read; average the checkpoints, and convert the result"),
    MAGIC(0, "\x93NUMPY",
          "is a NumPy .npy file, which is not read; write it with safetensors.numpy.save_file"),
    MAGIC(4, "TFL3",
          "is a TensorFlow Lite file, which is not read; average the checkpoints, and convert the "
          "result"),
    MAGIC(0, "MATLAB",
          "is a MATLAB file, which is not read; write its arrays with safetensors.numpy.save_file"),
    MAGIC(0, "PAR1", "is a Parquet file, not a checkpoint"),
    MAGIC(0, "SQLite format 3", "is an SQLite database, not a checkpoint"),
    MAGIC(0, LFS, LFS_POINTER),
#undef MAGIC
};

/* By their structure. */
static const struct {
    bool (*is_it)(struct phema_span content);
    const char *sentence;
} kinds[] = {
    {is_msgpack, "is a msgpack file (as Flax writes), which is not read; load it with "
                 "flax.serialization, and write its arrays with safetensors.numpy.save_file"},
    {is_onnx, "is an ONNX file, which is not read; average the checkpoints, and export the result"},
    {is_html, "is a web page, not a checkpoint: the download has failed; download it again"},
};

static const char *find(struct phema_span content)
{
    for (size_t i = 0; i < ARRAY_LEN(magics); i++)
        if (begins(content, magics[i].at, magics[i].magic, magics[i].size))
            return magics[i].sentence;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].is_it(content))
            return kinds[i].sentence;
    return NULL;
}

enum phema_status foreign_refuse(struct phema_span content, struct phema_error *err)
{
    struct phema_name_buffer shown;
    const char *sentence = find(content);
    uint64_t lfs_bytes = begins(content, 0, LFS, strlen(LFS)) ? read_lfs_size(content) : 0;
    if (lfs_bytes)
        return phema_fail(err, PHEMA_ERR_FILE, LFS_POINTER " (%s are not here)",
                          phema_size_format(&shown, lfs_bytes));
    return sentence ? phema_fail(err, PHEMA_ERR_FILE, "%s", sentence) : PHEMA_OK;
}

static bool probe(struct phema_span content)
{
    return find(content) != NULL;
}

static enum phema_status refuse(struct phema_checkpoint *checkpoint,
                                const struct phema_checkpoint_options *options,
                                struct phema_error *err)
{
    (void)options;
    return foreign_refuse(checkpoint_content(checkpoint, checkpoint->base), err);
}

const struct phema_format foreign_format = {
    .info = {.name = "foreign", .extensions = (const struct phema_extension[]){{NULL, 0}}},
    .probe = probe,
    .open = refuse,
};

const char *foreign_zip(const char *name, size_t size)
{
    static const struct {
        const char *end, *sentence;
    } members[] = {
        {".npy", "is a NumPy .npz archive (as JAX and MLX write), which is not read; load it with "
                 "numpy.load, and write its arrays with safetensors.numpy.save_file"},
        {"model.weights.h5", "is a Keras archive, which is not read; load it with Keras, and write "
                             "its arrays with safetensors.numpy.save_file"},
    };
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        size_t end = strlen(members[i].end);
        if (size >= end && memcmp(name + size - end, members[i].end, end) == 0)
            return members[i].sentence;
    }
    return NULL;
}

/* ---- Files and directories ---- */

struct phema_span file_start(uint8_t start[FILE_START], const char *path)
{
    struct stat st;
    bool is_file = stat(path, &st) == 0 && S_ISREG(st.st_mode); /* a pipe would wait */
    FILE *file = is_file ? fopen(path, "rbe") : NULL;
    struct phema_span content = {start, file ? fread(start, 1, FILE_START, file) : 0};
    if (file)
        (void)fclose(file);
    return content;
}

/* The name of its first member, "w.npy", says what a zip archive is. */
static const char *find_zip(struct phema_span content)
{
    size_t size = content.size > 30 ? content.data[26] + 256u * content.data[27] : 0;
    return begins(content, 0, "PK\3\4", 4) && content.size - 30 >= size
               ? foreign_zip((const char *)content.data + 30, size)
               : NULL;
}

const char *phema_foreign_file(const char *path)
{
    uint8_t start[FILE_START];
    struct phema_span content = file_start(start, path);
    const char *found = find(content);
    return found ? found : find_zip(content);
}

const char *phema_foreign_directory(const char *path)
{
    static const struct {
        const char *file, *sentence;
    } files[] = {
        {"manifest.ocdbt", "an Orbax checkpoint (OCDBT)"},
        {"_CHECKPOINT_METADATA", "an Orbax checkpoint"},
        {".zarray", "a zarr array"},
        {".zgroup", "a zarr group"},
        {"zarr.json", "a zarr group"},
        {"saved_model.pb", "a TensorFlow SavedModel"},
        {"checkpoint", "checkpoints of TensorFlow"}, /* the list of them, a text */
    };
    struct stat st;
    const char *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(files) && !found; i++) {
        struct phema_strbuf name = {0};
        phema_strbuf_printf(&name, "%s/%s", path, files[i].file);
        if (!name.is_failed && stat(name.data, &st) == 0 && S_ISREG(st.st_mode))
            found = files[i].sentence;
        phema_strbuf_clear(&name);
    }
    return found;
}
