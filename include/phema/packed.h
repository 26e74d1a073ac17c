/* packed.h - values as bytes for another process of the same program, and back. One function per
 * struct describes both ways, so that sender and receiver cannot differ. The receiver checks lengths
 * alone: the sender belongs to the same team. */
#ifndef PHEMA_PACKED_H
#define PHEMA_PACKED_H

#include "phema/arena.h"
#include "phema/strbuf.h"

/* The sender has `out`, and every function below appends its value to it, which stays. The receiver
 * has `rest`, and every function sets its value. After a failure all numbers are 0 and all pointers
 * NULL: check at the end, with phema_pack_check, and before a value is used for more than that. */
struct phema_packer {
    struct phema_strbuf *out;  /* NULL: the receiver */
    struct phema_span rest;    /* to read */
    struct phema_arena *arena; /* of what is received, unless its name says owned (free) */
    bool is_damaged, is_out_of_memory;
};

static inline bool phema_pack_receives(const struct phema_packer *packer)
{
    return !packer->out;
}
static inline bool phema_pack_is_failed(const struct phema_packer *packer)
{
    return !packer->out && (packer->is_damaged || packer->is_out_of_memory);
}
/* PHEMA_BUG           too short, or a number that cannot be
 * PHEMA_ERR_RESOURCE  out of memory */
PHEMA_FALLIBLE phema_pack_check(const struct phema_packer *packer, struct phema_error *err);

/* Numbers take 8 bytes, little-endian; texts and bytes a number and themselves. */
void phema_pack_u64(struct phema_packer *packer, uint64_t *number);
void phema_pack_size(struct phema_packer *packer, size_t *number);
void phema_pack_double(struct phema_packer *packer, double *number); /* bit by bit, also a NaN */
/* A number below the limit; another is damage. */
void phema_pack_index(struct phema_packer *packer, size_t *index, size_t limit);
/* The same of an enum, returned. */
unsigned phema_pack_choice(struct phema_packer *packer, unsigned choice, unsigned limit);
void phema_pack_bool(struct phema_packer *packer, bool *truth);
/* Whether something follows, of which the receiver knows by this alone. */
bool phema_pack_presence(struct phema_packer *packer, bool is_there);
/* The number of items that follow, each of at least so many bytes: no more than there can be. */
void phema_pack_count(struct phema_packer *packer, size_t *n, size_t least_bytes);

/* NUL-terminated, or NULL. */
void phema_pack_text(struct phema_packer *packer, const char **text);
void phema_pack_owned_text(struct phema_packer *packer, char **text);
/* Bytes, which may be NULL; the receiver's have a NUL behind them. */
void phema_pack_bytes(struct phema_packer *packer, const char **data, size_t *size);
void phema_pack_owned_bytes(struct phema_packer *packer, char **data, size_t *size);
void phema_pack_u64s(struct phema_packer *packer, const uint64_t **numbers, size_t n);

/* The sender's items; for the receiver n zeroed ones, or NULL, which is a failure of the packer. */
void *phema_pack_array(struct phema_packer *packer, const void *items, size_t n, size_t size);
void *phema_pack_owned_array(struct phema_packer *packer, void *items, size_t n, size_t size);

#endif
