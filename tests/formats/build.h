/* build.h - writing checkpoints byte by byte, valid and hostile ones, and opening them. */
#ifndef TESTS_FORMATS_BUILD_H
#define TESTS_FORMATS_BUILD_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "phema/formats.h"
#include "phema/strbuf.h"
#include "support.h"

static inline void put(struct phema_strbuf *out, const void *data, size_t size)
{
    phema_strbuf_append(out, data, size);
    assert_false(out->is_failed);
}

static inline void put_int(struct phema_strbuf *out, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++) {
        uint8_t byte = 0;
        if (i < 8)
            byte = (uint8_t)(value >> (8 * i));
        put(out, &byte, 1);
    }
}

static inline void put_text(struct phema_strbuf *out, const char *text)
{
    put(out, text, strlen(text));
}

/* A safetensors file of this JSON and n_data bytes of data. */
static inline void put_safetensors(struct phema_strbuf *out, const char *json, size_t n_data)
{
    put_int(out, strlen(json), 8);
    put_text(out, json);
    for (size_t i = 0; i < n_data; i++)
        put_int(out, i & 0xFF, 1);
}

struct zip_record {
    const char *name;
    const void *data;
    size_t size;
};

/* A zip of stored records, without descriptors or zip64. headers receives the offsets of the local
 * headers. */
static inline void put_zip(struct phema_strbuf *out, const struct zip_record *records, size_t n,
                           size_t *headers)
{
    size_t start = out->size;
    for (size_t i = 0; i < n; i++) {
        headers[i] = out->size - start;
        put_int(out, 0x04034b50, 4);
        put_int(out, 0, 2); /* version */
        put_int(out, 0, 2); /* flags */
        put_int(out, 0, 2); /* method */
        put_int(out, 0, 8); /* time, date, CRC */
        put_int(out, records[i].size, 4);
        put_int(out, records[i].size, 4);
        put_int(out, strlen(records[i].name), 2);
        put_int(out, 0, 2);
        put_text(out, records[i].name);
        put(out, records[i].data, records[i].size);
    }
    size_t directory = out->size - start;
    for (size_t i = 0; i < n; i++) {
        put_int(out, 0x02014b50, 4);
        put_int(out, 0, 4);
        put_int(out, 0, 2); /* flags */
        put_int(out, 0, 2); /* method */
        put_int(out, 0, 8);
        put_int(out, records[i].size, 4);
        put_int(out, records[i].size, 4);
        put_int(out, strlen(records[i].name), 2);
        put_int(out, 0, 12);
        put_int(out, headers[i], 4);
        put_text(out, records[i].name);
    }
    size_t size = out->size - start - directory;
    put_int(out, 0x06054b50, 4);
    put_int(out, 0, 4);
    put_int(out, n, 2);
    put_int(out, n, 2);
    put_int(out, size, 4);
    put_int(out, directory, 4);
    put_int(out, 0, 2);
}

/* A torch zip with this pickle and one storage '0' of n_storage bytes. */
static inline void put_torch(struct phema_strbuf *out, const void *pickle, size_t size,
                             size_t n_storage)
{
    uint8_t *storage = calloc(1, n_storage + 1);
    assert_non_null(storage);
    for (size_t i = 0; i < n_storage; i++)
        storage[i] = (uint8_t)i;
    const struct zip_record records[] = {
        {"a/data.pkl", pickle, size}, {"a/version", "3\n", 2}, {"a/data/0", storage, n_storage}};
    size_t headers[3];
    put_zip(out, records, 3, headers);
    free(storage);
}

/* The bytes of a string literal, which may contain NULs. */
#define BYTES_OF(literal)                                                                          \
    {                                                                                              \
        (const uint8_t *)(literal), sizeof(literal) - 1                                            \
    }

/* The six parts of a file in torch's format before 1.6. The data begin with their length. */
enum { LEGACY_MAGIC, LEGACY_VERSION, LEGACY_SYSTEM, LEGACY_OBJECT, LEGACY_KEYS, LEGACY_DATA };
struct legacy_file {
    struct phema_span parts[LEGACY_DATA + 1];
};

