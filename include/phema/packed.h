/* packed.h - values as bytes for another process of the same program, and back. What is received is
 * checked for its lengths alone: the sender is of the same team. */
#ifndef PHEMA_PACKED_H
#define PHEMA_PACKED_H

#include "phema/arena.h"
#include "phema/strbuf.h"

/* Numbers take 8 bytes, little-endian; texts and bytes a number and themselves. Failures as of
 * phema_strbuf_append. */
void phema_pack_u64(struct phema_strbuf *out, uint64_t number);
void phema_pack_double(struct phema_strbuf *out, double number); /* bit by bit, also a NaN */
void phema_pack_bytes(struct phema_strbuf *out, const void *data, size_t size);
void phema_pack_text(struct phema_strbuf *out, const char *text); /* may be NULL */
void phema_pack_u64s(struct phema_strbuf *out, const uint64_t *numbers, size_t n);

/* What is left to read. After a failure all numbers are 0 and all pointers NULL: check at the end,
 * with phema_unpack_check, and before a result is used for more than that. */
struct phema_unpacker {
    struct phema_span rest;
    struct phema_arena *arena; /* what is unpacked lies here, unless its name says owned */
    bool is_damaged, is_out_of_memory;
};

uint64_t phema_unpack_u64(struct phema_unpacker *in);
double phema_unpack_double(struct phema_unpacker *in);
/* A number below the limit; another is damage. */
size_t phema_unpack_index(struct phema_unpacker *in, size_t limit);
static inline bool phema_unpack_bool(struct phema_unpacker *in)
{
    return phema_unpack_index(in, 2) != 0;
}
/* The number of items that follow, each of at least so many bytes: no more than there can be. */
size_t phema_unpack_count(struct phema_unpacker *in, size_t least_bytes);
/* NUL-terminated; *size may be NULL. NULL for a text that was NULL. */
char *phema_unpack_text(struct phema_unpacker *in, size_t *size);
char *phema_unpack_owned(struct phema_unpacker *in, size_t *size); /* the caller's (free) */
uint64_t *phema_unpack_u64s(struct phema_unpacker *in, size_t n);
/* Zeroed memory of the arena for what is unpacked; NULL is a failure of the unpacker. */
void *phema_unpack_array(struct phema_unpacker *in, size_t n, size_t size);

static inline bool phema_unpack_is_failed(const struct phema_unpacker *in)
{
    return in->is_damaged || in->is_out_of_memory;
}
/* PHEMA_BUG           too short, or a number that cannot be
 * PHEMA_ERR_RESOURCE  out of memory */
PHEMA_FALLIBLE phema_unpack_check(const struct phema_unpacker *in, struct phema_error *err);

#endif
