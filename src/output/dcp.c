// SPDX-License-Identifier: Apache-2.0
/* dcp.c - The bytes of a distributed checkpoint. The zip of one box is as torch.save writes a tensor:
 * stored records, the pickle first (torch/serialization.py, caffe2/serialize/inline_container.cc).
 * Boxes have less than 4 GiB, so that no header needs the fields of zip64; the zip64 end record is
 * always there, as in torch. The pickle .metadata follows torch/distributed/checkpoint/metadata.py and
 * filesystem.py: TensorProperties have five fields, since torch before 2.15 takes no more, and later
 * versions take five. Each class is named once and fetched from the memo afterwards, which makes the
 * file of many tensors three times smaller. */
#include "dcp.h"

#include <string.h>

#include "phema/checksum.h"

/* ---- Dtypes ---- */

/* Dtypes without a storage class are rebuilt from bytes and the dtype. */
static const struct {
    const char *name, *storage;
} dtypes[PHEMA_N_DTYPES] = {
    [PHEMA_BOOL] = {"bool", "BoolStorage"},
    [PHEMA_U8] = {"uint8", "ByteStorage"},
    [PHEMA_I8] = {"int8", "CharStorage"},
    [PHEMA_U16] = {"uint16", NULL},
    [PHEMA_I16] = {"int16", "ShortStorage"},
    [PHEMA_U32] = {"uint32", NULL},
    [PHEMA_I32] = {"int32", "IntStorage"},
    [PHEMA_U64] = {"uint64", NULL},
    [PHEMA_I64] = {"int64", "LongStorage"},
    [PHEMA_F16] = {"float16", "HalfStorage"},
    [PHEMA_BF16] = {"bfloat16", "BFloat16Storage"},
    [PHEMA_F32] = {"float32", "FloatStorage"},
    [PHEMA_F64] = {"float64", "DoubleStorage"},
    [PHEMA_C64] = {"complex64", "ComplexFloatStorage"},
    [PHEMA_C128] = {"complex128", "ComplexDoubleStorage"},
    [PHEMA_F8_E4M3] = {"float8_e4m3fn", NULL},
    [PHEMA_F8_E5M2] = {"float8_e5m2", NULL},
    [PHEMA_F8_E8M0] = {"float8_e8m0fnu", NULL},
    [PHEMA_F8_E4M3FNUZ] = {"float8_e4m3fnuz", NULL},
    [PHEMA_F8_E5M2FNUZ] = {"float8_e5m2fnuz", NULL},
};

const char *dcp_dtype_name(enum phema_dtype dtype)
{
    return dtypes[dtype].name;
}

/* ---- Pickles of protocol 2: as few opcodes as are needed ---- */

static void put(struct phema_strbuf *out, uint64_t value, unsigned n)
{
    char bytes[8];
    for (unsigned i = 0; i < n; i++)
        bytes[i] = (char)(uint8_t)(value >> 8 * i);
    phema_strbuf_append(out, bytes, n);
}

/* BININT1, BININT2, BININT, and LONG1, which is two's complement and as short as possible. */
static void write_u64(struct phema_strbuf *pickle, uint64_t number)
{
    unsigned n = 1;
    if (number <= UINT8_MAX) {
        phema_strbuf_puts(pickle, "K");
    } else if (number <= UINT16_MAX) {
        phema_strbuf_puts(pickle, "M");
        n = 2;
    } else if (number <= (uint64_t)INT32_MAX) {
        phema_strbuf_puts(pickle, "J");
        n = 4;
    } else {
        while (n < 8 && number >> (8 * n - 1))
            n++;
        bool has_sign = number >> 63;
        phema_strbuf_puts(pickle, "\x8a");
        put(pickle, n + has_sign, 1);
        put(pickle, number, n);
        put(pickle, 0, has_sign);
        return;
    }
    put(pickle, number, n);
}

static void write_text(struct phema_strbuf *pickle, const char *text, size_t size)
{
    phema_strbuf_puts(pickle, "X");
    put(pickle, size, 4);
    phema_strbuf_append(pickle, text, size);
}

static void write_global(struct phema_strbuf *pickle, const char *module, const char *name)
{
    phema_strbuf_printf(pickle, "c%s\n%s\n", module, name);
}

static void begin_tuple(struct phema_strbuf *pickle, size_t n)
{
    if (n > 3)
        phema_strbuf_puts(pickle, "(");
}

static void end_tuple(struct phema_strbuf *pickle, size_t n)
{
    static const char *const ends[] = {")", "\x85", "\x86", "\x87"};
    phema_strbuf_puts(pickle, n > 3 ? "t" : ends[n]);
}

