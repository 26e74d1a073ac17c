// SPDX-License-Identifier: Apache-2.0
/* packed.c - numbers and texts as bytes, and back. */
#include "phema/packed.h"

#include <stdlib.h>
#include <string.h>

#define NO_TEXT UINT64_MAX

PHEMA_FALLIBLE phema_pack_check(const struct phema_packer *packer, struct phema_error *err)
{
    if (packer->out)
        return phema_strbuf_check(packer->out, err);
    if (packer->is_out_of_memory)
        return phema_fail_memory(err);
    return packer->is_damaged ? phema_fail(err, PHEMA_BUG, "what another process sent is damaged")
                              : PHEMA_OK;
}

/* NULL after a failure. */
static const uint8_t *receive(struct phema_packer *packer, uint64_t size)
{
    const uint8_t *data = packer->rest.data;
    if (phema_pack_is_failed(packer) || size > packer->rest.size) {
        packer->is_damaged = packer->is_damaged || !packer->is_out_of_memory;
        return NULL;
    }
    packer->rest.data += size;
    packer->rest.size -= (size_t)size;
    return data;
}

/* ---- Numbers ---- */

void phema_pack_u64(struct phema_packer *packer, uint64_t *number)
{
    if (packer->out) {
        phema_strbuf_append_u64(packer->out, *number);
        return;
    }
    const uint8_t *data = receive(packer, 8);
    *number = data ? phema_load_u64(data) : 0;
}

void phema_pack_size(struct phema_packer *packer, size_t *number)
{
    uint64_t wide = *number;
    phema_pack_u64(packer, &wide);
    if (!packer->out)
        *number = (size_t)wide;
}

void phema_pack_double(struct phema_packer *packer, double *number)
{
    uint64_t bits = 0;
    memcpy(&bits, number, sizeof(bits));
    phema_pack_u64(packer, &bits);
    if (!packer->out)
        memcpy(number, &bits, sizeof(bits));
}

void phema_pack_index(struct phema_packer *packer, size_t *index, size_t limit)
{
    phema_pack_size(packer, index);
    if (packer->out || *index < limit)
        return;
    packer->is_damaged = true;
    *index = 0;
}

unsigned phema_pack_choice(struct phema_packer *packer, unsigned choice, unsigned limit)
{
    size_t index = choice;
    phema_pack_index(packer, &index, limit);
    return (unsigned)index;
}

bool phema_pack_presence(struct phema_packer *packer, bool is_there)
{
    return phema_pack_choice(packer, is_there, 2) != 0;
}

void phema_pack_bool(struct phema_packer *packer, bool *truth)
{
    bool is_true = phema_pack_presence(packer, *truth);
    if (!packer->out)
        *truth = is_true;
}

void phema_pack_count(struct phema_packer *packer, size_t *n, size_t least_bytes)
{
    phema_pack_size(packer, n);
    if (packer->out || *n <= packer->rest.size / least_bytes)
        return;
    packer->is_damaged = true;
    *n = 0;
}

/* ---- Texts ---- */

/* Sends the bytes, or receives some that belong to the packer's memory; NULL for none. */
static const uint8_t *pack_bytes(struct phema_packer *packer, const void *data, size_t *size)
{
    uint64_t number = data ? *size : NO_TEXT;
    phema_pack_u64(packer, &number);
    if (packer->out) {
        if (data && *size)
            phema_strbuf_append(packer->out, data, *size);
        return data;
    }
    bool is_any = number != NO_TEXT && !phema_pack_is_failed(packer);
    const uint8_t *received = is_any ? receive(packer, number) : NULL;
    *size = received ? (size_t)number : 0;
    return received;
}

void phema_pack_bytes(struct phema_packer *packer, const char **data, size_t *size)
{
    const uint8_t *received = pack_bytes(packer, *data, size);
    if (packer->out)
        return;
    *data = received ? phema_arena_copy(packer->arena, received, *size) : NULL;
    packer->is_out_of_memory = packer->is_out_of_memory || (received && !*data);
}

void phema_pack_owned_bytes(struct phema_packer *packer, char **data, size_t *size)
{
    const uint8_t *received = pack_bytes(packer, *data, size);
    if (packer->out)
        return;
    char *copy = received ? malloc(*size + 1) : NULL;
    packer->is_out_of_memory = packer->is_out_of_memory || (received && !copy);
    if (copy) {
        memcpy(copy, received, *size);
        copy[*size] = '\0';
    }
    *data = copy;
}

void phema_pack_text(struct phema_packer *packer, const char **text)
{
    size_t size = packer->out && *text ? strlen(*text) : 0;
    phema_pack_bytes(packer, text, &size);
}

void phema_pack_owned_text(struct phema_packer *packer, char **text)
{
    size_t size = packer->out && *text ? strlen(*text) : 0;
    phema_pack_owned_bytes(packer, text, &size);
}

/* ---- Arrays ---- */

/* Made for the receiver: NULL is a failure, unless there was one before. */
static void *check_array(struct phema_packer *packer, void *items)
{
    packer->is_out_of_memory = packer->is_out_of_memory || (!items && !packer->is_damaged);
    return items;
}

void *phema_pack_array(struct phema_packer *packer, const void *items, size_t n, size_t size)
{
    void *same = NULL;
    memcpy(&same, &items, sizeof(same)); /* without const: the sender's items stay as they are */
    if (packer->out)
        return same;
    bool is_failed = phema_pack_is_failed(packer);
    return check_array(packer, is_failed ? NULL : phema_arena_array(packer->arena, n + 1, size));
}

void *phema_pack_owned_array(struct phema_packer *packer, void *items, size_t n, size_t size)
{
    return packer->out ? items : check_array(packer, calloc(n + 1, size));
}

void phema_pack_u64s(struct phema_packer *packer, const uint64_t **numbers, size_t n)
{
    if (!packer->out && n > packer->rest.size / 8)
        packer->is_damaged = true;
    uint64_t *items = phema_pack_array(packer, *numbers, n, sizeof(*items));
    for (size_t i = 0; items && i < n; i++)
        phema_pack_u64(packer, &items[i]);
    *numbers = items;
}
