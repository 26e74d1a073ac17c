/* torch.h - Private to torch/: storages of a pickle, zip files, files inside files, and the way
 * from an unpickled root to the listing of a checkpoint. */
#ifndef FORMATS_TORCH_TORCH_H
#define FORMATS_TORCH_TORCH_H

#include "assembly.h"
#include "pickle/machine.h"

extern const struct phema_extension torch_extensions[]; /* of torch.save, whatever the version */

/* ---- Storages (storages.c): those that the persistent ids of a pickle name, each key once ---- */

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

/* ---- Zip files as torch writes them: stored records, mapped in place (zip.c) ---- */

struct zip_entry {
    const char *name; /* in the mapped file, without a final NUL */
    size_t name_size;
    uint16_t flags, method;
    uint64_t header; /* offset of the local header */
    uint64_t offset; /* of the data */
    uint64_t stored_size, size;
    uint64_t end; /* of data and descriptor */
    uint32_t crc;
    uint64_t central;        /* offset of the entry in the directory */
    uint64_t descriptor_crc; /* offset of the CRC in the descriptor; 0: no descriptor */
};

struct zip_archive {
    struct phema_span content;
    struct zip_entry *entries;
    size_t n_entries;
    struct name_table names;
};

/* Reads and checks the whole directory: names, places, local headers, no overlaps. Refuses more
 * than max_entries before it reads any. */
PHEMA_FALLIBLE zip_open(struct zip_archive *zip, struct phema_span content, uint64_t max_entries,
                        struct phema_error *err);
void zip_close(struct zip_archive *zip);

/* An entry by name, or NULL. */
const struct zip_entry *zip_find(const struct zip_archive *zip, const char *name, size_t size);

/* Puts "record 'NAME': " before the message. */
enum phema_status zip_fail_in(struct phema_error *err, enum phema_status status,
                              const struct zip_entry *entry);

/* The offsets of the entry's CRC, which is the same in all places: in the directory, in the
 * descriptor if there is one, and in the local header unless that leaves it to the descriptor.
 * Returns their number, 2 or 3. */
unsigned zip_find_crcs(uint64_t places[PHEMA_RECORD_CRCS], const struct zip_archive *zip,
                       const struct zip_entry *entry);

/* Records of zips inside files of a checkpoint. */
struct torch_records {
    struct phema_record *items;
    size_t n, capacity;
};
/* Appends those of an archive that hold storages (torch_zip.c).
 *   content, file, start  as torch_zip_read_tensor
 *   is_lone               the archive may hold one tensor only */
PHEMA_FALLIBLE torch_zip_add_records(struct torch_records *records, struct phema_span content,
                                     size_t file, uint64_t start, bool is_lone,
                                     struct phema_error *err);

/* True when the bytes are neither compressed nor encrypted. */
bool zip_is_stored(const struct zip_entry *entry);

/* PHEMA_ERR_FILE  the entry is compressed and so cannot be mapped */
PHEMA_FALLIBLE zip_check_stored(const struct zip_entry *entry, struct phema_error *err);

/* ---- Files inside files ---- */

/* A file of torch.save before 1.6: five pickles, then the storages (torch_legacy.c). */
struct torch_legacy {
    struct phema_arena arena; /* nodes and storages */
    struct torch_storages storages;
    struct pickle_node *root;
    size_t object_size; /* of the object's pickle */
    size_t used;        /* up to the end of the last storage */
};

/* Reads such a file inside file 0 of the checkpoint, from start on. The caller clears the file,
 * even after a failure. */
PHEMA_FALLIBLE torch_legacy_read(struct torch_legacy *legacy, struct phema_span bytes,
                                 uint64_t start, const struct phema_checkpoint_options *options,
                                 struct phema_error *err);
void torch_legacy_clear(struct torch_legacy *legacy);

/* Reads the one tensor of an archive of torch.save (torch_zip.c): all of *out but its name and
 * kind.
 *   arena    memory of shape and stride
 *   content  of the archive, whose first byte is byte start of file number file */
PHEMA_FALLIBLE torch_zip_read_tensor(struct phema_tensor *out, struct phema_arena *arena,
                                     struct phema_span content, size_t file, uint64_t start,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err);

