// SPDX-License-Identifier: Apache-2.0
/* registry.c - The table of formats, in the order they are probed; which names are checkpoints.
 * Safetensors comes first: its probe is the strictest, and a header of 640 bytes starts with 80 02,
 * as a pickle does. */
#include <string.h>

#include "format.h"
#include "phema/strbuf.h"

/* Tensors of other libraries, in formats that are never read. */
static const char *const foreign_extensions[] = {".h5", ".msgpack", ".gguf", ".onnx"};

/* ---- The table ---- */

/* A new format is one line here and one file that defines NAME_format. */
#define FORMATS(add)                                                                               \
    add(safetensors) add(torch_zip) add(torch_legacy) add(zstd) add(dcp) add(pickle) add(foreign)  \
        add(sharded) add(torch_sharded) add(dcp_safetensors) add(torch_checkpointing)

#define DECLARE(name) extern const struct phema_format name##_format;
#define ADDRESS(name) &name##_format,

FORMATS(DECLARE)

static const struct phema_format *const formats[] = {FORMATS(ADDRESS)};

const struct phema_format *format_from_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (strcmp(formats[i]->info.name, name) == 0)
            return formats[i];
    return NULL;
}

const struct phema_format *format_probe(struct phema_span content)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (formats[i]->probe && formats[i]->probe(content))
            return formats[i];
    return formats[0]; /* safetensors: its open explains what is wrong with the header */
}

const struct phema_format *format_probe_directory(bool *is_certain,
                                                  const struct directory_names *names)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (formats[i]->probe_directory && formats[i]->probe_directory(is_certain, names))
            return formats[i];
    return NULL;
}

/* ---- Names ---- */

static const char *find_extension(const struct phema_format_info *format, const char *path,
                                  unsigned uses)
{
    for (const struct phema_extension *end = format->extensions; end->text; end++)
        if ((!uses || (end->uses & uses)) && phema_ends_with(path, end->text))
            return end->text;
    return NULL;
}

bool phema_format_has_extension(const struct phema_format_info *format, const char *path,
                                unsigned uses)
{
    return find_extension(format, path, uses) != NULL;
}

const struct phema_format_info *phema_format_from_path(const char **extension, const char *path,
                                                       unsigned uses)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        const char *found = find_extension(&formats[i]->info, path, uses);
        if (!found)
            continue;
        if (extension)
            *extension = found;
        return &formats[i]->info;
    }
    return NULL;
}

bool phema_file_is_torch(const char *path)
{
    uint8_t start[FILE_START];
    if (!phema_format_from_path(NULL, path, PHEMA_NAMES_BY_CONTENT))
        return false;
    struct phema_span content = file_start(start, path);
    return torch_zip_format.probe(content) || torch_legacy_format.probe(content);
}

bool phema_file_is_checkpoint(const char *path)
{
    static const char pickle[] = "/data.pkl"; /* the first record of PyTorch's archives */
    uint8_t start[FILE_START];
    struct phema_span content = file_start(start, path);
    if (torch_zip_format.probe(content))
        return memmem(content.data, content.size, pickle, sizeof(pickle) - 1) != NULL;
    return torch_legacy_format.probe(content) ||
           (content.size > 8 && content.data[8] == '{' &&
            phema_load_u64(content.data) <= SAFETENSORS_MAX_HEADER_BYTES);
}

const char *phema_format_extension(const char *format)
{
    const struct phema_format *found = format_from_name(format);
    return found ? found->info.extensions[0].text : NULL;
}

bool phema_path_names_tensors(const char *path)
{
    if (phema_format_from_path(NULL, path, 0))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(foreign_extensions); i++)
        if (phema_ends_with(path, foreign_extensions[i]))
            return true;
    return false;
}