static void write_sizes(struct phema_strbuf *pickle, const uint64_t *sizes, unsigned rank)
{
    begin_tuple(pickle, rank);
    for (unsigned d = 0; d < rank; d++)
        write_u64(pickle, sizes[d]);
    end_tuple(pickle, rank);
}

/* ---- data.pkl ---- */

static uint64_t count(const uint64_t *shape, unsigned rank)
{
    uint64_t n_elems = 1;
    for (unsigned d = 0; d < rank; d++)
        n_elems *= shape[d];
    return n_elems;
}

static void write_storage(struct phema_strbuf *pickle, enum phema_dtype dtype, uint64_t n_elems)
{
    const char *storage = dtypes[dtype].storage;
    uint64_t n = storage ? n_elems : phema_dtype_bytes(dtype, n_elems);
    begin_tuple(pickle, 5);
    write_text(pickle, "storage", 7);
    write_global(pickle, storage ? "torch" : "torch.storage", storage ? storage : "UntypedStorage");
    write_text(pickle, "0", 1);
    write_text(pickle, "cpu", 3);
    write_u64(pickle, n);
    end_tuple(pickle, 5);
    phema_strbuf_puts(pickle, "Q"); /* BINPERSID */
}

static void write_pickle(struct phema_strbuf *pickle, enum phema_dtype dtype, const uint64_t *shape,
                         unsigned rank)
{
    bool has_storage = dtypes[dtype].storage;
    uint64_t stride[PHEMA_MAX_RANK], below = 1;
    for (unsigned d = rank; d-- > 0;) {
        stride[d] = below;
        below *= shape[d] ? shape[d] : 1;
    }
    size_t n = has_storage ? 6 : 7;
    phema_strbuf_puts(pickle, "\x80\x02");
    write_global(pickle, "torch._utils", has_storage ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    begin_tuple(pickle, n);
    write_storage(pickle, dtype, count(shape, rank));
    write_u64(pickle, 0); /* offset in the storage */
    write_sizes(pickle, shape, rank);
    write_sizes(pickle, stride, rank);
    phema_strbuf_puts(pickle, "\x89"); /* requires_grad: False */
    write_global(pickle, "collections", "OrderedDict");
    phema_strbuf_puts(pickle, ")R"); /* hooks */
    if (!has_storage)
        write_global(pickle, "torch", dtypes[dtype].name);
    end_tuple(pickle, n);
    phema_strbuf_puts(pickle, "R.");
}

/* ---- Zip ---- */

#define LOCAL_BYTES  30u
#define FLAGS        0x800u /* names are UTF-8 */
#define EXTRA_BYTES  4u     /* of the header of the padding */
#define LOCAL_CRC_AT 14u
#define ENTRY_CRC_AT 16u

struct record {
    const char *name;
    uint64_t at, size_bytes;
    uint32_t crc;
};

/* Fields that the local header and the entry of the directory share: flags to the length of the
 * name. */
static void put_shared(struct phema_strbuf *out, const struct record *record)
{
    put(out, FLAGS, 2);
    put(out, 0, 2); /* stored */
    put(out, 0, 4); /* no time: the same data make the same bytes */
    put(out, record->crc, 4);
    put(out, record->size_bytes, 4);
    put(out, record->size_bytes, 4);
    put(out, strlen(record->name), 2);
}

/* Padded so that the data begin at a multiple of DCP_ALIGNMENT. */
static void put_local(struct phema_strbuf *out, const struct record *record)
{
    char padding[DCP_ALIGNMENT];
    memset(padding, 'Z', sizeof(padding));
    uint64_t end = record->at + LOCAL_BYTES + strlen(record->name) + EXTRA_BYTES;
    size_t fill = (size_t)(-end % DCP_ALIGNMENT);
    put(out, 0x04034b50, 4);
    put(out, 0, 2); /* version */
    put_shared(out, record);
    put(out, EXTRA_BYTES + fill, 2);
    phema_strbuf_puts(out, record->name);
    phema_strbuf_puts(out, "FB"); /* as torch names its padding */
    put(out, fill, 2);
    phema_strbuf_append(out, padding, fill);
}

static void put_entry(struct phema_strbuf *out, const struct record *record)
{
    put(out, 0x02014b50, 4);
    put(out, 0, 4); /* versions */
    put_shared(out, record);
    put(out, 0, 2 + 2 + 2 + 2); /* extra field, comment, disk, internal attributes */
    put(out, 0, 4);             /* external attributes */
    put(out, record->at, 4);
    phema_strbuf_puts(out, record->name);
}

static void put_end(struct phema_strbuf *out, uint64_t n, uint64_t directory_at, uint64_t size)
{
    put(out, 0x06064b50, 4); /* zip64 */
    put(out, 44, 8);         /* bytes that follow */
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 8); /* disks */
    put(out, n, 8);
    put(out, n, 8);
    put(out, size, 8);
    put(out, directory_at, 8);
    put(out, 0x07064b50, 4);
    put(out, 0, 4);
    put(out, directory_at + size, 8);
    put(out, 1, 4);
    put(out, 0x06054b50, 4);
    put(out, 0, 4); /* disks */
    put(out, n, 2);
    put(out, n, 2);
    put(out, size, 4);
    put(out, directory_at, 4);
    put(out, 0, 2); /* comment */
}

