/* machine.h - A restricted reader of Python pickles, protocols 2 to 5 (docs/formats/pickle.md). It
 * only builds a tree of nodes: it looks up no class and calls no function. What a name that is not
 * in allowlist.c makes is opaque; a name that runs programs is refused even if it is only
 * mentioned. */
#ifndef FORMATS_PICKLE_MACHINE_H
#define FORMATS_PICKLE_MACHINE_H

#include "phema/arena.h"
#include "phema/formats.h"

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_BIGINT,
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_BYTES,
    PICKLE_TUPLE, /* never changes once it is made */
    PICKLE_LIST,
    PICKLE_SET,  /* or a frozenset */
    PICKLE_DICT, /* items are key, value, key, value ... in the order they were set */
    PICKLE_GLOBAL,
    PICKLE_OBJECT, /* inert: holds no tensor */
    PICKLE_OPAQUE, /* of a class outside the list, or a tensor that is not read: a record */
    PICKLE_MODULE, /* its state is a dict or NULL */
    PICKLE_RECORD, /* of a class of torch.distributed */
    PICKLE_STORAGE,
    PICKLE_TENSOR
};

/* The meaning of a global that is allowed. */
enum pickle_action {
    ACTION_INERT,
    ACTION_UNHASHABLE, /* inert, and never a key of a dict */
    ACTION_UNKNOWN,    /* outside the list: opaque, may become a container or a module */
    ACTION_ALLOWED,    /* the same, and the user has said that what it hides is not needed */
    ACTION_UNREAD,     /* makes a tensor that is not read, for the reason `why` */
    ACTION_ENCODE,     /* bytes of a text, as protocol 2 writes them */
    ACTION_SCALAR,     /* a number of numpy */
    ACTION_DICT,
    ACTION_SET,
    ACTION_SIZE, /* torch.Size: the tuple it is made of */
    ACTION_TENSOR_V1,
    ACTION_TENSOR_V2,
    ACTION_TENSOR_V3,
    ACTION_PARAMETER,
    ACTION_PARAMETER_WITH_STATE,
    ACTION_DEVICE_TENSOR, /* of a tensor on the CPU */
    ACTION_FROM_TYPE,
    ACTION_TENSOR_CLASS,
    ACTION_WRAPPER, /* makes a tensor of a subclass around others */
    ACTION_DTENSOR_CLASS,
    ACTION_STORAGE_CLASS,
    ACTION_UNTYPED_STORAGE_CLASS,
    ACTION_DTYPE,
    ACTION_PACKED_DTYPE, /* float4_e2m1fn_x2: two elements in one of torch's */
    ACTION_MODULE_CLASS,
    ACTION_RECORD_CLASS,
    ACTION_PERSISTENT,  /* makes an object of the class in a source text: a module, if any */
    ACTION_LOAD_STORAGE /* from bytes that are a whole file of the legacy format */
};

struct pickle_storage {
    struct phema_span key;
    enum phema_dtype dtype;     /* U8 when untyped */
    bool is_untyped, is_placed; /* placed: where data follow the pickle */
    uint64_t n_elems;
    uint64_t size_bytes; /* their product was checked */
    size_t file;
    uint64_t offset; /* in the file */
};

struct pickle_tensor {
    const struct pickle_storage *storage;
    enum phema_dtype dtype;
    bool is_packed;
    uint64_t first;                  /* offset in the storage [elements of dtype] */
    const struct pickle_node *sizes; /* tuples of as many non-negative ints */
    const struct pickle_node *strides;
    /* Of a DTensor, whose other fields are those of the part that this process has; else NULL. */
    const struct pickle_node *spec;         /* record */
    const struct pickle_node *global_sizes; /* tuple of non-negative ints */
};

struct pickle_items {
    struct pickle_node **at;
    uint32_t n, capacity;
};

struct pickle_global {
    enum pickle_action action;
    enum phema_dtype dtype;
    const char *name; /* "module.name", in the arena */
    const char *why;  /* of ACTION_UNREAD, as the end of a sentence */
};

/* Of an opaque node: it was called with args, and may hide more than args and state show. */
struct pickle_record {
    const struct pickle_global *class;
    struct pickle_node *state; /* a dict or a tuple, of an opaque node any; NULL: none was given */
    struct pickle_node *args;  /* of an opaque node: a tuple, or NULL */
    bool hides_items;
};

struct pickle_node {
    uint8_t kind;                   /* enum pickle_kind */
    uint8_t walk_state;             /* for walks over the tree: 0 at first */
    bool is_unhashable;             /* cannot be a key of a dict, nor can a tuple of it */
    bool is_noted;                  /* a dict whose equal keys are merged at the end */
    struct pickle_node *attributes; /* state that BUILD gave a dict, of any kind; NULL: none */
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct phema_span span; /* text, bytes, bigint: a view of the pickle */
        struct pickle_items items;
        const struct pickle_global *global;
        struct pickle_node *state; /* of a module */
        struct pickle_record *record;
        struct pickle_storage *storage;
        struct pickle_tensor *tensor;
    };
};

/* Knowledge of the file around a pickle. */
struct pickle_host {
    const struct phema_checkpoint_options *options;
    bool is_distributed; /* the metadata of a distributed checkpoint, the only place where
                            classes of torch.distributed are allowed */
    /* Finds the storage that a persistent id names; NULL: persistent ids are refused. */
    enum phema_status (*find_storage)(struct pickle_storage **out, void *context,
                                      const struct pickle_node *id, struct phema_error *err);
    /* Finds the one storage of a file inside the pickle; NULL: such files are refused. */
    enum phema_status (*load_storage)(struct pickle_storage **out, void *context,
                                      struct phema_span bytes, struct phema_error *err);
    void *context;
};

/* Reads one pickle at the start of bytes; *used is its length. The nodes lie in the arena, which
 * grows by at most a fixed multiple of the bytes. */
PHEMA_FALLIBLE pickle_read(struct pickle_node **root, size_t *used, struct phema_span bytes,
                           struct phema_arena *arena, const struct pickle_host *host,
                           struct phema_error *err);

static inline bool pickle_is(const struct pickle_node *node, enum pickle_kind kind)
{
    return node && node->kind == kind;
}
/* An integer of 0 or more. */
static inline bool pickle_is_count(const struct pickle_node *node)
{
    return pickle_is(node, PICKLE_INT) && node->integer >= 0;
}
static inline bool pickle_is_number(const struct pickle_node *node, uint64_t number)
{
    return pickle_is_count(node) && (uint64_t)node->integer == number;
}
static inline bool pickle_is_text(const struct pickle_node *node, const char *text)
{
    return pickle_is(node, PICKLE_TEXT) && phema_bytes_are(node->span.data, node->span.size, text);
}
/* A tuple of integers of 0 or more. */
bool pickle_holds_sizes(const struct pickle_node *node);
/* The integers of a tuple or list; NULL: no memory. */
uint64_t *pickle_copy_sizes(struct phema_arena *arena, const struct pickle_node *node);
/* The value of a text key of a dict, of equal keys the last one; NULL: no such key. */
struct pickle_node *pickle_find(const struct pickle_node *dict, const char *key);

/* A record of a class of this name. */
bool pickle_is_record(const struct pickle_node *node, const char *class);
/* The value of a field of a record whose state is a dict; NULL when it is missing. */
struct pickle_node *pickle_field(const struct pickle_node *record, const char *name);

/* The meaning of a name; false: it runs programs or code, and is refused. */
bool pickle_global_find(struct pickle_global *out, const char *name,
                        const struct pickle_host *host);

#endif
