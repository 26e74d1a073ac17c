/* models.h - small models written in every format: tensors of distinct numbers, in any order. */
#ifndef TESTS_SERIES_MODELS_H
#define TESTS_SERIES_MODELS_H

#include <zstd.h>

#include "../formats/build_dcp.h"

#define MAX_ENTRIES 8

struct entry {
    const char *name;
    enum phema_dtype dtype; /* F32, F16, I64 ... */
    unsigned rank;
    int64_t shape[DCP_MAX_RANK];
    void *data;
    size_t n_elems, size_bytes; /* data: malloc */
};

struct model {
    struct entry entries[MAX_ENTRIES];
    size_t n;
    uint64_t first; /* the first entry of the files; the others follow cyclically */
};

static inline struct entry *add_entry(struct model *model, const char *name, enum phema_dtype dtype,
                                      unsigned rank, int64_t rows, int64_t columns)
{
    assert_true(model->n < MAX_ENTRIES);
    struct entry *entry = &model->entries[model->n++];
    *entry = (struct entry){.name = name, .dtype = dtype, .rank = rank, .shape = {rows, columns}};
    entry->n_elems = 1;
    for (unsigned d = 0; d < rank; d++)
        entry->n_elems *= (size_t)entry->shape[d];
    entry->size_bytes = (size_t)phema_dtype_bytes(dtype, entry->n_elems);
    entry->data = calloc(entry->size_bytes + 1, 1);
    assert_non_null(entry->data);
    return entry;
}

/* F32 tensors of one dimension, for models of a few numbers */
static inline void add_floats(struct model *model, const char *name, const float *values, size_t n)
{
    struct entry *entry = add_entry(model, name, PHEMA_F32, 1, (int64_t)n, 0);
    memcpy(entry->data, values, entry->size_bytes);
}

static inline void clear_model(struct model *model)
{
    for (size_t i = 0; i < model->n; i++)
        free(model->entries[i].data);
    *model = (struct model){0};
}

static inline const struct entry *entry_at(const struct model *model, size_t i)
{
    return &model->entries[(model->first + i) % model->n];
}

/* ---- safetensors ---- */

/* Entries [from, end) in the model's order. */
static inline void put_entries(struct phema_strbuf *out, const struct model *model, size_t from,
                               size_t end)
{
    struct phema_strbuf json = {0};
    uint64_t at = 0;
    for (size_t i = from; i < end; i++) {
        const struct entry *entry = entry_at(model, i);
        phema_strbuf_printf(&json, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i == from ? "{" : ",",
                            entry->name, phema_dtype_name(entry->dtype));
        for (unsigned d = 0; d < entry->rank; d++)
            phema_strbuf_printf(&json, "%s%lld", d ? "," : "", (long long)entry->shape[d]);
        phema_strbuf_printf(&json, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                            (unsigned long long)(at + entry->size_bytes));
        at += entry->size_bytes;
    }
    put_text(&json, "}");
    put_int(out, json.size, 8);
    put(out, json.data, json.size);
    for (size_t i = from; i < end; i++)
        put(out, entry_at(model, i)->data, entry_at(model, i)->size_bytes);
    phema_strbuf_clear(&json);
}

static inline void write_text(const char *path, struct phema_strbuf *text)
{
    support_write(path, text->data, text->size);
    phema_strbuf_clear(text);
}

static inline void write_safetensors(const char *path, const struct model *model)
{
    struct phema_strbuf file = {0};
    put_entries(&file, model, 0, model->n);
    write_text(path, &file);
}

/* In two shards. */
static inline void write_sharded(const char *path, const struct model *model)
{
    assert_int_equal(mkdir(path, 0777), 0);
    struct phema_strbuf index = {0};
    put_text(&index, "{\"metadata\":{},\"weight_map\":{");
    for (size_t i = 0; i < model->n; i++)
        phema_strbuf_printf(&index, "%s\"%s\":\"s%d.safetensors\"", i ? "," : "",
                            entry_at(model, i)->name, i >= model->n / 2);
    put_text(&index, "}}");
    char name[4096];
    (void)snprintf(name, sizeof(name), "%s/model.safetensors.index.json", path);
    write_text(name, &index);
    for (int shard = 0; shard < 2; shard++) {
        struct phema_strbuf file = {0};
        put_entries(&file, model, shard ? model->n / 2 : 0, shard ? model->n : model->n / 2);
        (void)snprintf(name, sizeof(name), "%s/s%d.safetensors", path, shard);
        write_text(name, &file);
    }
}

/* In frames of frame_bytes of content, with or without their content size. */
static inline void write_zst(const char *path, const struct model *model, size_t frame_bytes,
                             bool says_size)
{
    struct phema_strbuf content = {0}, file = {0};
    put_entries(&content, model, 0, model->n);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    void *frame = malloc(ZSTD_compressBound(frame_bytes));
    assert_true(context && frame);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, says_size)));
    for (size_t at = 0; at < content.size; at += frame_bytes) {
        size_t left = content.size - at;
        size_t size = ZSTD_compress2(context, frame, ZSTD_compressBound(frame_bytes),
                                     content.data + at, left < frame_bytes ? left : frame_bytes);
        assert_false(ZSTD_isError(size));
        put(&file, frame, size);
    }
    free(frame);
    (void)ZSTD_freeCCtx(context);
    phema_strbuf_clear(&content);
    write_text(path, &file);
}

/* ---- torch ---- */

static inline const char *storage_class(enum phema_dtype dtype)
{
    return dtype == PHEMA_F16 ? "HalfStorage" : dtype == PHEMA_I64 ? "LongStorage" : "FloatStorage";
}

