// SPDX-License-Identifier: Apache-2.0
/* dcp_metadata.c - The pickle .metadata of a distributed checkpoint (torch/distributed/checkpoint/
 * metadata.py, filesystem.py). TensorProperties have five fields: torch before 2.15 takes no
 * more, and later versions take five. Each class is named once and fetched from the memo
 * afterwards, which makes the file of many tensors three times smaller. */
#include <string.h>

#include "dcp.h"

#define METADATA   "torch.distributed.checkpoint.metadata"
#define FILESYSTEM "torch.distributed.checkpoint.filesystem"

enum { MAX_CLASSES = 64 }; /* ten, and the dtypes: BINGET reaches 256 */

struct metadata_pickle {
    struct phema_strbuf *text;
    struct {
        const char *module, *name;
    } classes[MAX_CLASSES]; /* [n_classes] in the memo, in this order */
    uint8_t n_classes;
};

static void put(struct metadata_pickle *pickle, const char *opcodes)
{
    phema_strbuf_puts(pickle->text, opcodes);
}

static void put_byte(struct metadata_pickle *pickle, uint8_t byte)
{
    phema_strbuf_append(pickle->text, (const char *)&byte, 1);
}

static void put_string(struct metadata_pickle *pickle, const char *text)
{
    dcp_pickle_text(pickle->text, text, strlen(text));
}

static void put_class(struct metadata_pickle *pickle, const char *module, const char *name)
{
    uint8_t c = 0;
    while (c < pickle->n_classes && (strcmp(pickle->classes[c].name, name) != 0 ||
                                     strcmp(pickle->classes[c].module, module) != 0))
        c++;
    if (c < pickle->n_classes) {
        put(pickle, "h"); /* BINGET */
    } else {
        dcp_pickle_global(pickle->text, module, name);
        put(pickle, "q"); /* BINPUT */
        pickle->classes[c].module = module;
        pickle->classes[c].name = name;
        pickle->n_classes++;
    }
    put_byte(pickle, c);
}

/* NEWOBJ, and a dict of fields up to end_object. */
static void begin_object(struct metadata_pickle *pickle, const char *module, const char *name)
{
    put_class(pickle, module, name);
    put(pickle, ")\x81}(");
}

static void end_object(struct metadata_pickle *pickle)
{
    put(pickle, "ub");
}

static void put_size(struct metadata_pickle *pickle, const uint64_t *sizes, unsigned rank)
{
    put_class(pickle, "torch", "Size");
    dcp_pickle_sizes(pickle->text, sizes, rank);
    put(pickle, "\x85R");
}

/* ---- The state dict ---- */

/* Dtype, layout, requires_grad, memory format, pinned. */
static void put_properties(struct metadata_pickle *pickle, enum phema_dtype dtype)
{
    put_class(pickle, METADATA, "TensorProperties");
    put(pickle, ")\x81(");
    put_class(pickle, "torch", dcp_dtype_name(dtype));
    put_class(pickle, "torch.serialization", "_get_layout");
    put_string(pickle, "torch.strided");
    put(pickle, "\x85R\x89");
    put_class(pickle, METADATA, "_MEM_FORMAT_ENCODING");
    dcp_pickle_u64(pickle->text, 0);
    put(pickle, "\x85R\x89tb");
}

static void put_tensor(struct metadata_pickle *pickle, const struct phema_tensor *tensor,
                       const struct phema_piece *pieces, size_t n)
{
    dcp_pickle_text(pickle->text, tensor->name, tensor->name_size);
    begin_object(pickle, METADATA, "TensorStorageMetadata");
    put_string(pickle, "properties");
    put_properties(pickle, tensor->dtype);
    put_string(pickle, "size");
    put_size(pickle, tensor->shape, tensor->rank);
    put_string(pickle, "chunks");
    put(pickle, "](");
    for (size_t p = 0; p < n; p++) {
        begin_object(pickle, METADATA, "ChunkStorageMetadata");
        put_string(pickle, "offsets");
        put_size(pickle, pieces[p].start, tensor->rank);
        put_string(pickle, "sizes");
        put_size(pickle, pieces[p].size, tensor->rank);
        end_object(pickle);
    }
    put(pickle, "e");
    end_object(pickle);
}

/* ---- Places ---- */

static void put_place(struct metadata_pickle *pickle, const struct phema_tensor *tensor,
                      size_t index, const struct phema_piece *piece, const char *file)
{
    begin_object(pickle, METADATA, "MetadataIndex");
    put_string(pickle, "fqn");
    dcp_pickle_text(pickle->text, tensor->name, tensor->name_size);
    put_string(pickle, "index");
    dcp_pickle_u64(pickle->text, index);
    put_string(pickle, "offset");
    put_size(pickle, piece->start, tensor->rank);
    end_object(pickle);
    begin_object(pickle, FILESYSTEM, "_StorageInfo");
    put_string(pickle, "relative_path");
    put_string(pickle, file);
    put_string(pickle, "offset");
    dcp_pickle_u64(pickle->text, piece->zip_at);
    put_string(pickle, "length");
    dcp_pickle_u64(pickle->text, piece->zip_bytes);
    end_object(pickle);
}

void dcp_metadata_write(struct phema_strbuf *text, const struct phema_tensor *tensors, size_t n,
                        const struct phema_piece *pieces, const size_t *first_piece,
                        const struct phema_output_file *files)
{
    struct metadata_pickle pickle = {.text = text};
    put(&pickle, "\x80\x02");
    begin_object(&pickle, METADATA, "Metadata");
    put_string(&pickle, "state_dict_metadata");
    put(&pickle, "}(");
    for (size_t i = 0; i < n; i++)
        put_tensor(&pickle, &tensors[i], &pieces[first_piece[i]],
                   first_piece[i + 1] - first_piece[i]);
    put(&pickle, "u");
    put_string(&pickle, "planner_data"); /* each tensor's path in the state dict: its name */
    put(&pickle, "}(");
    for (size_t i = 0; i < n; i++) {
        dcp_pickle_text(text, tensors[i].name, tensors[i].name_size);
        dcp_pickle_text(text, tensors[i].name, tensors[i].name_size);
        put(&pickle, "\x85");
    }
    put(&pickle, "u");
    put_string(&pickle, "storage_data");
    put(&pickle, "}(");
    for (size_t i = 0; i < n; i++)
        for (size_t p = first_piece[i]; p < first_piece[i + 1]; p++)
            put_place(&pickle, &tensors[i], p - first_piece[i], &pieces[p],
                      files[pieces[p].file].name);
    put(&pickle, "u");
    put_string(&pickle, "storage_meta");
    put(&pickle, "N");
    put_string(&pickle, "version");
    put_string(&pickle, "1.0.0");
    end_object(&pickle);
    put(&pickle, ".");
}
