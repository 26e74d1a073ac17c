// SPDX-License-Identifier: Apache-2.0
/* packed.c - numbers and texts as bytes, and back. */
#include "phema/packed.h"

#include <stdlib.h>
#include <string.h>

#define NO_TEXT UINT64_MAX

void phema_pack_u64(struct phema_strbuf *out, uint64_t number)
{
    char bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (char)(number >> 8 * i & 0xff);
    phema_strbuf_append(out, bytes, sizeof(bytes));
}

void phema_pack_double(struct phema_strbuf *out, double number)
{
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof(bits));
    phema_pack_u64(out, bits);
}

void phema_pack_bytes(struct phema_strbuf *out, const void *data, size_t size)
{
    phema_pack_u64(out, size);
    if (size)
        phema_strbuf_append(out, data, size);
}

void phema_pack_text(struct phema_strbuf *out, const char *text)
{
    if (text)
        phema_pack_bytes(out, text, strlen(text));
    else
        phema_pack_u64(out, NO_TEXT);
}

void phema_pack_u64s(struct phema_strbuf *out, const uint64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        phema_pack_u64(out, numbers[i]);
}

/* ---- Unpacking ---- */

static const uint8_t *take(struct phema_unpacker *in, size_t size)
{
    const uint8_t *data = in->rest.data;
    if (phema_unpack_is_failed(in) || size > in->rest.size) {
        in->is_damaged = in->is_damaged || !in->is_out_of_memory;
        return NULL;
    }
    in->rest.data += size;
    in->rest.size -= size;
    return data;
}

uint64_t phema_unpack_u64(struct phema_unpacker *in)
{
    const uint8_t *data = take(in, 8);
    uint64_t number = 0;
    for (unsigned i = 0; data && i < 8; i++)
        number |= (uint64_t)data[i] << 8 * i;
    return number;
}

double phema_unpack_double(struct phema_unpacker *in)
{
    uint64_t bits = phema_unpack_u64(in);
    double number = 0;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

size_t phema_unpack_index(struct phema_unpacker *in, size_t limit)
{
    uint64_t number = phema_unpack_u64(in);
    if (number < limit)
        return (size_t)number;
    in->is_damaged = true;
    return 0;
}

size_t phema_unpack_count(struct phema_unpacker *in, size_t least_bytes)
{
    uint64_t n = phema_unpack_u64(in);
    if (n <= in->rest.size / least_bytes)
        return (size_t)n;
    in->is_damaged = true;
    return 0;
}

/* The bytes of a text that is there; NULL for none, and after a failure. */
static const uint8_t *take_text(struct phema_unpacker *in, size_t *size)
{
    uint64_t number = phema_unpack_u64(in);
    *size = number > SIZE_MAX / 2 ? 0 : (size_t)number;
    if (number == NO_TEXT || phema_unpack_is_failed(in))
        return NULL;
    return take(in, number > SIZE_MAX / 2 ? SIZE_MAX : (size_t)number);
}

char *phema_unpack_text(struct phema_unpacker *in, size_t *size)
{
    size_t own = 0;
    const uint8_t *data = take_text(in, &own);
    char *text = data ? phema_arena_copy(in->arena, data, own) : NULL;
    in->is_out_of_memory = in->is_out_of_memory || (data && !text);
    if (size)
        *size = own;
    return text;
}

char *phema_unpack_owned(struct phema_unpacker *in, size_t *size)
{
    size_t own = 0;
    const uint8_t *data = take_text(in, &own);
    char *text = data ? malloc(own + 1) : NULL;
    in->is_out_of_memory = in->is_out_of_memory || (data && !text);
    if (text) {
        memcpy(text, data, own);
        text[own] = '\0';
    }
    if (size)
        *size = own;
    return text;
}

uint64_t *phema_unpack_u64s(struct phema_unpacker *in, size_t n)
{
    if (n > in->rest.size / 8)
        in->is_damaged = true;
    uint64_t *numbers = phema_unpack_array(in, n, sizeof(*numbers));
    for (size_t i = 0; numbers && i < n; i++)
        numbers[i] = phema_unpack_u64(in);
    return numbers;
}

void *phema_unpack_array(struct phema_unpacker *in, size_t n, size_t size)
{
    void *items = phema_unpack_is_failed(in) ? NULL : phema_arena_array(in->arena, n + 1, size);
    in->is_out_of_memory = in->is_out_of_memory || (!items && !in->is_damaged);
    return items;
}

PHEMA_FALLIBLE phema_unpack_check(const struct phema_unpacker *in, struct phema_error *err)
{
    if (in->is_out_of_memory)
        return phema_fail_memory(err);
    return in->is_damaged ? phema_fail(err, PHEMA_BUG, "what another process sent is damaged")
                          : PHEMA_OK;
}
