/* name_table.h - Hash table from names to numbers. Names come from files and may be chosen to
 * collide, so each table draws a secret key. Nothing depends on the order of slots. */
#ifndef FORMATS_NAME_TABLE_H
#define FORMATS_NAME_TABLE_H

#include "phema/span.h"

struct name_slot;

/* Starts as {0}. Names are borrowed. */
struct name_table {
    struct name_slot *slots;
    size_t capacity, n;
    uint64_t key[2]; /* of the hash */
};

enum name_added { NAME_ADDED, NAME_EXISTS, NAME_NO_MEMORY };

enum name_added name_table_add(struct name_table *table, const char *name, size_t size,
                               size_t value);
bool name_table_find(size_t *value, const struct name_table *table, const char *name, size_t size);
void name_table_clear(struct name_table *table);

#endif