/* The entry with rows and columns exchanged. */
static inline void *transpose(const struct entry *entry)
{
    size_t rows = (size_t)entry->shape[0], columns = (size_t)entry->shape[1];
    size_t size = entry->size_bytes / entry->n_elems;
    char *out = malloc(entry->size_bytes);
    assert_non_null(out);
    for (size_t i = 0; i < entry->n_elems; i++)
        memcpy(out + (i % columns * rows + i / columns) * size, (char *)entry->data + i * size,
               size);
    return out;
}

static inline void put_torch_tensor(struct phema_strbuf *out, const struct entry *entry,
                                    const char *key)
{
    int64_t strides[DCP_MAX_RANK] = {1, 1};
    if (entry->rank == 2)
        strides[1] = entry->shape[0]; /* transposed */
    put_string(out, entry->name);
    put_global(out, "torch._utils", "_rebuild_tensor_v2");
    put_text(out, "((");
    put_string(out, "storage");
    put_global(out, "torch", storage_class(entry->dtype));
    put_string(out, key);
    put_string(out, "cpu");
    put_long(out, (int64_t)entry->n_elems);
    put_text(out, "tQ");
    put_long(out, 0);
    put_longs(out, entry->shape, entry->rank);
    put_longs(out, strides, entry->rank);
    put(out, "\x89N", 2);
    put_text(out, "tR");
}

/* A torch.save archive with transposed matrices. */
static inline void write_torch(const char *path, const struct model *model)
{
    struct phema_strbuf pickle = {0}, file = {0};
    struct zip_record records[MAX_ENTRIES + 2] = {{0}};
    char names[MAX_ENTRIES][32];
    size_t headers[MAX_ENTRIES + 2];
    put(&pickle, "\x80\x02}(", 4);
    for (size_t i = 0; i < model->n; i++) {
        const struct entry *entry = entry_at(model, i);
        (void)snprintf(names[i], sizeof(names[i]), "a/data/%zu", i);
        put_torch_tensor(&pickle, entry, names[i] + strlen("a/data/"));
        void *data = entry->rank == 2 ? transpose(entry) : malloc(entry->size_bytes);
        if (entry->rank != 2)
            memcpy(data, entry->data, entry->size_bytes);
        records[i + 2] = (struct zip_record){names[i], data, entry->size_bytes};
    }
    put_text(&pickle, "u.");
    records[0] = (struct zip_record){"a/data.pkl", pickle.data, pickle.size};
    records[1] = (struct zip_record){"a/version", "3\n", 2};
    put_zip(&file, records, model->n + 2, headers);
    for (size_t i = 0; i < model->n; i++) {
        void *data;
        memcpy(&data, &records[i + 2].data, sizeof(data));
        free(data);
    }
    phema_strbuf_clear(&pickle);
    write_text(path, &file);
}

/* ---- distributed ---- */

static inline size_t box_rows(const struct entry *entry, size_t b)
{
    size_t rows = entry->rank ? (size_t)entry->shape[0] : 1;
    return b ? rows - rows / 3 : rows / 3;
}

/* Writes one chunk of an entry's rows to its own file; returns its size. */
static inline size_t write_box(const char *directory, const char *name, const struct entry *entry,
                               size_t b)
{
    size_t rows = entry->rank ? (size_t)entry->shape[0] : 1;
    size_t row_elems = entry->n_elems / rows, row_bytes = entry->size_bytes / rows;
    struct dcp_piece piece = {.storage = entry->dtype == PHEMA_F16   ? "Half"
                                         : entry->dtype == PHEMA_I64 ? "Long"
                                                                     : "Float",
                              .rank = entry->rank,
                              .size = {(int64_t)box_rows(entry, b), (int64_t)row_elems},
                              .stride = {(int64_t)row_elems, 1},
                              .data = (char *)entry->data + (b ? rows / 3 * row_bytes : 0),
                              .n_elems = box_rows(entry, b) * row_elems,
                              .size_bytes = box_rows(entry, b) * row_bytes};
    struct phema_strbuf file = {0};
    put_dcp_piece(&file, &piece);
    dcp_write(directory, name, file.data, file.size);
    size_t size = file.size;
    phema_strbuf_clear(&file);
    return size;
}

/* Writes every tensor in two chunks of rows; the directory is relative to support_tmp(). */
static inline void write_dcp(const char *directory, const struct model *model)
{
    struct dcp_tensor tensors[MAX_ENTRIES];
    struct dcp_box boxes[MAX_ENTRIES][2];
    char names[MAX_ENTRIES][2][32];
    for (size_t i = 0; i < model->n; i++) {
        const struct entry *entry = entry_at(model, i);
        size_t first_box = box_rows(entry, 0) == 0; /* a chunk is never empty */
        for (size_t b = first_box; b < 2; b++) {
            (void)snprintf(names[i][b], sizeof(names[i][b]), "__%zu_%zu.distcp", b, i);
            boxes[i][b] = (struct dcp_box){.start = {b ? (int64_t)box_rows(entry, 0) : 0, 0},
                                           .size = {(int64_t)box_rows(entry, b), entry->shape[1]},
                                           .path = names[i][b]};
            boxes[i][b].length = (int64_t)write_box(directory, names[i][b], entry, b);
        }
        tensors[i] = (struct dcp_tensor){.name = entry->name,
                                         .dtype = entry->dtype == PHEMA_F16   ? "float16"
                                                  : entry->dtype == PHEMA_I64 ? "int64"
                                                                              : "float32",
                                         .rank = entry->rank,
                                         .shape = {entry->shape[0], entry->shape[1]},
                                         .boxes = &boxes[i][first_box],
                                         .n_boxes = 2 - first_box};
    }
    dcp_write_metadata(directory, tensors, model->n);
}

#endif
