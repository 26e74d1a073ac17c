/* storages.h - The storages that the persistent ids of a torch pickle name, each key once. */
#ifndef FORMATS_TORCH_STORAGES_H
#define FORMATS_TORCH_STORAGES_H

#include "name_table.h"
#include "pickle/machine.h"

struct torch_storages {
    struct phema_arena *arena; /* memory of the storages; the caller's */
    /* Fields of a persistent id: 5 in a zip; the legacy format has one more, which must be None */
    size_t n_id_fields;
    /* Finds the data of a new storage; NULL: they are found later. */
    enum phema_status (*place)(struct pickle_storage *storage, void *context,
                               struct phema_error *err);
    void *context;
    struct pickle_storage **all; /* in the order of their first mention */
    size_t n, capacity;
    struct name_table keys; /* values are indices in all */
};

/* The find_storage of a pickle_host whose context is a struct torch_storages. */
enum phema_status torch_storages_find(struct pickle_storage **out, void *storages,
                                      const struct pickle_node *id, struct phema_error *err);

/* The storage of a key; NULL when no persistent id has named it. */
struct pickle_storage *torch_storages_named(const struct torch_storages *storages,
                                            struct phema_span key);

/* Puts "storage 'KEY': " before the message. */
enum phema_status torch_storage_fail_in(struct phema_error *err, enum phema_status status,
                                        struct phema_span key);

void torch_storages_clear(struct torch_storages *storages);

#endif