/* Adds a record whose data are in memory. skipped: bytes of the zip that are not in out. */
static void put_small(struct phema_strbuf *out, struct record *record, const char *data,
                      uint64_t skipped)
{
    record->at = skipped + out->size;
    record->crc = phema_crc32(0, data, (size_t)record->size_bytes);
    put_local(out, record);
    phema_strbuf_append(out, data, (size_t)record->size_bytes);
}

PHEMA_FALLIBLE dcp_frame_make(struct dcp_frame *frame, enum phema_dtype dtype,
                              const uint64_t *shape, unsigned rank, uint32_t crc,
                              struct phema_error *err)
{
    struct phema_strbuf pickle = {0}, *out = &frame->bytes;
    write_pickle(&pickle, dtype, shape, rank);
    enum phema_status status = phema_strbuf_check(&pickle, err);
    if (status) {
        phema_strbuf_clear(&pickle);
        return status;
    }
    uint64_t data_bytes = phema_dtype_bytes(dtype, count(shape, rank));
    struct record records[] = {{"archive/data.pkl", 0, pickle.size, 0},
                               {"archive/byteorder", 0, 6, 0},
                               {"archive/data/0", 0, data_bytes, crc},
                               {"archive/version", 0, 2, 0}};
    out->size = 0;
    put_small(out, &records[0], pickle.data, 0);
    put_small(out, &records[1], "little", 0);
    phema_strbuf_clear(&pickle);
    records[2].at = out->size;
    put_local(out, &records[2]);
    frame->data_at = out->size;
    put_small(out, &records[3], "3\n", data_bytes);
    uint64_t directory_at = data_bytes + out->size;
    for (size_t r = 0; r < ARRAY_LEN(records); r++) {
        if (r == 2)
            frame->crc_at[1] = data_bytes + out->size + ENTRY_CRC_AT;
        put_entry(out, &records[r]);
    }
    put_end(out, ARRAY_LEN(records), directory_at, data_bytes + out->size - directory_at);
    frame->crc_at[0] = records[2].at + LOCAL_CRC_AT;
    frame->zip_bytes = data_bytes + out->size;
    return phema_strbuf_check(out, err);
}

/* ---- .metadata ---- */

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

static void put_opcodes(struct metadata_pickle *pickle, const char *opcodes)
{
    phema_strbuf_puts(pickle->text, opcodes);
}

static void put_string(struct metadata_pickle *pickle, const char *text)
{
    write_text(pickle->text, text, strlen(text));
}

static void put_class(struct metadata_pickle *pickle, const char *module, const char *name)
{
    uint8_t c = 0;
    while (c < pickle->n_classes && (strcmp(pickle->classes[c].name, name) != 0 ||
                                     strcmp(pickle->classes[c].module, module) != 0))
        c++;
    if (c < pickle->n_classes) {
        put_opcodes(pickle, "h"); /* BINGET */
    } else {
        write_global(pickle->text, module, name);
        put_opcodes(pickle, "q"); /* BINPUT */
        pickle->classes[c].module = module;
        pickle->classes[c].name = name;
        pickle->n_classes++;
    }
    phema_strbuf_append(pickle->text, (const char *)&c, 1);
}

/* NEWOBJ, and a dict of fields up to end_object. */
static void begin_object(struct metadata_pickle *pickle, const char *module, const char *name)
{
    put_class(pickle, module, name);
    put_opcodes(pickle, ")\x81}(");
}

static void end_object(struct metadata_pickle *pickle)
{
    put_opcodes(pickle, "ub");
}

