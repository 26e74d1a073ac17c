// SPDX-License-Identifier: Apache-2.0
/* dcp_pickle.c - Opcodes of pickle protocol 2, as few as a distributed checkpoint needs. */
#include <string.h>

#include "dcp.h"

static void put_bytes(struct phema_strbuf *pickle, uint64_t value, unsigned n)
{
    char bytes[8];
    for (unsigned i = 0; i < n; i++)
        bytes[i] = (char)(uint8_t)(value >> 8 * i);
    phema_strbuf_append(pickle, bytes, n);
}

/* BININT1, BININT2, BININT, and LONG1, which is two's complement and as short as possible. */
void dcp_pickle_u64(struct phema_strbuf *pickle, uint64_t number)
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
        put_bytes(pickle, n + has_sign, 1);
        put_bytes(pickle, number, n);
        put_bytes(pickle, 0, has_sign);
        return;
    }
    put_bytes(pickle, number, n);
}

void dcp_pickle_text(struct phema_strbuf *pickle, const char *text, size_t size)
{
    phema_strbuf_puts(pickle, "X");
    put_bytes(pickle, size, 4);
    phema_strbuf_append(pickle, text, size);
}

void dcp_pickle_global(struct phema_strbuf *pickle, const char *module, const char *name)
{
    phema_strbuf_printf(pickle, "c%s\n%s\n", module, name);
}

void dcp_pickle_begin_tuple(struct phema_strbuf *pickle, size_t n)
{
    if (n > 3)
        phema_strbuf_puts(pickle, "(");
}

void dcp_pickle_end_tuple(struct phema_strbuf *pickle, size_t n)
{
    static const char *const ends[] = {")", "\x85", "\x86", "\x87"};
    phema_strbuf_puts(pickle, n > 3 ? "t" : ends[n]);
}

void dcp_pickle_sizes(struct phema_strbuf *pickle, const uint64_t *sizes, unsigned rank)
{
    dcp_pickle_begin_tuple(pickle, rank);
    for (unsigned d = 0; d < rank; d++)
        dcp_pickle_u64(pickle, sizes[d]);
    dcp_pickle_end_tuple(pickle, rank);
}
