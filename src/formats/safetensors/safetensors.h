/* safetensors.h - Private to safetensors/: the JSON of headers, and tensors of which a file has a
 * part. */
#ifndef FORMATS_SAFETENSORS_SAFETENSORS_H
#define FORMATS_SAFETENSORS_SAFETENSORS_H

#include "format.h"

/* ---- JSON without a tree (json_lexer.c) ----
 * A header may have 100 MB, and a series has thousands of headers. Strict RFC 8259, restricted to
 * unsigned integers. */

struct json_lexer {
    struct phema_span text; /* valid UTF-8 */
    size_t at;
    struct phema_arena *arena; /* memory of strings with escapes */
};

/* Skips white space, then the given character. False when another character follows. */
bool json_lexer_accept(struct json_lexer *scan, char wanted);

/* The same with the word null. */
bool json_lexer_accept_null(struct json_lexer *scan);

/* "byte N: expected WHAT, found ..." */
enum phema_status json_lexer_fail(const struct json_lexer *scan, const char *wanted,
                                  struct phema_error *err);

/* Reads a string and unescapes it: a view of the text without escapes, else a copy in the arena. */
PHEMA_FALLIBLE json_lexer_string(struct phema_span *out, struct json_lexer *scan,
                                 struct phema_error *err);

/* Reads the key of a member and the colon after it. */
PHEMA_FALLIBLE json_lexer_key(struct phema_span *out, struct json_lexer *scan,
                              struct phema_error *err);

/* Reads an array or an object and calls read at the start of each item or member.
 *   open    [ or {
 *   wanted  for the message when another character comes */
typedef enum phema_status json_lexer_read(void *context, struct phema_error *err);
PHEMA_FALLIBLE json_lexer_items(struct json_lexer *scan, char open, const char *wanted,
                                json_lexer_read *read, void *context, struct phema_error *err);

/* Reads an integer from 0 to 2^64 - 1: no sign, point, exponent or leading zero. */
PHEMA_FALLIBLE json_lexer_u64(uint64_t *out, struct json_lexer *scan, struct phema_error *err);

/* ---- Parts of tensors (sharding_info.c; docs/formats/dcp-safetensors.md) ---- */

#define SHARDING_INFO_KEY "DCP_SHARDING_INFO"

/* Where the tensors of one file begin in the tensors that they are parts of.
 *   starts   out: [n] of as many numbers as the tensor has dimensions, in the arena
 *   tensors  [n] of the file
 *   text     the value of the key
 * PHEMA_ERR_FILE  it is no JSON as torch writes it, or does not fit the tensors */
PHEMA_FALLIBLE sharding_info_read(const uint64_t **starts, struct phema_arena *arena,
                                  const struct phema_tensor *tensors, size_t n,
                                  struct phema_span text, struct phema_error *err);

/* Checks that the checkpoint's tensors from first on begin at 0: then each can be whole. */
PHEMA_FALLIBLE sharding_info_check_whole(struct phema_checkpoint *checkpoint, size_t first,
                                         struct phema_span text, struct phema_error *err);

/* shard-RRRRR-model-FFFFF-of-NNNNN with an extension: file F of N of rank R, all from 1. */
struct shard_name {
    const char *name;
    uint64_t rank, file, n_files;
};
/* False when the name is another one. */
bool shard_name_read(struct shard_name *out, const char *name);

#endif