/* Its object is the storage 'k' of 4 halves, in the form of torch's Storage.__reduce__. */
#define LEGACY_STORAGE "(X\7\0\0\0storagectorch\nHalfStorage\nX\1\0\0\0kX\3\0\0\0cpuK\4NtQ"
static const struct legacy_file legacy_storage = {
    {BYTES_OF("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19."),
     BYTES_OF("\x80\x02M\xE9\x03."), BYTES_OF("\x80\x02}X\x0D\0\0\0little_endian\x88s."),
     BYTES_OF("\x80\x02" LEGACY_STORAGE "."), BYTES_OF("\x80\x02]X\1\0\0\0ka."),
     BYTES_OF("\4\0\0\0\0\0\0\0"
              "abcdefgh")}};

static inline void put_legacy(struct phema_strbuf *out, const struct legacy_file *file)
{
    for (size_t i = 0; i < ARRAY_LEN(file->parts); i++)
        put(out, file->parts[i].data, file->parts[i].size);
}

/* The bytes as a file; each call overwrites the previous one. */
static inline const char *as_file(const void *data, size_t size)
{
    static char path[4096];
    (void)snprintf(path, sizeof(path), "%s/file", support_tmp());
    support_write(path, data, size);
    return path;
}

static inline enum phema_status open_bytes(struct phema_checkpoint **out, const void *data,
                                           size_t size, struct phema_error *err)
{
    *out = NULL;
    return phema_checkpoint_open(out, as_file(data, size), NULL, err);
}

/* The message of a refusal begins with the file and fits on one line. */
static inline void assert_refused(const void *data, size_t size, const char *part)
{
    struct phema_error err = {0};
    struct phema_checkpoint *checkpoint = NULL;
    assert_fails(open_bytes(&checkpoint, data, size, &err), PHEMA_ERR_FILE, &err, part);
    assert_null(checkpoint);
    assert_ptr_equal(strstr(err.message, support_tmp()), err.message);
    assert_null(strchr(err.message, '\n'));
}

static inline void touch(const uint8_t *byte)
{
    (void)*(const volatile uint8_t *)byte;
}

/* Reads every listed tensor. A place outside the file is a fault or a finding of ASan. */
static inline void assert_places_inside(const struct phema_checkpoint *checkpoint)
{
    for (size_t i = 0; i < phema_checkpoint_n_tensors(checkpoint); i++) {
        const struct phema_tensor *tensor = &phema_checkpoint_tensors(checkpoint)[i];
        uint64_t step = tensor->dtype >= PHEMA_F6_E2M3 ? 8 : 1;
        const uint8_t *start = phema_tensor_start(checkpoint, tensor);
        for (uint64_t at = 0; at + step <= tensor->n_elems && at < 4096; at += step) {
            uint8_t scratch[16];
            touch(phema_tensor_read(start, tensor, at, step, scratch));
        }
        if (tensor->n_elems && !tensor->stride)
            touch(start + tensor->size_bytes - 1);
    }
}

/* Cuts a file at every length and sets each of its first n_changed bytes to each other value.
 * Nothing crashes, and opened tensors lie in the file. A refusal is one sentence that names the
 * file. Returns the number of changed files that opened. */
static inline size_t survive(const uint8_t *data, size_t size, size_t first, size_t n_changed,
                             unsigned value_step)
{
    const char *path = as_file(data, size);
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    assert_true(descriptor >= 0);
    size_t n_opened = 0;
    for (size_t i = first; i < first + n_changed && i < size; i++) {
        for (unsigned value = 1; value < 256; value += value_step) {
            uint8_t changed = (uint8_t)(data[i] ^ value);
            assert_int_equal(pwrite(descriptor, &changed, 1, (off_t)i), 1);
            struct phema_error err = {0};
            struct phema_checkpoint *checkpoint = NULL;
            enum phema_status status = phema_checkpoint_open(&checkpoint, path, NULL, &err);
            if (status == PHEMA_OK) {
                assert_places_inside(checkpoint);
                phema_checkpoint_close(checkpoint);
                n_opened++;
            } else {
                assert_int_equal(status, PHEMA_ERR_FILE);
                assert_ptr_equal(strstr(err.message, path), err.message);
            }
        }
        assert_int_equal(pwrite(descriptor, &data[i], 1, (off_t)i), 1);
    }
    for (size_t length = size; length-- > 0;) {
        assert_int_equal(ftruncate(descriptor, (off_t)length), 0);
        struct phema_error err = {0};
        struct phema_checkpoint *checkpoint = NULL;
        assert_int_equal(phema_checkpoint_open(&checkpoint, path, NULL, &err), PHEMA_ERR_FILE);
        assert_ptr_equal(strstr(err.message, path), err.message);
    }
    assert_int_equal(close(descriptor), 0);
    return n_opened;
}

#endif
