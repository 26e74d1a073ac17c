// SPDX-License-Identifier: Apache-2.0
/* dcp_piece.c - The zip of one box, as torch.save writes a tensor: stored records, the pickle first
 * (torch/serialization.py, caffe2/serialize/inline_container.cc). Boxes have less than 4 GiB, so
 * that no header needs the fields of zip64; the zip64 end record is always there, as in torch. */
#include <string.h>

#include "dcp.h"
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
    dcp_pickle_begin_tuple(pickle, 5);
    dcp_pickle_text(pickle, "storage", 7);
    dcp_pickle_global(pickle, storage ? "torch" : "torch.storage",
                      storage ? storage : "UntypedStorage");
    dcp_pickle_text(pickle, "0", 1);
    dcp_pickle_text(pickle, "cpu", 3);
    dcp_pickle_u64(pickle, n);
    dcp_pickle_end_tuple(pickle, 5);
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
    dcp_pickle_global(pickle, "torch._utils",
                      has_storage ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    dcp_pickle_begin_tuple(pickle, n);
    write_storage(pickle, dtype, count(shape, rank));
    dcp_pickle_u64(pickle, 0); /* offset in the storage */
    dcp_pickle_sizes(pickle, shape, rank);
    dcp_pickle_sizes(pickle, stride, rank);
    phema_strbuf_puts(pickle, "\x89"); /* requires_grad: False */
    dcp_pickle_global(pickle, "collections", "OrderedDict");
    phema_strbuf_puts(pickle, ")R"); /* hooks */
    if (!has_storage)
        dcp_pickle_global(pickle, "torch", dtypes[dtype].name);
    dcp_pickle_end_tuple(pickle, n);
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

static void put(struct phema_strbuf *out, uint64_t value, unsigned n)
{
    char bytes[8];
    for (unsigned i = 0; i < n; i++)
        bytes[i] = (char)(uint8_t)(value >> 8 * i);
    phema_strbuf_append(out, bytes, n);
}

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
