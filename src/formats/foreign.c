// SPDX-License-Identifier: Apache-2.0
/* foreign.c - Formats of others, which are not read: recognised by their first bytes, or a directory
 * by the names in it, so that the refusal says what it is and what to do. */
#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "format.h"
#include "phema/strbuf.h"

static bool begins(struct phema_span content, size_t at, const char *magic, size_t size)
{
    return content.size >= at + size && memcmp(content.data + at, magic, size) == 0;
}

static bool is_tar(struct phema_span content)
{
    return begins(content, 257, "ustar", 5);
}

static bool is_gzip(struct phema_span content)
{
    return begins(content, 0, "\x1f\x8b", 2);
}

static bool is_hdf5(struct phema_span content)
{
    return begins(content, 0, "\x89HDF\r\n\x1a\n", 8);
}

static bool is_gguf(struct phema_span content)
{
    return begins(content, 0, "GGUF", 4);
}

static bool is_npy(struct phema_span content)
{
    return begins(content, 0, "\x93NUMPY", 6);
}

static bool is_html(struct phema_span content)
{
    return begins(content, 0, "<!DOCTYPE", 9) || begins(content, 0, "<!doctype", 9) ||
           begins(content, 0, "<html", 5);
}

static bool is_lfs_pointer(struct phema_span content)
{
    static const char first[] = "version https://git-lfs";
    return begins(content, 0, first, sizeof(first) - 1);
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

static const struct {
    bool (*is_it)(struct phema_span content);
    const char *sentence;
} kinds[] = {
    {is_tar,
     "is a tar archive (a .nemo file, or torch 0.1), which is not read; unpack it, and name "
     "the checkpoint inside"},
    {is_gzip, "is a gzip file (a .nemo or .tar.gz archive), which is not read; unpack it, and name "
              "the checkpoint inside"},
    {is_hdf5,
     "is an HDF5 file (Keras, TensorFlow), which is not read; load it with its library, and "
     "write its arrays with safetensors.numpy.save_file"},
    {is_gguf, "is a GGUF file, which is not read; average the checkpoints, and convert the result"},
    {is_npy, "is a NumPy .npy file, which is not read; write it with safetensors.numpy.save_file"},
    {is_msgpack, "is a msgpack file (as Flax writes), which is not read; load it with "
                 "flax.serialization, and write its arrays with safetensors.numpy.save_file"},
    {is_onnx, "is an ONNX file, which is not read; average the checkpoints, and export the result"},
    {is_lfs_pointer, "is a pointer of Git LFS, not the file itself; fetch it with 'git lfs pull'"},
    {is_html, "is a web page, not a checkpoint: the download has failed; download it again"},
};

static const char *find(struct phema_span content)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].is_it(content))
            return kinds[i].sentence;
    return NULL;
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
    return phema_fail(err, PHEMA_ERR_FILE, "%s",
                      find(checkpoint_content(checkpoint, checkpoint->base)));
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

/* ---- Directories ---- */

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