static void put_size(struct metadata_pickle *pickle, const uint64_t *sizes, unsigned rank)
{
    put_class(pickle, "torch", "Size");
    write_sizes(pickle->text, sizes, rank);
    put_opcodes(pickle, "\x85R");
}

/* ---- The state dict ---- */

/* Dtype, layout, requires_grad, memory format, pinned. */
static void put_properties(struct metadata_pickle *pickle, enum phema_dtype dtype)
{
    put_class(pickle, METADATA, "TensorProperties");
    put_opcodes(pickle, ")\x81(");
    put_class(pickle, "torch", dcp_dtype_name(dtype));
    put_class(pickle, "torch.serialization", "_get_layout");
    put_string(pickle, "torch.strided");
    put_opcodes(pickle, "\x85R\x89");
    put_class(pickle, METADATA, "_MEM_FORMAT_ENCODING");
    write_u64(pickle->text, 0);
    put_opcodes(pickle, "\x85R\x89tb");
}

static void put_tensor(struct metadata_pickle *pickle, const struct phema_tensor *tensor,
                       const struct phema_piece *pieces, size_t n)
{
    write_text(pickle->text, tensor->name, tensor->name_size);
    begin_object(pickle, METADATA, "TensorStorageMetadata");
    put_string(pickle, "properties");
    put_properties(pickle, tensor->dtype);
    put_string(pickle, "size");
    put_size(pickle, tensor->shape, tensor->rank);
    put_string(pickle, "chunks");
    put_opcodes(pickle, "](");
    for (size_t p = 0; p < n; p++) {
        begin_object(pickle, METADATA, "ChunkStorageMetadata");
        put_string(pickle, "offsets");
        put_size(pickle, pieces[p].start, tensor->rank);
        put_string(pickle, "sizes");
        put_size(pickle, pieces[p].size, tensor->rank);
        end_object(pickle);
    }
    put_opcodes(pickle, "e");
    end_object(pickle);
}

/* ---- Places ---- */

static void put_place(struct metadata_pickle *pickle, const struct phema_tensor *tensor,
                      size_t index, const struct phema_piece *piece, const char *file)
{
    begin_object(pickle, METADATA, "MetadataIndex");
    put_string(pickle, "fqn");
    write_text(pickle->text, tensor->name, tensor->name_size);
    put_string(pickle, "index");
    write_u64(pickle->text, index);
    put_string(pickle, "offset");
    put_size(pickle, piece->start, tensor->rank);
    end_object(pickle);
    begin_object(pickle, FILESYSTEM, "_StorageInfo");
    put_string(pickle, "relative_path");
    put_string(pickle, file);
    put_string(pickle, "offset");
    write_u64(pickle->text, piece->zip_at);
    put_string(pickle, "length");
    write_u64(pickle->text, piece->zip_bytes);
    end_object(pickle);
}

void dcp_metadata_write(struct phema_strbuf *text, const struct phema_tensor *tensors, size_t n,
                        const struct phema_piece *pieces, const size_t *first_piece,
                        const struct phema_output_file *files)
{
    struct metadata_pickle pickle = {.text = text};
    put_opcodes(&pickle, "\x80\x02");
    begin_object(&pickle, METADATA, "Metadata");
    put_string(&pickle, "state_dict_metadata");
    put_opcodes(&pickle, "}(");
    for (size_t i = 0; i < n; i++)
        put_tensor(&pickle, &tensors[i], &pieces[first_piece[i]],
                   first_piece[i + 1] - first_piece[i]);
    put_opcodes(&pickle, "u");
    put_string(&pickle, "planner_data"); /* each tensor's path in the state dict: its name */
    put_opcodes(&pickle, "}(");
    for (size_t i = 0; i < n; i++) {
        write_text(text, tensors[i].name, tensors[i].name_size);
        write_text(text, tensors[i].name, tensors[i].name_size);
        put_opcodes(&pickle, "\x85");
    }
    put_opcodes(&pickle, "u");
    put_string(&pickle, "storage_data");
    put_opcodes(&pickle, "}(");
    for (size_t i = 0; i < n; i++)
        for (size_t p = first_piece[i]; p < first_piece[i + 1]; p++)
            put_place(&pickle, &tensors[i], p - first_piece[i], &pieces[p],
                      files[pieces[p].file].name);
    put_opcodes(&pickle, "u");
    put_string(&pickle, "storage_meta");
    put_opcodes(&pickle, "N");
    put_string(&pickle, "version");
    put_string(&pickle, "1.0.0");
    end_object(&pickle);
    put_opcodes(&pickle, ".");
}
