/* name_index.h - from names to numbers. Names come from files and may be chosen to collide, so the
 * hash has a secret that each index draws anew; nothing depends on the order of slots. */
#ifndef PHEMA_FORMATS_NAME_INDEX_H
#define PHEMA_FORMATS_NAME_INDEX_H

#include "phema/span.h"

struct name_slot;

/* Starts as {0}. Names are borrowed. */
struct name_index {
    struct name_slot *slots;
    size_t capacity, n;
    uint64_t key[2]; /* of the hash */
};

enum name_added { NAME_ADDED, NAME_EXISTS, NAME_NO_MEMORY };

enum name_added name_index_add(struct name_index *index, const char *name, size_t size,
                               size_t value);
bool name_index_find(size_t *value, const struct name_index *index, const char *name, size_t size);
void name_index_clear(struct name_index *index);

#endif