/* Lists the numbers of an archive of torch.save as torch_list_values does (torch_zip.c).
 *   content, file, start  as torch_zip_read_tensor */
PHEMA_FALLIBLE torch_zip_list_values(struct phema_checkpoint *checkpoint, const char *item,
                                     struct phema_span content, size_t file, uint64_t start,
                                     const struct phema_checkpoint_options *options,
                                     struct phema_error *err);

/* ---- DTensors (sharding.c): the part of a tensor that one process has ---- */

#define MAX_MESH_RANK 16u

/* Part number `part` of n along one dimension of the mesh of processes. */
struct mesh_cut {
    uint64_t n, part;
    bool is_shard;      /* else a replica */
    uint64_t dimension; /* of the tensor, for a shard */
};

/* How a tensor is spread over processes, and the place of one of them. */
struct sharding {
    struct mesh_cut cuts[MAX_MESH_RANK]; /* in the order of the mesh */
    size_t n_cuts;
    uint64_t process;      /* number of this process in the training */
    const uint64_t *shape; /* [rank] of the whole tensor */
    unsigned rank;
};

/* Reads the specification of a DTensor. */
PHEMA_FALLIBLE sharding_read(struct sharding *out, struct phema_arena *arena,
                             const struct pickle_tensor *view, struct phema_error *err);

/* Reads what metadata.pkl of torch_checkpointing lists of a tensor, seen from a process.
 *   part  of that process
 * PHEMA_ERR_FILE  the list does not have the process, or the part does not fit it */
PHEMA_FALLIBLE sharding_read_listed(struct sharding *out, struct phema_arena *arena,
                                    const struct pickle_node *list, uint64_t process,
                                    size_t n_processes, const struct phema_tensor *part,
                                    struct phema_error *err);
/* The value of a key of a small dict of metadata.pkl; NULL: there is none. */
struct pickle_node *metadata_value(const struct pickle_node *dict, const char *key);

/* Checks that the process has a part of this shape, and finds its place.
 *   start  out: [rank] in the arena */
PHEMA_FALLIBLE sharding_find_part(const uint64_t **start, struct phema_arena *arena,
                                  const struct sharding *sharding, const struct phema_tensor *part,
                                  struct phema_error *err);

/* ---- Listing ---- */

/* The part of a distributed checkpoint that one process has saved under a name. */
struct torch_item {
    struct assembly *assembly; /* takes the tensors */
    const char *name;          /* begins the names of its tensors */
    uint64_t process;
    bool *has_dtensors; /* set when one is found */
};

/* Lists every tensor below root, named by the keys that lead to it (tensors.c); modules as their
 * state_dict. Tensors of PHEMA_KIND_ATTRIBUTE follow: those in attributes of dicts, modules and
 * objects, and those next to the model. No tensor is listed twice. Then lists the values.
 *   model_key    of the value in the root dict that is the model, as in EDM2; NULL: the root is it
 *   item         adds the tensors to its assembly, and lists the values of process 0; NULL: no item
 *   pickle_size  [bytes] bounds the unfolding of a tree of shared containers, and the work */
PHEMA_FALLIBLE torch_list(struct phema_checkpoint *checkpoint, struct pickle_node *root,
                          const char *model_key, const struct torch_item *item, size_t pickle_size,
                          struct phema_error *err);
/* The same for the object of an archive of torch.save, file number file (torch_zip.c). */
PHEMA_FALLIBLE torch_zip_list(struct phema_checkpoint *checkpoint, size_t file,
                              const struct torch_item *item,
                              const struct phema_checkpoint_options *options,
                              struct phema_error *err);

/* Lists integers and floats in dicts, lists and tuples, named by the keys that lead to them. Those
 * nearest to the root come first; the constants in scalars.c limit their number.
 *   item  begins all names, and is the name of a root that is a number; NULL: no item */
PHEMA_FALLIBLE torch_list_values(struct phema_checkpoint *checkpoint,
                                 const struct pickle_node *root, const char *item,
                                 size_t pickle_size, struct phema_error *err);

/* Dtype, dimensions and place of one tensor; shape and stride lie in the arena. */
PHEMA_FALLIBLE torch_place_tensor(struct phema_tensor *tensor, struct phema_arena *arena,
                                  const struct pickle_tensor *view, struct phema_error *err);

#endif
