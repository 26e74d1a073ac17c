/* build_dcp.h - writing directories of torch.distributed.checkpoint: the pickle .metadata and the
 * archives that it refers to. */
#ifndef TESTS_FORMATS_BUILD_DCP_H
#define TESTS_FORMATS_BUILD_DCP_H

#include <errno.h>
#include <sys/stat.h>

#include "build.h"

#define DCP_MAX_RANK 3

/* A chunk and its entry of storage_data. */
struct dcp_box {
    int64_t start[DCP_MAX_RANK], size[DCP_MAX_RANK];
    const char *path;
    int64_t offset, length;
    bool is_unsaid;       /* without entry in storage_data */
    bool is_said_twice;   /* with two entries */
    const char *encoding; /* with a transform descriptor */
};

struct dcp_tensor {
    const char *name, *dtype; /* "float32" */
    unsigned rank;
    int64_t shape[DCP_MAX_RANK];
    const struct dcp_box *boxes;
    size_t n_boxes;
};

static inline void put_global(struct phema_strbuf *out, const char *module, const char *name)
{
    put_text(out, "c");
    put_text(out, module);
    put_text(out, "\n");
    put_text(out, name);
    put_text(out, "\n");
}

static inline void put_string(struct phema_strbuf *out, const char *text)
{
    put_text(out, "X");
    put_int(out, strlen(text), 4);
    put_text(out, text);
}

/* LONG1 of 8 bytes */
static inline void put_long(struct phema_strbuf *out, int64_t value)
{
    put(out, "\x8A\x08", 2);
    put_int(out, (uint64_t)value, 8);
}

static inline void put_longs(struct phema_strbuf *out, const int64_t *values, unsigned n)
{
    put_text(out, "(");
    for (unsigned i = 0; i < n; i++)
        put_long(out, values[i]);
    put_text(out, "t");
}

static inline void put_torch_size(struct phema_strbuf *out, const int64_t *values, unsigned n)
{
    put_global(out, "torch", "Size");
    put_longs(out, values, n);
    put(out, "\x85R", 2);
}

/* An object. Its fields follow, and then end_record. */
static inline void begin_record(struct phema_strbuf *out, const char *module, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "torch.distributed.checkpoint.%s", module);
    put_global(out, path, name);
    put(out, ")\x81}(", 4);
}

static inline void end_record(struct phema_strbuf *out)
{
    put_text(out, "ub");
}

static inline void put_dcp_tensor(struct phema_strbuf *out, const struct dcp_tensor *tensor)
{
    put_string(out, tensor->name);
    begin_record(out, "metadata", "TensorStorageMetadata");
    put_string(out, "properties");
    put_global(out, "torch.distributed.checkpoint.metadata", "TensorProperties");
    put(out, ")\x81(", 3);
    put_global(out, "torch", tensor->dtype);
    put_text(out, "NNNNtb");
    put_string(out, "size");
    put_torch_size(out, tensor->shape, tensor->rank);
    put_string(out, "chunks");
    put_text(out, "](");
    for (size_t i = 0; i < tensor->n_boxes; i++) {
        begin_record(out, "metadata", "ChunkStorageMetadata");
        put_string(out, "offsets");
        put_torch_size(out, tensor->boxes[i].start, tensor->rank);
        put_string(out, "sizes");
        put_torch_size(out, tensor->boxes[i].size, tensor->rank);
        end_record(out);
    }
    put_text(out, "e");
    end_record(out);
}

static inline void put_dcp_stored(struct phema_strbuf *out, const struct dcp_tensor *tensor,
                                  const struct dcp_box *box)
{
    begin_record(out, "metadata", "MetadataIndex");
    put_string(out, "fqn");
    put_string(out, tensor->name);
    put_string(out, "offset");
    put_torch_size(out, box->start, tensor->rank);
    end_record(out);
    begin_record(out, "filesystem", "_StorageInfo");
    put_string(out, "relative_path");
    put_string(out, box->path);
    put_string(out, "offset");
    put_long(out, box->offset);
    put_string(out, "length");
    put_long(out, box->length);
    if (box->encoding) {
        put_string(out, "transform_descriptors");
        put_text(out, "(");
        put_string(out, box->encoding);
        put_text(out, "t");
    }
    end_record(out);
}

static inline void put_dcp_metadata(struct phema_strbuf *out, const struct dcp_tensor *tensors,
                                    size_t n)
{
    put(out, "\x80\x02", 2);
    begin_record(out, "metadata", "Metadata");
    put_string(out, "state_dict_metadata");
    put_text(out, "}(");
    for (size_t i = 0; i < n; i++)
        put_dcp_tensor(out, &tensors[i]);
    put_text(out, "u");
    put_string(out, "storage_data");
    put_text(out, "}(");
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < tensors[i].n_boxes; j++)
            for (int k = tensors[i].boxes[j].is_unsaid; k <= tensors[i].boxes[j].is_said_twice; k++)
                put_dcp_stored(out, &tensors[i], &tensors[i].boxes[j]);
    put_text(out, "u");
    end_record(out);
    put_text(out, ".");
}

/* An archive of torch.save with one tensor.
 *   storage  "Float" for torch.FloatStorage of n_elems elements, whose bytes are data
 *   first    index of the tensor's first element in the storage */
struct dcp_piece {
    const char *storage;
    int64_t first;
    unsigned rank;
    int64_t size[DCP_MAX_RANK], stride[DCP_MAX_RANK];
    const void *data;
    size_t n_elems, size_bytes;
};

static inline void put_dcp_piece(struct phema_strbuf *out, const struct dcp_piece *piece)
{
    struct phema_strbuf pickle = {0};
    char class[64];
    (void)snprintf(class, sizeof(class), "%sStorage", piece->storage);
    put(&pickle, "\x80\x02", 2);
    put_global(&pickle, "torch._utils", "_rebuild_tensor_v2");
    put_text(&pickle, "((");
    put_string(&pickle, "storage");
    put_global(&pickle, "torch", class);
    put_string(&pickle, "0");
    put_string(&pickle, "cpu");
    put_long(&pickle, (int64_t)piece->n_elems);
    put_text(&pickle, "tQ");
    put_long(&pickle, piece->first);
    put_longs(&pickle, piece->size, piece->rank);
    put_longs(&pickle, piece->stride, piece->rank);
    put(&pickle, "\x89N", 2);
    put_text(&pickle, "tR.");
    const struct zip_record records[] = {{"archive/data.pkl", pickle.data, pickle.size},
                                         {"archive/version", "3\n", 2},
                                         {"archive/data/0", piece->data, piece->size_bytes}};
    size_t headers[3];
    put_zip(out, records, 3, headers);
    phema_strbuf_clear(&pickle);
}

/* "TMP/NAME"; created if it does not exist. */
static inline const char *dcp_directory(const char *name)
{
    static char path[2048];
    (void)snprintf(path, sizeof(path), "%s/%s", support_tmp(), name);
    assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
    return path;
}

static inline void dcp_write(const char *directory, const char *name, const void *data, size_t size)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", dcp_directory(directory), name);
    support_write(path, data, size);
}

static inline void dcp_write_metadata(const char *directory, const struct dcp_tensor *tensors,
                                      size_t n)
{
    struct phema_strbuf metadata = {0};
    put_dcp_metadata(&metadata, tensors, n);
    dcp_write(directory, ".metadata", metadata.data, metadata.size);
    phema_strbuf_clear(&metadata);
}

#endif
